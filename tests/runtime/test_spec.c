/* Specs read, checked and run by a program: their messages one by one, and copies of their arrays;
 * with PEAL_TEST_BACKEND=cuda those of a GPU. */
#include <peal/peal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NX = 7, NY = 5 };

#define SOUND                                                                                      \
    "peal: 1\n"                                                                                    \
    "params: {n: 4}\n"                                                                             \
    "topology: {dims: [auto, auto], periodic: true}\n"                                             \
    "fields:\n"                                                                                    \
    "  u: {size: [7, n], halo: 1, type: i64}\n"                                                    \
    "buffers:\n"                                                                                   \
    "  b: {count: 3, keep: true, type: i32}\n"                                                     \
    "repeat: 2\n"                                                                                  \
    "step:\n"                                                                                      \
    "  - {exchange: u}\n"

/* Line 11 is wrong. */
static const char spec[] = SOUND "  - {swap: [u, u]}\n";
static bool on_device;

static peal_session *session_of_one(void)
{
    peal_session *session;
    assert_int_equal(peal_session_create(NULL, &session), PEAL_STATUS_OK);
    return session;
}

static peal_graph *read_text(peal_session *session, const char *text, const char *set)
{
    peal_graph *graph = NULL;
    const peal_spec_desc desc = {.size_bytes = sizeof(desc),
                                 .text = text,
                                 .name = "mine.yaml",
                                 .set = &set,
                                 .set_count = set ? 1 : 0};
    assert_int_equal(peal_graph_read_spec(session, &desc, &graph), PEAL_STATUS_OK);
    return graph;
}

static void messages(void **state)
{
    (void)state;
    peal_session *session = session_of_one();
    peal_graph *graph = read_text(session, spec, NULL);
    peal_message m;
    assert_int_equal(peal_session_message(session, 0, &m), PEAL_STATUS_USAGE);
    assert_int_equal(peal_graph_check(graph, session, 2), PEAL_STATUS_SPEC);
    assert_int_equal(peal_session_message_count(session), 1);
    assert_int_equal(peal_session_message(session, 0, &m), PEAL_STATUS_OK);
    assert_true(m.is_error);
    assert_string_equal(m.source.file, "mine.yaml");
    assert_int_equal(m.source.line, 11);
    assert_int_equal(m.code[0], 'E');
    assert_non_null(strstr(m.text, "u"));
    peal_graph_destroy(graph);

    peal_graph *none = NULL;
    peal_spec_desc desc = {.size_bytes = sizeof(desc), .text = "peal: 1\nstep: [{exchnge: u}]\n"};
    assert_int_equal(peal_graph_read_spec(session, &desc, &none), PEAL_STATUS_SPEC);
    assert_int_equal(peal_session_message(session, 1, &m), PEAL_STATUS_OK);
    assert_string_equal(m.source.file, "spec");
    assert_non_null(m.hint);
    desc = (peal_spec_desc){.size_bytes = sizeof(desc)};
    assert_int_equal(peal_graph_read_spec(session, &desc, &none), PEAL_STATUS_USAGE);
    desc = (peal_spec_desc){.size_bytes = sizeof(desc), .text = spec, .set_count = 1};
    assert_int_equal(peal_graph_read_spec(session, &desc, &none), PEAL_STATUS_USAGE);
    desc = (peal_spec_desc){.size_bytes = 3, .text = spec};
    assert_int_equal(peal_graph_read_spec(session, &desc, &none), PEAL_STATUS_USAGE);
    desc = (peal_spec_desc){.size_bytes = sizeof(desc), .path = "/nowhere/at.yaml"};
    assert_int_equal(peal_graph_read_spec(session, &desc, &none), PEAL_STATUS_USAGE);
    assert_null(none);
    peal_session_forget_messages(session);
    assert_int_equal(peal_session_message_count(session), 0);
    graph = read_text(session, spec, NULL);
    assert_int_equal(peal_graph_check(graph, session, 0), PEAL_STATUS_USAGE);
    assert_int_equal(peal_graph_check(graph, session, 2), PEAL_STATUS_SPEC);
    assert_int_equal(peal_session_message_count(session), 2); /* what was told before, too */
    peal_graph_destroy(graph);
    peal_session_destroy(session);
}

