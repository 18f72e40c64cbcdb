/* Compiles what the candidates need into the cache before they are made, in threads, while serial
 * computes what they are compared with: one after the other compilers would take most of the time
 * that tuning takes. What goes wrong here is said when the candidate itself is made. */
#include "runtime/memory/available.h"
#include "runtime/select/select.h"
#include "runtime/tune/internal.h"

#include "base/cache.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST_THREADS = 16 };

/* What a compiler may take: the persistent kernel of a small spec takes 200 MB. */
static const int64_t compiler_bytes = INT64_C(512) << 20;

struct tuner_ahead {
    const tuner *t;
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
            peal_plan_compile_ahead(ahead->t->outline, &ahead->t->out->set.item[c]);
    }
    return NULL;
}

/* What is compiled is found again in the cache alone; and constants are read by one thread at a
 * time (dsl/dsl.h). */
static bool is_of_use(const tuner *t)
{
    const peal_plan *plan = t->outline;
    peal_arena *arena = plan->backend->compile && t->out->has_key ? peal_arena_create() : NULL;
    bool found = arena && peal_cache_open(plan->options.cache_folder, arena, NULL);
    peal_arena_destroy(arena);
    for (int a = 0; a < plan->data->array_count; a++)
        found &= !plan->data->arrays[a].is_constant;
    return found;
}

int tuner_ahead_threads(int wanted, int processes, int64_t left_bytes)
{
    int64_t room = left_bytes / 2 / compiler_bytes / processes;
    int most = wanted < MOST_THREADS ? wanted : MOST_THREADS;

    room = room < 1 ? 1 : room;
    return room < most ? (int)room : most;
}

tuner_ahead *tuner_ahead_begin(const tuner *t, int first)
{
    char reason[96];
    int most = peal_plan_threads_of(t->session);
    tuner_ahead *ahead = is_of_use(t) ? calloc(1, sizeof(*ahead)) : NULL;
    if (!ahead)
        return NULL;
    ahead->t = t;
    list_candidates(ahead, first);
    most = tuner_ahead_threads(most < ahead->count ? most : ahead->count,
                               t->session->identity.local_processes,
                               peal_memory_available("", reason, sizeof(reason)));
    while (ahead->threads < most &&
           !pthread_create(&ahead->thread[ahead->threads], NULL, work, ahead))
        ahead->threads++;
    return ahead;
}

void tuner_ahead_end(tuner_ahead *ahead, bool wanted)
{
    if (!ahead)
        return;
    if (!wanted)
        atomic_store(&ahead->next, ahead->count);
    for (int i = 0; i < ahead->threads; i++)
        pthread_join(ahead->thread[i], NULL);
    free(ahead);
}
