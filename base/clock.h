/* The clock of deadlines, waits and measurements, and sleeping by it. It is the only one: no other
 * file of the library or the command reads a clock or sleeps (tests/lint/includes.py), and dsl/ and
 * scheduler/ may not include this one. Dates for readers (time()) are not its business. */
#ifndef PEAL_BASE_CLOCK_H
#define PEAL_BASE_CLOCK_H

#include <stdint.h>

struct timespec;

/* Nanoseconds since some moment in the past; it never goes back, and it stands still while the
 * machine is suspended (CLOCK_MONOTONIC). Any thread; about 20 ns. */
int64_t peal_clock_ns(void);
/* The same in seconds. */
double peal_clock_s(void);

/* What the calling thread, and what this process, has used of processors, in nanoseconds. */
int64_t peal_clock_thread_cpu_ns(void);
int64_t peal_clock_process_cpu_ns(void);

/* A moment of this clock, or a duration, as system calls take it. A condition variable understands
 * it after pthread_condattr_setclock(CLOCK_MONOTONIC). */
struct timespec peal_clock_timespec(int64_t ns);

/* Sleeps about so long; a signal handler that runs ends it sooner. */
void peal_clock_sleep(int64_t ns);

#endif
