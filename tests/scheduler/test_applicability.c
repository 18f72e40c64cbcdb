/* The applicability table: for each rule graphs that it refuses or binds, in each mode, on
 * accelerators and on the host, and graphs at its edge that it leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dsl/dsl.h"
#include "scheduler/scheduler.h"

#include <string.h>

#define HEAD                                                                                       \
    "peal: 1\nkernels: k.c\nparams: {m: 8}\nfields: {u: {size: 8}, v: {like: u}}\n"                \
    "buffers: {b: {count: m}, n: {type: i32}, k: {type: i64}}\n"
#define STEP HEAD "repeat: 9\nstep:\n"

/* By mode: '.' it can, 'b' with a bound, 'x' not. serial sync stream graph fused; the host has no
 * graph. */
typedef struct rule_case {
    peal_code code; /* of those that are not '.' */
    const char *device, *host;
    const char *text;
} rule_case;

static const rule_case cases[] = {
    {PEAL_CODE_COUNT, ".....", ".....", STEP "- {set: k, value: step, when: step % 3 == 1}\n"},
    {PEAL_E_ITERATIONS_NOT_FIXED, "..bb.", ".....",
     HEAD "until: k > 3\nstep:\n- {set: k, value: step}\n"},
    {PEAL_E_ITERATIONS_NOT_FIXED, "...b.", ".....",
     HEAD "until: k > 3\nlag: 1\nstep:\n- {set: k, value: step}\n"},
    {PEAL_E_ITERATIONS_NOT_FIXED, "..bbb", ".....",
     STEP "- repeat: 4\n  until: k > 3\n  step: [{set: k, value: k + 1}]\n"},
    {PEAL_E_ITERATIONS_NOT_FIXED, "...xx", ".....",
     STEP "- repeat: step\n  as: i\n  step: [{set: k, value: k + 1}]\n"},
    {PEAL_E_ITERATIONS_NOT_FIXED, "..bxx", ".....",
     STEP "- repeat: 4\n  until: k > 3\n  step: [{swap: [u, v]}, {set: k, value: k + 1}]\n"},
    {PEAL_E_ITERATIONS_NOT_FIXED, "..bbb", ".....",
     STEP
     "- repeat: 4\n  until: k > 3\n  every: 2\n  step: [{swap: [u, v]}, {set: k, value: 1}]\n"},
    {PEAL_E_CONDITION_NOT_PERIODIC, "...xx", ".....",
     STEP "- {set: k, value: step, when: step * step % 7 == 1}\n"},
    {PEAL_E_CONDITION_NOT_PERIODIC, ".....", ".....",
     STEP "- {set: k, value: step, when: step > 3 or (step + 1) % 10 < 3}\n"},
    {PEAL_E_ITERATIONS_NOT_FIXED, ".....", ".....",
     STEP "- repeat: step % 3 + 1\n  as: i\n  step: [{set: k, value: k + 1}]\n"},
    {PEAL_E_CONDITION_NOT_PERIODIC, "..b..", ".....",
     STEP "- {set: k, value: step, when: k < 3}\n"},
    {PEAL_E_CONDITION_NOT_PERIODIC, "..bxx", ".....", STEP "- {swap: [u, v], when: k < 3}\n"},
    {PEAL_E_SIZES_NOT_FIXED, ".bbbb", ".bb.b",
     STEP "- {task: t, box: {count: n, max: m}, write: {b: tile}}\n"},
    {PEAL_E_SIZES_NOT_FIXED, ".bbbb", ".bb.b",
     STEP "- {send: b, to: rank, count: n}\n- {recv: b, from: rank, count: n}\n"},
    {PEAL_E_HOST_WORK_IN_LOOP, "...xx", ".....", STEP "- {save: u, file: u.npy}\n"},
    {PEAL_E_HOST_WORK_IN_LOOP, "...xx", ".....",
     STEP "- repeat: 4\n  as: i\n  step: [{load: u, file: u.npy, when: i == 2}]\n"},
    {PEAL_CODE_COUNT, ".....", ".....",
     STEP "- {save: u, file: 'u{step}.npy', when: (step + 1) % 10 == 0}\n"},
    {PEAL_CODE_COUNT, ".....", ".....",
     STEP "- repeat: 4\n  as: i\n  when: step == 7\n  step: [{load: u, file: u.npy}]\n"},
    {PEAL_CODE_COUNT, ".....", ".....",
     STEP "- {set: k, value: step}\nfinish: [{save: u, file: u.npy}]\n"},
};

