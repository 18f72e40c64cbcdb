/* Which bootstrap a process uses: that of the launcher that has started it (peal's own, else PMIx),
 * or none.
 *
 * Ranks are never guessed from a launcher's other variables: a wrong guess would be silent. */
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/channel.h"

#include "peal_config.h"

#include <stdlib.h>

static const char *pmix_namespace(void)
{
    const char *namespace = getenv("PMIX_NAMESPACE");
    return namespace && *namespace ? namespace : NULL;
}

bool peal_bootstrap_is_launched(int *process)
{
    int processes, local, locals;
    const char *rank = getenv("PMIX_RANK");
    if (peal_channel_inherited() >= 0 &&
        peal_channel_identity(process, &processes, &local, &locals))
        return true;
    *process = rank && *rank ? atoi(rank) : -1;
    return pmix_namespace() != NULL;
}

peal_status peal_bootstrap_open(int64_t deadline_ns, peal_diagnostics *diagnostics,
                                peal_bootstrap **out)
{
    if (peal_channel_inherited() >= 0)
        return peal_bootstrap_launched(diagnostics, out);
    if (!pmix_namespace())
        return peal_bootstrap_single(diagnostics, out);
#if PEAL_HAVE_PMIX
    return peal_bootstrap_pmix(deadline_ns, diagnostics, out);
#else
    (void)deadline_ns;
    return peal_report(diagnostics, PEAL_E_BOOTSTRAP_FAILED, (peal_source){0},
                       "build peal with libpmix (4.2 or later), or unset PMIX_NAMESPACE to run as "
                       "one process",
                       "a launcher started this process (PMIX_NAMESPACE=%s), but this peal was "
                       "built without libpmix",
                       pmix_namespace());
#endif
}
