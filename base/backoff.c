/* The back-off of waits. */
#include "base/backoff.h"
#include "base/clock.h"

#include <sched.h>

void peal_backoff_wait(peal_backoff *backoff)
{
    if (backoff->spins > 0) {
        backoff->spins--;
        peal_cpu_relax();
    } else if (backoff->yields > 0) {
        backoff->yields--;
        sched_yield();
    } else {
        int64_t growth = backoff->sleep_ns / (backoff->growth > 0 ? backoff->growth : 1);
        peal_clock_sleep(backoff->sleep_ns);
        if (backoff->sleep_ns < backoff->most_ns)
            backoff->sleep_ns = backoff->sleep_ns + growth < backoff->most_ns
                                    ? backoff->sleep_ns + growth
                                    : backoff->most_ns;
    }
}
