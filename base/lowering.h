/* Words that force how a backend drives its device (--lower, `lowering` of a plan's options). */
#ifndef PEAL_BASE_LOWERING_H
#define PEAL_BASE_LOWERING_H

#include "base/diagnostic.h"

#include <peal/plugin/backend.h>

/* Reports each word that is unknown, or whose value is none of its own (PEAL_E_UNKNOWN_LOWERING).
 * words NULL: fine. */
peal_status peal_lowering_check(const char *words, peal_diagnostics *diagnostics);

#endif
