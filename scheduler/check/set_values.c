/* Values of `set` that are known before the run, and that the type of their buffer cannot hold.
 *
 * A value is known if it depends on params, ranks and steps alone. Ranks are asked one by one only
 * where the value uses them; a rank's part of a field is known where ranks are few. What is not
 * looked at here is met by the run, which ends (PEAL_E_SET_OUT_OF_RANGE_IN_RUN). Arithmetic that
 * has no result is reported by others. */
#include "base/stored.h"
#include "scheduler/check/check.h"

#include <string.h>

enum { MOST_STEPS = 1 << 14, MOST_LAYOUTS = 64 };

typedef struct known_set {
    const common_input *c;
    const pass_context *pass;
    const peal_statement *s;
    peal_type type;
    int64_t counter[1];
    int64_t steps; /* of which each is asked; 1: none has its own value */
} known_set;

/* Whether only the run knows if the statement is done. */
static bool is_guarded(const peal_statement *s)
{
    return s->when && peal_expr_uses(s->when) & PEAL_USES_ELEMENT;
}

static unsigned uses_of(const peal_statement *s)
{
    return peal_expr_uses(s->u.set.value) |
           (s->when && !is_guarded(s) ? peal_expr_uses(s->when) : 0);
}

/* `step` alone, in a loop that nothing ends early: how often it goes round. */
static int64_t steps_of(const common_input *c, const peal_statement *s)
{
    const peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    int64_t count = 0;

    if (!(uses_of(s) & PEAL_USES_COUNTER))
        return 1;
    if (c->statement_loop[s->id] != LOOP_OUTER || c->graph->step.until ||
        peal_expr_integer(c->graph->step.repeat, &scope, 1, &count, NULL))
        return 0;
    return count < MOST_STEPS ? count : MOST_STEPS;
}

static peal_status report(const known_set *k, const peal_scope *scope, int64_t value)
{
    char where[80] = "";
    size_t used = 0;
    unsigned uses = uses_of(k->s);

    if (uses & PEAL_USES_RANK)
        used = (size_t)snprintf(where, sizeof(where), "on rank %d ", scope->rank);
    if (uses & PEAL_USES_COUNTER)
        snprintf(where + used, sizeof(where) - used, "at step %lld ", (long long)k->counter[0]);
    return peal_report(k->pass->diagnostics, PEAL_E_SET_OUT_OF_RANGE, k->s->u.set.value->source,
                       "give the buffer a wider type, or another value",
                       "%s`%s` is set to %lld, but its type %s holds %s", where,
                       array_name(k->c, k->s->u.set.array), (long long)value,
                       peal_type_name(k->type), peal_type_range(k->type));
}

/* One rank, at each step. */
static peal_status check_rank(known_set *k, const peal_scope *given)
{
    peal_scope scope = *given;

    scope.counter = k->counter;
    scope.counter_count = uses_of(k->s) & PEAL_USES_COUNTER ? 1 : 0;
    for (k->counter[0] = 0; k->counter[0] < k->steps; k->counter[0]++) {
        bool happens = true;
        int64_t value = 0;
        const peal_expr *when = is_guarded(k->s) ? NULL : k->s->when;
        if (peal_expr_boolean(when, &scope, true, &happens, NULL) || !happens)
            continue;
        if (!peal_expr_integer(k->s->u.set.value, &scope, 0, &value, NULL) &&
            !peal_type_holds(k->type, value))
            return report(k, &scope, value);
    }
    return PEAL_STATUS_OK;
}

static peal_status check_set(const common_input *c, const pass_context *pass, rank_views *views,
                             const peal_statement *s)
{
    known_set k = {.c = c,
                   .pass = pass,
                   .s = s,
                   .type = array_type(c, s->u.set.array),
                   .steps = steps_of(c, s)};
    int ranks = uses_of(s) & PEAL_USES_RANK ? c->machine.ranks : 1;
    peal_status status = PEAL_STATUS_OK;

    if (k.type == PEAL_F64 || k.type == PEAL_F32 || uses_of(s) & PEAL_USES_ELEMENT)
        return PEAL_STATUS_OK;
    if (is_guarded(s) && uses_of(s)) /* perhaps the guard knows */
        return PEAL_STATUS_OK;
    if (ranks > 1 && k.steps > 1) /* what differs by both is met by the run */
        ranks = ranks < MOST_LAYOUTS ? ranks : MOST_LAYOUTS;
    for (int r = 0; r < ranks && !status; r++) {
        bool small = uses_of(s) & PEAL_USES_RANK && c->machine.ranks <= MOST_LAYOUTS;
        const rank_view *v = small ? view_at(views, r, STAGE_GEOMETRY) : NULL;
        peal_scope scope = {.graph = c->graph, .rank = r, .ranks = c->machine.ranks};
        int rest = r;
        for (int axis = 0; axis < PEAL_RANK_AXES; axis++) {
            scope.dims[axis] = c->dims[axis];
            scope.position[axis] = rest % c->dims[axis];
            rest /= c->dims[axis];
        }
        status = check_rank(&k, v ? &v->scope : &scope);
    }
    return status;
}

peal_status check_set_values(const common_input *c, const pass_context *pass, rank_views *views)
{
    peal_status status = PEAL_STATUS_OK;

    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        if (!s || s->kind != PEAL_STATEMENT_SET)
            continue;
        peal_status one = check_set(c, pass, views, s);
        status = status ? status : one;
    }
    return status;
}
