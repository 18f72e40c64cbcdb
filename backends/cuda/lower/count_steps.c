/* Counts steps on the device, in the rank's step word: in recorded iterations, where the host does
 * not see single steps, and between their replays. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/sink.h"

#include <string.h>

static CUresult count(peal_cuda_rank *rank, int64_t steps)
{
    const peal_cuda_sink *sink = rank->plan->emission.sink;
    peal_launch launch;

    memset(&launch, 0, sizeof(launch));
    launch.control = rank->control_device;
    launch.stop = sink->is_replayed ? rank->stop_word : 0;
    launch.step = rank->words;
    launch.argument[0].integer = steps;
    return peal_cuda_sink_launch(
        rank, &rank->lane[0],
        &(peal_cuda_kernel_launch){.function = peal_cuda_kernels_builtin(rank->plan->kernels,
                                                                         PEAL_CUDA_BUILTIN_STEP),
                                   .blocks = 1,
                                   .threads = {1, 1, 1},
                                   .launch = &launch});
}

bool peal_cuda_count_steps(peal_cuda_rank *rank, int64_t steps)
{
    peal_cuda_lane *first = &rank->lane[0];
    CUresult result = CUDA_SUCCESS;

    if (!peal_cuda_flush_all(rank))
        return false;
    for (int l = 1; l < rank->lanes && !result; l++) {
        result = peal_cuda_sink_record(rank, &rank->lane[l], rank->lane[l].join);
        if (!result)
            result = peal_cuda_sink_wait_event(rank, first, rank->lane[l].join);
    }
    if (!result)
        result = count(rank, steps);
    if (!result && rank->lanes > 1)
        result = peal_cuda_sink_record(rank, first, first->join);
    for (int l = 1; l < rank->lanes && !result; l++)
        result = peal_cuda_sink_wait_event(rank, &rank->lane[l], first->join);
    return !result || peal_cuda_report_driver_error(rank->plan, result, NULL, "counting steps");
}
