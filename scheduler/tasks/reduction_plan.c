/* How a reduction over ranks goes: who takes part, in one shot, in two, or up a tree. */
#include "scheduler/tasks/reduction_plan.h"

enum {
    TWO_SHOT_BYTES = 8192,
    MOST_TWO_SHOT_MEMBERS = 64 /* with vectors that long, more than this */
};

static bool is_long(const common_input *c, const rank_view *v, const peal_reduction *item)
{
    int64_t count = v->layout[item->array].stored.hi[0];
    return count * (int64_t)peal_type_bytes(array_type(c, item->array)) >= TWO_SHOT_BYTES;
}

static void choose_shots(const common_input *c, const rank_view *v, const peal_statement *s,
                         int item, reduction_plan *plan)
{
    const peal_rank_reduction *r = &s->u.reduce;
    bool any_long = false;
    if (r->root)
        return;
    for (int i = 0; i < r->item_count; i++)
        any_long |= is_long(c, v, &r->item[i]);
    if (plan->member_count > (any_long ? MOST_TWO_SHOT_MEMBERS : WIDTH))
        for (int64_t unit = 1; unit < plan->member_count; unit *= WIDTH)
            plan->levels++;
    else
        plan->two_shot = plan->member_count > 2 && is_long(c, v, &r->item[item]);
}

peal_status plan_reduction(const common_input *c, const pass_context *pass, const rank_view *v,
                           const peal_statement *s, int item, reduction_plan *out)
{
    const peal_rank_reduction *r = &s->u.reduce;
    int64_t root = -1;
    peal_status status = peal_expr_integer(r->root, &v->scope, -1, &root, pass->diagnostics);
    if (status)
        return status;
    if (r->root && (root < 0 || root >= c->machine.ranks))
        return peal_report(pass->diagnostics, PEAL_E_REDUCTION_MISMATCH, r->root->source,
                           "name a rank from 0 to ranks - 1", "there is no rank %lld among %d",
                           (long long)root, c->machine.ranks);
    reduction_plan plan = {.member_count = c->machine.ranks,
                           .me = v->rank,
                           .stride = 1,
                           .root = (int)root};
    if (r->along >= 0) {
        for (int k = 0; k < r->along; k++)
            plan.stride *= c->dims[k];
        plan.me = v->position[r->along];
        plan.member_count = c->dims[r->along];
        plan.first = v->rank - plan.me * plan.stride;
    }
    choose_shots(c, v, s, item, &plan);
    *out = plan;
    return PEAL_STATUS_OK;
}

int rank_of(const reduction_plan *plan, int member)
{
    return plan->first + member * plan->stride;
}

int64_t slice_start(const reduction_plan *plan, int64_t count, int member)
{
    return plan->two_shot ? count * member / plan->member_count : 0;
}

int64_t slice_end(const reduction_plan *plan, int64_t count, int member)
{
    return plan->two_shot ? count * (member + 1) / plan->member_count : count;
}

/* Members between the contributors of a level. */
int64_t unit_of(int level)
{
    int64_t unit = 1;
    while (level-- > 0)
        unit *= WIDTH;
    return unit;
}

/* How many contributions, mine included, I fold on a level of the tree; 0: none. */
int contributors(const reduction_plan *plan, int level)
{
    int64_t unit = unit_of(level);
    if (plan->me % (unit * WIDTH))
        return 0;
    int64_t below = peal_ceil_divide(plan->member_count - plan->me, unit);
    return below < 2 ? 0 : below < WIDTH ? (int)below : WIDTH;
}

bool reduction_role(const common_input *c, const pass_context *pass, rank_views *views,
                    const peal_statement *s, int rank, uint64_t *out)
{
    rank_view *first =
        view_at(views, 0, STAGE_GEOMETRY); /* whose vectors are as long as everybody's */
    if (!first || s->u.reduce.root)
        return false;
    rank_view like = *first;
    like.rank = like.scope.rank = rank;
    for (int k = 0, left = rank; k < PEAL_RANK_AXES; left /= c->dims[k++])
        like.position[k] = like.scope.position[k] = left % c->dims[k];
    reduction_plan plan;
    if (plan_reduction(c, pass, &like, s, 0, &plan))
        return false;
    uint64_t role = plan.levels ? 0 : (uint64_t)plan.me;
    for (int level = 0; level < plan.levels; level++) {
        int64_t unit = unit_of(level);
        int64_t up = plan.me % unit ? -1 : plan.me % (unit * WIDTH) / unit;
        role = role * (2 * WIDTH * WIDTH) + (uint64_t)(up + 1) * (WIDTH + 1) +
               (uint64_t)contributors(&plan, level);
    }
    *out = role;
    return true;
}
