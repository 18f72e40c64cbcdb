/* Values of expressions, parsed from text: arithmetic, precedence, kinds; and what makes them fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/expression.h"
#include "dsl/parser.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct fixture {
    peal_graph *graph;
    peal_graph_data data;
    peal_param params[2];
    peal_array arrays[4];
    peal_family families[3];
    peal_parser parser;
    peal_diagnostics *diagnostics;
} fixture;

static peal_value element(void *user, int array)
{
    (void)user;
    if (array == 3)
        return (peal_value){.kind = PEAL_INTEGER, .u.integer = 30};
    return (peal_value){.kind = PEAL_REAL, .u.real = 2.25};
}

static void set_up(fixture *f)
{
    struct peal_name_slot slot;
    memset(f, 0, sizeof(*f));
    assert_int_equal(peal_graph_create("test", &f->graph), PEAL_STATUS_OK);
    f->diagnostics = peal_diagnostics_create();
    f->params[0] = (peal_param){.name = "n", .value = {.kind = PEAL_INTEGER, .u.integer = 7}};
    f->params[1] = (peal_param){.name = "tol", .value = {.kind = PEAL_REAL, .u.real = 1e-8}};
    f->arrays[0] = (peal_array){.name = "u", .kind = PEAL_ARRAY_FIELD, .axis_count = 2};
    f->arrays[1] = (peal_array){.name = "d2", .kind = PEAL_ARRAY_BUFFER, .points.array = -1};
    for (int k = 2; k < 4; k++)
        f->arrays[k] = (peal_array){.name = "w(2)", .kind = PEAL_ARRAY_BUFFER, .points.array = -1};
    f->arrays[3].type = PEAL_I64;
    f->families[0] = (peal_family){.name = "u", .count = 1};
    f->families[1] = (peal_family){.name = "d2", .first = 1, .count = 1};
    f->families[2] = (peal_family){.name = "w", .counter = "l", .low = 2, .first = 2, .count = 2};
    f->data = (peal_graph_data){.params = f->params,
                                .param_count = 2,
                                .arrays = f->arrays,
                                .array_count = 4};
    f->parser = (peal_parser){.graph = f->graph,
                              .data = &f->data,
                              .arrays = f->arrays,
                              .array_ready = 4,
                              .family = f->families,
                              .family_count = 3,
                              .bound = {{"l", 2}},
                              .bound_count = 1,
                              .counter = {"step", "k"},
                              .counter_count = 2,
                              .diagnostics = f->diagnostics};
    peal_arena *arena = f->graph->arena;
    assert_true(peal_name_add(arena, &f->parser.names, "n", PEAL_NAME_PARAM, 0, &slot));
    assert_true(peal_name_add(arena, &f->parser.names, "tol", PEAL_NAME_PARAM, 1, &slot));
    assert_true(peal_name_add(arena, &f->parser.names, "u", PEAL_NAME_ARRAY, 0, &slot));
    assert_true(peal_name_add(arena, &f->parser.names, "d2", PEAL_NAME_ARRAY, 1, &slot));
    assert_true(peal_name_add(arena, &f->parser.names, "w", PEAL_NAME_ARRAY, 2, &slot));
}

static void tear_down(fixture *f)
{
    peal_graph_destroy(f->graph);
    peal_diagnostics_destroy(f->diagnostics);
}

static peal_status evaluate(fixture *f, const char *text, peal_value *out)
{
    static const int64_t counters[] = {5, 2};
    peal_layout layout[4] = {{.part = {2, {3, 4, 0, 0}, {10, 6, 1, 1}}},
                             {.part = {1, {0, 0, 0, 0}, {1, 1, 1, 1}}},
                             {.part = {1, {0, 0, 0, 0}, {1, 1, 1, 1}}},
                             {.part = {1, {0, 0, 0, 0}, {1, 1, 1, 1}}}};
    peal_scope scope = {.graph = &f->data,
                        .rank = 3,
                        .ranks = 8,
                        .position = {1, 1, 0},
                        .dims = {2, 4, 1},
                        .counter = counters,
                        .counter_count = 2,
                        .layout = layout,
                        .element = element};
    const peal_expr *expr =
        peal_parse_expression(&f->parser, text, (peal_source){"e", 1, 1}, PEAL_ALLOW_ALL);
    if (!expr) {
        fprintf(stderr, "%s\n", text);
        peal_diagnostics_print(f->diagnostics, stderr, 0);
    }
    assert_non_null(expr);
    assert_string_equal(expr->text, text);
    peal_status status = peal_expr_evaluate(expr, &scope, out, f->diagnostics);
    if (!status) /* what is said before the run agrees with what comes out */
        assert_int_equal(peal_expr_kind_of(expr, &f->data), out->kind);
    return status;
}

