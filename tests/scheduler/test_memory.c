/* Compiles whose n-th allocation fails, for each n: PEAL_E_COMPILE_OUT_OF_MEMORY or another status
 * that says so, never a crash, an abort or a leak, and never a verdict; and compiles that take
 * longer than they may. */
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"
#include "tests/starve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EVERY_KIND = STARVE_CALLOC | STARVE_MALLOC | STARVE_REALLOC };

#define HEAD "peal: 1\nkernels: k.c\n"

/* What each part of a compile allocates for: fields, messages, reductions, loops, conditions. */
static const char *const texts[] = {
    HEAD "topology: {dims: [auto, auto], periodic: true}\n"
         "fields: {u: {size: [16, 16], halo: 1}, v: {like: u}}\n"
         "buffers: {r: {}}\n"
         "repeat: 10\nstep:\n"
         "- {exchange: u}\n"
         "- {task: t, box: v, tile: [2, 2], read: {u: {grow: 1}}, write: v, reduce: {r: sum}}\n"
         "- {allreduce: {r: sum}}\n"
         "- {swap: [u, v]}\n"
         "- {print: {r: r}}\n",
    HEAD "buffers: {a: {count: 4}, b: {count: 4 * ranks}, s: {}}\n"
         "step:\n"
         "- {recv: b, from: all, offsets: 4, tag: 1, when: rank < 0}\n"
         "- {send: a, to: rank + 1, when: rank < ranks - 1}\n"
         "- {recv: a, from: rank - 1, when: rank > 0}\n"
         "- {recv: s, from: rank + 1, tag: 7, when: rank % 2 == 0 and rank < ranks - 1}\n"
         "- {send: s, to: rank - 1, tag: 7, when: rank % 2 == 1}\n"
         "- {send: a, to: 0, tag: 2}\n"
         "- {recv: b, from: all, offsets: 4, tag: 2, when: rank == 0}\n"
         "- repeat: 3\n"
         "  when: step % 2 == 0\n"
         "  step:\n"
         "  - {task: t, update: a}\n",
};

/* All of it: text to schedules, in one piece. */
static peal_status compile(const char *text, int ranks, peal_mode mode, peal_diagnostics *list)
{
    peal_graph *graph = NULL;
    const peal_graph_data *data = NULL;
    peal_compilation *c = NULL;
    int like[64];
    peal_machine machine = {.ranks = ranks,
                            .processes = ranks,
                            .workers = 2,
                            .cache_bytes = 1 << 18};
    peal_status status =
        peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, list, &graph);
    if (!status)
        status = peal_graph_resolve(graph, list, &data);
    if (!status)
        status = peal_compilation_create(data, &machine, mode, list, &c);
    if (!status)
        status = peal_compilation_check(c);
    for (int rank = 0; !status && rank < ranks; rank++) {
        const peal_schedule *schedule;
        status = peal_compilation_tasks(c, rank, &schedule);
        if (!status)
            status = peal_compilation_schedule(c, rank, &schedule);
        if (!status && rank == 0)
            peal_compilation_alike(c, like);
    }
    peal_compilation_destroy(c);
    peal_graph_destroy(graph);
    return status;
}

static int count_of(const peal_diagnostics *list, peal_code code)
{
    int count = 0;
    for (int i = 0; i < peal_diagnostics_count(list); i++)
        count += peal_diagnostics_at(list, i)->code == code;
    return count;
}

static bool tells_memory(const peal_diagnostics *list)
{
    return count_of(list, PEAL_E_COMPILE_OUT_OF_MEMORY) > 0;
}

static void starve_compile(const char *text, int ranks, peal_mode mode, int kinds, int *failures)
{
    bool was_starved = true;
    for (int number = 0; was_starved; number++) {
        peal_diagnostics *list = peal_diagnostics_create();
        starve_at(kinds, number);
        peal_status status = compile(text, ranks, mode, list);
        starve_at(0, 0);
        was_starved = starved();
        bool is_told = tells_memory(list);
        *failures += was_starved && is_told;
        if (was_starved ? status && status != PEAL_STATUS_ENVIRONMENT : status != PEAL_STATUS_OK)
            fail_msg("%d ranks, %s, allocation %d: status %d", ranks, peal_mode_name(mode), number,
                     status);
        if (status && kinds == STARVE_CALLOC && !is_told)
            fail_msg("%d ranks, %s, calloc %d: status %d without a word", ranks,
                     peal_mode_name(mode), number, status);
        peal_diagnostics_destroy(list);
    }
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int failures = 0;
        starve_compile(texts[i], 4, PEAL_MODE_SYNC, STARVE_CALLOC, &failures);
        starve_compile(texts[i], 40, PEAL_MODE_FUSED, STARVE_CALLOC, &failures);
        starve_compile(texts[i], 40, PEAL_MODE_STREAM, EVERY_KIND, &failures);
        assert_true(failures > 30);
    }
}

