/* Builds the persistent kernel of a buffer slot: divides its blocks among the ranks, has it
 * compiled, and builds the lists of each rank. */
#include "backends/cuda/fused/dispatchers/dispatcher.h"
#include "backends/cuda/gpu/occupancy.h"

#include <string.h>

static peal_status refuse(peal_cuda_plan *plan, const char *reason)
{
    return peal_report(plan->desc.diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE, PEAL_CUDA_NOWHERE,
                       "--mode graph runs it; --mode auto takes the first mode that can",
                       "mode fused cannot run this: %s", reason);
}

/* What a rank's blocks do in a round, and how many blocks it has work for, with those for work
 * items of one block. */
typedef struct demand {
    uint64_t work;
    unsigned most;
    uint64_t tiles; /* of a work item, in the mean of all tiles: small work items hardly count */
} demand;

/* A block runs tiles with partials one after the other, and waits for memory in each: they count
 * double. */
enum { TILES_WITH_PARTIALS = 2 };

/* Also chooses services, for as many blocks. */
static demand demand_of(peal_cuda_fused *fused)
{
    demand d = {0, 1, 0};

    for (int r = 0; r < fused->count; r++) {
        uint64_t blocks = fused->item[r].blocks;
        d.work += blocks;
        d.most = blocks > d.most ? (unsigned)blocks : d.most;
        d.tiles += blocks * (blocks + 1) * (fused->item[r].partials ? TILES_WITH_PARTIALS : 1);
    }
    d.tiles = d.work > 0 ? d.tiles / d.work : 0;
    unsigned services = 0, more = 1;
    while (more > services) { /* more blocks may have more services */
        services = more;
        more = (unsigned)peal_cuda_partition_serve(fused, d.most + services);
    }
    d.most += services;
    return d;
}

/* Each rank gets two blocks first, or one if there are not enough for two. Each further block goes
 * to the rank that has the fewest for its work. */
static void divide_blocks(peal_cuda_fused_kernel *kernel, const demand *of, int rank_count,
                          unsigned resident)
{
    unsigned least = resident >= 2 * (unsigned)rank_count ? 2 : 1;

    kernel->blocks = 0;
    for (int r = 0; r < rank_count; r++)
        kernel->blocks += kernel->rank[r].blocks = least;
    while (kernel->blocks < resident) {
        int next = -1;
        for (int r = 0; r < rank_count; r++)
            if (kernel->rank[r].blocks < of[r].most &&
                (next < 0 ||
                 kernel->rank[r].blocks * of[next].work < kernel->rank[next].blocks * of[r].work))
                next = r;
        if (next < 0)
            return;
        kernel->rank[next].blocks++;
        kernel->blocks++;
    }
}

/* Where an SM has only a few tiles, several blocks on it slow each other down, since a fence also
 * waits for what other blocks have stored (5-point relaxation on 2 H200: 4.1 us a step with one
 * block against 4.8 with three where an SM has 2 tiles, 9.5 against 6.5 where it has 8). */
enum { LEAST_TILES = 2 };

static int wanted_on_sm(const peal_cuda_plan *plan, const demand *of)
{
    uint64_t tiles = 0, each = LEAST_TILES * (uint64_t)plan->device->sm_count;

    for (int r = 0; r < plan->rank_count; r++)
        tiles += of[r].tiles;
    if (plan->options.blocks > 0)
        return plan->options.blocks;
    /* A block for each rank, however little they have to do. */
    int least = (plan->rank_count + plan->device->sm_count - 1) / plan->device->sm_count;
    int wanted = tiles < 2 * each ? 1 : (int)(tiles / each);
    return wanted > least ? wanted : least;
}

/* How many blocks the compiler leaves an SM registers for: as many as it will hold, which depends
 * on shared memory, too (rounds of 5-point relaxation of 1024^2 floats on an H200, one block an SM:
 * 28 us with registers for three, 20 with as many as are taken). */
static int blocks_to_hold(const peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                          const demand *of)
{
    int wanted = wanted_on_sm(plan, of), fit = PEAL_FUSED_BLOCKS;

    if (kernel->sm)
        fit = kernel->sm->shared_bytes /
              (kernel->stage_bytes + PEAL_CUDA_DISPATCHER_BYTES +
               (kernel->is_wide ? PEAL_CUDA_WIDE_BYTES : 0) +
               (kernel->turns > 1 ? (int)sizeof(peal_launch) : 0) + kernel->sm->shared_block);
    fit = fit < 1 ? 1 : fit < PEAL_FUSED_BLOCKS ? fit : PEAL_FUSED_BLOCKS;
    return wanted < fit ? wanted : fit;
}

/* Which work items are cyclic is compiled in, before it is known how many blocks are resident: it
 * is decided for as many blocks as the compiler leaves registers for. */
