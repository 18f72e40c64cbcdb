/* Random pauses in mode fused, for tests (peal_backend_hooks.jitter_ns): whatever is not ordered by
 * the dispatcher then shows in the results. Without the hook nothing of it is compiled. */
#ifndef PEAL_DEVICE_JITTER_H
#define PEAL_DEVICE_JITTER_H

#include "peal/fused_launch.h"

/* All threads: most pauses are short, and each warp has another one for each work item. */
static __device__ __forceinline__ void peal_fused_pause_(unsigned epoch)
{
#if PEAL_FUSED_JITTER > 0
    unsigned number = (unsigned)peal_clock_() + epoch * 2654435761u +
                      (blockIdx.x * PEAL_FUSED_THREADS + peal_thread_()) / 32 * 40503u;

    number ^= number >> 15;
    number *= 2246822519u;
    number ^= number >> 13;
    __nanosleep(number / 16 % (number % 16 == 0 ? PEAL_FUSED_JITTER : PEAL_FUSED_JITTER / 64 + 1));
    __syncwarp();
#else
    (void)epoch;
#endif
}

#endif
