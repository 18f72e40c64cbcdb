/* Reductions over ranks: contributions travel as messages into a hidden array, one row a
 * contributor, and are folded by a COMBINE task in the tree of ranks.
 *
 * One shot: everyone (or the root) gets all contributions and folds them. Long vectors in two
 * shots: each rank gets and folds a slice, then sends the result to all. The order of the fold is
 * the same. */
#include "scheduler/compilation.h"

enum { TWO_SHOT_BYTES = 8192 };

static bool in_my_row(const peal_compilation *c, const rank_view *v, int rank, int along)
{
    int left = rank;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        if (k != along && left % c->dims[k] != v->position[k])
            return false;
        left /= c->dims[k];
    }
    return true;
}

peal_status plan_reduction(peal_compilation *c, rank_view *v, const peal_statement *s,
                           int64_t count, size_t bytes, reduction_plan *out)
{
    const peal_rank_reduction *r = &s->u.reduce;
    int64_t root = -1;
    peal_status status = peal_expr_integer(r->root, &v->scope, -1, &root, c->diagnostics);
    if (status)
        return status;
    if (r->root && (root < 0 || root >= c->machine.ranks))
        return peal_report(c->diagnostics, PEAL_E135, r->root->source,
                           "name a rank from 0 to ranks - 1", "there is no rank %lld among %d",
                           (long long)root, c->machine.ranks);
    reduction_plan plan = {.me = -1, .root = (int)root};
    plan.member = PEAL_ARENA_ARRAY(c->arena, int, c->machine.ranks);
    for (int rank = 0; rank < c->machine.ranks; rank++)
        if (r->along < 0 || in_my_row(c, v, rank, r->along)) {
            if (rank == v->rank)
                plan.me = plan.member_count;
            plan.member[plan.member_count++] = rank;
        }
    plan.two_shot = !r->root && plan.member_count > 2 && count * (int64_t)bytes >= TWO_SHOT_BYTES;
    *out = plan;
    return PEAL_STATUS_OK;
}

static int64_t slice_start(const reduction_plan *plan, int64_t count, int member)
{
    return plan->two_shot ? count * member / plan->member_count : 0;
}

static int64_t slice_end(const reduction_plan *plan, int64_t count, int member)
{
    return plan->two_shot ? count * (member + 1) / plan->member_count : count;
}

static peal_status check_item(peal_compilation *c, const rank_view *v, const peal_reduction *item)
{
    (void)v;
    if (is_plain_buffer(c, item->array))
        return PEAL_STATUS_OK;
    return peal_report(c->diagnostics, PEAL_E135, item->source, "reduce a buffer without `box`",
                       "`%s` is not a plain buffer", array_name(c, item->array));
}

peal_status make_reduction(peal_compilation *c, rank_view *v, const peal_statement *s)
{
    for (int i = 0; i < s->u.reduce.item_count; i++) {
        const peal_reduction *item = &s->u.reduce.item[i];
        int hidden = c->statement_hidden[s->id] + i;
        int64_t count = v->layout[item->array].stored.hi[0];
        peal_type type = array_type(c, item->array);
        reduction_plan plan;
        peal_status status = check_item(c, v, item);
        if (!status)
            status = plan_reduction(c, v, s, count, peal_type_bytes(type), &plan);
        if (status)
            return status;
        bool folds = plan.root < 0 || plan.root == v->rank;
        int64_t lo = slice_start(&plan, count, plan.me), hi = slice_end(&plan, count, plan.me),
                rows;
        if (peal_multiply_overflows(hi - lo, plan.member_count, &rows))
            return peal_report(c->diagnostics, PEAL_E120, item->source, NULL,
                               "the reduction overflows");
        peal_box stored = {.axis_count = 1, .hi = {folds ? rows : 0, 1, 1, 1}};
        status = set_dense_layout(c, &v->layout[hidden], &stored, type, s->source, s->name);
        v->layout[hidden].part = v->layout[hidden].own = stored;
        if (status)
            return status;
        int index = add_task(c, v, s, PEAL_TASK_COMBINE);
        if (!i)
            v->statement[s->id].task = index;
        peal_schedule_task *t = &v->task[index];
        t->array = item->array;
        t->gather = hidden;
        t->lo = lo;
        t->hi = folds ? hi : lo;
        t->contributions = plan.member_count;
        t->combine = item->combine;
    }
    return PEAL_STATUS_OK;
}

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

