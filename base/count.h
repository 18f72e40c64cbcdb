/* Counts that only the run knows: what every backend says of one that is out of range. */
#ifndef PEAL_BASE_COUNT_H
#define PEAL_BASE_COUNT_H

#include "base/diagnostic.h"

#include <peal/plugin/schedule.h>

/* Reports PEAL_E_COUNT_OUT_OF_RANGE of a count that is not in [0, most]: that of a task's box, or,
 * with a channel, of one of its messages. Returns the status. */
peal_status peal_count_report(peal_diagnostics *diagnostics, const peal_schedule *schedule,
                              const peal_op *op, int64_t step, int64_t count, int64_t most);

#endif
