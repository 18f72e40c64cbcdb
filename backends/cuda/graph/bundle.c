/* Finds the launches of bundles, and keeps what their kernel reads.
 *
 * A node of a graph that has one block to run takes the time of its begin and end. Coarse levels of
 * multigrid, scalars and reductions are made of such nodes. What follows another one on its lane is
 * not launched at once but put into the lane's bundle. The bundle ends where anything else is put
 * onto the lane: a larger kernel, a copy, an event that another lane waits for. So whatever a
 * launch of it comes before or after, it still does.
 *
 * Which functions the kernel calls has to be known before it is compiled, so the first steps are
 * looked at before any are captured. */
#include "backends/cuda/graph/bundle.h"

#include "backends/cuda/fused/fused.h"
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A bundle of so many launches ends. Where there is memory for so many, 7 KiB each, no more bundles
 * begin. */
enum { MOST_LAUNCHES = 256, MOST_ITEMS = 1 << 14 };
/* Unless --lower says: so many nodes of a step have to drop out, since another unit takes seconds
 * to be compiled; and a launch has at most so many blocks (bench/EXPERIMENTS.md, "Bundles"). */
enum { LEAST_SAVED = 8, MOST_BLOCKS = 2 };
/* Of the time that a launch takes as a node, a launch in a bundle has so much less: 0.28 to 0.36 in
 * samples/hpgmg on one and two H200 (bench/results/2026-11-30-gpu-bundles.txt). */
static const double gain = 0.3;
/* Of several blocks, which one block runs one after the other, each has few points. */
enum { MOST_POINTS = 256 };
/* Each is a function that takes the compiler a tenth of a second. Further ones are not bundled. */
enum { MOST_SHAPES = 24 };

typedef struct item {
    peal_launch launch;
    peal_bundle_rest rest;
} item;

_Static_assert(sizeof(item) == sizeof(peal_launch) + sizeof(peal_bundle_rest), "an item");

/* Device memory for the items of some bundles. */
typedef struct chunk {
    struct chunk *next;
    CUdeviceptr memory;
    item *item; /* NULL: all are there, and none is added */
    int count, uploaded;
} chunk;

/* What a launch has beside its item, if it is launched alone after all. */
typedef struct alone {
    CUfunction function;
    int threads[3];
    bool has_group;
} alone;

/* What a lane has put off. */
typedef struct bundle {
    item *item;
    alone *alone;
    int count;
} bundle;

struct peal_cuda_bundles {
    bundle (*of)[PEAL_CUDA_LANES]; /* by rank */
    chunk *chunks;                 /* the latest first */
    int items;                     /* that there is memory for */
    bool is_full;                  /* there is none for more */
    bool looks;                    /* nothing is captured */
    bool *is_called;               /* by function number: what the kernel has, */
    int numbers;
    peal_cuda_work_item *shape; /* and its shapes */
    int *used;                  /* by shape: in how many launches that are looked at */
    int shapes;
    /* Of the steps that were looked at: all launches, those in bundles of several, and the bundles.
     */
    int64_t launches, bundled, count;
    CUfunction function; /* NULL: there are no bundles */
};

static bundle *bundle_of(const peal_cuda_rank *rank, const peal_cuda_lane *lane)
{
    return &rank->plan->graphs->bundles->of[rank->index][lane - rank->lane];
}

/* ---- what belongs to a bundle ---- */

static int64_t points_of(const peal_launch *launch)
{
    int64_t points = 0;

    for (int i = 0; i < launch->box_count; i++) {
        const peal_launch_box *box = &launch->box[i];
        int64_t here = 1;
        for (int k = 0; k < PEAL_AXES; k++)
            here *= box->hi[k] - box->lo[k];
        points += here;
    }
    return points;
}

