/* The tasks of reductions over ranks: COMBINE folds the contributions that have come into rows of a
 * hidden array. */
#include "scheduler/tasks/reduction_plan.h"
#include "scheduler/tasks/tasks.h"

static peal_status check_item(const common_input *c, const pass_context *pass, const rank_view *v,
                              const peal_reduction *item)
{
    (void)v;
    if (is_plain_buffer(c, item->array))
        return PEAL_STATUS_OK;
    return peal_report(pass->diagnostics, PEAL_E_REDUCTION_MISMATCH, item->source,
                       "reduce a buffer without `box`", "`%s` is not a plain buffer",
                       array_name(c, item->array));
}

/* The rows that I fold of an item. */
static peal_status lay_out_rows(const common_input *c, const pass_context *pass, rank_view *v,
                                const peal_statement *s, int i)
{
    const peal_reduction *item = &s->u.reduce.item[i];
    int hidden = c->statement_hidden[s->id] + i;
    int64_t count = v->layout[item->array].stored.hi[0], elements;
    reduction_plan plan;
    peal_status status = check_item(c, pass, v, item);
    if (!status)
        status = plan_reduction(c, pass, v, s, i, &plan);
    if (status)
        return status;
    int rows = plan.levels ? 0 : plan.root < 0 || plan.root == v->rank ? plan.member_count : 0;
    for (int level = 0; level < plan.levels; level++)
        rows = contributors(&plan, level) > rows ? contributors(&plan, level) : rows;
    count = slice_end(&plan, count, plan.me) - slice_start(&plan, count, plan.me);
    if (peal_multiply_overflows(count, rows, &elements))
        return peal_report(pass->diagnostics, PEAL_E_SIZE_OUT_OF_RANGE, item->source, NULL,
                           "the reduction overflows");
    peal_box stored = {.axis_count = 1, .hi = {elements, 1, 1, 1}};
    v->layout[hidden].part = v->layout[hidden].own = stored;
    v->statement[s->id].levels = plan.levels;
    return set_dense_layout(pass, &v->layout[hidden], &stored, array_type(c, item->array),
                            s->source, s->name);
}

static void add_combine(const common_input *c, const pass_context *pass, rank_view *v,
                        const peal_statement *s, int i, int level)
{
    const peal_reduction *item = &s->u.reduce.item[i];
    int64_t count = v->layout[item->array].stored.hi[0];
    reduction_plan plan;
    if (plan_reduction(c, pass, v, s, i, &plan))
        return;
    bool folds = plan.levels     ? contributors(&plan, level) > 0
                 : plan.root < 0 ? true
                                 : plan.root == v->rank;
    int index = add_task(c, pass, v, s, PEAL_TASK_COMBINE);
    peal_schedule_task *t = &v->task[index];
    t->array = item->array;
    t->gather = c->statement_hidden[s->id] + i;
    t->lo = slice_start(&plan, count, plan.me);
    t->hi = folds ? slice_end(&plan, count, plan.me) : t->lo;
    t->contributions = plan.levels ? contributors(&plan, level) : plan.member_count;
    t->combine = item->combine;
    t->reported = array_is_reported(c, item->array);
}

peal_status make_reduction(const common_input *c, const pass_context *pass, rank_view *v,
                           const peal_statement *s)
{
    for (int i = 0; i < s->u.reduce.item_count; i++) {
        peal_status status = lay_out_rows(c, pass, v, s, i);
        if (status)
            return status;
    }
    v->statement[s->id].task = v->task_count;
    int levels = v->statement[s->id].levels;
    for (int level = 0; level < (levels ? levels : 1); level++)
        for (int i = 0; i < s->u.reduce.item_count; i++)
            add_combine(c, pass, v, s, i, level);
    return PEAL_STATUS_OK;
}