static char verdict(const peal_reason *reason, int count)
{
    if (count == 0)
        return '.';
    return reason[0].refuses ? 'x' : 'b';
}

static void check_mode(const rule_case *c, const peal_graph_data *data, peal_mode mode,
                       bool accelerated)
{
    peal_reason reason[PEAL_REASONS];
    int count = peal_graph_reasons(data, NULL, mode, accelerated, reason);
    const char *refusal = peal_graph_refuses(data, mode, accelerated);
    char expected = (accelerated ? c->device : c->host)[mode];

    if (verdict(reason, count) != expected)
        fail_msg("%s%s: %c, not %c: %s", c->text, peal_mode_name(mode), verdict(reason, count),
                 expected, count ? reason[0].text : "no reason");
    assert_int_equal(refusal != NULL, expected == 'x');
    if (refusal)
        assert_non_null(strstr(refusal, peal_code_number(c->code)));
    for (int i = 0; i < count; i++) {
        assert_true(i == 0 || reason[i - 1].refuses >= reason[i].refuses);
        assert_true(reason[i].text[0]);
        assert_true(!reason[i].refuses || reason[i].change);
    }
    if (count)
        assert_int_equal(reason[0].code, c->code);
}

static peal_graph *read_graph(const char *text, const peal_graph_data **data)
{
    peal_diagnostics *list = peal_diagnostics_create();
    peal_graph *graph = NULL;

    if (peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, list, &graph) ||
        peal_graph_resolve(graph, list, data)) {
        peal_diagnostics_print(list, stderr, 0);
        fail_msg("%s", text);
    }
    peal_diagnostics_destroy(list);
    return graph;
}

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const peal_graph_data *data;
        peal_graph *graph = read_graph(cases[i].text, &data);
        for (int mode = 0; mode < PEAL_MODE_COUNT; mode++)
            for (int accelerated = mode == PEAL_MODE_GRAPH; accelerated < 2; accelerated++)
                check_mode(&cases[i], data, (peal_mode)mode, accelerated);
        peal_graph_destroy(graph);
    }
}

/* In stream the host looks at the verdict; in the other modes nobody could have the file's turn. */
static void test_files_of_which_the_device_decides(void **state)
{
    (void)state;
    static const char *const texts[] = {
        STEP "- {save: u, file: u.npy, when: k < 3 and step % 3 == 0}\n",
        STEP "- repeat: 4\n  as: i\n  until: k > 3\n  when: step == 7\n"
             "  step: [{set: k, value: k + 1}, {save: u, file: 'u{i}.npy'}]\n",
    };
    for (int t = 0; t < 2; t++) {
        const peal_graph_data *data;
        peal_graph *graph = read_graph(texts[t], &data);
        for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
            const char *refusal = peal_graph_refuses(data, (peal_mode)mode, true);
            bool repeats = mode == PEAL_MODE_GRAPH || mode == PEAL_MODE_FUSED;
            assert_int_equal(refusal != NULL, repeats);
            if (refusal)
                assert_non_null(strstr(refusal, "the GPU decides when [E453]"));
        }
        peal_graph_destroy(graph);
    }
}

