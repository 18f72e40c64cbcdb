/* Random pauses in mode fused (--lower jitter=NANOSECONDS), by which tests find missing order. */
#ifndef PEAL_DEVICE_JITTER_H
#define PEAL_DEVICE_JITTER_H

#include "peal/fused_launch.h"

/* All threads: each warp pauses differently for each work item, mostly for a short time. */
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
