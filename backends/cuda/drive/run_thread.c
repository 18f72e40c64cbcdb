/* The thread of a plan that drives the device. It is made with the plan and waits for its starts,
 * since the driver has much to do when another thread calls it for the first time: entering the
 * context takes 30 to 60 us, the first launch 25 to 30 us more than those behind it (H200). During
 * a start it has the signal mask of who started; between starts it is for no signal but those that
 * a thread causes itself, and SIGPROF. */
#include "backends/cuda/drive/run.h"
#include "base/clock.h"

#include <signal.h>
#include <sys/prctl.h>

enum { MADE, WAITS, RUNS, ENDED, LEAVES };

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

/* All but those that the thread itself causes. */
static void block_signals(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigset_t all;

    sigfillset(&all);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

/* A function of the application has called pthread_exit. */
static void on_end(void *user)
{
    peal_cuda_plan *plan = user;

    peal_report(plan->emission.late, PEAL_E_KERNEL_ENDED_THREAD, PEAL_CUDA_NOWHERE,
                "functions return; they don't end their thread",
                "the thread that drives the device ended in the middle of the run (a function "
                "called pthread_exit?)");
    peal_cuda_fail(plan, PEAL_STATUS_PEER_LOST);
    peal_cuda_rescue_all(plan);
    peal_cuda_interop_leave(plan);
    plan->run->end = peal_clock_s();
    enter(plan->run, ENDED);
}

static void *drive(void *user)
{
    peal_cuda_plan *plan = user;
    peal_cuda_run *run = plan->run;

    plan->driver->cuCtxSetCurrent_(plan->device->context);
    prctl(PR_SET_TIMERSLACK, 1000); /* the thread sleeps for microseconds */
    run->woken = peal_cuda_wake_links(plan, true);
    enter(run, WAITS);
    while (await_other(run, WAITS) == RUNS) {
        /* A function of the application may have entered another one. */
        plan->driver->cuCtxSetCurrent_(plan->device->context);
        pthread_sigmask(SIG_SETMASK, &run->mask, NULL);
        pthread_cleanup_push(on_end, plan);
        peal_cuda_run_start(plan);
        pthread_cleanup_pop(0);
        block_signals(NULL);
        enter(run, WAITS);
    }
    return NULL;
}

peal_status peal_cuda_run_thread_create(peal_cuda_plan *plan, CUresult *woken)
{
    sigset_t before;

    plan->run->state = MADE;
    block_signals(&before);
    int error = pthread_create(&plan->run->thread, NULL, drive, plan);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return peal_report(plan->desc.diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_CUDA_NOWHERE, NULL,
                           "cannot create the thread that drives the device");
    plan->run->has_thread = true;
    await_other(plan->run, MADE);
    *woken = plan->run->woken;
    return PEAL_STATUS_OK;
}

peal_status peal_cuda_run_thread_start(peal_cuda_plan *plan)
{
    if (!plan->run->has_thread || plan->run->state == ENDED)
        return peal_report(plan->desc.diagnostics, PEAL_E_KERNEL_ENDED_THREAD, PEAL_CUDA_NOWHERE,
                           NULL, "there is no thread to drive the device: make the plan anew");
    pthread_sigmask(SIG_SETMASK, NULL, &plan->run->mask);
    enter(plan->run, RUNS);
    return PEAL_STATUS_OK;
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
