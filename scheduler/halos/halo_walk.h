/* The conditions that a walk through the program meets, and the walk itself: what its files share.
 */
#ifndef PEAL_SCHEDULER_HALOS_HALO_WALK_H
#define PEAL_SCHEDULER_HALOS_HALO_WALK_H

#include "scheduler/halos/halo_state.h"

typedef struct halo_walk {
    halo_map *m;
    const peal_graph_data *graph;
    peal_scope scope;
    int64_t counter[LOOP_DEPTHS];
    unsigned unknown; /* counters whose values are not followed, by depth */
    halo_states states;
    halo_state *now;
    const peal_expr *condition[FOLLOWED_CONDITIONS];
    bool is_even[FOLLOWED_CONDITIONS]; /* equal on all ranks */
    int condition_count;
    unsigned *written; /* by statement: conditions that name what it writes */
    int64_t work;
    bool on_rank;       /* what is asked is decided for this rank, not for its neighbours */
    bool endless;       /* in as many steps as a program starts */
    bool any_end;       /* steps may end after any of them, or before the first */
    bool cautious;      /* about conditions with a period */
    bool note_counters; /* cases of what counters decide, too */
    bool vague, gave_up, found;
    int64_t step; /* as in a story */
    void (*tell)(const halo_stale_read *read);
    halo_event **changed, **renewed; /* by name, by cell; while telling */
} halo_walk;

/* halo_effects.c: an effect as it happens; may_change: if it does. */
void add_to_cells(halo_walk *w, halo_state *state, int name, const cell_word *cells);
void renew_cells(halo_walk *w, halo_state *state, const halo_effect *e);
void change_cells(halo_walk *w, halo_state *state, const halo_effect *e);
void may_change_cells(halo_walk *w, halo_state *state, const halo_effect *e);

/* halo_conditions.c */
/* Collects the conditions that the walk may come to without knowing them; those of communication
 * first. */
void note_conditions(halo_walk *w);
/* 1: holds, 0: does not hold, -1: not known. */
int decide(const halo_walk *w, const peal_expr *e);
/* In this state a condition holds, or does not hold. */
void assume(halo_walk *w, halo_state *state, const peal_expr *e, bool holds);
/* Whether a condition is surely decided alike on all ranks. */
bool is_even(const halo_walk *w, const peal_expr *e);
/* The conditions that name what a statement writes. */
unsigned find_writes(halo_walk *w, const peal_statement *s);

#endif
