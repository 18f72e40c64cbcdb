/* Every diagnostic of reading YAML and of building graphs, provoked by the smallest spec that has
 * it, with its line and column. The last test fails if a code of these ranges has no case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dsl/dsl.h"
#include "tests/dsl/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool seen[PEAL_CODE_COUNT];

static void note_codes(const peal_diagnostics *list)
{
    for (int i = 0; i < peal_diagnostics_count(list); i++)
        seen[peal_diagnostics_at(list, i)->code] = true;
}

static peal_status read_text(const char *bytes, size_t count, const char *override,
                             peal_diagnostics *list)
{
    peal_graph *graph = NULL;
    const peal_graph_data *data = NULL;
    peal_status status =
        peal_graph_read_memory("t.yaml", bytes, count, &override, override != NULL, list, &graph);
    if (!status)
        status = peal_graph_resolve(graph, list, &data);
    peal_graph_destroy(graph);
    note_codes(list);
    return status;
}

/* The list has exactly one error: this one, here. */
static bool has_only(const peal_diagnostics *list, const char *what, peal_code code, int line,
                     int column)
{
    bool found = false;
    for (int i = 0; i < peal_diagnostics_count(list); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(list, i);
        found = found || (d->code == code && d->source.line == line && d->source.column == column);
    }
    if (found && peal_diagnostics_count(list) == 1)
        return true;
    fprintf(stderr, "%s\nexpected %s at %d:%d, found:\n", what, peal_code_number(code), line,
            column);
    peal_diagnostics_print(list, stderr, 0);
    return false;
}

static void check_only(const peal_diagnostics *list, const char *what, peal_code code, int line,
                       int column)
{
    assert_true(has_only(list, what, code, line, column));
}

static bool passes(const spec_case *c)
{
    peal_diagnostics *list = peal_diagnostics_create();
    peal_status status = read_text(c->text, strlen(c->text), c->override, list);
    bool good = has_only(list, c->text, c->code, c->line, c->column);
    if (status != peal_code_status(c->code)) {
        fprintf(stderr, "%s\nstatus %d\n", c->text, (int)status);
        good = false;
    }
    const char *hint = good ? peal_diagnostics_at(list, 0)->hint : NULL;
    if (good && c->hint && (!hint || !strstr(hint, c->hint))) {
        fprintf(stderr, "%s\nhint: %s\n", c->text, hint ? hint : "none");
        good = false;
    }
    peal_diagnostics_destroy(list);
    return good;
}

static void test_cases(void **state)
{
    (void)state;
    int failed = 0;
    for (int i = 0; i < spec_case_count; i++)
        failed += !passes(&spec_cases[i]);
    assert_int_equal(failed, 0);
}

/* Warnings: the graph is good. column 0: none. */
static const struct {
    const char *statements;
    int column; /* in line 5 */
} print_cases[] = {
    {"[{task: t, box: u, read: u, reduce: {s: sum}}, {print: {all: s}}]", 68},
    {"[{task: t, box: u, read: u, reduce: {s: sum}}, {allreduce: {s: sum}}, {print: {all: s}}]", 0},
    {"[{print: {k: step, n: ranks}}]", 0},
    {"[{print: {k: 2 * rank}}]", 22},
    {"[{task: t, box: u, read: u, reduce: {s: sum}},"
     " {allreduce: {s: sum}, when: step % 2 == 0}, {print: {all: s}, when: step % 2 == 0}]",
     0},
    {"[{set: s, value: u.nx}, {set: s, value: 1}, {print: {all: sqrt(s)}}]", 0},
};

static void test_prints_of_unequal_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(print_cases) / sizeof(print_cases[0]); i++) {
        char text[500];
        snprintf(text, sizeof(text),
                 "peal: 1\nkernels: k.c\nfields: {u: {size: 8}}\nbuffers: {s: {}}\nstep: %s\n",
                 print_cases[i].statements);
        peal_diagnostics *list = peal_diagnostics_create();
        assert_int_equal(read_text(text, strlen(text), NULL, list), PEAL_STATUS_OK);
        if (print_cases[i].column)
            check_only(list, text, PEAL_E_PRINT_DIFFERS_BY_RANK, 5, print_cases[i].column);
        else if (peal_diagnostics_count(list)) {
            peal_diagnostics_print(list, stderr, 0);
            fail_msg("a warning for\n%s", text);
        }
        peal_diagnostics_destroy(list);
    }
}

static void check_bytes(const char *bytes, size_t count, peal_code code, int line, int column)
{
    peal_diagnostics *list = peal_diagnostics_create();
    assert_int_equal(read_text(bytes, count, NULL, list), PEAL_STATUS_SPEC);
    check_only(list, "bytes", code, line, column);
    peal_diagnostics_destroy(list);
}

