/* Expressions that a run would fail at: divided by zero, too large for 64 bits, a loop less than 0
 * times.
 *
 * What loop counters and ranks make of an expression is known before the run, so it is decided by
 * arithmetic whether they have such values where the expression is looked at; products of counters
 * are tried at the first and the last of their values. What depends on values of buffers is left to
 * the run, unless it goes wrong with each of them. */
#include "scheduler/check/check.h"
#include "scheduler/conditions/conditions.h"

#include <inttypes.h>
#include <string.h>

enum { TRIED_RANKS = 8 };

typedef struct value_walk {
    const common_input *c;
    const pass_context *pass;
    rank_views *views;
    peal_meanings *m;
    peal_scope scope;
    peal_program_point point;
    peal_term counter[LOOPS_AROUND + 1];
    peal_term path;                             /* what holds where the walk is */
    const peal_statement *around[LOOPS_AROUND]; /* the loops, the outermost first */
    int around_count;
    const peal_statement *at; /* the statement; what is looked at before its `when` holds: NULL */
    bool tries;               /* ranks are good enough to look at */
    bool in_finish;           /* where `step` is how many steps were done */
    peal_status first;
} value_walk;

static void check_body(value_walk *w, const peal_body *body);

static void note(value_walk *w, peal_status status)
{
    w->first = w->first ? w->first : status;
}

/* ---- What a report says ---- */

static void example(const value_walk *w, const peal_meeting *found, peal_scope *scope,
                    int64_t counter[LOOPS_AROUND + 1])
{
    *scope = w->scope;
    scope->rank = 0;
    for (int k = PEAL_RANK_AXES - 1; k >= 0; k--) {
        scope->position[k] = (int)found->value[k];
        scope->rank = scope->rank * w->c->dims[k] + scope->position[k];
    }
    for (int k = 0; k < LOOPS_AROUND; k++)
        counter[k] = k + PEAL_RANK_AXES < 8 ? found->value[k + PEAL_RANK_AXES] : 0;
    scope->counter = counter;
    scope->counter_count = w->point.counter_count;
}

/* " in step 3, on rank 1", where that matters. */
static const char *where_text(const value_walk *w, const peal_expr *e, const peal_meeting *found,
                              char *text, size_t bytes)
{
    peal_scope scope;
    int64_t counter[LOOPS_AROUND + 1];
    unsigned uses = peal_expr_uses(e);
    int used = 0;
    text[0] = 0;
    if (!found->is_shown)
        return text;
    example(w, found, &scope, counter);
    if (w->point.counter_count && w->counter[0])
        used = snprintf(text, bytes, " in step %" PRId64, counter[0]);
    for (int k = 1; k < w->point.counter_count && uses & PEAL_USES_COUNTER && used < (int)bytes;
         k++)
        used +=
            snprintf(text + used, bytes - (size_t)used, ", %s %" PRId64,
                     w->around[w->around_count - w->point.counter_count + k]->u.loop.counter
                         ? w->around[w->around_count - w->point.counter_count + k]->u.loop.counter
                         : "iteration",
                     counter[k]);
    if (uses & PEAL_USES_RANK && used < (int)bytes)
        snprintf(text + used, bytes - (size_t)used, " on rank %d", scope.rank);
    return text;
}

/* "3 % 0", with the operands' values in an example if they have some. */
static const char *operands_text(const value_walk *w, const peal_expr *e, const peal_meeting *found,
                                 char *text, size_t bytes)
{
    static const char *const names[] = {"-",  "not", "+", "-",  "*", "/",  "%",
                                        "==", "!=",  "<", "<=", ">", ">=", "and"};
    peal_scope scope;
    int64_t counter[LOOPS_AROUND + 1], value[2] = {0, 0};
    bool known = found->is_shown && e->operand_count <= 2;
    text[0] = 0;
    if (known)
        example(w, found, &scope, counter);
    for (int i = 0; i < e->operand_count && known; i++)
        known = !peal_expr_integer(e->operand[i], &scope, 0, &value[i], NULL);
    if (!known || e->op > PEAL_OPERATOR_MODULO)
        return text;
    if (e->operand_count == 1)
        snprintf(text, bytes, ": %s(%" PRId64 ")", names[e->op], value[0]);
    else
        snprintf(text, bytes, ": %" PRId64 " %s %" PRId64, value[0], names[e->op], value[1]);
    return text;
}

/* ---- Operators ---- */

