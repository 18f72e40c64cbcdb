/* A verification on another number of ranks: what belongs to whom differs, so fields are compared
 * point by point where owners' boxes meet, and of buffers rank 0's. */
#include "runtime/verify/other_ranks.h"
#include "base/box.h"
#include "base/expression.h"
#include "runtime/bind/array_rows.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums of many terms that are rounded in another order: 9e-13 of f64. The samples that have such
 * sums differ by at most 7e-14 on 1 to 6 ranks (cg, after 200 steps). */
enum { UNITS_IN_THE_LAST_PLACE = 4096 };

/* Of an array's own largest value: what differs by more is not a small rest of large ones. */
static const double MOST_OF_OWN_F64 = 1e-3, MOST_OF_OWN_F32 = 1e-1;

double peal_rounding_of(peal_type type)
{
    return UNITS_IN_THE_LAST_PLACE * (type == PEAL_F32 ? (double)FLT_EPSILON : DBL_EPSILON);
}

/* ---- before the run ---- */

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

static peal_scope scope_of(const peal_plan *plan, int ranks, peal_compilation *compilation)
{
    peal_scope scope = {.graph = plan->data, .ranks = ranks};
    peal_compilation_dims(compilation, scope.dims);
    return scope;
}

/* Axis of a field whose size is another one on other ranks; -1: none. */
static int axis_that_differs(const peal_array *field, const peal_scope *here,
                             const peal_scope *there, int64_t size[2])
{
    for (int k = 0; k < field->axis_count; k++)
        if (!peal_expr_integer(field->size[k], here, 1, &size[0], NULL) &&
            !peal_expr_integer(field->size[k], there, 1, &size[1], NULL) && size[0] != size[1])
            return k;
    return -1;
}

peal_status peal_other_ranks_admit(const peal_plan *plan, const peal_oracle *oracle,
                                   peal_status status)
{
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    int ranks = oracle->ranks;
    if (status == PEAL_STATUS_SPEC)
        return peal_report(diagnostics, PEAL_E_NOT_ON_OTHER_RANKS, PEAL_NO_SOURCE,
                           "verify on a number of ranks that the spec runs on",
                           "the spec is not sound on %d rank%s, with which the run on %d was to be "
                           "compared",
                           ranks, plural(ranks), plan->machine.ranks);
    if (status)
        return status;
    peal_scope here = scope_of(plan, plan->machine.ranks, plan->compilation),
               there = scope_of(plan, ranks, oracle->compilation);
    for (int a = 0; a < plan->data->array_count; a++) {
        const peal_array *array = &plan->data->arrays[a];
        int64_t size[2];
        if (array->kind == PEAL_ARRAY_BUFFER && array->data)
            return peal_report(diagnostics, PEAL_E_NOT_ON_OTHER_RANKS, array->source,
                               "let the graph load or compute its contents, or verify on as many "
                               "ranks (`verify`)",
                               "buffer `%s` is memory that each rank lends: nobody knows its "
                               "contents on %d rank%s",
                               array->name, ranks, plural(ranks));
        int k =
            array->kind == PEAL_ARRAY_FIELD ? axis_that_differs(array, &here, &there, size) : -1;
        if (k >= 0)
            return peal_report(diagnostics, PEAL_E_NOT_ON_OTHER_RANKS, array->source,
                               "give sizes that don't depend on the number of ranks, or verify on "
                               "as many",
                               "field `%s` has %" PRId64 " points along %c on %d rank%s, %" PRId64
                               " on %d",
                               array->name, size[0], "xyzw"[k], plan -> machine.ranks,
                               plural(plan->machine.ranks), size[1], ranks);
    }
    return PEAL_STATUS_OK;
}

/* ---- points of several owners ---- */

/* Rows along x of a box, in what is packed of `box`, and in memory. */
typedef struct meeting {
    peal_box common;
    const peal_box *packed;
    const peal_schedule_array *array;
    int64_t element;
} meeting;

static void first_point(const meeting *m, int64_t p[PEAL_AXES])
{
    memcpy(p, m->common.lo, sizeof(m->common.lo));
}

/* False: that was the last row. */
static bool next_row(const meeting *m, int64_t p[PEAL_AXES])
{
    for (int k = 1; k < PEAL_AXES; k++) {
        if (++p[k] < m->common.hi[k])
            return true;
        p[k] = m->common.lo[k];
    }
    return false;
}

static int64_t packed_offset(const meeting *m, const int64_t p[PEAL_AXES])
{
    int64_t offset = 0, stride = 1;
    for (int k = 0; k < PEAL_AXES; k++) {
        offset += (p[k] - m->packed->lo[k]) * stride;
        stride *= m->packed->hi[k] - m->packed->lo[k];
    }
    return offset * m->element;
}