static void test_bytes(void **state)
{
    (void)state;
    check_bytes("peal: 1\nname: a\0b\n", 18, PEAL_E_NUL_IN_SPEC, 2, 8);
    check_bytes("\xff\xfep\0e\0a\0l\0", 10, PEAL_E_NOT_UTF8, 1, 1);
    check_bytes("p\0e\0a\0l\0:\0", 10, PEAL_E_NOT_UTF8, 1, 1);
    check_bytes("peal: 1\nname: \x80\n", 16, PEAL_E_NOT_UTF8, 2, 7);
    check_bytes("peal: 1\nname: \xc0\xaf\n", 17, PEAL_E_NOT_UTF8, 2, 7);
    check_bytes("peal: 1\nname: \x01\n", 16, PEAL_E_NOT_UTF8, 2, 7);
    check_bytes("peal: 1\nname: a\xe2\x80\xa8\n", 19, PEAL_E_NOT_UTF8, 2, 8);
}

static void test_line_ends_and_mark(void **state)
{
    (void)state;
    const char *marked = "\xef\xbb\xbfpeal: 1\r\nfields: {u: {size: m}}\r\n";
    check_bytes(marked, strlen(marked), PEAL_E_UNKNOWN_NAME, 2, 20);
    const char *plain = "\xef\xbb\xbfpeal: 1\r\nfields: {u: {size: 8}}\r\n";
    peal_diagnostics *list = peal_diagnostics_create();
    assert_int_equal(read_text(plain, strlen(plain), NULL, list), PEAL_STATUS_OK);
    peal_diagnostics_destroy(list);
    const char *wide = "peal: 1 # \xc3\xa4\xc3\xb6\nfields: {u: {size: [8, \"\xc3\xa4\"]}} \n";
    check_bytes(wide, strlen(wide), PEAL_E_EXPRESSION_SYNTAX, 2, 25);
}

static char *filled(size_t count, char c)
{
    char *text = malloc(count + 1);
    assert_non_null(text);
    memset(text, c, count);
    text[count] = 0;
    return text;
}

static void test_limits(void **state)
{
    (void)state;
    char *text = filled((1 << 20) + 1, '#');
    check_bytes(text, (1 << 20) + 1, PEAL_E_SPEC_TOO_LARGE, 0, 0);
    free(text);
    const char brackets[] = {'[', '{'};
    for (int i = 0; i < 2; i++) {
        text = filled(65536, brackets[i]);
        check_bytes(text, 65536, PEAL_E_NESTED_TOO_DEEP, 1, 33);
        free(text);
    }
    text = filled(2 * 40, ' '); /* - - - -: lists in block style */
    for (int i = 0; i < 40; i++)
        text[2 * i] = '-';
    check_bytes(text, 80, PEAL_E_NESTED_TOO_DEEP, 1, 65);
    free(text);
    text = filled(200002, ',');
    for (int i = 0; i < 100000; i++)
        text[1 + 2 * i] = 'a';
    text[0] = '[';
    text[200001] = ']';
    check_bytes(text, 200002, PEAL_E_TOO_MANY_NODES, 1, 200000);
    free(text);
}

static void test_open_quote_of_brackets(void **state)
{
    (void)state;
    char *text = filled(1 << 20, '[');
    text[0] = '"'; /* the scan takes it for a text, libyaml for one that never ends */
    peal_diagnostics *list = peal_diagnostics_create();
    assert_int_equal(read_text(text, 1 << 20, NULL, list), PEAL_STATUS_SPEC);
    assert_int_equal(peal_diagnostics_at(list, 0)->code, PEAL_E_YAML_SYNTAX);
    peal_diagnostics_destroy(list);
    free(text);
}

static void test_missing_file(void **state)
{
    (void)state;
    peal_diagnostics *list = peal_diagnostics_create();
    peal_graph *graph = NULL;
    assert_int_equal(peal_graph_read("/no/such/spec.yaml", NULL, 0, list, &graph),
                     PEAL_STATUS_USAGE);
    check_only(list, "missing file", PEAL_E_SPEC_UNREADABLE, 0, 0);
    assert_int_equal(peal_graph_read("/", NULL, 0, list, &graph), PEAL_STATUS_USAGE);
    note_codes(list);
    peal_diagnostics_destroy(list);
}

static void resolve_only(peal_graph *graph, peal_code code, int line)
{
    const peal_graph_data *data = NULL;
    peal_diagnostics *list = peal_diagnostics_create();
    assert_int_equal(peal_graph_resolve(graph, list, &data), PEAL_STATUS_SPEC);
    assert_null(data);
    note_codes(list);
    check_only(list, "a graph made in C", code, line, 0);
    assert_string_equal(peal_diagnostics_at(list, 0)->source.file, __FILE__);
    peal_graph_destroy(graph);
    peal_diagnostics_destroy(list);
}

