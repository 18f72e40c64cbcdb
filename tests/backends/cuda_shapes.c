/* The unit of mode fused with the shapes of launches compiled in, as a GPU would have it, without
 * one: no load goes around the coherent caches; what is staged is what tiles read; what has failed
 * sends nothing. */
#define _GNU_SOURCE
#include "backends/cuda/dry_plan.h"
#include "backends/cuda/fused/deep.h"
#include "backends/cuda/jit/compile.h"
#include "tests/backends/check.h"
#include "tests/backends/cuda_ptx.h"
#include "tests/backends/local_job.h"
#include "tests/backends/nvrtc_job.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARCHITECTURE = 90, MOST_SETS = 3 };

static const char *root; /* of the sources */

typedef struct unit {
    bool compiles;
    char *text, *ptx;
} unit;

static peal_status take_unit(const peal_backend_desc *desc, void *user)
{
    unit *out = user;
    peal_arena *arena = peal_arena_create();
    peal_kernel_files none = {0};
    peal_cuda_compile_result compiled = {0};
    const char *text = NULL;
    peal_status status = peal_cuda_dry_plan_fused(desc, 0, ARCHITECTURE, arena, &text);
    peal_cuda_compile_request request = {.source = text,
                                         .files = &none,
                                         .architecture = ARCHITECTURE,
                                         .ptx = true,
                                         .cache_folder = desc->cache_folder,
                                         .diagnostics = desc->diagnostics,
                                         .arena = arena};

    if (!status && out->compiles)
        status = peal_cuda_compile(&request, &compiled);
    if (!status)
        out->text = strdup(text);
    if (!status && compiled.image)
        out->ptx = strdup(compiled.image);
    for (int i = 0; i < compiled.error_count; i++)
        print_message("%s:%d: %s\n", compiled.error[i].file, compiled.error[i].line,
                      compiled.error[i].message);
    peal_arena_destroy(arena);
    return status;
}

static void forget(unit *out)
{
    free(out->text);
    free(out->ptx);
}

/* Of rank 0. set: up to MOST_SETS words, or NULL. */
static unit unit_of(const char *spec, int ranks, const char *const *set, bool compiles)
{
    const char *cache = getenv("PEAL_TEST_CACHE");
    char path[512];
    unit out = {.compiles = compiles};
    local_options options = {.spec = path,
                             .overrides = set,
                             .ranks = ranks,
                             .workers = 1,
                             .mode = PEAL_MODE_FUSED,
                             .cache = cache && *cache ? cache : NULL};

    for (int i = 0; i < MOST_SETS && set[i]; i++)
        options.override_count++;
    snprintf(path, sizeof(path), "%s/%s", root, spec);
    assert_int_equal(local_describe(&options, take_unit, &out), PEAL_STATUS_OK);
    return out;
}

/* Of two and three axes, staged and not, whose tiles send. */
static void shapes_load_coherently(void **state)
{
    static const struct {
        const char *spec, *set[MOST_SETS];
        bool staged; /* some of its boxes */
    } cases[] = {{"samples/jacobi2d/jacobi2d.yaml", {"nx=1024", "ny=1024"}, true},
                 {"samples/hdiff/hdiff.yaml", {NULL}, false}};
    (void)state;
    if (!nvrtc_is_here())
        skip();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unit out = unit_of(cases[i].spec, 2, cases[i].set, true);
        assert_non_null(strstr(out.text, "peal_shaped_remote_store_<"));
        assert_true(!cases[i].staged || strstr(out.text, "{ staged = 1,"));
        assert_non_null(out.ptx);
        assert_non_null(strstr(out.ptx, ".entry peal_fused_kernel"));
        const char *found = ptx_non_coherent(out.ptx);
        if (found)
            fail_msg("%s: %.60s", cases[i].spec, found);
        forget(&out);
    }
}

/* Rows -3 to -1 of u are read for a row of v: row 0 of u need not be there for each of v's. */
static void what_lies_beside_is_staged_alone(void **state)
{
    static const char *const set[MOST_SETS] = {"n=3000"};
    (void)state;
    unit out = unit_of("tests/gpu/specs/beside.yaml", 2, set, false);

    assert_non_null(strstr(out.text, "peal_stage_view_<float, peal_box_, 0, 0, 0, -3, -1, 0, 0>"));
    assert_null(strstr(out.text, "peal_box_, 0, 0, 0, -3, 0, 0, 0>"));
    assert_non_null(strstr(out.text, "{ staged = 1,"));
    forget(&out);
}

static int times_in(const char *text, const char *words)
{
    int times = 0;

    for (const char *at = strstr(text, words); at; at = strstr(at + 1, words))
        times++;
    return times;
}

/* What is copied within the rank goes with the tiles, though a fold of theirs follows, below a
 * condition or not. */
static void images_are_stored_in_front_of_folds(void **state)
{
    static const char *const set[MOST_SETS] = {NULL};
    (void)state;
    unit out = unit_of("tests/gpu/specs/norm.yaml", 1, set, false);

    assert_non_null(strstr(out.text, "peal_shaped_remote_store_<"));
    forget(&out);
    out = unit_of("samples/jacobi2d/jacobi2d.yaml", 1, set, false);
    assert_true(times_in(out.text, " points in tiles of ") > 1);
    assert_int_equal(times_in(out.text, " points in tiles of "),
                     times_in(out.text, ", parts of messages"));
    forget(&out);
}

/* What a block may run several steps of: not where an argument changes, nor with another rank, nor
 * where each step has a reduction. */
