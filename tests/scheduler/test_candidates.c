/* Candidates: which ways to run a graph are listed, in which order; what predictions drop; what is
 * combined. */
#include "dsl/dsl.h"
#include "scheduler/modes/candidates.h"

#include <peal/graph.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void work(const peal_call *call)
{
    (void)call;
}

/* A step: an exchange, a task whose tiles are free, and where asked for a fold, and an `until`. */
static peal_graph *make_graph(bool folds, bool stops)
{
    peal_graph *g;
    assert_int_equal(peal_graph_create("candidates", &g), PEAL_STATUS_OK);
    peal_graph_add_field(g, .name = "a", .size = "[64, 64]", .halo = "1");
    peal_graph_add_field(g, .name = "b", .like = "a");
    peal_graph_add_buffer(g, .name = "d");
    peal_graph_set_loop(g, .repeat = "10", .until = stops ? "d < 1" : NULL);
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_exchange(g, .exchange = {{.name = "a"}});
    peal_graph_add_task(g, .name = "relax", .function = work, .box = {.name = "a"},
                        .read = {{.name = "a", .star = "1"}}, .write = {{.name = "b"}});
    if (folds)
        peal_graph_add_task(g, .name = "norm", .function = work, .box = {.name = "a"},
                            .read = {{.name = "b"}}, .reduce = {{.name = "d", .combine = "sum"}});
    if (folds)
        peal_graph_add_allreduce(g, .reduce = {{.name = "d", .combine = "sum"}});
    peal_graph_add_swap(g, .swap = {"a", "b"});
    peal_graph_end(g);
    return g;
}

static const peal_graph_data *resolve(peal_graph *graph)
{
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    const peal_graph_data *data = NULL;
    peal_status status = peal_graph_resolve(graph, diagnostics, &data);
    peal_diagnostics_print(diagnostics, stderr, 0);
    peal_graph_report_to(graph, NULL);
    peal_diagnostics_destroy(diagnostics);
    assert_int_equal(status, PEAL_STATUS_OK);
    return data;
}

/* The labels of a set, a line each. */
static void list(const peal_graph_data *data, const peal_machine *machine, bool threads_given,
                 const char *lowering, peal_candidates *set, char *text, size_t bytes)
{
    peal_candidates_desc desc = {.graph = data,
                                 .machine = machine,
                                 .threads_given = threads_given,
                                 .lowering = lowering,
                                 .applicable = {[PEAL_MODE_SYNC] = true,
                                                [PEAL_MODE_STREAM] = true,
                                                [PEAL_MODE_GRAPH] = machine->accelerator,
                                                [PEAL_MODE_FUSED] = true}};
    size_t used = 0;
    peal_candidates_list(&desc, set);
    for (int i = 0; i < set->count; i++) {
        char label[PEAL_LABEL_BYTES];
        peal_candidate_label(&set->item[i], label, sizeof(label));
        used += (size_t)snprintf(text + used, bytes - used, "%s\n", label);
    }
}

/* Some of a GPU's, one of each need. */
static const peal_variant variants[] = {
    {1u << PEAL_MODE_STREAM, "signal=memop",
     PEAL_NEEDS_MESSAGES | PEAL_NEEDS_OWN_PROCESS | PEAL_NEEDS_OWN_DEVICE},
    {1u << PEAL_MODE_GRAPH, "signal=memop",
     PEAL_NEEDS_MESSAGES | PEAL_NEEDS_OWN_PROCESS | PEAL_NEEDS_OWN_DEVICE | PEAL_NEEDS_NO_UNTIL},
    {1u << PEAL_MODE_STREAM, "copy=engine", PEAL_NEEDS_MESSAGES},
    {1u << PEAL_MODE_GRAPH, "until=while", PEAL_NEEDS_UNTIL | PEAL_NEEDS_OWN_DEVICE},
    {1u << PEAL_MODE_FUSED, "order=paper", PEAL_NEEDS_OWN_PROCESS},
    {1u << PEAL_MODE_STREAM, "network=word", PEAL_NEEDS_MESSAGES | PEAL_NEEDS_RINGS},
};
static const peal_machine_traits traits = {.size = sizeof(traits),
                                           .tile_points = 2048,
                                           .variants = variants,
                                           .variant_count = sizeof(variants) / sizeof(variants[0])};

static peal_candidates set;
static char text[8192];

