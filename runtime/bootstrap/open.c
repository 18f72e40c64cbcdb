/* Which bootstrap a process uses: PMIx where a launcher offers it, else none.
 *
 * Ranks are never guessed from a launcher's other variables: a wrong guess would be silent. */
#include "runtime/bootstrap/bootstrap.h"

#include "peal_config.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void peal_bootstrap_log(const char *format, ...)
{
    const char *level = getenv("PEAL_LOG");
    if (!level || (strcmp(level, "info") && strcmp(level, "debug")))
        return;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "peal: %s\n", text);
}

peal_status peal_bootstrap_open(peal_diagnostics *diagnostics, peal_bootstrap **out)
{
    const char *namespace = getenv("PMIX_NAMESPACE");
    if (!namespace || !*namespace)
        return peal_bootstrap_single(diagnostics, out);
#if PEAL_HAVE_PMIX
    peal_bootstrap *found = NULL;
    peal_status status = peal_bootstrap_pmix(diagnostics, &found);
    if (status != PEAL_STATUS_OK)
        return status;
    if (found) {
        *out = found;
        return PEAL_STATUS_OK;
    }
    peal_bootstrap_log("no PMIx server answers for namespace %s: a job of one process", namespace);
    return peal_bootstrap_single(diagnostics, out);
#else
    return peal_report(diagnostics, PEAL_E310, (peal_source){0},
                       "build peal with libpmix (4.2 or later), or unset PMIX_NAMESPACE to run as "
                       "one process",
                       "a launcher started this process (PMIX_NAMESPACE=%s), but this peal was "
                       "built without libpmix",
                       namespace);
#endif
}
