/* What evaluation does without all values, the typed variants, and templates. Values of expressions
 * themselves are tested in tests/dsl, from their texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/expression.h"

#include <string.h>

static void expect_code(peal_diagnostics *list, peal_code code)
{
    assert_int_equal(peal_diagnostics_count(list), 1);
    assert_int_equal(peal_diagnostics_at(list, 0)->code, code);
}

static void test_unknown_values(void **state)
{
    static const peal_expr_kind kinds[] = {PEAL_EXPR_PARAM,      PEAL_EXPR_RANK,
                                           PEAL_EXPR_RANKS,      PEAL_EXPR_RANK_AXIS,
                                           PEAL_EXPR_RANKS_AXIS, PEAL_EXPR_COUNTER,
                                           PEAL_EXPR_EXTENT,     PEAL_EXPR_ORIGIN,
                                           PEAL_EXPR_COUNT,      PEAL_EXPR_ELEMENT};
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        peal_diagnostics *list = peal_diagnostics_create();
        peal_scope nothing = {0};
        peal_expr expr = {.kind = kinds[i]};
        peal_value value;
        assert_int_equal(peal_expr_evaluate(&expr, &nothing, &value, list), PEAL_STATUS_SPEC);
        expect_code(list, PEAL_E_VALUE_NOT_KNOWN_YET);
        assert_int_equal(peal_expr_evaluate(&expr, &nothing, &value, NULL), PEAL_STATUS_SPEC);
        peal_diagnostics_destroy(list);
    }
}

static void test_typed(void **state)
{
    peal_scope nothing = {0};
    peal_expr seven = {.value = {.kind = PEAL_INTEGER, .u.integer = 7}};
    peal_expr half = {.value = {.kind = PEAL_REAL, .u.real = 0.5}};
    peal_expr yes = {.value = {.kind = PEAL_BOOLEAN, .u.boolean = true}};
    int64_t integer = 1;
    double real = 1;
    bool boolean = false;
    (void)state;
    assert_int_equal(peal_expr_integer(&seven, &nothing, 0, &integer, NULL), PEAL_STATUS_OK);
    assert_int_equal(integer, 7);
    assert_int_equal(peal_expr_integer(NULL, &nothing, 3, &integer, NULL), PEAL_STATUS_OK);
    assert_int_equal(integer, 3);
    assert_int_equal(peal_expr_real(&seven, &nothing, 0, &real, NULL), PEAL_STATUS_OK);
    assert_true(real == 7);
    assert_int_equal(peal_expr_boolean(&yes, &nothing, false, &boolean, NULL), PEAL_STATUS_OK);
    assert_true(boolean);
    assert_int_equal(peal_expr_boolean(NULL, &nothing, false, &boolean, NULL), PEAL_STATUS_OK);
    assert_false(boolean);
    peal_diagnostics *list = peal_diagnostics_create();
    assert_int_equal(peal_expr_integer(&half, &nothing, 0, &integer, list), PEAL_STATUS_SPEC);
    expect_code(list, PEAL_E_WRONG_VALUE_TYPE);
    assert_int_equal(integer, 3);
    peal_diagnostics_destroy(list);
    assert_int_equal(peal_expr_real(&yes, &nothing, 0, &real, NULL), PEAL_STATUS_SPEC);
    assert_int_equal(peal_expr_boolean(&half, &nothing, 0, &boolean, NULL), PEAL_STATUS_SPEC);
}

static peal_status expand(const char *text, peal_arena *arena, const char **out,
                          peal_diagnostics *list)
{
    static const peal_param params[] = {
        {.name = "n", .value = {.kind = PEAL_INTEGER, .u.integer = -64}},
        {.name = "word", .value = {.kind = PEAL_TEXT, .u.text = "abc"}},
        {.name = "on", .value = {.kind = PEAL_BOOLEAN, .u.boolean = true}}};
    static const peal_graph_data graph = {.params = params, .param_count = 3};
    static const int64_t counter[] = {12, 3};
    static const char *const names[] = {"step", NULL};
    peal_scope scope = {
        .graph = &graph, .rank = 2, .ranks = 4, .counter = counter, .counter_count = 2};
    return peal_template_expand(text, &scope, names, (peal_source){"t", 4, 2}, arena, out, list);
}

static void test_templates(void **state)
{
    static const char *const cases[][2] = {
        {"u-{step}-{rank}of{ranks}.npy", "u-12-2of4.npy"},
        {"{word}{n}{on}", "abc-64true"},
        {"u-{step:06}-{rank:03}of{ranks:01}{n:05}.npy", "u-000012-002of4-00064.npy"},
        {"{step:020}", "00000000000000000012"},
        {"plain", "plain"},
        {"", ""},
        {"{{{rank}}}", "{2}"},
        {"a}b", "a}b"},
    };
    peal_arena *arena = peal_arena_create();
    const char *out;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(expand(cases[i][0], arena, &out, NULL), PEAL_STATUS_OK);
        assert_string_equal(out, cases[i][1]);
    }
    static const char *const broken[] = {"{",          "{}",       "{rank",      "{stop}",
                                         "{k}",        "{step:}",  "{step:6}",   "{step:0}",
                                         "{step:021}", "{step:06", "{step:06x}", "{:06}",
                                         "{word:03}",  "{on:03}",  "{step:0-3}"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        peal_diagnostics *list = peal_diagnostics_create();
        out = NULL;
        assert_int_equal(expand(broken[i], arena, &out, list), PEAL_STATUS_SPEC);
        assert_null(out);
        expect_code(list, PEAL_E_UNKNOWN_NAME_IN_TEXT);
        assert_int_equal(peal_diagnostics_at(list, 0)->source.line, 4);
        peal_diagnostics_destroy(list);
    }
    peal_arena_destroy(arena);
}

/* Each of these differs from all others. */
static void test_equal(void **state)
{
    const peal_expr two = {.value = {PEAL_INTEGER, {.integer = 2}}};
    const peal_expr *step_two[] = {&(peal_expr){.kind = PEAL_EXPR_COUNTER}, &two};
    const peal_expr *inner_two[] = {&(peal_expr){.kind = PEAL_EXPR_COUNTER, .index = 1}, &two};
    const peal_expr different[] = {
        two,
        {.value = {PEAL_INTEGER, {.integer = 3}}},
        {.value = {PEAL_REAL, {.real = 2}}},
        {.value = {PEAL_REAL, {.real = 0.5}}},
        {.value = {PEAL_BOOLEAN, {.boolean = true}}},
        {.value = {PEAL_BOOLEAN, {.boolean = false}}},
        {.kind = PEAL_EXPR_RANK_AXIS, .axis = 0},
        {.kind = PEAL_EXPR_RANK_AXIS, .axis = 1},
        {.kind = PEAL_EXPR_OPERATOR, PEAL_OPERATOR_MODULO, .operand_count = 2, .operand = step_two},
        {.kind = PEAL_EXPR_OPERATOR, PEAL_OPERATOR_DIVIDE, .operand_count = 2, .operand = step_two},
        {.kind = PEAL_EXPR_OPERATOR,
         PEAL_OPERATOR_MODULO,
         .operand_count = 2,
         .operand = inner_two},
        {.kind = PEAL_EXPR_OPERATOR, PEAL_OPERATOR_MODULO, .operand_count = 1, .operand = step_two},
    };
    enum { COUNT = sizeof(different) / sizeof(different[0]) };
    (void)state;
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < COUNT; k++) {
            peal_expr same = different[k];
            same.source.line = 7;
            assert_int_equal(peal_expr_equal(&different[i], &same), i == k);
        }
    assert_true(peal_expr_equal(NULL, NULL));
    assert_false(peal_expr_equal(&two, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_values),
        cmocka_unit_test(test_typed),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