typedef struct integer_case {
    const char *text;
    int64_t value;
} integer_case;

static void expect_integers(const integer_case *cases, size_t count)
{
    fixture f;
    set_up(&f);
    for (size_t i = 0; i < count; i++) {
        peal_value value;
        assert_int_equal(evaluate(&f, cases[i].text, &value), PEAL_STATUS_OK);
        assert_int_equal(value.kind, PEAL_INTEGER);
        if (value.u.integer != cases[i].value)
            fprintf(stderr, "%s\n", cases[i].text);
        assert_true(value.u.integer == cases[i].value);
    }
    tear_down(&f);
}

static void test_integers(void **state)
{
    static const integer_case cases[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"10 - 2 - 3", 5},
        {"7 / 2", 3},
        {"-7 / 2", -4},
        {"7 / -2", -4},
        {"-7 / -2", 3},
        {"-7 % 4", 1},
        {"7 % -4", 3},
        {"-8 % 4", 0},
        {"-7 % -4", 1},
        {"(rank - 4) % ranks", 7},
        {"100 / 10 / 5", 2},
        {"-2 * -3", 6},
        {"- - 3", 3},
        {"+n", 7},
        {"min(n, 3, 5)", 3},
        {"max(n, 3)", 7},
        {"abs(-9)", 9},
        {"abs(9)", 9},
        {"floor(2.7)", 2},
        {"floor(-2.1)", -3},
        {"ceil(2.1)", 3},
        {"ceil(n)", 7},
        {"step % 3", 2},
        {"k", 2},
        {"rx + Rx * (ry + Ry * rz)", 3},
        {"Rz", 1},
        {"u.nx", 7},
        {"u.ny", 2},
        {"u.x0", 3},
        {"u.y0", 4},
        {"d2.count", 1},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"-9223372036854775807 - 1", INT64_MIN},
        {"-9223372036854775808 % -1", 0},
    };
    (void)state;
    expect_integers(cases, sizeof(cases) / sizeof(cases[0]));
}

/* Powers, choices, and members of families. */
static void test_levels(void **state)
{
    static const integer_case cases[] = {
        {"2 ** 10", 1024},
        {"2 ** 3 ** 2", 512},
        {"(2 ** 3) ** 2", 64},
        {"-2 ** 2", -4},
        {"2 * 3 ** 2 * 2", 36},
        {"(-2) ** 63", INT64_MIN},
        {"(-1) ** 9223372036854775807", -1},
        {"0 ** 0", 1},
        {"0 ** 9", 0},
        {"n ** 0", 1},
        {"7 / 2 ** 1", 3},
        {"log2(1)", 0},
        {"log2(2 ** 62)", 62},
        {"2 ** log2(4096)", 4096},
        {"1 if n > 6 else 2", 1},
        {"1 if n > 7 else 2", 2},
        {"1 if n > 7 else 2 if n > 6 else 3", 2},
        {"1 if false else 2 if false else 3", 3},
        {"(1 if true else 2) + 10", 11},
        {"1 if true else 2 + 10", 1},
        {"1 if true or false and false else 1 / 0", 1},
        {"1 / (n - 7) if n != 7 else 5", 5},
        {"min(1 if step > 4 else 9, 3)", 1},
        {"l * 10 + l", 22},
        {"w(3)", 30},
        {"w(l + 1) + w( 3 )", 60},
        {"w (min(3, 9))", 30},
        {"w(l + 1).count + l", 3},
    };
    (void)state;
    expect_integers(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_reals(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"1e-8", 1e-8},
        {".5", .5},
        {"5.", 5},
        {"1E+3", 1000},
        {"1 / 2.0", .5},
        {"n * 0.5", 3.5},
        {"tol * tol", 1e-8 * 1e-8},
        {"sqrt(d2)", 1.5},
        {"-d2", -2.25},
        {"abs(-d2)", 2.25},
        {"min(n, 0.5)", .5},
        {"max(n, 0.5)", 7},
        {"5.5 % 2", 1.5},
        {"-5.5 % 2", .5},
        {"1.0 / 0", INFINITY},
        {"2 - 0.1", 2 - 0.1},
        {"2.0 ** -1", .5},
        {"2 ** 0.5", 1.4142135623730951},
        {"1.0 * n ** 2", 49},
        {"pi", 3.14159265358979323846},
        {"sin(0)", 0},
        {"cos(0.0)", 1},
        {"tan(0)", 0},
        {"exp(0)", 1},
        {"log(1)", 0},
        {"tanh(0)", 0},
        {"log2(8.0)", 3},
        {"n if true else 0.5", 7},
        {"0.5 if false else n", 7},
        {"d2 if step > 4 else 0", 2.25},
        {"1 if step > 4 else d2", 1},
        {"w(2)", 2.25},
        {"w(l)", 2.25},
    };
    fixture f;
    (void)state;
    set_up(&f);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        peal_value value;
        assert_int_equal(evaluate(&f, cases[i].text, &value), PEAL_STATUS_OK);
        assert_int_equal(value.kind, PEAL_REAL);
        assert_memory_equal(&value.u.real, &cases[i].value, sizeof(double));
    }
    peal_value value;
    assert_int_equal(evaluate(&f, "min(0.0 / 0, 1)", &value), PEAL_STATUS_OK);
    assert_true(isnan(value.u.real)); /* NaN wins */
    assert_int_equal(evaluate(&f, "max(1, 0.0 / 0)", &value), PEAL_STATUS_OK);
    assert_true(isnan(value.u.real));
    tear_down(&f);
}

