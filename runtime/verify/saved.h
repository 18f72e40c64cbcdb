/* Files of `save` in a verification. */
#ifndef PEAL_RUNTIME_VERIFY_SAVED_H
#define PEAL_RUNTIME_VERIFY_SAVED_H

#include "base/diagnostic.h"
#include "base/redirect.h"
#include "runtime/verify/likeness.h"

/* PEAL_E_VERIFICATION_FAILED of the first file that serial has saved and that differs from the
 * run's; *count: how many were compared: devices are not, nor, on other ranks (likeness;
 * else NULL), what each has its own of or rounds. PEAL_E_FILE_NOT_COMPARABLE: some file
 * cannot be read. */
peal_status peal_saved_compare(peal_redirect *redirect, const peal_likeness *likeness, int *count,
                               peal_diagnostics *diagnostics);

#endif
