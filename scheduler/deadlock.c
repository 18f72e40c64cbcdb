/* Deadlock: no cycle of waits.
 *
 * A receive waits for its send, a send for nothing, and each rank goes through its statements in
 * order. One pass is enough: a send and its receive stand in the same body, so nothing waits for
 * another iteration, and iterations can be done one after the other by all ranks.
 *
 * Only receives that stand above their sends can close a cycle. Where ranks are classed, directions
 * may show that none does, whatever the number of ranks: statements that such receives and sends
 * enclose wait along one way, towards a rank that receives from nobody. Else the pass is replayed,
 * rank by rank; step by step, if that shows a cycle of statements that never happen together. */
#include "scheduler/stories.h"

#include <string.h>

/* ---- By directions ---- */

/* A receive waits for a statement that sends, of the rank that lies against the direction. */
typedef struct wait_edge {
    int recv, send; /* statements */
    int direction[PEAL_RANK_AXES];
} wait_edge;

typedef struct wait_edges {
    peal_arena *arena;
    wait_edge *item;
    int count, capacity;
} wait_edges;

static bool same_key(const message_end *send, const message_end *recv)
{
    return send->tag == recv->tag && end_direction(send) == end_direction(recv);
}

/* One edge for each send that may be a receive's; more than there are do no harm. */
static void add_edges(wait_edges *edges, const message_end *recv, const rank_view *sender)
{
    for (int i = 0; i < sender->end_count; i++) {
        const message_end *send = &sender->end[i];
        bool known = !send->outgoing || !same_key(send, recv);
        for (int k = 0; k < edges->count && !known; k++)
            known = edges->item[k].recv == recv->statement &&
                    edges->item[k].send == send->statement &&
                    !memcmp(edges->item[k].direction, send->direction, sizeof(send->direction));
        if (known)
            continue;
        PEAL_ARENA_ROOM(edges->arena, edges->item, edges->count, edges->capacity);
        wait_edge *e = &edges->item[edges->count++];
        *e = (wait_edge){.recv = recv->statement, .send = send->statement};
        memcpy(e->direction, send->direction, sizeof(e->direction));
    }
}

/* Whether everything that waits between two statements waits along one way: some weights of the
 * axes that end are positive for each late edge, and never negative. */
static bool goes_one_way(const peal_compilation *c, const wait_edges *edges, int first, int last,
                         const int weight[PEAL_RANK_AXES])
{
    for (int i = 0; i < edges->count; i++) {
        const wait_edge *e = &edges->item[i];
        int along = 0;
        if (e->recv < first || e->recv > last || e->send < first || e->send > last)
            continue;
        for (int k = 0; k < PEAL_RANK_AXES; k++)
            along += c->periodic[k] ? 0 : weight[k] * e->direction[k];
        if (along < (e->send > e->recv))
            return false;
    }
    return true;
}

/* Weights up to 4 tell all half-spaces of directions apart. */
static bool has_a_way(const peal_compilation *c, const wait_edges *edges, int first, int last)
{
    for (int i = first; i <= last; i++) /* these wait both ways */
        if (c->statement[i] && (c->statement[i]->kind == PEAL_STATEMENT_EXCHANGE ||
                                c->statement[i]->kind == PEAL_STATEMENT_REDUCE))
            return false;
    for (int number = 0; number < 9 * 9 * 9; number++) {
        int weight[PEAL_RANK_AXES] = {number % 9 - 4, number / 9 % 9 - 4, number / 81 - 4};
        if (goes_one_way(c, edges, first, last, weight))
            return true;
    }
    return false;
}

bool directions_show_no_cycle(peal_compilation *c, rank_view *const *view, int count)
{
    wait_edges edges = {.arena = c->arena};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < view[i]->end_count; k++)
            for (int j = 0; j < count && !view[i]->end[k].outgoing; j++)
                add_edges(&edges, &view[i]->end[k], view[j]);
    for (int first = 0, last = 0; first < c->graph->statement_count; first = last + 1) {
        last = first;
        for (bool grows = true; grows;) { /* to the end of each late edge that begins within */
            grows = false;
            for (int i = 0; i < edges.count; i++)
                if (edges.item[i].recv >= first && edges.item[i].recv <= last &&
                    edges.item[i].send > last) {
                    last = edges.item[i].send;
                    grows = true;
                }
        }
        if (last > first && !has_a_way(c, &edges, first, last))
            return false;
    }
    return true;
}

