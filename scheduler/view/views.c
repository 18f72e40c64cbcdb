/* Views of ranks, empty, and where they are allocated. */
#include "scheduler/view/compilation.h"

rank_view *create_view(const common_input *c, const pass_context *pass, int rank)
{
    rank_view *v = PEAL_ARENA_NEW(pass->arena, rank_view);
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
    v->statement = PEAL_ARENA_ARRAY(pass->arena, statement_view, c->graph->statement_count);
    for (int i = 0; i < c->graph->statement_count; i++)
        v->statement[i] = (statement_view){.task = -1, .first_end = -1};
    return v;
}

void begin_scratch(peal_compilation *c)
{
    c->pass.arena = c->scratch = peal_arena_create_within(c->own_arena);
}

void end_scratch(peal_compilation *c)
{
    peal_arena_destroy(c->scratch);
    c->scratch = NULL;
    c->pass.arena = c->own_arena;
}
