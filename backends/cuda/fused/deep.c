/* Deep rounds (codegen/device/deep.h): steps of a recording that a block can run one after the
 * other without asking others become a second section of the list of work items, in the place of
 * the plain ones.
 *
 * Such steps are a run: each is one launch of the same task, which reads what the step before wrote
 * and overwrites what that one read, and copies within the rank to images of these fields. A round
 * of an odd number of them is one work item. It reads and writes what its first step does, and
 * leaves the older of the two fields as it was when the round began: so behind it comes another
 * step of the task, before anything else looks at that field. The section ends with a plain step,
 * and a launch does, too. */
#include "backends/cuda/fused/dispatchers/dispatcher.h"

#include <string.h>

enum { LEAST_STEPS = PEAL_CUDA_LEAST_DEEP, RUNS = 64 };

/* Steps [begin, end) of the recording. safe: no plain step need follow a round at its end. */
typedef struct run {
    int begin, end;
    bool safe;
    const peal_cuda_deep *deep;
} run;

/* ---- which steps ---- */

/* How many points the domain has along an axis where steps read beyond its end; 0: they do not, or
 * what is there are not images. False: a window cannot have what they read. */
static bool find_wrap(const peal_cuda_work_item *item, const peal_cuda_chain *chain, int axis,
                      int *out)
{
    const peal_schedule *schedule = item->schedule;
    const peal_launch_box *box = &item->launch.box[0];
    const peal_layout *layout = &schedule->array[item->task->access[chain->read].array].layout;
    int64_t lo = layout->part.lo[axis], hi = layout->part.hi[axis];
    bool beyond = box->lo[axis] + chain->low[axis] < lo || box->hi[axis] + chain->high[axis] > hi;

    *out = 0;
    if (!beyond || axis >= PEAL_RANK_AXES || !schedule->graph->topology.periodic[axis])
        return true;
    *out = (int)hi;
    return lo == 0 && box->lo[axis] == 0 && box->hi[axis] == hi;
}

/* Why the work item, of a task whose tiles may be cut, is no step of a deep round; NULL: it may be.
 */
static const char *objection(const peal_cuda_work_item *item, peal_cuda_deep *deep)
{
    const peal_launch *launch = &item->launch;

    if (!peal_cuda_task_chains(item->schedule, item->task, &deep->chain))
        return "does not write one field, pointwise, that is swapped with one that it reads around "
               "each point";
    if (!item->deepens)
        return "does more with its tile than PEAL_FOR_2D or PEAL_FOR_3D";
    if (launch->wait_count > 0 || launch->write_count > 0)
        return "has messages";
    if (item->partials)
        return "has a reduction in each step";
    if (launch->evaluate)
        return "has an argument that changes";
    if (launch->box_count != 1)
        return "has borders that are run apart";
    if (!peal_cuda_fused_can_shape(item))
        return "has no shape that is known before";
    for (int k = 0; k < 3; k++)
        if (!find_wrap(item, &deep->chain, k, &deep->wraps[k]))
            return "reads beyond a periodic end, and does not cover the domain";
    const long long *stride = launch->stride[deep->chain.read];
    int64_t size = (int64_t)peal_type_bytes(
        item->schedule->array[item->task->access[deep->chain.read].array].type);
    deep->axes = peal_cuda_task_axes(item->task);
    deep->chunks = !deep->wraps[0] && stride[0] * size % 16 == 0 && stride[1] * size % 16 == 0;
    return NULL;
}

static bool is_step(const peal_cuda_work_item *item, peal_cuda_deep *deep)
{
    return item->task && !objection(item, deep);
}

/* Whether `b` is the step behind `a`. */
static bool follows(const peal_cuda_work_item *a, const peal_cuda_work_item *b,
                    const peal_cuda_chain *chain)
{
    const peal_launch *x = &a->launch, *y = &b->launch;

    if (!peal_cuda_fused_is_same_shape(a, b) || a->task != b->task || x->stop != y->stop ||
        memcmp(x->box[0].lo, y->box[0].lo, sizeof(x->box[0].lo)) != 0 ||
        memcmp(x->argument, y->argument, sizeof(x->argument)) != 0)
        return false;
    for (int v = 0; v < a->task->access_count; v++) {
        int other = v == chain->read ? chain->written : v == chain->written ? chain->read : v;
        if (y->view[v] != x->view[other])
            return false;
    }
    return true;
}

