/* Rehearsals: compiles a graph for the ranks of a process, and has the backend try out the plan. */
#include "runtime/select/rehearsal.h"
#include "runtime/bind/binding.h"

#include "scheduler/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static peal_status no_memory(const peal_rehearsal_desc *desc)
{
    return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory for a rehearsal of %d ranks", desc->machine->ranks);
}

/* What a mode cannot hold, not what is wrong with the graph or its kernels. */
static bool is_of_mode(peal_code code)
{
    return code == PEAL_E_GRAPH_MODE_NOT_APPLICABLE || code == PEAL_E_NO_MEMORY_OPERATIONS;
}

/* Its words without "mode fused cannot run this: ". */
static void take(const peal_diagnostics *list, int process, peal_rehearsal *out)
{
    static const char before[] = "cannot run this: ";

    for (int i = 0; i < peal_diagnostics_count(list) && !out->refused; i++) {
        const peal_diagnostic *d = peal_diagnostics_at(list, i);
        if (!is_of_mode(d->code))
            continue;
        const char *reason = strstr(d->message, before);
        out->refused = true;
        out->process = process;
        out->code = d->code;
        snprintf(out->text, sizeof(out->text), "%s", reason ? reason + strlen(before) : d->message);
        snprintf(out->change, sizeof(out->change), "%s", d->hint ? d->hint : "");
    }
}

static bool has_no_memory(const peal_diagnostics *list)
{
    for (int i = 0; i < peal_diagnostics_count(list); i++)
        if (peal_diagnostics_at(list, i)->code == PEAL_E_OUT_OF_MEMORY)
            return true;
    return false;
}

static peal_status rehearse_process(const peal_rehearsal_desc *desc, peal_compilation *compilation,
                                    int process, peal_rehearsal *out)
{
    int first, end;
    peal_machine_ranks(desc->machine, process, &first, &end);
    peal_backend_rank *rank = calloc((size_t)(end - first), sizeof(*rank));
    peal_diagnostics *own = peal_diagnostics_create();
    peal_status status = rank && own ? PEAL_STATUS_OK : no_memory(desc);

    for (int r = first; r < end && !status; r++)
        status = peal_compilation_schedule(compilation, r, &rank[r - first].schedule);
    if (!status) {
        const peal_backend_desc plan = {.size = sizeof(plan),
                                        .mode = desc->mode,
                                        .rank_count = end - first,
                                        .rank = rank,
                                        .workers = 1,
                                        .allow_outside = desc->allow_outside,
                                        .lowering = desc->lowering,
                                        .diagnostics = own};
        peal_backend_rehearsal found;
        if (desc->backend->rehearse(&plan, &found))
            take(own, process, out);
        if (!out->note[0])
            snprintf(out->note, sizeof(out->note), "%s", found.note);
        if (process == 0 || found.saved < out->saved)
            out->saved = found.saved;
        if (!out->refused && has_no_memory(own))
            status = no_memory(desc);
    }
    peal_diagnostics_destroy(own);
    free(rank);
    return status;
}

/* Which ranks are alike, as far as that does not depend on which of them share a process. */
static bool find_alike(const peal_rehearsal_desc *desc, int *like)
{
    peal_machine apart = *desc->machine;
    peal_compilation *compilation = NULL;
    bool found = false;

    apart.processes = apart.ranks;
    if (!peal_compilation_create(desc->graph, &apart, desc->mode, NULL, &compilation))
        found = peal_compilation_alike(compilation, like);
    peal_compilation_destroy(compilation);
    return found;
}

/* Processes are alike whose ranks are, one by one: likeness tells the ends of each axis, so these
 * ranks are neighbours of each other alike. */
static bool is_like_another(const peal_machine *machine, const int *like, int process,
                            const int *other, int others)
{
    int first, end, first_other, end_other;

    peal_machine_ranks(machine, process, &first, &end);
    for (int i = 0; i < others; i++) {
        peal_machine_ranks(machine, other[i], &first_other, &end_other);
        int same = 0;
        while (first + same < end && first_other + same < end_other &&
               like[first + same] == like[first_other + same])
            same++;
        if (same == end - first && same == end_other - first_other)
            return true;
    }
    return false;
}

/* Tries out each process that is not like another, at most PEAL_REHEARSED. */
static peal_status rehearse_all(const peal_rehearsal_desc *desc, peal_compilation *compilation,
                                int *like, peal_rehearsal *out)
{
    const peal_machine *machine = desc->machine;
    bool alike = machine->processes > 1 && find_alike(desc, like);
    int tried[PEAL_REHEARSED], count = 0, first, end;
    peal_status status = PEAL_STATUS_OK;

    for (int p = 0; p < machine->processes && !status && !out->refused; p++) {
        peal_machine_ranks(machine, p, &first, &end);
        if (first == end || (alike && is_like_another(machine, like, p, tried, count)))
            continue;
        if (count == PEAL_REHEARSED) {
            out->first_unknown = first;
            break;
        }
        tried[count++] = p;
        status = rehearse_process(desc, compilation, p, out);
    }
    return status;
}

peal_status peal_rehearse(const peal_rehearsal_desc *desc, peal_rehearsal *out)
{
    peal_compilation *compilation = NULL;
    peal_status status = PEAL_STATUS_OK;
    bool records = desc->mode == PEAL_MODE_GRAPH || desc->mode == PEAL_MODE_FUSED;

    *out = (peal_rehearsal){.first_unknown = desc->machine->ranks};
    if (!desc->backend->rehearse || !records)
        return status;
    int *like = calloc((size_t)desc->machine->ranks, sizeof(*like));
    if (!like)
        return no_memory(desc);
    status = peal_compilation_create(desc->graph, desc->machine, desc->mode, desc->diagnostics,
                                     &compilation);
    if (!status)
        status = rehearse_all(desc, compilation, like, out);
    if (desc->machine->ranks > PEAL_REHEARSED_SAVINGS)
        out->saved = 0;
    peal_compilation_destroy(compilation);
    free(like);
    return status;
}