static void choose_cyclic(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel,
                          const demand *of)
{
    int wanted = wanted_on_sm(plan, of);
    unsigned on_sm = wanted < PEAL_FUSED_BLOCKS ? (unsigned)wanted : PEAL_FUSED_BLOCKS;

    divide_blocks(kernel, of, plan->rank_count, on_sm * (unsigned)plan->device->sm_count);
    for (int r = 0; r < plan->rank_count; r++)
        peal_cuda_partition_cyclic(&kernel->rank[r], kernel->rank[r].blocks);
}

/* The kernel gets as many blocks as are resident together, and no more than there is work for. */
static peal_status choose_grid(peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel,
                               const demand *of)
{
    int resident = peal_cuda_fused_resident(plan, kernel);

    if (resident < 1)
        return refuse(plan, "its kernel does not fit on the device");
    int wanted = wanted_on_sm(plan, of);
    resident = wanted < resident ? wanted : resident;
    unsigned all = (unsigned)resident * (unsigned)plan->device->sm_count;
    if (all < (unsigned)plan->rank_count)
        return refuse(plan, peal_arena_print(plan->arena,
                                             "%d ranks of a process share a GPU, which has room "
                                             "for %u of its kernel's blocks at a time",
                                             plan->rank_count, all));
    divide_blocks(kernel, of, plan->rank_count, all);
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_fused *fused = &kernel->rank[r];
        fused->grid = fused->dispatcher->workers(fused);
        peal_cuda_partition_serve(fused, fused->blocks);
        if (fused->grid >= UINT16_MAX)
            return refuse(plan, "the device has too many SMs");
    }
    return PEAL_STATUS_OK;
}

static peal_status check_items(peal_cuda_plan *plan, const peal_cuda_fused *fused)
{
    int most = plan->is_short_wanted ? PEAL_FUSED_ITEMS : PEAL_FUSED_WIDE_ITEMS;

    if (fused->count > most)
        return refuse(plan, peal_arena_print(plan->arena, "a period has %d launches, %d fit",
                                             fused->count, most));
    for (int r = 0; r < fused->count; r++)
        if (fused->item[r].overflows)
            return refuse(plan, "a task or message touches more than 256 boxes of memory");
    return PEAL_STATUS_OK;
}

static void drop_sections(peal_cuda_fused *fused)
{
    fused->section_count = 0;
    fused->count = fused->fast_end;
}

static void append(const peal_cuda_plan *plan, peal_cuda_fused *fused,
                   const peal_cuda_work_item *item, int count)
{
    while (fused->room < fused->count + count)
        fused->item = peal_arena_grow(plan->arena, fused->item, &fused->room, sizeof(*fused->item));
    memcpy(fused->item + fused->count, item, (size_t)count * sizeof(*item));
    fused->count += count;
}

/* Puts the fast section between the recorded steps and the sections that were recorded behind them:
 * deep rounds, or the joined steps. */
static void add_fast_section(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel)
{
    peal_cuda_fused *fused = &kernel->rank[0];
    int behind = fused->section_count > 0 ? fused->section[0] : fused->count;
    int first = fused->joined ? fused->joined->first : behind, count = fused->count - behind;
    peal_cuda_work_item *kept =
        PEAL_ARENA_ARRAY(plan->arena, peal_cuda_work_item, fused->count - first + 1);

    memcpy(kept, fused->item + first, (size_t)(fused->count - first) * sizeof(*kept));
    fused->count = fused->plain = first;
    peal_cuda_deep_find(plan, kernel);
    int most = fused->fast_at ? PEAL_FUSED_ITEMS : PEAL_FUSED_WIDE_ITEMS; /* choose_width */
    if (!fused->fast_at && fused->joined) {
        append(plan, fused, kept, behind - first);
        peal_cuda_fused_take_joined(plan, kernel, behind - first);
    }
    fused->fast_end = fused->count;
    if (count > 0 && fused->count + count > most) {
        drop_sections(fused);
        return;
    }
    for (int i = 0; i <= fused->section_count && count > 0; i++)
        fused->section[i] += fused->fast_end - behind;
    append(plan, fused, kept + behind - first, count);
}

static peal_status build_rank(peal_cuda_rank *rank, peal_cuda_fused *fused, peal_fused *parameter)
{
    peal_cuda_block_deps deps;
    peal_cuda_tickets tickets = {.count = 0};

    bool fits = peal_cuda_fused_has_room(fused);
    if (!fits && fused->section_count > 0) { /* too many kinds: the steps alone may do, */
        drop_sections(fused);
        fits = peal_cuda_fused_has_room(fused);
    }
    if (!fits && fused->fast_at) { /* and plain ones */
        peal_cuda_deep_give_up(fused);
        fits = peal_cuda_fused_has_room(fused);
    }
    if (!fits)
        return refuse(rank->plan, peal_arena_print(rank->plan->arena,
                                                   "a period has %d kinds of launches, %d fit",
                                                   fused->kinds, fused->most_kinds));
    if (rank->plan->device->dry) /* who waits for whom does not matter */
        return PEAL_STATUS_OK;
    peal_cuda_block_deps_build(rank, fused, &deps);
    if (fused->dispatcher->list_tickets)
        fused->dispatcher->list_tickets(rank, fused, &deps, &tickets);
    return peal_cuda_fused_upload(rank, fused, &deps, &tickets, parameter);
}

