/* Reductions over ranks: contributions travel as messages into a hidden array, one row a
 * contributor, and are folded by a COMBINE task in the tree of ranks.
 *
 * One shot: everyone (or the root) gets all contributions and folds them. Long vectors in two
 * shots: each rank gets and folds a slice, then sends the result to all. Many ranks: up a tree, the
 * first of WIDTH neighbouring members folding for them all, and down again, so that a rank talks
 * with few. WIDTH is a power of two, so these folds are subtrees of the tree of ranks: the order of
 * the fold is always the same. */
#include "scheduler/stories/stories.h"

enum {
    TWO_SHOT_BYTES = 8192,
    WIDTH = 16,                /* more members than this climb a tree */
    MOST_TWO_SHOT_MEMBERS = 64 /* with vectors that long, more than this */
};

typedef struct reduction_plan {
    int member_count, me; /* ranks that take part; my number among them */
    int first, stride;    /* member k is rank first + k * stride */
    bool two_shot;
    int levels; /* of the tree; 0: none */
    int root;   /* -1: everyone */
} reduction_plan;

static bool is_long(const peal_compilation *c, const rank_view *v, const peal_reduction *item)
{
    int64_t count = v->layout[item->array].stored.hi[0];
    return count * (int64_t)peal_type_bytes(array_type(c, item->array)) >= TWO_SHOT_BYTES;
}

