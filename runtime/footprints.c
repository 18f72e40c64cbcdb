/* --check-footprints: every tile of every kernel runs twice more on shadows of the arrays that it
 * may touch. Outside the declared footprint one shadow holds one pattern, the other another
 * (floats: two NaNs; integers: complementary bits); inside both hold the real values. Outputs that
 * differ come from an undeclared read, patterns that are gone from an undeclared write. The real
 * memory is touched by the real run alone, which follows.
 *
 * It works through the plan's own backend in serial mode, on schedules whose functions are replaced
 * by `check_call`. */
#include "base/box.h"
#include "base/checked.h"
#include "runtime/plan.h"
#include "runtime/storage.h"

#include <stdlib.h>
#include <string.h>

enum { MARGIN_BYTES = 4096, OFTEN_BYTES = 65536 };

typedef struct checked_task {
    peal_footprints *owner;
    const peal_schedule *schedule;
    const peal_schedule_task *task;
    peal_function full, bare; /* the real ones */
    void *user;
    peal_storage allocated[PEAL_CALL_VIEWS][2];
    peal_storage results;                      /* partials of the runs on the shadows */
    unsigned char *shadow[PEAL_CALL_VIEWS][2]; /* by access: first stored element */
} checked_task;

struct peal_footprints {
    peal_plan *plan;
    peal_schedule *schedule; /* copies by hosted rank */
    peal_schedule_task **copy;
    checked_task **checked;
    bool *reported; /* by statement: one report of each task is enough */
    int findings;
};

/* ---- patterns ---- */

/* OUTSIDE is NaN, which spreads to every result. What `write` finds in its footprint is finite: a
 * point that the kernel leaves out keeps it, one that it adds to does not. */
enum { OUTSIDE = 0, OLD = 2, PATTERNS = 4 };

static void fill(unsigned char *memory, int64_t bytes, peal_type type, int pattern)
{
    static const uint64_t f64[PATTERNS] = {UINT64_C(0x7ff8000000000a11),
                                           UINT64_C(0xfff8000000000b22),
                                           UINT64_C(0x4092345678912345),
                                           UINT64_C(0xc0f54321fedcba98)};
    static const uint32_t f32[PATTERNS] = {0x7fc00a11, 0xffc00b22, 0x44912345, 0xc7a54321};
    static const unsigned char byte[PATTERNS] = {0x55, 0xaa, 0x33, 0xcc};
    size_t element = peal_type_bytes(type);
    if (type != PEAL_F64 && type != PEAL_F32) {
        memset(memory, byte[pattern], (size_t)bytes);
        return;
    }
    const void *value =
        type == PEAL_F64 ? (const void *)&f64[pattern] : (const void *)&f32[pattern];
    for (int64_t at = 0; at + (int64_t)element <= bytes; at += (int64_t)element)
        memcpy(memory + at, value, element);
}

static bool is_pattern(const unsigned char *at, peal_type type, int pattern)
{
    unsigned char value[8];
    int64_t element = (int64_t)peal_type_bytes(type);
    fill(value, element, type, pattern);
    return !memcmp(at, value, (size_t)element);
}

/* ---- footprints ---- */

static const peal_schedule_array *array_of(const checked_task *t, int access)
{
    return &t->schedule->array[t->task->access[access].array];
}

/* The boxes that a tile touches by an access, within what is stored. */
static int boxes_of(const checked_task *t, int access, const peal_tile *tile, peal_box *box,
                    int capacity)
{
    const peal_task_access *a = &t->task->access[access];
    const peal_box *stored = &array_of(t, access)->layout.stored;
    int count = 0;
    if (a->per_tile > 0) {
        box[0] = *stored;
        box[0].lo[0] = tile->index * a->per_tile;
        box[0].hi[0] = box[0].lo[0] + a->per_tile;
        box[0] = peal_box_intersect(&box[0], stored);
        return 1;
    }
    for (int r = 0; r < a->reach_count && count < capacity; r++) {
        peal_box *b = &box[count++];
        *b = *stored;
        for (int k = 0; k < PEAL_AXES; k++) {
            const peal_reach_axis *axis = &a->reach[r].axis[k];
            b->lo[k] = axis->low;
            b->hi[k] = axis->high;
            if (!axis->fixed) {
                b->lo[k] += peal_floor_divide((int64_t)tile->lo[k] * axis->num, axis->den);
                b->hi[k] += peal_ceil_divide((int64_t)tile->hi[k] * axis->num, axis->den);
            }
        }
        *b = peal_box_intersect(b, stored);
    }
    return count;
}

