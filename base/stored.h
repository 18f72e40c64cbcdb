/* What a `set` stores: which values a buffer's type can hold, and what every backend says of one
 * that it cannot. */
#ifndef PEAL_BASE_STORED_H
#define PEAL_BASE_STORED_H

#include "base/diagnostic.h"

#include <peal/plugin/schedule.h>

/* Whether an integer keeps its value in an element of this type. Reals do not ask: they hold every
 * number, rounded to the nearest, beyond the largest as inf. */
bool peal_type_holds(peal_type type, int64_t value);
/* "0 to 255"; NULL for reals. */
const char *peal_type_range(peal_type type);
/* Reports PEAL_E_SET_OUT_OF_RANGE_IN_RUN of the value that the SET of op was about to store.
 * Returns the status. */
peal_status peal_stored_report(peal_diagnostics *diagnostics, const peal_schedule *schedule,
                               const peal_op *op, int64_t step, int64_t value);

#endif
