/* Reductions over many ranks, which climb a tree of ranks: every rank gets, in every mode, the bits
 * of the fold that the language defines. */
#include <peal/graph.h>
#include <peal/plan.h>
#include <peal/session.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANKS = 300, STEPS = 3 };

typedef struct results {
    int ranks, count; /* elements of the vector */
    int along;        /* ranks of a row that reduces; 0: all */
    int wrong;        /* what ranks have found */
    int checked;
} results;

/* Sums that round: any other order of the fold shows. */
static double contribution(int64_t rank, int64_t element, int64_t step)
{
    return 1.0 / (double)(1 + rank * 7 + element * 3 + step * 11);
}

static double fold(int64_t first, int64_t count, int64_t element, int64_t step)
{
    int64_t half = 1;
    if (count == 1)
        return contribution(first, element, step);
    while (2 * half < count)
        half *= 2;
    return fold(first, half, element, step) + fold(first + half, count - half, element, step);
}

static void give(const peal_call *call)
{
    const results *r = call->user;
    double *sum = call->view[0].base;
    for (int i = 0; i < r->count; i++)
        sum[i] = contribution(call->argument[0].integer, i, call->argument[1].integer);
}

static void take(const peal_call *call)
{
    results *r = call->user;
    const double *sum = call->view[0].base;
    int rank = (int)call->argument[0].integer;
    int width = r->along ? r->along : r->ranks;
    for (int i = 0; i < r->count; i += r->count < 64 ? 1 : 37)
        if (sum[i] != fold(rank / width * width, width, i, call->argument[1].integer))
            __atomic_add_fetch(&r->wrong, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&r->checked, 1, __ATOMIC_RELAXED);
}

static peal_graph *make_graph(results *r)
{
    char count[16], dims[32];
    peal_graph *g;
    assert_int_equal(peal_graph_create("tree", &g), PEAL_STATUS_OK);
    snprintf(count, sizeof(count), "%d", r->count);
    if (r->along) {
        snprintf(dims, sizeof(dims), "[%d, %d]", r->along, r->ranks / r->along);
        peal_graph_set_topology(g, .dims = dims);
    }
    peal_graph_set_loop(g, .repeat = "3");
    peal_graph_add_buffer(g, .name = "sum", .count = count);
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "give", .function = give, .user = r, .args = {"rank", "step"},
                        .write = {{.name = "sum"}});
    peal_graph_add_allreduce(g, .reduce = {{"sum", "sum"}}, .along = r->along ? "x" : NULL);
    peal_graph_add_task(g, .name = "take", .function = take, .user = r, .args = {"rank", "step"},
                        .read = {{.name = "sum"}});
    peal_graph_end(g);
    return g;
}

static void run(int ranks, int count, int along, const char *mode)
{
    results r = {.ranks = ranks, .count = count, .along = along};
    peal_session *session;
    peal_plan *plan = NULL;
    peal_session_desc desc = {.size_bytes = sizeof(desc), .deadline_s = 60};
    peal_plan_options options = {.size_bytes = sizeof(options),
                                 .mode = mode,
                                 .ranks = ranks,
                                 .threads = ranks < 40 ? ranks : 2};
    peal_graph *g = make_graph(&r);
    assert_int_equal(peal_session_create(&desc, &session), PEAL_STATUS_OK);
    peal_status status = peal_graph_compile(g, session, &options, &plan);
    if (!status)
        status = peal_plan_start(plan, PEAL_STEPS_ALL, NULL);
    if (!status)
        status = peal_plan_wait(plan);
    if (!status)
        status = peal_plan_finish(plan);
    if (status) {
        peal_session_print_diagnostics(session, stderr, 10);
        fail_msg("%d ranks, %s: status %d", ranks, mode, status);
    }
    if (r.wrong || r.checked != ranks * STEPS)
        fail_msg("%d ranks, %d elements, %s: %d wrong, %d of %d checked", ranks, count, mode,
                 r.wrong, r.checked, ranks * STEPS);
    peal_plan_destroy(plan);
    peal_session_destroy(session);
    peal_graph_destroy(g);
}

static void test_allreduce(void **state)
{
    static const char *const modes[] = {"serial", "sync", "stream", "fused"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        static const int ranks[] = {2, 16, 17, 18, 31, 33, 48, 100};
        for (size_t k = 0; k < sizeof(ranks) / sizeof(ranks[0]); k++)
            run(ranks[k], 3, 0, modes[i]);
    }
    for (int i = 0; i < 4; i += 3) {
        run(257, 1, 0, modes[i]);
        run(MOST_RANKS, 2, 0, modes[i]);
        run(20, 1100, 0, modes[i]); /* long: two shots */
        run(66, 1100, 0, modes[i]); /* long, over many */
        run(54, 2, 18, modes[i]);
        run(54, 2, 3, modes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_allreduce)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
