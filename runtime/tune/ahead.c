/* Compiles what the candidates need into the cache before they are made, in threads, while serial
 * computes what they are compared with: one after the other compilers would take most of the time
 * that tuning takes. What goes wrong here is said when the candidate itself is made. */
#include "runtime/bind/binding.h"
#include "runtime/select/select.h"
#include "runtime/tune/internal.h"

#include "base/lowering.h"
#include "scheduler/scheduler.h"

#include <pthread.h>
#include <stdlib.h>

/* Each takes some hundred megabytes. */
enum { MOST_THREADS = 8 };

struct tuner_ahead {
    const tuner *t;
    const peal_plan *plan; /* an outline */
    int candidate[PEAL_MOST_CANDIDATES], count;
    PEAL_ATOMIC(int) next;
    int threads;
    pthread_t thread[MOST_THREADS];
};

/* The candidate's plan as the backend will be asked for it, of this process's ranks. */
static peal_status compile_ranks(const peal_plan *plan, const peal_candidate *candidate,
                                 peal_compilation *compilation, int first, int end,
                                 peal_diagnostics *diagnostics)
{
    peal_status status = PEAL_STATUS_OK;
    peal_backend_rank *rank = calloc((size_t)(end - first) + 1, sizeof(*rank));
    if (!rank)
        return PEAL_STATUS_ENVIRONMENT;
    for (int r = first; r < end && !status; r++)
        status = peal_compilation_schedule(compilation, r, &rank[r - first].schedule);
    const peal_backend_desc desc = {.size = sizeof(desc),
                                    .mode = candidate->mode,
                                    .rank_count = end - first,
                                    .rank = rank,
                                    .workers = plan->machine.workers,
                                    .abort_word = &plan->session->abort_word,
                                    .deadline_ns = peal_plan_deadline_ns(plan),
                                    .allow_outside = plan->options.allow_outside,
                                    .cache_folder = plan->options.cache_folder,
                                    .lowering = candidate->lowering,
                                    .device = plan->session->device,
                                    .diagnostics = diagnostics};
    if (!status && end > first)
        status = plan->backend->compile(&desc);
    free(rank);
    return status;
}

static void compile(const peal_plan *plan, const peal_candidate *candidate)
{
    peal_machine machine = plan->machine;
    peal_compilation *compilation = NULL;
    peal_diagnostics *own = peal_diagnostics_create();
    int first, end;
    machine.tile_points = peal_lowering_tile(candidate->lowering);
    peal_machine_ranks(&machine, plan->session->identity.process, &first, &end);
    if (own && !peal_compilation_create(plan->data, &machine, candidate->mode, own, &compilation)) {
        peal_compilation_limit(compilation, peal_plan_deadline_ns(plan));
        compile_ranks(plan, candidate, compilation, first, end, own);
    }
    peal_compilation_destroy(compilation);
    peal_diagnostics_destroy(own);
}

/* The last ones first: they are of mode fused, each of which has a unit of its own that takes the
 * longest, where those of other modes have one together, which all threads but one would wait for.
 * Processes of a host share a cache: of n processes each begins with every n-th. */
static void list_candidates(tuner_ahead *ahead, int first, int count)
{
    const peal_bootstrap_identity *identity = &ahead->t->session->identity;
    int processes = identity->local_processes;
    for (int turn = 0; turn < processes; turn++)
        for (int at = (identity->local_process + turn) % processes; at < count; at += processes)
            ahead->candidate[ahead->count++] = first + count - 1 - at;
}

static void *work(void *user)
{
    tuner_ahead *ahead = user;
    int next;
    while ((next = atomic_fetch_add(&ahead->next, 1)) < ahead->count &&
           !atomic_load(&ahead->t->session->abort_word)) {
        int c = ahead->candidate[next];
        if (tuner_is_in(ahead->t, c))
            compile(ahead->plan, &ahead->t->out->set.item[c]);
    }
    return NULL;
}

tuner_ahead *tuner_ahead_begin(const tuner *t, int first)
{
    const peal_plan *plan = t->outline;
    int most = peal_plan_threads_of(t->session);
    tuner_ahead *ahead = plan->backend->compile ? calloc(1, sizeof(*ahead)) : NULL;
    if (!ahead)
        return NULL;
    ahead->t = t;
    ahead->plan = plan;
    list_candidates(ahead, first, t->out->set.count - first);
    most = most < MOST_THREADS ? most : MOST_THREADS;
    most = most < ahead->count ? most : ahead->count;
    while (ahead->threads < most &&
           !pthread_create(&ahead->thread[ahead->threads], NULL, work, ahead))
        ahead->threads++;
    return ahead;
}

void tuner_ahead_end(tuner_ahead *ahead)
{
    if (!ahead)
        return;
    for (int i = 0; i < ahead->threads; i++)
        pthread_join(ahead->thread[i], NULL);
    free(ahead);
}
