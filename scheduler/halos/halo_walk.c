/* The walk through the program that follows which halo cells are stale, on one rank.
 *
 * Loops are followed iteration by iteration, with the conditions that their counters decide, until
 * the state comes again at the same point of the conditions' common period: what comes after has
 * been seen. Where that would take too long the walk is cautious: such conditions may hold or not
 * in any iteration. A condition that only the run decides is a case of its own: under it, or under
 * one that it is part of, only what holds in this case counts. Its cases end when something that it
 * names is written. */
#include "scheduler/halos/halo_walk.h"
#include "scheduler/conditions/conditions.h"

#include <string.h>

enum { MOST_WORK = 1 << 19, TRIED_ITERATIONS = 4096 };

static void walk_body(halo_walk *w, const peal_body *body);

static void forget(halo_walk *w, halo_state *state, unsigned conditions)
{
    for (int i = 0; i < w->condition_count; i++)
        if (conditions >> i & 1)
            forget_case(&w->states, state, i);
}

/* ---- What statements do ---- */

static void note_event(const halo_walk *w, halo_event *events, const halo_grid *g,
                       const cell_word *cells, const peal_statement *s)
{
    for (int i = 0; i < g->cells; i++)
        if (has_cell(cells, i))
            events[i] = (halo_event){s->id, w->step};
}

static void note_events(const halo_walk *w, const peal_statement *s, const halo_effect *e)
{
    const halo_grid *g = w->m->name[e->name].grid;
    if (!w->tell || w->m->name[e->name].recv >= 0)
        return;
    if (e->change)
        note_event(w, w->changed[e->name], g, e->change, s);
    if (e->renew)
        note_event(w, w->renewed[e->name], g, e->renew, s);
}

static void check_read(halo_walk *w, const halo_state *state, const peal_statement *s,
                       halo_effect *e)
{
    const halo_name *n = &w->m->name[e->name];
    const cell_word *stale = cells_of(&w->states, state, 0, n->first_word);
    cell_word both[MOST_CELLS / CELLS_OF_WORD], any = 0;
    if (!e->read || e->stale_is_meant || e->told || !state->alive[0])
        return;
    for (int i = 0; i < n->grid->words; i++)
        any |= both[i] = stale[i] & e->read[i];
    if (!any)
        return;
    w->found = true;
    if (!w->tell)
        return;
    halo_stale_read read = {w->m,    s, e, both, w->step, w->changed[e->name], w->renewed[e->name],
                            w->vague};
    e->told = true;
    w->tell(&read);
}

static void walk_effects(halo_walk *w, const peal_statement *s, halo_effect *item, int count)
{
    for (int i = 0; i < count; i++)
        check_read(w, w->now, s, &item[i]);
    for (int i = 0; i < count; i++)
        if (item[i].change)
            change_cells(w, w->now, &item[i]);
    for (int i = 0; i < count; i++) {
        if (item[i].renew)
            renew_cells(w, w->now, &item[i]);
        note_events(w, s, &item[i]);
    }
}

/* One effect, when it happens on the rank that does it. */
static void walk_effect(halo_walk *w, const peal_statement *s, halo_effect *e)
{
    int holds = decide(w, e->when);
    if (holds >= 0) {
        walk_effects(w, s, e, holds);
        return;
    }
    halo_state *other = copy_state(&w->states, w->now);
    assume(w, other, e->when, false);
    assume(w, w->now, e->when, true);
    walk_effects(w, s, e, 1);
    join_state(&w->states, w->now, other);
    drop_state(&w->states, other);
}

/* A statement that happens in other iterations on other ranks; what changes cells goes first. */
static void walk_mixed(halo_walk *w, const peal_statement *s)
{
    const effect_list *list = &w->m->effect[s->id];
    w->gave_up |= ++w->work > MOST_WORK && !w->cautious;
    for (int i = 0; i < list->count; i++)
        if (list->item[i].change)
            walk_effect(w, s, &list->item[i]);
    for (int i = 0; i < list->count; i++)
        if (!list->item[i].change)
            walk_effect(w, s, &list->item[i]);
    forget(w, w->now, w->written[s->id]);
}

