/* Failures: the first one is recorded, the abort word is set, waits on the device give up, and
 * emission ends. */
#include "backends/cuda/lower/plan.h"

bool peal_cuda_is_aborted(const peal_cuda_plan *plan)
{
    return atomic_load_explicit(plan->desc.abort_word, memory_order_relaxed) != 0;
}

/* Waits in kernels read this word (in mapped memory), and so do kernels before they write a flag. A
 * stream that rings looks at nothing: its messages must go nowhere before its waits are let go on.
 */
void peal_cuda_stop_device(peal_cuda_plan *plan)
{
    if (plan->options.rings)
        plan->desc.network->silence(plan->desc.network->user);
    for (int r = 0; r < plan->rank_count; r++)
        if (plan->rank[r].control)
            __atomic_store_n(&plan->rank[r].control->abort, 1u, __ATOMIC_RELEASE);
}

bool peal_cuda_fail(peal_cuda_plan *plan, peal_status status)
{
    int none = 0;

    if (!plan->emission.status)
        plan->emission.status = status;
    atomic_compare_exchange_strong(plan->desc.abort_word, &none, (int)status);
    peal_cuda_stop_device(plan);
    return false;
}

bool peal_cuda_report_driver_error(peal_cuda_plan *plan, CUresult result, const peal_cuda_op *op,
                                   const char *what)
{
    char text[160];
    peal_source source = op ? op->source->source : PEAL_CUDA_NOWHERE;

    peal_report(plan->emission.late, PEAL_E_DRIVER_CALL_FAILED, source, NULL, "%s `%s`: %s",
                op ? "at" : "recording", what ? what : "a message", peal_cuda_error(result, text));
    return peal_cuda_fail(plan, PEAL_STATUS_DEVICE);
}
