/* In place of the executors of sync, stream and graph until they are there: refuses. */
#include "backends/cuda/cuda.h"

peal_status cuda_plan_create(const peal_backend_desc *desc, struct cuda_plan **out)
{
    const peal_source nowhere = {0};
    *out = NULL;
    return peal_report(desc->diagnostics, PEAL_E355, nowhere, "use --backend host",
                       "mode %s does not run on GPUs yet", peal_mode_name(desc->mode));
}

peal_status cuda_plan_start(struct cuda_plan *plan, bool setup, int64_t steps, bool finish)
{
    (void)plan, (void)setup, (void)steps, (void)finish;
    return PEAL_STATUS_INTERNAL;
}

peal_status cuda_plan_wait(struct cuda_plan *plan, peal_backend_result *result)
{
    (void)plan, (void)result;
    return PEAL_STATUS_INTERNAL;
}

int cuda_plan_storage(const struct cuda_plan *plan, int index, int array)
{
    (void)plan, (void)index;
    return array;
}

int64_t cuda_plan_progress(const struct cuda_plan *plan)
{
    (void)plan;
    return 0;
}

void cuda_plan_destroy(struct cuda_plan *plan)
{
    (void)plan;
}