/* Messages under way belong to the contents, not to the name: no matter which, they are old. */
static void walk_swap(halo_walk *w, int first, int second)
{
    const halo_map *m = w->m;
    int a = m->name_of[first], b = m->name_of[second];
    if (a < 0 || b < 0)
        return;
    const halo_name *one = &m->name[a], *other = &m->name[b];
    for (int c = 0; c < w->states.cases; c++)
        for (int i = 0; i < one->grid->words; i++) {
            cell_word *x = cells_of(&w->states, w->now, c, one->first_word + i);
            cell_word *y = cells_of(&w->states, w->now, c, other->first_word + i);
            cell_word held = *x;
            *x = *y;
            *y = held;
        }
    for (int i = 0; i < m->name_count; i++)
        if (m->name[i].recv >= 0 && (m->name[i].array == first || m->name[i].array == second))
            add_to_cells(w, w->now, i, m->name[i].grid->halo);
    if (w->tell) {
        halo_event *changed = w->changed[a], *renewed = w->renewed[a];
        w->changed[a] = w->changed[b], w->changed[b] = changed;
        w->renewed[a] = w->renewed[b], w->renewed[b] = renewed;
    }
}

/* ---- Loops ---- */

/* All that the body may change, however often. */
static void change_all(halo_walk *w, const peal_body *body)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        const effect_list *list = &w->m->effect[s->id];
        for (int k = 0; k < list->count; k++)
            if (list->item[k].change)
                may_change_cells(w, w->now, &list->item[k]);
        if (s->kind == PEAL_STATEMENT_REPEAT)
            change_all(w, &s->u.loop.body);
    }
}

static bool statement_period(const halo_walk *w, const peal_statement *s, int depth,
                             int64_t *period, int64_t *from)
{
    const effect_list *list = &w->m->effect[s->id];
    if (!differs_by_rank_and_counter(s))
        return counter_period(s->when, depth, &w->scope, period, from);
    for (int i = 0; i < list->count; i++)
        if (!counter_period(list->item[i].when, depth, &w->scope, period, from))
            return false;
    return true;
}

/* The common period of what the body asks of a loop's counter. */
static bool body_period(const halo_walk *w, const peal_body *body, int depth, int64_t *period,
                        int64_t *from)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        bool loop = s->kind == PEAL_STATEMENT_REPEAT;
        if (!statement_period(w, s, depth, period, from) ||
            (loop && (!counter_period(s->u.loop.repeat, depth, &w->scope, period, from) ||
                      !body_period(w, &s->u.loop.body, depth, period, from))))
            return false;
    }
    return true;
}

static void end_iteration(halo_walk *w, int depth)
{
    for (int i = 0; i < w->condition_count; i++)
        if (peal_expr_names_counter(w->condition[i], depth))
            forget_case(&w->states, w->now, i);
}

/* How a loop is followed. */
typedef struct loop_plan {
    const peal_loop *loop;
    int64_t count; /* iterations; -1: not known */
    bool may_end;  /* after any iteration */
    int64_t period, from;
    bool outer;
} loop_plan;

/* Conditions of the counter may hold or not, in any iteration. */
static void walk_cautiously(halo_walk *w, const loop_plan *p)
{
    unsigned known = w->unknown;
    bool more = p->count != 0;
    halo_state *entry = copy_state(&w->states, w->now), *skip = copy_state(&w->states, w->now);
    w->unknown |= 1u << p->loop->depth;
    w->vague |= p->count >= 0;
    while (more && !w->gave_up) {
        assign_state(&w->states, w->now, entry);
        walk_body(w, &p->loop->body);
        end_iteration(w, p->loop->depth);
        halo_state *both = copy_state(&w->states, entry);
        join_state(&w->states, both, w->now);
        more = !states_are_equal(&w->states, both, entry);
        assign_state(&w->states, entry, both);
        drop_state(&w->states, both);
        if (p->outer)
            w->step++;
    }
    if (p->count < 0 || (p->outer && w->any_end))
        join_state(&w->states, w->now, skip);
    drop_state(&w->states, entry);
    drop_state(&w->states, skip);
    w->unknown = known;
}

