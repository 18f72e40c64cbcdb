/* When statements happen.
 *
 * A walk over the graph follows the values of buffers from statement to statement, as far as it can
 * be known, so that a `when` has a term: equal terms are conditions that hold together. */
#include "scheduler/conditions/conditions.h"

#include <string.h>

typedef struct condition_walk {
    const common_input *c;
    condition_table *table;
    peal_scope scope;
    peal_term counter[LOOPS_AROUND + 1];
    peal_term *original; /* by array: a value that is never written */
    statement_condition around;
} condition_walk;

static void walk_body(condition_walk *w, const peal_body *body, peal_program_point *point);

int64_t known_steps(const common_input *c)
{
    const peal_expr *repeat = c->graph->step.repeat;
    peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    int64_t steps;
    memcpy(scope.dims, c->dims, sizeof(scope.dims));
    if (!c->graph->file || !repeat || peal_expr_uses(repeat) ||
        peal_expr_integer(repeat, &scope, 1, &steps, NULL))
        return -1;
    return steps < 0 ? 0 : steps;
}

/* A counter that has not come to its end; steps are looked at even if there are none. */
static peal_term below_end(peal_meanings *m, peal_term counter, peal_term end)
{
    peal_term below = peal_term_operator(m, PEAL_OPERATOR_LESS, counter, end);
    return peal_term_or(m, below,
                        peal_term_operator(m, PEAL_OPERATOR_EQUAL, counter,
                                           peal_term_integer(m, 0)));
}

/* The counter of a loop; steps go on for as long as whoever starts them wants. */
static peal_term counter_of(const condition_walk *w, const peal_loop *loop, int id,
                            const peal_program_point *before)
{
    peal_meanings *m = w->table->meanings;
    peal_term counter = peal_term_counter_endless(m);
    peal_term domain = peal_term_domain(m, counter);
    if (id != LOOP_OUTER)
        domain = peal_term_and(m, domain,
                               peal_term_operator(m, PEAL_OPERATOR_LESS, counter,
                                                  peal_meaning_of(m, loop->repeat, before)));
    peal_term_limit(m, counter, domain);
    return counter;
}

/* The iterations of a loop, with the values that its body may find. */
static void walk_loop(condition_walk *w, const peal_statement *s, int id,
                      const peal_program_point *before)
{
    peal_meanings *m = w->table->meanings;
    const peal_loop *loop = &s->u.loop;
    int arrays = w->c->graph->array_count, depth = loop->depth;
    statement_condition outside = w->around;
    peal_program_point inside = *before;
    inside.element = PEAL_ARENA_ARRAY(w->table->arena, peal_term, arrays + 1);
    memcpy(inside.element, before->element, (size_t)arrays * sizeof(*inside.element));
    peal_term happens = w->around.when;
    w->counter[depth] = counter_of(w, loop, id, before);
    inside.counter_count = depth + 1;
    if (id == LOOP_OUTER) /* an application may write arrays between runs of steps */
        peal_program_point_forget_all(m, &inside);
    peal_program_point_pass(m, &inside, s, peal_term_boolean(m, true));
    if (w->around.around_count < LOOPS_AROUND) {
        int at = w->around.around_count++;
        w->around.loop[at] = id;
        w->around.around[at] = peal_term_and(m, happens, peal_term_domain(m, w->counter[depth]));
    }
    int64_t steps = id == LOOP_OUTER ? known_steps(w->c) : -1;
    if (id == LOOP_OUTER)
        w->table->step = w->counter[depth];
    if (steps >= 0)
        w->table->within = below_end(m, w->counter[depth], peal_term_integer(m, steps));
    walk_body(w, &loop->body, &inside);
    w->around = outside;
}

/* What depends on the rank is looked at rank by rank. */
static peal_term condition_at(const condition_walk *w, const peal_statement *s,
                              const peal_program_point *point)
{
    bool fixed =
        s->when && (peal_expr_uses(s->when) == PEAL_USES_RANK || differs_by_rank_and_counter(s));
    return peal_meaning_of(w->table->meanings, fixed ? NULL : s->when, point);
}

static void walk_body(condition_walk *w, const peal_body *body, peal_program_point *point)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        peal_program_point still = *point;
        still.element = w->original;
        w->around.when = condition_at(w, s, point);
        w->around.plain = condition_at(w, s, &still);
        w->around.counter_count = point->counter_count;
        memcpy(w->around.counter, w->counter, sizeof(w->counter));
        w->table->of[s->id] = w->around;
        peal_term happens = peal_meaning_of(w->table->meanings, s->when, point);
        if (s->kind == PEAL_STATEMENT_REPEAT)
            walk_loop(w, s, s->id, point);
        peal_program_point_pass(w->table->meanings, point, s, happens);
    }
}

