/* The thread of a plan that drives the device. It is made with the plan and waits for its starts,
 * since the driver has much to do when another thread calls it for the first time: entering the
 * context takes 30 to 60 us, the first launch 25 to 30 us more than those behind it (H200). */
#include "backends/cuda/drive/run.h"
#include "base/clock.h"

#include <sys/prctl.h>

enum { MADE, WAITS, RUNS, LEAVES };

/* Goes to the next state, and tells who waits for it. */
static void enter(peal_cuda_run *run, int state)
{
    pthread_mutex_lock(&run->lock);
    run->state = state;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

/* Returns the first other state. */
static int await_other(peal_cuda_run *run, int state)
{
    pthread_mutex_lock(&run->lock);
    while (run->state == state)
        pthread_cond_wait(&run->changed, &run->lock);
    int other = run->state;
    pthread_mutex_unlock(&run->lock);
    return other;
}

static void *drive(void *user)
{
    peal_cuda_plan *plan = user;
    peal_cuda_run *run = plan->run;

    plan->driver->cuCtxSetCurrent_(plan->device->context);
    prctl(PR_SET_TIMERSLACK, 1000); /* the thread sleeps for microseconds */
    run->woken = peal_cuda_wake_links(plan);
    enter(run, WAITS);
    while (await_other(run, WAITS) == RUNS) {
        /* A function of the application may have entered another one. */
        plan->driver->cuCtxSetCurrent_(plan->device->context);
        peal_cuda_run_start(plan);
        enter(run, WAITS);
    }
    return NULL;
}

peal_status peal_cuda_run_thread_create(peal_cuda_plan *plan, CUresult *woken)
{
    plan->run->state = MADE;
    if (pthread_create(&plan->run->thread, NULL, drive, plan) != 0)
        return peal_report(plan->desc.diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_CUDA_NOWHERE, NULL,
                           "cannot create the thread that drives the device");
    plan->run->has_thread = true;
    await_other(plan->run, MADE);
    *woken = plan->run->woken;
    return PEAL_STATUS_OK;
}

void peal_cuda_run_thread_start(peal_cuda_plan *plan)
{
    enter(plan->run, RUNS);
}

void peal_cuda_run_thread_await(peal_cuda_plan *plan)
{
    await_other(plan->run, RUNS);
}

void peal_cuda_run_thread_destroy(peal_cuda_plan *plan)
{
    if (!plan->run->has_thread)
        return;
    peal_cuda_run_thread_await(plan);
    enter(plan->run, LEAVES);
    pthread_join(plan->run->thread, NULL);
    plan->run->has_thread = false;
}
