/* How many cores the processes of a job on this host may use at a time: waits spin only where each
 * thread of the job has one. */
#ifndef PEAL_RUNTIME_SESSION_CORES_H
#define PEAL_RUNTIME_SESSION_CORES_H

#include <stdint.h>

enum { PEAL_CORE_WORDS = 16 };

/* What one process may use. Plain data, gathered from all processes of the job. */
typedef struct peal_core_share {
    uint64_t allowed[PEAL_CORE_WORDS]; /* a bit a core: its affinity */
    uint64_t group; /* the control group with the smallest quota; 0: none has one */
    int64_t quota;  /* whole cores' worth of time that it gives, at least 1 */
} peal_core_share;

/* Of this process. `root` is put before /proc/self/cgroup and /sys/fs/cgroup: "" but in tests. */
void peal_cores_ask(const char *root, peal_core_share *out);
/* The cores that some of the processes may use, or fewer if their control groups give less time. */
int peal_cores_of(const peal_core_share *share, int processes);

#endif
