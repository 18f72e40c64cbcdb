/* Stage 2, tasks: every task's boxes, tiles and what a tile touches, on one rank; bounds and
 * collisions are checked. */
#include "scheduler/tasks/tasks.h"

#include <string.h>

static peal_status make_file_task(const common_input *c, const pass_context *pass, rank_view *v,
                                  const peal_statement *s)
{
    int array = s->u.file.array;
    int index =
        add_task(c, pass, v, s, s->kind == PEAL_STATEMENT_LOAD ? PEAL_TASK_LOAD : PEAL_TASK_SAVE);
    peal_schedule_task *t = &v->task[index];
    v->statement[s->id].task = index;
    t->array = array;
    t->file = s->u.file.file;
    if (c->graph->arrays[array].kind == PEAL_ARRAY_FIELD) {
        field_shape shape;
        peal_status status = shape_of(c, pass, &v->scope, array, &shape);
        for (int k = 0; k < PEAL_AXES; k++)
            t->file_shape[k] = !status && k < shape.axis_count ? shape.size[k] : 1;
        return status;
    }
    const peal_box *stored = &v->layout[array].stored;
    for (int k = 0; k < PEAL_AXES; k++) {
        t->file_shape[k] = stored->hi[k] - stored->lo[k];
        t->file_lo[k] = stored->lo[k];
    }
    return PEAL_STATUS_OK;
}

static peal_status make_builtin_task(const common_input *c, const pass_context *pass, rank_view *v,
                                     const peal_statement *s)
{
    int index;
    switch (s->kind) {
    case PEAL_STATEMENT_SET:
        index = add_task(c, pass, v, s, PEAL_TASK_SET);
        v->task[index].array = s->u.set.array;
        v->task[index].value = s->u.set.value;
        v->statement[s->id].task = index;
        return PEAL_STATUS_OK;
    case PEAL_STATEMENT_PRINT:
        index = add_task(c, pass, v, s, PEAL_TASK_PRINT);
        v->task[index].item = s->u.print.item;
        v->task[index].item_count = s->u.print.item_count;
        v->statement[s->id].task = index;
        return PEAL_STATUS_OK;
    case PEAL_STATEMENT_LOAD:
    case PEAL_STATEMENT_SAVE:
        return make_file_task(c, pass, v, s);
    case PEAL_STATEMENT_REDUCE:
        return make_reduction(c, pass, v, s);
    case PEAL_STATEMENT_EXCHANGE:
        return check_exchange(c, pass, v, s);
    default:
        return PEAL_STATUS_OK;
    }
}

peal_status make_tasks(const common_input *c, const pass_context *pass, rank_view *v)
{
    peal_status first = PEAL_STATUS_OK;
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        if (!s)
            continue;
        peal_status status = s->kind == PEAL_STATEMENT_TASK ? make_kernel_task(c, pass, v, s)
                                                            : make_builtin_task(c, pass, v, s);
        if (status && !first)
            first = status;
    }
    return first;
}
