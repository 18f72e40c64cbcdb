/* The end of a round of a WHILE node. It is a unit of its own, since only graphs with such a node
 * need the function that the driver brings for it. */
#ifndef PEAL_DEVICE_ROUND_H
#define PEAL_DEVICE_ROUND_H

/* The driver's own: whether a conditional node goes on. */
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);

/* One thread, after all other work of the round. There is another round unless the loop's end was
 * decided (`stop`), all rounds that were asked for are over (`left` becomes 0), or waits were given
 * up, here or by the host. */
extern "C" __global__ void __launch_bounds__(32)
    peal_round(unsigned long long handle, unsigned long long left, unsigned long long stop,
               unsigned long long given_up, unsigned long long control)
{
    if (threadIdx.x != 0)
        return;
    long long more = *(long long *)left - 1;
    if (*(volatile unsigned *)stop || *(volatile unsigned *)given_up ||
        *(volatile unsigned *)control)
        more = 0;
    *(long long *)left = more > 0 ? more : 0;
    cudaGraphSetConditional(handle, more > 0);
}

#endif
