/* Dependences between tiles, in closed form: which tiles of an earlier op a tile of a later one
 * waits for.
 *
 * Two ops depend on each other where one writes what the other touches. Between two ops with no
 * swap of the array's group on the path from one to the other, arrays are compared by name; where a
 * swap may lie on the path, all arrays of the group may be the same memory. The latest instance of
 * A before B (lag 0) is compared along the short path; older instances all lie behind a swap if
 * there is one, so one more dependence of lag 1 covers them: each tile of A finishes its instances
 * in order. Tiles of one launch run in any order, so of its border and its rest the one that comes
 * later waits for older instances of the other only. */
#include "base/expression.h"
#include "scheduler/geometry/geometry.h"
#include "scheduler/lower/candidates.h"

#include <string.h>

/* Conditions that are compared with each other. */
enum { CONDITIONS = 64 };

/* What is looked at first of a touch, side by side. */
typedef struct touch_mark {
    int array; /* or group */
    bool write;
} touch_mark;

typedef struct dependence_pass {
    const common_input *c;
    const pass_context *pass;
    rank_view *v;
    lowered_op *op;
    int count, step_first, step_end;
    op_region *region;
    int *outermost; /* by op: the outermost LOOP op around it; -1 */
    candidates *candidates;
    touch_mark *mark; /* of all touches, by op */
    int *first_mark;  /* by op */
    op_touch *swap;   /* of groups, by group, then op */
    int swap_count;
    peal_dependence *found;
    int found_count, found_capacity;
    int found_first; /* of those on the op that is looked at */
} dependence_pass;

static bool swap_between(const dependence_pass *p, int group, int first, int end)
{
    int at = find_op_touch(p->swap, p->swap_count, group, first);
    return at < p->swap_count && p->swap[at].array == group && p->swap[at].op < end;
}

/* Whether a swap of the group may lie on the path from the latest instance of A to B. */
static bool path_may_swap(const dependence_pass *p, int a, int b, int group)
{
    if (group < 0)
        return false;
    bool nearby = p->region[a].loop == p->region[b].loop && !p->region[a].when && a < b;
    return nearby ? swap_between(p, group, a, b) : swap_between(p, group, 0, p->count);
}

static bool same_map(const peal_dependence *x, const peal_dependence *y)
{
    return x->op == y->op && x->lag == y->lag && x->b_tiling == y->b_tiling &&
           x->a_tiling == y->a_tiling;
}

/* Whether y's tiles are among x's, for every tile of B. */
static bool covers(const peal_dependence *x, const peal_dependence *y)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        const peal_map_axis *mx = &x->map[k], *my = &y->map[k];
        if (mx->first > my->first || mx->last < my->last)
            return false;
        bool everything =
            mx->step == 0 && mx->divisor == 1 && mx->low <= my->first && mx->high >= my->last;
        if (everything)
            continue;
        if (mx->b_axis != my->b_axis || mx->step != my->step || mx->divisor != my->divisor ||
            mx->low > my->low || mx->high < my->high)
            return false;
    }
    return true;
}

/* Those on one op are found one after the other. */
static void add_dependence(dependence_pass *p, const peal_dependence *d)
{
    int kept = p->found_first;
    for (int i = p->found_first; i < p->found_count; i++)
        if (same_map(&p->found[i], d) && covers(&p->found[i], d))
            return;
    for (int i = p->found_first; i < p->found_count; i++)
        if (!(same_map(&p->found[i], d) && covers(d, &p->found[i])))
            p->found[kept++] = p->found[i];
    p->found_count = kept;
    PEAL_ARENA_ROOM(p->pass->arena, p->found, p->found_count, p->found_capacity);
    p->found[p->found_count++] = *d;
}

static const peal_tiling *tiling_of(const dependence_pass *p, const lowered_op *o, const touch *t)
{
    return t->tiling < 0 ? NULL : &p->v->task[o->op.task].tiling[t->tiling];
}

static const peal_tile_range *range_of(const lowered_op *o, const touch *t)
{
    return t->tiling < 0 ? NULL : &o->op.range[t->range];
}