condition_table *create_conditions(const common_input *c, peal_arena *arena)
{
    condition_table *table = PEAL_ARENA_NEW(arena, condition_table);
    *table = (condition_table){.c = c, .arena = arena};
    return table;
}

const condition_table *conditions_of(condition_table *table)
{
    const common_input *c = table->c;
    const peal_graph_data *g = c->graph;
    condition_walk w = {c, table};
    if (table->meanings)
        return table;
    w.scope = (peal_scope){.graph = g, .rank = -1, .ranks = c->machine.ranks};
    memcpy(w.scope.dims, c->dims, sizeof(c->dims));
    table->meanings = peal_meanings_create(g, table->arena);
    table->of = PEAL_ARENA_ARRAY(table->arena, statement_condition, g->statement_count + 1);
    peal_program_point point = {.scope = &w.scope, .counter = w.counter};
    point.element = w.original = PEAL_ARENA_ARRAY(table->arena, peal_term, g->array_count + 1);
    peal_program_point_forget_all(table->meanings, &point);
    point.element = PEAL_ARENA_ARRAY(table->arena, peal_term, g->array_count + 1);
    peal_program_point_forget_all(table->meanings, &point);
    walk_body(&w, &g->setup, &point);
    peal_statement step = {.kind = PEAL_STATEMENT_REPEAT, .u.loop = g->step};
    w.around = (statement_condition){.when = peal_term_boolean(table->meanings, true)};
    walk_loop(&w, &step, LOOP_OUTER, &point);
    peal_program_point_forget_all(table->meanings, &point);
    int64_t steps = g->step.until ? -1 : known_steps(c); /* steps done */
    w.counter[0] = steps < 0 ? peal_term_variable(table->meanings, PEAL_INTEGER, false)
                             : peal_term_integer(table->meanings, steps);
    point.counter_count = 1;
    walk_body(&w, &g->finish, &point);
    return table;
}

/* The terms of the loops around a statement, all at once. */
static peal_term terms_around(peal_meanings *m, const statement_condition *s)
{
    peal_term where = peal_term_boolean(m, true);
    for (int i = 0; i < s->around_count; i++)
        where = peal_term_and(m, where, s->around[i]);
    return where;
}

/* Whether conditions meet, in the steps that there are; noted, if they meet in others. */
static peal_meeting meet(condition_table *conditions, const peal_term *condition, int count,
                         const peal_term *shown, int shown_count)
{
    const condition_table *t = conditions_of(conditions);
    peal_term all[MOST_CONDITIONS + 1];
    peal_meeting found = peal_terms_meet(t->meanings, condition, count, shown, shown_count);
    if (!t->within || found.answer == PEAL_NO)
        return found;
    memcpy(all, condition, (size_t)count * sizeof(*all));
    all[count] = t->within;
    found = peal_terms_meet(t->meanings, all, count + 1, shown, shown_count);
    conditions->within_repeat |= found.answer == PEAL_NO;
    return found;
}

peal_term condition_on(condition_table *conditions, const peal_statement *s, const peal_expr *when,
                       bool *never)
{
    const condition_table *t = conditions_of(conditions);
    statement_condition *own = &t->of[s->id];
    peal_program_point point = {.counter = own->counter, .counter_count = own->counter_count};
    peal_term all[2] = {peal_meaning_of(t->meanings, when, &point)};
    if (own->asked != all[0]) { /* mostly it is that of the rank before */
        all[1] = terms_around(t->meanings, own);
        own->asked = all[0];
        own->never = meet(conditions, all, 2, NULL, 0).answer == PEAL_NO;
    }
    *never = own->never;
    return all[0];
}

/* Whether a loop may have more iterations than that. */
static bool may_repeat_more(condition_table *conditions, const peal_statement *loop, int64_t count)
{
    const common_input *c = conditions->c;
    const condition_table *t = conditions_of(conditions);
    statement_condition *own = &t->of[loop->id];
    peal_scope scope = {.graph = c->graph, .rank = -1, .ranks = c->machine.ranks};
    memcpy(scope.dims, c->dims, sizeof(scope.dims));
    peal_program_point point = {.scope = &scope,
                                .counter = own->counter,
                                .counter_count = own->counter_count};
    peal_term repeat = peal_meaning_of(t->meanings, loop->u.loop.repeat, &point);
    peal_term all[3] = {peal_term_operator(t->meanings, PEAL_OPERATOR_LESS,
                                           peal_term_integer(t->meanings, count), repeat),
                        own->when, terms_around(t->meanings, own)};
    return meet(conditions, all, 3, NULL, 0).answer != PEAL_NO;
}

