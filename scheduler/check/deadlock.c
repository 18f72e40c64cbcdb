/* Deadlock: no cycle of waits.
 *
 * A receive waits for its send, a send for nothing, and each rank goes through its statements in
 * order. One pass of a body is enough where all ranks can do its iterations one after the other: a
 * send and its receive stand in the same body, so nothing waits for another iteration. A loop
 * between a receive and a send below it is different: who waits there keeps his neighbours in the
 * first iteration, theirs in the second, and so on. Of such a loop as many iterations are replayed
 * as there are ranks, or as it has; all of them, where its counter decides what happens (unroll.c).
 *
 * Only receives that stand above their sends can close a cycle. Where ranks are classed, directions
 * may show that none does, whatever the number of ranks: statements that such receives and sends
 * enclose wait along one way, towards a rank that receives from nobody. Else the pass is replayed,
 * rank by rank, as if everything happened that may. A cycle of statements that never happen
 * together (conditions.c) is none: then the pass is replayed without one of them, and without
 * another, until no cycle is left. What excludes them in one round of a loop says nothing of the
 * next: even rounds and odd ones are told apart. */
#include "scheduler/check/replay.h"
#include "scheduler/stories/stories.h"

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

static bool same_key(const common_input *c, const message_end *send, const message_end *recv)
{
    return c->statement_loop[send->statement] == c->statement_loop[recv->statement] &&
           send->tag == recv->tag && end_direction(send) == end_direction(recv);
}