/* Whether a condition surely holds for some values that the path allows. */
static bool happens(const value_walk *w, peal_term guard, peal_term wrong, peal_meeting *out)
{
    peal_meanings *m = w->m;
    peal_term all[3] = {w->path, guard, wrong}, shown[8];
    int count = PEAL_RANK_AXES;
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        shown[k] = w->point.position[k];
    for (int k = 0; k < w->point.counter_count && count < 8; k++)
        shown[count++] = w->counter[k] ? w->counter[k] : peal_term_integer(m, 0);
    *out = peal_terms_meet(m, all, 3, shown, count);
    if (out->answer != PEAL_PERHAPS || !out->depends_on_run)
        return out->answer == PEAL_YES;
    /* values of buffers decide whether it is looked at, but not whether it goes wrong */
    all[2] = peal_term_not(m, wrong);
    return peal_terms_meet(m, all, 3, NULL, 0).answer == PEAL_NO;
}

static bool check_division(value_walk *w, const peal_expr *e, peal_term guard)
{
    peal_meeting found;
    char where[160], what[80];
    peal_term by = peal_meaning_of(w->m, e->operand[1], &w->point);
    peal_term zero = peal_term_operator(w->m, PEAL_OPERATOR_EQUAL, by, peal_term_integer(w->m, 0));
    if (zero == peal_term_boolean(w->m, false) || !happens(w, guard, zero, &found))
        return true;
    note(w, peal_report(w->pass->diagnostics, PEAL_E_DIVISION_BY_ZERO, e->source,
                        "let a `when`, or an `and` before it, leave these values out",
                        "`%s` by zero%s%s", e->op == PEAL_OPERATOR_DIVIDE ? "/" : "%",
                        operands_text(w, e, &found, what, sizeof(what)),
                        where_text(w, e, &found, where, sizeof(where))));
    return false;
}

static bool check_overflow(value_walk *w, const peal_expr *e, peal_term guard)
{
    static const char *const names[] = {"-", "not", "+", "-", "*"};
    peal_meanings *m = w->m;
    peal_meeting found;
    char where[160], what[80];
    if (peal_expr_uses(e) & PEAL_USES_ELEMENT)
        return true;
    peal_term value = peal_meaning_of(m, e, &w->point);
    peal_term above =
        peal_term_operator(m, PEAL_OPERATOR_LESS, peal_term_integer(m, INT64_MAX), value);
    peal_term below =
        peal_term_operator(m, PEAL_OPERATOR_LESS, value, peal_term_integer(m, INT64_MIN));
    peal_term wrong = peal_term_or(m, above, below);
    if (wrong == peal_term_boolean(m, false) || !happens(w, guard, wrong, &found))
        return true;
    note(w,
         peal_report(w->pass->diagnostics, PEAL_E_INTEGER_OVERFLOW, e->source,
                     "integers have 64 bits; write a real number (2.0 * n) if it need not be "
                     "exact",
                     "`%s` overflows%s%s", e->op == PEAL_OPERATOR_ABSOLUTE ? "abs" : names[e->op],
                     operands_text(w, e, &found, what, sizeof(what)),
                     where_text(w, e, &found, where, sizeof(where))));
    return false;
}

/* Each operator where it is looked at: the right side of `and` only where the left one holds, a
 * value of `if else` only where it is taken. */
static bool check_operators(value_walk *w, const peal_expr *e, peal_term guard)
{
    const peal_term outside = guard;
    peal_term holds = 0;
    bool good = true;
    if (!e || e->kind != PEAL_EXPR_OPERATOR)
        return true;
    for (int i = 0; i < e->operand_count && good; i++) {
        good = check_operators(w, e->operand[i], guard);
        peal_term here = peal_meaning_of(w->m, e->operand[i], &w->point);
        if (e->op == PEAL_OPERATOR_AND)
            guard = peal_term_and(w->m, guard, here);
        else if (e->op == PEAL_OPERATOR_OR)
            guard = peal_term_and(w->m, guard, peal_term_not(w->m, here));
        else if (e->op == PEAL_OPERATOR_CHOICE && i < 2) {
            holds = i ? peal_term_not(w->m, holds) : here;
            guard = peal_term_and(w->m, outside, holds);
        }
    }
    if (!good || peal_expr_kind_of(e, w->c->graph) != PEAL_INTEGER)
        return good;
    switch (e->op) {
    case PEAL_OPERATOR_DIVIDE:
    case PEAL_OPERATOR_MODULO:
        return check_division(w, e, guard);
    case PEAL_OPERATOR_ADD:
    case PEAL_OPERATOR_SUBTRACT:
    case PEAL_OPERATOR_MULTIPLY:
    case PEAL_OPERATOR_NEGATE:
    case PEAL_OPERATOR_ABSOLUTE:
        return check_overflow(w, e, guard);
    default:
        return true;
    }
}

