/* Compiles what the candidates need into the cache before they are made, in threads, while serial
 * computes what they are compared with: one after the other compilers would take most of the time
 * that tuning takes. What goes wrong here is said when the candidate itself is made. */
#include "runtime/select/select.h"
#include "runtime/tune/internal.h"

#include <pthread.h>
#include <stdlib.h>

/* Those that compile take some hundred megabytes each; others wait for what they compile. */
enum { MOST_THREADS = 16 };

struct tuner_ahead {
    const tuner *t;
    const peal_plan *plan; /* an outline */
    int candidate[PEAL_MOST_CANDIDATES], count;
    PEAL_ATOMIC(int) next;
    int threads;
    pthread_t thread[MOST_THREADS];
};

/* Those of a mode. Processes of a host share a cache: of n processes each begins with every n-th.
 */
static void list_mode(tuner_ahead *ahead, int first, peal_mode mode)
{
    const peal_bootstrap_identity *identity = &ahead->t->session->identity;
    const peal_candidates *set = &ahead->t->out->set;
    for (int turn = 0; turn < identity->local_processes; turn++)
        for (int c = first; c < set->count; c++)
            if (set->item[c].mode == mode &&
                (c + turn) % identity->local_processes == identity->local_process)
                ahead->candidate[ahead->count++] = c;
}

/* Those of mode fused come first: each has a unit of its own, which takes the longest; those of the
 * other modes have one together, which all threads but one wait for. */
static void list_candidates(tuner_ahead *ahead, int first)
{
    list_mode(ahead, first, PEAL_MODE_FUSED);
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++)
        if (mode != PEAL_MODE_FUSED)
            list_mode(ahead, first, (peal_mode)mode);
}

static void *work(void *user)
{
    tuner_ahead *ahead = user;
    int next;
    while ((next = atomic_fetch_add(&ahead->next, 1)) < ahead->count &&
           !atomic_load(&ahead->t->session->abort_word)) {
        int c = ahead->candidate[next];
        if (tuner_is_in(ahead->t, c))
            peal_plan_compile_ahead(ahead->plan, &ahead->t->out->set.item[c]);
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
    list_candidates(ahead, first);
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
