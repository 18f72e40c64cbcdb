/* Whether this process may open the files that a job needs: libpmix and the compiler's start fail
 * far from the cause, one of them by exit(1), where there are too few. */
#define _GNU_SOURCE
#include "tools/run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SPARE = 8 }; /* of the hint: what is open differs from call to call */

/* How many of `wanted` can be opened now. */
static int count_free(int wanted)
{
    int *open_ones = calloc((size_t)wanted, sizeof(*open_ones)), count = 0;
    if (!open_ones)
        return wanted; /* nobody can tell */
    while (count < wanted) {
        int descriptor = count ? fcntl(open_ones[0], F_DUPFD_CLOEXEC, 0)
                               : open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (descriptor < 0)
            break;
        open_ones[count++] = descriptor;
    }
    for (int i = 0; i < count; i++)
        close(open_ones[i]);
    free(open_ones);
    return count;
}

peal_status descriptors_check(int wanted, peal_diagnostics *diagnostics)
{
    struct rlimit limit;
    char hint[80];
    int found = count_free(wanted);
    if (found == wanted || getrlimit(RLIMIT_NOFILE, &limit))
        return PEAL_STATUS_OK;
    unsigned long long allowed = limit.rlim_cur;
    if (limit.rlim_cur < limit.rlim_max) { /* the soft limit is the process's own to raise */
        rlim_t enough = limit.rlim_cur + (rlim_t)(wanted - found);
        limit.rlim_cur = enough < limit.rlim_max ? enough : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && (found = count_free(wanted)) == wanted)
            return PEAL_STATUS_OK;
        allowed = limit.rlim_cur;
    }
    snprintf(hint, sizeof(hint), "raise the limit: ulimit -n %llu, or more",
             allowed + (unsigned long long)(wanted - found) + SPARE);
    return peal_report(diagnostics, PEAL_E_TOO_FEW_OPEN_FILES, (peal_source){0}, hint,
                       "this process may have %llu files open, of which %d are left: it needs %d",
                       allowed, found, wanted);
}