int64_t most_iterations(condition_table *conditions, const peal_statement *loop, int64_t most)
{
    int64_t low = -1, high = 1; /* there may be more than `low` */
    while (high < most && may_repeat_more(conditions, loop, high)) {
        low = high;
        high = high > most / 2 ? most : 2 * high;
    }
    if (high >= most && may_repeat_more(conditions, loop, most))
        return -1;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (may_repeat_more(conditions, loop, middle))
            low = middle;
        else
            high = middle;
    }
    return high < 0 ? 0 : high;
}

/* ---- Two statements ---- */

typedef struct writer_search {
    const peal_expr *read[2];
    int array; /* found; -1 */
} writer_search;

static void note_written(void *user, int array)
{
    writer_search *w = user;
    if (array >= 0 && w->array < 0 &&
        (peal_expr_reads(w->read[0], array) || peal_expr_reads(w->read[1], array)))
        w->array = array;
}

/* The first statement from one up to another that writes what their conditions name; NULL: none. */
static const peal_statement *find_writer(const common_input *c, const peal_statement *one,
                                         const peal_statement *other, int *array)
{
    int first = one->id < other->id ? one->id : other->id;
    int last = one->id < other->id ? other->id : one->id;
    writer_search w = {{one->when, other->when}, -1};
    for (int i = first; i < last; i++) {
        if (c->statement[i])
            peal_statement_writes(c->statement[i], note_written, &w);
        *array = w.array;
        if (w.array >= 0)
            return c->statement[i];
    }
    return NULL;
}

condition_match match_conditions(const common_input *c, condition_table *conditions,
                                 const condition_end *one, const condition_end *other,
                                 const peal_statement **writer, int *array)
{
    if (!one->s->when && !other->s->when)
        return CONDITIONS_AGREE;
    const condition_table *t = conditions_of(conditions);
    const statement_condition *sa = &t->of[one->s->id], *sb = &t->of[other->s->id];
    peal_meanings *m = t->meanings;
    peal_term where = terms_around(m, sa);
    peal_term a = one->term ? one->term : sa->when, b = other->term ? other->term : sb->when;
    peal_term differ[2] = {peal_term_or(m, peal_term_and(m, a, peal_term_not(m, b)),
                                        peal_term_and(m, b, peal_term_not(m, a))),
                           where};
    peal_meeting found = {.answer = PEAL_NO};
    if (a != b)
        found = meet(conditions, differ, 2, NULL, 0);
    if (found.answer == PEAL_NO)
        return CONDITIONS_AGREE;
    if (!one->term && !other->term && peal_terms_equal(m, sa->plain, sb->plain, 0)) {
        *writer = find_writer(c, one->s, other->s, array);
        return *writer ? CONDITIONS_CHANGE : CONDITIONS_UNDECIDED;
    }
    return found.answer == PEAL_PERHAPS && !found.depends_on_run ? CONDITIONS_UNDECIDED
                                                                 : CONDITIONS_DIFFER;
}

/* ---- Cycles of waits ---- */

static uint64_t number_condition(const peal_meanings *m, cycle_conditions *out, peal_term t)
{
    int at = 0;
    if (peal_term_is_true(m, t))
        return 0;
    while (at < out->count && out->term[at] != t)
        at++;
    if (at == MOST_CONDITIONS)
        return 0;
    if (at == out->count)
        out->term[out->count++] = t;
    return (uint64_t)1 << at;
}

void number_conditions(const common_input *c, const pass_context *pass, rank_views *views,
                       condition_table *conditions, cycle_conditions *out)
{
    const condition_table *t = conditions_of(conditions);
    *out = (cycle_conditions){0};
    out->of = PEAL_ARENA_ARRAY(pass->arena, uint64_t, c->graph->statement_count + 1);
    for (int i = 0; i < c->graph->statement_count; i++) {
        const statement_condition *s = &t->of[i];
        if (!c->statement[i])
            continue;
        out->of[i] = number_condition(t->meanings, out, s->when);
        for (int k = 0; k < s->around_count; k++)
            out->of[i] |= number_condition(t->meanings, out, s->around[k]);
    }
    for (int rank = 0; c->mixed_count && rank < c->machine.ranks; rank++)
        for (int i = 0; i < c->mixed_count; i++) {
            statement_view *s = &views->of[rank]->statement[c->mixed[i]->id];
            s->numbers = s->never ? 0 : number_condition(t->meanings, out, s->condition);
        }
}

/* How many of the loops around it all statements of a cycle have in common. */
static int common_loops(const condition_table *t, const condition_end *end, int count)
{
    const statement_condition *first = &t->of[end[0].s->id];
    int common = first->around_count;
    for (int i = 1; i < count; i++) {
        const statement_condition *s = &t->of[end[i].s->id];
        int same = 0;
        while (same < common && same < s->around_count && s->loop[same] == first->loop[same])
            same++;
        common = same;
    }
    return common;
}

