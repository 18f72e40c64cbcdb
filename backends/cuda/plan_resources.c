/* Compiles all units of a plan to learn what its kernels take of a GPU. */
#include "backends/cuda/plan_resources.h"

#include "backends/cuda/dry_plan.h"
#include "backends/cuda/fused/fused.h"
#include "backends/cuda/options.h"
#include "base/cuda_driver.h"

#include <string.h>

/* The unit of mode fused with the shapes that the rank's launches have, or without shapes where
 * mode fused cannot run the rank. */
static peal_status fused_of(const peal_cuda_resource_list *list, int index, const char **out)
{
    peal_backend_desc desc = list->source->desc;
    peal_diagnostics *own = peal_diagnostics_create(), *given = desc.diagnostics;
    bool refused = false;

    if (!own)
        return peal_report(given, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL, "no memory");
    desc.diagnostics = own;
    peal_status status =
        peal_cuda_dry_plan_fused(&desc, index, list->sm->architecture, list->arena, out);
    for (int i = 0; i < peal_diagnostics_count(own) && status; i++)
        refused |= peal_diagnostics_at(own, i)->code == PEAL_E_GRAPH_MODE_NOT_APPLICABLE;
    for (int i = 0; i < peal_diagnostics_count(own) && status && !refused; i++) {
        const peal_diagnostic *d = peal_diagnostics_at(own, i);
        peal_report(given, d->code, d->source, d->hint, "%s", d->message);
    }
    peal_diagnostics_destroy(own);
    if (refused)
        *out = peal_cuda_fused_unit_print(list->source, NULL, list->arena);
    return refused ? PEAL_STATUS_OK : status;
}

/* How long the line is by which a unit begins, if that says how many blocks an SM is to hold. */
static int length_of_bounds(const char *unit)
{
    static const char words[] = "#define PEAL_FUSED_ON_SM ";

    return strncmp(unit, words, sizeof(words) - 1) == 0 ? (int)strcspn(unit, "\n") + 1 : 0;
}

/* The persistent kernel of each rank, as it is compiled where each rank has a GPU: ranks whose
 * launches have the same shapes have the same one. Then the dispatcher, which is that kernel
 * without shapes and tasks. */
static peal_status add_fused(peal_cuda_resource_list *list)
{
    const peal_backend_desc *desc = &list->source->desc;
    const char **known = PEAL_ARENA_ARRAY(list->arena, const char *, desc->rank_count);
    peal_status status = PEAL_STATUS_OK;

    for (int r = 0; r < desc->rank_count && !status; r++) {
        int same = 0, first = list->count;
        status = fused_of(list, r, &known[r]);
        while (!status && strcmp(known[same], known[r]) != 0)
            same++;
        if (!status && same == r)
            status = peal_cuda_resources_add(list, "fused", known[r]);
        for (int i = first; i < list->count; i++)
            list->kernel[i].rank = desc->rank[r].schedule->rank;
    }
    if (status)
        return status;
    const char *alone = peal_cuda_fused_unit_print(list->source, NULL, list->arena);
    return peal_cuda_resources_add(list, "dispatcher",
                                   peal_arena_print(list->arena,
                                                    "#define PEAL_FUSED_ALONE 1\n%.*s%s",
                                                    length_of_bounds(known[0]), known[0], alone));
}

bool peal_cuda_mode_compiles(peal_mode mode, int architecture)
{
    return mode != PEAL_MODE_FUSED || peal_cuda_fused_compiles(architecture);
}

peal_status peal_cuda_plan_resources(const peal_backend_desc *desc, int architecture,
                                     peal_arena *arena, peal_cuda_resources *out)
{
    peal_cuda_resource_list list = {.sm = peal_cuda_sm_find(architecture), .arena = arena};
    const peal_cuda_fused_text fused_text = peal_cuda_options_fused_text(desc->lowering);
    const char *reason = NULL;
    peal_cuda_source *source = NULL;
    peal_status status = peal_cuda_source_create(desc, &fused_text, arena, &source);

    list.source = source;
    if (!status)
        status = peal_cuda_resources_add(&list, "full", source->text);
    if (!status && source->communication_free)
        status = peal_cuda_resources_add(&list, "communication-free", source->communication_free);
    if (!status && source->fused)
        status = add_fused(&list);
    if (status)
        return status;
    const peal_nvrtc *nvrtc = peal_nvrtc_open(&reason);
    *out = (peal_cuda_resources){.architecture = architecture,
                                 .nvrtc_major = nvrtc->major,
                                 .nvrtc_minor = nvrtc->minor,
                                 .kernel = list.kernel,
                                 .count = list.count};
    return PEAL_STATUS_OK;
}