typedef struct row_visit {
    unsigned char *to;
    const unsigned char *from;
    peal_type type;
    int pattern;
    int64_t low, high; /* only bytes [low, high) are filled; high 0: all */
    int64_t found;     /* place of the first that differs; -1: none */
} row_visit;

static void copy_row(void *user, int64_t place, int64_t bytes)
{
    row_visit *v = user;
    memcpy(v->to + place, v->from + place, (size_t)bytes);
}

static void fill_row(void *user, int64_t place, int64_t bytes)
{
    row_visit *v = user;
    int64_t from = place, end = place + bytes;
    if (v->high > 0) {
        from = from > v->low ? from : v->low;
        end = end < v->high ? end : v->high;
    }
    if (from < end)
        fill(v->to + from, end - from, v->type, v->pattern);
}

/* Differing elements, but for those that the kernel has left out. */
static void compare_row(void *user, int64_t place, int64_t bytes)
{
    row_visit *v = user;
    int64_t element = (int64_t)peal_type_bytes(v->type);
    if (v->found >= 0 || !memcmp(v->to + place, v->from + place, (size_t)bytes))
        return;
    for (int64_t at = place; at < place + bytes && v->found < 0; at += element)
        if (memcmp(v->to + at, v->from + at, (size_t)element) != 0 &&
            !(is_pattern(v->to + at, v->type, OLD) && is_pattern(v->from + at, v->type, OLD + 1)))
            v->found = at;
}

static void for_footprint(const checked_task *t, int access, const peal_tile *tile,
                          void (*visit)(void *, int64_t, int64_t), row_visit *user)
{
    peal_box box[PEAL_CALL_VIEWS];
    int count = boxes_of(t, access, tile, box, PEAL_CALL_VIEWS);
    user->type = array_of(t, access)->type;
    for (int i = 0; i < count; i++)
        peal_box_rows(array_of(t, access), &box[i], visit, user);
}

/* ---- a tile on the shadows ---- */

/* First stored element of the storage that a view shows. */
static unsigned char *first_of(const checked_task *t, int access, const peal_call *call)
{
    const peal_layout *layout = &array_of(t, access)->layout;
    int64_t place = -call->tile.index * t->task->access[access].per_tile;
    for (int k = 0; k < PEAL_AXES; k++)
        place += layout->stored.lo[k] * layout->stride[k];
    return (
        unsigned char *)((uintptr_t)call->view[access].base +
                         (uintptr_t)(place * (int64_t)peal_type_bytes(array_of(t, access)->type)));
}

/* What the kernel may read, in a shadow; the pattern where it may only write. */
static void bring_inputs(const checked_task *t, const peal_call *call, int which, int old)
{
    for (int a = 0; a < t->task->access_count; a++) {
        bool writes = t->task->access[a].mode == PEAL_WRITE_ACCESS;
        row_visit v = {.to = t->shadow[a][which], .from = first_of(t, a, call), .pattern = old};
        for_footprint(t, a, &call->tile, writes ? fill_row : copy_row, &v);
    }
}

static peal_function function_of(const checked_task *t, const peal_call *call)
{
    bool wanted = !t->task->reduction_count || call->partial[0];
    return wanted ? t->full : t->bare;
}

static void run_on(const checked_task *t, const peal_call *call, int which, uint64_t *partial)
{
    peal_call copy = *call;
    copy.user = t->user;
    for (int a = 0; a < t->task->access_count; a++)
        copy.view[a].base =
            (void *)((uintptr_t)call->view[a].base - (uintptr_t)first_of(t, a, call) +
                     (uintptr_t)t->shadow[a][which]);
    uint64_t *result = (uint64_t *)(void *)t->results.base;
    memset(result, 0, PEAL_CALL_PARTIALS * sizeof(*result));
    for (int r = 0; r < t->task->reduction_count; r++)
        copy.partial[r] = call->partial[r] ? &result[r] : NULL;
    function_of(t, call)(&copy);
    memcpy(partial, result, PEAL_CALL_PARTIALS * sizeof(*result));
}