/* A task's launch as a work item of mode fused. */
static void describe(const peal_cuda_rank *rank, const peal_cuda_kernel_launch *what,
                     peal_cuda_work_item *out)
{
    memset(out, 0, sizeof(*out));
    out->launch = *what->launch;
    out->number = peal_cuda_function_number(rank, what->function, what->launch, what->group);
    out->blocks = what->blocks;
    out->each = 1;
    out->shape = -1;
    out->schedule = rank->schedule;
    out->partials = what->group->partials;
    if (what->group->task->mergeable && rank->op[what->launch->op].kernel->shapes)
        out->task = what->group->task;
}

/* Which shape the launch of a task has; -1: none that the kernel has or will have. */
static int shape_of(const peal_cuda_rank *rank, const peal_cuda_kernel_launch *what)
{
    peal_cuda_plan *plan = rank->plan;
    peal_cuda_bundles *bundles = plan->graphs->bundles;
    peal_cuda_work_item described;
    int shape = 0;

    describe(rank, what, &described);
    if (!peal_cuda_fused_can_shape(&described))
        return -1;
    while (shape < bundles->shapes &&
           !peal_cuda_fused_is_same_shape(&bundles->shape[shape], &described))
        shape++;
    if (shape < bundles->shapes)
        return shape;
    if (!bundles->looks || shape == MOST_SHAPES)
        return -1;
    bundles->shape[bundles->shapes++] = described;
    return shape;
}

/* Which function runs a launch in a bundle, if it is small enough that one block takes no longer
 * for it than a node takes to begin and end; -1: none. Of tasks only launches that neither wait nor
 * send: shapes leave that to a dispatcher. */
static int function_of(const peal_cuda_rank *rank, const peal_cuda_kernel_launch *what)
{
    const peal_cuda_group *group = what->group;
    const peal_launch *launch = what->launch;
    int asked = rank->plan->options.bundle, blocks = asked < 0 ? MOST_BLOCKS : asked;

    if (what->blocks > (unsigned)blocks ||
        what->threads[0] * what->threads[1] * what->threads[2] > PEAL_FUSED_THREADS)
        return -1;
    if (group && group->kind != PEAL_CUDA_GROUP_TASK)
        return -1;
    if (!group || group->task->kind != PEAL_TASK_KERNEL)
        return what->blocks > 1 ? -1
                                : peal_cuda_function_number(rank, what->function, launch, group);
    if (group->communication_free || group->partials || launch->wait_count > 0 ||
        launch->write_count > 0 || launch->remote_store_count > 0 || launch->list_count > 0 ||
        (what->blocks > 1 && points_of(launch) > MOST_POINTS * (int64_t)what->blocks))
        return -1;
    int shape = shape_of(rank, what);
    return shape < 0 ? -1 : PEAL_FUSED_SHAPES + shape;
}

static void call(peal_cuda_plan *plan, int number)
{
    peal_cuda_bundles *bundles = plan->graphs->bundles;

    while (number >= bundles->numbers)
        bundles->is_called = peal_arena_grow(plan->arena, bundles->is_called, &bundles->numbers,
                                             sizeof(*bundles->is_called));
    bundles->is_called[number] = true;
}

/* ---- putting off, and launching ---- */

static void warn(peal_cuda_plan *plan, const char *why)
{
    peal_warn(plan->desc.diagnostics, PEAL_E_NO_BUNDLES, PEAL_CUDA_NOWHERE,
              "--lower bundle=0 does not try it", "small launches are not bundled: %s", why);
}

static void put(const peal_cuda_kernel_launch *what, int number, bundle *b)
{
    alone *how = &b->alone[b->count];
    item *added = &b->item[b->count++];

    how->function = what->function;
    memcpy(how->threads, what->threads, sizeof(how->threads));
    how->has_group = what->group != NULL;
    added->launch = *what->launch;
    if (b->count > 1)
        added[-1].rest.next_whole = number < PEAL_FUSED_SHAPES;
    added->rest = (peal_bundle_rest){
        .head = {.function = (unsigned)number, .blocks = what->blocks},
        .partition = {.count = what->blocks, .stride = 1},
    };
}

void peal_cuda_bundles_begin(peal_cuda_plan *plan)
{
    for (int r = 0; plan->graphs->bundles && r < plan->rank_count; r++)
        for (int l = 0; l < PEAL_CUDA_LANES; l++)
            plan->graphs->bundles->of[r][l].count = 0;
}

