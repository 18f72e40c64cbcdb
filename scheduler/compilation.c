/* A compilation: the passes in order, and the views of ranks that they fill. A stage of one rank
 * may ask for an earlier stage of the ranks it exchanges messages with: view_at(). */
#include "scheduler/check/check.h"
#include "scheduler/check/message_match.h"
#include "scheduler/conditions/conditions.h"
#include "scheduler/geometry/geometry.h"
#include "scheduler/lower/lowering.h"
#include "scheduler/messages/messages.h"
#include "scheduler/tasks/tasks.h"

#include <string.h>

/* The passes, in order, each with what it reads and writes. */
static peal_status run_stage(peal_compilation *c, rank_view *v, int stage)
{
    const common_input *in = &c->common;
    const pass_context *pass = &c->pass;
    peal_status status = PEAL_STATUS_OK;
    switch (stage) {
    case STAGE_GEOMETRY:
        status = make_geometry(in, pass, v);
        return status ? status : make_conditions(in, pass, c->conditions, v);
    case STAGE_TASKS:
        status = make_tasks(in, pass, v);
        return status ? status : make_ends(in, pass, v);
    case STAGE_MESSAGES:
        return make_messages(in, pass, &c->views, c->conditions, v);
    case STAGE_ORDER:
        return make_nodes(in, pass, v);
    default:
        return make_schedule(in, pass, &c->views, v);
    }
}

static rank_view *make_view(rank_views *views, int rank, int stage)
{
    peal_compilation *c = views->owner;
    rank_view *v = views->of[rank];
    if (!v)
        v = views->of[rank] = create_view(&c->common, &c->pass, rank);
    while (!v->status && v->stage < stage) {
        v->stage++;
        v->status = run_stage(c, v, v->stage);
    }
    return v->status && stage >= v->stage ? NULL : v; /* stages before the failed one are good */
}

static rank_view *make_view_of_ends(rank_views *views, const pass_context *pass, int rank)
{
    peal_compilation *c = views->owner;
    rank_view *v = create_view(&c->common, pass, rank);
    v->status = make_geometry(&c->common, pass, v);
    if (!v->status)
        v->status = make_conditions(&c->common, pass, c->conditions, v);
    if (!v->status)
        v->status = make_ends(&c->common, pass, v);
    return v;
}

static peal_status why_exhausted(const peal_compilation *c)
{
    return peal_arena_is_late(c->own_arena) ? PEAL_STATUS_DEADLINE : PEAL_STATUS_ENVIRONMENT;
}

/* Where the guard of the compilation's arena goes on; reports PEAL_E_COMPILE_OUT_OF_MEMORY or
 * PEAL_E_COMPILE_TOO_LONG, once. */
static peal_status out_of_room(peal_compilation *c)
{
    size_t used = peal_arena_bytes(c->own_arena), wanted = peal_arena_wanted(c->own_arena);
    if (c->exhausted)
        return why_exhausted(c);
    if (c->scratch)
        used += peal_arena_bytes(c->scratch);
    if (c->ends) {
        used += c->ends->most_bytes;
        end_table_finish(c->ends);
    }
    end_scratch(c);
    peal_arena_destroy(c->halo_scratch);
    c->halo_scratch = NULL;
    c->ends = NULL;
    c->pass.diagnostics = c->own_diagnostics;
    c->exhausted = true;
    if (peal_arena_is_late(c->own_arena))
        return peal_report(c->pass.diagnostics, PEAL_E_COMPILE_TOO_LONG, (peal_source){0},
                           "raise --deadline, or give the graph fewer statements or ranks",
                           "checking a graph of %d statements on %d rank%s and making its "
                           "schedules takes more than %lld ms of processor time",
                           c->common.graph->statement_count, c->common.machine.ranks,
                           c->common.machine.ranks == 1 ? "" : "s",
                           (long long)(c->limit_ns / 1000000));
    return peal_report(c->pass.diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, (peal_source){0},
                       "check fewer ranks, or where there is more memory",
                       "no memory for the messages and schedules of %d rank%s: %zu bytes are in "
                       "use, %zu more are needed",
                       c->common.machine.ranks, c->common.machine.ranks == 1 ? "" : "s", used,
                       wanted);
}

static peal_compilation *new_compilation(peal_arena *arena)
{
    PEAL_ARENA_GUARD(arena, return NULL);
    return PEAL_ARENA_NEW(arena, peal_compilation);
}