/* A fixed touch of a launch with many tiles is made by each of them. */
static bool add_all(dependence_pass *p, int a, int lag)
{
    const lowered_op *oa = &p->op[a];
    if (oa->op.kind != PEAL_OP_LAUNCH || p->v->task[oa->op.task].tile_count == 1)
        return false;
    for (int r = 0; r < oa->op.range_count; r++) {
        peal_dependence d = {.op = a,
                             .lag = lag,
                             .b_tiling = -1,
                             .a_tiling = oa->op.range[r].tiling};
        for (int k = 0; k < PEAL_AXES; k++) {
            int64_t first = oa->op.range[r].lo[k], last = oa->op.range[r].hi[k] - 1;
            d.map[k] = (peal_map_axis){-1, 0, first, last, 1, first, last};
        }
        add_dependence(p, &d);
    }
    return true;
}

static void depend(dependence_pass *p, int a, const touch *ta, int b, const touch *tb, int lag)
{
    const lowered_op *oa = &p->op[a], *ob = &p->op[b];
    peal_dependence d = {.op = a,
                         .lag = lag,
                         .b_tiling = tb->tiling,
                         .a_tiling = ta->tiling < 0 ? 0 : ta->tiling};
    if (oa->op.kind == PEAL_OP_LAUNCH && ob->op.kind == PEAL_OP_LAUNCH &&
        oa->op.task == ob->op.task && ta->per_tile && ta->per_tile == tb->per_tile)
        return;
    if (ta->tiling < 0 && add_all(p, a, lag))
        return;
    if (map_tiles(ta, tiling_of(p, oa, ta), range_of(oa, ta), tb, tiling_of(p, ob, tb),
                  range_of(ob, tb), d.map))
        add_dependence(p, &d);
}

static bool share_loop(const dependence_pass *p, int a, int b)
{
    int low = a < b ? a : b, high = a < b ? b : a;
    if (low >= p->step_first && high < p->step_end)
        return true;
    return p->outermost[a] >= 0 && p->outermost[a] == p->outermost[b];
}

static void compare(dependence_pass *p, int a, int b, const touch *tb)
{
    const lowered_op *oa = &p->op[a];
    const touch_mark *mark = p->mark + p->first_mark[a];
    int group = group_of(p->c, tb->array), array = group >= 0 ? group : tb->array;
    bool is_older = a < b && share_loop(p, a, b); /* there are older instances of A */
    bool is_one_launch = a < b && are_one_launch(oa, &p->op[b]);
    for (int i = 0; i < oa->touch_count; i++) {
        if (mark[i].array != array || (!mark[i].write && !tb->write))
            continue;
        const touch *ta = &oa->touch[i];
        bool is_same = ta->array == tb->array || path_may_swap(p, a, b, group);
        if (is_same && !is_one_launch)
            depend(p, a, ta, b, tb, 0);
        else if (is_older && (is_same || swap_between(p, group, 0, p->count)))
            depend(p, a, ta, b, tb, 1);
    }
}

/* Whether an instance of A can come before one of B. */
static bool can_precede(const dependence_pass *p, int a, int b)
{
    return a < b || (a >= p->step_first && b >= p->step_first && a < p->step_end) ||
           share_loop(p, a, b);
}

/* The number of an IF's condition: that of an earlier IF with the same one, if it has one value in
 * an iteration; else its own. */
static int number_condition(const dependence_pass *p, int op, int *first, int *count)
{
    const peal_expr *condition = p->op[op].op.condition;
    if (!condition || (peal_expr_uses(condition) & PEAL_USES_ELEMENT))
        return -1 - op;
    for (int i = 0; i < *count; i++)
        if (peal_expr_equal(p->op[first[i]].op.condition, condition))
            return 1 + first[i];
    if (*count < CONDITIONS)
        first[(*count)++] = op;
    return 1 + op;
}