/* Whether a launch has been put into the lane's bundle. If not, nothing has changed. */
static bool take(peal_cuda_rank *rank, peal_cuda_lane *lane, const peal_cuda_kernel_launch *what)
{
    peal_cuda_bundles *bundles = rank->plan->graphs->bundles;
    int number = function_of(rank, what);
    bundle *b = bundle_of(rank, lane);
    if (number < 0 || b->count == MOST_LAUNCHES ||
        (b->count == 0 && (bundles->is_full || bundles->items >= MOST_ITEMS)) ||
        (!bundles->looks && number < PEAL_FUSED_SHAPES &&
         (number >= bundles->numbers || !bundles->is_called[number])))
        return false;
    if (!b->item) {
        b->item = PEAL_ARENA_ARRAY(rank->plan->arena, item, MOST_LAUNCHES);
        b->alone = PEAL_ARENA_ARRAY(rank->plan->arena, alone, MOST_LAUNCHES);
    }
    if (bundles->looks && number >= PEAL_FUSED_SHAPES)
        bundles->used[number - PEAL_FUSED_SHAPES]++;
    put(what, number, b);
    return true;
}

/* Room for so many items in one piece of device memory. NULL: there is none, and no further bundle
 * begins. */
static chunk *find_room(peal_cuda_plan *plan, int count)
{
    peal_cuda_bundles *bundles = plan->graphs->bundles;
    chunk *latest = bundles->chunks;

    if (latest && latest->count + count <= MOST_LAUNCHES)
        return latest;
    if (bundles->is_full)
        return NULL;
    chunk *made = PEAL_ARENA_NEW(plan->arena, chunk);
    made->item = malloc(MOST_LAUNCHES * sizeof(item));
    if (!made->item || plan->driver->cuMemAlloc_(&made->memory, MOST_LAUNCHES * sizeof(item))) {
        free(made->item);
        bundles->is_full = true;
        warn(plan, "the device has no memory for more of them");
        return NULL;
    }
    made->next = bundles->chunks;
    bundles->chunks = made;
    bundles->items += MOST_LAUNCHES;
    return made;
}

static CUresult launch_together(peal_cuda_rank *rank, peal_cuda_lane *lane, const bundle *b,
                                chunk *room, peal_cuda_bundle_launcher *launch)
{
    peal_cuda_plan *plan = rank->plan;
    static const peal_cuda_group group; /* of ops, of which this kernel has several */
    peal_launch list;

    memset(&list, 0, sizeof(list));
    list.base[0] = room->memory + (size_t)room->count * sizeof(item);
    list.argument[0].integer = b->count;
    list.argument[1].integer = b->item[0].rest.head.function < PEAL_FUSED_SHAPES;
    list.view[0] = peal_cuda_kernels_given_up(plan->kernels);
    memcpy(room->item + room->count, b->item, (size_t)b->count * sizeof(item));
    room->count += b->count;
    return launch(rank, lane,
                  &(peal_cuda_kernel_launch){.function = plan->graphs->bundles->function,
                                             .blocks = 1,
                                             .threads = {PEAL_FUSED_THREADS, 1, 1},
                                             .launch = &list,
                                             .group = &group});
}

static CUresult launch_alone(peal_cuda_rank *rank, peal_cuda_lane *lane, const bundle *b,
                             peal_cuda_bundle_launcher *launch)
{
    static const peal_cuda_group group;
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < b->count && !result; i++) {
        const alone *how = &b->alone[i];
        result = launch(rank, lane,
                        &(peal_cuda_kernel_launch){.function = how->function,
                                                   .blocks = b->item[i].rest.head.blocks,
                                                   .threads = {how->threads[0], how->threads[1],
                                                               how->threads[2]},
                                                   .launch = &b->item[i].launch,
                                                   .group = how->has_group ? &group : NULL});
    }
    return result;
}

