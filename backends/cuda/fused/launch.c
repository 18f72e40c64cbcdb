/* Launches the persistent kernel. How many launches some rounds take is up to the dispatcher. */
#include "backends/cuda/fused/dispatchers/dispatcher.h"

unsigned peal_cuda_fused_blocks(const peal_cuda_fused *fused)
{
    return fused->blocks;
}

int64_t peal_cuda_fused_rounds_of_epochs(const peal_cuda_plan *plan, int items)
{
    (void)plan;
    return (INT64_C(1) << 30) / items;
}

int64_t peal_cuda_fused_most_rounds(const peal_cuda_plan *plan)
{
    int most = 1;

    for (int r = 0; r < plan->rank_count; r++)
        most = plan->fused[0].rank[r].count > most ? plan->fused[0].rank[r].count : most;
    return plan->options.dispatcher->most_rounds(plan, most);
}

int peal_cuda_fused_resident(const peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel)
{
    const peal_cuda_driver *driver = plan->driver;
    int resident = 0;

    if (driver->cuFuncSetAttribute_(kernel->function,
                                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    kernel->stage_bytes) ||
        driver->cuOccupancyMaxActiveBlocksPerMultiprocessor_(&resident, kernel->function,
                                                             PEAL_FUSED_THREADS,
                                                             (size_t)kernel->stage_bytes))
        return 0;
    return resident;
}

static CUresult launch(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel)
{
    void *parameter[] = {kernel->parameter};

    return plan->driver->cuLaunchCooperativeKernel_(kernel->function, kernel->blocks, 1, 1,
                                                    PEAL_FUSED_THREADS, 1, 1,
                                                    (unsigned)kernel->stage_bytes,
                                                    peal_cuda_origin(plan), parameter);
}

CUresult peal_cuda_fused_launch(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                                int64_t rounds)
{
    for (int r = 0; r < plan->rank_count; r++) {
        unsigned short items = (unsigned short)kernel->rank[r].count;
        kernel->parameter[r].tickets.rounds = (unsigned)rounds;
        kernel->parameter[r].span =
            (peal_fused_span){.items = (unsigned)rounds * items, .end = items};
    }
    return launch(plan, kernel);
}

void peal_cuda_fused_advance(const peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                             int64_t rounds)
{
    /* Should `stop` have ended the launch early, blocks of the next one begin by storing this. */
    for (int r = 0; r < plan->rank_count; r++)
        kernel->parameter[r].first += (unsigned)rounds * (unsigned)kernel->rank[r].count;
}

CUresult peal_cuda_fused_start_once(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                                    int64_t rounds)
{
    CUresult result = peal_cuda_fused_launch(plan, kernel, rounds);

    peal_cuda_fused_advance(plan, kernel, rounds);
    return result;
}

CUresult peal_cuda_fused_start_steps(peal_cuda_plan *plan, int slot, int64_t from, int64_t steps)
{
    const peal_cuda_fused_kernel *kernel = &plan->fused[slot];
    int64_t each = kernel->steps, end = from + steps;

    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_fused *fused = &kernel->rank[r];
        peal_fused *parameter = &kernel->parameter[r];
        int64_t items =
            end / each * fused->count + fused->at_step[end % each] - fused->at_step[from];
        parameter->span = (peal_fused_span){.items = (unsigned)items,
                                            .first = (unsigned short)fused->at_step[from],
                                            .end = (unsigned short)fused->count};
    }
    CUresult result = launch(plan, kernel);
    for (int r = 0; r < plan->rank_count; r++)
        kernel->parameter[r].first += kernel->parameter[r].span.items;
    return result;
}

CUresult peal_cuda_fused_start(peal_cuda_plan *plan, int slot, int64_t rounds)
{
    return rounds > 0 ? plan->options.dispatcher->start(plan, &plan->fused[slot], rounds)
                      : CUDA_SUCCESS;
}