/* The step behind the next one does what this one does: images go to the same places. */
static bool repeats(const peal_cuda_work_item *a, const peal_cuda_work_item *b)
{
    return memcmp(a->launch.remote_store, b->launch.remote_store,
                  (size_t)a->launch.remote_store_count * sizeof(a->launch.remote_store[0])) == 0;
}

/* The storage that a step of a run writes, or (`read`) reads around its points. */
static int space_of(const peal_cuda_work_item *item, const peal_cuda_chain *chain, bool read)
{
    int i = 0;

    while (item->touch[i].kind != PEAL_CUDA_TOUCH_REACH) /* a condition's word */
        i++;
    for (int k = 0; k < (read ? chain->read : chain->written); k++)
        i += item->task->access[k].reach_count;
    return item->touch[i].space;
}

static bool touches(const peal_cuda_work_item *item, int space)
{
    for (int i = 0; i < item->touch_count; i++)
        if (item->touch[i].space == space)
            return true;
    return false;
}

/* Whether the work item only copies points of one storage to their images. */
static bool copies_images(const peal_cuda_work_item *item, int space)
{
    const peal_launch *launch = &item->launch;

    if (item->serves >= 0 || launch->list_count == 0 || launch->wait_count > 0 ||
        launch->write_count > 0 || launch->skip || item->touch_count == 0)
        return false;
    for (int i = 0; i < item->touch_count; i++)
        if (item->touch[i].space != space)
            return false;
    return true;
}

/* The one work item of a recorded step that may be a step of a round: beside it there are copies
 * to images of the field that it reads, in front of it, or of the one that it writes, behind it.
 * Windows have no images, so a round needs neither but those behind its last step. -1: there is no
 * such work item. */
