/* Whether the threads of a process are stopped, and stay so: for tests of what goes on without
 * them. */
#ifndef TESTS_SOFTHCA_STILL_H
#define TESTS_SOFTHCA_STILL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct stillness {
    int threads, stopped;
    int64_t cpu_ns;
    uint64_t switches;
} stillness;

stillness look_at(pid_t pid);
/* Stops all threads of processes; returns when they are, or after 2 s. */
void stop_all(const pid_t *pid, int count, stillness *seen);
/* Prints what two looks at rank i have seen; true: it was stopped at both, and did nothing between.
 */
bool was_still(int i, const stillness *before, const stillness *after);

#endif
