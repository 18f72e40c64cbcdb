/* How the persistent kernel is started: by one launch for some rounds; with order=paper by one for
 * each step, whose parts of the work items and of the list of tickets tickets.c has found.
 */
#include "backends/cuda/fused/fused.h"

/* Kernels that are put onto the device at a time, one for each step. */
enum { MOST_LAUNCHES = 64 };

int64_t peal_cuda_fused_most_rounds(const peal_cuda_plan *plan)
{
    int most = 1;

    for (int r = 0; r < plan->rank_count; r++)
        most = plan->fused[0].rank[r].count > most ? plan->fused[0].rank[r].count : most;
    if (plan->options.order != PEAL_CUDA_DISPATCH_PAPER)
        return (INT64_C(1) << 30) / most;
    most = MOST_LAUNCHES / plan->fused[0].rank[0].part_count;
    return most > 1 ? most : 1;
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

static CUresult launch(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel, int64_t rounds)
{
    void *parameter[] = {kernel->parameter};

    for (int r = 0; r < plan->rank_count; r++)
        kernel->parameter[r].rounds = rounds;
    return plan->driver->cuLaunchCooperativeKernel_(kernel->function, kernel->blocks, 1, 1,
                                                    PEAL_FUSED_THREADS, 1, 1,
                                                    (unsigned)kernel->stage_bytes,
                                                    peal_cuda_origin(plan), parameter);
}

/* A round of one rank, by several launches (order=paper). */
static CUresult launch_parts(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel)
{
    const peal_cuda_fused *fused = &kernel->rank[0];
    peal_fused_tickets *own = &kernel->parameter[0].tickets;
    const peal_fused_tickets all = *own;
    CUresult result = CUDA_SUCCESS;

    for (int p = 0; p < fused->part_count && !result; p++) {
        const peal_cuda_ticket_launch *piece = &fused->part[p];
        own->list = all.list + piece->ticket * sizeof(peal_fused_ticket);
        own->first = all.first + (size_t)p * fused->grid * sizeof(unsigned short);
        own->count = piece->count;
        own->item = (unsigned)piece->item;
        result = launch(plan, kernel, 1);
    }
    *own = all;
    return result;
}

CUresult peal_cuda_fused_start(peal_cuda_plan *plan, int slot, int64_t rounds)
{
    const peal_cuda_fused_kernel *kernel = &plan->fused[slot];
    bool parts = plan->options.order == PEAL_CUDA_DISPATCH_PAPER;
    int64_t each = parts ? 1 : rounds;
    CUresult result = CUDA_SUCCESS;

    for (int64_t done = 0; done < rounds && !result; done += each) {
        result = parts ? launch_parts(plan, kernel) : launch(plan, kernel, each);
        /* Should `stop` have ended it before, its blocks begin by storing this. */
        for (int r = 0; r < plan->rank_count; r++)
            kernel->parameter[r].first += (unsigned)each * (unsigned)kernel->rank[r].count;
    }
    return result;
}
