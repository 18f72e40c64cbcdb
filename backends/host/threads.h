/* Threads that a plan creates once and parks between its runs. */
#ifndef PEAL_HOST_THREADS_H
#define PEAL_HOST_THREADS_H

#include "backends/host/host.h"

/* Called on thread `index` once a run. */
typedef void (*host_thread_body)(host_plan *plan, int index);

/* Creates `per_rank` threads for each hosted rank; thread i serves rank i / per_rank.
 * PEAL_E_NO_MORE_THREADS: the system gives no more. */
peal_status host_threads_create(host_plan *plan, int per_rank, host_thread_body body,
                                host_threads **out);
/* Lets all bodies run once, and returns at once. */
void host_threads_start(host_threads *threads);
/* Waits until all bodies have returned. */
void host_threads_wait(host_threads *threads);
void host_threads_destroy(host_threads *threads);

/* What executors whose threads do everything do of a run. */
peal_status host_start(host_plan *plan);
peal_status host_wait_all(host_plan *plan);
void host_destroy(host_plan *plan);

/* Cores that this process may use. */
int host_allowed_cores(void);
/* How often a wait polls before it yields, for so many threads of this process and of the job;
 * `job_cores`: that the job may use, 0: as many as this process may. */
int host_spin_count(int threads_here, int threads_of_job, int job_cores);

#endif