/* ---- By replaying ---- */

typedef struct replay {
    peal_compilation *c;
    int *at;       /* by rank: next message of its view, in program order (sends of a statement
                      first) */
    bool *skipped; /* by statement: it does not happen in this step */
    int64_t step;  /* -1: any */
    int *waiting;  /* ranks to look at again */
    int waiting_count;
    bool *waits; /* by rank: it is among them */
} replay;

/* The send that a receive waits for; NULL: it has run. */
static const rank_message *awaited_send(const replay *r, const rank_view *v, const rank_message *m)
{
    const rank_view *sender = r->c->view[m->peer];
    for (int i = r->at[m->peer]; i < sender->message_count; i++) {
        const rank_message *s = &sender->message[sender->program_order[i]];
        if (s->outgoing && s->peer == v->rank && s->statement == m->statement &&
            s->phase == m->phase && s->tag == m->tag &&
            !memcmp(s->direction, m->direction, sizeof(s->direction)))
            return s;
    }
    return NULL;
}

/* The receive that a rank has come to. */
static const rank_message *stands_at(const replay *r, int rank)
{
    const rank_view *v = r->c->view[rank];
    return &v->message[v->program_order[r->at[rank]]];
}

static peal_status report_cycle(const replay *r, int start)
{
    peal_compilation *c = r->c;
    char text[600];
    int used = 0, rank = start;
    peal_story story = {0};
    for (int i = 0; i < c->machine.ranks; i++) /* one that comes again is on the cycle */
        rank = stands_at(r, rank)->peer;
    int first = rank;
    peal_source source = {0};
    do {
        const rank_message *m = stands_at(r, rank);
        const peal_statement *s = c->statement[m->own_statement];
        source = s->source;
        if (used < 500)
            used += snprintf(text + used, sizeof(text) - (size_t)used,
                             "%srank %d waits in `%s` (line %d) for rank %d", used ? ", " : "",
                             rank, s->name, s->source.line, m->peer);
        tell_wait(c, c->view[rank], m, awaited_send(r, c->view[rank], m), r->step, &story);
        rank = m->peer;
    } while (rank != first);
    tell_cycle(&story);
    return peal_report_story(c->diagnostics, PEAL_E145, source, "move the sends above the receives",
                             &story, "deadlock: %s", text);
}

static void look_at(replay *r, int rank)
{
    if (r->waits[rank])
        return;
    r->waits[rank] = true;
    r->waiting[r->waiting_count++] = rank;
}

/* As far as a rank comes; those that it sends to may come further. */
static void move_rank(replay *r, int rank)
{
    const rank_view *v = r->c->view[rank];
    for (; r->at[rank] < v->message_count; r->at[rank]++) {
        const rank_message *m = stands_at(r, rank);
        if (r->skipped[m->own_statement])
            continue;
        if (m->outgoing)
            look_at(r, m->peer);
        else if (awaited_send(r, v, m))
            return;
    }
}

static peal_status replay_ranks(replay *r)
{
    int ranks = r->c->machine.ranks;
    memset(r->at, 0, (size_t)ranks * sizeof(*r->at));
    for (int rank = ranks - 1; rank >= 0; rank--)
        look_at(r, rank);
    while (r->waiting_count) {
        int rank = r->waiting[--r->waiting_count];
        r->waits[rank] = false;
        move_rank(r, rank);
    }
    for (int rank = 0; rank < ranks; rank++)
        if (r->at[rank] < r->c->view[rank]->message_count)
            return report_cycle(r, rank);
    return PEAL_STATUS_OK;
}

/* Messages in program order: a view has them by statement; here phases, and sends before receives,
 * are sorted out. */
static void set_program_order(peal_compilation *c, rank_view *v)
{
    int count = 0;
    v->program_order = PEAL_ARENA_ARRAY(c->arena, int, v->message_count + 1);
    for (int first = 0, end; first < v->message_count; first = end) {
        int phases = 0;
        for (end = first; end < v->message_count &&
                          v->message[end].own_statement == v->message[first].own_statement;
             end++)
            phases = v->message[end].phase >= phases ? v->message[end].phase + 1 : phases;
        for (int kind = 0; kind < 2 * phases; kind++)
            for (int i = first; i < end; i++)
                if (2 * v->message[i].phase + !v->message[i].outgoing == kind)
                    v->program_order[count++] = i;
    }
}

