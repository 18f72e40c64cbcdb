/* The report of a replay that does not end, if no kernel has reported why. */
#include "backends/cuda/replay/replay.h"

bool peal_cuda_report_replay(peal_cuda_plan *plan)
{
    const peal_cuda_graphs *graphs = plan->graphs;
    uint64_t oldest = graphs->finished;
    bool reported = false;

    while (oldest < graphs->launched &&
           plan->driver->cuEventQuery_(graphs->done[oldest % REPLAYS_AHEAD]) == CUDA_SUCCESS)
        oldest++;
    if (oldest == graphs->launched)
        return false;
    int64_t first = graphs->first_step[oldest % REPLAYS_AHEAD];
    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        int64_t done = (int64_t)__atomic_load_n(&rank->control->steps_done, __ATOMIC_ACQUIRE);
        for (int l = 0; l < rank->lanes; l++) {
            const peal_cuda_lane *lane = &rank->lane[l];
            uint64_t count = lane->graph_log_count;
            uint64_t from = count > PEAL_CUDA_LOG_ENTRIES ? count - PEAL_CUDA_LOG_ENTRIES : 0;
            reported |=
                peal_cuda_report_wait(plan, rank, lane->graph_log, from, count, first, done);
        }
    }
    for (int r = 0; r < plan->rank_count && !reported; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        int64_t done = (int64_t)__atomic_load_n(&rank->control->steps_done, __ATOMIC_ACQUIRE);
        peal_report(plan->emission.late, PEAL_E_GPU_STALLED, PEAL_CUDA_NOWHERE,
                    "a kernel that does not end, or a message that does not come; --mode stream "
                    "tells which",
                    "rank %d: no progress for %.1f s in the replay of steps %lld to %lld, of which "
                    "%lld are known to have been done",
                    rank->schedule->rank, (double)plan->desc.deadline_ns * 1e-9, (long long)first,
                    (long long)(graphs->end_step[oldest % REPLAYS_AHEAD] - 1),
                    (long long)(done > first ? done - first : 0));
    }
    return true;
}
