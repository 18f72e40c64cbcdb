/* Whether conditions can hold at once: alternatives are taken apart one after the other until only
 * linear equations and inequalities are left, which base/linear.c decides. */
#include "base/meaning_terms.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_LITERALS = 96,
    MOST_COMPARED = 24,   /* pairs of real numbers */
    MOST_ATTEMPTS = 4000, /* alternatives of one question */
    MOST_REMAINDERS = 1024
};

/* How a pair of real numbers may be ordered; NaN is not. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

typedef struct literal {
    peal_term term;
    bool holds;
} literal;

typedef struct compared {
    peal_term a, b;
    unsigned order;
} compared;

/* One alternative. */
typedef struct attempt {
    literal literal[MOST_LITERALS];
    int literal_count;
    compared pair[MOST_COMPARED];
    int pair_count;
    peal_term column[PEAL_LINEAR_VARIABLES]; /* what each variable of the system stands for */
    peal_linear_system system;
    bool unsettled; /* by values that the run decides */
    bool vague;     /* something was left out that cannot be told */
} attempt;

typedef struct question {
    peal_meanings *m;
    int attempts;
    const peal_term *shown;
    int shown_count;
    peal_meeting *out;
} question;

static peal_answer take_apart(question *q, attempt *a);

static bool push(attempt *a, peal_term t, bool holds)
{
    if (a->literal_count == MOST_LITERALS)
        return false;
    a->literal[a->literal_count++] = (literal){t, holds};
    return true;
}

/* ---- Linear forms ---- */

static peal_linear_row *add_row(attempt *a, bool is_equation, peal_wide value)
{
    if (a->system.row_count == PEAL_LINEAR_ROWS)
        return NULL;
    peal_linear_row *row = &a->system.row[a->system.row_count++];
    *row = (peal_linear_row){.constant = value, .is_equation = is_equation};
    return row;
}

static bool add_form(question *q, attempt *a, peal_linear_row *row, peal_term t, peal_wide times);

/* 0 <= dividend - divisor * quotient <= divisor - 1, for the quotient that stands in a column. */
static bool define_quotient(question *q, attempt *a, int column, peal_term dividend,
                            int64_t divisor)
{
    peal_linear_row *low = add_row(a, false, 0), *high = low ? add_row(a, false, divisor - 1) : low;
    if (!high)
        return false;
    low->factor[column] = -divisor;
    high->factor[column] = divisor;
    return add_form(q, a, low, dividend, 1) && add_form(q, a, high, dividend, -1);
}

/* Limits of what stands for a variable. */
static bool limit_column(question *q, attempt *a, peal_term t, int column)
{
    const term *x = &q->m->item[t];
    if (x->shape == TERM_VARIABLE) {
        peal_term domain = q->m->domain[x->bits];
        a->unsettled |= !q->m->settled[x->bits];
        return !domain || push(a, domain, true);
    }
    if (x->shape == TERM_NAMED) { /* ranks are counted from 1, the rest from 0 */
        bool counts_ranks = x->op == PEAL_EXPR_RANKS || x->op == PEAL_EXPR_RANKS_AXIS;
        peal_linear_row *row = x->op == PEAL_EXPR_ORIGIN ? NULL : add_row(a, false, -counts_ranks);
        if (row)
            row->factor[column] = 1;
        a->unsettled = true;
        return true;
    }
    a->vague = true; /* a product, a remainder by what is not known, a rounded real number */
    return true;
}

/* The variable of the system that a term is; -1: there is no room. */
static int column_of(question *q, attempt *a, peal_term t)
{
    for (int k = 0; k < a->system.variable_count; k++)
        if (a->column[k] == t)
            return k;
    if (a->system.variable_count == PEAL_LINEAR_VARIABLES)
        return -1;
    int column = a->system.variable_count++;
    const term *x = &q->m->item[t];
    a->column[column] = t;
    bool divides = x->shape == TERM_OPERATOR && x->op == PEAL_OPERATOR_DIVIDE &&
                   term_is_constant(q->m, x->part[1]) && q->m->item[x->part[1]].bits > 0;
    bool fits = divides ? define_quotient(q, a, column, x->part[0], q->m->item[x->part[1]].bits)
                        : limit_column(q, a, t, column);
    return fits ? column : -1;
}

