/* Terms: made from expressions, simplified, kept once. */
#include "base/meaning_terms.h"

#include <math.h>
#include <string.h>

enum { FIRST_BUCKETS = 256 };

peal_meanings *peal_meanings_create(const peal_graph_data *graph, peal_arena *arena)
{
    peal_meanings *m = PEAL_ARENA_NEW(arena, peal_meanings);
    m->graph = graph;
    m->arena = arena;
    m->bucket_count = FIRST_BUCKETS;
    m->bucket = PEAL_ARENA_ARRAY(arena, int, m->bucket_count);
    PEAL_ARENA_ROOM(arena, m->item, m->count, m->capacity);
    m->count = 1;
    return m;
}

peal_value_kind peal_term_kind(const peal_meanings *m, peal_term t)
{
    return m->item[t].kind;
}

/* ---- Keeping terms once ---- */

static int bucket_of(const peal_meanings *m, const term *t)
{
    uint64_t hash = (uint64_t)t->shape * 31 + (uint64_t)t->op * 7 + (uint64_t)t->kind;
    for (int i = 0; i < 3; i++)
        hash = (hash ^ (uint64_t)t->part[i]) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 29) ^ (uint64_t)t->bits) * 0xbf58476d1ce4e5b9u;
    int at = (int)((hash >> 32) & (uint64_t)(m->bucket_count - 1));
    for (; m->bucket[at]; at = (at + 1) & (m->bucket_count - 1)) {
        const term *k = &m->item[m->bucket[at]];
        if (k->shape == t->shape && k->op == t->op && k->kind == t->kind && k->bits == t->bits &&
            !memcmp(k->part, t->part, sizeof(t->part)))
            break;
    }
    return at;
}

/* Written out: what terms share counts each time. */
static int size_of(const peal_meanings *m, const term *t)
{
    int64_t size = 1;
    for (int i = 0; i < 3; i++)
        size += m->item[t->part[i]].size;
    return size < INT32_MAX ? (int)size : INT32_MAX;
}

peal_term term_keep(peal_meanings *m, const term *t)
{
    int at = bucket_of(m, t);
    if (m->bucket[at])
        return m->bucket[at];
    PEAL_ARENA_ROOM(m->arena, m->item, m->count, m->capacity);
    m->item[m->count] = *t;
    m->item[m->count].size = size_of(m, t);
    m->bucket[at] = m->count++;
    if (2 * m->count > m->bucket_count) {
        m->bucket_count *= 2;
        m->bucket = PEAL_ARENA_ARRAY(m->arena, int, m->bucket_count);
        for (int i = 1; i < m->count; i++)
            m->bucket[bucket_of(m, &m->item[i])] = i;
        at = bucket_of(m, t);
    }
    return m->bucket[at];
}

static peal_term constant(peal_meanings *m, peal_value_kind kind, int64_t bits)
{
    return term_keep(m, &(term){.shape = TERM_CONSTANT, .kind = kind, .bits = bits});
}

peal_term peal_term_integer(peal_meanings *m, int64_t value)
{
    return constant(m, PEAL_INTEGER, value);
}

peal_term peal_term_boolean(peal_meanings *m, bool value)
{
    return constant(m, PEAL_BOOLEAN, value);
}

static peal_term real_term(peal_meanings *m, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return constant(m, PEAL_REAL, bits);
}

peal_term peal_term_variable(peal_meanings *m, peal_value_kind kind, bool settled)
{
    PEAL_ARENA_ROOM(m->arena, m->domain, m->variable_count, m->domain_capacity);
    PEAL_ARENA_ROOM(m->arena, m->settled, m->variable_count, m->settled_capacity);
    m->domain[m->variable_count] = 0;
    m->settled[m->variable_count] = settled;
    return term_keep(m, &(term){.shape = TERM_VARIABLE, .kind = kind, .bits = m->variable_count++});
}

