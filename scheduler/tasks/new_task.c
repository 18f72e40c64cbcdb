/* A task of one tile, of which the rest is still to be said. */
#include "scheduler/tasks/tasks.h"

int add_task(const common_input *c, const pass_context *pass, rank_view *v, const peal_statement *s,
             peal_task_kind kind)
{
    PEAL_ARENA_ROOM(pass->arena, v->task, v->task_count, v->task_capacity);
    peal_tiling *one = PEAL_ARENA_NEW(pass->arena, peal_tiling);
    *one =
        (peal_tiling){.box = {.hi = {1, 1, 1, 1}}, .extent = {1, 1, 1, 1}, .count = {1, 1, 1, 1}};
    v->task[v->task_count] =
        (peal_schedule_task){.kind = kind,
                             .name = s ? s->name : "until",
                             .source = s ? s->source : c->graph->step.until->source,
                             .statement = s ? s->id : -1,
                             .tiling = one,
                             .tiling_count = 1,
                             .tile_count = 1,
                             .array = -1,
                             .gather = -1,
                             .decision = -1};
    return v->task_count++;
}
