/* Conditions on the step, from their texts: of what kind they are, and that no change of their
 * value is missed, step by step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/step_pattern.h"
#include "dsl/parser.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 3000 };

typedef struct fixture {
    peal_graph *graph;
    peal_graph_data data;
    peal_array arrays[1];
    peal_family family;
    peal_parser parser;
    peal_diagnostics *diagnostics;
} fixture;

static void set_up(fixture *f)
{
    struct peal_name_slot slot;
    memset(f, 0, sizeof(*f));
    assert_int_equal(peal_graph_create("test", &f->graph), PEAL_STATUS_OK);
    f->diagnostics = peal_diagnostics_create();
    f->arrays[0] = (peal_array){.name = "d2", .kind = PEAL_ARRAY_BUFFER, .points.array = -1};
    f->data = (peal_graph_data){.arrays = f->arrays, .array_count = 1};
    f->parser = (peal_parser){.graph = f->graph,
                              .data = &f->data,
                              .arrays = f->arrays,
                              .array_ready = 1,
                              .family = &f->family,
                              .family_count = 1,
                              .counter = {"step", "k"},
                              .counter_count = 2,
                              .diagnostics = f->diagnostics};
    f->family = (peal_family){.name = "d2", .count = 1};
    assert_true(peal_name_add(f->graph->arena, &f->parser.names, "d2", PEAL_NAME_ARRAY, 0, &slot));
}

static const peal_expr *parse(fixture *f, const char *text)
{
    const peal_expr *expr =
        peal_parse_expression(&f->parser, text, (peal_source){"e", 1, 1}, PEAL_ALLOW_ALL);
    if (!expr)
        peal_diagnostics_print(f->diagnostics, stderr, 0);
    assert_non_null(expr);
    return expr;
}

static bool value_at(const peal_expr *expr, const peal_scope *scope, int64_t step, int64_t k)
{
    const int64_t counter[] = {step, k};
    peal_scope now = *scope;
    bool out = false;
    now.counter = counter;
    now.counter_count = 2;
    assert_int_equal(peal_expr_boolean(expr, &now, false, &out, NULL), PEAL_STATUS_OK);
    return out;
}

static void keep_last(void *user, const peal_expr *atom)
{
    *(const peal_expr **)user = atom;
}

static void count(void *user, const peal_expr *atom)
{
    (void)atom;
    ++*(int *)user;
}

static void test_atoms_change_when_said(void **state)
{
    static const struct {
        const char *text;
        int64_t period; /* 0: a threshold */
        bool is_steps;
    } good[] = {
        {"step % 100 == 0", 100, true},
        {"step % 100 != 7", 100, true},
        {"step % 10 < 3", 10, true},
        {"step % 10 >= 9", 10, true},
        {"3 > step % 10", 10, true},
        {"(step + 1) % 100 == 0", 100, true},
        {"(step - 3) % 7 == 2", 7, true},
        {"(2 + step + rank) % 9 <= 4", 9, true},
        {"step % 10 == 12", 10, true},
        {"step % 1 == 0", 1, true},
        {"2 * step % 10 == 4", 10, true},
        {"(3 * step + 1) % 8 == 0", 8, true},
        {"step % 6 == step % 4", 12, true},
        {"step % 4 + step % 6 > 3", 12, true},
        {"max(step % 3, 1) == 2", 3, true},
        {"step % 5 < 2.5", 5, true},
        {"(step + k) % 3 == 1", 3, false},
        {"step % 4 == k", 4, false},
        {"step == 0", 0, true},
        {"step != 17", 0, true},
        {"step >= 100", 0, true},
        {"step + 1 > 20", 0, true},
        {"30 <= step - 5", 0, true},
        {"step < 2.5", 0, true},
        {"step + 0.7 <= 40.2", 0, true},
        {"step == 5.5", 0, true},
        {"step < rank * 8", 0, true},
    };
    peal_scope scope = {.rank = 3, .ranks = 8};
    fixture f;
    (void)state;
    set_up(&f);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const peal_expr *expr = parse(&f, good[i].text), *last = NULL;
        peal_step_atom atom;
        int64_t change = 0;
        peal_step_atoms_visit(expr, keep_last, &last);
        assert_ptr_equal(last, expr);
        assert_int_equal(peal_step_kind_of(expr),
                         good[i].period ? PEAL_STEP_PERIODIC : PEAL_STEP_THRESHOLD);
        if (!peal_step_atom_prepare(expr, &scope, &atom))
            fail_msg("%s", good[i].text);
        assert_int_equal(atom.period, good[i].period);
        assert_int_equal(atom.is_steps, good[i].is_steps);
        for (int64_t step = 1; step < STEPS; step++) {
            bool here = value_at(expr, &scope, step, 1);
            if (atom.period && here != value_at(expr, &scope, step + atom.period, 1))
                fail_msg("%s: step %d is not as its period says", good[i].text, (int)step);
            if (!atom.is_steps)
                continue;
            if (step - 1 == change || step == 1)
                change = peal_step_next_change(&atom, step - 1);
            if (here != value_at(expr, &scope, step - 1, 1) && step != change)
                fail_msg("%s: a change at %d, said was %lld", good[i].text, (int)step,
                         (long long)change);
            assert_true(change >= step);
        }
    }
    assert_int_equal(peal_diagnostics_count(f.diagnostics), 0);
    peal_graph_destroy(f.graph);
    peal_diagnostics_destroy(f.diagnostics);
}