void peal_term_limit(peal_meanings *m, peal_term variable, peal_term domain)
{
    m->domain[m->item[variable].bits] = domain;
}

peal_term peal_term_domain(const peal_meanings *m, peal_term variable)
{
    return m->domain[m->item[variable].bits];
}

static peal_term operator_term(peal_meanings *m, peal_operator op, peal_value_kind kind,
                               peal_term a, peal_term b)
{
    return term_keep(m,
                     &(term){.shape = TERM_OPERATOR, .op = (int)op, .kind = kind, .part = {a, b}});
}

/* ---- Conditions ---- */

int peal_term_size(const peal_meanings *m, peal_term t)
{
    return m->item[t].size;
}

bool peal_term_is_true(const peal_meanings *m, peal_term t)
{
    return term_is_constant(m, t) && m->item[t].kind == PEAL_BOOLEAN && m->item[t].bits;
}

peal_term peal_term_not(peal_meanings *m, peal_term a)
{
    if (term_is_constant(m, a))
        return peal_term_boolean(m, !m->item[a].bits);
    if (term_is_operator(m, a, PEAL_OPERATOR_NOT))
        return m->item[a].part[0];
    return operator_term(m, PEAL_OPERATOR_NOT, PEAL_BOOLEAN, a, 0);
}

/* `and` (`or`), for which `neutral` is true (false). */
static peal_term junction(peal_meanings *m, peal_operator op, peal_term a, peal_term b)
{
    bool neutral = op == PEAL_OPERATOR_AND;
    if (a == b)
        return a;
    if (term_is_constant(m, a))
        return (m->item[a].bits != 0) == neutral ? b : a;
    if (term_is_constant(m, b))
        return (m->item[b].bits != 0) == neutral ? a : b;
    if (a == peal_term_not(m, b))
        return peal_term_boolean(m, !neutral);
    return operator_term(m, op, PEAL_BOOLEAN, a < b ? a : b, a < b ? b : a);
}

peal_term peal_term_and(peal_meanings *m, peal_term a, peal_term b)
{
    return junction(m, PEAL_OPERATOR_AND, a, b);
}

peal_term peal_term_or(peal_meanings *m, peal_term a, peal_term b)
{
    return junction(m, PEAL_OPERATOR_OR, a, b);
}

peal_term peal_term_select(peal_meanings *m, peal_term condition, peal_term a, peal_term b)
{
    if (term_is_constant(m, condition))
        return m->item[condition].bits ? a : b;
    if (term_is_operator(m, condition, PEAL_OPERATOR_NOT))
        return peal_term_select(m, m->item[condition].part[0], b, a);
    if (m->item[a].shape == TERM_SELECT && m->item[a].part[0] == condition)
        a = m->item[a].part[1];
    if (m->item[b].shape == TERM_SELECT && m->item[b].part[0] == condition)
        b = m->item[b].part[2];
    if (a == b)
        return a;
    if (m->item[a].kind == PEAL_BOOLEAN)
        return peal_term_or(m, peal_term_and(m, condition, a),
                            peal_term_and(m, peal_term_not(m, condition), b));
    return term_keep(m, &(term){.shape = TERM_SELECT,
                                .kind = m->item[a].kind,
                                .part = {condition, a, b}});
}

/* ---- Operators ---- */

