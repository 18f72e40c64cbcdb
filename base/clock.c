/* The clock: CLOCK_MONOTONIC. */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t peal_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double peal_clock_s(void)
{
    return 1e-9 * (double)peal_clock_ns();
}

int64_t peal_clock_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int64_t peal_clock_process_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

struct timespec peal_clock_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

void peal_clock_sleep(int64_t ns)
{
    const struct timespec duration = peal_clock_timespec(ns);
    nanosleep(&duration, NULL);
}