/* A statement's line is told where the reason is about one, and others like it are counted. */
static void test_places(void **state)
{
    static const char text[] = STEP "- {task: t, box: {count: n, max: m}, write: {b: tile}}\n"
                                    "- {task: t, box: {count: 3, max: m}, write: {b: tile}}\n";
    const peal_graph_data *data;
    peal_reason reason[PEAL_REASONS];
    peal_graph *graph = read_graph(text, &data);

    (void)state;
    assert_int_equal(peal_graph_reasons(data, NULL, PEAL_MODE_STREAM, true, reason), 1);
    assert_int_equal(reason[0].source.line, 8);
    assert_non_null(strstr(reason[0].text, "`t` in line 8 "));
    assert_non_null(strstr(reason[0].text, "; 1 more like it"));
    peal_graph_destroy(graph);
}

static peal_status enqueue(void *stream, const peal_call *call)
{
    (void)stream;
    (void)call;
    return PEAL_STATUS_OK;
}

/* A graph of one task that the application enqueues. */
static peal_graph *make_enqueued(const char *argument, const char *count, const char *until,
                                 const peal_graph_data **data)
{
    peal_diagnostics *list = peal_diagnostics_create();
    peal_graph *g = NULL;
    peal_points_desc box = {.count = count, .max = count ? "8" : NULL};

    assert_int_equal(peal_graph_create("enqueued", &g), PEAL_STATUS_OK);
    peal_graph_add_buffer(g, .name = "b", .count = "8");
    peal_graph_add_buffer(g, .name = "n", .type = "i32");
    peal_graph_set_loop(g, .repeat = "9", .until = until);
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "own", .enqueue = enqueue, .box = box, .write = {{.name = "b"}},
                        .args = {argument});
    peal_graph_end(g);
    if (peal_graph_resolve(g, list, data)) {
        peal_diagnostics_print(list, stderr, 0);
        fail_msg("a graph of one task");
    }
    peal_diagnostics_destroy(list);
    return g;
}

static void test_functions_of_the_application(void **state)
{
    static const struct {
        const char *argument, *count, *until;
        const char *device; /* as in rule_case */
    } tasks[] = {{"1.0", NULL, NULL, "....x"},
                 {"step", NULL, NULL, "...xx"},
                 {"1.0", NULL, "n > 3", "..bxx"},
                 {"1.0", "n", NULL, ".xxxx"}};
    (void)state;
    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
        const peal_graph_data *data;
        peal_graph *g = make_enqueued(tasks[i].argument, tasks[i].count, tasks[i].until, &data);
        for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
            peal_reason reason[PEAL_REASONS];
            int count = peal_graph_reasons(data, NULL, (peal_mode)mode, true, reason);
            assert_int_equal(verdict(reason, count), tasks[i].device[mode]);
            if (verdict(reason, count) == 'x')
                assert_int_equal(reason[0].code, PEAL_E_APPLICATION_FUNCTION);
        }
        peal_graph_destroy(g);
    }
}

static void test_room(void **state)
{
    static const struct {
        int ranks, processes;
        bool shares;
        char fused;
    } machines[] = {{26, 1, false, '.'},
                    {27, 1, false, 'x'},
                    {53, 2, false, 'x'},
                    {52, 2, false, '.'},
                    {2, 2, true, 'x'}};
    const peal_graph_data *data;
    peal_graph *graph = read_graph(cases[0].text, &data);

    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        peal_machine machine = {.ranks = machines[i].ranks,
                                .processes = machines[i].processes,
                                .accelerator = true,
                                .shares_device = machines[i].shares};
        peal_reason reason[PEAL_REASONS];
        int count = peal_graph_reasons(data, &machine, PEAL_MODE_FUSED, true, reason);
        assert_int_equal(verdict(reason, count), machines[i].fused);
        if (count)
            assert_int_equal(reason[0].code, PEAL_E_TOO_MANY_RANKS_FOR_KERNEL);
        assert_int_equal(peal_graph_reasons(data, &machine, PEAL_MODE_GRAPH, true, reason), 0);
    }
    peal_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),  cmocka_unit_test(test_files_of_which_the_device_decides),
        cmocka_unit_test(test_places), cmocka_unit_test(test_functions_of_the_application),
        cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests_name("applicability", tests, NULL, NULL);
}