/* What ranks share. */
static peal_status prepare(peal_compilation *c)
{
    PEAL_ARENA_GUARD(c->own_arena, return out_of_room(c));
    index_graph(&c->common, &c->pass);
    c->views.of = PEAL_ARENA_ARRAY(c->pass.arena, rank_view *, c->common.machine.ranks);
    c->conditions = create_conditions(&c->common, c->own_arena);
    return choose_dims(&c->common, &c->pass);
}

peal_status peal_compilation_create(const peal_graph_data *graph, const peal_machine *machine,
                                    peal_mode mode, peal_diagnostics *diagnostics,
                                    peal_compilation **out)
{
    peal_arena *arena = peal_arena_create();
    peal_compilation *c = arena ? new_compilation(arena) : NULL;
    if (!c) {
        peal_arena_destroy(arena);
        return peal_report(diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, (peal_source){0}, NULL,
                           "no memory to begin a compilation");
    }
    *c = (peal_compilation){.common = {.graph = graph,
                                       .machine = *machine,
                                       .traits = peal_machine_traits_of(machine),
                                       .mode = mode},
                            .pass = {arena, diagnostics},
                            .views = {NULL, make_view, make_view_of_ends, c},
                            .own_diagnostics = diagnostics,
                            .own_arena = arena};
    peal_status status = prepare(c);
    if (status)
        peal_arena_destroy(arena);
    else
        *out = c;
    return status;
}

void peal_compilation_destroy(peal_compilation *compilation)
{
    if (compilation)
        peal_arena_destroy(compilation->own_arena);
}

void peal_compilation_limit(peal_compilation *compilation, int64_t deadline_ns)
{
    bool fits = deadline_ns < INT64_MAX / PEAL_COMPILE_DEADLINES;
    compilation->limit_ns = fits ? deadline_ns * PEAL_COMPILE_DEADLINES : 0;
}

/* A call begins: what it may take counts from here. */
static void begin_call(peal_compilation *c)
{
    if (!c->exhausted)
        peal_arena_limit(c->own_arena, c->limit_ns);
}

/* Processes that leave the check to another one check specs whose slots depend on what it finds. */
static peal_status know_leads(peal_compilation *c)
{
    if (!c->knows_leads && !c->exhausted && leads_may_differ(&c->common))
        return check_all(c);
    c->knows_leads = true;
    return PEAL_STATUS_OK;
}

peal_status peal_compilation_schedule(peal_compilation *c, int rank, const peal_schedule **out)
{
    PEAL_ARENA_GUARD(c->own_arena, return out_of_room(c));
    begin_call(c);
    peal_status status = know_leads(c);
    if (status)
        return status;
    rank_view *v = c->exhausted ? NULL : view_at(&c->views, rank, STAGE_SCHEDULE);
    if (!v)
        return c->exhausted ? why_exhausted(c) : c->views.of[rank]->status;
    *out = v->schedule;
    return PEAL_STATUS_OK;
}

peal_status peal_compilation_tasks(peal_compilation *c, int rank, const peal_schedule **out)
{
    PEAL_ARENA_GUARD(c->own_arena, return out_of_room(c));
    begin_call(c);
    rank_view *v = c->exhausted ? NULL : view_at(&c->views, rank, STAGE_TASKS);
    if (!v)
        return c->exhausted ? why_exhausted(c) : c->views.of[rank]->status;
    return make_outline(&c->common, &c->pass, v, out);
}

peal_status peal_compilation_check(peal_compilation *c)
{
    PEAL_ARENA_GUARD(c->own_arena, return out_of_room(c));
    begin_call(c);
    return c->exhausted ? why_exhausted(c) : check_all(c);
}

static bool find_alike(peal_compilation *c, int *like)
{
    PEAL_ARENA_GUARD(c->own_arena, out_of_room(c); return false);
    begin_call(c);
    return find_alike_ranks(c, like);
}

bool peal_compilation_alike(peal_compilation *c, int *like)
{
    bool good = !c->exhausted && find_alike(c, like);
    for (int rank = 0; !good && rank < c->common.machine.ranks; rank++)
        like[rank] = rank;
    return good;
}

bool peal_compilation_is_within_repeat(const peal_compilation *c)
{
    return c->conditions->within_repeat;
}

bool peal_compilation_ends_at_repeat(const peal_compilation *c)
{
    return c->conditions->ends_at_repeat;
}

void peal_compilation_dims(const peal_compilation *c, int dims[PEAL_RANK_AXES])
{
    memcpy(dims, c->common.dims, sizeof(c->common.dims));
}

size_t peal_compilation_bytes(const peal_compilation *c)
{
    return peal_arena_bytes(c->own_arena) + c->check_bytes;
}