static void nothing(const peal_call *call)
{
    (void)call;
}

/* The same of a graph that is built: what was left out is missed when it is resolved. */
static void test_each_allocation_of_the_builder_fails(void **state)
{
    bool was_starved = true;
    (void)state;
    for (int number = 0; was_starved; number++) {
        peal_graph *g = NULL;
        const peal_graph_data *data;
        peal_diagnostics *list = peal_diagnostics_create();
        starve_at(STARVE_CALLOC, number);
        peal_status status = peal_graph_create("built", &g);
        peal_graph_set_topology(g, .dims = "[auto]");
        peal_graph_add_param(g, .name = "n", .value = "64");
        peal_graph_add_field(g, .name = "u", .size = "[n]", .halo = "1");
        for (int i = 0; i < 60; i++) {
            char name[80];
            snprintf(name, sizeof(name), "a_buffer_with_a_long_name_%020d", i);
            peal_graph_add_buffer(g, .name = name, .count = "4 * n + 1");
        }
        peal_graph_begin(g, PEAL_STEP);
        for (int i = 0; i < 20; i++) {
            peal_graph_begin_repeat(g, .repeat = "3");
            peal_graph_add_exchange(g, .exchange = {{.name = "u"}});
            peal_graph_add_task(g, .name = "t", .function = nothing, .box = {.name = "u"},
                                .update = {{.name = "u"}});
            peal_graph_end_repeat(g);
        }
        peal_graph_end(g);
        if (!status)
            status = peal_graph_resolve(g, list, &data);
        starve_at(0, 0);
        was_starved = starved();
        if (!status) /* what was not had was not needed */
            assert_int_equal(data->array_count, 61);
        else
            assert_int_equal(status, PEAL_STATUS_ENVIRONMENT);
        if (g && status)
            assert_true(tells_memory(list));
        peal_graph_destroy(g);
        peal_diagnostics_destroy(list);
    }
}

/* The check, or the schedule of a rank, may take so long; told once, whatever is asked then. */
static void limit_compile(const char *text, int64_t deadline_ns, bool checks, peal_status expected)
{
    enum { RANKS = 40 };
    peal_graph *graph = NULL;
    const peal_graph_data *data = NULL;
    const peal_schedule *schedule;
    peal_compilation *c = NULL;
    peal_machine machine = {.ranks = RANKS,
                            .processes = RANKS,
                            .workers = 2,
                            .cache_bytes = 1 << 18};
    peal_diagnostics *list = peal_diagnostics_create();
    assert_int_equal(peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, list, &graph),
                     0);
    assert_int_equal(peal_graph_resolve(graph, list, &data), 0);
    assert_int_equal(peal_compilation_create(data, &machine, PEAL_MODE_FUSED, list, &c), 0);
    peal_compilation_limit(c, deadline_ns);
    peal_status status = checks ? peal_compilation_check(c) : PEAL_STATUS_OK;
    for (int rank = 0; !status && rank < RANKS; rank++)
        status = peal_compilation_schedule(c, rank, &schedule);
    if (status != expected)
        peal_diagnostics_print(list, stderr, 5);
    assert_int_equal(status, expected);
    if (expected) {
        assert_int_equal(peal_compilation_check(c), expected);
        assert_int_equal(peal_compilation_schedule(c, 0, &schedule), expected);
        assert_int_equal(peal_compilation_tasks(c, 0, &schedule), expected);
    }
    assert_int_equal(count_of(list, PEAL_E_COMPILE_TOO_LONG), expected ? 1 : 0);
    peal_compilation_destroy(c);
    peal_graph_destroy(graph);
    peal_diagnostics_destroy(list);
}

static void test_a_compile_that_takes_too_long(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (int checks = 0; checks < 2; checks++) {
            limit_compile(texts[i], 1, checks, PEAL_STATUS_DEADLINE);
            limit_compile(texts[i], INT64_MAX, checks, PEAL_STATUS_OK);
            limit_compile(texts[i], 0, checks, PEAL_STATUS_OK);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_fails),
        cmocka_unit_test(test_each_allocation_of_the_builder_fails),
        cmocka_unit_test(test_a_compile_that_takes_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
