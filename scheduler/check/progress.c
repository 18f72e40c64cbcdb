/* Whether all ranks get through their statements, by the ends of their messages: a replay in a
 * few bytes a rank, where deadlock.c needs the messages of all ranks at once to tell who waits for
 * whom.
 *
 * It waits for more than the ranks do: in an exchange for all neighbours, in a reduction for all
 * ranks, whether or not something comes from them. So an end that is reached is reached by the
 * ranks, too; if none is, deadlock.c has to say. */
#include "scheduler/check/message_match.h"
#include "scheduler/geometry/geometry.h"

#include <stdlib.h>

enum { END = INT32_MAX, DIRECTIONS = 27 };

typedef struct replay {
    const end_table *r;
    int *collective; /* statements in which all ranks meet, ascending, and END */
    int *arrived;    /* by these: ranks that have come to a reduction */
    int *at;         /* by rank: what is before this statement is done */
    int *next;       /* by rank: the next of `collective` */
    int64_t *cursor; /* by rank: the next of its receives */
    int *waiter;     /* by rank: the first that waits for it; -1 */
    int *other;      /* by rank: the next that waits for the same; -1 */
    int *ready;      /* ranks to look at again */
    int ready_count;
    int reached; /* how many have come to their end */
} replay;

static bool is_collective(const peal_statement *s)
{
    return s && (s->kind == PEAL_STATEMENT_EXCHANGE || s->kind == PEAL_STATEMENT_REDUCE);
}

static void free_replay(replay *p)
{
    int *lists[] = {p->collective, p->arrived, p->at, p->next, p->waiter, p->other, p->ready};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        free(lists[i]);
    free(p->cursor);
}

static bool allocate(replay *p)
{
    const common_input *c = p->r->c;
    size_t ranks = (size_t)c->machine.ranks, count = (size_t)c->graph->statement_count + 1;
    int found = 0;
    p->collective = calloc(count, sizeof(int));
    p->arrived = calloc(count, sizeof(int));
    p->at = calloc(ranks, sizeof(int));
    p->next = calloc(ranks, sizeof(int));
    p->waiter = calloc(ranks, sizeof(int));
    p->other = calloc(ranks, sizeof(int));
    p->ready = calloc(ranks, sizeof(int));
    p->cursor = calloc(ranks, sizeof(int64_t));
    if (!p->collective || !p->arrived || !p->at || !p->next || !p->waiter || !p->other ||
        !p->ready || !p->cursor)
        return false;
    for (int i = 0; i < c->graph->statement_count; i++)
        if (is_collective(c->statement[i]))
            p->collective[found++] = i;
    p->collective[found] = END;
    return true;
}

/* Whoever waits for a rank is looked at again. */
static void wake(replay *p, int rank)
{
    for (int i = p->waiter[rank], next; i >= 0; i = next) {
        next = p->other[i];
        p->ready[p->ready_count++] = i;
    }
    p->waiter[rank] = -1;
}

static bool wait_for(replay *p, int rank, int peer)
{
    p->other[rank] = p->waiter[peer];
    p->waiter[peer] = rank;
    return false;
}

static void come_to(replay *p, int rank, int statement)
{
    if (p->at[rank] >= statement)
        return;
    p->at[rank] = statement;
    wake(p, rank);
}

/* False: it waits for somebody. */
static bool passes_exchange(replay *p, int rank, int statement)
{
    const common_input *c = p->r->c;
    int peer[DIRECTIONS];
    find_neighbours(c, rank, peer);
    for (int number = 0; number < DIRECTIONS; number++)
        if (peer[number] >= 0 && p->at[peer[number]] < statement)
            return wait_for(p, rank, peer[number]);
    return true;
}

/* Rank 0 keeps those that wait for the last to come. */
static bool passes_reduction(replay *p, int rank, bool is_new)
{
    int ranks = p->r->c->machine.ranks, *arrived = &p->arrived[p->next[rank]];
    *arrived += is_new;
    if (*arrived < ranks)
        return wait_for(p, rank, 0);
    if (is_new)
        wake(p, 0);
    return true;
}

static bool passes_collective(replay *p, int rank)
{
    int statement = p->collective[p->next[rank]];
    bool is_new = p->at[rank] < statement;
    come_to(p, rank, statement);
    const peal_statement *s = p->r->c->statement[statement];
    bool passes = s->kind == PEAL_STATEMENT_EXCHANGE && !peal_is_copy(s)
                      ? passes_exchange(p, rank, statement)
                      : passes_reduction(p, rank, is_new); /* a copy is between any two */
    p->next[rank] += passes;
    return passes;
}

static bool passes_receive(replay *p, int rank, int statement)
{
    const packed_end *recv = &p->r->recvs.item[p->cursor[rank]];
    come_to(p, rank, statement);
    int sent = end_table_send_of(p->r, rank, recv);
    if (p->r->kind[recv->kind].count && p->at[recv->peer] <= sent)
        return wait_for(p, rank, recv->peer);
    p->cursor[rank]++;
    return true;
}

/* As far as a rank comes. */
static void move_rank(replay *p, int rank)
{
    for (;;) {
        bool receives = p->cursor[rank] < p->r->recvs.start[rank + 1];
        int recv = receives ? p->r->kind[p->r->recvs.item[p->cursor[rank]].kind].statement : END;
        int collective = p->collective[p->next[rank]];
        if (recv == END && collective == END)
            break;
        if (!(recv < collective ? passes_receive(p, rank, recv) : passes_collective(p, rank)))
            return;
    }
    p->reached++;
    come_to(p, rank, END);
}

bool end_table_shows_no_cycle(const end_table *r)
{
    replay p = {.r = r};
    int ranks = r->c->machine.ranks;
    bool good = allocate(&p);
    for (int rank = 0; good && rank < ranks; rank++) {
        p.at[rank] = p.waiter[rank] = -1;
        p.cursor[rank] = r->recvs.start[rank];
        p.ready[p.ready_count++] = ranks - 1 - rank;
    }
    while (good && p.ready_count)
        move_rank(&p, p.ready[--p.ready_count]);
    good = good && p.reached == ranks;
    free_replay(&p);
    return good;
}