/* Adds times * t to a row; false: there is no room, or the numbers are too large. */
static bool add_form(question *q, attempt *a, peal_linear_row *row, peal_term t, peal_wide times)
{
    const peal_wide limit = (peal_wide)1 << 62;
    const term x = q->m->item[t];
    if (times > limit || times < -limit)
        return false;
    if (x.shape == TERM_CONSTANT) {
        row->constant += times * x.bits;
        return true;
    }
    const term *last = &q->m->item[x.part[1]];
    bool by_constant = x.shape == TERM_OPERATOR && x.part[1] && last->shape == TERM_CONSTANT;
    int64_t constant = by_constant ? last->bits : 0;
    if (x.shape == TERM_OPERATOR && x.op == PEAL_OPERATOR_ADD)
        return add_form(q, a, row, x.part[0], times) && add_form(q, a, row, x.part[1], times);
    if (x.shape == TERM_OPERATOR && x.op == PEAL_OPERATOR_SUBTRACT)
        return add_form(q, a, row, x.part[0], times) && add_form(q, a, row, x.part[1], -times);
    if (by_constant && x.op == PEAL_OPERATOR_MULTIPLY)
        return add_form(q, a, row, x.part[0], times * constant);
    if (x.shape == TERM_OPERATOR && x.op == PEAL_OPERATOR_MULTIPLY &&
        term_is_constant(q->m, x.part[0]))
        return add_form(q, a, row, x.part[1], times * q->m->item[x.part[0]].bits);
    if (by_constant && x.op == PEAL_OPERATOR_MODULO && constant > 0) {
        peal_term quotient = peal_term_operator(q->m, PEAL_OPERATOR_DIVIDE, x.part[0], x.part[1]);
        return add_form(q, a, row, x.part[0], times) &&
               add_form(q, a, row, quotient, -times * constant);
    }
    int column = column_of(q, a, t);
    if (column >= 0)
        row->factor[column] += times;
    return column >= 0;
}

/* ---- What must be taken apart first ---- */

static bool is_polynomial(const peal_meanings *m, peal_term t, bool *nonlinear)
{
    const term *x = &m->item[t];
    if (x->kind != PEAL_INTEGER)
        return false;
    if (x->shape == TERM_CONSTANT || x->shape == TERM_VARIABLE)
        return true;
    if (x->shape != TERM_OPERATOR ||
        (x->op != PEAL_OPERATOR_ADD && x->op != PEAL_OPERATOR_SUBTRACT &&
         x->op != PEAL_OPERATOR_MULTIPLY))
        return false;
    *nonlinear |= x->op == PEAL_OPERATOR_MULTIPLY && !term_is_constant(m, x->part[0]) &&
                  !term_is_constant(m, x->part[1]);
    return is_polynomial(m, x->part[0], nonlinear) && is_polynomial(m, x->part[1], nonlinear);
}

/* A variable that is multiplied by another, or by itself; 0: none. */
static peal_term multiplied_variable(const peal_meanings *m, peal_term t, bool within)
{
    const term *x = &m->item[t];
    if (x->shape == TERM_VARIABLE)
        return within ? t : 0;
    if (x->shape != TERM_OPERATOR)
        return 0;
    within |= x->op == PEAL_OPERATOR_MULTIPLY && !term_is_constant(m, x->part[0]) &&
              !term_is_constant(m, x->part[1]);
    peal_term found = multiplied_variable(m, x->part[0], within);
    return found || !x->part[1] ? found : multiplied_variable(m, x->part[1], within);
}

/* The innermost part that is a choice, or a remainder of products; 0: none. */
static peal_term find_choice(const peal_meanings *m, peal_term t)
{
    const term *x = &m->item[t];
    bool nonlinear = false;
    for (int i = 0; i < 3 && x->part[i]; i++) {
        peal_term found = find_choice(m, x->part[i]);
        if (found)
            return found;
    }
    if (x->shape == TERM_SELECT)
        return t;
    if (!term_is_operator(m, t, PEAL_OPERATOR_MODULO) || !term_is_constant(m, x->part[1]))
        return 0;
    int64_t by = m->item[x->part[1]].bits;
    return by > 0 && by <= MOST_REMAINDERS && is_polynomial(m, x->part[0], &nonlinear) && nonlinear
               ? t
               : 0;
}

/* Goes on with an alternative of its own: two more literals (0: none). */
static peal_answer try_with(question *q, const attempt *a, literal one, literal two)
{
    attempt *own = malloc(sizeof(*own));
    peal_answer answer = PEAL_PERHAPS;
    if (own && q->attempts++ < MOST_ATTEMPTS) {
        *own = *a;
        if ((!one.term || push(own, one.term, one.holds)) &&
            (!two.term || push(own, two.term, two.holds)))
            answer = take_apart(q, own);
    } else
        q->out->depends_on_run = false;
    free(own);
    return answer;
}

