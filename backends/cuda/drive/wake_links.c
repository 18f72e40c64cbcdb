/* Wakes the links between GPUs before steps need them.
 *
 * What leads to another GPU sleeps when nobody has used it for some 50 ms, and the first access
 * then takes 50 to 105 us. It is not one thing: which one an access wakes is up to its address, as
 * if it were each of NVLink's links. Reads of many places wake all of them at once, in 170 us (two
 * H200: bench/results/2026-11-30-gpu-links.txt). Steps would meet one after the other: that of a
 * face, of the next one, of the words of each reduction. So memory of each neighbouring GPU is read
 * when a plan is made, last of all. */
#include "backends/cuda/drive/run.h"

#include <string.h>

enum { MOST_PLACES = 1024, LEAST_APART = 256, BLOCKS = 32, MOST_RANGES = PEAL_LAUNCH_ARGUMENTS };

/* How much of a peer's segment is known to be used, and so is mapped here: its arrays, and the
 * words that this rank stores. Of what lies behind, nothing may be. 0: it is not stored to. */
static int64_t used_bytes_of(const peal_schedule *schedule, int peer)
{
    int64_t used = 0;

    for (int c = 0; c < schedule->channel_count; c++) {
        const peal_channel *channel = &schedule->channel[c];
        if (channel->peer_index != peer || channel->transport != PEAL_TRANSPORT_P2P)
            continue;
        int64_t word = channel->outgoing ? channel->flag_offset : channel->credit_offset;
        int64_t end = word + (int64_t)sizeof(uint64_t),
                arrays = schedule->peer[peer].mailbox_offset;
        used = end > used ? end : used;
        used = arrays > used ? arrays : used;
    }
    return used;
}

/* Adds a peer's memory, if there is none yet of its process: a process has one GPU. */
static void add_peer(const peal_cuda_rank *rank, int peer, int *process, peal_launch *launch)
{
    int64_t bytes = used_bytes_of(rank->schedule, peer), i = launch->list_count;
    int64_t apart = LEAST_APART * (bytes / MOST_PLACES / LEAST_APART + 1);

    for (int j = 0; j < i; j++)
        if (process[j] == rank->schedule->peer[peer].process)
            return;
    if (bytes <= 0 || i == MOST_RANGES)
        return;
    apart += apart / LEAST_APART % 2 ? 0 : LEAST_APART; /* no power of two */
    process[i] = rank->schedule->peer[peer].process;
    launch->base[i] = (unsigned long long)(uintptr_t)rank->bound->peer_segment[peer];
    launch->argument[i].integer = apart;
    launch->list[i].end = (bytes + apart - 1) / apart;
    launch->list_count++;
}

CUresult peal_cuda_wake_links(peal_cuda_plan *plan, bool first_launch)
{
    CUstream stream = plan->rank[0].lane[0].stream;
    int process[MOST_RANGES];
    peal_launch launch;
    void *parameter[] = {&launch};

    memset(&launch, 0, sizeof(launch));
    for (int r = 0; r < plan->rank_count && !plan->rank[r].schedule->machine->shares_device; r++)
        for (int p = 0; p < plan->rank[r].schedule->peer_count; p++)
            add_peer(&plan->rank[r], p, process, &launch);
    if (launch.list_count == 0 && !first_launch)
        return CUDA_SUCCESS;
    CUresult result =
        plan->driver->cuLaunchKernel_(peal_cuda_kernels_builtin(plan->kernels,
                                                                PEAL_CUDA_BUILTIN_TOUCH),
                                      BLOCKS, 1, 1, 32, 1, 1, 0, stream, parameter, NULL);
    return result || launch.list_count == 0 ? result : plan->driver->cuStreamSynchronize_(stream);
}