/* Whether the outputs of the two shadows differ. */
static bool outputs_differ(const checked_task *t, const peal_call *call, const uint64_t *first,
                           const uint64_t *second)
{
    for (int r = 0; r < t->task->reduction_count; r++)
        if (first[r] != second[r])
            return true;
    for (int a = 0; a < t->task->access_count; a++) {
        row_visit v = {.to = t->shadow[a][0], .from = t->shadow[a][1], .found = -1};
        if (t->task->access[a].mode != PEAL_READ_ACCESS)
            for_footprint(t, a, &call->tile, compare_row, &v);
        if (v.found >= 0)
            return true;
    }
    return false;
}

static void clear_all(const checked_task *t, int which, int pattern)
{
    for (int a = 0; a < t->task->access_count; a++)
        fill(t->shadow[a][which], array_of(t, a)->layout.bytes, array_of(t, a)->type, pattern);
}

/* ---- reports ---- */

/* "(3, 4)" of the element at a place in bytes. */
static void print_place(const peal_schedule_array *array, int64_t place, char *text, size_t bytes)
{
    const peal_layout *layout = &array->layout;
    int64_t rest = place / (int64_t)peal_type_bytes(array->type), p[PEAL_AXES];
    size_t used = 0;
    for (int k = PEAL_AXES - 1; k >= 0; k--) {
        int64_t extent = layout->stored.hi[k] - layout->stored.lo[k];
        int64_t index = layout->stride[k] > 0 ? rest / layout->stride[k] : 0;
        index = index < extent ? index : extent - 1;
        rest -= index * layout->stride[k];
        p[k] = layout->stored.lo[k] + index;
    }
    for (int k = 0; (k == 0 || k < layout->stored.axis_count) && used < bytes; k++)
        used +=
            (size_t)snprintf(text + used, bytes - used, "%s%lld", k ? ", " : "(", (long long)p[k]);
    if (used < bytes)
        snprintf(text + used, bytes - used, ")");
}

static void print_tile(const checked_task *t, const peal_tile *tile, char *text, size_t bytes)
{
    size_t used = 0;
    int axes = t->task->tiling_count ? t->task->tiling[0].box.axis_count : 1;
    for (int k = 0; (k == 0 || k < axes) && used < bytes; k++)
        used += (size_t)snprintf(text + used, bytes - used, "%s[%d, %d)", k ? " x " : "",
                                 tile->lo[k], tile->hi[k]);
}

static void report(const checked_task *t, const peal_tile *tile, peal_code code, int access,
                   int64_t place)
{
    char where[120] = "", box[120];
    bool *reported = &t->owner->reported[t->task->statement];
    t->owner->findings++;
    if (*reported)
        return;
    *reported = true;
    print_tile(t, tile, box, sizeof(box));
    if (access >= 0)
        print_place(array_of(t, access), place, where, sizeof(where));
    peal_report(t->owner->plan->session->diagnostics, code, t->task->source,
                "declare it (star, grow, whole, ...), or mend the kernel",
                "task '%s' %s %s%s%s%s, which it doesn't declare (rank %d, tile %s)", t->task->name,
                code == PEAL_E363 ? "reads" : "writes", access >= 0 ? "'" : "something",
                access >= 0 ? array_of(t, access)->name : "", access >= 0 ? "' at " : "", where,
                t->schedule->rank, box);
}

