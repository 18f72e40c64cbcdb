/* Which host this is. */
#ifndef PEAL_BASE_HOST_H
#define PEAL_BASE_HOST_H

#include <stdbool.h>
#include <stddef.h>

enum { PEAL_HOST_BYTES = 80 };

/* "boot id/network namespace" of this process: equal iff abstract sockets reach from one to the
 * other. False: this process lacks the means to look. */
bool peal_host_identity(char *out, size_t bytes);

#endif
