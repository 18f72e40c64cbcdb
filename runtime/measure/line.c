/* The floor of every message between cores: how long a cache line takes from one to the other. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/measure/measure.h"
#include "runtime/session/session.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

enum { PING_PONGS = 2000, PARTS = 4 };

typedef struct ping_pong {
    _Alignas(128) _Atomic int64_t ping;
    _Alignas(128) _Atomic int64_t pong;
    cpu_set_t core;
} ping_pong;

/* The n-th core of a set, alone. */
static bool pick(const cpu_set_t *allowed, int n, cpu_set_t *out)
{
    CPU_ZERO(out);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, allowed) && n-- == 0) {
            CPU_SET(cpu, out);
            return true;
        }
    return false;
}

static void *answer(void *argument)
{
    ping_pong *p = argument;
    sched_setaffinity(0, sizeof(p->core), &p->core);
    for (int64_t i = 1; i <= (int64_t)PARTS * PING_PONGS; i++) {
        /* Pairs with the release of play. */
        while (atomic_load_explicit(&p->ping, memory_order_acquire) != i) {
        }
        atomic_store_explicit(&p->pong, i, memory_order_release);
    }
    return NULL;
}

/* The fastest of some parts: in another one a thread may have lost its core. */
static double play(ping_pong *p)
{
    double best = 0;
    for (int part = 0; part < PARTS; part++) {
        int64_t begin = peal_clock_ns();
        for (int64_t i = 1; i <= PING_PONGS; i++) {
            int64_t value = (int64_t)part * PING_PONGS + i;
            atomic_store_explicit(&p->ping, value, memory_order_release);
            /* Pairs with the release of answer. */
            while (atomic_load_explicit(&p->pong, memory_order_acquire) != value) {
            }
        }
        double seconds = (double)(peal_clock_ns() - begin) * 1e-9 / (2.0 * PING_PONGS);
        best = part == 0 || seconds < best ? seconds : best;
    }
    return best;
}

double peal_measure_line(void)
{
    cpu_set_t allowed, here;
    pthread_t thread;
    ping_pong p = {0};
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || !pick(&allowed, 0, &here) ||
        !pick(&allowed, 1, &p.core))
        return 0;
    if (pthread_create(&thread, NULL, answer, &p) != 0)
        return 0;
    sched_setaffinity(0, sizeof(here), &here);
    double seconds = play(&p);
    pthread_join(thread, NULL);
    sched_setaffinity(0, sizeof(allowed), &allowed);
    return seconds;
}