static void choose_shots(const peal_compilation *c, const rank_view *v, const peal_statement *s,
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

static peal_status plan_reduction(peal_compilation *c, const rank_view *v, const peal_statement *s,
                                  int item, reduction_plan *out)
{
    const peal_rank_reduction *r = &s->u.reduce;
    int64_t root = -1;
    peal_status status = peal_expr_integer(r->root, &v->scope, -1, &root, c->diagnostics);
    if (status)
        return status;
    if (r->root && (root < 0 || root >= c->machine.ranks))
        return peal_report(c->diagnostics, PEAL_E_REDUCTION_MISMATCH, r->root->source,
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

static int rank_of(const reduction_plan *plan, int member)
{
    return plan->first + member * plan->stride;
}

static int64_t slice_start(const reduction_plan *plan, int64_t count, int member)
{
    return plan->two_shot ? count * member / plan->member_count : 0;
}

static int64_t slice_end(const reduction_plan *plan, int64_t count, int member)
{
    return plan->two_shot ? count * (member + 1) / plan->member_count : count;
}

/* Members between the contributors of a level. */
static int64_t unit_of(int level)
{
    int64_t unit = 1;
    while (level-- > 0)
        unit *= WIDTH;
    return unit;
}

/* How many contributions, mine included, I fold on a level of the tree; 0: none. */
static int contributors(const reduction_plan *plan, int level)
{
    int64_t unit = unit_of(level);
    if (plan->me % (unit * WIDTH))
        return 0;
    int64_t below = peal_ceil_divide(plan->member_count - plan->me, unit);
    return below < 2 ? 0 : below < WIDTH ? (int)below : WIDTH;
}

bool reduction_role(peal_compilation *c, const peal_statement *s, int rank, uint64_t *out)
{
    rank_view *first = view_at(c, 0, 1); /* whose vectors are as long as everybody's */
    if (!first || s->u.reduce.root)
        return false;
    rank_view like = *first;
    like.rank = like.scope.rank = rank;
    for (int k = 0, left = rank; k < PEAL_RANK_AXES; left /= c->dims[k++])
        like.position[k] = like.scope.position[k] = left % c->dims[k];
    reduction_plan plan;
    if (plan_reduction(c, &like, s, 0, &plan))
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

static peal_status check_item(peal_compilation *c, const rank_view *v, const peal_reduction *item)
{
    (void)v;
    if (is_plain_buffer(c, item->array))
        return PEAL_STATUS_OK;
    return peal_report(c->diagnostics, PEAL_E_REDUCTION_MISMATCH, item->source,
                       "reduce a buffer without `box`", "`%s` is not a plain buffer",
                       array_name(c, item->array));
}

/* The rows that I fold of an item. */
static peal_status place_gathered(peal_compilation *c, rank_view *v, const peal_statement *s, int i)
{
    const peal_reduction *item = &s->u.reduce.item[i];
    int hidden = c->statement_hidden[s->id] + i;
    int64_t count = v->layout[item->array].stored.hi[0], elements;
    reduction_plan plan;
    peal_status status = check_item(c, v, item);
    if (!status)
        status = plan_reduction(c, v, s, i, &plan);
    if (status)
        return status;
    int rows = plan.levels ? 0 : plan.root < 0 || plan.root == v->rank ? plan.member_count : 0;
    for (int level = 0; level < plan.levels; level++)
        rows = contributors(&plan, level) > rows ? contributors(&plan, level) : rows;
    count = slice_end(&plan, count, plan.me) - slice_start(&plan, count, plan.me);
    if (peal_multiply_overflows(count, rows, &elements))
        return peal_report(c->diagnostics, PEAL_E_SIZE_OUT_OF_RANGE, item->source, NULL,
                           "the reduction overflows");
    peal_box stored = {.axis_count = 1, .hi = {elements, 1, 1, 1}};
    v->layout[hidden].part = v->layout[hidden].own = stored;
    v->statement[s->id].levels = plan.levels;
    return set_dense_layout(c, &v->layout[hidden], &stored, array_type(c, item->array), s->source,
                            s->name);
}

static void add_combine(peal_compilation *c, rank_view *v, const peal_statement *s, int i,
                        int level)
{
    const peal_reduction *item = &s->u.reduce.item[i];
    int64_t count = v->layout[item->array].stored.hi[0];
    reduction_plan plan;
    if (plan_reduction(c, v, s, i, &plan))
        return;
    bool folds = plan.levels     ? contributors(&plan, level) > 0
                 : plan.root < 0 ? true
                                 : plan.root == v->rank;
    int index = add_task(c, v, s, PEAL_TASK_COMBINE);
    peal_schedule_task *t = &v->task[index];
    t->array = item->array;
    t->gather = c->statement_hidden[s->id] + i;
    t->lo = slice_start(&plan, count, plan.me);
    t->hi = folds ? slice_end(&plan, count, plan.me) : t->lo;
    t->contributions = plan.levels ? contributors(&plan, level) : plan.member_count;
    t->combine = item->combine;
    t->reported = array_is_reported(c, item->array);
}

peal_status make_reduction(peal_compilation *c, rank_view *v, const peal_statement *s)
{
    for (int i = 0; i < s->u.reduce.item_count; i++) {
        peal_status status = place_gathered(c, v, s, i);
        if (status)
            return status;
    }
    v->statement[s->id].task = v->task_count;
    int levels = v->statement[s->id].levels;
    for (int level = 0; level < (levels ? levels : 1); level++)
        for (int i = 0; i < s->u.reduce.item_count; i++)
            add_combine(c, v, s, i, level);
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

peal_status report_uneven(peal_compilation *c, const peal_statement *s, const peal_reduction *item,
                          const int rank[2], const int64_t count[2])
{
    peal_story story = {0};
    if (peal_diagnostics_want(c->diagnostics, PEAL_E_REDUCTION_MISMATCH, item->source))
        tell_uneven(c, s, item, rank, count, &story);
    return peal_report_story(c->diagnostics, PEAL_E_REDUCTION_MISMATCH, item->source,
                             "give the buffer the same count on all ranks", &story,
                             "`%s` has %lld elements on rank %d and %lld on rank %d",
                             array_name(c, item->array), (long long)count[0], rank[0],
                             (long long)count[1], rank[1]);
}

/* The view of a member that takes part, with vectors as long as mine. */
static peal_status view_member(peal_compilation *c, const rank_view *v, const peal_statement *s,
                               int rank)
{
    rank_view *other = view_at(c, rank, 1);
    if (!other)
        return c->view[rank]->status;
    peal_status status = check_partner(c, v, other, s);
    for (int i = 0; !status && i < s->u.reduce.item_count; i++) {
        const peal_reduction *item = &s->u.reduce.item[i];
        int64_t count = v->layout[item->array].stored.hi[0],
                theirs = other->layout[item->array].stored.hi[0];
        if (theirs != count)
            status = report_uneven(c, s, item, (const int[]){v->rank, rank},
                                   (const int64_t[]){count, theirs});
    }
    return status;
}

typedef struct pair_messages {
    rank_message shot[2][2]; /* by phase, outgoing */
} pair_messages;

/* What members `me` and k send each other of an item. */
static void item_pieces(peal_compilation *c, const rank_view *v, const peal_statement *s, int i,
                        const reduction_plan *p, int k, pair_messages *out)
{
    int array = s->u.reduce.item[i].array, hidden = c->statement_hidden[s->id] + i;
    int64_t count = v->layout[array].stored.hi[0];
    int64_t lo = slice_start(p, count, p->me), hi = slice_end(p, count, p->me);
    int64_t their_lo = slice_start(p, count, k), their_hi = slice_end(p, count, k);
    bool i_fold = p->root < 0 || p->root == v->rank;
    bool they_fold = p->root < 0 || p->root == rank_of(p, k);
    if (they_fold && their_hi > their_lo)
        add_piece(c, &out->shot[0][1],
                  line_piece(array, their_lo, their_hi, hidden, p->me * (their_hi - their_lo)));
    if (i_fold && hi > lo)
        add_piece(c, &out->shot[0][0], line_piece(array, lo, hi, hidden, k * (hi - lo)));
    if (p->two_shot && hi > lo)
        add_piece(c, &out->shot[1][1], line_piece(array, lo, hi, array, lo));
    if (p->two_shot && their_hi > their_lo)
        add_piece(c, &out->shot[1][0], line_piece(array, their_lo, their_hi, array, their_lo));
}

static peal_status add_pair(peal_compilation *c, rank_view *v, const peal_statement *s, int k)
{
    pair_messages pair = {0};
    reduction_plan plan;
    peal_status status = plan_reduction(c, v, s, 0, &plan);
    int peer = rank_of(&plan, k);
    if (!status)
        status = view_member(c, v, s, peer);
    for (int i = 0; !status && i < s->u.reduce.item_count; i++) {
        status = plan_reduction(c, v, s, i, &plan);
        if (!status)
            item_pieces(c, v, s, i, &plan, k, &pair);
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
                add_message(c, v, *m);
        }
    return status;
}

/* Up on a level, from the child into a row of its leader, and down again: peer is the other one. */
static peal_status add_branch(peal_compilation *c, rank_view *v, const peal_statement *s, int peer,
                              bool i_lead, int level, int row)
{
    int levels = v->statement[s->id].levels;
    rank_message up = {.outgoing = !i_lead, .statement = s->id, .phase = level, .peer = peer};
    rank_message down = {.outgoing = i_lead,
                         .statement = s->id,
                         .phase = 2 * levels - 1 - level,
                         .peer = peer};
    peal_status status = view_member(c, v, s, peer);
    for (int i = 0; !status && i < s->u.reduce.item_count; i++) {
        int array = s->u.reduce.item[i].array, hidden = c->statement_hidden[s->id] + i;
        int64_t count = v->layout[array].stored.hi[0];
        if (!count)
            continue;
        add_piece(c, &up, line_piece(array, 0, count, hidden, row * count));
        add_piece(c, &down, line_piece(array, 0, count, array, 0));
    }
    up.part = peal_arena_print(c->arena, " (up %d)", level);
    down.part = peal_arena_print(c->arena, " (down %d)", level);
    if (status || !up.piece_count)
        return status;
    add_message(c, v, up);
    add_message(c, v, down);
    return status;
}

static peal_status add_tree(peal_compilation *c, rank_view *v, const peal_statement *s,
                            const reduction_plan *plan)
{
    peal_status status = PEAL_STATUS_OK;
    for (int level = 0; !status && level < plan->levels; level++) {
        int unit = (int)unit_of(level), row = plan->me / unit % WIDTH;
        if (row)
            return add_branch(c, v, s, rank_of(plan, plan->me - row * unit), false, level, row);
        for (int k = 1; !status && k < contributors(plan, level); k++)
            status = add_branch(c, v, s, rank_of(plan, plan->me + k * unit), true, level, k);
    }
    return status;
}

/* My own contribution to what I fold: a copy, on every level of a tree that I lead. */
static void add_own(peal_compilation *c, rank_view *v, const peal_statement *s)
{
    rank_message mine = {0};
    for (int i = 0; i < s->u.reduce.item_count; i++) {
        int array = s->u.reduce.item[i].array, hidden = c->statement_hidden[s->id] + i;
        const peal_schedule_task *t = &v->task[v->statement[s->id].task + i];
        reduction_plan plan;
        if (t->hi > t->lo && !plan_reduction(c, v, s, i, &plan))
            add_piece(c, &mine,
                      line_piece(array, t->lo, t->hi, hidden,
                                 plan.levels ? 0 : plan.me * (t->hi - t->lo)));
    }
    v->local[s->id] = mine.piece;
    v->local_count[s->id] = mine.piece_count;
}

/* The messages of a reduction between this rank and each other member, and its own contribution. */
peal_status add_reduction_messages(peal_compilation *c, rank_view *v, const peal_statement *s)
{
    reduction_plan plan;
    peal_status status = plan_reduction(c, v, s, 0, &plan);
    if (status)
        return status;
    add_own(c, v, s);
    if (plan.levels)
        return add_tree(c, v, s, &plan);
    for (int k = 0; !status && k < plan.member_count; k++)
        if (k != plan.me)
            status = add_pair(c, v, s, k);
    return status;
}
