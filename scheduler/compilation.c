/* A compilation: the passes in order, and the views of ranks that they fill.
 *
 * Stages of a rank: 1 geometry (where its arrays lie), 2 tasks (boxes, tiles, footprints) and
 * message ends, 3 messages (who sends which points to whom), 4 nodes in walk order, 5 the schedule
 * (ops, dependences, memory). A stage of one rank may ask for an earlier stage of the ranks it
 * exchanges messages with. */
#include "scheduler/check/message_match.h"

#include <string.h>

enum { STAGE_COUNT = 5 };

/* The passes, in order. */
static peal_status (*const stages[STAGE_COUNT][2])(peal_compilation *,
                                                   rank_view *) = {{make_geometry, make_conditions},
                                                                   {make_tasks, make_ends},
                                                                   {make_messages, NULL},
                                                                   {make_nodes, NULL},
                                                                   {make_schedule, NULL}};

int array_total(const peal_compilation *c)
{
    return c->graph->array_count + c->hidden_count;
}

const char *array_name(const peal_compilation *c, int array)
{
    int graphs = c->graph->array_count;
    return array < graphs ? c->graph->arrays[array].name : c->hidden[array - graphs].name;
}

peal_type array_type(const peal_compilation *c, int array)
{
    int graphs = c->graph->array_count;
    return array < graphs ? c->graph->arrays[array].type : c->hidden[array - graphs].type;
}

static rank_view *create_view(peal_compilation *c, int rank)
{
    rank_view *v = PEAL_ARENA_NEW(c->arena, rank_view);
    int left = rank;
    v->rank = rank;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        v->position[k] = left % c->dims[k];
        left /= c->dims[k];
        v->scope.position[k] = v->position[k];
        v->scope.dims[k] = c->dims[k];
    }
    v->scope.graph = c->graph;
    v->scope.rank = rank;
    v->scope.ranks = c->machine.ranks;
    v->statement = PEAL_ARENA_ARRAY(c->arena, statement_view, c->graph->statement_count);
    for (int i = 0; i < c->graph->statement_count; i++)
        v->statement[i] = (statement_view){.task = -1, .first_end = -1};
    return v;
}

rank_view *view_at(peal_compilation *c, int rank, int stage)
{
    rank_view *v = c->view[rank];
    if (!v)
        v = c->view[rank] = create_view(c, rank);
    while (!v->status && v->stage < stage) {
        int next = v->stage++;
        for (int i = 0; i < 2 && stages[next][i] && !v->status; i++)
            v->status = stages[next][i](c, v);
    }
    return v->status && stage >= v->stage ? NULL : v; /* stages before the failed one are good */
}

rank_view *view_of_ends(peal_compilation *c, int rank)
{
    rank_view *v = create_view(c, rank);
    v->status = make_geometry(c, v);
    if (!v->status)
        v->status = make_conditions(c, v);
    if (!v->status)
        v->status = make_ends(c, v);
    return v;
}

static void add_hidden(peal_compilation *c, const peal_statement *s, int item,
                       const peal_reduction *r, const char *what)
{
    PEAL_ARENA_ROOM(c->arena, c->hidden, c->hidden_count, c->hidden_capacity);
    const peal_array *array = &c->graph->arrays[r->array];
    if (c->statement_hidden[s->id] < 0)
        c->statement_hidden[s->id] = c->graph->array_count + c->hidden_count;
    c->hidden[c->hidden_count++] =
        (hidden_array){peal_arena_print(c->arena, "%s.%s@%d", array->name, what, s->id), s->id,
                       item, array->type};
}

static void join_swap_groups(peal_compilation *c, int first, int second)
{
    int a = c->swap_group[first], b = c->swap_group[second];
    int group = a >= 0 ? a : b >= 0 ? b : first;
    c->swap_group[first] = c->swap_group[second] = group;
    for (int i = 0; i < c->graph->array_count; i++)
        if (c->swap_group[i] >= 0 && (c->swap_group[i] == a || c->swap_group[i] == b))
            c->swap_group[i] = group;
}

/* Tables by statement: itself, its loop, its hidden arrays; groups of arrays that swaps permute. */
static void index_body(peal_compilation *c, const peal_body *body, int loop, int section)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        c->statement[s->id] = s;
        c->statement_loop[s->id] = loop;
        c->statement_section[s->id] = section;
        c->statement_plain[s->id] = !s->when;
        if (s->kind == PEAL_STATEMENT_TASK)
            for (int k = 0; k < s->u.task.reduction_count; k++)
                add_hidden(c, s, k, &s->u.task.reduction[k], "partials");
        if (s->kind == PEAL_STATEMENT_REDUCE)
            for (int k = 0; k < s->u.reduce.item_count; k++)
                add_hidden(c, s, k, &s->u.reduce.item[k], "gathered");
        if (s->kind == PEAL_STATEMENT_SWAP) {
            PEAL_ARENA_ROOM(c->arena, c->swap, c->swap_count, c->swap_capacity);
            c->swap[c->swap_count++] = s;
            join_swap_groups(c, s->u.swap.first, s->u.swap.second);
        }
        if (differs_by_rank_and_counter(s)) {
            PEAL_ARENA_ROOM(c->arena, c->mixed, c->mixed_count, c->mixed_capacity);
            c->mixed[c->mixed_count++] = s;
        }
        if (s->kind == PEAL_STATEMENT_REPEAT)
            index_body(c, &s->u.loop.body, s->id, section);
    }
}

