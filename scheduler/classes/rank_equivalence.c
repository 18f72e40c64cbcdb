/* Which ranks have schedules that are alike: the same ops, tasks and channels, with peers that lie
 * as far from each of them in rank numbers.
 *
 * A rank's schedule depends on its own class and on those of the ranks that it exchanges messages
 * with, and of those that these exchange messages with (an op's position in the order follows from
 * the messages around it): so on the classes at most two positions away along each axis, and on
 * whether an end of the axis is that near, where neighbours lie across it. Reductions over ranks
 * add the rank's position in their tree. */
#include "scheduler/classes/rank_classes.h"
#include "scheduler/tasks/reduction_plan.h"

#include <stdlib.h>
#include <string.h>

enum { REACH = 2, AROUND = 2 * REACH + 3 };

typedef struct rank_key {
    int around[PEAL_RANK_AXES]; /* by axis: number of what is around the position */
    uint64_t role;              /* in reductions */
} rank_key;

/* What is around a position: classes, and how near the ends are. */
static void look_around(const common_input *c, const rank_classes *classes, int k, int position,
                        int out[AROUND])
{
    int dims = c->dims[k], above = dims - 1 - position;

    for (int i = -REACH; i <= REACH; i++) {
        int at = position + i;
        bool beyond = at < 0 || at >= dims;
        at = ((at % dims) + dims) % dims;
        out[i + REACH] = beyond && !c->periodic[k] ? -1 : classes->of[k][at];
    }
    out[2 * REACH + 1] = position == 0;
    out[2 * REACH + 2] = above == 0;
}

/* Numbers of what is around each position of an axis. False: out of memory. */
static bool number_positions(const common_input *c, const rank_classes *classes, int k, int *number)
{
    int dims = c->dims[k], count = 0, now[AROUND];
    int(*known)[AROUND] = malloc((size_t)dims * sizeof(*known));

    for (int position = 0; known && position < dims; position++) {
        int i = count;
        look_around(c, classes, k, position, now);
        while (i > 0 && memcmp(known[i - 1], now, sizeof(now)))
            i--; /* mostly the one that was found last */
        if (!i) {
            memcpy(known[count], now, sizeof(now));
            i = ++count;
        }
        number[position] = i - 1;
    }
    free(known);
    return known != NULL;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

/* Ranks in one process reach each other otherwise than those of two. */
static bool processes_are_alike(const common_input *c)
{
    const int *host = c->machine.apart ? NULL : c->machine.node;
    bool one_host = true, apart = true; /* each process on a host of its own */
    for (int i = 1; host && i < c->machine.processes; i++) {
        one_host &= host[i] == host[0];
        apart &= host[i] == host[0] + i;
    }
    if (c->machine.process_of) /* neighbours lie anywhere */
        return false;
    return c->machine.processes == 1 ||
           (c->machine.processes == c->machine.ranks && (one_host || apart));
}

/* False: a reduction tells every rank from every other. */
static bool find_roles(const common_input *c, const pass_context *pass, rank_views *views, int rank,
                       uint64_t *role)
{
    *role = 0;
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        uint64_t one;
        if (!s || s->kind != PEAL_STATEMENT_REDUCE)
            continue;
        if (!reduction_role(c, pass, views, s, rank, &one))
            return false;
        *role = mix(*role, one);
    }
    return true;
}

static uint64_t hash_key(const rank_key *key)
{
    uint64_t hash = key->role;
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        hash = mix(hash, (uint64_t)(uint32_t)key->around[k]);
    return hash;
}

static bool keys_are_equal(const rank_key *a, const rank_key *b)
{
    return a->role == b->role && !memcmp(a->around, b->around, sizeof(a->around));
}

/* The first rank of each key, by a table of ranks. */
static bool find_first(const common_input *c, const pass_context *pass, peal_arena *scratch,
                       rank_views *views, int *const number[PEAL_RANK_AXES], int *like)
{
    int ranks = c->machine.ranks;
    size_t mask = 64;
    while (mask < 2 * (size_t)ranks)
        mask *= 2;
    rank_key *key = PEAL_ARENA_ARRAY(scratch, rank_key, ranks);
    int *table = PEAL_ARENA_ARRAY(scratch, int, mask--); /* 1 + rank; 0: free */
    bool good = true;

    for (int rank = 0; good && rank < ranks; rank++) {
        int left = rank;
        for (int k = 0; k < PEAL_RANK_AXES; k++) {
            key[rank].around[k] = number[k][left % c->dims[k]];
            left /= c->dims[k];
        }
        good = find_roles(c, pass, views, rank, &key[rank].role);
        size_t at = (size_t)hash_key(&key[rank]) & mask;
        while (table[at] && !keys_are_equal(&key[table[at] - 1], &key[rank]))
            at = (at + 1) & mask;
        if (!table[at])
            table[at] = rank + 1;
        like[rank] = table[at] - 1;
    }
    return good;
}

bool find_alike_ranks(peal_compilation *c, int *like)
{
    rank_classes classes;
    int *number[PEAL_RANK_AXES] = {NULL};

    if (!processes_are_alike(&c->common))
        return false;
    begin_scratch(c);
    c->pass.diagnostics = NULL;
    bool good = find_classes(&c->common, &c->pass, true, &classes);
    for (int k = 0; k < PEAL_RANK_AXES && good; k++) {
        number[k] = PEAL_ARENA_ARRAY(c->pass.arena, int, c->common.dims[k]);
        good = number_positions(&c->common, &classes, k, number[k]);
    }
    c->pass.diagnostics = c->own_diagnostics;
    c->pass.arena = c->own_arena; /* a view is kept */
    good = good && find_first(&c->common, &c->pass, c->scratch, &c->views, number, like);
    end_scratch(c);
    return good;
}