static int find_step(const peal_cuda_fused *fused, int step, peal_cuda_deep *deep)
{
    int begin = fused->at_step[step], end = fused->at_step[step + 1], found = -1;

    for (int i = begin; i < end; i++) {
        if (!is_step(&fused->item[i], deep))
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    for (int i = begin; i < end && found >= 0; i++)
        if (i != found &&
            !copies_images(&fused->item[i], space_of(&fused->item[found], &deep->chain, i < found)))
            return -1;
    return found;
}

/* The same, of a step that has one. */
static int kernel_of(const peal_cuda_fused *fused, int step)
{
    peal_cuda_deep deep = {.steps = 0};

    return find_step(fused, step, &deep);
}

/* Whether what first touches the older field behind a run, within the recording, is the task
 * itself, which overwrites it. Copies to its images may come before. */
static bool is_overwritten(const peal_cuda_fused *fused, const run *r)
{
    const peal_cuda_chain *chain = &r->deep->chain;
    const peal_cuda_work_item *last = &fused->item[kernel_of(fused, r->end - 1)];
    int older = space_of(last, chain, true);

    for (int i = fused->at_step[r->end]; i < fused->plain; i++) {
        const peal_cuda_work_item *item = &fused->item[i];
        if (touches(item, older))
            return item->task == last->task && item->launch.box_count == 1 &&
                   item->launch.view[chain->written] == last->launch.view[chain->read] &&
                   item->launch.view[chain->read] == last->launch.view[chain->written] &&
                   !memcmp(item->launch.box[0].lo, last->launch.box[0].lo,
                           sizeof(last->launch.box[0].lo)) &&
                   !memcmp(item->launch.box[0].hi, last->launch.box[0].hi,
                           sizeof(last->launch.box[0].hi));
    }
    return false;
}

/* The first step from `step` on that begins a run, and where that ends; false: there is none. */
static bool find_run(const peal_cuda_fused *fused, int steps, int step, peal_cuda_deep *deep,
                     run *out)
{
    peal_cuda_deep other = {.steps = 0};

    for (int begin = step; begin < steps; begin++) {
        int end = begin + 1, item[3];
        item[1] = find_step(fused, begin, deep);
        if (item[1] < 0)
            continue;
        for (item[0] = -1; end < steps; end++, item[0] = item[1], item[1] = item[2]) {
            item[2] = find_step(fused, end, &other);
            if (item[2] < 0 ||
                !follows(&fused->item[item[1]], &fused->item[item[2]], &deep->chain) ||
                (item[0] >= 0 && !repeats(&fused->item[item[0]], &fused->item[item[2]])))
                break;
        }
        *out = (run){.begin = begin, .end = end};
        if (end - begin > LEAST_STEPS)
            return true;
    }
    return false;
}

/* ---- the section ---- */

static peal_cuda_work_item *append(const peal_cuda_plan *plan, peal_cuda_fused *fused,
                                   const peal_cuda_work_item *from)
{
    peal_cuda_work_item copy = *from; /* the list may move */

    if (fused->count >= fused->room)
        fused->item = peal_arena_grow(plan->arena, fused->item, &fused->room, sizeof(copy));
    fused->item[fused->count] = copy;
    return &fused->item[fused->count++];
}

/* What a block reads around its tile in a round: as much further as its steps are, and the same of
 * what lies beyond a periodic end at the other one. */
static void touch_around(const peal_cuda_plan *plan, peal_cuda_work_item *item,
                         const peal_cuda_deep *deep, const peal_cuda_touch *touch, int space)
{
    int turn[3], most[3];

    for (int k = 0; k < 3; k++)
        most[k] = deep->wraps[k] ? 1 : 0;
    for (turn[2] = -most[2]; turn[2] <= most[2]; turn[2]++)
        for (turn[1] = -most[1]; turn[1] <= most[1]; turn[1]++)
            for (turn[0] = -most[0]; turn[0] <= most[0]; turn[0]++) {
                peal_reach *reach = PEAL_ARENA_NEW(plan->arena, peal_reach);
                *reach = *touch->reach;
                for (int k = 0; k < 3; k++) {
                    int64_t away = (int64_t)turn[k] * deep->wraps[k];
                    if (reach->axis[k].fixed)
                        continue;
                    reach->axis[k].low += (deep->steps - 1) * deep->chain.low[k] + away;
                    reach->axis[k].high += (deep->steps - 1) * deep->chain.high[k] + away;
                }
                if (item->touch_count == PEAL_CUDA_WORK_ITEM_TOUCHES) {
                    item->overflows = true;
                    return;
                }
                item->touch[item->touch_count] = *touch;
                item->touch[item->touch_count].space = space;
                item->touch[item->touch_count++].reach = reach;
            }
}

/* A round touches what its first step does, only more around the tile. Of the field that it writes
 * it reads what no step writes. */
static void touch_round(const peal_cuda_plan *plan, const peal_cuda_work_item *step,
                        const peal_cuda_deep *deep, peal_cuda_work_item *item)
{
    int written = space_of(step, &deep->chain, false);

    item->touch = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_touch, PEAL_CUDA_WORK_ITEM_TOUCHES);
    item->touch_count = 0;
    for (int i = 0; i < step->touch_count; i++) {
        const peal_cuda_touch *touch = &step->touch[i];
        if (touch->kind == PEAL_CUDA_TOUCH_REACH && !touch->write) {
            touch_around(plan, item, deep, touch, touch->space);
            touch_around(plan, item, deep, touch, written);
        } else if (item->touch_count < PEAL_CUDA_WORK_ITEM_TOUCHES) {
            item->touch[item->touch_count++] = *touch;
        } else {
            item->overflows = true;
        }
    }
}

/* Rounds that begin with steps alike have the same footprint, and so the same kind. */
static const peal_cuda_work_item *find_alike(const peal_cuda_fused *fused,
                                             const peal_cuda_work_item *step,
                                             const peal_cuda_deep *deep)
{
    for (int i = fused->plain; i < fused->count; i++)
        if (fused->item[i].deep == deep &&
            !memcmp(fused->item[i].launch.view, step->launch.view, sizeof(step->launch.view)))
            return &fused->item[i];
    return NULL;
}