static void test_booleans(void **state)
{
    static const struct {
        const char *text;
        bool value;
    } cases[] = {
        {"true", true},
        {"not true", false},
        {"1 < 2", true},
        {"2 <= 2", true},
        {"2 > 2", false},
        {"2 >= 2.5", false},
        {"1 == 1.0", true},
        {"1 != 1", false},
        {"true == false", false},
        {"'a' == \"a\"", true},
        {"'a' != 'b'", true},
        {"1 < 2 and 2 < 3 or false", true},
        {"false and 1 / 0 == 0", false},
        {"true or 1 / 0 == 0", true},
        {"not 1 == 2", true},
        {"not false and not false", true},
        {"step % 5 == 0 and k == 2", true},
        {"0.0 / 0 == 0.0 / 0", false},
        {"0.0 / 0 < 1", false},
        {"0.0 / 0 != 1", true},
        {"9223372036854775807 > 9223372036854775806", true},
        {"n > 6 if step > 4 else false", true},
        {"sin(0.5) > 0.479 and cos(0.5) > 0.877 and tan(0.5) > 0.546", true},
        {"sin(0.5) < 0.480 and cos(0.5) < 0.878 and tan(0.5) < 0.547", true},
        {"exp(1) > 2.718 and exp(1) < 2.719 and log(exp(1)) == 1.0 and tanh(1) > 0.761", true},
    };
    fixture f;
    (void)state;
    set_up(&f);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        peal_value value;
        assert_int_equal(evaluate(&f, cases[i].text, &value), PEAL_STATUS_OK);
        assert_int_equal(value.kind, PEAL_BOOLEAN);
        if (value.u.boolean != cases[i].value)
            fprintf(stderr, "%s\n", cases[i].text);
        assert_int_equal(value.u.boolean, cases[i].value);
    }
    tear_down(&f);
}

