/* Reductions over ranks: contributions travel as messages into a hidden array, one row a
 * contributor, and are folded by a COMBINE task in the tree of ranks.
 *
 * One shot: everyone (or the root) gets all contributions and folds them. Long vectors in two
 * shots: each rank gets and folds a slice, then sends the result to all. Many ranks: up a tree, the
 * first of WIDTH neighbouring members folding for them all, and down again, so that a rank talks
 * with few. WIDTH is a power of two, so these folds are subtrees of the tree of ranks: the order of
 * the fold is always the same. */
#include "scheduler/messages/messages.h"
#include "scheduler/tasks/reduction_plan.h"

static peal_piece line_piece(int array, int64_t lo, int64_t hi, int target_array, int64_t target)
{
    peal_piece piece = {.array = array, .target_array = target_array};
    piece.source = (peal_box){.axis_count = 1, .lo = {lo}, .hi = {hi, 1, 1, 1}};
    piece.target[0] = target;
    piece.target_extent[0] = hi - lo;
    for (int k = 1; k < PEAL_AXES; k++)
        piece.target_extent[k] = 1;
    return piece;
}

peal_status report_uneven(const common_input *c, const pass_context *pass, const peal_statement *s,
                          const peal_reduction *item, const int rank[2], const int64_t count[2])
{
    peal_story story = {0};
    if (peal_diagnostics_want(pass->diagnostics, PEAL_E_REDUCTION_MISMATCH, item->source))
        tell_uneven(c, s, item, rank, count, &story);
    return peal_report_story(pass->diagnostics, PEAL_E_REDUCTION_MISMATCH, item->source,
                             "give the buffer the same count on all ranks", &story,
                             "`%s` has %lld elements on rank %d and %lld on rank %d",
                             array_name(c, item->array), (long long)count[0], rank[0],
                             (long long)count[1], rank[1]);
}

/* The view of a member that takes part, with vectors as long as mine. */
static peal_status view_member(const common_input *c, const pass_context *pass, rank_views *views,
                               condition_table *conditions, const rank_view *v,
                               const peal_statement *s, int rank)
{
    rank_view *other = view_at(views, rank, STAGE_GEOMETRY);
    if (!other)
        return views->of[rank]->status;
    peal_status status = check_partner(c, pass, conditions, v, other, s);
    for (int i = 0; !status && i < s->u.reduce.item_count; i++) {
        const peal_reduction *item = &s->u.reduce.item[i];
        int64_t count = v->layout[item->array].stored.hi[0],
                theirs = other->layout[item->array].stored.hi[0];
        if (theirs != count)
            status = report_uneven(c, pass, s, item, (const int[]){v->rank, rank},
                                   (const int64_t[]){count, theirs});
    }
    return status;
}

typedef struct pair_messages {
    rank_message shot[2][2]; /* by phase, outgoing */
} pair_messages;

/* What members `me` and k send each other of an item. */
static void item_pieces(const common_input *c, const pass_context *pass, const rank_view *v,
                        const peal_statement *s, int i, const reduction_plan *p, int k,
                        pair_messages *out)
{
    int array = s->u.reduce.item[i].array, hidden = c->statement_hidden[s->id] + i;
    int64_t count = v->layout[array].stored.hi[0];
    int64_t lo = slice_start(p, count, p->me), hi = slice_end(p, count, p->me);
    int64_t their_lo = slice_start(p, count, k), their_hi = slice_end(p, count, k);
    bool i_fold = p->root < 0 || p->root == v->rank;
    bool they_fold = p->root < 0 || p->root == rank_of(p, k);
    if (they_fold && their_hi > their_lo)
        add_piece(c, pass, &out->shot[0][1],
                  line_piece(array, their_lo, their_hi, hidden, p->me * (their_hi - their_lo)));
    if (i_fold && hi > lo)
        add_piece(c, pass, &out->shot[0][0], line_piece(array, lo, hi, hidden, k * (hi - lo)));
    if (p->two_shot && hi > lo)
        add_piece(c, pass, &out->shot[1][1], line_piece(array, lo, hi, array, lo));
    if (p->two_shot && their_hi > their_lo)
        add_piece(c, pass, &out->shot[1][0],
                  line_piece(array, their_lo, their_hi, array, their_lo));
}

