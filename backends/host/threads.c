/* Threads of a plan: created with it, and parked on a condition between runs.
 *
 * They are bound to cores only if the job's threads fill the cores exactly. Otherwise the system's
 * scheduler does better by itself. */
#define _GNU_SOURCE
#include "backends/host/threads.h"
#include "backends/host/network.h"
#include "base/clock.h"

#include "backends/host/crash.h"
#include "backends/host/placement.h"

#include "backends/host/wait.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum {
    SPIN_OWN_CORE = 4000, /* about 0.1 ms: longer than a message takes */
    SPIN_SHARED_CORE = 20
};

/* Below each stack. A kernel whose stack overflows with large frames would step over a page and
 * write into what lies there: another thread's stack. */
enum { GUARD_BYTES = 1 << 20 };

typedef struct thread_start {
    host_threads *threads;
    int index;
} thread_start;

struct host_threads {
    host_plan *plan;
    host_thread_body body;
    pthread_t *id;
    thread_start *start;
    int count, created;
    pthread_mutex_t lock;
    pthread_cond_t go, done;
    uint64_t generation; /* of runs; under lock */
    int pending;         /* bodies that have not returned; under lock */
    bool quit;
};

int host_allowed_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

int host_spin_count(int threads_here, int threads_of_job, int job_cores)
{
    int allowed = host_allowed_cores();
    bool own = threads_here <= allowed && threads_of_job <= (job_cores > 0 ? job_cores : allowed);
    return own ? SPIN_OWN_CORE : SPIN_SHARED_CORE;
}

/* One body has returned, or its thread has ended in it. */
static void finish_one(host_threads *threads)
{
    pthread_mutex_lock(&threads->lock);
    if (--threads->pending == 0) {
        threads->plan->end = peal_clock_s();
        pthread_cond_signal(&threads->done);
    }
    pthread_mutex_unlock(&threads->lock);
}

/* A kernel has called pthread_exit: the rest of this thread's work is missing. */
static void on_thread_end(void *argument)
{
    host_threads *threads = argument;
    peal_report(threads->plan->late, PEAL_E_KERNEL_ENDED_THREAD, (peal_source){0},
                "kernels return; they don't end their thread",
                "a thread ended in the middle of the run (a kernel called pthread_exit?)");
    host_fail(threads->plan, PEAL_STATUS_PEER_LOST);
    finish_one(threads);
}

/* A signal of raise() goes to the calling thread alone. */
void host_check_raised(host_plan *plan)
{
    int number = host_raised_signal();
    if (number)
        host_fail(plan, number == SIGINT ? PEAL_STATUS_INTERRUPT : PEAL_STATUS_TERMINATED);
}

static void run_body(host_threads *threads, int index)
{
    pthread_cleanup_push(on_thread_end, threads);
    threads->body(threads->plan, index);
    pthread_cleanup_pop(0);
    if (threads->plan->desc.network)
        host_network_send_told(threads->plan);
}

static void serve(host_threads *threads, int index)
{
    uint64_t seen = 0;
    for (;;) {
        pthread_mutex_lock(&threads->lock);
        while (threads->generation == seen && !threads->quit)
            pthread_cond_wait(&threads->go, &threads->lock);
        seen = threads->generation;
        bool quit = threads->quit;
        pthread_mutex_unlock(&threads->lock);
        if (quit)
            return;
        run_body(threads, index);
        host_check_raised(threads->plan);
        finish_one(threads);
    }
}

static void leave_crash_stack(void *before)
{
    host_crash_stack_end(before);
}

static void *run(void *argument)
{
    thread_start *start = argument;
    unsigned char crash_stack[PEAL_CRASH_STACK];
    stack_t before;

    host_crash_stack_begin(crash_stack, &before);
    pthread_cleanup_push(leave_crash_stack, &before); /* kernels may end the thread */
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0,
          0); /* sleeps of a wait are short: the default adds 50 us */
    serve(start->threads, start->index);
    pthread_cleanup_pop(1);
    return NULL;
}

/* Binds thread t of the job to the t-th allowed core, if there are as many cores as threads. With
 * cores left over, other jobs on the machine would be bound to the same first cores. */