static void find_regions(dependence_pass *p)
{
    p->region = PEAL_ARENA_ARRAY(p->pass->arena, op_region, p->count);
    p->outermost = PEAL_ARENA_ARRAY(p->pass->arena, int, p->count);
    op_region *stack = PEAL_ARENA_ARRAY(p->pass->arena, op_region, p->count + 1);
    int first[CONDITIONS], conditions = 0, depth = 0, outermost = -1;
    for (int i = 0; i < p->count; i++) {
        const peal_op *op = &p->op[i].op;
        if (outermost >= 0 && p->op[outermost].op.end == i)
            outermost = -1;
        p->outermost[i] = outermost;
        if (outermost < 0 && op->kind == PEAL_OP_LOOP)
            outermost = i;
        stack[0] = (op_region){i >= p->step_first && i < p->step_end ? IN_STEP : IN_SECTION, 0};
        if (op->kind == PEAL_OP_END)
            depth--;
        p->region[i] = stack[depth];
        if (op->kind == PEAL_OP_LOOP)
            stack[++depth] = (op_region){i, 0};
        if (op->kind == PEAL_OP_IF) {
            int when = stack[depth].when ? -1 - i : number_condition(p, i, first, &conditions);
            stack[depth + 1] = (op_region){stack[depth].loop, when};
            depth++;
        }
    }
}

static void note_marks(dependence_pass *p)
{
    int count = 0, swaps = 0;
    for (int i = 0; i < p->count; i++) {
        count += p->op[i].touch_count;
        swaps += p->op[i].op.kind == PEAL_OP_SWAP;
    }
    p->swap = PEAL_ARENA_ARRAY(p->pass->arena, op_touch, swaps + 1);
    p->mark = PEAL_ARENA_ARRAY(p->pass->arena, touch_mark, count + 1);
    p->first_mark = PEAL_ARENA_ARRAY(p->pass->arena, int, p->count);
    for (int i = 0, n = 0; i < p->count; i++) {
        p->first_mark[i] = n;
        for (int k = 0; k < p->op[i].touch_count; k++, n++) {
            const touch *t = &p->op[i].touch[k];
            p->mark[n] = (touch_mark){array_or_group(p->c, t->array), t->write};
        }
        if (p->op[i].op.kind == PEAL_OP_SWAP)
            p->swap[p->swap_count++] = (op_touch){p->c->swap_group[p->op[i].op.first], i};
    }
    p->swap_count = sort_op_touches(p->swap, swaps);
}

static void find_for(dependence_pass *p, int b)
{
    lowered_op *ob = &p->op[b];
    p->found_count = 0;
    if (ob->waits_for_nothing)
        return;
    int candidate_count;
    const int *candidate = find_candidates(p->candidates, b, &candidate_count);
    for (int n = 0; n < candidate_count; n++) {
        int a = candidate[n];
        p->found_first = p->found_count;
        if (!can_precede(p, a, b))
            continue;
        for (int i = 0; i < ob->touch_count; i++)
            compare(p, a, b, &ob->touch[i]);
        for (int i = 0; i < ob->extra_count; i++)
            compare(p, a, b, &ob->extra[i]);
    }
    if (!p->found_count)
        return;
    peal_dependence *kept = PEAL_ARENA_ARRAY(p->pass->arena, peal_dependence, p->found_count);
    memcpy(kept, p->found, (size_t)p->found_count * sizeof(*kept));
    ob->op.dependence = kept;
    ob->op.dependence_count = p->found_count;
}

void make_dependences(const common_input *c, const pass_context *pass, rank_view *v, lowered_op *op,
                      int count, int step_first, int step_end)
{
    dependence_pass p = {.c = c,
                         .pass = pass,
                         .v = v,
                         .op = op,
                         .count = count,
                         .step_first = step_first,
                         .step_end = step_end};
    find_regions(&p);
    note_marks(&p);
    p.candidates = begin_candidates(&(candidates_of){.c = c,
                                                     .pass = pass,
                                                     .op = op,
                                                     .count = count,
                                                     .step_first = step_first,
                                                     .step_end = step_end,
                                                     .region = p.region,
                                                     .swap = p.swap,
                                                     .swap_count = p.swap_count});
    for (int b = 0; b < count; b++)
        if (op[b].same_as >= 0) {
            op[b].op.dependence = op[op[b].same_as].op.dependence;
            op[b].op.dependence_count = op[op[b].same_as].op.dependence_count;
        } else if (op[b].touch_count || op[b].extra_count)
            find_for(&p, b);
}
