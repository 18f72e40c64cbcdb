/* What effects of statements do to the cells of a state, in all of its cases. */
#include "scheduler/halos/halo_walk.h"

void add_to_cells(halo_walk *w, halo_state *state, int name, const cell_word *cells)
{
    const halo_name *n = &w->m->name[name];
    for (int c = 0; c < w->states.cases; c++) {
        cell_word *to = cells_of(&w->states, state, c, n->first_word);
        for (int i = 0; state->alive[c] && i < n->grid->words; i++)
            to[i] |= cells[i];
    }
}

/* My halo is no longer what went back. */
static void forget_returns(halo_walk *w, halo_state *state, const halo_effect *e)
{
    const halo_name *n = &w->m->name[e->name];
    for (int i = 0; i < w->m->name_count && n->recv < 0; i++)
        if (w->m->name[i].is_back && w->m->name[i].array == n->array)
            add_to_cells(w, state, i, e->renew);
}

/* from: as stale as what has come by that name; -1: not stale. */
void renew_cells(halo_walk *w, halo_state *state, const halo_effect *e)
{
    const halo_name *n = &w->m->name[e->name];
    const halo_name *from = e->from >= 0 ? &w->m->name[e->from] : NULL;
    for (int c = 0; c < w->states.cases; c++) {
        cell_word *to = cells_of(&w->states, state, c, n->first_word);
        const cell_word *come = from ? cells_of(&w->states, state, c, from->first_word) : NULL;
        for (int i = 0; state->alive[c] && i < n->grid->words; i++)
            to[i] = (to[i] & ~e->renew[i]) | (come ? come[i] & e->renew[i] : 0);
    }
    forget_returns(w, state, e);
}

/* What comes back to its owner is what my halo is, if nothing has changed that since. */
static void return_cells(halo_walk *w, halo_state *state, const halo_effect *e)
{
    const halo_name *n = &w->m->name[e->name], *back = &w->m->name[e->back];
    for (int c = 0; c < w->states.cases; c++) {
        cell_word *stale = cells_of(&w->states, state, c, n->first_word);
        const cell_word *other = cells_of(&w->states, state, c, back->first_word);
        for (int i = 0; state->alive[c] && i < n->grid->words; i++)
            stale[i] = (stale[i] & ~e->change[i]) | (other[i] & e->change[i]);
    }
}

/* What is under way is old when its owner changes it; what goes back to the owner, when the rank
 * itself does. */
static void change_messages(halo_walk *w, halo_state *state, const halo_effect *e)
{
    int array = w->m->name[e->name].array;
    for (int i = 0; i < w->m->name_count; i++)
        if (w->m->name[i].recv >= 0 && w->m->name[i].array == array) {
            const cell_word *cells = w->m->name[i].is_back ? e->touch : e->change;
            if (cells)
                add_to_cells(w, state, i, cells);
        }
}

void may_change_cells(halo_walk *w, halo_state *state, const halo_effect *e)
{
    add_to_cells(w, state, e->name, e->change);
    change_messages(w, state, e);
}

void change_cells(halo_walk *w, halo_state *state, const halo_effect *e)
{
    if (e->back >= 0)
        return_cells(w, state, e);
    else
        add_to_cells(w, state, e->name, e->change);
    change_messages(w, state, e);
}
