/* What a walk knows of conditions.
 *
 * What depends on the rank alone, and on counters that are followed, is decided. The others have
 * cases in the state: they hold or not, and two of one meaning (the same expression) hold together,
 * until something that they name is written. */
#include "scheduler/halos/halo_walk.h"

static bool same_expression(const peal_expr *a, const peal_expr *b)
{
    if (a->kind != b->kind || a->operand_count != b->operand_count)
        return false;
    if (a->kind == PEAL_EXPR_OPERATOR ? a->op != b->op : a->index != b->index || a->axis != b->axis)
        return false;
    if (a->kind == PEAL_EXPR_CONSTANT &&
        (a->value.kind != b->value.kind ||
         (a->value.kind == PEAL_REAL      ? a->value.u.real != b->value.u.real
          : a->value.kind == PEAL_BOOLEAN ? a->value.u.boolean != b->value.u.boolean
                                          : a->value.u.integer != b->value.u.integer)))
        return false;
    for (int i = 0; i < a->operand_count; i++)
        if (!same_expression(a->operand[i], b->operand[i]))
            return false;
    return true;
}

static bool is_junction(const peal_expr *e)
{
    return e->kind == PEAL_EXPR_OPERATOR &&
           (e->op == PEAL_OPERATOR_AND || e->op == PEAL_OPERATOR_OR || e->op == PEAL_OPERATOR_NOT);
}

static int find_condition(const halo_walk *w, const peal_expr *e)
{
    for (int i = 0; i < w->condition_count; i++)
        if (same_expression(w->condition[i], e))
            return i;
    return -1;
}

/* Whether the walk may come to it without knowing it. */
static bool may_be_unknown(const halo_walk *w, const peal_expr *e, bool finish)
{
    unsigned uses = peal_expr_uses(e), both = PEAL_USES_RANK | PEAL_USES_COUNTER;
    return uses & PEAL_USES_ELEMENT || (uses & both) == both ||
           (uses & PEAL_USES_COUNTER && (w->note_counters || finish));
}

static void note_condition(halo_walk *w, const peal_expr *e, bool finish, bool even)
{
    if (!may_be_unknown(w, e, finish))
        return;
    int at = find_condition(w, e);
    if (at < 0 && w->condition_count < FOLLOWED_CONDITIONS) {
        at = w->condition_count++;
        w->condition[at] = e;
        w->is_even[at] = !(peal_expr_uses(e) & (PEAL_USES_RANK | PEAL_USES_ELEMENT));
    }
    if (at >= 0)
        w->is_even[at] |= even;
    for (int i = 0; is_junction(e) && i < e->operand_count; i++)
        note_condition(w, e->operand[i], finish, even);
}

/* What these are conditions of has been found to be done by all ranks or by none. */
static bool is_done_by_all(const halo_walk *w, const peal_statement *s)
{
    bool field = (s->kind == PEAL_STATEMENT_LOAD || s->kind == PEAL_STATEMENT_SAVE) &&
                 w->graph->arrays[s->u.file.array].kind == PEAL_ARRAY_FIELD;
    return field || (s->kind != PEAL_STATEMENT_TASK && s->kind != PEAL_STATEMENT_SET &&
                     s->kind != PEAL_STATEMENT_PRINT && s->kind != PEAL_STATEMENT_LOAD &&
                     s->kind != PEAL_STATEMENT_SAVE);
}

void note_conditions(halo_walk *w)
{
    for (int round = 0; round < 2; round++) /* those of communication first: they are few */
        for (int i = 0; i < w->graph->statement_count; i++) {
            const peal_statement *s = w->m->c->statement[i];
            bool finish = w->m->c->statement_section[i] == LOOP_FINISH;
            const effect_list *list = &w->m->effect[i];
            if (!s || !s->when || is_done_by_all(w, s) != (round == 0))
                continue;
            if (!differs_by_rank_and_counter(s))
                note_condition(w, s->when, finish, round == 0);
            for (int k = 0; k < list->count; k++)
                if (list->item[k].when)
                    note_condition(w, list->item[k].when, finish, true);
        }
}