typedef struct pair_messages {
    rank_message shot[2][2]; /* by phase, outgoing */
} pair_messages;

static peal_status item_pieces(peal_compilation *c, rank_view *v, const peal_statement *s, int i,
                               int peer, pair_messages *out, rank_message *mine)
{
    const peal_reduction *item = &s->u.reduce.item[i];
    int hidden = c->statement_hidden[s->id] + i, array = item->array;
    int64_t count = v->layout[array].stored.hi[0];
    reduction_plan p;
    peal_status status = plan_reduction(c, v, s, count, peal_type_bytes(array_type(c, array)), &p);
    if (status)
        return status;
    int64_t lo = slice_start(&p, count, p.me), hi = slice_end(&p, count, p.me);
    bool i_fold = p.root < 0 || p.root == v->rank;
    if (mine && i_fold && hi > lo)
        add_piece(c, mine, line_piece(array, lo, hi, hidden, p.me * (hi - lo)));
    for (int k = 0; k < p.member_count; k++) {
        if (mine || p.member[k] != peer)
            continue;
        rank_view *other = view_at(c, peer, 1);
        if (!other)
            return c->view[peer]->status;
        if (other->layout[array].stored.hi[0] != count)
            return peal_report(c->diagnostics, PEAL_E135, item->source,
                               "give the buffer the same count on all ranks",
                               "`%s` has %lld elements on rank %d and %lld on rank %d",
                               array_name(c, array), (long long)count, v->rank,
                               (long long)other->layout[array].stored.hi[0], peer);
        int64_t their_lo = slice_start(&p, count, k), their_hi = slice_end(&p, count, k);
        bool they_fold = p.root < 0 || p.root == peer;
        if (they_fold && their_hi > their_lo)
            add_piece(c, &out->shot[0][1],
                      line_piece(array, their_lo, their_hi, hidden, p.me * (their_hi - their_lo)));
        if (i_fold && hi > lo)
            add_piece(c, &out->shot[0][0], line_piece(array, lo, hi, hidden, k * (hi - lo)));
        if (p.two_shot && hi > lo)
            add_piece(c, &out->shot[1][1], line_piece(array, lo, hi, array, lo));
        if (p.two_shot && their_hi > their_lo)
            add_piece(c, &out->shot[1][0], line_piece(array, their_lo, their_hi, array, their_lo));
    }
    return PEAL_STATUS_OK;
}

/* The messages of a reduction between this rank and each other member, and its own contribution. */
peal_status add_reduction_messages(peal_compilation *c, rank_view *v, const peal_statement *s)
{
    rank_message mine = {0};
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; !status && i < s->u.reduce.item_count; i++)
        status = item_pieces(c, v, s, i, v->rank, NULL, &mine);
    v->local[s->id] = mine.piece;
    v->local_count[s->id] = mine.piece_count;
    for (int peer = 0; !status && peer < c->machine.ranks; peer++) {
        pair_messages pair = {0};
        if (peer == v->rank || !(s->u.reduce.along < 0 || in_my_row(c, v, peer, s->u.reduce.along)))
            continue;
        rank_view *other = view_at(c, peer, 1);
        status = other ? check_partner(c, v, other, s) : c->view[peer]->status;
        for (int i = 0; !status && i < s->u.reduce.item_count; i++)
            status = item_pieces(c, v, s, i, peer, &pair, NULL);
        for (int phase = 0; !status && phase < 2; phase++)
            for (int outgoing = 1; outgoing >= 0; outgoing--) {
                rank_message *m = &pair.shot[phase][outgoing];
                m->outgoing = outgoing;
                m->statement = s->id;
                m->phase = phase;
                m->peer = peer;
                if (m->piece_count)
                    add_message(c, v, *m);
            }
    }
    return status;
}