/* ---- Steps in which other statements happen ---- */

enum { MOST_PERIOD = 1024 };

/* Sums and products of `step` and integers: their remainders by n repeat after n steps. */
static bool is_polynomial(const peal_compilation *c, const peal_expr *e)
{
    switch (e->kind) {
    case PEAL_EXPR_COUNTER:
        return e->index == 0;
    case PEAL_EXPR_CONSTANT:
        return e->value.kind == PEAL_INTEGER;
    case PEAL_EXPR_PARAM:
        return peal_expr_kind_of(e, c->graph) == PEAL_INTEGER;
    case PEAL_EXPR_OPERATOR:
        return (e->op == PEAL_OPERATOR_ADD || e->op == PEAL_OPERATOR_SUBTRACT ||
                e->op == PEAL_OPERATOR_MULTIPLY) &&
               is_polynomial(c, e->operand[0]) && is_polynomial(c, e->operand[1]);
    default:
        return false;
    }
}

/* After how many steps a condition repeats that looks at remainders of `step` only; false: it looks
 * at more. */
static bool has_period(const peal_compilation *c, const peal_expr *e, int64_t *period)
{
    peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    int64_t n;
    if (e->kind == PEAL_EXPR_COUNTER || e->kind == PEAL_EXPR_ELEMENT)
        return false;
    if (e->kind == PEAL_EXPR_OPERATOR && e->op == PEAL_OPERATOR_MODULO &&
        is_polynomial(c, e->operand[0])) {
        if (peal_expr_integer(e->operand[1], &scope, 0, &n, NULL) || n < 1 || n > MOST_PERIOD)
            return false;
        int64_t both = n;
        while (both % *period)
            both += n;
        *period = both;
        return both <= MOST_PERIOD;
    }
    for (int i = 0; i < e->operand_count; i++)
        if (!has_period(c, e->operand[i], period))
            return false;
    return true;
}

/* Steps after which the same statements happen again; conditions that are not of this kind are
 * taken to hold always. */
static int64_t common_period(const peal_compilation *c)
{
    int64_t period = 1;
    for (int i = 0; i < c->graph->statement_count; i++) {
        int64_t longer = period;
        if (c->statement[i] && c->statement[i]->when &&
            has_period(c, c->statement[i]->when, &longer))
            period = longer;
    }
    return period;
}

static void skip_statements(replay *r)
{
    const peal_compilation *c = r->c;
    peal_scope scope = {.graph = c->graph,
                        .ranks = c->machine.ranks,
                        .counter = &r->step,
                        .counter_count = 1};
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_expr *when = c->statement[i] ? c->statement[i]->when : NULL;
        int64_t period = 1;
        bool happens = true;
        if (when && peal_expr_uses(when) == PEAL_USES_COUNTER && has_period(c, when, &period))
            peal_expr_boolean(when, &scope, true, &happens, NULL);
        r->skipped[i] = !happens;
    }
}

/* Each step, if conditions leave some statements out of some of them. */
static peal_status replay_steps(peal_compilation *c)
{
    int ranks = c->machine.ranks;
    int64_t period = common_period(c);
    replay r = {.c = c,
                .at = PEAL_ARENA_ARRAY(c->arena, int, ranks),
                .skipped = PEAL_ARENA_ARRAY(c->arena, bool, c->graph->statement_count + 1),
                .step = -1,
                .waiting = PEAL_ARENA_ARRAY(c->arena, int, ranks),
                .waits = PEAL_ARENA_ARRAY(c->arena, bool, ranks)};
    peal_diagnostics *diagnostics = c->diagnostics;
    c->diagnostics = period > 1 ? NULL : diagnostics;
    peal_status status = replay_ranks(&r); /* all at once: mostly that is fine, too */
    c->diagnostics = diagnostics;
    if (!status || period == 1)
        return status;
    status = PEAL_STATUS_OK;
    for (r.step = 0; r.step < period && !status; r.step++) {
        skip_statements(&r);
        status = replay_ranks(&r);
    }
    return status;
}

peal_status find_deadlock(peal_compilation *c)
{
    peal_status first = PEAL_STATUS_OK;
    for (int rank = 0; rank < c->machine.ranks; rank++) {
        rank_view *v = view_at(c, rank, 3);
        if (!v && !first)
            first = c->view[rank]->status;
        if (v)
            set_program_order(c, v);
    }
    return first ? first : replay_steps(c);
}