static peal_answer either(peal_answer a, peal_answer b)
{
    return a == PEAL_YES || b == PEAL_YES ? PEAL_YES
           : a == PEAL_NO && b == PEAL_NO ? PEAL_NO
                                          : PEAL_PERHAPS;
}

/* One of two pairs of literals. */
static peal_answer try_either(question *q, const attempt *a, literal one, literal two,
                              literal other_one, literal other_two)
{
    peal_answer first = try_with(q, a, one, two);
    return first == PEAL_YES ? first : either(first, try_with(q, a, other_one, other_two));
}

static peal_answer try_choice(question *q, const attempt *a, literal l, peal_term choice)
{
    peal_meanings *m = q->m;
    const term x = m->item[choice];
    if (x.shape == TERM_SELECT)
        return try_either(q, a, (literal){x.part[0], true},
                          (literal){term_replace(m, l.term, choice, x.part[1]), l.holds},
                          (literal){x.part[0], false},
                          (literal){term_replace(m, l.term, choice, x.part[2]), l.holds});
    peal_term variable = multiplied_variable(m, x.part[0], false);
    peal_term rest = peal_term_operator(m, PEAL_OPERATOR_MODULO, variable, x.part[1]);
    peal_answer answer = PEAL_NO;
    for (int64_t r = 0; r < m->item[x.part[1]].bits && answer != PEAL_YES; r++) {
        peal_term value = peal_term_integer(m, r);
        peal_term known =
            peal_term_operator(m, PEAL_OPERATOR_MODULO, term_replace(m, x.part[0], variable, value),
                               x.part[1]);
        peal_term is = peal_term_operator(m, PEAL_OPERATOR_EQUAL, rest, value);
        answer =
            either(answer, try_with(q, a, (literal){is, true},
                                    (literal){term_replace(m, l.term, choice, known), l.holds}));
    }
    return answer;
}

/* ---- Literals ---- */

/* a < b or a == b of whole numbers becomes a row; -1: not possible. */
static bool add_comparison(question *q, attempt *a, const term *t, bool holds)
{
    bool equal = t->op == PEAL_OPERATOR_EQUAL;
    peal_linear_row *row = add_row(a, equal, equal ? 0 : holds ? -1 : 0);
    int sign = equal || holds ? 1 : -1; /* a < b: b - a - 1 >= 0; else a - b >= 0 */
    return row && add_form(q, a, row, t->part[1], sign) && add_form(q, a, row, t->part[0], -sign);
}

/* What a comparison of real numbers leaves possible. False: nothing. */
static bool add_order(attempt *a, const term *t, bool holds)
{
    bool turned = t->part[0] > t->part[1];
    peal_term low = t->part[turned], high = t->part[!turned];
    unsigned less = turned ? GREATER : LESS;
    unsigned order = t->op == PEAL_OPERATOR_EQUAL  ? EQUAL
                     : t->op == PEAL_OPERATOR_LESS ? less
                                                   : less | EQUAL;
    int at = 0;
    if (low == high)
        order = t->op == PEAL_OPERATOR_LESS ? 0 : EQUAL;
    while (at < a->pair_count && (a->pair[at].a != low || a->pair[at].b != high))
        at++;
    a->unsettled = true;
    if (at == MOST_COMPARED) {
        a->vague = true;
        return true;
    }
    if (at == a->pair_count)
        a->pair[a->pair_count++] =
            (compared){low, high,
                       low == high ? EQUAL | UNORDERED : LESS | EQUAL | GREATER | UNORDERED};
    a->pair[at].order &= holds ? order : ~order;
    return a->pair[at].order != 0;
}

static peal_answer decide(question *q, attempt *a)
{
    peal_answer answer = peal_linear_solvable(&a->system);
    if (answer == PEAL_PERHAPS || (answer == PEAL_YES && a->vague))
        q->out->depends_on_run = false;
    if (answer == PEAL_YES && (a->unsettled || a->vague))
        return PEAL_PERHAPS;
    q->out->is_shown = answer == PEAL_YES;
    for (int i = 0; i < q->shown_count && q->out->is_shown; i++) {
        int column = column_of(q, a, q->shown[i]);
        peal_linear_row *row = column < 0 ? NULL : add_row(a, true, 0);
        if (!row) {
            q->out->is_shown = false;
            break;
        }
        a->system.row_count--;
        if (!peal_linear_least(&a->system, column, INT64_MAX, &q->out->value[i])) {
            q->out->is_shown = false;
            break;
        }
        a->system.row_count++;
        row->factor[column] = 1;
        row->constant = -(peal_wide)q->out->value[i];
    }
    return answer;
}

