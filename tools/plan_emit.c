/* `peal plan --emit`: the source that a backend has compiled for the kernels of a spec. */
#include "tools/plan_emit.h"
#include "tools/memory.h"

#include "backends/host/kernels.h"
#include "peal_config.h"
#if PEAL_HAVE_CUDA
#include "backends/cuda/dry_plan.h"
#include "backends/cuda/gpu/occupancy.h"
#include "backends/cuda/jit/kernels.h"
#endif

#include <stdio.h>
#include <stdlib.h>

static peal_status emit_host(const peal_backend_desc *desc)
{
    char *text = host_kernels_emit(desc);
    if (text)
        fputs(text, stdout);
    free(text);
    return peal_diagnostics_status(desc->diagnostics);
}

/* In mode fused the first rank's: launches differ. */
static peal_status emit_cuda(const peal_backend_desc *desc)
{
#if PEAL_HAVE_CUDA
    peal_arena *arena = peal_arena_create();
    const char *text = NULL;
    if (!arena)
        return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                           "no memory");
    COMMAND_ARENA_GUARD(arena);
    peal_status status =
        desc->mode == PEAL_MODE_FUSED
            ? peal_cuda_dry_plan_fused(desc, 0, peal_cuda_default_architecture(), arena, &text)
            : peal_cuda_kernels_source(desc, arena, &text);
    if (status == PEAL_STATUS_OK)
        fputs(text, stdout);
    peal_arena_destroy(arena);
    return status;
#else
    return peal_report(desc->diagnostics, PEAL_E_NOT_IN_THIS_BUILD, (peal_source){0},
                       "build peal where CUDA's headers are",
                       "this peal was built without GPUs: it has no source for them");
#endif
}

peal_status plan_emit(const peal_options *options, const peal_backend_desc *desc)
{
    return options->emit == EMIT_CUDA ? emit_cuda(desc) : emit_host(desc);
}
