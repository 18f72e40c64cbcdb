/* Deep rounds (codegen/device/deep.h): steps of a recording that a block can run one after the
 * other without asking others become a second section of the list of work items, in the place of
 * the plain ones.
 *
 * Such steps are a run: each is one launch of the same task, which reads what the step before wrote
 * and overwrites what that one read, and copies within the rank to images of these fields. A round
 * of an odd number of them is one work item. It reads and writes what its first step does, and
 * leaves the older of the two fields as it was when the round began; where images are copied in
 * front of the task, the newer one's are left, too. So a run ends with plain steps, one or two, as
 * a launch does that ends amid it: then both fields and all images are as plain steps leave them.
 * Where images are filled behind the task, it begins with one, since a task may have written other
 * values there before. */
#include "backends/cuda/fused/deep.h"
#include "backends/cuda/fused/dispatchers/dispatcher.h"

#include <string.h>

enum { LEAST_STEPS = PEAL_CUDA_LEAST_DEEP, RUNS = 64 };
enum { SHAPES_OF_ROUNDS = 4 }; /* different ones: each is a function that is compiled */

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
        return "does more than write each point in PEAL_FOR_2D or PEAL_FOR_3D, branches, or is not "
               "plain";
    if (launch->wait_count > 0 || launch->write_count > 0 || !item->images)
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

const peal_cuda_touch *peal_cuda_deep_touch(const peal_cuda_work_item *item, int access)
{
    const peal_cuda_touch *touch = item->touch;

    while (touch->kind != PEAL_CUDA_TOUCH_REACH) /* a condition's word */
        touch++;
    for (int i = 0; i < access; i++)
        touch += item->task->access[i].reach_count;
    return touch;
}

/* Whether the work item only copies points of one storage to their images. */
static bool copies_images(const peal_cuda_work_item *item, int space)
{
    if (item->task || !item->images || !item->copies || item->touch_count == 0)
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
    for (int i = begin; i < end && found >= 0; i++) {
        int access = i < found ? deep->chain.read : deep->chain.written;
        if (i != found && !copies_images(&fused->item[i],
                                         peal_cuda_deep_touch(&fused->item[found], access)->space))
            return -1;
    }
    return found;
}

int peal_cuda_deep_kernel(const peal_cuda_fused *fused, int step)
{
    peal_cuda_deep deep = {.steps = 0};

    return find_step(fused, step, &deep);
}

/* Whether a step whose windows go beyond the domain's end has images there. */
static bool has_images(const peal_cuda_fused *fused, int step, const peal_cuda_deep *deep)
{
    bool any = !deep->wraps[0] && !deep->wraps[1] && !deep->wraps[2];

    for (int i = fused->at_step[step]; i < fused->at_step[step + 1]; i++)
        any |= fused->item[i].copies;
    return any;
}

/* Whether a step copies what the step before it does, and to and from where the one before that did
 * (has_older: that one is a step of the run, too). */
static bool copies_alike(const peal_cuda_fused *fused, int step, bool has_older)
{
    const int *at = fused->at_step;
    int count = at[step + 1] - at[step];

    if (at[step] - at[step - 1] != count)
        return false;
    for (int i = 0; i < count; i++) {
        const peal_cuda_work_item *item = &fused->item[at[step] + i],
                                  *last = &fused->item[at[step - 1] + i];
        const peal_launch *x = &item->launch, *y = &last->launch;
        if (x->list_count != y->list_count || x->units != y->units ||
            memcmp(x->list, y->list, (size_t)x->list_count * sizeof(x->list[0])) != 0)
            return false;
        const peal_cuda_work_item *older = has_older ? &fused->item[at[step - 2] + i] : item;
        if (memcmp(x->base, older->launch.base, sizeof(x->base)) != 0)
            return false;
    }
    return true;
}

/* How many steps at the begin of a run are plain: until images have been filled by a step of it.
 * The halo may have had other values before, which a task has written there. */
static int steps_ahead(const peal_cuda_fused *fused, int step, int kernel,
                       const peal_cuda_deep *deep)
{
    bool wraps = deep->wraps[0] || deep->wraps[1] || deep->wraps[2];

    return wraps && (fused->item[kernel].copies || kernel + 1 < fused->at_step[step + 1]);
}