static peal_graph *new_graph(void)
{
    peal_graph *graph = NULL;
    assert_int_equal(peal_graph_create("c", &graph), PEAL_STATUS_OK);
    peal_graph_add_buffer(graph, .name = "b");
    return graph;
}

static void test_nesting_in_c(void **state)
{
    (void)state;
    peal_graph *g = new_graph();
    int line = __LINE__ + 1;
    peal_graph_end(g);
    resolve_only(g, PEAL_E_UNBALANCED_BEGIN_END, line);

    g = new_graph();
    peal_graph_begin(g, PEAL_STEP);
    line = __LINE__ + 1;
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_end(g);
    resolve_only(g, PEAL_E_UNBALANCED_BEGIN_END, line);

    g = new_graph();
    line = __LINE__ + 1;
    peal_graph_add_set(g, .set = "b", .value = "1");
    resolve_only(g, PEAL_E_STATEMENT_OUTSIDE_BODY, line);

    g = new_graph();
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_begin_repeat(g, .repeat = "2");
    line = __LINE__ + 1;
    peal_graph_end(g);
    resolve_only(g, PEAL_E_UNBALANCED_BEGIN_END, line);

    g = new_graph();
    line = __LINE__ + 1;
    peal_graph_begin(g, PEAL_STEP);
    resolve_only(g, PEAL_E_UNBALANCED_BEGIN_END, line);
}

static void test_adding_too_late(void **state)
{
    (void)state;
    const peal_graph_data *data = NULL;
    peal_diagnostics *list = peal_diagnostics_create();
    peal_graph *g = new_graph();
    assert_int_equal(peal_graph_resolve(g, list, &data), PEAL_STATUS_OK);
    int line = __LINE__ + 1;
    assert_int_equal(peal_graph_add_buffer(g, .name = "late"), -1);
    check_only(list, "after resolve", PEAL_E_STATEMENT_OUTSIDE_BODY, line, 0);
    peal_graph_destroy(g);
    peal_diagnostics_destroy(list);
}

static void test_mistakes_in_c_have_lines(void **state)
{
    (void)state;
    peal_graph *g = new_graph();
    peal_graph_begin(g, PEAL_STEP);
    int line = __LINE__ + 1;
    peal_graph_add_set(g, .set = "b", .value = "1 +");
    peal_graph_end(g);
    resolve_only(g, PEAL_E_EXPRESSION_SYNTAX, line);
}

/* Constants of lists are evaluated when asked for. */
static void test_constants(void **state)
{
    (void)state;
    const peal_graph_data *data = NULL;
    peal_constant constant;
    peal_diagnostics *list = peal_diagnostics_create();
    peal_graph *g = new_graph();
    peal_graph_add_buffer(g, .name = "v", .type = "i32", .values = "[rank, 1 / (rank - 1), 7]");
    peal_graph_add_buffer(g, .name = "w", .type = "u8", .values = "[100 * ranks]");
    assert_int_equal(peal_graph_resolve(g, list, &data), PEAL_STATUS_OK);
    assert_int_equal(data->constant(data, 1, 2, 4, true, &constant), PEAL_STATUS_OK);
    assert_int_equal(constant.count, 3);
    assert_int_equal(((const int32_t *)constant.data)[0], 2);
    assert_int_equal(((const int32_t *)constant.data)[2], 7);
    assert_int_equal(data->constant(data, 1, 1, 4, true, &constant), PEAL_STATUS_SPEC);
    assert_int_equal(peal_diagnostics_at(list, 0)->code, PEAL_E_DIVISION_BY_ZERO);
    assert_int_equal(data->constant(data, 2, 0, 4, true, &constant), PEAL_STATUS_SPEC);
    assert_int_equal(peal_diagnostics_at(list, 1)->code, PEAL_E_VALUE_OUT_OF_RANGE);
    /* those that are not kept: the last ones stay as they are, whatever failed in between */
    peal_constant brief[2], kept = constant;
    for (int rank = 3; rank < 40; rank++) {
        assert_int_equal(data->constant(data, 1, rank, 99, false, &brief[rank % 2]), 0);
        assert_int_equal(((const int32_t *)brief[rank % 2].data)[0], rank);
        if (rank > 3)
            assert_int_equal(((const int32_t *)brief[(rank + 1) % 2].data)[0], rank - 1);
        assert_int_equal(data->constant(data, 1, 1, 99, false, &kept), PEAL_STATUS_SPEC);
    }
    assert_int_equal(data->constant(data, 1, 39, 99, true, &kept), PEAL_STATUS_OK);
    assert_int_equal(((const int32_t *)kept.data)[0], 39);
    note_codes(list);
    peal_graph_destroy(g);
    peal_diagnostics_destroy(list);
}

static bool is_mine(peal_code code)
{
    int number = atoi(peal_code_number(code) + 1);
    return number >= 1 && number <= 119;
}