static void host_has_modes_threads_and_tiles(void **state)
{
    (void)state;
    peal_graph *g = make_graph(false, false);
    const peal_graph_data *data = resolve(g);
    peal_machine machine = {.ranks = 2, .processes = 1, .workers = 8};
    list(data, &machine, false, NULL, &set, text, sizeof(text));
    assert_string_equal(text, "sync\nsync threads=8\nsync threads=2\nsync tile=4096\n"
                              "sync tile=65536\n"
                              "stream\nstream threads=8\nstream threads=2\nstream tile=4096\n"
                              "stream tile=65536\n"
                              "fused\nfused threads=8\nfused threads=2\nfused tile=4096\n"
                              "fused tile=65536\n");
    machine.workers = 2;
    list(data, &machine, false, NULL, &set, text, sizeof(text));
    assert_non_null(strstr(text, "sync threads=2\nsync tile"));
    list(data, &machine, true, "tile=512", &set, text, sizeof(text));
    assert_string_equal(text, "sync tile=512\nstream tile=512\nfused tile=512\n");
    peal_graph_destroy(g);
}

static void only_what_makes_a_difference(void **state)
{
    (void)state;
    peal_graph *plain = make_graph(false, false), *full = make_graph(true, true);
    peal_machine machine = {
        .ranks = 2, .processes = 2, .workers = 2, .accelerator = true, .traits = &traits};
    list(resolve(full), &machine, false, NULL, &set, text, sizeof(text));
    assert_non_null(strstr(text, "graph until=while\n"));
    assert_non_null(strstr(text, "stream signal=memop\n"));
    assert_non_null(strstr(text, "fused order=paper\n"));
    assert_null(strstr(text, "graph signal=memop")); /* nothing of it can be skipped */
    assert_null(strstr(text, "threads="));
    assert_null(strstr(text, "network="));
    machine.network = PEAL_TRANSPORT_MLX5; /* on one host it carries nothing */
    list(resolve(full), &machine, false, NULL, &set, text, sizeof(text));
    assert_null(strstr(text, "network="));
    machine.apart = true;
    list(resolve(full), &machine, false, NULL, &set, text, sizeof(text));
    assert_non_null(strstr(text, "stream network=word\n"));
    machine.network = PEAL_TRANSPORT_VERBS;
    list(resolve(full), &machine, false, NULL, &set, text, sizeof(text));
    assert_null(strstr(text, "network="));
    machine.apart = false;
    machine.processes = 1; /* signals are kernels, and one kernel has both ranks */
    list(resolve(full), &machine, false, NULL, &set, text, sizeof(text));
    assert_null(strstr(text, "signal="));
    assert_null(strstr(text, "order=paper"));
    machine.ranks = 1;
    list(resolve(plain), &machine, false, NULL, &set, text, sizeof(text));
    assert_null(strstr(text, "signal="));
    assert_null(strstr(text, "copy="));
    assert_null(strstr(text, "until="));
    machine = (peal_machine){
        .ranks = 2, .processes = 2, .accelerator = true, .shares_device = true, .traits = &traits};
    list(resolve(plain), &machine, false, NULL, &set, text, sizeof(text));
    assert_null(strstr(text, "signal="));
    peal_graph_destroy(plain);
    peal_graph_destroy(full);
}

static void fill(int count, const peal_mode *mode, const char *const *lowering, const double *times)
{
    set.count = count;
    for (int i = 0; i < count; i++) {
        set.item[i] = (peal_candidate){.mode = mode[i], .predicted_s = times ? times[i] : 0};
        snprintf(set.item[i].lowering, sizeof(set.item[i].lowering), "%s",
                 lowering ? lowering[i] : "");
    }
}

static void predictions_drop_what_is_far_behind(void **state)
{
    (void)state;
    const peal_mode modes[] = {PEAL_MODE_SYNC, PEAL_MODE_STREAM, PEAL_MODE_GRAPH, PEAL_MODE_FUSED};
    const double times[] = {20.2e-6, 20e-6, 0, 10e-6};
    fill(4, modes, NULL, times);
    assert_int_equal(peal_candidates_prune(&set, 2), 1);
    assert_string_equal(set.item[0].dropped, "predicted 20.2 us a step, 2.0 times the best");
    for (int i = 1; i < 4; i++) /* exactly twice, and without a prediction */
        assert_string_equal(set.item[i].dropped, "");
    assert_int_equal(peal_candidates_prune(&set, 2), 0);
    const double unknown[4] = {0};
    fill(4, modes, NULL, unknown);
    assert_int_equal(peal_candidates_prune(&set, 2), 0);
}

