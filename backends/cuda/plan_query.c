/* What can be asked of a plan: where an array is, how its steps repeat, how far it is. */
#include "backends/cuda/drive/run.h"
#include "backends/cuda/executor.h"
#include "backends/cuda/replay/replay.h"

int peal_cuda_plan_storage(const peal_cuda_plan *plan, int index, int array)
{
    return plan->rank[index].final_binding[array];
}

int64_t peal_cuda_plan_repeats(const peal_cuda_plan *plan, int64_t *first)
{
    *first = plan->graphs ? plan->graphs->begin[0].counter[0] : 0;
    return plan->graphs ? plan->graphs->steps : 1;
}

int64_t peal_cuda_plan_replayed(const peal_cuda_plan *plan)
{
    return plan->graphs ? plan->graphs->replayed : 0;
}

int64_t peal_cuda_plan_progress(const peal_cuda_plan *plan)
{
    int64_t done = atomic_load_explicit(&plan->run->steps_done, memory_order_relaxed);

    /* One replay may be all steps of a run: the device counts them meanwhile. */
    if (plan->graphs && plan->rank_count > 0) {
        int64_t counted =
            (int64_t)__atomic_load_n(&plan->rank[0].control->steps_done, __ATOMIC_RELAXED);
        done = counted > done ? counted : done;
    }
    return done;
}