/* Iteration by iteration, until the state has been there. */
static void walk_exactly(halo_walk *w, const loop_plan *p)
{
    halo_state *seen = NULL, *end = NULL;
    int64_t seen_at = 0, next = p->from, depth = p->loop->depth;
    bool skips = p->period > 0;
    if (p->outer && w->any_end)
        end = copy_state(&w->states, w->now);
    for (int64_t i = 0; i < p->count && !w->gave_up; i++) {
        if (skips && i >= p->from && (i - p->from) % p->period == 0) {
            if (seen && states_are_equal(&w->states, seen, w->now)) {
                i += (p->count - i) / (i - seen_at) * (i - seen_at);
                skips = false;
                if (i >= p->count || p->may_end)
                    break;
            } else if (i >= next) { /* a cycle of any length is found, in time linear in it */
                if (!seen)
                    seen = take_state(&w->states);
                assign_state(&w->states, seen, w->now);
                seen_at = i;
                next = i + (i - p->from > p->period ? i - p->from : p->period);
            }
        }
        w->counter[depth] = i;
        if (p->outer)
            w->step = i;
        walk_body(w, &p->loop->body);
        end_iteration(w, (int)depth);
        if (p->may_end && !end)
            end = copy_state(&w->states, w->now);
        else if (p->may_end)
            join_state(&w->states, end, w->now);
    }
    if (end)
        assign_state(&w->states, w->now, end);
    if (end)
        drop_state(&w->states, end);
    if (seen)
        drop_state(&w->states, seen);
}

/* Iterations of a loop. Ranks that go round differently often don't communicate in it. */
static int64_t count_iterations(const halo_walk *w, const peal_loop *loop, bool *uneven)
{
    int64_t count = 1;
    *uneven = loop->repeat && peal_expr_uses(loop->repeat) & PEAL_USES_RANK;
    for (int depth = 0; loop->repeat && depth < LOOP_DEPTHS; depth++)
        if (w->unknown >> depth & 1 && peal_expr_names_counter(loop->repeat, depth))
            return -1;
    if (loop->depth == 0 && (w->endless || !w->graph->file || !loop->repeat))
        return INT64_MAX / 4; /* as many steps as a program starts */
    return peal_expr_integer(loop->repeat, &w->scope, 1, &count, NULL) || count < 0 ? -1 : count;
}

static void walk_loop(halo_walk *w, const peal_loop *loop)
{
    bool uneven;
    loop_plan p = {.loop = loop, .period = 1, .outer = loop->depth == 0};
    p.count = count_iterations(w, loop, &uneven);
    p.may_end = loop->until || p.count > INT64_MAX / 8 || (p.outer && w->any_end);
    if (!body_period(w, &loop->body, loop->depth, &p.period, &p.from))
        p.period = 0;
    bool long_way = p.period == 0 ? p.count > TRIED_ITERATIONS : p.period > 1 || p.from > 0;
    end_iteration(w, loop->depth);
    if (p.count < 0 || uneven || (long_way && (w->cautious || p.period == 0)))
        walk_cautiously(w, &p);
    else
        walk_exactly(w, &p);
    if (uneven)
        change_all(w, &loop->body);
}

/* ---- Statements ---- */

static void walk_plain(halo_walk *w, const peal_statement *s)
{
    w->gave_up |= ++w->work > MOST_WORK && !w->cautious;
    if (s->kind == PEAL_STATEMENT_SWAP)
        walk_swap(w, s->u.swap.first, s->u.swap.second);
    else if (s->kind == PEAL_STATEMENT_REPEAT)
        walk_loop(w, &s->u.loop);
    else
        walk_effects(w, s, w->m->effect[s->id].item, w->m->effect[s->id].count);
    forget(w, w->now, w->written[s->id]);
}

/* Whether anything of it matters. */
static bool is_idle(const halo_walk *w, const peal_statement *s)
{
    return s->kind != PEAL_STATEMENT_REPEAT && s->kind != PEAL_STATEMENT_SWAP &&
           !w->m->effect[s->id].count && !w->written[s->id];
}

/* My neighbours may do it, and I don't. */
static void let_neighbours(halo_walk *w, halo_state *state, const peal_statement *s)
{
    const effect_list *list = &w->m->effect[s->id];
    for (int k = 0; k < list->count; k++)
        if (list->item[k].change) {
            change_cells(w, state, &list->item[k]);
            note_events(w, s, &list->item[k]);
        }
}