/* What `until` names, under the conditions of what writes it. message NULL: it is equal everywhere.
 */
#define TOTAL(when)  "- {task: t, box: u, read: u, reduce: {s: sum}, when: " when "}\n"
#define REDUCE(when) "- {allreduce: {s: sum}, when: " when "}\n"
static const struct {
    const char *statements; /* from line 10 on; x is known to be equal everywhere */
    const char *loop;
    const char *message;
} until_cases[] = {
    {TOTAL("x < 3") REDUCE("x < 3"), "", NULL},
    {TOTAL("x < 3") REDUCE("3 > x"), "", NULL},
    {TOTAL("x < 3") REDUCE("x < 4"), "", NULL},
    {TOTAL("step % 2 == 0") REDUCE("step%4 == 0 or step % 4 == 2"), "", NULL},
    {TOTAL("step >= 0") REDUCE("step % 5000 == 4999"), "every: 10000", NULL},
    {"- repeat: 3\n  as: k\n  step: [{task: t, box: u, read: u, reduce: {s: sum}}, "
     "{allreduce: {s: sum}, when: k == 2}]\n",
     "", NULL},
    {TOTAL("x < 3") REDUCE("x < 2"), "", "it names `s`, to which `t` (line 10) gives"},
    {TOTAL("x < 3") "- {set: x, value: 7}\n" REDUCE("x < 3"), "", "`t` (line 10)"},
    {TOTAL("step >= 0") REDUCE("step % 101 == 100"), "every: 97", "`t` (line 10)"},
    {TOTAL("step >= 0") REDUCE("step < 90000"), "every: 10", "`t` (line 10)"},
    {TOTAL("x < 3") "- {set: r, value: s}\n" REDUCE("x < 3") "- {set: s, value: r + 1}\n", "",
     "it names `s`, to which `t` (line 10)"},
    {"- {set: s, value: 2 * rank}\n", "", "`set s` (line 10)"},
    {"- {set: s, value: 2, when: rank == 0}\n", "", "`set s` (line 10)"},
    {"- {recv: s, from: [1]}\n", "", "`recv s` (line 10)"},
};

static void test_conditions_of_until(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(until_cases) / sizeof(until_cases[0]); i++) {
        char text[700];
        snprintf(text, sizeof(text),
                 "peal: 1\nkernels: k.c\nfields: {u: {size: 8}}\n"
                 "buffers: {s: {}, r: {}, x: {type: i64}}\nrepeat: 100000\nuntil: s < 1\n%s\n"
                 "step:\n- {set: x, value: step %% 5}\n%s",
                 until_cases[i].loop, until_cases[i].statements);
        peal_diagnostics *list = peal_diagnostics_create();
        const char *message = until_cases[i].message;
        peal_status status = read_text(text, strlen(text), NULL, list);
        const peal_diagnostic *d =
            peal_diagnostics_count(list) == 1 ? peal_diagnostics_at(list, 0) : NULL;
        bool good = message ? d && d->code == PEAL_E_DECISION_DIFFERS_BY_RANK &&
                                  d->source.line == 6 && strstr(d->message, message)
                            : !status && peal_diagnostics_count(list) == 0;
        if (!good) {
            peal_diagnostics_print(list, stderr, 0);
            fail_msg("%s", text);
        }
        peal_diagnostics_destroy(list);
    }
}

/* PEAL_E_BUILT_WITHOUT_YAML needs a build without libyaml; PEAL_E_VALUE_NOT_KNOWN_YET and
 * PEAL_E_SET_OUT_OF_RANGE are what later stages find: tests/base and the broken specs provoke them.
 */
static void test_all_codes_seen(void **state)
{
    (void)state;
    for (int i = 0; i < PEAL_CODE_COUNT; i++) {
        peal_code code = (peal_code)i;
        if (!is_mine(code) || code == PEAL_E_BUILT_WITHOUT_YAML ||
            code == PEAL_E_VALUE_NOT_KNOWN_YET || code == PEAL_E_SET_OUT_OF_RANGE)
            continue;
        if (!seen[i])
            fprintf(stderr, "no case provokes %s\n", peal_code_number(code));
        assert_true(seen[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),           cmocka_unit_test(test_prints_of_unequal_values),
        cmocka_unit_test(test_bytes),           cmocka_unit_test(test_line_ends_and_mark),
        cmocka_unit_test(test_limits),          cmocka_unit_test(test_open_quote_of_brackets),
        cmocka_unit_test(test_missing_file),    cmocka_unit_test(test_nesting_in_c),
        cmocka_unit_test(test_adding_too_late), cmocka_unit_test(test_mistakes_in_c_have_lines),
        cmocka_unit_test(test_constants),       cmocka_unit_test(test_conditions_of_until),
        cmocka_unit_test(test_all_codes_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