static void append_round(const peal_cuda_plan *plan, peal_cuda_fused *fused, int step,
                         const peal_cuda_deep *deep)
{
    int kernel = kernel_of(fused, step), last = step + deep->steps - 1;
    const peal_cuda_work_item *from = &fused->item[kernel];
    const peal_cuda_work_item *alike = find_alike(fused, from, deep);
    const peal_cuda_touch *touch = alike ? alike->touch : NULL;
    int touch_count = alike ? alike->touch_count : 0;
    peal_cuda_work_item *item = append(plan, fused, from);
    peal_launch_box *box = &item->launch.box[0];

    item->deep = deep;
    box->blocks = 1;
    for (int k = 0; k < 3; k++) {
        box->extent[k] = deep->extent[k];
        box->count[k] =
            (unsigned)((box->hi[k] - box->lo[k] + deep->extent[k] - 1) / deep->extent[k]);
        box->blocks *= box->count[k];
        box->tile_step[k] = 0;
    }
    box->lead = 0;
    item->blocks = box->blocks;
    item->first_blocks = 0;
    if (alike) {
        item->touch = (peal_cuda_touch *)touch;
        item->touch_count = touch_count;
    } else {
        touch_round(plan, &fused->item[kernel], deep, item);
    }
    for (int i = kernel_of(fused, last) + 1; i < fused->at_step[last + 1]; i++)
        append(plan, fused, &fused->item[i]);
}

static void append_steps(const peal_cuda_plan *plan, peal_cuda_fused *fused, int begin, int end)
{
    for (int s = begin; s < end; s++) {
        fused->deep_at[s] = fused->count - fused->plain;
        for (int i = fused->at_step[s]; i < fused->at_step[s + 1]; i++)
            append(plan, fused, &fused->item[i]);
    }
}

static void append_run(const peal_cuda_plan *plan, peal_cuda_fused *fused, const run *r)
{
    int each = r->deep->steps, rounds = (r->end - r->begin) / each;
    int rest = r->end - r->begin - rounds * each, step = r->begin;

    if (rest == 0 && !r->safe)
        rounds--;
    for (int i = 0; i < rounds; i++, step += each) {
        fused->deep_at[step] = fused->count - fused->plain;
        append_round(plan, fused, step, r->deep);
    }
    append_steps(plan, fused, step, r->end);
}

static void add_section(const peal_cuda_plan *plan, peal_cuda_fused *fused, const run *runs,
                        int count, int steps)
{
    int step = 0;

    fused->deep_at = PEAL_ARENA_ARRAY(plan->arena, int, steps);
    for (int s = 0; s < steps; s++)
        fused->deep_at[s] = -1;
    for (int i = 0; i < count; i++) {
        append_steps(plan, fused, step, runs[i].begin);
        append_run(plan, fused, &runs[i]);
        step = runs[i].end;
    }
    append_steps(plan, fused, step, steps);
    for (int i = fused->at_step[steps]; i < fused->plain; i++)
        append(plan, fused, &fused->item[i]);
    if (fused->count <= PEAL_FUSED_ITEMS)
        return;
    fused->count = fused->plain; /* there is no room: plain steps alone */
    fused->deep_at = NULL;
}

/* Why no step of the recording begins a run: what the last step says that has one task, and no
 * reduction if there is such a step. */
static const char *find_objection(const peal_cuda_plan *plan, const peal_cuda_fused *fused,
                                  int steps)
{
    const peal_cuda_work_item *found = NULL;
    const char *why = NULL;

    for (int s = 0; s < steps; s++) {
        const peal_cuda_work_item *item = NULL;
        int tasks = 0;
        peal_cuda_deep deep = {.steps = 0};
        for (int i = fused->at_step[s]; i < fused->at_step[s + 1]; i++)
            if (fused->item[i].task) {
                item = &fused->item[i];
                tasks++;
            }
        if (tasks != 1 || (found && !found->partials && item->partials))
            continue;
        found = item;
        why = objection(item, &deep);
    }
    if (!found)
        return "no deep rounds: no step is of one task alone";
    return peal_arena_print(plan->arena, "no deep rounds: `%s` (line %d) %s", found->task->name,
                            found->task->source.line,
                            why ? why : "has too few such steps one after the other");
}

