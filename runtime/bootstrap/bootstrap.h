/* The bootstraps that peal has, and the choice between them. */
#ifndef PEAL_RUNTIME_BOOTSTRAP_BOOTSTRAP_H
#define PEAL_RUNTIME_BOOTSTRAP_BOOTSTRAP_H

#include "base/diagnostic.h"

#include <peal/bootstrap.h>
#include <peal/plugin/bootstrap.h>
#include <stdbool.h>

/* That of the launcher whose words are in the environment: peal's own, or PMIx; one process if
 * there is none. A launcher that does not answer within the deadline (0: whenever) is an error.
 * Ended by
 * (*out)->ops->close(*out). */
peal_status peal_bootstrap_open(int64_t deadline_ns, peal_diagnostics *diagnostics,
                                peal_bootstrap **out);
/* Whether a launcher that peal understands has started this process: its number in the job (-1: the
 * launcher will say), by the environment alone. */
bool peal_bootstrap_is_launched(int *process);

/* One process. */
peal_status peal_bootstrap_single(peal_diagnostics *diagnostics, peal_bootstrap **out);
/* The application's own callbacks (copied). PEAL_E_BOOTSTRAP_FAILED if they make no sense. */
peal_status peal_bootstrap_caller(const peal_bootstrap_callbacks *callbacks,
                                  peal_diagnostics *diagnostics, peal_bootstrap **out);
/* A process of `peal run`. */
peal_status peal_bootstrap_launched(peal_diagnostics *diagnostics, peal_bootstrap **out);
/* A client of the PMIx server that the environment names. PEAL_E_NO_PMIX_SERVER: there is none;
 * PEAL_E_PMIX_SERVER_SILENT: it does not answer in time. Only built with libpmix. */
peal_status peal_bootstrap_pmix(int64_t deadline_ns, peal_diagnostics *diagnostics,
                                peal_bootstrap **out);

/* "peal: ..." to stderr if PEAL_LOG is info or debug. */
void peal_bootstrap_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