/* ---- Trials ---- */

typedef struct trial {
    value_walk *w;
    const peal_expr *expr;
    peal_scope scope;
    int64_t counter[LOOPS_AROUND + 1];
} trial;

/* False: it is known not to hold, or nobody knows. */
static bool surely_holds(const trial *t, const peal_expr *when)
{
    bool holds = false;
    return !peal_expr_boolean(when, &t->scope, true, &holds, NULL) && holds;
}

/* Tries the first and the last value of each counter. False: it went wrong, which was told. */
static bool try_counters(trial *t, int depth)
{
    const value_walk *w = t->w;
    peal_value value;
    int64_t repeat;
    if (depth == w->around_count) {
        if ((w->at && !surely_holds(t, w->at->when)) ||
            !peal_expr_evaluate(t->expr, &t->scope, &value, NULL))
            return true;
        note(t->w, peal_expr_evaluate(t->expr, &t->scope, &value, w->pass->diagnostics));
        return false;
    }
    const peal_loop *loop = &w->around[depth]->u.loop;
    if (!surely_holds(t, w->around[depth]->when) ||
        peal_expr_integer(loop->repeat, &t->scope, 1, &repeat, NULL))
        return true;
    for (int i = 0; i < 2 && i < repeat; i++) {
        t->counter[loop->depth] = i ? repeat - 1 : 0;
        t->scope.counter_count = loop->depth + 1;
        if (!try_counters(t, depth + 1))
            return false;
        t->scope.counter_count = loop->depth;
    }
    return true;
}

static void try_ranks(value_walk *w, const peal_expr *e)
{
    int ranks = w->c->machine.ranks;
    bool differs = peal_expr_uses(e) & PEAL_USES_RANK;
    if (w->in_finish && peal_expr_uses(e) & PEAL_USES_COUNTER && known_steps(w->c) < 0)
        return;
    for (int i = 0; i < TRIED_RANKS && i < ranks && (differs || i == 0); i++) {
        int rank = ranks <= TRIED_RANKS ? i : (int)((int64_t)(ranks - 1) * i / (TRIED_RANKS - 1));
        const rank_view *v = view_at(w->views, rank, STAGE_GEOMETRY);
        if (!v)
            return;
        trial t = {.w = w, .expr = e, .scope = v->scope};
        t.scope.counter = t.counter;
        t.counter[0] = known_steps(w->c);
        t.scope.counter_count = w->in_finish;
        if (!try_counters(&t, 0))
            return;
    }
}

static void check_value(value_walk *w, const peal_expr *e)
{
    if (!e || e->kind != PEAL_EXPR_OPERATOR)
        return;
    if (check_operators(w, e, peal_term_boolean(w->m, true)) && w->tries &&
        !(peal_expr_uses(e) & PEAL_USES_ELEMENT))
        try_ranks(w, e);
}

/* ---- Statements ---- */

static void check_least(value_walk *w, const peal_expr *e, int64_t least, const char *what)
{
    peal_meeting found;
    char where[160];
    if (!e)
        return;
    check_value(w, e);
    peal_term value = peal_meaning_of(w->m, e, &w->point);
    peal_term less =
        peal_term_operator(w->m, PEAL_OPERATOR_LESS, value, peal_term_integer(w->m, least));
    if (less == peal_term_boolean(w->m, false) ||
        !happens(w, peal_term_boolean(w->m, true), less, &found))
        return;
    note(w, peal_report(w->pass->diagnostics, PEAL_E_VALUE_OUT_OF_RANGE, e->source, NULL,
                        "%s is less than %" PRId64 "%s", what, least,
                        where_text(w, e, &found, where, sizeof(where))));
}

