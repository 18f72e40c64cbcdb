/* Which grid of ranks the boxes of all processes are: each axis is cut where boxes begin, and each
 * cell must be one process's. If they are no grid, a sweep finds a point with no owner or two, or
 * it is a cut that does not go through. */
#include "runtime/exchange/decompose.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_EXTENT INT64_C(0x7fffffff) /* axes have fewer than 2^31 points */
static const char axis_name[] = "xyzw";
static const char meant_half_open[] =
    "a process owns the points lo <= p < hi of the whole grid's coordinates, halo not counted";

typedef struct boxes {
    const peal_box *part;
    int processes, axis_count;
    peal_misfit *misfit;
} boxes;

static peal_status misfit(const boxes *b, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static peal_status misfit(const boxes *b, const char *hint, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(b->misfit->text, sizeof(b->misfit->text), format, arguments);
    va_end(arguments);
    b->misfit->hint = hint;
    return PEAL_STATUS_USAGE;
}

static peal_status no_memory(const boxes *b)
{
    misfit(b, NULL, "no memory for the boxes of %d processes", b->processes);
    return PEAL_STATUS_ENVIRONMENT;
}

/* ---- each box, and all together ---- */

static peal_status check_box(const boxes *b, int process)
{
    const peal_box *part = &b->part[process];
    for (int k = 0; k < b->axis_count; k++) {
        if (part->hi[k] <= part->lo[k])
            return misfit(b, meant_half_open,
                          "process %d owns no points along %c: lo %" PRId64 ", hi %" PRId64,
                          process, axis_name[k], part->lo[k], part->hi[k]);
        if (k >= PEAL_RANK_AXES &&
            (part->lo[k] != b->part[0].lo[k] || part->hi[k] != b->part[0].hi[k]))
            return misfit(b, "cut the first three axes only",
                          "process %d owns [%" PRId64 ", %" PRId64
                          ") of axis %c, process 0 [%" PRId64 ", %" PRId64 ")",
                          process, part->lo[k], part->hi[k], axis_name[k], b->part[0].lo[k],
                          b->part[0].hi[k]);
    }
    return PEAL_STATUS_OK;
}

static peal_status bound(const boxes *b, peal_decomposition *out)
{
    for (int k = 0; k < b->axis_count; k++) {
        int64_t lo = b->part[0].lo[k], hi = b->part[0].hi[k];
        for (int p = 1; p < b->processes; p++) {
            lo = b->part[p].lo[k] < lo ? b->part[p].lo[k] : lo;
            hi = b->part[p].hi[k] > hi ? b->part[p].hi[k] : hi;
        }
        out->lo[k] = lo;
        if (__builtin_sub_overflow(hi, lo, &out->extent[k]) || out->extent[k] > LARGEST_EXTENT)
            return misfit(b, "an axis has at most 2147483647 points",
                          "the boxes lie between %" PRId64 " and %" PRId64 " along %c", lo, hi,
                          axis_name[k]);
    }
    return PEAL_STATUS_OK;
}

/* ---- the grid ---- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Where boxes begin, and the end. */
static bool find_cuts(const boxes *b, peal_decomposition *out, int k)
{
    int64_t *cut = malloc(((size_t)b->processes + 1) * sizeof(*cut));
    int count = 0;
    if (!cut)
        return false;
    for (int p = 0; p < b->processes; p++)
        cut[p] = b->part[p].lo[k] - out->lo[k];
    qsort(cut, (size_t)b->processes, sizeof(*cut), compare);
    for (int p = 0; p < b->processes; p++)
        if (!count || cut[p] != cut[count - 1])
            cut[count++] = cut[p];
    cut[count] = out->extent[k];
    out->cut[k] = cut;
    out->dims[k] = count;
    return true;
}

static int position_of(const peal_decomposition *d, int k, int64_t begin)
{
    int low = 0, high = d->dims[k];
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (d->cut[k][middle] <= begin)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The cell that a process's box is; -1: it is not one. */
static int cell_of(const boxes *b, const peal_decomposition *d, int process)
{
    int rank = 0, stride = 1;
    for (int k = 0; k < PEAL_RANK_AXES && k < b->axis_count; k++) {
        int position = position_of(d, k, b->part[process].lo[k] - d->lo[k]);
        if (b->part[process].hi[k] - d->lo[k] != d->cut[k][position + 1])
            return -1;
        rank += position * stride;
        stride *= d->dims[k];
    }
    return rank;
}

static bool is_grid(const boxes *b, peal_decomposition *d)
{
    int64_t cells = 1;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        cells *= d->dims[k];
        if (cells > b->processes)
            return false;
    }
    if (cells != b->processes)
        return false;
    for (int rank = 0; rank < b->processes; rank++)
        d->process_of[rank] = -1;
    for (int p = 0; p < b->processes; p++) {
        int rank = cell_of(b, d, p);
        if (rank < 0 || d->process_of[rank] >= 0)
            return false;
        d->process_of[rank] = p;
    }
    return true;
}

/* ---- what is wrong ---- */

static const char *print_point(const boxes *b, const int64_t point[PEAL_AXES], char text[100])
{
    int used = snprintf(text, 100, "(");
    for (int k = 0; k < b->axis_count; k++)
        used += snprintf(text + used, (size_t)(100 - used), "%s%" PRId64, k ? ", " : "", point[k]);
    snprintf(text + used, (size_t)(100 - used), ")");
    return text;
}

typedef struct sweep {
    const boxes *b;
    const peal_decomposition *d;
    int64_t point[PEAL_AXES];
    int owner[2], owners; /* of the point: none, or two of them */
} sweep;

/* The first point that not exactly one of the given processes owns, from the last axis on: between
 * two ends of boxes nothing changes. `index` has room for as many again for each axis. */
static bool find_fault(sweep *s, int *index, int count, int axis)
{
    if (axis < 0) {
        s->owners = count;
        for (int i = 0; i < 2 && i < count; i++)
            s->owner[i] = index[i];
        return count != 1;
    }
    int64_t end = s->d->lo[axis] + s->d->extent[axis];
    for (int64_t at = s->d->lo[axis], next; at < end; at = next) {
        int *here = index + count, among = 0;
        next = end;
        for (int i = 0; i < count; i++) {
            int64_t lo = s->b->part[index[i]].lo[axis], hi = s->b->part[index[i]].hi[axis];
            if (lo <= at && at < hi)
                here[among++] = index[i];
            next = lo > at && lo < next ? lo : hi > at && hi < next ? hi : next;
        }
        s->point[axis] = at;
        if (find_fault(s, here, among, axis - 1))
            return true;
    }
    return false;
}

static bool all_are_equal(const boxes *b)
{
    for (int p = 1; p < b->processes; p++)
        for (int k = 0; k < b->axis_count; k++)
            if (b->part[p].lo[k] != b->part[0].lo[k] || b->part[p].hi[k] != b->part[0].hi[k])
                return false;
    return b->processes > 1;
}

/* Every point has one owner: some cut does not go through the whole grid. */
static peal_status explain_cut(const boxes *b)
{
    for (int k = 0; k < PEAL_RANK_AXES && k < b->axis_count; k++)
        for (int p = 0; p < b->processes; p++)
            for (int q = 0; q < b->processes; q++) {
                int64_t begin = b->part[p].lo[k], lo = b->part[q].lo[k], hi = b->part[q].hi[k];
                if (lo < begin && begin < hi)
                    return misfit(b,
                                  "cut each axis at the same points everywhere: then the boxes "
                                  "are a grid",
                                  "the boxes are no grid: process %d begins at %c = %" PRId64
                                  ", which lies within process %d's [%" PRId64 ", %" PRId64 ")",
                                  p, axis_name[k], begin, q, lo, hi);
            }
    return misfit(b, NULL, "the boxes of %d processes are no grid", b->processes);
}

static peal_status explain(const boxes *b, const peal_decomposition *d)
{
    char text[100];
    sweep s = {.b = b, .d = d};
    if (all_are_equal(b))
        return misfit(b,
                      "lo and hi are coordinates of the whole grid: each process states the part "
                      "of it that it owns",
                      "all %d processes own the same points, from %s on", b->processes,
                      print_point(b, b->part[0].lo, text));
    int *index = malloc((size_t)b->processes * (PEAL_AXES + 1) * sizeof(*index));
    if (!index)
        return no_memory(b);
    for (int p = 0; p < b->processes; p++)
        index[p] = p;
    bool found = find_fault(&s, index, b->processes, b->axis_count - 1);
    free(index);
    if (!found)
        return explain_cut(b);
    if (s.owners > 1)
        return misfit(b, meant_half_open, "processes %d and %d both own the point %s", s.owner[0],
                      s.owner[1], print_point(b, s.point, text));
    return misfit(b, meant_half_open, "no process owns the point %s",
                  print_point(b, s.point, text));
}

/* ---- */

static peal_status decompose(const boxes *b, peal_decomposition *out)
{
    for (int p = 0; p < b->processes; p++) {
        peal_status status = check_box(b, p);
        if (status)
            return status;
    }
    peal_status status = bound(b, out);
    if (status)
        return status;
    out->process_of = malloc((size_t)b->processes * sizeof(*out->process_of));
    if (!out->process_of)
        return no_memory(b);
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        out->dims[k] = 1;
        if (k < b->axis_count && !find_cuts(b, out, k))
            return no_memory(b);
    }
    return is_grid(b, out) ? PEAL_STATUS_OK : explain(b, out);
}

peal_status peal_decompose(const peal_box *part, int processes, int axis_count,
                           peal_decomposition *out, peal_misfit *misfit)
{
    const boxes b = {part, processes, axis_count, misfit};
    *out = (peal_decomposition){.dims = {1, 1, 1}};
    peal_status status = decompose(&b, out);
    if (status)
        peal_decomposition_free(out);
    return status;
}

void peal_decomposition_free(peal_decomposition *decomposition)
{
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        free(decomposition->cut[k]);
    free(decomposition->process_of);
    *decomposition = (peal_decomposition){.dims = {1, 1, 1}};
}
