/* What is stale, as far as one knows: of each name its stale cells, and the same in case that a
 * condition which only the run decides holds, or does not hold. */
#ifndef PEAL_SCHEDULER_HALOS_HALO_STATE_H
#define PEAL_SCHEDULER_HALOS_HALO_STATE_H

#include "scheduler/halos/halos.h"

enum { FOLLOWED_CONDITIONS = 12, CASES = 1 + 2 * FOLLOWED_CONDITIONS };

/* A case that cannot be is not alive; its cells mean nothing. */
typedef struct halo_state {
    bool alive[CASES]; /* 0: whatever holds; 1 + 2 * i: condition i does not hold, 2 + 2 * i: holds
                        */
    cell_word *cells;  /* by case, by word of all names */
    struct halo_state *next; /* free ones */
} halo_state;

/* How large they are, and free ones. */
typedef struct halo_states {
    peal_arena *arena;
    int cases, words;
    halo_state *free;
} halo_states;

halo_state *take_state(halo_states *all);
halo_state *copy_state(halo_states *all, const halo_state *from);
void drop_state(halo_states *all, halo_state *state);
void assign_state(const halo_states *all, halo_state *to, const halo_state *from);
bool states_are_equal(const halo_states *all, const halo_state *a, const halo_state *b);
/* Either the one or the other. */
void join_state(const halo_states *all, halo_state *into, const halo_state *other);
/* A condition is known to hold, or not to hold. */
void assume_case(const halo_states *all, halo_state *state, int condition, bool holds);
/* What is known of a condition is no longer true. */
void forget_case(const halo_states *all, halo_state *state, int condition);
void kill_state(const halo_states *all, halo_state *state);

static inline cell_word *cells_of(const halo_states *all, const halo_state *state, int c, int word)
{
    return state->cells + (size_t)c * (size_t)all->words + word;
}

#endif