/* Whether the outputs change when elements [from, end) of one array have the other pattern. */
static bool matters(const checked_task *t, const peal_call *call, int access, int64_t from,
                    int64_t end)
{
    uint64_t first[PEAL_CALL_PARTIALS], second[PEAL_CALL_PARTIALS];
    peal_type type = array_of(t, access)->type;
    int64_t element = (int64_t)peal_type_bytes(type);
    clear_all(t, 0, OUTSIDE);
    clear_all(t, 1, OUTSIDE);
    fill(t->shadow[access][1] + from * element, (end - from) * element, type, OUTSIDE + 1);
    bring_inputs(t, call, 0, OLD);
    bring_inputs(t, call, 1, OLD);
    row_visit v = {.to = t->shadow[access][1],
                   .pattern = OLD + 1,
                   .low = from * element,
                   .high = end * element};
    if (t->task->access[access].mode == PEAL_WRITE_ACCESS)
        for_footprint(t, access, &call->tile, fill_row, &v);
    run_on(t, call, 0, first);
    run_on(t, call, 1, second);
    return outputs_differ(t, call, first, second);
}

/* Finds an element whose contents decide the outputs. */
static void find_read(const checked_task *t, const peal_call *call)
{
    for (int a = 0; a < t->task->access_count; a++) {
        int64_t from = 0,
                end = array_of(t, a)->layout.bytes / (int64_t)peal_type_bytes(array_of(t, a)->type);
        if (!matters(t, call, a, from, end))
            continue;
        while (end - from > 1) {
            int64_t middle = from + (end - from) / 2;
            if (matters(t, call, a, from, middle))
                end = middle;
            else
                from = middle;
        }
        report(t, &call->tile, PEAL_E363, a, from * (int64_t)peal_type_bytes(array_of(t, a)->type));
        return;
    }
    report(t, &call->tile, PEAL_E363, -1, 0);
}

/* After the footprints were given their patterns again, everything must have them. */
static void find_writes(const checked_task *t, const peal_tile *tile)
{
    for (int a = 0; a < t->task->access_count; a++) {
        const peal_schedule_array *array = array_of(t, a);
        int64_t element = (int64_t)peal_type_bytes(array->type);
        if (tile->index + 1 < tile->count && array->layout.bytes > OFTEN_BYTES)
            continue;
        for (int64_t at = 0; at + element <= array->layout.bytes; at += element)
            if (!is_pattern(t->shadow[a][0] + at, array->type, OUTSIDE)) {
                report(t, tile, PEAL_E364, a, at);
                fill(t->shadow[a][0], array->layout.bytes, array->type, OUTSIDE);
                break;
            }
    }
}

/* What is only read must be as it was. */
static void find_changed_inputs(const checked_task *t, const peal_call *call)
{
    for (int a = 0; a < t->task->access_count; a++) {
        row_visit v = {.to = t->shadow[a][0], .from = first_of(t, a, call), .found = -1};
        if (t->task->access[a].mode == PEAL_READ_ACCESS)
            for_footprint(t, a, &call->tile, compare_row, &v);
        if (v.found >= 0)
            report(t, &call->tile, PEAL_E364, a, v.found);
    }
}

/* In the place of the task's function: call->user is the checked task. */
static void check_call(const peal_call *call)
{
    const checked_task *t = call->user;
    uint64_t partial[2][PEAL_CALL_PARTIALS];
    for (int which = 0; which < 2; which++) {
        bring_inputs(t, call, which, OLD + which);
        run_on(t, call, which, partial[which]);
    }
    find_changed_inputs(t, call);
    if (outputs_differ(t, call, partial[0], partial[1])) {
        find_read(t, call);
        clear_all(t, 0, OUTSIDE);
        clear_all(t, 1, OUTSIDE + 1);
    }
    for (int a = 0; a < t->task->access_count; a++)
        for (int which = 0; which < 2; which++) {
            row_visit v = {.to = t->shadow[a][which], .pattern = OUTSIDE + which};
            for_footprint(t, a, &call->tile, fill_row, &v);
        }
    find_writes(t, &call->tile);
    peal_call real = *call;
    real.user = t->user;
    function_of(t, call)(&real);
}

/* ---- setting up ---- */

static peal_status no_memory(const peal_plan *plan)
{
    return peal_report(plan->session->diagnostics, PEAL_E367, PEAL_NO_SOURCE, NULL,
                       "no memory for the shadows of --check-footprints");
}

