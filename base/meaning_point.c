/* What names stand for at a point, and how statements change it. */
#include "base/meaning_terms.h"

#include <string.h>

enum {
    LONGEST_VALUE = 100,
    LONGEST_CONDITION = 2000 /* terms of more parts are not looked into */
};

/* ---- Expressions ---- */

static peal_term text_term(peal_meanings *m, const char *text)
{
    int number = 0;
    while (number < m->text_count && strcmp(m->text[number], text))
        number++;
    if (number == m->text_count) {
        PEAL_ARENA_ROOM(m->arena, m->text, m->text_count, m->text_capacity);
        m->text[m->text_count++] = text;
    }
    return term_keep(m, &(term){.shape = TERM_CONSTANT, .kind = PEAL_TEXT, .bits = number});
}

static peal_term value_term(peal_meanings *m, const peal_value *v)
{
    int64_t bits;
    switch (v->kind) {
    case PEAL_REAL:
        memcpy(&bits, &v->u.real, sizeof(bits));
        return term_keep(m, &(term){.shape = TERM_CONSTANT, .kind = PEAL_REAL, .bits = bits});
    case PEAL_BOOLEAN:
        return peal_term_boolean(m, v->u.boolean);
    case PEAL_TEXT:
        return text_term(m, v->u.text);
    default:
        return peal_term_integer(m, v->u.integer);
    }
}

/* rank = rx + Rx * (ry + Ry * rz) */
static peal_term rank_term(peal_meanings *m, const peal_program_point *point)
{
    peal_term rank = point->position[PEAL_RANK_AXES - 1];
    for (int k = PEAL_RANK_AXES - 2; k >= 0; k--) {
        rank = peal_term_operator(m, PEAL_OPERATOR_MULTIPLY, rank,
                                  peal_term_integer(m, point->scope->dims[k]));
        rank = peal_term_operator(m, PEAL_OPERATOR_ADD, rank, point->position[k]);
    }
    return rank;
}

/* What is known of a rank and of the topology; a variable for the rest, the same for equal names.
 */
static peal_term named_term(peal_meanings *m, const peal_expr *e, const peal_program_point *point)
{
    peal_value value;
    if (point->position[0] && e->kind == PEAL_EXPR_RANK)
        return rank_term(m, point);
    if (point->position[0] && e->kind == PEAL_EXPR_RANK_AXIS)
        return point->position[e->axis];
    if (e->kind == PEAL_EXPR_COUNT && m->graph->arrays[e->index].count)
        return peal_meaning_of(m, m->graph->arrays[e->index].count, point);
    bool any = (e->kind == PEAL_EXPR_RANK || e->kind == PEAL_EXPR_RANK_AXIS) && point->scope &&
               point->scope->rank < 0;
    if (point->scope && !any && !peal_expr_evaluate(e, point->scope, &value, NULL))
        return value_term(m, &value);
    peal_term key = term_keep(m, &(term){.shape = TERM_NAMED,
                                         .op = (int)e->kind,
                                         .kind = PEAL_INTEGER,
                                         .bits = (int64_t)e->index * PEAL_AXES + e->axis});
    return key;
}

/* As a value of a real choice. */
static peal_term real_of(peal_meanings *m, peal_term t)
{
    const peal_value one = {.kind = PEAL_REAL, .u.real = 1};
    return m->item[t].kind == PEAL_INTEGER
               ? peal_term_operator(m, PEAL_OPERATOR_MULTIPLY, t, value_term(m, &one))
               : t;
}

static peal_term choice_of(peal_meanings *m, const peal_expr *e, const peal_program_point *point)
{
    peal_term holds = peal_meaning_of(m, e->operand[0], point);
    peal_term one = peal_meaning_of(m, e->operand[1], point);
    peal_term other = peal_meaning_of(m, e->operand[2], point);
    if (m->item[one].kind != m->item[other].kind) {
        one = real_of(m, one);
        other = real_of(m, other);
    }
    return peal_term_select(m, holds, one, other);
}

static peal_term operator_of(peal_meanings *m, const peal_expr *e, const peal_program_point *point)
{
    if (e->op == PEAL_OPERATOR_CHOICE)
        return choice_of(m, e, point);
    peal_term a = peal_meaning_of(m, e->operand[0], point);
    if (e->operand_count == 1)
        return peal_term_operator(m, e->op, a, 0);
    for (int i = 1; i < e->operand_count; i++)
        a = peal_term_operator(m, e->op, a, peal_meaning_of(m, e->operand[i], point));
    return a;
}

