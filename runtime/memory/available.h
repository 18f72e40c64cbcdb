/* How much memory this process may still take: of the machine, of its control groups, of its
 * limits. */
#ifndef PEAL_RUNTIME_MEMORY_AVAILABLE_H
#define PEAL_RUNTIME_MEMORY_AVAILABLE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that can be had without pushing out others; INT64_MAX if nothing is known. `reason` gets
 * what the number is ("memory of the machine", "control group /a/b"). `root` is put before
 * /proc/meminfo, /proc/self/cgroup and /sys/fs/cgroup: "" but in tests. */
int64_t peal_memory_available(const char *root, char *reason, size_t reason_bytes);

#endif