static int64_t memory_offset(const meeting *m, const int64_t p[PEAL_AXES])
{
    const peal_layout *layout = &m->array->layout;
    int64_t offset = 0;
    for (int k = 0; k < PEAL_AXES; k++)
        offset += (p[k] - layout->stored.lo[k]) * layout->stride[k];
    return offset * m->element;
}

static int64_t row_bytes(const meeting *m)
{
    return (m->common.hi[0] - m->common.lo[0]) * m->element;
}

unsigned char *peal_other_ranks_part(const peal_plan *plan, const peal_oracle *oracle, int rank,
                                     int array, const peal_packed *packed)
{
    const peal_schedule_array *a = &oracle->serial[rank].schedule.array[array];
    const peal_box *stored = &a->layout.stored;
    unsigned char *part = calloc((size_t)peal_box_bytes(stored, a->type) + 1, 1);
    for (int r = 0; part && r < plan->machine.ranks; r++) {
        meeting from = {peal_box_intersect(stored, &packed[r].box), &packed[r].box, a,
                        (int64_t)peal_type_bytes(a->type)};
        meeting to = {from.common, stored, a, from.element};
        int64_t p[PEAL_AXES];
        if (peal_box_is_empty(&from.common))
            continue;
        first_point(&from, p);
        do {
            memcpy(part + packed_offset(&to, p), packed[r].data + packed_offset(&from, p),
                   (size_t)row_bytes(&from));
        } while (next_row(&from, p));
    }
    return part;
}

/* ---- comparison ---- */

static double real_of(peal_type type, const unsigned char *at)
{
    double f64;
    float f32;
    if (type == PEAL_F64)
        memcpy(&f64, at, sizeof(f64));
    else
        memcpy(&f32, at, sizeof(f32));
    return type == PEAL_F64 ? f64 : (double)f32;
}

static bool is_real(peal_type type)
{
    return type == PEAL_F64 || type == PEAL_F32;
}

/* Infinite where no rounding explains it. */
static double difference_of(peal_type type, const unsigned char *run, const unsigned char *serial)
{
    double a = is_real(type) ? real_of(type, run) : 0,
           b = is_real(type) ? real_of(type, serial) : 1;
    if (isnan(a) && isnan(b))
        return 0;
    return isfinite(a) && isfinite(b) && is_real(type) ? fabs(a - b) : INFINITY;
}

static void compare_row(const meeting *m, int rank, bool rounds, const int64_t p[PEAL_AXES],
                        const unsigned char *run, const unsigned char *serial, peal_tally *t)
{
    peal_type type = m->array->type;
    int64_t count = m->common.hi[0] - m->common.lo[0];
    t->points += count;
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *a = run + i * m->element, *b = serial + i * m->element;
        double value = rounds && is_real(type) ? fabs(real_of(type, b)) : 0;
        if (isfinite(value) && value > t->largest)
            t->largest = value;
        if (!memcmp(a, b, (size_t)m->element))
            continue;
        double difference = difference_of(type, a, b);
        t->differing++;
        if (t->differing > 1 && (!rounds || !(difference > t->difference)))
            continue;
        t->difference = difference;
        t->rank = rank;
        memcpy(t->at, p, sizeof(t->at));
        t->at[0] += i;
        memcpy(t->run, a, (size_t)m->element);
        memcpy(t->serial, b, (size_t)m->element);
    }
}

/* Box of rank r of the run with serial rank s, whose memory is `memory`. */
static void compare_part(const peal_packed *packed, int r, const peal_schedule_array *array,
                         const unsigned char *memory, bool rounds, peal_tally *t)
{
    meeting m = {peal_box_intersect(&packed[r].box, &array->layout.own), &packed[r].box, array,
                 (int64_t)peal_type_bytes(array->type)};
    int64_t p[PEAL_AXES];
    if (peal_box_is_empty(&m.common))
        return;
    first_point(&m, p);
    do {
        compare_row(&m, r, rounds, p, packed[r].data + packed_offset(&m, p),
                    memory + memory_offset(&m, p), t);
    } while (next_row(&m, p));
}

static void add_name(char *list, size_t bytes, const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, bytes - used, "%s%s", used ? ", " : "", name);
}

/* largest: value of all that is rounded; 0: the array is not. */
static peal_status report(const peal_plan *plan, const peal_oracle *oracle, int array,
                          double largest, const peal_tally *t)
{
    const peal_array *a = &plan->data->arrays[array];
    char where[100] = "", got[40], want[40], much[160] = "";
    int axes = a->kind == PEAL_ARRAY_FIELD ? peal_stored_axes(a) : 1;
    peal_point_text(t->at, axes, where, sizeof(where));
    peal_element_text(a->type, t->run, got, sizeof(got));
    peal_element_text(a->type, t->serial, want, sizeof(want));
    if (largest > 0)
        snprintf(much, sizeof(much),
                 "; the difference is %.2g of the largest value, rounding of sums explains %.2g",
                 t->difference / largest, peal_rounding_of(a->type));
    return peal_report(plan->session->diagnostics, PEAL_E_RANKS_DIFFER, a->source,
                       "try --check-footprints: a kernel may touch more than it declares, so that "
                       "halos are too narrow or stale",
                       "`%s` depends on the number of ranks: at %s, of rank %d of %d, it is %s, "
                       "serial on %d rank%s has %s; %" PRId64 " of %" PRId64 " points differ%s",
                       a->name, where, t->rank, plan->machine.ranks, got, oracle->ranks,
                       plural(oracle->ranks), want, t->differing, t->points, much);
}

