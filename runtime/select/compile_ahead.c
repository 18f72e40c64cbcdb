/* Compiles what the plan of a candidate will need, before that is made. What goes wrong here is
 * said when the plan itself is made. */
#include "runtime/bind/binding.h"
#include "runtime/select/select.h"

#include "base/lowering.h"
#include "scheduler/scheduler.h"

#include <stdlib.h>

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

void peal_plan_compile_ahead(const peal_plan *plan, const peal_candidate *candidate)
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
