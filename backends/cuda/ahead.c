/* See the header. */
#include "backends/cuda/ahead.h"

#include "backends/cuda/dry_plan.h"
#include "backends/cuda/gpu/gpu.h"
#include "backends/cuda/options.h"
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
    peal_cuda_dry_plan_compile(&ahead->desc, false, ahead->arena);
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

/* ---- of a plan that is not made yet ---- */

static peal_status no_memory(const peal_backend_desc *desc)
{
    return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory to compile kernels");
}

/* The unit of all modes, and that of communication-free kernels. */
static peal_status compile_kernels(const peal_backend_desc *desc)
{
    const peal_cuda_fused_text fused_text = peal_cuda_options_fused_text(desc->lowering);
    peal_cuda_kernels *kernels = NULL;
    peal_status status = peal_cuda_kernels_create(desc, &fused_text, desc->device, &kernels);

    if (!status)
        status = peal_cuda_kernels_compile(kernels);
    peal_cuda_kernels_destroy(kernels);
    return status;
}

static peal_status compile_all(const peal_backend_desc *desc, peal_arena *arena)
{
    PEAL_ARENA_GUARD(arena, return no_memory(desc));
    peal_status status = PEAL_STATUS_OK;

    /* First what takes the longest: the unit of the persistent kernel, or of bundles. */
    if (desc->mode == PEAL_MODE_FUSED || desc->mode == PEAL_MODE_GRAPH)
        status = peal_cuda_dry_plan_compile(desc, true, arena);
    return status ? status : compile_kernels(desc);
}

peal_status peal_cuda_compile_ahead(const peal_backend_desc *desc)
{
    peal_arena *arena = peal_arena_create();
    peal_status status = arena ? compile_all(desc, arena) : no_memory(desc);

    peal_arena_destroy(arena);
    return status;
}
