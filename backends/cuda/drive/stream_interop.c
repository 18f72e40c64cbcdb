/* Ties starts to streams of the application: a start follows the work that the application has
 * enqueued, and the end of a start is an event that the application's streams can wait for. */
#include "backends/cuda/drive/run.h"
#include "backends/cuda/stream/lanes.h"

peal_status peal_cuda_interop_create(peal_cuda_plan *plan)
{
    const peal_cuda_driver *driver = plan->driver;
    CUevent *const event[] = {&plan->run->follow_event, &plan->run->begin_event,
                              &plan->run->end_event};
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < 3 && !result; i++)
        result = driver->cuEventCreate_(event[i], CU_EVENT_DISABLE_TIMING);
    return result ? peal_cuda_driver_failed(plan->desc.diagnostics, PEAL_CUDA_NOWHERE, result,
                                            "cuEventCreate", "events of a plan")
                  : PEAL_STATUS_OK;
}

void peal_cuda_interop_destroy(peal_cuda_plan *plan)
{
    const CUevent event[] = {plan->run->follow_event, plan->run->begin_event, plan->run->end_event};

    for (int i = 0; i < 3; i++)
        if (event[i])
            plan->driver->cuEventDestroy_(event[i]);
}

/* Makes all lanes wait for the stream's work so far, and for the event. The lanes are idle between
 * starts, so the calling thread may use them. */
static CUresult follow(peal_cuda_plan *plan, CUstream stream, CUevent event)
{
    const peal_cuda_driver *driver = plan->driver;
    CUstream origin = peal_cuda_origin(plan);
    CUresult result = CUDA_SUCCESS;

    if (stream) {
        result = driver->cuEventRecord_(plan->run->follow_event, stream);
        if (!result)
            result = driver->cuStreamWaitEvent_(origin, plan->run->follow_event, 0);
    }
    if (!result && event)
        result = driver->cuStreamWaitEvent_(origin, event, 0);
    if (!result)
        result = driver->cuEventRecord_(plan->run->begin_event, origin);
    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes && !result; l++)
            if (r > 0 || l > 0)
                result = driver->cuStreamWaitEvent_(plan->rank[r].lane[l].stream,
                                                    plan->run->begin_event, 0);
    return result;
}

peal_status peal_cuda_plan_follow(peal_cuda_plan *plan, void *stream, void *event)
{
    CUcontext previous = peal_cuda_context_enter(plan->device);
    CUresult result = follow(plan, stream, event);

    peal_cuda_context_leave(plan->device, previous);
    plan->run->follows = !result;
    return result ? peal_cuda_interop_failed(plan->desc.diagnostics, plan->device, result)
                  : PEAL_STATUS_OK;
}

bool peal_cuda_interop_has_begun(peal_cuda_plan *plan)
{
    return !plan->run->follows ||
           plan->driver->cuEventQuery_(plan->run->begin_event) != CUDA_ERROR_NOT_READY;
}

static void set_and_wake(peal_cuda_plan *plan, bool *flag)
{
    pthread_mutex_lock(&plan->run->lock);
    *flag = true;
    plan->run->enqueued = true;
    pthread_cond_broadcast(&plan->run->enqueued_changed);
    pthread_mutex_unlock(&plan->run->lock);
}

bool peal_cuda_interop_end(peal_cuda_plan *plan)
{
    if (plan->run->ended)
        return true;
    for (int r = 0; r < plan->rank_count; r++)
        if (!peal_cuda_flush_all(&plan->rank[r]))
            return false;
    if (!peal_cuda_join_lanes(plan, false))
        return false;
    CUresult result = plan->driver->cuEventRecord_(plan->run->end_event, peal_cuda_origin(plan));
    if (result)
        return peal_cuda_report_driver_error(plan, result, NULL, "the end of the run");
    set_and_wake(plan, &plan->run->ended);
    return true;
}

void peal_cuda_interop_leave(peal_cuda_plan *plan)
{
    set_and_wake(plan, &plan->run->enqueued);
}

peal_status peal_cuda_plan_event(peal_cuda_plan *plan, void **event)
{
    pthread_mutex_lock(&plan->run->lock);
    while (plan->run->running && !plan->run->enqueued)
        pthread_cond_wait(&plan->run->enqueued_changed, &plan->run->lock);
    bool ended = plan->run->ended;
    pthread_mutex_unlock(&plan->run->lock);
    if (!ended)
        return plan->emission.status ? plan->emission.status : PEAL_STATUS_DEVICE;
    *event = plan->run->end_event;
    return PEAL_STATUS_OK;
}
