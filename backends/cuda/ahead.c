/* See the header. */
#include "backends/cuda/ahead.h"

#include "backends/cuda/dry_plan.h"
#include "base/diagnostic.h"

#include <pthread.h>
#include <stdlib.h>

struct peal_cuda_ahead {
    pthread_t thread;
    peal_backend_desc desc; /* with diagnostics of its own, which nobody reads */
    peal_arena *arena;
};

static void *compile(void *user)
{
    peal_cuda_ahead *ahead = user;
    PEAL_ARENA_GUARD(ahead->arena, return NULL);
    peal_cuda_dry_plan_compile(&ahead->desc, ahead->arena);
    return NULL;
}

static void forget(peal_cuda_ahead *ahead)
{
    peal_diagnostics_destroy(ahead->desc.diagnostics);
    peal_arena_destroy(ahead->arena);
    free(ahead);
}

peal_cuda_ahead *peal_cuda_ahead_begin(const peal_backend_desc *desc)
{
    peal_cuda_ahead *ahead = calloc(1, sizeof(*ahead));
    if (!ahead)
        return NULL;
    ahead->desc = *desc;
    ahead->desc.diagnostics = peal_diagnostics_create();
    ahead->desc.saves = NULL;
    ahead->arena = peal_arena_create();
    if (ahead->desc.diagnostics && ahead->arena &&
        !pthread_create(&ahead->thread, NULL, compile, ahead))
        return ahead;
    forget(ahead);
    return NULL;
}

void peal_cuda_ahead_end(peal_cuda_ahead *ahead)
{
    if (!ahead)
        return;
    pthread_join(ahead->thread, NULL);
    forget(ahead);
}