static void chains_have_deep_rounds(void **state)
{
    static const struct {
        const char *spec;
        int ranks;
        const char *set[MOST_SETS];
        bool deep;
    } cases[] = {{"tests/gpu/specs/deep.yaml", 1, {NULL}, true},
                 {"tests/gpu/specs/deep.yaml", 1, {"pace=1"}, false},
                 {"tests/gpu/specs/deep.yaml", 2, {NULL}, false},
                 {"samples/jacobi2d/jacobi2d.yaml", 1, {"nx=256", "ny=256"}, true},
                 {"samples/jacobi2d/jacobi2d.yaml", 1, {"nx=4096", "ny=4096"}, false},
                 {"tests/gpu/specs/chain_gaps.yaml", 1, {NULL}, true},
                 {"samples/jacobi_until/jacobi_until.yaml", 1, {NULL}, false},
                 {"samples/heat3d/heat3d.yaml", 1, {NULL}, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unit out = unit_of(cases[i].spec, cases[i].ranks, cases[i].set, false);
        bool found = strstr(out.text, ", deep rounds */") != NULL;
        if (found != cases[i].deep)
            fail_msg("%s, case %zu: deep rounds: %d", cases[i].spec, i, found);
        forget(&out);
    }
}

/* Behind rounds of k steps one of fewer, as long as these are three. */
static void what_is_left_is_a_shorter_round(void **state)
{
    static const struct {
        int most, left, steps;
    } cases[] = {{13, 97, 13}, {13, 13, 13}, {13, 12, 11}, {13, 6, 5}, {13, 4, 3},
                 {13, 3, 3},   {13, 2, 0},   {13, 0, 0},   {3, 97, 3}, {1, 97, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(peal_cuda_deep_round(cases[i].most, cases[i].left), cases[i].steps);
}

/* The compiler takes its time with each function: those of shaped launches are not there a second
 * time. `walls` is a task of setup alone. */
static void what_no_launch_calls_is_not_compiled(void **state)
{
    static const char *const set[MOST_SETS] = {"nx=1024", "ny=1024"};
    (void)state;
    unit out = unit_of("samples/jacobi2d/jacobi2d.yaml", 1, set, false);
    const char *calls = strstr(out.text, "void peal_fused_call_(unsigned function");

    assert_non_null(calls);
    assert_non_null(strstr(calls, "    peal_shape_0(launch, blocks);"));
    assert_non_null(strstr(calls, ": /* allreduce d2 */"));
    assert_null(strstr(calls, ": /* walls */"));
    assert_null(strstr(calls, "peal_task_1(launch);"));
    assert_null(strstr(calls, "peal_task_1_no_reduction(launch);"));
    assert_null(strstr(calls, "peal_copy(launch);"));
    forget(&out);
}

/* A loop over tiles is most of what there is to compile: boxes with the same tiles share one, where
 * few work items have the shape even with boxes of other counts. Who sends is still told apart. */
static void boxes_with_the_same_tiles_share_a_loop(void **state)
{
    static const char *const seldom[MOST_SETS] = {NULL}, *const each[MOST_SETS] = {"report=1"};
    (void)state;
    unit out = unit_of("samples/jacobi2d/jacobi2d.yaml", 2, seldom, false);

    assert_non_null(strstr(out.text, "    peal_tiles_1<peal_boxes_0_0_>(launch, blocks);"));
    assert_null(strstr(out.text, "    peal_tiles_1<peal_box_0_"));
    assert_non_null(strstr(out.text, "peal_shaped_count_<peal_box_0_1_>(blocks)"));
    assert_non_null(strstr(out.text, "peal_tiles_1_no_reduction<peal_boxes_1_0_>(launch, blocks)"));
    assert_non_null(strstr(out.text, "peal_tiles_1_no_reduction<peal_box_1_2_>(launch, blocks)"));
    forget(&out);
    out = unit_of("samples/jacobi2d/jacobi2d.yaml", 2, each, false);
    assert_non_null(strstr(out.text, "    peal_tiles_1<peal_boxes_0_0_>(launch, blocks);"));
    assert_non_null(strstr(out.text, "    peal_tiles_1<peal_box_1_2_>(launch, blocks);"));
    forget(&out);
}

/* An expression's failure is known behind the barrier of a share's tiles: in front of all parts of
 * messages. */
static void what_has_failed_sends_nothing(void **state)
{
    static const char remote_store[] = "        peal_shaped_remote_store_<",
                      others[] = ">(launch, blocks);\n",
                      check[] = "        __syncthreads();\n        if (peal_fused_failed_.kind)\n"
                                "            return;\n";
    static const char *const set[MOST_SETS] = {NULL};
    int first = 0;
    (void)state;
    unit out = unit_of("samples/jacobi2d/jacobi2d.yaml", 2, set, false);

    for (const char *at = out.text; (at = strstr(at, remote_store)); at++) {
        if (memcmp(at - strlen(others), others, strlen(others)) == 0)
            continue;
        assert_memory_equal(at - strlen(check), check, strlen(check));
        first++;
    }
    assert_true(first > 0);
    forget(&out);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_load_coherently),
        cmocka_unit_test(what_lies_beside_is_staged_alone),
        cmocka_unit_test(what_has_failed_sends_nothing),
        cmocka_unit_test(images_are_stored_in_front_of_folds),
        cmocka_unit_test(chains_have_deep_rounds),
        cmocka_unit_test(what_is_left_is_a_shorter_round),
        cmocka_unit_test(what_no_launch_calls_is_not_compiled),
        cmocka_unit_test(boxes_with_the_same_tiles_share_a_loop),
    };
    root = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests_name("shapes of mode fused", tests, NULL, NULL);
}