/* How many levels of a statement's loops it may be asked about. Ranks that stand in a loop which
 * others of the cycle have yet to reach, or have left, may be in iterations of their own: a counter
 * has two values then, and conditions in there are not compared with each other. */
static int levels_of(const condition_table *t, const condition_end *end, int count, int one,
                     int common)
{
    const statement_condition *s = &t->of[end[one].s->id];
    for (int i = 0; i < count; i++) {
        const statement_condition *other = &t->of[end[i].s->id];
        if (i != one && s->around_count > common && other->around_count > common &&
            s->loop[common] == other->loop[common])
            return common + 1;
    }
    return s->around_count + 1;
}

/* A condition's number as a bit; 0: it has none. */
static uint64_t bit_of(const cycle_conditions *k, peal_term term)
{
    for (int i = 0; i < k->count; i++)
        if (k->term[i] == term)
            return (uint64_t)1 << i;
    return 0;
}

/* Adds a condition that is not known to hold, once. */
static int list_condition(const condition_table *t, peal_term now, peal_term *out, int listed)
{
    bool known = peal_term_is_true(t->meanings, now);
    for (int i = 0; i < listed && !known; i++)
        known = out[i] == now;
    if (!known && listed < MOST_CONDITIONS)
        out[listed++] = now;
    return listed;
}

/* The conditions of a cycle's statements: terms, each once. There may be too many: those with
 * numbers come first. */
static int list_conditions(const condition_table *t, const cycle_conditions *k,
                           const condition_end *end, int count, peal_term *out)
{
    int common = common_loops(t, end, count), listed = 0;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < count; i++) {
            const statement_condition *s = &t->of[end[i].s->id];
            peal_term own = end[i].term ? end[i].term : s->when;
            if ((bit_of(k, own) != 0) != (round == 0))
                continue;
            int levels = levels_of(t, end, count, i, common);
            for (int at = 0; at < levels; at++)
                listed = list_condition(t, at < s->around_count ? s->around[at] : own, out, listed);
        }
    return listed;
}

/* Two conditions with numbers that never hold together, where all of them are too many to decide.
 */
static bool find_pair(condition_table *conditions, const cycle_conditions *k, peal_term *term,
                      int *count)
{
    for (int i = 0; i < *count; i++)
        for (int j = 0; j < i && bit_of(k, term[i]); j++) {
            peal_term pair[2] = {term[j], term[i]};
            if (!bit_of(k, term[j]) || meet(conditions, pair, 2, NULL, 0).answer != PEAL_NO)
                continue;
            memcpy(term, pair, sizeof(pair));
            *count = 2;
            return true;
        }
    return false;
}

/* Leaves out conditions without which the others never hold together either; those without numbers
 * first. */
static int leave_out(condition_table *conditions, const cycle_conditions *k, peal_term *term,
                     int terms)
{
    for (int round = 0; round < 2; round++)
        for (int i = terms - 1; i >= 0 && terms > 1; i--) {
            peal_term without = term[i];
            if (round == 0 && bit_of(k, without))
                continue;
            memmove(&term[i], &term[i + 1], (size_t)(terms - i - 1) * sizeof(*term));
            if (meet(conditions, term, terms - 1, NULL, 0).answer == PEAL_NO) {
                terms--;
                continue;
            }
            memmove(&term[i + 1], &term[i], (size_t)(terms - i - 1) * sizeof(*term));
            term[i] = without;
        }
    return terms;
}

peal_meeting conditions_meet(const common_input *c, condition_table *conditions,
                             const cycle_conditions *k, const condition_end *end, int count,
                             uint64_t *reasons, int64_t *step)
{
    const condition_table *t = conditions_of(conditions);
    peal_term term[MOST_CONDITIONS];
    int terms = list_conditions(t, k, end, count, term);
    bool in_step = c->statement_section[end[0].s->id] == LOOP_OUTER;
    peal_meeting found = meet(conditions, term, terms, &t->step, in_step);
    *step = in_step && found.is_shown ? found.value[0] : -1;
    *reasons = 0;
    if (found.answer == PEAL_PERHAPS && !found.depends_on_run &&
        find_pair(conditions, k, term, &terms))
        found.answer = PEAL_NO;
    if (found.answer != PEAL_NO)
        return found;
    terms = leave_out(conditions, k, term, terms);
    for (int i = 0; i < terms; i++) {
        if (!bit_of(k, term[i])) { /* nobody can take it not to hold */
            *reasons = 0;
            break;
        }
        *reasons |= bit_of(k, term[i]);
    }
    return found;
}