/* A remainder of a real number comes round later than its divisor says, or never. */
static void test_real_remainders_have_no_period(void **state)
{
    static const char *const texts[] = {"(step * 0.1) % 1 < 0.05", "0.5 * step % 3 == 0",
                                        "(step + 0.1) % 3 == 0.1", "step % 2.5 == 0",
                                        "(rank * 0.5 + step) % 3 < 1"};
    peal_scope scope = {.rank = 3, .ranks = 8};
    peal_step_atom atom;
    fixture f;
    (void)state;
    set_up(&f);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (peal_step_atom_prepare(parse(&f, texts[i]), &scope, &atom))
            fail_msg("%s: period %d", texts[i], (int)atom.period);
    peal_graph_destroy(f.graph);
    peal_diagnostics_destroy(f.diagnostics);
}

static void test_jumps_are_long(void **state)
{
    peal_scope scope = {0};
    peal_step_atom atom;
    fixture f;
    (void)state;
    set_up(&f);
    assert_true(peal_step_atom_prepare(parse(&f, "step % 100 == 0"), &scope, &atom));
    assert_int_equal(peal_step_next_change(&atom, 0), 1);
    assert_int_equal(peal_step_next_change(&atom, 1), 100);
    assert_true(peal_step_atom_prepare(parse(&f, "step >= 1000000"), &scope, &atom));
    assert_int_equal(peal_step_next_change(&atom, 0), 1000000);
    assert_int_equal(peal_step_next_change(&atom, 1000001), INT64_MAX);
    peal_graph_destroy(f.graph);
    peal_diagnostics_destroy(f.diagnostics);
}

static void test_kinds(void **state)
{
    static const struct {
        const char *text;
        peal_step_kind kind;
        int atoms;
    } texts[] = {
        {"rank == 0", PEAL_STEP_UNNAMED, 0},
        {"k >= 3", PEAL_STEP_UNNAMED, 0},
        {"rank == 0 and step % 10 == 0", PEAL_STEP_PERIODIC, 1},
        {"step % 10 == 0 or not (step % 7 < 2 and k == 1)", PEAL_STEP_PERIODIC, 2},
        {"step == 0 or step % 10 == 0", PEAL_STEP_THRESHOLD, 2},
        {"step * step % 7 == 1", PEAL_STEP_IRREGULAR, 1},
        {"step % 10 == 0 and step / 10 > k", PEAL_STEP_IRREGULAR, 2},
        {"k < step", PEAL_STEP_IRREGULAR, 1},
        {"step % (k + 1) == 0", PEAL_STEP_IRREGULAR, 1},
        {"2 * step == 10", PEAL_STEP_IRREGULAR, 1},
        {"d2 > step", PEAL_STEP_IRREGULAR, 1},
    };
    fixture f;
    (void)state;
    set_up(&f);
    assert_int_equal(peal_step_kind_of(NULL), PEAL_STEP_UNNAMED);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int atoms = 0;
        const peal_expr *expr = parse(&f, texts[i].text);
        peal_step_atoms_visit(expr, count, &atoms);
        if (peal_step_kind_of(expr) != texts[i].kind || atoms != texts[i].atoms)
            fail_msg("%s: kind %d, %d atoms", texts[i].text, (int)peal_step_kind_of(expr), atoms);
    }
    peal_graph_destroy(f.graph);
    peal_diagnostics_destroy(f.diagnostics);
}

static void test_values_have_periods(void **state)
{
    static const struct {
        const char *text;
        int64_t period;
    } texts[] = {{"3", 1},
                 {"k + rank", 1},
                 {"step % 3", 3},
                 {"step % 4 + step % 6 * k", 12},
                 {"step", 0},
                 {"step % -3", 0},
                 {"step % (rank - 3)", 0},
                 {"step % 3 / (step % 5 + 1)", 15},
                 {"step % 2000000000000", 0}};
    peal_scope scope = {.rank = 3, .ranks = 8};
    fixture f;
    (void)state;
    set_up(&f);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(peal_step_period(parse(&f, texts[i].text), &scope), texts[i].period);
    assert_int_equal(peal_step_period(NULL, &scope), 1);
    peal_graph_destroy(f.graph);
    peal_diagnostics_destroy(f.diagnostics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_atoms_change_when_said),
        cmocka_unit_test(test_real_remainders_have_no_period),
        cmocka_unit_test(test_jumps_are_long),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_values_have_periods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