/* The value of an operator of constants; 0: it has none that is exact here. */
static peal_term fold(peal_meanings *m, peal_operator op, peal_term a, peal_term b)
{
    peal_expr leaf[2] = {{.kind = PEAL_EXPR_CONSTANT}, {.kind = PEAL_EXPR_CONSTANT}};
    const peal_expr *operand[2] = {&leaf[0], &leaf[1]};
    peal_expr e = {.kind = PEAL_EXPR_OPERATOR,
                   .op = op,
                   .operand_count = b ? 2 : 1,
                   .operand = operand};
    peal_scope nothing = {0};
    peal_value value;
    for (int i = 0; i < e.operand_count; i++) {
        const term *t = &m->item[i ? b : a];
        if (t->shape != TERM_CONSTANT)
            return 0;
        leaf[i].value.kind = t->kind;
        if (t->kind == PEAL_TEXT)
            leaf[i].value.u.text = m->text[t->bits];
        else if (t->kind == PEAL_REAL)
            memcpy(&leaf[i].value.u.real, &t->bits, sizeof(double));
        else if (t->kind == PEAL_BOOLEAN)
            leaf[i].value.u.boolean = t->bits != 0;
        else
            leaf[i].value.u.integer = t->bits;
    }
    if (peal_expr_evaluate(&e, &nothing, &value, NULL))
        return 0;
    return value.kind == PEAL_REAL      ? real_term(m, value.u.real)
           : value.kind == PEAL_BOOLEAN ? peal_term_boolean(m, value.u.boolean)
                                        : peal_term_integer(m, value.u.integer);
}

/* A whole constant beside a real number is one, too. */
static peal_term as_real(peal_meanings *m, peal_term a)
{
    if (!term_is_constant(m, a) || m->item[a].kind != PEAL_INTEGER)
        return a;
    return real_term(m, (double)m->item[a].bits);
}

static peal_term compare(peal_meanings *m, peal_operator op, peal_term a, peal_term b)
{
    bool real = m->item[a].kind == PEAL_REAL || m->item[b].kind == PEAL_REAL;
    if (real) {
        a = as_real(m, a);
        b = as_real(m, b);
    }
    switch (op) {
    case PEAL_OPERATOR_UNEQUAL:
        return peal_term_not(m, compare(m, PEAL_OPERATOR_EQUAL, a, b));
    case PEAL_OPERATOR_GREATER:
        return compare(m, PEAL_OPERATOR_LESS, b, a);
    case PEAL_OPERATOR_GREATER_EQUAL:
        return compare(m, PEAL_OPERATOR_LESS_EQUAL, b, a);
    case PEAL_OPERATOR_LESS_EQUAL:
        if (!real)
            return peal_term_not(m, compare(m, PEAL_OPERATOR_LESS, b, a));
        break;
    default:
        break;
    }
    if (a == b && !real)
        return peal_term_boolean(m, op == PEAL_OPERATOR_EQUAL);
    if (op == PEAL_OPERATOR_EQUAL && a > b)
        return operator_term(m, op, PEAL_BOOLEAN, b, a);
    return operator_term(m, op, PEAL_BOOLEAN, a, b);
}

static bool is_integer(const peal_meanings *m, peal_term t, int64_t value)
{
    return term_is_constant(m, t) && m->item[t].kind == PEAL_INTEGER && m->item[t].bits == value;
}

/* Divisors are positive where they are known. */
static peal_term divide(peal_meanings *m, peal_operator op, peal_term a, peal_term b)
{
    const term *by = &m->item[b];
    if (by->shape == TERM_CONSTANT && by->bits < 0 && by->bits != INT64_MIN) {
        int64_t divisor = -by->bits;
        if (op == PEAL_OPERATOR_DIVIDE)
            a = peal_term_operator(m, PEAL_OPERATOR_NEGATE, a, 0);
        return divide(m, op, a, peal_term_integer(m, divisor));
    }
    if (is_integer(m, b, 1))
        return op == PEAL_OPERATOR_DIVIDE ? a : peal_term_integer(m, 0);
    return operator_term(m, op, PEAL_INTEGER, a, b);
}

