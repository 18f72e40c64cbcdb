/* Agreement: random valid graphs give the same bits in every mode as in `serial`, with any number
 * of workers, tiles in seeded random order and random delays.
 *
 * test_agreement [FIRST [COUNT]]: seeds FIRST .. FIRST + COUNT - 1; the failing seed is printed
 * with its graph. */
#include "tests/property/random_graph.h"
#include "tests/share/share.h"

#include <peal/plan.h>
#include <peal/plugin/backend.h>
#include <peal/session.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GRAPHS = 200 };

static uint64_t first_seed = 1;
static int graph_count = GRAPHS;

typedef struct variant {
    const char *mode;
    int threads; /* workers a rank */
    bool shuffle;
} variant;

static const variant variants[] = {{"sync", 1, false},   {"sync", 2, true},   {"stream", 1, false},
                                   {"stream", 2, false}, {"fused", 1, false}, {"fused", 1, true},
                                   {"fused", 2, false},  {"fused", 2, true},  {"fused", 3, true}};

/* Runs a graph; its digest. */
static peal_status run(peal_session *session, uint64_t seed, const variant *v,
                       peal_backend_hooks hooks, uint64_t *digest)
{
    random_graph *r = random_graph_create(seed);
    int ranks = random_graph_ranks(r);
    if (v->shuffle) {
        hooks.shuffle_seed = seed + 1;
        hooks.jitter_seed = seed + 1;
    }
    peal_plan_options options = {.size_bytes = sizeof(options),
                                 .mode = v->mode,
                                 .ranks = ranks,
                                 .threads = v->threads * ranks,
                                 .hooks = &hooks};
    peal_plan *plan = NULL;
    peal_status status = peal_graph_compile(random_graph_builder(r), session, &options, &plan);
    if (!status)
        status = peal_plan_start(plan, PEAL_STEPS_ALL, NULL);
    if (!status)
        status = peal_plan_wait(plan);
    if (!status)
        status = peal_plan_finish(plan);
    if (!status)
        status = peal_plan_digest(plan, NULL, digest);
    peal_plan_destroy(plan);
    random_graph_destroy(r);
    return status;
}

/* How many graphs had each feature of the language. */
static void print_coverage(void)
{
    for (int f = 0; f < random_feature_count; f++) {
        int count = 0;
        for (uint64_t seed = first_seed; seed < first_seed + (uint64_t)graph_count; seed++) {
            random_graph *r = random_graph_create(seed);
            count += (random_graph_features(r) & (1ull << f)) != 0;
            random_graph_destroy(r);
        }
        print_message("%5d graphs with %s\n", count, random_feature_names[f]);
        assert_true(count > 0 || graph_count < GRAPHS);
    }
}

static void show(uint64_t seed)
{
    random_graph *r = random_graph_create(seed);
    print_error("%s", random_graph_text(r));
    random_graph_destroy(r);
}

static void check_seed(uint64_t seed)
{
    static const variant serial = {"serial", 1, false};
    peal_session *session;
    peal_session_desc desc = {.size_bytes = sizeof(desc), .deadline_s = 20};
    assert_int_equal(peal_session_create(&desc, &session), PEAL_STATUS_OK);
    uint64_t expected, found;
    peal_status status = run(session, seed, &serial, (peal_backend_hooks){0}, &expected);
    const variant *v = &serial;
    for (size_t i = 0; !status && i < sizeof(variants) / sizeof(variants[0]); i++) {
        /* every third seed starts the count of messages near the wrap of flags */
        peal_backend_hooks hooks = {.first_message = seed % 3 ? 0 : UINT64_MAX - 3};
        v = &variants[i];
        status = run(session, seed, v, hooks, &found);
        if (!status && found != expected) {
            show(seed);
            fail_msg("seed %llu: %s with %d workers%s differs from serial",
                     (unsigned long long)seed, v->mode, v->threads,
                     v->shuffle ? ", shuffled," : "");
        }
    }
    if (status) {
        show(seed);
        peal_session_print_diagnostics(session, stderr, 10);
        fail_msg("seed %llu, %s with %d workers: status %d", (unsigned long long)seed, v->mode,
                 v->threads, status);
    }
    peal_session_destroy(session);
}

static void test_modes_agree(void **state)
{
    static const uint64_t failed_once[] = {
        5683, /* a loop of sends moved above a receive that the receiver had to pass first */
    };
    (void)state;
    print_message("seeds %llu to %llu\n", (unsigned long long)first_seed,
                  (unsigned long long)(first_seed + (uint64_t)graph_count - 1));
    test_share share = graph_count < GRAPHS ? (test_share){1, 0} : share_of(3);
    for (uint64_t seed = first_seed; seed < first_seed + (uint64_t)graph_count; seed++)
        if (seed % share.every == share.first)
            check_seed(seed);
    for (size_t i = 0; i < sizeof(failed_once) / sizeof(failed_once[0]); i++)
        check_seed(failed_once[i]);
    print_coverage();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        graph_count = atoi(argv[2]);
    else if (argc > 1)
        graph_count = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes_agree),
    };
    return cmocka_run_group_tests_name("agreement", tests, NULL, NULL);
}