static void index_graph(peal_compilation *c)
{
    const peal_graph_data *g = c->graph;
    c->statement = PEAL_ARENA_ARRAY(c->arena, const peal_statement *, g->statement_count + 1);
    c->statement_loop = PEAL_ARENA_ARRAY(c->arena, int, g->statement_count + 1);
    c->statement_section = PEAL_ARENA_ARRAY(c->arena, int, g->statement_count + 1);
    c->statement_plain = PEAL_ARENA_ARRAY(c->arena, bool, g->statement_count + 1);
    c->statement_hidden = PEAL_ARENA_ARRAY(c->arena, int, g->statement_count + 1);
    c->swap_group = PEAL_ARENA_ARRAY(c->arena, int, g->array_count + 1);
    for (int i = 0; i < g->statement_count; i++)
        c->statement_hidden[i] = -1;
    for (int i = 0; i < g->array_count; i++)
        c->swap_group[i] = -1;
    index_body(c, &g->setup, LOOP_SETUP, LOOP_SETUP);
    index_body(c, &g->step.body, LOOP_OUTER, LOOP_OUTER);
    index_body(c, &g->finish, LOOP_FINISH, LOOP_FINISH);
}

void begin_scratch(peal_compilation *c)
{
    c->arena = c->scratch = peal_arena_create_within(c->own_arena);
}

void end_scratch(peal_compilation *c)
{
    peal_arena_destroy(c->scratch);
    c->scratch = NULL;
    c->arena = c->own_arena;
}

peal_status out_of_memory(peal_compilation *c)
{
    size_t used = peal_arena_bytes(c->own_arena), wanted = peal_arena_wanted(c->own_arena);
    if (c->exhausted)
        return PEAL_STATUS_ENVIRONMENT;
    if (c->scratch)
        used += peal_arena_bytes(c->scratch);
    if (c->records) {
        used += c->records->most_bytes;
        records_finish(c->records);
    }
    end_scratch(c);
    peal_arena_destroy(c->halo_scratch);
    c->halo_scratch = NULL;
    c->records = NULL;
    c->diagnostics = c->own_diagnostics;
    c->exhausted = true;
    return peal_report(c->diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, (peal_source){0},
                       "check fewer ranks, or where there is more memory",
                       "no memory for the messages and schedules of %d rank%s: %zu bytes are in "
                       "use, %zu more are needed",
                       c->machine.ranks, c->machine.ranks == 1 ? "" : "s", used, wanted);
}

static peal_compilation *new_compilation(peal_arena *arena)
{
    PEAL_ARENA_GUARD(arena, return NULL);
    return PEAL_ARENA_NEW(arena, peal_compilation);
}

/* What ranks share. */
static peal_status prepare(peal_compilation *c)
{
    PEAL_ARENA_GUARD(c->own_arena, return out_of_memory(c));
    index_graph(c);
    c->view = PEAL_ARENA_ARRAY(c->arena, rank_view *, c->machine.ranks);
    return choose_dims(c);
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
    *c = (peal_compilation){.graph = graph,
                            .machine = *machine,
                            .mode = mode,
                            .diagnostics = diagnostics,
                            .arena = arena,
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

peal_status peal_compilation_schedule(peal_compilation *c, int rank, const peal_schedule **out)
{
    PEAL_ARENA_GUARD(c->own_arena, return out_of_memory(c));
    rank_view *v = c->exhausted ? NULL : view_at(c, rank, STAGE_COUNT);
    if (!v)
        return c->exhausted ? PEAL_STATUS_ENVIRONMENT : c->view[rank]->status;
    *out = v->schedule;
    return PEAL_STATUS_OK;
}

peal_status peal_compilation_tasks(peal_compilation *c, int rank, const peal_schedule **out)
{
    PEAL_ARENA_GUARD(c->own_arena, return out_of_memory(c));
    rank_view *v = c->exhausted ? NULL : view_at(c, rank, 2);
    if (!v)
        return c->exhausted ? PEAL_STATUS_ENVIRONMENT : c->view[rank]->status;
    return make_outline(c, v, out);
}

bool peal_compilation_is_within_repeat(const peal_compilation *c)
{
    return c->within_repeat;
}

void peal_compilation_dims(const peal_compilation *c, int dims[PEAL_RANK_AXES])
{
    memcpy(dims, c->dims, sizeof(c->dims));
}

size_t peal_compilation_bytes(const peal_compilation *c)
{
    return peal_arena_bytes(c->own_arena) + c->check_bytes;
}