peal_term peal_meaning_of(peal_meanings *m, const peal_expr *e, const peal_program_point *point)
{
    peal_term whole;
    if (!e)
        return peal_term_boolean(m, true);
    switch (e->kind) {
    case PEAL_EXPR_CONSTANT:
        return value_term(m, &e->value);
    case PEAL_EXPR_PARAM:
        return value_term(m, &m->graph->params[e->index].value);
    case PEAL_EXPR_COUNTER:
        return e->index < point->counter_count && point->counter[e->index]
                   ? point->counter[e->index]
                   : peal_term_variable(m, PEAL_INTEGER, false);
    case PEAL_EXPR_ELEMENT:
        return point->element[e->index];
    case PEAL_EXPR_OPERATOR:
        whole = operator_of(m, e, point);
        return m->item[whole].size <= LONGEST_CONDITION
                   ? whole
                   : peal_term_variable(m, m->item[whole].kind, false);
    default:
        return named_term(m, e, point);
    }
}

peal_term peal_term_counter_endless(peal_meanings *m)
{
    peal_term counter = peal_term_variable(m, PEAL_INTEGER, true);
    peal_term_limit(m, counter,
                    peal_term_operator(m, PEAL_OPERATOR_GREATER_EQUAL, counter,
                                       peal_term_integer(m, 0)));
    return counter;
}

/* 0 <= counter < repeat. */
peal_term peal_term_counter(peal_meanings *m, const peal_expr *repeat,
                            const peal_program_point *point)
{
    peal_term counter = peal_term_variable(m, PEAL_INTEGER, true);
    peal_term end = repeat ? peal_meaning_of(m, repeat, point) : peal_term_integer(m, 1);
    peal_term begins =
        peal_term_operator(m, PEAL_OPERATOR_GREATER_EQUAL, counter, peal_term_integer(m, 0));
    peal_term_limit(m, counter,
                    peal_term_and(m, begins,
                                  peal_term_operator(m, PEAL_OPERATOR_LESS, counter, end)));
    return counter;
}

peal_term peal_term_looks(peal_meanings *m, const peal_loop *loop, const peal_program_point *point)
{
    peal_term every = peal_meaning_of(m, loop->every, point);
    peal_term zero = peal_term_integer(m, 0);
    peal_term done = peal_term_operator(m, PEAL_OPERATOR_ADD, point->counter[loop->depth],
                                        peal_term_integer(m, 1));
    if (!loop->every)
        return peal_term_boolean(m, true);
    return peal_term_operator(m, PEAL_OPERATOR_EQUAL,
                              peal_term_operator(m, PEAL_OPERATOR_MODULO, done, every), zero);
}

/* ---- Statements ---- */

/* A value that nobody knows, but for the limits of its type. */
static peal_term fresh_value(peal_meanings *m, int array)
{
    peal_type type = m->graph->arrays[array].type;
    bool real = type == PEAL_F64 || type == PEAL_F32;
    peal_term value = peal_term_variable(m, real ? PEAL_REAL : PEAL_INTEGER, false);
    if (type == PEAL_U8 || type == PEAL_I32) {
        peal_term least = peal_term_integer(m, type == PEAL_U8 ? 0 : INT32_MIN);
        peal_term most = peal_term_integer(m, type == PEAL_U8 ? UINT8_MAX : INT32_MAX);
        peal_term_limit(
            m, value,
            peal_term_and(m, peal_term_operator(m, PEAL_OPERATOR_GREATER_EQUAL, value, least),
                          peal_term_operator(m, PEAL_OPERATOR_LESS_EQUAL, value, most)));
    }
    return value;
}

void peal_program_point_forget_all(peal_meanings *m, const peal_program_point *point)
{
    for (int i = 0; i < m->graph->array_count; i++)
        point->element[i] = fresh_value(m, i);
}

