/* Whether conditions meet: decided by arithmetic, compared with trying every value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/meaning.h"

enum { COUNTERS = 3, LIMIT = 14, PAIRS = 3000, NODES = 512 };

/* ---- Expressions by hand ---- */

typedef struct expressions {
    peal_expr node[NODES];
    const peal_expr *operand[NODES][3];
    int count;
    uint64_t seed;
} expressions;

static const peal_expr *add_node(expressions *e, peal_expr node, const peal_expr *a,
                                 const peal_expr *b)
{
    int at = e->count++;
    assert_true(at < NODES);
    e->operand[at][0] = a;
    e->operand[at][1] = b;
    node.operand = e->operand[at];
    node.operand_count = b ? 2 : a ? 1 : 0;
    e->node[at] = node;
    return &e->node[at];
}

static const peal_expr *number(expressions *e, int64_t value)
{
    return add_node(e,
                    (peal_expr){.kind = PEAL_EXPR_CONSTANT,
                                .value = {.kind = PEAL_INTEGER, .u.integer = value}},
                    NULL, NULL);
}

static const peal_expr *counter(expressions *e, int depth)
{
    return add_node(e, (peal_expr){.kind = PEAL_EXPR_COUNTER, .index = depth}, NULL, NULL);
}

static const peal_expr *apply(expressions *e, peal_operator op, const peal_expr *a,
                              const peal_expr *b)
{
    return add_node(e, (peal_expr){.kind = PEAL_EXPR_OPERATOR, .op = op}, a, b);
}

static int draw(expressions *e, int count)
{
    e->seed = e->seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((e->seed >> 33) % (uint64_t)count);
}

static const peal_expr *choose(expressions *e, const peal_expr *holds, const peal_expr *a,
                               const peal_expr *b)
{
    const peal_expr *made =
        add_node(e, (peal_expr){.kind = PEAL_EXPR_OPERATOR, .op = PEAL_OPERATOR_CHOICE}, holds, a);
    int at = (int)(made - e->node);
    e->operand[at][2] = b;
    e->node[at].operand_count = 3;
    return made;
}

static const peal_expr *random_condition(expressions *e, int depth);

static const peal_expr *random_number(expressions *e, int depth)
{
    static const peal_operator sums[] = {PEAL_OPERATOR_ADD, PEAL_OPERATOR_SUBTRACT};
    static const peal_operator shares[] = {PEAL_OPERATOR_MODULO, PEAL_OPERATOR_DIVIDE};
    static const peal_operator ends[] = {PEAL_OPERATOR_MINIMUM, PEAL_OPERATOR_MAXIMUM};
    const peal_expr *a;
    switch (depth > 0 ? draw(e, 10) : draw(e, 2)) {
    case 0:
        return number(e, draw(e, 30) - 6);
    case 1:
    case 2:
        return counter(e, draw(e, COUNTERS));
    case 3:
    case 4:
        a = random_number(e, depth - 1);
        return apply(e, sums[draw(e, 2)], a, random_number(e, depth - 1));
    case 5:
        a = random_number(e, depth - 1);
        return apply(e, PEAL_OPERATOR_MULTIPLY, a, number(e, draw(e, 11) - 5));
    case 6:
        a = random_number(e, depth - 1);
        return apply(e, ends[draw(e, 2)], a, random_number(e, depth - 1));
    case 7:
        return apply(e, PEAL_OPERATOR_ABSOLUTE, random_number(e, depth - 1), NULL);
    case 8: {
        const peal_expr *holds = random_condition(e, 0);
        a = random_number(e, depth - 1);
        return choose(e, holds, a, random_number(e, depth - 1));
    }
    default:
        a = random_number(e, depth - 1);
        return apply(e, shares[draw(e, 2)], a, number(e, draw(e, 2) ? 2 + draw(e, 9) : -2));
    }
}

static const peal_expr *random_condition(expressions *e, int depth)
{
    const peal_expr *a;
    int kind = depth > 0 ? draw(e, 6) : 3 + draw(e, 3);
    if (kind == 0)
        return apply(e, PEAL_OPERATOR_NOT, random_condition(e, depth - 1), NULL);
    if (kind < 3) {
        a = random_condition(e, depth - 1);
        return apply(e, kind == 1 ? PEAL_OPERATOR_AND : PEAL_OPERATOR_OR, a,
                     random_condition(e, depth - 1));
    }
    a = random_number(e, 2);
    peal_operator op = (peal_operator)(PEAL_OPERATOR_EQUAL + draw(e, 6));
    return apply(e, op, a, random_number(e, 1));
}

/* ---- Every value ---- */

