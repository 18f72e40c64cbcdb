/* What a `set` stores, and what it cannot. */
#include "base/stored.h"

bool peal_type_holds(peal_type type, int64_t value)
{
    return type == PEAL_I32 ? value >= INT32_MIN && value <= INT32_MAX
                            : type != PEAL_U8 || (value >= 0 && value <= UINT8_MAX);
}

const char *peal_type_range(peal_type type)
{
    static const char *const ranges[PEAL_TYPE_COUNT] = {
        [PEAL_I32] = "-2147483648 to 2147483647",
        [PEAL_I64] = "-9223372036854775808 to 9223372036854775807",
        [PEAL_U8] = "0 to 255",
    };
    return ranges[type];
}

peal_status peal_stored_report(peal_diagnostics *diagnostics, const peal_schedule *schedule,
                               const peal_op *op, int64_t step, int64_t value)
{
    const peal_schedule_task *task = &schedule->task[op->task];
    const peal_schedule_array *array = &schedule->array[task->array];

    return peal_report(diagnostics, PEAL_E_SET_OUT_OF_RANGE_IN_RUN,
                       task->value ? task->value->source : op->source,
                       "give the buffer a wider type, or mend what computes the value",
                       "rank %d, step %lld: `%s` is set to %lld, but its type %s holds %s",
                       schedule->rank, (long long)step, array->name, (long long)value,
                       peal_type_name(array->type), peal_type_range(array->type));
}
