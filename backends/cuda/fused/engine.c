/* The engine of mode fused: the recorder, which makes work items of launches, and the persistent
 * kernel that repeats them. */
#include "backends/cuda/lower/engine.h"
#include "backends/cuda/fused/dispatchers/dispatcher.h"

/* All blocks wait for the count of steps, and it cuts deep rounds. */
enum { REPORTS = 1 };

/* ---- the sink: the recorder ---- */

static CUresult record_launch(peal_cuda_rank *rank, peal_cuda_lane *lane,
                              const peal_cuda_kernel_launch *what)
{
    (void)lane;
    peal_cuda_fused_add(rank, what->function, what->blocks, what->launch, what->group);
    return CUDA_SUCCESS;
}

/* What a work item waits for is found from what it reads and writes (footprint.c). */
static CUresult no_event(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event)
{
    (void)rank;
    (void)lane;
    (void)event;
    return CUDA_SUCCESS;
}

/* Copies and flags are in kernels here, and the application's functions are refused. */
static const struct peal_cuda_sink_ops recorder = {.launch = record_launch,
                                                   .record = no_event,
                                                   .wait_event = no_event};

/* ---- the engine ---- */

static bool receives_apart(const peal_cuda_plan *plan)
{
    return plan->options.dispatcher->record_receive != NULL;
}

static bool launches_parts(const peal_cuda_plan *plan)
{
    return plan->options.dispatcher->has_parts;
}

static int sections(const peal_cuda_plan *plan, int slot)
{
    return plan->fused[slot].rank[0].section_count;
}

static CUresult begin(peal_cuda_plan *plan, int slot)
{
    peal_cuda_fused_begin(plan, slot);
    return CUDA_SUCCESS;
}

static CUresult end(peal_cuda_plan *plan, int slot)
{
    (void)plan;
    (void)slot;
    return CUDA_SUCCESS;
}

static peal_status build(peal_cuda_plan *plan, int slot, CUresult *result)
{
    peal_status status = peal_cuda_fused_build(plan, slot);
    bool starts = !status && plan->options.dispatcher->has_parts;

    /* The driver prepares for a kernel when it is first launched: 70 to 190 us (H200). The lists
     * have come (upload.c). */
    *result = starts ? peal_cuda_fused_launch_nothing(plan, slot) : CUDA_SUCCESS;
    return status;
}

const struct peal_cuda_engine peal_cuda_fused_engine = {
    .sink = &recorder,
    .is_one_kernel = true,
    .most_launches = PEAL_FUSED_ITEMS,
    .receives_apart = receives_apart,
    .reports = REPORTS,
    .prepare = peal_cuda_reduction_ring_create,
    .shorten_period = peal_cuda_reduction_ring_free,
    .begin = begin,
    .end = end,
    .build = build,
    .launch = peal_cuda_fused_start,
    .mark_step = peal_cuda_fused_mark_step,
    .begin_section = peal_cuda_fused_begin_section,
    .end_section = peal_cuda_fused_end_section,
    .sections = sections,
    .begin_joined = peal_cuda_fused_begin_joined,
    .mark_joined = peal_cuda_fused_mark_joined,
    .end_joined = peal_cuda_fused_end_joined,
    .launch_parts = peal_cuda_fused_start_parts,
    .launches_parts = launches_parts,
    .choose_from = peal_cuda_fused_choose_from,
    .most_rounds = peal_cuda_fused_most_rounds,
};