/* The third counter goes up to the second. */
static bool is_met(const peal_expr *const *condition, int count)
{
    int64_t value[COUNTERS];
    peal_scope scope = {.counter = value, .counter_count = COUNTERS};
    for (value[0] = 0; value[0] < LIMIT; value[0]++)
        for (value[1] = 0; value[1] < LIMIT; value[1]++)
            for (value[2] = 0; value[2] < value[1]; value[2]++) {
                bool all = true;
                for (int i = 0; i < count && all; i++)
                    assert_int_equal(peal_expr_boolean(condition[i], &scope, true, &all, NULL), 0);
                if (all)
                    return true;
            }
    return false;
}

typedef struct fixture {
    peal_arena *arena;
    peal_meanings *m;
    peal_term counter[COUNTERS];
    peal_program_point point;
} fixture;

static void begin(fixture *f, int64_t limit)
{
    static const peal_graph_data nothing;
    expressions e = {.count = 0};
    f->arena = peal_arena_create();
    f->m = peal_meanings_create(&nothing, f->arena);
    f->point = (peal_program_point){.counter = f->counter, .counter_count = COUNTERS};
    f->counter[0] = peal_term_counter(f->m, number(&e, limit), &f->point);
    f->counter[1] = peal_term_counter(f->m, number(&e, limit), &f->point);
    f->counter[2] = peal_term_counter(f->m, counter(&e, 1), &f->point);
}

static peal_meeting meet(fixture *f, const peal_expr *const *condition, int count)
{
    peal_term term[4];
    for (int i = 0; i < count; i++)
        term[i] = peal_meaning_of(f->m, condition[i], &f->point);
    return peal_terms_meet(f->m, term, count, f->counter, COUNTERS);
}

static void test_random_conditions(void **state)
{
    int undecided = 0, met = 0;
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        expressions e = {.seed = (uint64_t)i};
        fixture f;
        begin(&f, LIMIT);
        const peal_expr *condition[3];
        condition[0] = random_condition(&e, 1);
        condition[1] = random_condition(&e, 1);
        /* a counter that no condition names still has a value */
        condition[2] = apply(&e, PEAL_OPERATOR_GREATER_EQUAL, counter(&e, 2), number(&e, 0));
        peal_meeting found = meet(&f, condition, 3);
        bool really = is_met(condition, 3);
        if (found.answer == PEAL_PERHAPS)
            undecided++;
        else if ((found.answer == PEAL_YES) != really)
            fail_msg("seed %d: told %d, is %d", i, found.answer, really);
        met += really;
        if (found.answer == PEAL_YES) { /* the example is one */
            peal_scope scope = {.counter = found.value, .counter_count = COUNTERS};
            assert_true(found.is_shown);
            for (int k = 0; k < 3; k++) {
                bool holds = false;
                assert_int_equal(peal_expr_boolean(condition[k], &scope, true, &holds, NULL), 0);
                assert_true(holds);
            }
        }
        peal_arena_destroy(f.arena);
    }
    assert_in_range(met, PAIRS / 4, PAIRS - PAIRS / 10);
    assert_in_range(undecided, 0, PAIRS / 100);
}

/* ---- Cases ---- */

/* counter 0 % divisor == rest */
static const peal_expr *remainder_is(expressions *e, int64_t divisor, int64_t rest)
{
    return apply(e, PEAL_OPERATOR_EQUAL,
                 apply(e, PEAL_OPERATOR_MODULO, counter(e, 0), number(e, divisor)),
                 number(e, rest));
}

static void expect_remainders(int64_t limit, int64_t one, int64_t one_rest, int64_t other,
                              int64_t other_rest, peal_answer answer, int64_t first)
{
    expressions e = {.count = 0};
    fixture f;
    begin(&f, limit);
    const peal_expr *condition[2] = {remainder_is(&e, one, one_rest),
                                     remainder_is(&e, other, other_rest)};
    peal_meeting found = meet(&f, condition, 2);
    assert_int_equal(found.answer, answer);
    if (answer == PEAL_YES)
        assert_int_equal(found.value[0], first);
    peal_arena_destroy(f.arena);
}

static void test_remainders(void **state)
{
    (void)state;
    expect_remainders(100000, 31, 5, 33, 7, PEAL_YES, 997);
    expect_remainders(100000, 32, 31, 33, 0, PEAL_YES, 1023);
    expect_remainders(1023, 32, 31, 33, 0, PEAL_NO, 0); /* not so far */
    expect_remainders(1024, 32, 31, 33, 0, PEAL_YES, 1023);
    expect_remainders(100000, 97, 13, 101, 100, PEAL_YES, 5251);
    expect_remainders(INT64_MAX, 1000003, 17, 998244353, 5, PEAL_YES, 58912388736653);
    expect_remainders(INT64_MAX, 4, 1, 6, 2, PEAL_NO, 0);
    expect_remainders(INT64_MAX, 4, 1, 6, 3, PEAL_YES, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_conditions),
                                       cmocka_unit_test(test_remainders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
