/* Joins the lanes of all ranks of the process with the origin, the first lane of the first rank. */
#include "backends/cuda/stream/lanes.h"

bool peal_cuda_join_lanes(peal_cuda_plan *plan, bool fork)
{
    const peal_cuda_driver *driver = plan->driver;
    CUresult result = CUDA_SUCCESS;

    if (fork)
        result = driver->cuEventRecord_(plan->rank[0].lane[0].join, peal_cuda_origin(plan));
    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes && !result; l++) {
            peal_cuda_lane *lane = &plan->rank[r].lane[l];
            if (r == 0 && l == 0)
                continue;
            if (!fork)
                result = driver->cuEventRecord_(lane->join, lane->stream);
            if (!result)
                result =
                    fork ? driver->cuStreamWaitEvent_(lane->stream, plan->rank[0].lane[0].join, 0)
                         : driver->cuStreamWaitEvent_(peal_cuda_origin(plan), lane->join, 0);
        }
    return !result || peal_cuda_report_driver_error(plan, result, NULL, "joining lanes");
}
