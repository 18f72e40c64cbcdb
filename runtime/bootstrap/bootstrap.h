/* The bootstraps that peal has, and the choice between them. */
#ifndef PEAL_RUNTIME_BOOTSTRAP_BOOTSTRAP_H
#define PEAL_RUNTIME_BOOTSTRAP_BOOTSTRAP_H

#include "base/diagnostic.h"

#include <peal/bootstrap.h>
#include <peal/plugin/bootstrap.h>

/* PMIx if a launcher's namespace is in the environment and its server answers, else one process.
 * Ended by (*out)->ops->close(*out). */
peal_status peal_bootstrap_open(peal_diagnostics *diagnostics, peal_bootstrap **out);

/* One process. */
peal_status peal_bootstrap_single(peal_diagnostics *diagnostics, peal_bootstrap **out);
/* The application's own callbacks (copied). E310 if they make no sense. */
peal_status peal_bootstrap_caller(const peal_bootstrap_callbacks *callbacks,
                                  peal_diagnostics *diagnostics, peal_bootstrap **out);
/* A client of the PMIx server that the environment names. `*out` is NULL on PEAL_STATUS_OK if no
 * server answers: then the job has one process. Only built with libpmix. */
peal_status peal_bootstrap_pmix(peal_diagnostics *diagnostics, peal_bootstrap **out);

/* "peal: ..." to stderr if PEAL_LOG is info or debug. */
void peal_bootstrap_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
