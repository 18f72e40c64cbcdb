/* The decisions of the tile dispatcher: which worker owns a tile, which tiles a tile waits for, and
 * when a count is reached.
 *
 * Written in the subset that C11 and CUDA C++ share (no libc, atomics through two macros), so that
 * what the host's thread sanitizer checks is what an accelerator runs. A worker is a thread here
 * and a block there. */
#ifndef PEAL_HOST_DISPATCH_H
#define PEAL_HOST_DISPATCH_H

#include <peal/plugin/schedule.h>

#ifndef PEAL_DISPATCH_LOAD_ACQUIRE
#include <stdatomic.h>
typedef _Atomic uint64_t peal_dispatch_word;
#define PEAL_DISPATCH_LOAD_ACQUIRE(word) atomic_load_explicit((word), memory_order_acquire)
#define PEAL_DISPATCH_STORE_RELEASE(word, value)                                                   \
    atomic_store_explicit((word), (value), memory_order_release)
#endif

/* The worker that owns tile `tile` of a task with `tiles` tiles. The scheduler relies on it. */
static inline int peal_dispatch_owner(int64_t tile, int64_t tiles, int workers)
{
    return (int)(tile * workers / tiles);
}

/* The first tile that a worker owns: the least i with i * workers / tiles >= worker. */
static inline int64_t peal_dispatch_first(int worker, int64_t tiles, int workers)
{
    return (worker * tiles + workers - 1) / workers;
}

static inline int64_t peal_dispatch_floor(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b < 0);
}

/* Which tile indexes of A, along one axis, the tile j of B depends on: [*first, *last], empty if
 * *first > *last. */
static inline void peal_dispatch_map(const peal_map_axis *map, const int64_t *j, int64_t *first,
                                     int64_t *last)
{
    int64_t at = map->b_axis < 0 ? 0 : j[map->b_axis] * map->step;
    int64_t divisor = map->divisor > 0 ? map->divisor : 1;
    int64_t low = peal_dispatch_floor(at + map->low, divisor);
    int64_t high = peal_dispatch_floor(at + map->high, divisor);
    *first = low < map->first ? map->first : low;
    *last = high > map->last ? map->last : high;
}

/* The value that a worker's count of finished tiles of an op has when one of its tiles is done: the
 * tile at `position` (from 0, in the order in which the worker runs them), `lag` instances before
 * the latest. per_instance: tiles that the worker has of an instance. passed: instances that the
 * walk has passed. 0: there is nothing to wait for. */
static inline uint64_t peal_dispatch_target(uint64_t passed, int lag, uint64_t per_instance,
                                            uint64_t position)
{
    return passed <= (uint64_t)lag ? 0 : (passed - (uint64_t)lag - 1) * per_instance + position + 1;
}

/* The cyclic >= of flags. */
static inline bool peal_dispatch_reached(uint64_t word, uint64_t value)
{
    return (int64_t)(word - value) >= 0;
}

#endif