static void look_at(peal_cuda_plan *plan, const bundle *b)
{
    peal_cuda_bundles *bundles = plan->graphs->bundles;

    if (b->count < 2) {
        int number = (int)b->item[0].rest.head.function;
        if (number >= PEAL_FUSED_SHAPES)
            bundles->used[number - PEAL_FUSED_SHAPES]--;
        while (bundles->shapes > 0 && bundles->used[bundles->shapes - 1] == 0)
            bundles->shapes--; /* others may have its place */
        return;
    }
    bundles->bundled += b->count;
    bundles->count++;
    for (int i = 0; i < b->count; i++)
        if (b->item[i].rest.head.function < PEAL_FUSED_SHAPES)
            call(plan, (int)b->item[i].rest.head.function);
}

CUresult peal_cuda_bundle_end(peal_cuda_rank *rank, peal_cuda_lane *lane,
                              peal_cuda_bundle_launcher *launch)
{
    peal_cuda_bundles *bundles = rank->plan->graphs->bundles;
    CUresult result = CUDA_SUCCESS;

    if (!bundles || bundle_of(rank, lane)->count == 0)
        return CUDA_SUCCESS;
    bundle *b = bundle_of(rank, lane);
    chunk *room = !bundles->looks && b->count > 1 ? find_room(rank->plan, b->count) : NULL;
    if (bundles->looks)
        look_at(rank->plan, b);
    else
        result = room ? launch_together(rank, lane, b, room, launch)
                      : launch_alone(rank, lane, b, launch);
    b->count = 0;
    return result;
}

CUresult peal_cuda_bundle_or_launch(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                    const peal_cuda_kernel_launch *what,
                                    peal_cuda_bundle_launcher *launch)
{
    peal_cuda_bundles *bundles = rank->plan->graphs->bundles;

    if (!bundles || (!bundles->looks && !bundles->function))
        return launch(rank, lane, what);
    bundles->launches += bundles->looks;
    if (take(rank, lane, what))
        return CUDA_SUCCESS;
    CUresult result = peal_cuda_bundle_end(rank, lane, launch);
    if (result || take(rank, lane, what) /* the one before was full */ || bundles->looks)
        return result;
    return launch(rank, lane, what);
}

bool peal_cuda_bundles_look(const peal_cuda_plan *plan)
{
    return plan->graphs->bundles && plan->graphs->bundles->looks;
}

/* ---- creation ---- */

void peal_cuda_bundles_create(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    /* Ops are timed one by one as nodes, whose times predictions are made of. */
    if (plan->options.bundle == 0 || plan->desc.hooks.end_of_step > 0 ||
        !peal_cuda_fused_compiles(plan->device->major * 10))
        return;
    graphs->bundles = PEAL_ARENA_NEW(plan->arena, peal_cuda_bundles);
    graphs->bundles->of =
        (bundle(*)[PEAL_CUDA_LANES])PEAL_ARENA_ARRAY(plan->arena, bundle,
                                                     plan->rank_count * PEAL_CUDA_LANES);
    graphs->bundles->looks = true;
    graphs->bundles->shape = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_work_item, MOST_SHAPES);
    graphs->bundles->used = PEAL_ARENA_ARRAY(plan->arena, int, MOST_SHAPES);
}

/* Prints the shapes that bundles have; the others are forgotten. */
static const char *print_shapes(peal_cuda_plan *plan)
{
    peal_cuda_bundles *bundles = plan->graphs->bundles;
    peal_cuda_fused rank = {.item = bundles->shape};
    peal_cuda_fused_kernel kernel = {.rank = &rank, .is_never_staged = true};

    for (int i = 0; i < bundles->shapes; i++)
        if (bundles->used[i] > 0)
            bundles->shape[rank.count++] = bundles->shape[i];
    bundles->shapes = rank.count;
    return peal_cuda_fused_shape(&kernel, 1, plan->device, plan->arena);
}

