/* The messages of all ranks in program order. Of a loop that a late send encloses iterations are
 * told apart, and what is known of one before the run (counters, rank) decides what happens in it.
 */
#include "scheduler/check/replay.h"

#include <string.h>

enum {
    MOST_OCCURRENCES = 1 << 23,
    MOST_IN_FULL = 1 << 20, /* where all iterations of loops are replayed */
    MOST_ITERATIONS = 1 << 16
};

/* Iterations of loops that a late send encloses. */
typedef struct iteration_limits {
    int outer; /* of one that stands in no other such loop */
    int inner; /* of one that does */
    int full;  /* of one whose counter decides what happens in it */
} iteration_limits;

/* ---- How many iterations ---- */

static bool names_counter(const peal_expr *e, int depth)
{
    bool names = e && e->kind == PEAL_EXPR_COUNTER && e->index == depth;
    for (int i = 0; e && i < e->operand_count && !names; i++)
        names = names_counter(e->operand[i], depth);
    return names;
}

static bool counter_decides(const peal_body *body, int depth)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        bool loops = s->kind == PEAL_STATEMENT_REPEAT;
        if (names_counter(s->when, depth) || (loops && (names_counter(s->u.loop.repeat, depth) ||
                                                        counter_decides(&s->u.loop.body, depth))))
            return true;
    }
    return false;
}

static void set_rounds(replay *r, const peal_body *body, bool enclosed,
                       const iteration_limits *limits)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        r->unrolled[s->id] = enclosed;
        r->rounds[s->id] = 0;
        if (s->kind != PEAL_STATEMENT_REPEAT || !has_messages(s))
            continue;
        const peal_loop *loop = &s->u.loop;
        bool within = enclosed || late_send_around(r->c, s) >= 0;
        bool decides = within && counter_decides(&loop->body, loop->depth);
        int most = enclosed ? limits->inner : limits->outer;
        if (decides && limits->full > most)
            most = limits->full;
        int64_t rounds = within ? most_iterations(r->conditions, s, most) : 1;
        r->rounds[s->id] = rounds < 0 ? most : rounds < 1 ? 1 : (int)rounds;
        bool enough = !decides && most > r->c->machine.ranks;
        if (within && rounds < 0 && !enough && !r->missed)
            r->missed = s->id;
        set_rounds(r, &loop->body, within, limits);
    }
}

/* ---- What happens ---- */

typedef enum truth { NEVER, PERHAPS, ALWAYS } truth;

typedef struct unrolling {
    replay *r;
    rank_view *v;
    const int *first; /* by statement, in the view's program order */
    peal_scope scope;
    int64_t *counter; /* by depth */
    bool *known;      /* by depth: the counter has a value */
    int *seen;        /* by message */
    rank_order *out;  /* NULL: occurrences are counted */
    int64_t count;
    bool within; /* a loop that is unrolled */
} unrolling;

static bool is_known(const unrolling *u, const peal_expr *e)
{
    if (e->kind == PEAL_EXPR_ELEMENT)
        return false;
    if (e->kind == PEAL_EXPR_COUNTER && !u->known[e->index]) {
        u->r->names_step |= e->index == 0 && u->within;
        return false;
    }
    for (int i = 0; i < e->operand_count; i++)
        if (!is_known(u, e->operand[i]))
            return false;
    return true;
}

static truth truth_of(const unrolling *u, const peal_expr *e)
{
    bool value = true;
    if (!e)
        return ALWAYS;
    if (e->kind == PEAL_EXPR_OPERATOR &&
        (e->op == PEAL_OPERATOR_AND || e->op == PEAL_OPERATOR_OR)) {
        bool both = e->op == PEAL_OPERATOR_AND;
        truth all = both ? ALWAYS : NEVER;
        for (int i = 0; i < e->operand_count; i++) {
            truth one = truth_of(u, e->operand[i]);
            all = (both ? one < all : one > all) ? one : all;
        }
        return all;
    }
    if (!is_known(u, e) || peal_expr_boolean(e, &u->scope, true, &value, NULL))
        return PERHAPS;
    return value ? ALWAYS : NEVER;
}

/* Whether a loop comes to iteration k. */
static truth comes_to(const unrolling *u, const peal_loop *loop, int64_t k)
{
    int64_t repeat = 1;
    if (loop->repeat && (!is_known(u, loop->repeat) ||
                         peal_expr_integer(loop->repeat, &u->scope, 1, &repeat, NULL)))
        return PERHAPS;
    if (k >= repeat)
        return NEVER;
    return loop->until && k > 0 ? PERHAPS : ALWAYS;
}

/* ---- In program order ---- */

static void take_messages(unrolling *u, int statement, truth happens)
{
    for (int k = u->first[statement]; k < u->first[statement + 1]; k++, u->count++) {
        int message = u->v->program_order[k], round = u->seen[message]++;
        rank_order *out = u->out;
        if (!out)
            continue;
        out->place[out->start[message] + round] = happens == NEVER ? -1 : out->count;
        if (happens != NEVER)
            out->item[out->count++] = (occurrence){message, round, happens == ALWAYS};
    }
}

static void unroll(unrolling *u, const peal_body *body, truth around);

static void unroll_loop(unrolling *u, const peal_statement *s, truth around)
{
    const peal_loop *loop = &s->u.loop;
    bool before = u->within;
    bool within = before || late_send_around(u->r->c, s) >= 0;
    for (int k = 0; k < u->r->rounds[s->id] && u->count <= MOST_OCCURRENCES; k++) {
        u->within = within;
        truth comes = within ? comes_to(u, loop, k) : PERHAPS;
        u->known[loop->depth] = within;
        u->counter[loop->depth] = k;
        unroll(u, &loop->body, comes < around ? comes : around);
        u->known[loop->depth] = false;
        u->within = before;
    }
}