/* Both sides have the same points: else something is compared with nothing. Of a replicated field
 * each rank is compared with each. */
static peal_status check_points(const peal_plan *plan, const peal_oracle *oracle, int array,
                                const peal_packed *packed, const peal_tally *t)
{
    int64_t run = 0, serial = 0;
    for (int r = 0; r < plan->machine.ranks; r++)
        run += peal_box_points(&packed[r].box);
    for (int s = 0; s < oracle->ranks; s++)
        serial += peal_box_points(&oracle->serial[s].schedule.array[array].layout.own);
    const peal_array *a = &plan->data->arrays[array];
    int64_t serial_copies = a->replicated ? oracle->ranks : 1;
    int64_t run_copies = a->replicated ? plan->machine.ranks : 1;
    if (run * serial_copies == t->points && serial * run_copies == t->points)
        return PEAL_STATUS_OK;
    return peal_report(plan->session->diagnostics, PEAL_E_NOT_ON_OTHER_RANKS, a->source,
                       "let its size and halo not depend on the number of ranks",
                       "field `%s` has %" PRId64 " points on %d rank%s, %" PRId64 " on %d", a->name,
                       run, plan->machine.ranks, plural(plan->machine.ranks), serial,
                       oracle->ranks);
}

static bool is_defined(const peal_oracle *oracle, int array)
{
    bool defined = false;
    for (int s = 0; s < oracle->ranks && !defined; s++)
        defined = peal_array_is_compared(&oracle->serial[s].schedule, array);
    return defined;
}

peal_status peal_other_ranks_compare(const peal_plan *plan, const peal_oracle *oracle, int array,
                                     const peal_packed *packed, const peal_binding *serial,
                                     const peal_backend_plan *run, peal_tally *tally)
{
    const peal_array *a = &plan->data->arrays[array];
    bool field = a->kind == PEAL_ARRAY_FIELD;
    peal_alike alike = oracle->likeness->array[array];
    bool rounds = alike == PEAL_SAME_BUT_ROUNDING;
    tally->defined = is_defined(oracle, array);
    if (!tally->defined || alike == PEAL_OWN_OF_RANK)
        return PEAL_STATUS_OK;
    for (int s = 0; s < (field ? oracle->ranks : 1); s++) {
        int storage = plan->backend->storage(run, s, array);
        unsigned char *copy;
        const unsigned char *memory;
        peal_status status = peal_binding_read(serial, s, storage, &copy, &memory);
        if (status)
            return status;
        for (int r = 0; r < (field ? plan->machine.ranks : 1); r++)
            compare_part(packed, r, &oracle->serial[s].schedule.array[array], memory, rounds,
                         tally);
        free(copy);
    }
    if (tally->differing && !rounds)
        return report(plan, oracle, array, 0, tally);
    return field ? check_points(plan, oracle, array, packed, tally) : PEAL_STATUS_OK;
}

peal_status peal_other_ranks_judge(const peal_plan *plan, const peal_oracle *oracle,
                                   const peal_tally *tally, peal_ranks_verdict *verdict)
{
    const peal_alike *alike = oracle->likeness->array;
    double largest = 0;
    for (int a = 0; a < oracle->arrays; a++)
        if (tally[a].largest > largest)
            largest = tally[a].largest;
    for (int a = 0; a < oracle->arrays; a++) {
        const peal_array *array = &plan->data->arrays[a];
        const peal_tally *t = &tally[a];
        if (t->defined && alike[a] == PEAL_OWN_OF_RANK)
            add_name(verdict->own, sizeof(verdict->own), array->name);
        if (!t->differing || alike[a] != PEAL_SAME_BUT_ROUNDING)
            continue;
        double own = array->type == PEAL_F32 ? MOST_OF_OWN_F32 : MOST_OF_OWN_F64;
        if (!(t->difference <= peal_rounding_of(array->type) * largest) ||
            t->difference > own * t->largest)
            return report(plan, oracle, a, largest, t);
        add_name(verdict->rounded, sizeof(verdict->rounded), array->name);
        if (t->difference > verdict->rounding * largest)
            verdict->rounding = t->difference / largest;
    }
    return PEAL_STATUS_OK;
}
