/* The omega test: see linear.h. */
#include "base/linear.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SYSTEMS = 400 /* that one question may lead to */ };

typedef struct search {
    int systems;    /* looked at so far */
    bool too_large; /* a number left the range that is safe */
} search;

static peal_answer solve(search *s, peal_linear_system *system);

/* ---- Numbers ---- */

static peal_wide absolute(peal_wide a)
{
    return a < 0 ? -a : a;
}

/* Factors stay below 2^62, sums below 2^126: nothing wraps. */
static peal_wide product(search *s, peal_wide a, peal_wide b)
{
    const peal_wide limit = (peal_wide)1 << 62;
    if (a == 0 || b == 0)
        return 0;
    if (absolute(a) == 1 && absolute(b) < limit * limit)
        return a * b;
    if (absolute(b) == 1 && absolute(a) < limit * limit)
        return a * b;
    if (absolute(a) >= limit || absolute(b) >= limit) {
        s->too_large = true;
        return 0;
    }
    return a * b;
}

static peal_wide sum(search *s, peal_wide a, peal_wide b)
{
    const peal_wide limit = (peal_wide)1 << 125;
    if (absolute(a) >= limit || absolute(b) >= limit) {
        s->too_large = true;
        return 0;
    }
    return a + b;
}

static peal_wide floor_of(peal_wide a, peal_wide b)
{
    peal_wide quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static peal_wide divisor_of(peal_wide a, peal_wide b)
{
    a = absolute(a);
    b = absolute(b);
    while (b) {
        peal_wide rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- Rows ---- */

static void remove_row(peal_linear_system *p, int row)
{
    p->row[row] = p->row[--p->row_count];
}

/* Divides a row by what its factors share; false: it can never hold. */
static bool reduce_row(const peal_linear_system *p, peal_linear_row *row, bool *empty)
{
    peal_wide shared = 0;
    for (int k = 0; k < p->variable_count; k++)
        shared = divisor_of(shared, row->factor[k]);
    *empty = shared == 0;
    if (*empty)
        return row->is_equation ? row->constant == 0 : row->constant >= 0;
    if (row->is_equation && row->constant % shared != 0)
        return false;
    for (int k = 0; k < p->variable_count; k++)
        row->factor[k] /= shared;
    row->constant = floor_of(row->constant, shared); /* whole numbers: tighter */
    return true;
}

/* 1: the same factors, -1: the opposite ones; 0: others. */
static int compare_factors(const peal_linear_system *p, const peal_linear_row *a,
                           const peal_linear_row *b)
{
    bool same = true, opposite = true;
    for (int k = 0; k < p->variable_count; k++) {
        same &= a->factor[k] == b->factor[k];
        opposite &= a->factor[k] == -b->factor[k];
    }
    return same ? 1 : opposite ? -1 : 0;
}

/* Of inequalities with the same factors the tighter one is kept, and two that leave one value are
 * an equation. False: they contradict each other. */
static bool join_rows(search *s, peal_linear_system *p)
{
    for (int i = 0; i < p->row_count; i++)
        for (int j = i + 1; j < p->row_count; j++) {
            peal_linear_row *a = &p->row[i], *b = &p->row[j];
            int like = a->is_equation || b->is_equation ? 0 : compare_factors(p, a, b);
            peal_wide room = like < 0 ? sum(s, a->constant, b->constant) : 1;
            if (room < 0)
                return false;
            if (like > 0 && b->constant < a->constant)
                a->constant = b->constant;
            a->is_equation |= room == 0;
            if (like > 0 || room == 0)
                remove_row(p, j--);
        }
    return true;
}

static bool reduce_rows(search *s, peal_linear_system *p)
{
    for (int i = 0; i < p->row_count; i++) {
        bool empty;
        if (!reduce_row(p, &p->row[i], &empty))
            return false;
        if (empty)
            remove_row(p, i--);
    }
    return join_rows(s, p);
}

static int find_equation(const peal_linear_system *p)
{
    for (int i = 0; i < p->row_count; i++)
        if (p->row[i].is_equation)
            return i;
    return -1;
}

static int smallest_factor(const peal_linear_system *p, const peal_linear_row *row)
{
    int least = -1;
    for (int k = 0; k < p->variable_count; k++)
        if (row->factor[k] &&
            (least < 0 || absolute(row->factor[k]) < absolute(row->factor[least])))
            least = k;
    return least;
}

/* Solves an equation for a variable whose factor is 1 or -1, and puts it into the other rows. */
static void substitute(search *s, peal_linear_system *p, int equation, int variable)
{
    peal_linear_row e = p->row[equation];
    remove_row(p, equation);
    for (int i = 0; i < p->row_count; i++) {
        peal_linear_row *row = &p->row[i];
        peal_wide times = product(s, row->factor[variable], -e.factor[variable]);
        if (!times)
            continue;
        for (int k = 0; k < p->variable_count; k++)
            row->factor[k] = sum(s, row->factor[k], product(s, times, e.factor[k]));
        row->constant = sum(s, row->constant, product(s, times, e.constant));
    }
}

/* One round of Euclid's algorithm on an equation: another variable takes a variable's place, such
 * that all other factors become remainders by its factor. */
static void shrink_equation(search *s, peal_linear_system *p, int equation, int variable)
{
    const peal_linear_row e = p->row[equation];
    for (int k = 0; k < p->variable_count; k++) {
        peal_wide quotient = k == variable ? 0 : floor_of(e.factor[k], e.factor[variable]);
        for (int i = 0; i < p->row_count && quotient; i++)
            p->row[i].factor[k] =
                sum(s, p->row[i].factor[k], product(s, -quotient, p->row[i].factor[variable]));
    }
}

/* Until no equation is left; false: there is no solution. */
static bool solve_equations(search *s, peal_linear_system *p)
{
    while (!s->too_large) {
        if (!reduce_rows(s, p))
            return false;
        int equation = find_equation(p);
        if (equation < 0)
            return true;
        int variable = smallest_factor(p, &p->row[equation]);
        if (absolute(p->row[equation].factor[variable]) == 1)
            substitute(s, p, equation, variable);
        else
            shrink_equation(s, p, equation, variable);
    }
    return true;
}

/* ---- Inequalities ---- */

/* What stands in the way of a variable's elimination. */
typedef struct bounds {
    int lower, upper;                 /* rows that bound it */
    peal_wide most_lower, most_upper; /* largest factors there */
} bounds;

static bounds bounds_of(const peal_linear_system *p, int variable)
{
    bounds b = {0};
    for (int i = 0; i < p->row_count; i++) {
        peal_wide factor = p->row[i].factor[variable];
        b.lower += factor > 0;
        b.upper += factor < 0;
        b.most_lower = factor > b.most_lower ? factor : b.most_lower;
        b.most_upper = -factor > b.most_upper ? -factor : b.most_upper;
    }
    return b;
}

/* The variable that costs least; whether its shadow is exact. -1: none is left. */
static int choose_variable(const peal_linear_system *p, bool *exact)
{
    int best = -1, best_cost = 0;
    *exact = false;
    for (int k = 0; k < p->variable_count; k++) {
        bounds b = bounds_of(p, k);
        bool free = b.lower == 0 || b.upper == 0;
        bool fits = free || b.most_lower == 1 || b.most_upper == 1;
        int cost = free ? -1 : b.lower * b.upper;
        if (b.lower + b.upper == 0 || (best >= 0 && *exact && !fits))
            continue;
        if (best < 0 || (fits && !*exact) || cost < best_cost) {
            best = k;
            best_cost = cost;
            *exact = fits;
        }
    }
    return best;
}

/* The system without a variable: each lower bound with each upper one. `dark`: with so much room
 * between them that a whole number lies there. False: too many rows. */
static bool cast_shadow(search *s, const peal_linear_system *p, int variable, bool dark,
                        peal_linear_system *out)
{
    out->variable_count = p->variable_count;
    out->row_count = 0;
    bounds b = bounds_of(p, variable);
    for (int i = 0; i < p->row_count; i++) {
        const peal_linear_row *low = &p->row[i];
        if (out->row_count == PEAL_LINEAR_ROWS)
            return false;
        if (!low->factor[variable])
            out->row[out->row_count++] = *low;
        if (low->factor[variable] <= 0 || !b.upper)
            continue;
        for (int j = 0; j < p->row_count; j++) {
            const peal_linear_row *high = &p->row[j];
            peal_wide a = low->factor[variable], c = -high->factor[variable];
            if (c <= 0)
                continue;
            if (out->row_count == PEAL_LINEAR_ROWS)
                return false;
            peal_linear_row *row = &out->row[out->row_count++];
            row->is_equation = false;
            for (int k = 0; k < p->variable_count; k++)
                row->factor[k] =
                    sum(s, product(s, c, low->factor[k]), product(s, a, high->factor[k]));
            row->constant = sum(s, product(s, c, low->constant), product(s, a, high->constant));
            if (dark)
                row->constant = sum(s, row->constant, -product(s, a - 1, c - 1));
        }
    }
    return true;
}

static peal_answer solve_shadow(search *s, const peal_linear_system *p, int variable, bool dark)
{
    peal_linear_system *next = malloc(sizeof(*next));
    peal_answer answer = PEAL_PERHAPS;
    if (next && cast_shadow(s, p, variable, dark, next))
        answer = solve(s, next);
    free(next);
    return answer;
}

/* A solution that the dark shadow misses lies just above some lower bound. */
static peal_answer solve_splinters(search *s, const peal_linear_system *p, int variable)
{
    peal_wide most = bounds_of(p, variable).most_upper;
    peal_linear_system *next = malloc(sizeof(*next));
    peal_answer answer = next ? PEAL_NO : PEAL_PERHAPS;
    for (int i = 0; i < p->row_count && next && answer == PEAL_NO; i++) {
        peal_wide factor = p->row[i].factor[variable];
        peal_wide last = factor > 0 ? floor_of(most * factor - most - factor, most) : -1;
        for (peal_wide above = 0; above <= last && answer == PEAL_NO; above++) {
            *next = *p;
            next->row[i].is_equation = true;
            next->row[i].constant = sum(s, next->row[i].constant, -above);
            answer = solve(s, next);
        }
    }
    free(next);
    return answer;
}

static peal_answer solve(search *s, peal_linear_system *p)
{
    bool exact;
    if (++s->systems > MOST_SYSTEMS)
        return PEAL_PERHAPS;
    bool possible = solve_equations(s, p);
    if (s->too_large)
        return PEAL_PERHAPS;
    if (!possible)
        return PEAL_NO;
    int variable = choose_variable(p, &exact);
    if (variable < 0)
        return PEAL_YES;
    peal_answer shadow = solve_shadow(s, p, variable, false);
    if (exact || shadow == PEAL_NO)
        return shadow;
    if (s->too_large)
        return PEAL_PERHAPS;
    if (solve_shadow(s, p, variable, true) == PEAL_YES)
        return PEAL_YES;
    return solve_splinters(s, p, variable);
}

peal_answer peal_linear_solvable(const peal_linear_system *system)
{
    search s = {0};
    peal_linear_system *own = malloc(sizeof(*own));
    peal_answer answer = PEAL_PERHAPS;
    if (own) {
        *own = *system;
        answer = solve(&s, own);
    }
    free(own);
    return answer;
}

/* Whether the variable may be at most `most`. */
static peal_answer solvable_below(const peal_linear_system *system, int variable, int64_t most)
{
    search s = {0};
    peal_linear_system *own = malloc(sizeof(*own));
    peal_answer answer = PEAL_PERHAPS;
    if (own && system->row_count < PEAL_LINEAR_ROWS) {
        *own = *system;
        peal_linear_row *row = &own->row[own->row_count++];
        *row = (peal_linear_row){.constant = most};
        row->factor[variable] = -1;
        answer = solve(&s, own);
    }
    free(own);
    return answer;
}

bool peal_linear_least(const peal_linear_system *system, int variable, int64_t most, int64_t *out)
{
    int64_t low = 0, high = most;
    if (solvable_below(system, variable, most) != PEAL_YES)
        return false;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        peal_answer answer = solvable_below(system, variable, middle);
        if (answer == PEAL_PERHAPS)
            return false;
        if (answer == PEAL_YES)
            high = middle;
        else
            low = middle + 1;
    }
    *out = low;
    return true;
}