/* Kinds show once work items have shapes. Deep rounds leave no room for what a wide list needs, so
 * there are none if there are too many kinds. */
static void choose_width(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel)
{
    bool is_deep = false;

    kernel->is_wide = false;
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_fused *fused = &kernel->rank[r];
        fused->kind_item = PEAL_ARENA_ARRAY(plan->arena, int, fused->count + 1);
        peal_cuda_fused_find_kinds(fused);
        kernel->is_wide |= fused->kinds > PEAL_FUSED_ITEM_KINDS || fused->count > PEAL_FUSED_ITEMS;
        for (int i = 0; i < fused->count; i++)
            is_deep |= fused->item[i].deep != NULL;
    }
    kernel->is_wide &= !is_deep;
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_fused *fused = &kernel->rank[r];
        fused->most_kinds = kernel->is_wide ? PEAL_FUSED_WIDE_KINDS : PEAL_FUSED_ITEM_KINDS;
        fused->most_items = kernel->is_wide ? PEAL_FUSED_WIDE_ITEMS : PEAL_FUSED_ITEMS;
    }
}

/* Of the functions that work items without a shape are run by. */
static void find_called(const peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                        peal_cuda_fused_calls *out)
{
    for (int r = 0; r < plan->rank_count; r++)
        for (int i = 0; i < kernel->rank[r].count; i++)
            out->numbers = kernel->rank[r].item[i].number >= out->numbers
                               ? kernel->rank[r].item[i].number + 1
                               : out->numbers;
    bool *is_called = PEAL_ARENA_ARRAY(plan->arena, bool, out->numbers + 1);
    for (int r = 0; r < plan->rank_count; r++)
        for (int i = 0; i < kernel->rank[r].count; i++)
            is_called[kernel->rank[r].item[i].number] |= kernel->rank[r].item[i].shape < 0;
    out->is_called = is_called;
}

peal_status peal_cuda_fused_build(peal_cuda_plan *plan, int slot)
{
    peal_cuda_fused_kernel *kernel = &plan->fused[slot];
    demand *of = PEAL_ARENA_ARRAY(plan->arena, demand, plan->rank_count);
    peal_status status = PEAL_STATUS_OK;
    unsigned begin = 0;

    peal_cuda_fused_find_turns(plan, kernel);
    for (int r = 0; r < plan->rank_count && !status; r++) {
        status = check_items(plan, &kernel->rank[r]);
        kernel->rank[r].plain = kernel->rank[r].fast_end = kernel->rank[r].count;
    }
    if (status)
        return status;
    if (kernel->turns == 1)
        add_fast_section(plan, kernel);
    for (int r = 0; r < plan->rank_count; r++)
        of[r] = demand_of(&kernel->rank[r]);
    choose_cyclic(plan, kernel, of);
    peal_cuda_fused_calls calls = {.shapes = peal_cuda_fused_shape(kernel, plan->rank_count,
                                                                   plan->device, plan->arena),
                                   .shape_count = kernel->shapes,
                                   .turns = kernel->turns};
    choose_width(plan, kernel);
    calls.is_wide = kernel->is_wide;
    calls.on_sm = blocks_to_hold(plan, kernel, of); /* the shapes say how much memory there is */
    find_called(plan, kernel, &calls);
    status = peal_cuda_kernels_fused(plan->kernels, slot, &calls, &kernel->function);
    if (!status)
        status = choose_grid(plan, kernel, of);
    for (int r = 0; r < plan->rank_count && !status; r++) {
        kernel->parameter[r].begin = begin;
        kernel->parameter[r].grid = kernel->rank[r].blocks;
        begin += kernel->rank[r].blocks;
        status = build_rank(&plan->rank[r], &kernel->rank[r], &kernel->parameter[r]);
    }
    if (kernel->saved > 0 && !kernel->rank[0].fast_at) {
        kernel->saved = 0;
        kernel->note = "no deep rounds or joined steps: a period would have too many launches, or "
                       "kinds of them";
    }
    return status;
}

void peal_cuda_fused_destroy(peal_cuda_plan *plan)
{
    peal_cuda_reduction_ring_free(plan);
    for (int slot = 0; plan->fused && slot < 2; slot++)
        for (int r = 0; plan->fused[slot].rank && r < plan->rank_count; r++)
            if (plan->fused[slot].rank[r].memory)
                plan->driver->cuMemFree_(plan->fused[slot].rank[r].memory);
}