static void bind_to_cores(const host_threads *threads, int per_rank)
{
    const peal_machine *machine = threads->plan->rank[0].schedule->machine;
    int first = threads->plan->rank[0].schedule->rank * per_rank;
    int cpu[HOST_MOST_CPUS], cores = 0;

    if (!machine || machine->ranks * per_rank > host_allowed_cores())
        return;
    int count = host_placement_list(cpu, &cores);
    if (machine->ranks * per_rank != count && machine->ranks * per_rank != cores)
        return;
    for (int thread = 0; thread < threads->created && first + thread < count; thread++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu[first + thread], &one);
        pthread_setaffinity_np(threads->id[thread], sizeof(one), &one);
    }
}

peal_status host_threads_create(host_plan *plan, int per_rank, host_thread_body body,
                                host_threads **out)
{
    int count = plan->rank_count * per_rank;
    peal_source nowhere = {0};
    host_threads *threads = calloc(1, sizeof(*threads));

    if (!threads)
        return peal_report(plan->desc.diagnostics, PEAL_E_OUT_OF_MEMORY, nowhere, NULL,
                           "no memory for %d threads", count);
    const peal_machine *machine = plan->rank[0].schedule->machine;
    int rank = plan->rank[0].schedule->rank;
    plan->spin =
        host_spin_count(count, machine ? peal_machine_ranks_here(machine, rank) * per_rank : count,
                        plan->desc.cores);
    threads->plan = plan;
    threads->body = body;
    threads->count = count;
    threads->id = calloc((size_t)count, sizeof(*threads->id));
    threads->start = calloc((size_t)count, sizeof(*threads->start));
    pthread_mutex_init(&threads->lock, NULL);
    pthread_cond_init(&threads->go, NULL);
    pthread_cond_init(&threads->done, NULL);
    if (!threads->id || !threads->start) {
        host_threads_destroy(threads);
        return peal_report(plan->desc.diagnostics, PEAL_E_OUT_OF_MEMORY, nowhere, NULL,
                           "no memory for %d threads", count);
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setguardsize(&attributes, GUARD_BYTES);
    for (int i = 0; i < count; i++) {
        threads->start[i] = (thread_start){threads, i};
        if (pthread_create(&threads->id[i], &attributes, run, &threads->start[i]) != 0) {
            pthread_attr_destroy(&attributes);
            host_threads_destroy(threads);
            return peal_report(plan->desc.diagnostics, PEAL_E_NO_MORE_THREADS, nowhere,
                               "use fewer --threads, or raise the limit (ulimit -u)",
                               "cannot create thread %d of %d", i + 1, count);
        }
        threads->created++;
    }
    pthread_attr_destroy(&attributes);
    bind_to_cores(threads, per_rank);
    *out = threads;
    return PEAL_STATUS_OK;
}

void host_threads_start(host_threads *threads)
{
    pthread_mutex_lock(&threads->lock);
    threads->generation++;
    threads->pending = threads->count;
    pthread_cond_broadcast(&threads->go);
    pthread_mutex_unlock(&threads->lock);
}

void host_threads_wait(host_threads *threads)
{
    pthread_mutex_lock(&threads->lock);
    while (threads->pending > 0)
        pthread_cond_wait(&threads->done, &threads->lock);
    pthread_mutex_unlock(&threads->lock);
}

void host_threads_destroy(host_threads *threads)
{
    if (!threads)
        return;
    pthread_mutex_lock(&threads->lock);
    threads->quit = true;
    pthread_cond_broadcast(&threads->go);
    pthread_mutex_unlock(&threads->lock);
    for (int i = 0; i < threads->created; i++)
        pthread_join(threads->id[i], NULL);
    pthread_cond_destroy(&threads->go);
    pthread_cond_destroy(&threads->done);
    pthread_mutex_destroy(&threads->lock);
    free(threads->id);
    free(threads->start);
    free(threads);
}

peal_status host_start(host_plan *plan)
{
    host_threads_start(plan->threads);
    return PEAL_STATUS_OK;
}

peal_status host_wait_all(host_plan *plan)
{
    host_threads_wait(plan->threads);
    return host_network_settle(plan);
}

void host_destroy(host_plan *plan)
{
    host_threads_destroy(plan->threads);
}
