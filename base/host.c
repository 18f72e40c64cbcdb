/* See the header. */
#define _GNU_SOURCE
#include "base/host.h"
#include "base/cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool peal_host_identity(char *out, size_t bytes)
{
    char boot[64] = "unknown";
    struct stat network = {0};
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file && peal_is_lack_of_means(errno))
        return false;
    if (file) {
        if (fgets(boot, sizeof(boot), file))
            boot[strcspn(boot, "\n")] = 0;
        fclose(file);
    }
    /* Abstract sockets live in a network namespace. */
    if (stat("/proc/self/ns/net", &network))
        network.st_ino = 0;
    snprintf(out, bytes, "%s/%llu", boot, (unsigned long long)network.st_ino);
    return true;
}