/* A literal that is a comparison. PEAL_YES: it is part of the system now. */
static peal_answer take_comparison(question *q, attempt *a, literal l)
{
    const term t = q->m->item[l.term];
    const term *x = &q->m->item[t.part[0]];
    peal_term choice = find_choice(q->m, l.term);
    if (choice)
        return try_choice(q, a, l, choice);
    if (x->kind == PEAL_REAL || q->m->item[t.part[1]].kind == PEAL_REAL)
        return add_order(a, &t, l.holds) ? take_apart(q, a) : PEAL_NO;
    if (t.op == PEAL_OPERATOR_EQUAL && !l.holds) {
        peal_term less = peal_term_operator(q->m, PEAL_OPERATOR_LESS, t.part[0], t.part[1]);
        peal_term more = peal_term_operator(q->m, PEAL_OPERATOR_LESS, t.part[1], t.part[0]);
        return try_either(q, a, (literal){less, true}, (literal){0}, (literal){more, true},
                          (literal){0});
    }
    if (add_comparison(q, a, &t, l.holds))
        return take_apart(q, a);
    q->out->depends_on_run = false;
    return PEAL_PERHAPS;
}

/* Both sides true or both false. */
static peal_answer take_equivalence(question *q, attempt *a, literal l)
{
    const term t = q->m->item[l.term];
    return try_either(q, a, (literal){t.part[0], true}, (literal){t.part[1], l.holds},
                      (literal){t.part[0], false}, (literal){t.part[1], !l.holds});
}

static peal_answer take_apart(question *q, attempt *a)
{
    while (a->literal_count) {
        literal l = a->literal[--a->literal_count];
        const term t = q->m->item[l.term];
        bool junction =
            t.shape == TERM_OPERATOR && (t.op == PEAL_OPERATOR_AND || t.op == PEAL_OPERATOR_OR);
        if (t.shape == TERM_CONSTANT) {
            if ((t.bits != 0) != l.holds)
                return PEAL_NO;
        } else if (t.shape == TERM_OPERATOR && t.op == PEAL_OPERATOR_NOT)
            push(a, t.part[0], !l.holds);
        else if (junction && (t.op == PEAL_OPERATOR_AND) == l.holds) {
            if (!push(a, t.part[0], l.holds) || !push(a, t.part[1], l.holds))
                return PEAL_PERHAPS;
        } else if (junction)
            return try_either(q, a, (literal){t.part[0], l.holds}, (literal){0},
                              (literal){t.part[0], !l.holds}, (literal){t.part[1], l.holds});
        else if (t.shape != TERM_OPERATOR)
            a->unsettled = true; /* a condition that nobody looks into */
        else if (q->m->item[t.part[0]].kind == PEAL_BOOLEAN)
            return take_equivalence(q, a, l);
        else
            return take_comparison(q, a, l);
    }
    return decide(q, a);
}

peal_meeting peal_terms_meet(peal_meanings *m, const peal_term *condition, int count,
                             const peal_term *shown, int shown_count)
{
    peal_meeting out = {.answer = PEAL_PERHAPS, .depends_on_run = true};
    question q = {.m = m, .shown = shown, .shown_count = shown_count, .out = &out};
    attempt *first = calloc(1, sizeof(*first));
    bool fits = first != NULL;
    for (int i = 0; i < count && fits; i++)
        fits = push(first, condition[i], true);
    if (fits)
        out.answer = take_apart(&q, first);
    else
        out.depends_on_run = false;
    out.depends_on_run &= out.answer == PEAL_PERHAPS;
    free(first);
    return out;
}

bool peal_terms_equal(peal_meanings *m, peal_term a, peal_term b, peal_term where)
{
    peal_term differ;
    if (a == b)
        return true;
    if (m->item[a].kind != m->item[b].kind)
        return false;
    if (m->item[a].kind == PEAL_BOOLEAN)
        differ = peal_term_or(m, peal_term_and(m, a, peal_term_not(m, b)),
                              peal_term_and(m, b, peal_term_not(m, a)));
    else if (m->item[a].kind == PEAL_INTEGER)
        differ = peal_term_operator(m, PEAL_OPERATOR_UNEQUAL, a, b);
    else
        return false;
    peal_term condition[2] = {differ, where};
    return peal_terms_meet(m, condition, where ? 2 : 1, NULL, 0).answer == PEAL_NO;
}