static void note_runs(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel, const run *runs,
                      int count)
{
    const peal_cuda_fused *fused = &kernel->rank[0];
    const peal_cuda_deep *deep = runs[0].deep;
    const peal_cuda_work_item *item = &fused->item[kernel_of(fused, runs[0].begin)];

    for (int i = 0; i < count; i++) {
        const peal_cuda_work_item *step = &fused->item[kernel_of(fused, runs[i].begin)];
        int length = runs[i].end - runs[i].begin;
        kernel->saved +=
            peal_cuda_deep_saves(plan, step, runs[i].deep, length) * length / (double)kernel->steps;
    }
    kernel->deep_note = peal_arena_print(
        plan->arena, "deep rounds: a block runs %d steps of `%s` (line %d) on %d x %d x %d points",
        deep->steps, item->task->name, item->task->source.line, deep->extent[0], deep->extent[1],
        deep->extent[2]);
}

void peal_cuda_deep_find(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel)
{
    peal_cuda_fused *fused = &kernel->rank[0];
    const peal_schedule *schedule = plan->rank[0].schedule;
    int steps = (int)kernel->steps, count = 0;
    run runs[RUNS];
    peal_cuda_deep found;

    if (steps == 0 || !plan->options.dispatcher->has_parts ||
        (plan->options.deep && plan->options.deep < LEAST_STEPS))
        return;
    kernel->deep_note = "no deep rounds: other ranks have parts of the domain";
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        if (schedule->rank_dims[k] > 1)
            return;
    int workers =
        plan->device->sm_count - peal_cuda_partition_serve(fused, (unsigned)plan->device->sm_count);
    kernel->deep_note = NULL;
    for (int step = 0; count < RUNS; step = runs[count++].end) {
        memset(&found, 0, sizeof(found));
        run *r = &runs[count];
        if (!find_run(fused, steps, step, &found, r))
            break;
        const peal_cuda_work_item *item = &fused->item[kernel_of(fused, r->begin)];
        int length = r->end - r->begin;
        for (int i = 0; i < count && !r->deep; i++)
            if (runs[i].deep->steps < length &&
                peal_cuda_fused_is_same_shape(item, &fused->item[kernel_of(fused, runs[i].begin)]))
                r->deep = runs[i].deep;
        if (!r->deep)
            r->deep = peal_cuda_deep_choose(plan, item, &found, length, workers > 0 ? workers : 1);
        if (!r->deep) {
            kernel->deep_note = peal_arena_print(
                plan->arena,
                "no deep rounds: of `%s` (line %d) they have no room, or are not predicted to gain",
                item->task->name, item->task->source.line);
            return;
        }
        r->safe = is_overwritten(fused, r);
    }
    if (count == 0) {
        kernel->deep_note = find_objection(plan, fused, steps);
        return;
    }
    add_section(plan, fused, runs, count, steps);
    if (fused->deep_at)
        note_runs(plan, kernel, runs, count);
}

/* ---- printing ---- */

void peal_cuda_deep_print(const peal_cuda_work_item *item, FILE *out)
{
    const peal_cuda_deep *deep = item->deep;

    fprintf(out,
            "    enum : int { axes = %d, rows = %d, deep = %d, read = %d, written = %d };\n"
            "    enum : int { chunks = %d, window_bytes = %lld };\n",
            deep->axes, deep->chain.rows, deep->steps, deep->chain.read, deep->chain.written,
            deep->chunks, (long long)deep->window_bytes);
    static const char *const name[] = {"low", "high", "wraps"};
    for (int i = 0; i < 3; i++) {
        long long value[3];
        for (int k = 0; k < 3; k++)
            value[k] = i == 0 ? deep->chain.low[k] : i == 1 ? deep->chain.high[k] : deep->wraps[k];
        fprintf(out,
                "    static __device__ constexpr int %s(int axis)\n    {\n"
                "        return axis == 0 ? %lld : axis == 1 ? %lld : %lld;\n    }\n",
                name[i], value[0], value[1], value[2]);
    }
}