static void check_loop(value_walk *w, const peal_statement *s)
{
    const peal_loop *loop = &s->u.loop;
    peal_meanings *m = w->m;
    int arrays = w->c->graph->array_count;
    peal_term path = w->path, *outside = w->point.element;
    int counters = w->point.counter_count;
    if (loop->depth > 0 || w->c->graph->step.repeat)
        check_least(w, loop->repeat, 0, "`repeat`");
    check_least(w, loop->every, 1, "`every`");
    check_least(w, loop->lag, 0, "`lag`");
    if (w->around_count == LOOPS_AROUND)
        return;
    w->around[w->around_count++] = s;
    w->at = NULL;
    w->counter[loop->depth] = peal_term_counter(m, loop->repeat, &w->point);
    w->path = peal_term_and(m, path, peal_term_domain(m, w->counter[loop->depth]));
    w->point.element = PEAL_ARENA_ARRAY(w->pass->arena, peal_term, arrays + 1);
    memcpy(w->point.element, outside, (size_t)arrays * sizeof(*outside));
    w->point.counter_count = loop->depth + 1;
    peal_program_point_pass(m, &w->point, s, peal_term_boolean(m, true));
    check_body(w, &loop->body);
    if (loop->until) {
        w->at = NULL;
        w->path = peal_term_and(m, w->path, peal_term_looks(m, loop, &w->point));
        if (!loop->every)
            check_value(w, loop->until);
        else
            check_operators(w, loop->until, peal_term_boolean(m, true));
    }
    w->point.element = outside;
    w->point.counter_count = counters;
    w->path = path;
    w->around_count--;
}

static void check_statement(value_walk *w, const peal_statement *s)
{
    const peal_task_statement *task = &s->u.task;
    switch (s->kind) {
    case PEAL_STATEMENT_TASK:
        for (int i = 0; i < task->argument_count; i++)
            check_value(w, task->argument[i]);
        check_value(w, task->box.count);
        break;
    case PEAL_STATEMENT_SET:
        check_value(w, s->u.set.value);
        break;
    case PEAL_STATEMENT_PRINT:
        for (int i = 0; i < s->u.print.item_count; i++)
            check_value(w, s->u.print.item[i].value);
        break;
    case PEAL_STATEMENT_REPEAT:
        check_loop(w, s);
        break;
    default:
        break;
    }
}

static void check_body(value_walk *w, const peal_body *body)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        peal_term path = w->path;
        w->at = NULL;
        check_value(w, s->when);
        peal_term when = peal_meaning_of(w->m, s->when, &w->point);
        w->path = peal_term_and(w->m, path, when);
        w->at = s;
        check_statement(w, s);
        w->path = path;
        peal_program_point_pass(w->m, &w->point, s, when);
    }
}

/* rx ry rz are whole numbers below the topology's extents. */
static void make_positions(value_walk *w)
{
    peal_meanings *m = w->m;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        peal_term at = peal_term_integer(m, 0);
        if (w->c->dims[k] > 1) {
            at = peal_term_variable(m, PEAL_INTEGER, true);
            peal_term least =
                peal_term_operator(m, PEAL_OPERATOR_GREATER_EQUAL, at, peal_term_integer(m, 0));
            peal_term most =
                peal_term_operator(m, PEAL_OPERATOR_LESS, at, peal_term_integer(m, w->c->dims[k]));
            peal_term_limit(m, at, peal_term_and(m, least, most));
        }
        w->point.position[k] = at;
    }
}

peal_status check_values(const common_input *c, const pass_context *pass, rank_views *views,
                         bool try_ranks)
{
    const peal_graph_data *g = c->graph;
    value_walk w = {.c = c,
                    .pass = pass,
                    .views = views,
                    .tries = try_ranks,
                    .scope = {.graph = g, .ranks = c->machine.ranks}};
    peal_arena *arena = pass->arena;
    peal_statement step = {.kind = PEAL_STATEMENT_REPEAT, .u.loop = g->step};
    memcpy(w.scope.dims, c->dims, sizeof(c->dims));
    w.m = peal_meanings_create(g, arena);
    w.point =
        (peal_program_point){.scope = &w.scope,
                             .counter = w.counter,
                             .element = PEAL_ARENA_ARRAY(arena, peal_term, g->array_count + 1)};
    w.path = peal_term_boolean(w.m, true);
    make_positions(&w);
    peal_program_point_forget_all(w.m, &w.point);
    check_body(&w, &g->setup);
    w.at = NULL;
    check_loop(&w, &step);
    w.counter[0] = 0;
    peal_program_point_pass(w.m, &w.point, &step, w.path);
    w.in_finish = true;
    check_body(&w, &g->finish);
    return w.first;
}