static void unroll(unrolling *u, const peal_body *body, truth around)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        truth own = u->out ? truth_of(u, s->when) : PERHAPS;
        truth happens = own < around ? own : around;
        if (s->kind == PEAL_STATEMENT_REPEAT)
            unroll_loop(u, s, happens);
        take_messages(u, s->id, happens);
    }
}

static int64_t unroll_all(unrolling *u)
{
    const peal_graph_data *g = u->r->c->graph;
    u->count = 0;
    memset(u->seen, 0, (size_t)(u->v->message_count + 1) * sizeof(*u->seen));
    unroll(u, &g->setup, ALWAYS);
    u->known[0] = u->r->at_step >= 0;
    u->counter[0] = u->r->at_step;
    unroll(u, &g->step.body, ALWAYS);
    u->known[0] = false;
    unroll(u, &g->finish, ALWAYS);
    return u->count;
}

/* Where the messages of each statement begin in program order. */
static const int *first_messages(const replay *r, const rank_view *v)
{
    int statements = r->c->graph->statement_count;
    int *first = PEAL_ARENA_ARRAY(r->pass->arena, int, statements + 2);
    for (int i = 0; i < v->message_count; i++)
        first[v->message[i].own_statement + 1]++;
    for (int i = 0; i <= statements; i++)
        first[i + 1] += first[i];
    return first;
}

static int deepest(const peal_body *body)
{
    int depth = 0;
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        int own = s->kind == PEAL_STATEMENT_REPEAT ? deepest(&s->u.loop.body) : 0;
        if (s->kind == PEAL_STATEMENT_REPEAT && s->u.loop.depth > own)
            own = s->u.loop.depth;
        depth = own > depth ? own : depth;
    }
    return depth;
}

static unrolling begin(replay *r, int rank)
{
    const peal_graph_data *g = r->c->graph;
    rank_view *v = r->views->of[rank];
    int depth = deepest(&g->setup);
    depth = deepest(&g->step.body) > depth ? deepest(&g->step.body) : depth;
    depth = deepest(&g->finish) > depth ? deepest(&g->finish) : depth;
    unrolling u = {.r = r,
                   .v = v,
                   .first = first_messages(r, v),
                   .scope = v->scope,
                   .counter = PEAL_ARENA_ARRAY(r->pass->arena, int64_t, depth + 1),
                   .known = PEAL_ARENA_ARRAY(r->pass->arena, bool, depth + 1),
                   .seen = PEAL_ARENA_ARRAY(r->pass->arena, int, v->message_count + 1)};
    u.scope.counter = u.counter;
    u.scope.counter_count = depth + 1;
    return u;
}

static int64_t count_all(replay *r, unrolling *u, const iteration_limits *limits)
{
    const peal_graph_data *g = r->c->graph;
    int64_t all = 0;
    r->missed = 0;
    set_rounds(r, &g->setup, false, limits);
    set_rounds(r, &g->step.body, false, limits);
    set_rounds(r, &g->finish, false, limits);
    for (int rank = 0; rank < r->c->machine.ranks && all <= MOST_OCCURRENCES; rank++)
        all += unroll_all(&u[rank]);
    return all;
}

/* As many iterations as there are ranks are enough where conditions are the same in all; where they
 * are not, all are replayed. Where that is too much, first fewer of these, then fewer of loops
 * within loops, then fewer of all: then a circle through very many ranks or iterations may be
 * missed, which is said (r->missed), and which a run finds by its deadline. */
static void limit_iterations(replay *r, unrolling *u)
{
    int enough = r->c->machine.ranks + 1;
    iteration_limits limits = {enough, enough, MOST_ITERATIONS};
    int64_t all = count_all(r, u, &limits);
    while (all > MOST_IN_FULL && limits.full > enough) {
        limits.full = limits.full / 4 > enough ? limits.full / 4 : enough;
        all = count_all(r, u, &limits);
    }
    while (all > MOST_OCCURRENCES && limits.inner > 2) {
        limits.inner = limits.inner / 2 > 2 ? limits.inner / 2 : 2;
        all = count_all(r, u, &limits);
    }
    while (all > MOST_OCCURRENCES && limits.outer > 2) {
        limits.outer = limits.outer / 2 > 2 ? limits.outer / 2 : 2;
        limits.full = limits.outer;
        all = count_all(r, u, &limits);
    }
}

void set_orders(replay *r)
{
    peal_arena *arena = r->pass->arena;
    int ranks = r->c->machine.ranks;
    unrolling *u = PEAL_ARENA_ARRAY(arena, unrolling, ranks);
    for (int rank = 0; rank < ranks; rank++)
        u[rank] = begin(r, rank);
    if (!r->limited)
        limit_iterations(r, u);
    r->limited = true;
    r->names_step = false;
    for (int rank = 0; rank < ranks; rank++) {
        rank_order *out = &r->order[rank];
        int messages = u[rank].v->message_count;
        int count = (int)unroll_all(&u[rank]);
        *out = (rank_order){.item = PEAL_ARENA_ARRAY(arena, occurrence, count + 1),
                            .place = PEAL_ARENA_ARRAY(arena, int, count + 1),
                            .start = PEAL_ARENA_ARRAY(arena, int, messages + 1),
                            .partner = PEAL_ARENA_ARRAY(arena, int, messages + 1)};
        for (int i = 0; i < messages; i++) {
            out->start[i + 1] = out->start[i] + u[rank].seen[i];
            out->partner[i] = UNKNOWN_PARTNER;
        }
        u[rank].out = out;
        unroll_all(&u[rank]);
        u[rank].out = NULL;
    }
}
