/* What is said of a count that is out of range: who counted what, and for how much there is room.
 */
#include "base/count.h"

peal_status peal_count_report(peal_diagnostics *diagnostics, const peal_schedule *schedule,
                              const peal_op *op, int64_t step, int64_t count, int64_t most)
{
    bool is_message = op->channel >= 0;
    const char *name = is_message ? schedule->channel[op->channel].edge : op->label;
    peal_source source = op->source;

    if (!is_message && schedule->task[op->task].count)
        source = schedule->task[op->task].count->source;
    return peal_report(diagnostics, PEAL_E_COUNT_OUT_OF_RANGE, source,
                       count < 0    ? "mend what computes the count"
                       : is_message ? "make the block larger, or mend what computes the count"
                                    : "raise `max`, or mend what computes the count",
                       "rank %d, step %lld: `%s` has %lld %s, of at most %lld", schedule->rank,
                       (long long)step, name ? name : "a message", (long long)count,
                       is_message ? "elements" : "points", (long long)most);
}