int decide(const halo_walk *w, const peal_expr *e)
{
    if (is_junction(e)) {
        int first = decide(w, e->operand[0]);
        if (e->op == PEAL_OPERATOR_NOT)
            return first < 0 ? -1 : !first;
        int ends = e->op == PEAL_OPERATOR_OR; /* what decides alone */
        if (first == ends)
            return ends;
        int second = decide(w, e->operand[1]);
        return second == ends || first >= 0 ? second : -1;
    }
    unsigned uses = peal_expr_uses(e);
    bool holds;
    if (uses & PEAL_USES_ELEMENT || (uses & PEAL_USES_RANK && !w->on_rank))
        return -1;
    for (int depth = 0; uses & PEAL_USES_COUNTER && depth < LOOP_DEPTHS; depth++)
        if (w->unknown >> depth & 1 && peal_expr_names_counter(e, depth))
            return -1;
    return peal_expr_boolean(e, &w->scope, true, &holds, NULL) ? -1 : holds;
}

void assume(halo_walk *w, halo_state *state, const peal_expr *e, bool holds)
{
    int known = decide(w, e);
    if (known >= 0) {
        if (known != holds)
            kill_state(&w->states, state);
        return;
    }
    int condition = find_condition(w, e);
    if (condition >= 0)
        assume_case(&w->states, state, condition, holds);
    if (!is_junction(e))
        return;
    if (e->op == PEAL_OPERATOR_NOT) {
        assume(w, state, e->operand[0], !holds);
        return;
    }
    bool all = (e->op == PEAL_OPERATOR_AND) == holds; /* both operands are decided */
    for (int i = 0; i < 2; i++)
        if (all || decide(w, e->operand[1 - i]) == (e->op == PEAL_OPERATOR_AND))
            assume(w, state, e->operand[i], holds);
}

bool is_even(const halo_walk *w, const peal_expr *e)
{
    if (decide(w, e) >= 0)
        return true;
    int condition = find_condition(w, e);
    if (condition >= 0 && w->is_even[condition])
        return true;
    for (int i = 0; is_junction(e) && i < e->operand_count; i++)
        if (!is_even(w, e->operand[i]))
            return false;
    return is_junction(e);
}

/* ---- What statements write: conditions that it may change ---- */

typedef struct write_search {
    halo_walk *w;
    unsigned found;
} write_search;

static void note_write(write_search *f, int array)
{
    for (int i = 0; array >= 0 && i < f->w->condition_count; i++)
        if (peal_expr_reads(f->w->condition[i], array))
            f->found |= 1u << i;
}

unsigned find_writes(halo_walk *w, const peal_statement *s)
{
    write_search f = {.w = w};
    switch (s->kind) {
    case PEAL_STATEMENT_TASK:
        for (int i = 0; i < s->u.task.access_count; i++)
            if (s->u.task.access[i].mode != PEAL_READ_ACCESS)
                note_write(&f, s->u.task.access[i].array);
        for (int i = 0; i < s->u.task.reduction_count; i++)
            note_write(&f, s->u.task.reduction[i].array);
        break;
    case PEAL_STATEMENT_REDUCE:
        for (int i = 0; i < s->u.reduce.item_count; i++)
            note_write(&f, s->u.reduce.item[i].array);
        break;
    case PEAL_STATEMENT_RECV:
        note_write(&f, s->u.message.points.array);
        note_write(&f, s->u.message.count);
        break;
    case PEAL_STATEMENT_SET:
        note_write(&f, s->u.set.array);
        break;
    case PEAL_STATEMENT_LOAD:
        note_write(&f, s->u.file.array);
        break;
    case PEAL_STATEMENT_SWAP:
        note_write(&f, s->u.swap.first);
        note_write(&f, s->u.swap.second);
        break;
    default: /* a loop's statements tell themselves */
        break;
    }
    return f.found;
}