static void walk_statement(halo_walk *w, const peal_statement *s)
{
    if (is_idle(w, s))
        return;
    if (differs_by_rank_and_counter(s)) {
        walk_mixed(w, s);
        return;
    }
    /* what depends on the rank alone is part of the statement's effects */
    unsigned uses = s->when ? peal_expr_uses(s->when) : 0;
    int holds = !s->when || uses == PEAL_USES_RANK ? 1 : decide(w, s->when);
    if (holds < 0 && uses & PEAL_USES_RANK) {
        w->on_rank = true;
        holds = decide(w, s->when);
        w->on_rank = false;
        if (holds == 0)
            let_neighbours(w, w->now, s);
    }
    if (holds == 0)
        return;
    if (holds == 1) {
        walk_plain(w, s);
        return;
    }
    halo_state *other = copy_state(&w->states, w->now);
    assume(w, other, s->when, false);
    assume(w, w->now, s->when, true);
    if (!is_even(w, s->when)) { /* my neighbours may do it while I don't */
        halo_state *held = w->now;
        w->now = other;
        let_neighbours(w, w->now, s);
        w->now = held;
    }
    walk_plain(w, s);
    join_state(&w->states, w->now, other);
    drop_state(&w->states, other);
}

static void walk_body(halo_walk *w, const peal_body *body)
{
    for (int i = 0; i < body->count && !w->gave_up; i++)
        walk_statement(w, body->statement[i]);
}

/* ---- The program ---- */

static halo_event *no_events(halo_map *m, int cells)
{
    halo_event *events = PEAL_ARENA_ARRAY(m->arena, halo_event, cells);
    for (int i = 0; i < cells; i++)
        events[i].statement = -1;
    return events;
}

static void begin_walk(halo_walk *w)
{
    halo_map *m = w->m;
    w->scope = m->view->scope;
    w->scope.counter = w->counter;
    w->scope.counter_count = LOOP_DEPTHS;
    note_conditions(w);
    w->states =
        (halo_states){.arena = m->arena, .cases = 1 + 2 * w->condition_count, .words = m->words};
    w->now = take_state(&w->states);
    w->written = PEAL_ARENA_ARRAY(m->arena, unsigned, w->graph->statement_count + 1);
    for (int i = 0; i < w->graph->statement_count; i++)
        if (m->c->statement[i])
            w->written[i] = find_writes(w, m->c->statement[i]);
    if (!w->tell)
        return;
    w->changed = PEAL_ARENA_ARRAY(m->arena, halo_event *, m->name_count);
    w->renewed = PEAL_ARENA_ARRAY(m->arena, halo_event *, m->name_count);
    for (int i = 0; i < m->name_count; i++) {
        w->changed[i] = no_events(m, m->name[i].grid->cells);
        w->renewed[i] = no_events(m, m->name[i].grid->cells);
    }
}

static void walk_program(halo_walk *w)
{
    const peal_loop *step = &w->graph->step;
    bool uneven;
    begin_walk(w);
    w->step = PEAL_STORY_SETUP;
    walk_body(w, &w->graph->setup);
    w->step = 0;
    int64_t count = count_iterations(w, step, &uneven);
    walk_loop(w, step);
    w->step = PEAL_STORY_FINISH;
    w->counter[0] = count;
    if (step->until || count < 0 || count > INT64_MAX / 8 || w->any_end)
        w->unknown |= 1;
    walk_body(w, &w->graph->finish);
}

/* endless: in more steps than the spec has; any_end: where `finish` comes after fewer. */
static halo_walk look_for_stale_reads(halo_map *m, bool endless, bool any_end)
{
    halo_walk w = {.m = m, .graph = m->c->graph, .endless = endless, .any_end = any_end};
    walk_program(&w);
    if (w.gave_up || (w.found && w.vague)) {
        bool cautious = w.gave_up;
        w = (halo_walk){.m = m,
                        .graph = m->c->graph,
                        .endless = endless,
                        .any_end = any_end,
                        .cautious = cautious,
                        .note_counters = true};
        walk_program(&w);
    }
    return w;
}

bool walk_halos(halo_map *m, void (*tell)(const halo_stale_read *read))
{
    const peal_graph_data *g = m->c->graph;
    halo_walk w = look_for_stale_reads(m, false, false);
    if (!w.found && !m->conditions->within_repeat && g->file && g->step.repeat)
        m->conditions->within_repeat = look_for_stale_reads(m, true, false).found;
    if (!w.found && !m->conditions->ends_at_repeat && g->file && g->finish.count)
        m->conditions->ends_at_repeat = look_for_stale_reads(m, false, true).found;
    if (!w.found || !tell)
        return w.found;
    w = (halo_walk){.m = m,
                    .graph = m->c->graph,
                    .cautious = w.cautious,
                    .note_counters = w.note_counters,
                    .tell = tell};
    walk_program(&w);
    return true;
}