/* Where the kernels of `serial` can touch them, and the host too. */
static peal_status make_shadows(const peal_plan *plan, checked_task *t)
{
    const peal_place *place = &plan->binding.place;
    for (int a = 0; a < t->task->access_count; a++)
        for (int which = 0; which < 2; which++) {
            const peal_schedule_array *array = array_of(t, a);
            int64_t bytes = array->layout.bytes + 2 * MARGIN_BYTES;
            peal_storage *memory = &t->allocated[a][which];
            peal_status status =
                peal_storage_create(place, bytes, false, plan->session->diagnostics, memory);
            if (status)
                return status;
            fill(memory->base, bytes, array->type, OUTSIDE + which);
            t->shadow[a][which] = memory->base + MARGIN_BYTES;
        }
    return peal_storage_create(place, PEAL_CALL_PARTIALS * (int64_t)sizeof(uint64_t), false,
                               plan->session->diagnostics, &t->results);
}

static peal_status wrap_rank(peal_footprints *f, int index)
{
    peal_plan *plan = f->plan;
    const peal_schedule *schedule = plan->binding.rank[index].schedule;
    size_t count = (size_t)schedule->task_count;
    peal_schedule_task *copy = f->copy[index] = calloc(count + 1, sizeof(*copy));
    checked_task *checked = f->checked[index] = calloc(count + 1, sizeof(*checked));
    if (!copy || !checked)
        return no_memory(plan);
    memcpy(copy, schedule->task, count * sizeof(*copy));
    f->schedule[index] = *schedule;
    f->schedule[index].task = copy;
    for (int i = 0; i < schedule->task_count; i++) {
        const peal_schedule_task *task = &schedule->task[i];
        if (task->kind != PEAL_TASK_KERNEL)
            continue;
        checked_task *t = &checked[i];
        *t = (checked_task){.owner = f, .schedule = schedule, .task = task};
        t->full = plan->backend->function(plan->run, index, i, true, &t->user);
        t->bare = plan->backend->function(plan->run, index, i, false, &t->user);
        peal_status status = make_shadows(plan, t);
        if (status)
            return status;
        copy[i].function = check_call;
        copy[i].user = &checked[i];
    }
    return PEAL_STATUS_OK;
}

peal_status peal_footprints_create(peal_plan *plan)
{
    size_t ranks = (size_t)plan->binding.count;
    peal_footprints *f = plan->footprints = calloc(1, sizeof(*f));
    if (!f)
        return no_memory(plan);
    f->plan = plan;
    f->schedule = calloc(ranks + 1, sizeof(*f->schedule));
    f->copy = calloc(ranks + 1, sizeof(*f->copy));
    f->checked = calloc(ranks + 1, sizeof(*f->checked));
    f->reported = calloc((size_t)plan->data->statement_count + 1, sizeof(*f->reported));
    if (!f->schedule || !f->copy || !f->checked || !f->reported)
        return no_memory(plan);
    if (!plan->run)
        return PEAL_STATUS_OK;
    peal_status status = PEAL_STATUS_OK;
    for (int r = 0; !status && r < plan->binding.count; r++)
        status = wrap_rank(f, r);
    if (status)
        return status;
    for (int r = 0; r < plan->binding.count; r++)
        plan->binding.backend_rank[r].schedule = &f->schedule[r];
    /* the first backend plan stays: it holds the kernels */
    return peal_plan_arm(plan, &plan->binding, PEAL_MODE_SERIAL, &plan->checking);
}

peal_status peal_footprints_status(const peal_footprints *footprints)
{
    return footprints->findings ? PEAL_STATUS_SPEC : PEAL_STATUS_OK;
}

static void release_shadows(checked_task *t)
{
    for (int a = 0; a < PEAL_CALL_VIEWS; a++)
        for (int which = 0; which < 2; which++)
            peal_storage_release(&t->allocated[a][which]);
    peal_storage_release(&t->results);
}

void peal_footprints_destroy(peal_footprints *f)
{
    if (!f)
        return;
    for (int r = 0; r < f->plan->binding.count; r++) {
        for (int i = 0; f->checked && f->checked[r] && i < f->schedule[r].task_count; i++)
            release_shadows(&f->checked[r][i]);
        if (f->checked)
            free(f->checked[r]);
        if (f->copy)
            free(f->copy[r]);
    }
    free(f->checked);
    free(f->copy);
    free(f->schedule);
    free(f->reported);
    free(f);
}
