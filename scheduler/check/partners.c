/* Exchanges and reductions that some ranks may leave out, or take part in with vectors of another
 * length: whether those who need each other agree.
 *
 * Where all ranks do the same there is nothing to see. Else, by classes: all of them must agree,
 * or, in a reduction along an axis, those that differ in their position along it. What that does
 * not show is looked at when the messages of all ranks are made. */
#include "scheduler/check/check.h"
#include "scheduler/conditions/conditions.h"

/* Whether a condition may keep a statement from happening on some ranks and not on others. */
static bool may_skip_ranks(const peal_statement *s)
{
    unsigned uses = s->when ? peal_expr_uses(s->when) : 0;
    return (uses & PEAL_USES_RANK) != 0;
}

static bool may_differ_in_count(const common_input *c, int array)
{
    const peal_array *a = &c->graph->arrays[array];
    return a->file || (a->count && peal_expr_uses(a->count) & PEAL_USES_RANK);
}

/* Vectors that all ranks reduce have been compared before. */
static bool rows_may_differ(const common_input *c, const peal_statement *s)
{
    for (int i = 0; s->u.reduce.along >= 0 && i < s->u.reduce.item_count; i++)
        if (may_differ_in_count(c, s->u.reduce.item[i].array))
            return true;
    return false;
}

/* Whether a statement needs a look at who takes part. */
static bool is_doubtful(const common_input *c, const peal_statement *s)
{
    if (s && s->kind == PEAL_STATEMENT_EXCHANGE)
        return may_skip_ranks(s);
    return s && s->kind == PEAL_STATEMENT_REDUCE && (may_skip_ranks(s) || rows_may_differ(c, s));
}

static bool takes_part_alike(const rank_view *a, const rank_view *b, const peal_statement *s)
{
    if (is_active(a, s) != is_active(b, s) ||
        a->statement[s->id].condition != b->statement[s->id].condition)
        return false;
    for (int i = 0; s->kind == PEAL_STATEMENT_REDUCE && i < s->u.reduce.item_count; i++) {
        int array = s->u.reduce.item[i].array;
        if (a->layout[array].stored.hi[0] != b->layout[array].stored.hi[0])
            return false;
    }
    return true;
}

bool classes_take_part_alike(const common_input *c, const rank_classes *classes,
                             rank_view *const *view)
{
    int count = class_count(classes);
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        if (!is_doubtful(c, s))
            continue;
        int along = s->kind == PEAL_STATEMENT_REDUCE ? s->u.reduce.along : -1;
        int stride = 1;
        for (int k = 0; k < along; k++)
            stride *= classes->count[k];
        for (int class = 0; class < count; class ++) {
            int first = along < 0 ? 0 : class - class / stride % classes->count[along] * stride;
            if (!takes_part_alike(view[first], view[class], s))
                return false;
        }
    }
    return true;
}

peal_status check_partners(const common_input *c, rank_views *views)
{
    peal_status first = PEAL_STATUS_OK;
    bool doubtful = false;
    for (int i = 0; i < c->graph->statement_count; i++)
        doubtful |= is_doubtful(c, c->statement[i]);
    for (int rank = 0; doubtful && rank < c->machine.ranks; rank++)
        if (!view_at(views, rank, STAGE_MESSAGES) && !first)
            first = views->of[rank]->status;
    return first;
}
