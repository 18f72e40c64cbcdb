/* Deadlock: no cycle of waits.
 *
 * A receive waits for its send, a send for nothing, and each rank goes through its statements in
 * order. One pass is enough: a send and its receive stand in the same body, so nothing waits for
 * another iteration, and iterations can be done one after the other by all ranks.
 *
 * Only receives that stand above their sends can close a cycle. Where ranks are classed, directions
 * may show that none does, whatever the number of ranks: statements that such receives and sends
 * enclose wait along one way, towards a rank that receives from nobody. Else the pass is replayed,
 * rank by rank. */
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
    int *at; /* by rank: next message of its view, in program order (sends of a statement first) */
} replay;

/* The send that a receive waits for; NULL: it has run. */
static const rank_message *awaited_send(const peal_compilation *c, const replay *r,
                                        const rank_view *v, const rank_message *m)
{
    const rank_view *sender = c->view[m->peer];
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
static const rank_message *stands_at(const peal_compilation *c, const replay *r, int rank)
{
    const rank_view *v = c->view[rank];
    return &v->message[v->program_order[r->at[rank]]];
}

static peal_status report_cycle(peal_compilation *c, const replay *r, int start)
{
    char text[600];
    int used = 0, rank = start;
    peal_story story = {0};
    for (int i = 0; i < c->machine.ranks; i++) /* one that comes again is on the cycle */
        rank = stands_at(c, r, rank)->peer;
    int first = rank;
    peal_source source = {0};
    do {
        const rank_message *m = stands_at(c, r, rank);
        const peal_statement *s = c->statement[m->own_statement];
        source = s->source;
        if (used < 500)
            used += snprintf(text + used, sizeof(text) - (size_t)used,
                             "%srank %d waits in `%s` (line %d) for rank %d", used ? ", " : "",
                             rank, s->name, s->source.line, m->peer);
        tell_wait(c, c->view[rank], m, awaited_send(c, r, c->view[rank], m), &story);
        rank = m->peer;
    } while (rank != first);
    tell_cycle(&story);
    return peal_report_story(c->diagnostics, PEAL_E145, source, "move the sends above the receives",
                             &story, "deadlock: %s", text);
}

static peal_status replay_ranks(peal_compilation *c)
{
    replay r = {PEAL_ARENA_ARRAY(c->arena, int, c->machine.ranks)};
    bool moved = true;
    while (moved) {
        moved = false;
        for (int rank = 0; rank < c->machine.ranks; rank++) {
            const rank_view *v = c->view[rank];
            while (r.at[rank] < v->message_count) {
                const rank_message *m = &v->message[v->program_order[r.at[rank]]];
                if (!m->outgoing && awaited_send(c, &r, v, m))
                    break;
                r.at[rank]++;
                moved = true;
            }
        }
    }
    for (int rank = 0; rank < c->machine.ranks; rank++)
        if (r.at[rank] < c->view[rank]->message_count)
            return report_cycle(c, &r, rank);
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
    return first ? first : replay_ranks(c);
}