/* The parts of a field, and a buffer, written, exchanged and read. */
static void check_copies(peal_plan *plan, int ranks)
{
    for (int rank = 0; rank < ranks; rank++) {
        int64_t part[NX * NY];
        peal_plan_array a;
        size_t points = 1;
        assert_int_equal(peal_plan_view(plan, rank, "u", &a), PEAL_STATUS_OK);
        assert_true(!a.is_buffer && a.part.axis_count == 2 && a.type == PEAL_I64);
        for (int k = 0; k < 2; k++)
            points *= (size_t)(a.part.hi[k] - a.part.lo[k]);
        for (size_t i = 0; i < points; i++)
            part[i] = rank * 1000 + (int64_t)i;
        assert_int_equal(peal_plan_write(plan, rank, "u", part, points * 8), PEAL_STATUS_OK);
        assert_int_equal(peal_plan_write(plan, rank, "u", part, points * 8 - 1), PEAL_STATUS_USAGE);
        memset(part, 0, sizeof(part));
        assert_int_equal(peal_plan_read(plan, rank, "u", part, points * 8), PEAL_STATUS_OK);
        for (size_t i = 0; i < points; i++)
            assert_int_equal(part[i], rank * 1000 + (int64_t)i);
        const int64_t *base = a.view.base;
        if (!on_device)
            assert_int_equal(base[a.part.lo[0] + a.part.lo[1] * a.view.stride[1]], rank * 1000);
        int32_t b[3] = {rank, 5, 7}, got[3];
        assert_int_equal(peal_plan_write(plan, rank, "b", b, sizeof(b)), PEAL_STATUS_OK);
        assert_int_equal(peal_plan_read(plan, rank, "b", got, sizeof(got)), PEAL_STATUS_OK);
        assert_memory_equal(b, got, sizeof(b));
        assert_int_equal(peal_plan_view(plan, rank, "b", &a), PEAL_STATUS_OK);
        assert_true(a.is_buffer);
        assert_int_equal(peal_plan_read(plan, rank, "c", got, sizeof(got)), PEAL_STATUS_USAGE);
    }
    assert_int_equal(peal_plan_read(plan, ranks, "u", &plan, 8), PEAL_STATUS_USAGE);
}

static void arrays(void **state)
{
    (void)state;
    peal_session *session = session_of_one();
    peal_graph *graph = read_text(session, SOUND, "n=5");
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .ranks = 4,
                                       .mode = "stream",
                                       .backend = on_device ? "cuda" : "host"};
    peal_plan *plan = NULL;
    assert_int_equal(peal_graph_compile(graph, session, &options, &plan), PEAL_STATUS_OK);
    assert_int_equal(peal_plan_array_count(plan), 2);
    assert_string_equal(peal_plan_array_name(plan, 0), "u");
    assert_string_equal(peal_plan_array_name(plan, 1), "b");
    assert_null(peal_plan_array_name(plan, 2));
    check_copies(plan, 4);
    assert_int_equal(peal_plan_start(plan, 1, NULL), PEAL_STATUS_OK);
    assert_int_equal(peal_plan_wait(plan), PEAL_STATUS_OK);
    check_copies(plan, 4);
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
    peal_session_destroy(session);
}

/* A field of a spec in memory of the program. */
static void lent(void **state)
{
    (void)state;
    static const char line[] = "peal: 1\n"
                               "topology: {dims: auto, periodic: true}\n"
                               "fields:\n"
                               "  u: {size: 6, halo: 1, type: i32}\n"
                               "  v: {like: u}\n"
                               "step:\n"
                               "  - {exchange: u}\n"
                               "  - {swap: [u, v]}\n";
    int32_t u[8] = {0, 1, 2, 3, 4, 5, 6, 0};
    peal_session *session = session_of_one();
    peal_graph *graph = read_text(session, line, NULL);
    peal_plan *plan = NULL;
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .mode = "sync",
                                       .backend = "host"};
    peal_plan_array a;
    assert_int_equal(peal_graph_lend(graph, "w", u), -1);
    assert_int_equal(peal_graph_lend(graph, "u", u), 0);
    assert_int_equal(peal_graph_compile(graph, session, &options, &plan), PEAL_STATUS_OK);
    assert_int_equal(peal_graph_lend(graph, "v", u), -1); /* it is resolved */
    assert_int_equal(peal_plan_start(plan, 1, NULL), PEAL_STATUS_OK);
    assert_int_equal(peal_plan_wait(plan), PEAL_STATUS_OK);
    assert_true(u[0] == 6 && u[7] == 1);
    assert_int_equal(peal_plan_view(plan, 0, "v", &a), PEAL_STATUS_OK);
    assert_ptr_equal((int32_t *)a.view.base - 1, u);
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
    peal_session_destroy(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages), cmocka_unit_test(arrays),
                                       cmocka_unit_test(lent)};
    const struct CMUnitTest device_tests[] = {cmocka_unit_test(arrays)};
    const char *backend = getenv("PEAL_TEST_BACKEND");
    on_device = backend && !strcmp(backend, "cuda");
    if (on_device)
        return cmocka_run_group_tests(device_tests, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