static void gains_are_combined(void **state)
{
    (void)state;
    const peal_mode stream = PEAL_MODE_STREAM, graph = PEAL_MODE_GRAPH;
    const peal_mode modes[] = {stream, stream, stream, stream, stream, graph, graph};
    const char *const words[] = {"copy=engine",         "copy=engine,lanes=1",
                                 "copy=engine,lanes=2", "copy=engine,plain=1",
                                 "copy=engine,steps=1", "copy=engine",
                                 "copy=engine,lanes=1"};
    const double seconds[] = {100, 90, 95, 97, 99, 100, 50};
    fill(7, modes, words, NULL);
    assert_int_equal(peal_candidates_combine(&set, seconds, 0.02), 1);
    assert_int_equal(set.count, 8); /* of two values the better; steps has gained too little */
    assert_string_equal(set.item[7].lowering, "copy=engine,lanes=1,plain=1");
    assert_int_equal(set.item[7].mode, stream);
    fill(3, modes, words, NULL);
    assert_int_equal(peal_candidates_combine(&set, (double[]){100, 90, 95}, 0.02), 0);
    assert_int_equal(peal_candidates_combine(&set, (double[]){0, 90, 95}, 0.02), 0);
}

static void threads_are_combined_with_words(void **state)
{
    (void)state;
    const peal_mode modes[] = {PEAL_MODE_FUSED, PEAL_MODE_FUSED, PEAL_MODE_FUSED, PEAL_MODE_FUSED};
    const char *const words[] = {"", "", "", "tile=4096"};
    fill(4, modes, words, NULL);
    set.item[1].threads = 4;
    set.item[2].threads = 2;
    assert_int_equal(peal_candidates_combine(&set, (double[]){10, 8, 9, 9}, 0.02), 1);
    peal_candidate_label(&set.item[4], text, sizeof(text));
    assert_string_equal(text, "fused threads=4 tile=4096");
}

static void what_gains_nothing_is_dropped(void **state)
{
    (void)state;
    const peal_mode graph = PEAL_MODE_GRAPH, fused = PEAL_MODE_FUSED;
    const peal_mode modes[] = {graph, graph, graph, graph, fused, fused};
    const char *const words[] = {"", "lanes=1", "lanes=2", "steps=16", "", "deep=1"};
    fill(6, modes, words, NULL);
    /* lanes=2 was not measured, nor was fused without words */
    assert_int_equal(peal_candidates_drop_idle(&set, (double[]){100, 99.5, 0, 98, 0, 500}, 0.01),
                     1);
    for (int i = 0; i < 6; i++)
        assert_string_equal(set.item[i].dropped,
                            i == 1 ? "not faster than graph at first sight" : "");
    fill(6, modes, words, NULL);
    assert_int_equal(peal_candidates_drop_idle(&set, (double[]){100, 100, 101, 99, 10, 9.95}, 0.01),
                     3);
    assert_string_equal(set.item[3].dropped, ""); /* just enough */
    assert_string_equal(set.item[5].dropped, "not faster than fused at first sight");
}

static void simpler_is_the_mode_then_what_forces_less(void **state)
{
    (void)state;
    const peal_candidate sync = {.mode = PEAL_MODE_SYNC, .lowering = "tile=1,steps=2"},
                         stream = {.mode = PEAL_MODE_STREAM},
                         threads = {.mode = PEAL_MODE_STREAM, .threads = 1},
                         graph = {.mode = PEAL_MODE_GRAPH}, fused = {.mode = PEAL_MODE_FUSED};
    const peal_candidate *const order[] = {&sync, &stream, &threads, &graph, &fused};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            assert_int_equal(peal_candidate_is_simpler(order[i], order[k]), i < k);
}

static void tile_of_words(void **state)
{
    (void)state;
    assert_int_equal(peal_lowering_tile(NULL), 0);
    assert_int_equal(peal_lowering_tile("lanes=2,tile=4096,steps=1"), 4096);
    assert_int_equal(peal_lowering_tile("tile=-4096"), 0);
    assert_int_equal(peal_lowering_tile("untile=7"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_has_modes_threads_and_tiles),
        cmocka_unit_test(only_what_makes_a_difference),
        cmocka_unit_test(predictions_drop_what_is_far_behind),
        cmocka_unit_test(gains_are_combined),
        cmocka_unit_test(threads_are_combined_with_words),
        cmocka_unit_test(what_gains_nothing_is_dropped),
        cmocka_unit_test(simpler_is_the_mode_then_what_forces_less),
        cmocka_unit_test(tile_of_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
