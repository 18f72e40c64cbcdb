/* Fetching the cache lines of a message before they are touched one by one.
 *
 * A small message lies in lines that the other core holds. Touched in order, only as many are on
 * their way at a time as a core's window of loads and stores spans, about seven lines of packed
 * doubles; asked for at once, all are. Large messages are left to the hardware. */
#ifndef PEAL_BASE_PREFETCH_H
#define PEAL_BASE_PREFETCH_H

#include <stdint.h>

enum { PEAL_PREFETCH_LINE = 64, PEAL_PREFETCH_MOST = 8192 };

/* Lines that are about to be written: for ownership. */
static inline void peal_prefetch_write(const unsigned char *at, int64_t bytes)
{
    if (bytes > PEAL_PREFETCH_MOST)
        return;
    for (int64_t i = 0; i < bytes; i += PEAL_PREFETCH_LINE) {
#if defined(__x86_64__)
        __asm__ volatile("prefetchw (%0)" : : "r"(at + i)); /* gcc has it only with -mprfchw */
#else
        __builtin_prefetch(at + i, 1, 3);
#endif
    }
}

/* Lines that are about to be read. */
static inline void peal_prefetch_read(const unsigned char *at, int64_t bytes)
{
    if (bytes > PEAL_PREFETCH_MOST)
        return;
    for (int64_t i = 0; i < bytes; i += PEAL_PREFETCH_LINE)
        __builtin_prefetch(at + i, 0, 3);
}

#endif
