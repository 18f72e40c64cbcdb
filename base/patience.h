/* How long a wait may last: a deadline by a clock that is looked at again and again.
 *
 * Who sees the clock jump between two looks was itself not running (a stopped job, a paused
 * machine, a debugger): then all may have been stopped, and the wait starts anew. Who waits for one
 * that alone was stopped sees no jump. After many jumps only their own time is left out, so that a
 * wait ends also on a machine that hardly runs. */
#ifndef PEAL_BASE_PATIENCE_H
#define PEAL_BASE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

enum { PEAL_PATIENCE_RESTARTS = 16 };

typedef struct peal_patience {
    int64_t limit_ns; /* <= 0: none */
    int64_t since_ns, last_ns;
    int restarts;
} peal_patience;

static inline peal_patience peal_patience_begin(int64_t now_ns, int64_t limit_ns)
{
    return (peal_patience){limit_ns, now_ns, now_ns, 0};
}

/* Longer between two looks is a jump. */
static inline int64_t peal_patience_jump(const peal_patience *patience)
{
    const int64_t second = INT64_C(1000000000);
    int64_t quarter = patience->limit_ns / 4;
    return (quarter < second ? quarter : second) + second / 10;
}

/* One look, at least every 1/16 of the limit: by how much later the wait ends than was planned,
 * since this process was not running; 0: it was. */
static inline int64_t peal_patience_jumped(peal_patience *patience, int64_t now_ns)
{
    int64_t gap = now_ns - patience->last_ns, before = patience->since_ns;
    patience->last_ns = now_ns;
    if (gap > peal_patience_jump(patience)) {
        bool anew = patience->restarts++ < PEAL_PATIENCE_RESTARTS;
        patience->since_ns = anew ? now_ns : patience->since_ns + gap;
    }
    return patience->since_ns - before;
}

/* The same: whether the time is over. */
static inline bool peal_patience_is_over(peal_patience *patience, int64_t now_ns)
{
    peal_patience_jumped(patience, now_ns);
    return patience->limit_ns > 0 && now_ns - patience->since_ns > patience->limit_ns;
}

/* What is left. */
static inline int64_t peal_patience_left(const peal_patience *patience, int64_t now_ns)
{
    return patience->limit_ns - (now_ns - patience->since_ns);
}

/* How long to sleep until the next look: nanoseconds, at least one millisecond. */
static inline int64_t peal_patience_slice(const peal_patience *patience, int64_t now_ns)
{
    const int64_t least = INT64_C(1000000), most = INT64_C(250000000);
    int64_t slice = patience->limit_ns > 0 ? patience->limit_ns / 16 : most;
    int64_t left = patience->limit_ns > 0 ? peal_patience_left(patience, now_ns) + 1 : most;
    slice = slice < left ? slice : left;
    return slice < least ? least : slice > most ? most : slice;
}

/* The same as poll() takes it. */
static inline int peal_patience_slice_ms(const peal_patience *patience, int64_t now_ns)
{
    return (int)((peal_patience_slice(patience, now_ns) + 999999) / 1000000);
}

#endif