static void test_failures(void **state)
{
    static const struct {
        const char *text;
        peal_code code;
        int column;
    } cases[] = {
        {"9223372036854775807 + 1", PEAL_E_INTEGER_OVERFLOW, 21},
        {"-9223372036854775807 - 2", PEAL_E_INTEGER_OVERFLOW, 22},
        {"4611686018427387904 * 2", PEAL_E_INTEGER_OVERFLOW, 21},
        {"-(-9223372036854775807 - 1)", PEAL_E_INTEGER_OVERFLOW, 1},
        {"abs(-9223372036854775808)", PEAL_E_INTEGER_OVERFLOW, 1},
        {"-9223372036854775808 / -1", PEAL_E_INTEGER_OVERFLOW, 22},
        {"n / (n - 7)", PEAL_E_DIVISION_BY_ZERO, 3},
        {"n % (n - 7)", PEAL_E_DIVISION_BY_ZERO, 3},
        {"1 + true", PEAL_E_WRONG_VALUE_TYPE, 3},
        {"not n", PEAL_E_WRONG_VALUE_TYPE, 1},
        {"n and true", PEAL_E_WRONG_VALUE_TYPE, 3},
        {"true < false", PEAL_E_WRONG_VALUE_TYPE, 6},
        {"1 == true", PEAL_E_WRONG_VALUE_TYPE, 3},
        {"-true", PEAL_E_WRONG_VALUE_TYPE, 1},
        {"sqrt(true)", PEAL_E_WRONG_VALUE_TYPE, 1},
        {"min(1, true)", PEAL_E_WRONG_VALUE_TYPE, 1},
        {"floor(0.0 / 0)", PEAL_E_VALUE_OUT_OF_RANGE, 1},
        {"ceil(1e300)", PEAL_E_VALUE_OUT_OF_RANGE, 1},
        {"2 ** 63", PEAL_E_INTEGER_OVERFLOW, 3},
        {"3 ** 9223372036854775807", PEAL_E_INTEGER_OVERFLOW, 3},
        {"2 ** (n - 8)", PEAL_E_VALUE_OUT_OF_RANGE, 3},
        {"log2(n)", PEAL_E_VALUE_OUT_OF_RANGE, 1},
        {"log2(0)", PEAL_E_VALUE_OUT_OF_RANGE, 1},
        {"log2(-8)", PEAL_E_VALUE_OUT_OF_RANGE, 1},
        {"true ** 2", PEAL_E_WRONG_VALUE_TYPE, 6},
        {"sin(false)", PEAL_E_WRONG_VALUE_TYPE, 1},
        {"1 / 0 if n == 7 else 5", PEAL_E_DIVISION_BY_ZERO, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fixture f;
        peal_value value = {.kind = PEAL_TEXT};
        set_up(&f);
        assert_int_equal(evaluate(&f, cases[i].text, &value), PEAL_STATUS_SPEC);
        assert_int_equal(value.kind, PEAL_TEXT); /* untouched */
        assert_int_equal(peal_diagnostics_count(f.diagnostics), 1);
        const peal_diagnostic *d = peal_diagnostics_at(f.diagnostics, 0);
        if (d->code != cases[i].code)
            fprintf(stderr, "%s: %s\n", cases[i].text, d->message);
        assert_int_equal(d->code, cases[i].code);
        tear_down(&f);
    }
}

/* A text that a reader lends has a place for every byte. */
static void test_places(void **state)
{
    static const char pool[] = "n +\n  m\0(n) / (n - 7)";
    fixture f;
    peal_value value;
    (void)state;
    set_up(&f);
    peal_graph_lend_texts(f.graph, pool, pool + sizeof(pool));
    peal_graph_add_piece(f.graph, pool, (peal_source){"s.yaml", 10, 5});
    peal_graph_add_piece(f.graph, pool + 8, (peal_source){"s.yaml", 20, 30});
    assert_null(peal_parse_expression(&f.parser, pool, (peal_source){0}, PEAL_ALLOW_ALL));
    const peal_diagnostic *d = peal_diagnostics_at(f.diagnostics, 0);
    assert_int_equal(d->code, PEAL_E_UNKNOWN_NAME);
    assert_string_equal(d->source.file, "s.yaml");
    assert_int_equal(d->source.line, 11);
    assert_int_equal(d->source.column, 3);
    assert_int_equal(evaluate(&f, pool + 8, &value), PEAL_STATUS_SPEC);
    d = peal_diagnostics_at(f.diagnostics, 1);
    assert_int_equal(d->code, PEAL_E_DIVISION_BY_ZERO);
    assert_int_equal(d->source.line, 20);
    assert_int_equal(d->source.column, 34);
    tear_down(&f);
}

static void collect(void *user, int array)
{
    *(int *)user += 1 << array;
}

static void test_queries(void **state)
{
    fixture f;
    int found = 0;
    (void)state;
    set_up(&f);
    const peal_expr *e =
        peal_parse_expression(&f.parser, "d2 * rank + step", (peal_source){0}, PEAL_ALLOW_ALL);
    assert_int_equal(peal_expr_uses(e), PEAL_USES_RANK | PEAL_USES_COUNTER | PEAL_USES_ELEMENT);
    peal_expr_elements(e, collect, &found);
    assert_int_equal(found, 2);
    e = peal_parse_expression(&f.parser, "ranks * Rx + n", (peal_source){0}, PEAL_ALLOW_ALL);
    assert_int_equal(peal_expr_uses(e), 0);
    assert_int_equal(peal_expr_uses(NULL), 0);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers), cmocka_unit_test(test_levels),
        cmocka_unit_test(test_reals),    cmocka_unit_test(test_booleans),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_places),
        cmocka_unit_test(test_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
