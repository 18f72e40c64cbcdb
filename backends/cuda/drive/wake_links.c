/* Wakes the links between GPUs before steps need them.
 *
 * What leads to another GPU sleeps when nobody has used it for some 50 ms, and the first access
 * then takes 50 to 105 us. It is not one thing: which one an access wakes is up to its address, as
 * if it were each of NVLink's links. Reads of many places wake all of them at once, in 170 us (two
 * H200: bench/results/2026-11-30-gpu-links.txt). Steps would meet one after the other: that of a
 * face, of the next one, of the words of each reduction. So memory of all neighbours is read when a
 * plan is made, last of all. */
#include "backends/cuda/drive/run.h"

#include <string.h>

enum { MOST_PLACES = 1024, LEAST_APART = 256, BLOCKS = 32, MOST_RANGES = PEAL_LAUNCH_ARGUMENTS };

static bool is_reached(const peal_schedule *schedule, int peer)
{
    for (int c = 0; c < schedule->channel_count; c++)
        if (schedule->channel[c].peer_index == peer &&
            schedule->channel[c].transport == PEAL_TRANSPORT_P2P)
            return true;
    return false;
}

static void add_peer(const peal_cuda_rank *rank, int peer, peal_launch *launch)
{
    int64_t bytes = rank->schedule->peer[peer].segment_bytes;
    int64_t apart = LEAST_APART * (bytes / MOST_PLACES / LEAST_APART | 1); /* no power of two */
    int i = launch->list_count++;

    launch->base[i] = (unsigned long long)(uintptr_t)rank->bound->peer_segment[peer];
    launch->argument[i].integer = apart;
    launch->list[i].end = (bytes + apart - 1) / apart;
}

static CUresult read_places(const peal_cuda_rank *rank, peal_launch *launch)
{
    const peal_cuda_plan *plan = rank->plan;
    void *parameter[] = {launch};
    CUresult result =
        plan->driver->cuLaunchKernel_(peal_cuda_kernels_builtin(plan->kernels,
                                                                PEAL_CUDA_BUILTIN_TOUCH),
                                      BLOCKS, 1, 1, 32, 1, 1, 0, rank->lane[0].stream, parameter,
                                      NULL);

    return result ? result : plan->driver->cuStreamSynchronize_(rank->lane[0].stream);
}

CUresult peal_cuda_wake_links(peal_cuda_plan *plan)
{
    CUresult result = CUDA_SUCCESS;

    for (int r = 0; r < plan->rank_count && !result; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        peal_launch launch;
        memset(&launch, 0, sizeof(launch));
        for (int p = 0; p < rank->schedule->peer_count && launch.list_count < MOST_RANGES; p++)
            if (is_reached(rank->schedule, p))
                add_peer(rank, p, &launch);
        if (launch.list_count > 0)
            result = read_places(rank, &launch);
    }
    return result;
}
