/* How much memory this process may still take: of the machine, of its control groups, of its
 * limits. */
#ifndef PEAL_RUNTIME_MEMORY_AVAILABLE_H
#define PEAL_RUNTIME_MEMORY_AVAILABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that can be had without pushing out others; INT64_MAX if nothing is known. `reason` gets
 * what the number is ("memory of the machine", "control group /a/b", "address space, ulimit -v").
 * `root` is put before /proc/meminfo, /proc/self/cgroup and /sys/fs/cgroup: "" but in tests. */
int64_t peal_memory_available(const char *root, char *reason, size_t reason_bytes);

/* What `ulimit -v` leaves of the address space; INT64_MAX: it is not limited. */
int64_t peal_address_space_left(void);

enum { PEAL_MEMORY_LIMITS = 12 };

/* A limit that this process shares with all that have one of the same id. */
typedef struct peal_memory_limit {
    uint64_t id;   /* of the machine: 0; of a control group: its own, whatever its path is called */
    int64_t bytes; /* that are left */
    char name[56]; /* "memory of the machine", "control group /a/b" (its end, if that is long) */
} peal_memory_limit;

/* What a process needs of the host's memory, and what is left by each limit that holds it. Plain
 * data, to be compared among the processes of a host before any of them touches a page. */
typedef struct peal_memory_room {
    int64_t need;
    int32_t limit_count;
    peal_memory_limit limit[PEAL_MEMORY_LIMITS]; /* the tightest, if there are more */
} peal_memory_room;

void peal_memory_room_ask(const char *root, int64_t need, peal_memory_room *out);
/* The first limit that the processes under it exceed together: *need of all of them, *have, how
 * many *sharers, its name. False: there is room for all. */
bool peal_memory_room_exceeded(const peal_memory_room *all, int processes, int64_t *need,
                               int64_t *have, int *sharers, const char **name);

#endif