/* What was reported from `from` on. Without bundles each launch is a node of its own. */
static void turn_into_warning(peal_cuda_plan *plan, int from)
{
    peal_diagnostics *list = plan->desc.diagnostics;
    const char *error =
        from < peal_diagnostics_count(list) ? peal_diagnostics_at(list, from)->message : "";
    char why[256];

    snprintf(why, sizeof(why), "their kernel cannot be had (%.*s)", (int)strcspn(error, "\n"),
             error);
    peal_diagnostics_take_back(list, from);
    warn(plan, why);
}

/* A first launch may allocate memory, as plan.c says of the other kernels. */
static peal_status launch_nothing(peal_cuda_plan *plan, CUfunction function)
{
    char text[160];
    peal_launch list;
    void *parameter[] = {&list};

    memset(&list, 0, sizeof(list));
    list.view[0] = peal_cuda_kernels_given_up(plan->kernels);
    CUresult result = plan->driver->cuLaunchKernel_(function, 1, 1, 1, PEAL_FUSED_THREADS, 1, 1, 0,
                                                    peal_cuda_origin(plan), parameter, NULL);
    return result ? peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_REFUSED, PEAL_CUDA_NOWHERE,
                                NULL, "%s", peal_cuda_error(result, text))
                  : PEAL_STATUS_OK;
}

peal_status peal_cuda_bundles_looked(peal_cuda_plan *plan)
{
    peal_cuda_bundles *bundles = plan->graphs->bundles;

    bundles->looks = false;
    int64_t least =
        plan->options.bundle < 0 ? LEAST_SAVED * plan->graphs->period * plan->rank_count : 1;
    if (bundles->bundled - bundles->count < least)
        return PEAL_STATUS_OK;
    const char *shapes = print_shapes(plan);
    const peal_cuda_fused_calls calls = {.shapes = shapes,
                                         .shape_count = bundles->shapes,
                                         .is_called = bundles->is_called,
                                         .numbers = bundles->numbers};
    int from = peal_diagnostics_count(plan->desc.diagnostics);
    if (peal_cuda_kernels_bundle(plan->kernels, &calls, &bundles->function) ||
        launch_nothing(plan, bundles->function)) {
        bundles->function = NULL;
        turn_into_warning(plan, from);
    }
    return PEAL_STATUS_OK;
}

void peal_cuda_bundles_rehearse(const peal_cuda_plan *plan, peal_backend_rehearsal *out)
{
    const peal_cuda_bundles *bundles = plan->graphs ? plan->graphs->bundles : NULL;

    if (!bundles || !bundles->function)
        return;
    out->saved = gain * (double)(bundles->bundled - bundles->count) / (double)bundles->launches;
    snprintf(out->note, sizeof(out->note),
             "bundles: of %lld launches of %lld step%s %lld run in %lld kernels of one block",
             (long long)bundles->launches, (long long)plan->graphs->period,
             plan->graphs->period == 1 ? "" : "s", (long long)bundles->bundled,
             (long long)bundles->count);
}

CUresult peal_cuda_bundles_upload(peal_cuda_plan *plan)
{
    CUresult result = CUDA_SUCCESS;
    bool any = false;

    for (chunk *c = plan->graphs->bundles ? plan->graphs->bundles->chunks : NULL; c && !result;
         c = c->next) {
        if (c->count > c->uploaded)
            result = plan->driver->cuMemcpyHtoD_(c->memory + (size_t)c->uploaded * sizeof(item),
                                                 c->item + c->uploaded,
                                                 (size_t)(c->count - c->uploaded) * sizeof(item));
        any |= c->count > c->uploaded;
        c->uploaded = c->count;
        if (c != plan->graphs->bundles->chunks) { /* others may get more */
            free(c->item);
            c->item = NULL;
        }
    }
    /* A copy returns once it has been staged, and the plan's streams are not ordered behind it. */
    return any && !result ? plan->driver->cuCtxSynchronize_() : result;
}

void peal_cuda_bundles_destroy(peal_cuda_plan *plan)
{
    peal_cuda_bundles *bundles = plan->graphs ? plan->graphs->bundles : NULL;

    for (chunk *c = bundles ? bundles->chunks : NULL; c; c = c->next) {
        free(c->item);
        plan->driver->cuMemFree_(c->memory);
    }
}