/* What an array of one element holds once a value is stored there. */
static peal_term stored_value(peal_meanings *m, int array, peal_term value)
{
    peal_type type = m->graph->arrays[array].type;
    const term *t = &m->item[value];
    bool is_kept = type == PEAL_I64   ? t->kind == PEAL_INTEGER
                   : type == PEAL_F64 ? t->kind == PEAL_REAL
                                      : false;
    if (t->kind == PEAL_INTEGER && t->shape == TERM_CONSTANT)
        is_kept |= (type == PEAL_U8 && t->bits == (uint8_t)t->bits) ||
                   (type == PEAL_I32 && t->bits == (int32_t)t->bits);
    if (t->size > LONGEST_VALUE)
        return fresh_value(m, array);
    if (is_kept)
        return value;
    bool real = type == PEAL_F64 || type == PEAL_F32;
    if (type == PEAL_F64 && t->kind == PEAL_INTEGER && t->shape == TERM_CONSTANT)
        return value_term(m, &(peal_value){.kind = PEAL_REAL, .u.real = (double)t->bits});
    return term_keep(m, &(term){.shape = TERM_STORED,
                                .op = (int)type,
                                .kind = real ? PEAL_REAL : PEAL_INTEGER,
                                .part = {value}});
}

typedef struct passing {
    peal_meanings *m;
    const peal_program_point *point;
    peal_term when;
} passing;

static void replace_value(passing *p, int array, peal_term value)
{
    peal_term *now = &p->point->element[array];
    *now = peal_term_select(p->m, p->when, value, *now);
    if (p->m->item[*now].size > LONGEST_VALUE)
        *now = fresh_value(p->m, array);
}

static void forget_array(void *user, int array)
{
    passing *p = user;
    if (array >= 0)
        replace_value(p, array, fresh_value(p->m, array));
}

static void forget_body(passing *p, const peal_body *body)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        peal_statement_writes(s, forget_array, p);
        if (s->kind == PEAL_STATEMENT_REPEAT)
            forget_body(p, &s->u.loop.body);
    }
}

void peal_program_point_pass(peal_meanings *m, const peal_program_point *point,
                             const peal_statement *s, peal_term when)
{
    passing p = {m, point, when};
    switch (s->kind) {
    case PEAL_STATEMENT_SET:
        replace_value(&p, s->u.set.array,
                      stored_value(m, s->u.set.array, peal_meaning_of(m, s->u.set.value, point)));
        break;
    case PEAL_STATEMENT_SWAP: {
        int first = s->u.swap.first, second = s->u.swap.second;
        peal_term old = point->element[first];
        replace_value(&p, first, point->element[second]);
        replace_value(&p, second, old);
        break;
    }
    case PEAL_STATEMENT_REPEAT:
        forget_body(&p, &s->u.loop.body);
        break;
    default:
        peal_statement_writes(s, forget_array, &p);
    }
}

/* ---- What statements write ---- */

static void task_writes(const peal_task_statement *task, void (*visit)(void *user, int array),
                        void *user)
{
    for (int i = 0; i < task->access_count; i++)
        if (task->access[i].mode != PEAL_READ_ACCESS)
            visit(user, task->access[i].array);
    for (int i = 0; i < task->reduction_count; i++)
        visit(user, task->reduction[i].array);
}

void peal_statement_writes(const peal_statement *statement, void (*visit)(void *user, int array),
                           void *user)
{
    switch (statement->kind) {
    case PEAL_STATEMENT_TASK:
        task_writes(&statement->u.task, visit, user);
        break;
    case PEAL_STATEMENT_EXCHANGE:
        for (int i = 0; i < statement->u.exchange.item_count; i++)
            visit(user, statement->u.exchange.item[i].into >= 0
                            ? statement->u.exchange.item[i].into
                            : statement->u.exchange.item[i].array);
        break;
    case PEAL_STATEMENT_RECV:
        visit(user, statement->u.message.points.array);
        visit(user, statement->u.message.count);
        break;
    case PEAL_STATEMENT_REDUCE:
        for (int i = 0; i < statement->u.reduce.item_count; i++)
            visit(user, statement->u.reduce.item[i].array);
        break;
    case PEAL_STATEMENT_SWAP:
        visit(user, statement->u.swap.first);
        visit(user, statement->u.swap.second);
        break;
    case PEAL_STATEMENT_SET:
        visit(user, statement->u.set.array);
        break;
    case PEAL_STATEMENT_LOAD:
        visit(user, statement->u.file.array);
        break;
    default:
        break;
    }
}
