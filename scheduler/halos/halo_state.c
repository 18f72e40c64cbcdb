/* States of halos: copies, joins, cases. */
#include "scheduler/halos/halo_state.h"

#include <string.h>

static size_t state_bytes(const halo_states *all)
{
    return (size_t)all->cases * (size_t)all->words * sizeof(cell_word);
}

/* Nothing is stale, and everything may be. */
halo_state *take_state(halo_states *all)
{
    halo_state *state = all->free;
    if (state)
        all->free = state->next;
    else {
        state = PEAL_ARENA_NEW(all->arena, halo_state);
        state->cells =
            PEAL_ARENA_ARRAY(all->arena, cell_word, (size_t)all->cases * (size_t)all->words);
    }
    memset(state->cells, 0, state_bytes(all));
    for (int c = 0; c < all->cases; c++)
        state->alive[c] = true;
    return state;
}

halo_state *copy_state(halo_states *all, const halo_state *from)
{
    halo_state *state = take_state(all);
    assign_state(all, state, from);
    return state;
}

void drop_state(halo_states *all, halo_state *state)
{
    state->next = all->free;
    all->free = state;
}

void assign_state(const halo_states *all, halo_state *to, const halo_state *from)
{
    memcpy(to->alive, from->alive, sizeof(to->alive));
    memcpy(to->cells, from->cells, state_bytes(all));
}

bool states_are_equal(const halo_states *all, const halo_state *a, const halo_state *b)
{
    for (int c = 0; c < all->cases; c++)
        if (a->alive[c] != b->alive[c] ||
            (a->alive[c] && memcmp(cells_of(all, a, c, 0), cells_of(all, b, c, 0),
                                   (size_t)all->words * sizeof(cell_word)) != 0))
            return false;
    return true;
}

void join_state(const halo_states *all, halo_state *into, const halo_state *other)
{
    for (int c = 0; c < all->cases; c++) {
        cell_word *to = cells_of(all, into, c, 0);
        const cell_word *from = cells_of(all, other, c, 0);
        for (int i = 0; other->alive[c] && i < all->words; i++)
            to[i] = into->alive[c] ? to[i] | from[i] : from[i];
        into->alive[c] |= other->alive[c];
    }
}

void kill_state(const halo_states *all, halo_state *state)
{
    for (int c = 0; c < all->cases; c++)
        state->alive[c] = false;
}

void assume_case(const halo_states *all, halo_state *state, int condition, bool holds)
{
    int now = 1 + 2 * condition + holds, never = 1 + 2 * condition + !holds;
    if (!state->alive[now]) {
        kill_state(all, state);
        return;
    }
    state->alive[never] = false;
    const cell_word *known = cells_of(all, state, now, 0);
    for (int c = 0; c < all->cases; c++)
        for (int i = 0; c != now && state->alive[c] && i < all->words; i++)
            *cells_of(all, state, c, i) &= known[i];
}

void forget_case(const halo_states *all, halo_state *state, int condition)
{
    for (int holds = 0; holds < 2; holds++) {
        int c = 1 + 2 * condition + holds;
        state->alive[c] = state->alive[0];
        memcpy(cells_of(all, state, c, 0), cells_of(all, state, 0, 0),
               (size_t)all->words * sizeof(cell_word));
    }
}