/* The first step from `step` on that begins a run, and where that ends; false: there is none. */
static bool find_run(const peal_cuda_fused *fused, int steps, int step, peal_cuda_deep *deep,
                     peal_cuda_deep_run *out)
{
    peal_cuda_deep other = {.steps = 0};

    for (int begin = step; begin < steps; begin++) {
        int end = begin + 1, item[3];
        item[1] = find_step(fused, begin, deep);
        if (item[1] < 0 || !has_images(fused, begin, deep))
            continue;
        int front = item[1] - fused->at_step[begin];
        int ahead = steps_ahead(fused, begin, item[1], deep);
        for (item[0] = -1; end < steps; end++, item[0] = item[1], item[1] = item[2]) {
            item[2] = find_step(fused, end, &other);
            if (item[2] < 0 || item[2] - fused->at_step[end] != front ||
                !copies_alike(fused, end, item[0] >= 0) ||
                !follows(&fused->item[item[1]], &fused->item[item[2]], &deep->chain) ||
                (item[0] >= 0 && !repeats(&fused->item[item[0]], &fused->item[item[2]])))
                break;
        }
        *out = (peal_cuda_deep_run){.begin = begin,
                                    .end = end,
                                    .ahead = ahead,
                                    .behind = front > 0 ? 2 : 1};
        if (end - begin >= LEAST_STEPS + out->ahead + out->behind)
            return true;
    }
    return false;
}

/* ---- all of it ---- */

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

/* Whether rounds of one run are those that another one found. */
static bool is_of_sort(const peal_cuda_deep *a, const peal_cuda_deep *found)
{
    const peal_cuda_chain *x = &a->chain, *y = &found->chain;
    bool same = x->read == y->read && x->written == y->written && x->rows == y->rows &&
                a->axes == found->axes && a->chunks == found->chunks;

    for (int k = 0; k < 3; k++)
        same &=
            x->low[k] == y->low[k] && x->high[k] == y->high[k] && a->wraps[k] == found->wraps[k];
    return same;
}

static void note_runs(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel,
                      const peal_cuda_deep_run *runs, int count)
{
    const peal_cuda_fused *fused = &kernel->rank[0];
    const peal_cuda_deep *deep = runs[0].deep;
    const peal_cuda_work_item *item = &fused->item[peal_cuda_deep_kernel(fused, runs[0].begin)];

    for (int i = 0; i < count; i++) {
        const peal_cuda_work_item *step = &fused->item[peal_cuda_deep_kernel(fused, runs[i].begin)];
        int length = runs[i].end - runs[i].begin;
        kernel->saved +=
            peal_cuda_deep_saves(plan, step, runs[i].deep, length) * length / (double)kernel->steps;
    }
    kernel->note = peal_arena_print(
        plan->arena,
        "deep rounds: a block runs up to %d steps of `%s` (line %d) on %d x %d x %d points",
        deep->steps, item->task->name, item->task->source.line, deep->extent[0], deep->extent[1],
        deep->extent[2]);
}

void peal_cuda_deep_find(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel)
{
    peal_cuda_fused *fused = &kernel->rank[0];
    const peal_schedule *schedule = plan->rank[0].schedule;
    int steps = (int)kernel->steps, count = 0;
    peal_cuda_deep_run runs[RUNS];
    peal_cuda_deep found;

    kernel->saved = 0;
    kernel->note = NULL;
    if (steps == 0 || !plan->options.dispatcher->has_parts ||
        (plan->options.deep && plan->options.deep < LEAST_STEPS))
        return;
    kernel->note = "no deep rounds: other ranks have parts of the domain";
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        if (schedule->rank_dims[k] > 1)
            return;
    int workers =
        plan->device->sm_count - peal_cuda_partition_serve(fused, (unsigned)plan->device->sm_count);
    kernel->note = NULL;
    int different = 0;
    for (int step = 0; count < RUNS; step = runs[count].end, count += runs[count].deep != NULL) {
        peal_cuda_deep_run *r = &runs[count];
        memset(&found, 0, sizeof(found));
        if (!find_run(fused, steps, step, &found, r))
            break;
        const peal_cuda_work_item *item = &fused->item[peal_cuda_deep_kernel(fused, r->begin)];
        int length = r->end - r->begin - r->ahead - r->behind;
        for (int i = 0; i < count && !r->deep; i++)
            if (is_of_sort(runs[i].deep, &found) &&
                peal_cuda_fused_is_same_shape(
                    item, &fused->item[peal_cuda_deep_kernel(fused, runs[i].begin)]))
                r->deep = runs[i].deep;
        if (!r->deep && different < SHAPES_OF_ROUNDS) {
            r->deep = peal_cuda_deep_choose(plan, item, &found, length, workers > 0 ? workers : 1);
            different += r->deep != NULL;
        }
        if (!r->deep && !kernel->note)
            kernel->note = peal_arena_print(
                plan->arena,
                "no deep rounds: of `%s` (line %d) they have no room, or are not predicted to gain",
                item->task->name, item->task->source.line);
    }
    if (count == 0 && !kernel->note)
        kernel->note = find_objection(plan, fused, steps);
    if (count == 0)
        return;
    peal_cuda_deep_add_section(plan, fused, runs, count, steps);
    if (fused->fast_at)
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