static peal_status add_pair(const common_input *c, const pass_context *pass, rank_views *views,
                            condition_table *conditions, rank_view *v, const peal_statement *s,
                            int k)
{
    pair_messages pair = {0};
    reduction_plan plan;
    peal_status status = plan_reduction(c, pass, v, s, 0, &plan);
    int peer = rank_of(&plan, k);
    if (!status)
        status = view_member(c, pass, views, conditions, v, s, peer);
    for (int i = 0; !status && i < s->u.reduce.item_count; i++) {
        status = plan_reduction(c, pass, v, s, i, &plan);
        if (!status)
            item_pieces(c, pass, v, s, i, &plan, k, &pair);
    }
    for (int phase = 0; !status && phase < 2; phase++)
        for (int outgoing = 1; outgoing >= 0; outgoing--) {
            rank_message *m = &pair.shot[phase][outgoing];
            m->outgoing = outgoing;
            m->statement = s->id;
            m->phase = phase;
            m->part = phase ? " (second shot)" : "";
            m->peer = peer;
            if (m->piece_count)
                add_message(pass, v, *m);
        }
    return status;
}

/* Up on a level, from the child into a row of its leader, and down again: peer is the other one. */
static peal_status add_branch(const common_input *c, const pass_context *pass, rank_views *views,
                              condition_table *conditions, rank_view *v, const peal_statement *s,
                              int peer, bool i_lead, int level, int row)
{
    int levels = v->statement[s->id].levels;
    rank_message up = {.outgoing = !i_lead, .statement = s->id, .phase = level, .peer = peer};
    rank_message down = {.outgoing = i_lead,
                         .statement = s->id,
                         .phase = 2 * levels - 1 - level,
                         .peer = peer};
    peal_status status = view_member(c, pass, views, conditions, v, s, peer);
    for (int i = 0; !status && i < s->u.reduce.item_count; i++) {
        int array = s->u.reduce.item[i].array, hidden = c->statement_hidden[s->id] + i;
        int64_t count = v->layout[array].stored.hi[0];
        if (!count)
            continue;
        add_piece(c, pass, &up, line_piece(array, 0, count, hidden, row * count));
        add_piece(c, pass, &down, line_piece(array, 0, count, array, 0));
    }
    up.part = peal_arena_print(pass->arena, " (up %d)", level);
    down.part = peal_arena_print(pass->arena, " (down %d)", level);
    if (status || !up.piece_count)
        return status;
    add_message(pass, v, up);
    add_message(pass, v, down);
    return status;
}

static peal_status add_tree(const common_input *c, const pass_context *pass, rank_views *views,
                            condition_table *conditions, rank_view *v, const peal_statement *s,
                            const reduction_plan *plan)
{
    peal_status status = PEAL_STATUS_OK;
    for (int level = 0; !status && level < plan->levels; level++) {
        int unit = (int)unit_of(level), row = plan->me / unit % WIDTH;
        if (row)
            return add_branch(c, pass, views, conditions, v, s,
                              rank_of(plan, plan->me - row * unit), false, level, row);
        for (int k = 1; !status && k < contributors(plan, level); k++)
            status = add_branch(c, pass, views, conditions, v, s,
                                rank_of(plan, plan->me + k * unit), true, level, k);
    }
    return status;
}

/* My own contribution to what I fold: a copy, on every level of a tree that I lead. */
static void add_own(const common_input *c, const pass_context *pass, rank_view *v,
                    const peal_statement *s)
{
    rank_message mine = {0};
    for (int i = 0; i < s->u.reduce.item_count; i++) {
        int array = s->u.reduce.item[i].array, hidden = c->statement_hidden[s->id] + i;
        const peal_schedule_task *t = &v->task[v->statement[s->id].task + i];
        reduction_plan plan;
        if (t->hi > t->lo && !plan_reduction(c, pass, v, s, i, &plan))
            add_piece(c, pass, &mine,
                      line_piece(array, t->lo, t->hi, hidden,
                                 plan.levels ? 0 : plan.me * (t->hi - t->lo)));
    }
    v->local[s->id] = mine.piece;
    v->local_count[s->id] = mine.piece_count;
}

/* The messages of a reduction between this rank and each other member, and its own contribution. */
peal_status add_reduction_messages(const common_input *c, const pass_context *pass,
                                   rank_views *views, condition_table *conditions, rank_view *v,
                                   const peal_statement *s)
{
    reduction_plan plan;
    peal_status status = plan_reduction(c, pass, v, s, 0, &plan);
    if (status)
        return status;
    add_own(c, pass, v, s);
    if (plan.levels)
        return add_tree(c, pass, views, conditions, v, s, &plan);
    for (int k = 0; !status && k < plan.member_count; k++)
        if (k != plan.me)
            status = add_pair(c, pass, views, conditions, v, s, k);
    return status;
}