static peal_term calculate(peal_meanings *m, peal_operator op, peal_term a, peal_term b)
{
    bool commutes = op == PEAL_OPERATOR_ADD || op == PEAL_OPERATOR_MULTIPLY;
    bool real = m->item[a].kind == PEAL_REAL || (b && m->item[b].kind == PEAL_REAL);
    bool integers = op == PEAL_OPERATOR_POWER || op == PEAL_OPERATOR_LOG2;
    if (real || op == PEAL_OPERATOR_SQRT || (op > PEAL_OPERATOR_CHOICE && !integers)) {
        a = as_real(m, a);
        b = b ? as_real(m, b) : b;
        bool whole = op == PEAL_OPERATOR_FLOOR || op == PEAL_OPERATOR_CEIL;
        return operator_term(m, op, whole ? PEAL_INTEGER : PEAL_REAL, commutes && a > b ? b : a,
                             commutes && a > b ? a : b);
    }
    switch (op) {
    case PEAL_OPERATOR_FLOOR:
    case PEAL_OPERATOR_CEIL:
        return a;
    case PEAL_OPERATOR_NEGATE:
        return peal_term_operator(m, PEAL_OPERATOR_SUBTRACT, peal_term_integer(m, 0), a);
    case PEAL_OPERATOR_ABSOLUTE:
        return peal_term_select(m, compare(m, PEAL_OPERATOR_LESS, a, peal_term_integer(m, 0)),
                                peal_term_operator(m, PEAL_OPERATOR_NEGATE, a, 0), a);
    case PEAL_OPERATOR_MINIMUM:
        return peal_term_select(m, compare(m, PEAL_OPERATOR_LESS, b, a), b, a);
    case PEAL_OPERATOR_MAXIMUM:
        return peal_term_select(m, compare(m, PEAL_OPERATOR_LESS, a, b), b, a);
    case PEAL_OPERATOR_DIVIDE:
    case PEAL_OPERATOR_MODULO:
        return divide(m, op, a, b);
    case PEAL_OPERATOR_POWER:
    case PEAL_OPERATOR_LOG2:
        return operator_term(m, op, PEAL_INTEGER, a, b);
    default:
        if (is_integer(m, b, op == PEAL_OPERATOR_MULTIPLY))
            return a;
        if (commutes && is_integer(m, a, op == PEAL_OPERATOR_MULTIPLY))
            return b;
        return operator_term(m, op, PEAL_INTEGER, commutes && a > b ? b : a,
                             commutes && a > b ? a : b);
    }
}

peal_term peal_term_operator(peal_meanings *m, peal_operator op, peal_term a, peal_term b)
{
    peal_term value = fold(m, op, a, b);
    if (value)
        return value;
    switch (op) {
    case PEAL_OPERATOR_NOT:
        return peal_term_not(m, a);
    case PEAL_OPERATOR_AND:
    case PEAL_OPERATOR_OR:
        return junction(m, op, a, b);
    case PEAL_OPERATOR_EQUAL:
    case PEAL_OPERATOR_UNEQUAL:
    case PEAL_OPERATOR_LESS:
    case PEAL_OPERATOR_LESS_EQUAL:
    case PEAL_OPERATOR_GREATER:
    case PEAL_OPERATOR_GREATER_EQUAL:
        return compare(m, op, a, b);
    default:
        return calculate(m, op, a, b);
    }
}

peal_term term_replace(peal_meanings *m, peal_term in, peal_term old, peal_term by)
{
    const term t = m->item[in];
    if (in == old)
        return by;
    if (t.shape == TERM_CONSTANT || t.shape == TERM_VARIABLE)
        return in;
    peal_term part[3] = {0};
    for (int i = 0; i < 3 && t.part[i]; i++)
        part[i] = term_replace(m, t.part[i], old, by);
    if (!memcmp(part, t.part, sizeof(part)))
        return in;
    if (t.shape == TERM_OPERATOR)
        return peal_term_operator(m, (peal_operator)t.op, part[0], part[1]);
    if (t.shape == TERM_SELECT)
        return peal_term_select(m, part[0], part[1], part[2]);
    term changed = t;
    memcpy(changed.part, part, sizeof(part));
    return term_keep(m, &changed);
}