/* One edge for each send that may be a receive's; more than there are do no harm. */
static void add_edges(const common_input *c, wait_edges *edges, const message_end *recv,
                      const rank_view *sender)
{
    for (int i = 0; i < sender->end_count; i++) {
        const message_end *send = &sender->end[i];
        bool known = !send->outgoing || !same_key(c, send, recv);
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
static bool goes_one_way(const common_input *c, const wait_edges *edges, int first, int last,
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
static bool has_a_way(const common_input *c, const wait_edges *edges, int first, int last)
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

bool directions_show_no_cycle(const common_input *c, const pass_context *pass,
                              rank_view *const *view, int count)
{
    wait_edges edges = {.arena = pass->arena};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < view[i]->end_count; k++)
            for (int j = 0; j < count && !view[i]->end[k].outgoing; j++)
                add_edges(c, &edges, &view[i]->end[k], view[j]);
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

/* Where a rank stands. */
static const occurrence *standing(const replay *r, int rank)
{
    return &r->order[rank].item[r->order[rank].at];
}

static bool is_send_of(const rank_message *s, const rank_message *m, int receiver)
{
    return s->outgoing && s->peer == receiver && s->statement == m->statement &&
           s->phase == m->phase && s->tag == m->tag &&
           !memcmp(s->direction, m->direction, sizeof(s->direction));
}

/* The sender's first message that may be the receive's; -1: none. */
static int partner_of(const replay *r, const rank_view *v, int message)
{
    int *partner = &r->order[v->rank].partner[message];
    const rank_message *m = &v->message[message];
    const rank_view *sender = r->views->of[m->peer];
    if (*partner != UNKNOWN_PARTNER)
        return *partner;
    *partner = -1;
    for (int i = 0; i < sender->message_count && *partner < 0; i++)
        if (is_send_of(&sender->message[i], m, v->rank))
            *partner = i;
    return *partner;
}

/* The send that the receive waits for which a rank has come to; NULL: it has run, or never does. */
static const rank_message *awaited_send(const replay *r, const rank_view *v, const rank_message *m)
{
    const rank_view *sender = r->views->of[m->peer];
    const rank_order *order = &r->order[m->peer];
    const occurrence *here = standing(r, v->rank);
    int first = partner_of(r, v, here->message);
    for (int i = first; i >= 0 && i < sender->message_count; i++) {
        const rank_message *s = &sender->message[i];
        if (s->own_statement != sender->message[first].own_statement)
            break;
        int at = order->start[i] + here->round;
        if (is_send_of(s, m, v->rank) && at < order->start[i + 1] && order->place[at] >= order->at)
            return s;
    }
    return NULL;
}

/* The receive that a rank has come to. */
static const rank_message *stands_at(const replay *r, int rank)
{
    const rank_view *v = r->views->of[rank];
    return &v->message[standing(r, rank)->message];
}

/* A rank on the cycle that one leads to. */
static int rank_on_cycle(const replay *r, int start)
{
    int rank = start;
    for (int i = 0; i < r->c->machine.ranks; i++) /* one that comes again is on the cycle */
        rank = stands_at(r, rank)->peer;
    return rank;
}

/* `undecided`: conditions may exclude the cycle. */
static peal_status report_cycle(const replay *r, int first, bool undecided)
{
    const common_input *c = r->c;
    char text[600];
    int used = 0, rank = first;
    peal_story story = {0};
    peal_source source = {0};
    do {
        const rank_message *m = stands_at(r, rank);
        const peal_statement *s = c->statement[m->own_statement];
        source = s->source;
        if (used < 500)
            used += snprintf(text + used, sizeof(text) - (size_t)used,
                             "%srank %d waits in `%s` (line %d) for rank %d", used ? ", " : "",
                             rank, s->name, s->source.line, m->peer);
        tell_wait(c, r->views->of[rank], m, awaited_send(r, r->views->of[rank], m), r->step,
                  &story);
        rank = m->peer;
    } while (rank != first);
    tell_cycle(&story);
    if (undecided)
        return peal_report_story(
            r->pass->diagnostics, PEAL_E_POSSIBLE_DEADLOCK, source,
            "move the sends above the receives, or write conditions that can be decided", &story,
            "a deadlock, unless conditions that cannot be decided exclude it: %s", text);
    return peal_report_story(r->pass->diagnostics, PEAL_E_DEADLOCK, source,
                             "move the sends above the receives", &story, "deadlock: %s", text);
}

static void look_at(replay *r, int rank)
{
    if (r->waits[rank])
        return;
    r->waits[rank] = true;
    r->waiting[r->waiting_count++] = rank;
}

/* Conditions that are taken not to hold where a message stands. */
static uint64_t off_at(const replay *r, const occurrence *at, const rank_message *m)
{
    return r->unrolled[m->own_statement] ? r->off[at->round & 1] : r->off[0] & r->off[1];
}

/* As far as a rank comes; those that it sends to may come further. */
static void move_rank(replay *r, int rank)
{
    const rank_view *v = r->views->of[rank];
    for (rank_order *order = &r->order[rank]; order->at < order->count; order->at++) {
        const rank_message *m = stands_at(r, rank);
        if (!standing(r, rank)->certain &&
            is_skipped(r->numbered, v, m->own_statement, off_at(r, standing(r, rank), m)))
            continue;
        if (m->outgoing)
            look_at(r, m->peer);
        else if (awaited_send(r, v, m))
            return;
    }
}

/* A rank on a cycle; -1: there is none. */
static int replay_ranks(replay *r)
{
    int ranks = r->c->machine.ranks;
    for (int rank = ranks - 1; rank >= 0; rank--) {
        r->order[rank].at = 0;
        look_at(r, rank);
    }
    while (r->waiting_count) {
        int rank = r->waiting[--r->waiting_count];
        r->waits[rank] = false;
        move_rank(r, rank);
    }
    for (int rank = 0; rank < ranks; rank++)
        if (r->order[rank].at < r->order[rank].count)
            return rank_on_cycle(r, rank);
    return -1;
}

/* Messages in program order: a view has them by statement; here phases, and sends before receives,
 * are sorted out. */
static void set_program_order(const pass_context *pass, rank_view *v)
{
    int count = 0;
    v->program_order = PEAL_ARENA_ARRAY(pass->arena, int, v->message_count + 1);
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

/* ---- Statements that do not happen together ---- */

enum { MOST_REPLAYS = 4096, MOST_STEPS = 16 };

/* Which conditions are taken not to hold, as bits. */
typedef struct cycle_search {
    replay r;
    cycle_conditions numbered;
    uint64_t (*seen)[2]; /* sets of them that were replayed: in even rounds, in odd ones */
    int seen_count, seen_capacity;
} cycle_search;

static bool is_new(cycle_search *s, const uint64_t off[2])
{
    for (int i = 0; i < s->seen_count; i++)
        if (s->seen[i][0] == off[0] && s->seen[i][1] == off[1])
            return false;
    PEAL_ARENA_ROOM(s->r.pass->arena, s->seen, s->seen_count, s->seen_capacity);
    memcpy(s->seen[s->seen_count++], off, sizeof(*s->seen));
    return true;
}

/* Whether the ranks of a cycle stand in one iteration, as far as loops were unrolled; in *in (-1:
 * none stands in such a loop). */
static bool is_in_one_round(const replay *r, int first, int *in)
{
    int round = -1, rank = first;
    do {
        const occurrence *at = standing(r, rank);
        const rank_message *m = stands_at(r, rank);
        if (r->unrolled[m->own_statement] && round >= 0 && at->round != round)
            return false;
        round = r->unrolled[m->own_statement] ? at->round : round;
        rank = m->peer;
    } while (rank != first);
    *in = round;
    return true;
}

/* A condition that is the same in all iterations of inner loops. */
static bool is_of_the_step(const peal_expr *e)
{
    if (!e)
        return true;
    if (e->kind == PEAL_EXPR_ELEMENT || (e->kind == PEAL_EXPR_COUNTER && e->index > 0))
        return false;
    for (int i = 0; i < e->operand_count; i++)
        if (!is_of_the_step(e->operand[i]))
            return false;
    return true;
}

/* The statements that the ranks of a cycle stand at, each condition once. Those of other iterations
 * say nothing of each other, but by the step; *left_out: some of them may not happen. round: the
 * one that all stand in; -1: none. */
static int ends_of_cycle(const replay *r, int first, condition_end *out, int *round, bool *left_out)
{
    int count = 0, rank = first;
    *round = -1;
    *left_out = false;
    bool together = is_in_one_round(r, first, round);
    do {
        const rank_message *m = stands_at(r, rank);
        if (r->unrolled[m->own_statement] && !together &&
            !is_of_the_step(r->c->statement[m->own_statement]->when)) {
            *left_out |= !standing(r, rank)->certain;
            rank = m->peer;
            continue;
        }
        peal_term term = r->views->of[rank]->statement[m->own_statement].condition;
        bool known = false;
        for (int i = 0; i < count && !known; i++)
            known = out[i].s->id == m->own_statement && out[i].term == term;
        if (!known)
            out[count++] = (condition_end){r->c->statement[m->own_statement], term};
        rank = m->peer;
    } while (rank != first);
    return count;
}

/* Conditions of what the ranks of a cycle stand at outside of unrolled loops. */
static uint64_t conditions_outside(const replay *r, int first)
{
    uint64_t all = 0;
    int rank = first;
    do {
        const rank_message *m = stands_at(r, rank);
        if (!r->unrolled[m->own_statement])
            all |= r->numbered->of[m->own_statement] |
                   r->views->of[rank]->statement[m->own_statement].numbers;
        rank = m->peer;
    } while (rank != first);
    return all;
}

/* Replays with some conditions taken not to hold; a cycle that remains is one if its own can hold
 * together, else each of them in turn is taken not to hold. */
static peal_status search_cycles(cycle_search *s, uint64_t even, uint64_t odd)
{
    replay *r = &s->r;
    const common_input *c = r->c;
    const uint64_t off[2] = {even, odd};
    if (!is_new(s, off))
        return PEAL_STATUS_OK;
    memcpy(r->off, off, sizeof(off));
    int first = replay_ranks(r);
    if (first < 0)
        return PEAL_STATUS_OK;
    int most = c->graph->statement_count + (c->mixed_count ? c->machine.ranks : 0);
    condition_end *end = PEAL_ARENA_ARRAY(r->pass->arena, condition_end, most);
    int round;
    bool left_out;
    int count = ends_of_cycle(r, first, end, &round, &left_out);
    uint64_t reasons;
    peal_meeting found = {.answer = PEAL_YES};
    if (count)
        found = conditions_meet(c, r->conditions, &s->numbered, end, count, &reasons, &r->step);
    if (r->at_step >= 0)
        r->step = r->at_step;
    if (found.answer != PEAL_NO)
        return report_cycle(r, first,
                            left_out || (found.answer == PEAL_PERHAPS && !found.depends_on_run));
    uint64_t outside = conditions_outside(r, first);
    uint64_t in_even = round < 0 || round % 2 == 0 ? reasons : reasons & outside;
    uint64_t in_odd = round < 0 || round % 2 == 1 ? reasons : reasons & outside;
    bool gains = !(reasons & ~((in_even & ~even) | (in_odd & ~odd))); /* else it would come again */
    if (!reasons || !gains || s->seen_count > MOST_REPLAYS)
        return report_cycle(r, first, true);
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < 64 && !status; i++) {
        uint64_t bit = (uint64_t)1 << i; /* what excludes it in this round may hold in the next */
        if (reasons & bit)
            status = search_cycles(s, even | (in_even & bit), odd | (in_odd & bit));
    }
    return status;
}

/* What is not looked at. */
static void tell_of_limit(const replay *r)
{
    const peal_statement *loop = r->c->statement[r->missed];
    peal_warn(
        r->pass->diagnostics, PEAL_E_POSSIBLE_DEADLOCK, loop->source,
        "check on fewer ranks, or of fewer iterations, too",
        "of `%s` %d iterations are looked at: a circle of waits that more of them close would "
        "not be found",
        loop->name, r->rounds[loop->id]);
}

/* Steps that are to be looked at one by one, since they decide what happens in an unrolled loop;
 * *all: these are all that there are. */
static int64_t steps_of(const replay *r, bool *all)
{
    int64_t steps = known_steps(r->c); /* -1: whoever starts them says */
    *all = r->names_step && steps > 0 && steps <= MOST_STEPS;
    return !r->names_step ? 0 : steps >= 0 && steps < MOST_STEPS ? steps : MOST_STEPS;
}

/* In any step, by what conditions say of each other; and in the first ones, each by itself. */
static peal_status search_steps(cycle_search *s)
{
    replay *r = &s->r;
    bool all;
    int64_t steps = steps_of(r, &all);
    r->conditions->within_repeat |= all; /* nothing is said of further ones */
    peal_status status = all ? PEAL_STATUS_OK : search_cycles(s, 0, 0);
    for (r->at_step = 0; r->at_step < steps && !status; r->at_step++) {
        s->seen_count = 0;
        r->step = -1;
        set_orders(r);
        status = search_cycles(s, 0, 0);
    }
    return status;
}

peal_status find_deadlock(const common_input *c, const pass_context *pass, rank_views *views,
                          condition_table *conditions)
{
    peal_status first = PEAL_STATUS_OK;
    for (int rank = 0; rank < c->machine.ranks; rank++) {
        rank_view *v = view_at(views, rank, STAGE_MESSAGES);
        if (!v && !first)
            first = views->of[rank]->status;
        if (v)
            set_program_order(pass, v);
    }
    if (first)
        return first;
    int ranks = c->machine.ranks;
    cycle_search s = {
        .r = {.c = c,
              .pass = pass,
              .views = views,
              .conditions = conditions,
              .rounds = PEAL_ARENA_ARRAY(pass->arena, int, c->graph->statement_count + 1),
              .unrolled = PEAL_ARENA_ARRAY(pass->arena, bool, c->graph->statement_count + 1),
              .order = PEAL_ARENA_ARRAY(pass->arena, rank_order, ranks),
              .at_step = -1,
              .step = -1,
              .waiting = PEAL_ARENA_ARRAY(pass->arena, int, ranks),
              .waits = PEAL_ARENA_ARRAY(pass->arena, bool, ranks)}};
    number_conditions(c, pass, views, conditions, &s.numbered);
    s.r.numbered = &s.numbered;
    set_orders(&s.r);
    if (s.r.missed > 0)
        tell_of_limit(&s.r);
    return search_steps(&s);
}
