/* Conditions of communication that name both the rank and loop counters, such as
 * `rank == 0 and step % 10 == 0`: what is left of them on one rank (stage 1).
 *
 * What is known of the rank is a constant there. What remains depends on counters alone: it can be
 * compared between two ranks, and followed from step to step. A statement whose condition never
 * holds on a rank has no part in it. */
#include "scheduler/conditions/conditions.h"

#include <string.h>

static const peal_expr *constant_of(peal_arena *arena, const peal_expr *e, peal_value value)
{
    peal_expr *out = PEAL_ARENA_NEW(arena, peal_expr);
    *out = (peal_expr){.kind = PEAL_EXPR_CONSTANT, .value = value, .source = e->source};
    return out;
}

/* The operand that an `and` (`or`) comes to, if it comes to one; else NULL. */
static const peal_expr *junction_of(const peal_expr *e, const peal_expr *const operand[2])
{
    if (e->op != PEAL_OPERATOR_AND && e->op != PEAL_OPERATOR_OR)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (operand[i]->kind == PEAL_EXPR_CONSTANT && operand[i]->value.kind == PEAL_BOOLEAN)
            return operand[i]->value.u.boolean == (e->op == PEAL_OPERATOR_AND) ? operand[1 - i]
                                                                               : operand[i];
    return NULL;
}

/* An expression with what is known in the scope as constants. */
static const peal_expr *fold(peal_arena *arena, const peal_expr *e, const peal_scope *scope)
{
    peal_value value;
    if (!(peal_expr_uses(e) & PEAL_USES_COUNTER))
        return peal_expr_evaluate(e, scope, &value, NULL) ? e : constant_of(arena, e, value);
    if (e->kind != PEAL_EXPR_OPERATOR)
        return e;
    const peal_expr **operand = PEAL_ARENA_ARRAY(arena, const peal_expr *, e->operand_count);
    for (int i = 0; i < e->operand_count; i++)
        operand[i] = fold(arena, e->operand[i], scope);
    const peal_expr *one = e->operand_count == 2 ? junction_of(e, operand) : NULL;
    if (one)
        return one;
    peal_expr *out = PEAL_ARENA_NEW(arena, peal_expr);
    *out = *e;
    out->operand = operand;
    out->text = NULL;
    return out;
}

peal_status make_conditions(const common_input *c, const pass_context *pass,
                            condition_table *conditions, rank_view *v)
{
    for (int i = 0; i < c->mixed_count; i++) {
        const peal_statement *s = c->mixed[i];
        statement_view *own = &v->statement[s->id];
        own->when = fold(pass->arena, s->when, &v->scope);
        own->condition = condition_on(conditions, s, own->when, &own->never);
    }
    return PEAL_STATUS_OK;
}

bool is_active(const rank_view *v, const peal_statement *s)
{
    bool active = !v->statement[s->id].never;
    if (s->when && !(peal_expr_uses(s->when) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT)))
        peal_expr_boolean(s->when, &v->scope, true, &active, NULL);
    return active;
}

condition_truth condition_known(const peal_expr *e, const peal_scope *scope)
{
    bool value = true;
    if (!e)
        return CONDITION_TRUE;
    if (e->kind == PEAL_EXPR_OPERATOR &&
        (e->op == PEAL_OPERATOR_AND || e->op == PEAL_OPERATOR_OR)) {
        condition_truth neutral = e->op == PEAL_OPERATOR_AND ? CONDITION_TRUE : CONDITION_FALSE,
                        all = neutral;
        for (int i = 0; i < e->operand_count; i++) {
            condition_truth one = condition_known(e->operand[i], scope);
            if (one != CONDITION_OPEN && one != neutral)
                return one;
            all = one == CONDITION_OPEN ? CONDITION_OPEN : all;
        }
        return all;
    }
    if (e->kind == PEAL_EXPR_OPERATOR && e->op == PEAL_OPERATOR_NOT) {
        condition_truth one = condition_known(e->operand[0], scope);
        return one == CONDITION_OPEN   ? CONDITION_OPEN
               : one == CONDITION_TRUE ? CONDITION_FALSE
                                       : CONDITION_TRUE;
    }
    if (peal_expr_uses(e) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT) ||
        peal_expr_boolean(e, scope, true, &value, NULL))
        return CONDITION_OPEN;
    return value ? CONDITION_TRUE : CONDITION_FALSE;
}
