/* The fit of a machine's times: cases that take what known times say give these times back. And
 * which steps are measured where a backend repeats several as one, and what auto makes of
 * predictions. */
#define _POSIX_C_SOURCE 200809L
#include "runtime/measure/measure.h"
#include "runtime/measure/noise.h"
#include "runtime/plan/plan.h"
#include "runtime/select/known_times.h"
#include "runtime/select/predict.h"
#include "runtime/session/session.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const double kernel_s = 2e-6, copy_s = 3e-6, flag_s = 0.5e-6, way_s = 1e-6;
static const double per_byte_s = 1e-11, bytes_per_s = 2e10, launch_s = 1.5e-6, step_s = 0.3e-6;

static double task(peal_measure_case which, bool accelerator)
{
    return kernel_s + (double)peal_measure_size_of(which, accelerator).bytes * per_byte_s;
}

static void fill_mode(peal_measure_table *t, peal_mode mode)
{
    double message = copy_s + 2 * flag_s + way_s, drives = mode == PEAL_MODE_SYNC ? 4e-6 : 0;
    double *step = t->step_s[mode], *cpu = t->cpu_s[mode];
    if (!t->accelerator)
        drives = 0;
    t->given[mode] = true;
    for (int i = 0; i < PEAL_MEASURE_CASES; i++) {
        peal_measure_size size = peal_measure_size_of((peal_measure_case)i, t->accelerator);
        step[i] = step_s + task((peal_measure_case)i, t->accelerator) + drives;
        if (size.message_bytes)
            step[i] = step_s + drives + message +
                      task(i == PEAL_MEASURE_WIDE_MESSAGE ? PEAL_MEASURE_WIDE : PEAL_MEASURE_TASK,
                           t->accelerator);
        cpu[i] = launch_s;
    }
    step[PEAL_MEASURE_WIDE_MESSAGE] +=
        (double)peal_measure_size_of(PEAL_MEASURE_WIDE_MESSAGE, t->accelerator).message_bytes /
        bytes_per_s;
    step[PEAL_MEASURE_TASKS] =
        step_s + PEAL_MEASURE_CHAIN * (task(PEAL_MEASURE_TASK, t->accelerator) + drives);
    cpu[PEAL_MEASURE_TASKS] = PEAL_MEASURE_CHAIN * launch_s;
    step[PEAL_MEASURE_LOCAL] += copy_s;
    step[PEAL_MEASURE_UNAWAITED] -= flag_s + way_s;
}

static void assert_near(double is, double should)
{
    if (fabs(is - should) > 0.02 * should)
        fail_msg("%g instead of %g", is, should);
}

static void test_cores(void **state)
{
    (void)state;
    peal_measure_table table = {.line_s = way_s};
    peal_machine_times times;
    for (int mode = PEAL_MODE_SYNC; mode < PEAL_MODE_COUNT; mode++)
        if (mode != PEAL_MODE_GRAPH)
            fill_mode(&table, (peal_mode)mode);
    peal_measure_fit(&table, &times);
    assert_true(times.given && !times.accelerator && !times.mode[PEAL_MODE_GRAPH].given);
    for (int mode = PEAL_MODE_SYNC; mode < PEAL_MODE_COUNT; mode++) {
        const peal_mode_times *m = &times.mode[mode];
        if (mode == PEAL_MODE_GRAPH)
            continue;
        assert_near(m->kernel_s, kernel_s);
        assert_near(m->copy_s, copy_s);
        assert_near(m->write_s, flag_s);
        assert_near(m->wait_s, flag_s);
        assert_true(m->launch_s == 0 && !m->apart);
    }
    assert_near(times.link[PEAL_LINK_HOST].latency_s, way_s);
    assert_near(times.link[PEAL_LINK_HOST].bytes_per_s, bytes_per_s);
    assert_near(times.kernel[0].per_byte_s, per_byte_s);
}

static void test_devices(void **state)
{
    (void)state;
    peal_measure_table table = {.accelerator = true, .apart = true};
    peal_machine_times times;
    for (int mode = PEAL_MODE_SYNC; mode < PEAL_MODE_COUNT; mode++)
        fill_mode(&table, (peal_mode)mode);
    peal_measure_fit(&table, &times);
    const peal_mode_times *m = times.mode;
    assert_near(m[PEAL_MODE_STREAM].launch_s, launch_s);
    assert_near(m[PEAL_MODE_GRAPH].launch_s, launch_s);
    assert_near(m[PEAL_MODE_GRAPH].kernel_s, kernel_s);
    assert_near(m[PEAL_MODE_SYNC].synchronize_s, 4e-6 - launch_s);
    assert_true(m[PEAL_MODE_FUSED].apart && !m[PEAL_MODE_SYNC].apart);
    assert_near(m[PEAL_MODE_FUSED].write_s + m[PEAL_MODE_FUSED].wait_s +
                    times.link[PEAL_LINK_P2P].latency_s,
                2 * flag_s + way_s);
    assert_near(times.link[PEAL_LINK_P2P].bytes_per_s, bytes_per_s);
}

static void expect_refused(const peal_measure_table *table, const char *words)
{
    peal_diagnostics *list = peal_diagnostics_create();
    peal_machine_times times;
    peal_measure_fit(table, &times);
    peal_status status = peal_measure_judge(table, &times, list);
    assert_int_equal(status, words ? PEAL_STATUS_ENVIRONMENT : PEAL_STATUS_OK);
    assert_int_equal(peal_diagnostics_count(list) > 0, words != NULL);
    for (int i = 0; i < peal_diagnostics_count(list); i++)
        assert_int_equal(peal_diagnostics_at(list, i)->code, PEAL_E_MEASURED_NO_TIME);
    if (words)
        assert_non_null(strstr(peal_diagnostics_at(list, 0)->message, words));
    peal_diagnostics_destroy(list);
}

/* What other work disturbs shows no time: each case slower than what takes more, 0, no number. */
static void test_what_is_no_time(void **state)
{
    (void)state;
    peal_measure_table whole = {.line_s = way_s}, table;
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++)
        if (mode != PEAL_MODE_GRAPH)
            fill_mode(&whole, (peal_mode)mode);
    expect_refused(&whole, NULL);
    for (int i = 0; i < PEAL_MEASURE_UNAWAITED; i++)
        for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
            if (!whole.given[mode])
                continue;
            table = whole;
            table.step_s[mode][i] = 0;
            expect_refused(&table, peal_mode_name((peal_mode)mode));
            table.step_s[mode][i] = NAN;
            expect_refused(&table, peal_mode_name((peal_mode)mode));
        }
    table = whole;
    table.step_s[PEAL_MODE_SYNC][PEAL_MEASURE_TASK] = 1e-3;
    expect_refused(&table, "mode sync: five tasks took");
    table = whole;
    table.step_s[PEAL_MODE_FUSED][PEAL_MEASURE_MESSAGE] =
        table.step_s[PEAL_MODE_FUSED][PEAL_MEASURE_LOCAL];
    expect_refused(&table, "the difference is no time");
    table = whole;
    table.line_s = 0;
    expect_refused(&table, "cache line");
    table.line_s = 1; /* slower than messages: these are the measure then */
    expect_refused(&table, NULL);
    peal_measure_table devices = {.accelerator = true, .apart = true};
    for (int mode = PEAL_MODE_SYNC; mode < PEAL_MODE_COUNT; mode++)
        fill_mode(&devices, (peal_mode)mode);
    expect_refused(&devices, NULL);
    table = devices; /* a message that is there when its flag is: no latency */
    table.step_s[PEAL_MODE_FUSED][PEAL_MEASURE_MESSAGE] =
        table.step_s[PEAL_MODE_FUSED][PEAL_MEASURE_UNAWAITED];
    expect_refused(&table, NULL);
    table = devices; /* the CPU takes longer to launch a task than the GPU for it and a copy */
    table.step_s[PEAL_MODE_STREAM][PEAL_MEASURE_LOCAL] =
        table.step_s[PEAL_MODE_STREAM][PEAL_MEASURE_TASK] - 2e-8;
    expect_refused(&table, NULL);
    peal_machine_times times;
    peal_measure_fit(&table, &times);
    assert_near(times.mode[PEAL_MODE_STREAM].copy_s, copy_s);
    table.step_s[PEAL_MODE_GRAPH][PEAL_MEASURE_LOCAL] =
        table.step_s[PEAL_MODE_GRAPH][PEAL_MEASURE_TASK];
    expect_refused(&table, "mode graph");
    devices.step_s[PEAL_MODE_GRAPH][PEAL_MEASURE_LARGE] = 0;
    expect_refused(&devices, "mode graph");
}

static int64_t repeats_eight(const peal_backend_plan *plan, int64_t *first)
{
    (void)plan;
    *first = 3;
    return 8;
}

static void expect_steps(peal_plan *plan, int64_t done, int64_t before, int64_t steps)
{
    int64_t is_before, is_steps;
    plan->steps_asked = done;
    assert_int_equal(peal_plan_whole_steps(plan, 10, &is_before, &is_steps), PEAL_STATUS_OK);
    assert_int_equal(is_before, before);
    assert_int_equal(is_steps, steps);
}

static void test_whole_steps(void **state)
{
    (void)state;
    static char runs;
    peal_backend_ops once = {.size = sizeof(once)};
    peal_backend_ops eight = {.size = sizeof(eight), .repeats = repeats_eight};
    peal_session session = {.identity = {.processes = 1}};
    peal_plan plan = {.session = &session,
                      .backend = &eight,
                      .run = (peal_backend_plan *)&runs,
                      .repeat = 1000};
    expect_steps(&plan, 0, 3, 16);
    expect_steps(&plan, 3, 0, 16);
    expect_steps(&plan, 5, 6, 16);
    expect_steps(&plan, 978, 1, 16);
    expect_steps(&plan, 980, 0, 10); /* 7 and 16 are not left */
    plan.backend = &once;
    expect_steps(&plan, 5, 0, 10);
}

/* Which mode auto takes of predictions: sync, stream, graph, fused; 0: none. */
static void expect_taken(bool accelerator, int ranks, const double us[4], peal_mode taken)
{
    const peal_machine machine = {.accelerator = accelerator, .ranks = ranks};
    double predicted[PEAL_MODE_COUNT] = {0};

    predicted[PEAL_MODE_SYNC] = us[0];
    predicted[PEAL_MODE_STREAM] = us[1];
    predicted[PEAL_MODE_GRAPH] = us[2];
    predicted[PEAL_MODE_FUSED] = us[3];
    assert_int_equal(peal_prediction_fastest(&machine, predicted), taken);
}

static void test_about_as_fast(void **state)
{
    (void)state;
    expect_taken(false, 2, (double[]){10, 10.1, 0, 10}, PEAL_MODE_STREAM);
    expect_taken(false, 2, (double[]){10, 10.3, 0, 10}, PEAL_MODE_FUSED);
    expect_taken(true, 2, (double[]){10e-6, 10e-6, 10e-6, 10.4e-6}, PEAL_MODE_FUSED);
    expect_taken(true, 2, (double[]){10e-6, 10e-6, 10.4e-6, 10.6e-6}, PEAL_MODE_FUSED);
    expect_taken(true, 2, (double[]){10e-6, 10e-6, 10.4e-6, 11e-6}, PEAL_MODE_GRAPH);
    expect_taken(true, 2, (double[]){9e-6, 5e-6, 10.6e-6, 0}, PEAL_MODE_GRAPH);
    expect_taken(true, 2, (double[]){9e-6, 9e-6, 0, 0}, PEAL_MODE_STREAM);
    expect_taken(true, 2, (double[]){0, 0, 0, 10.7e-6}, PEAL_MODE_FUSED);
    expect_taken(true, 1, (double[]){10, 10, 10.4, 10}, PEAL_MODE_GRAPH);
    expect_taken(true, 1, (double[]){90e-6, 52e-6, 50e-6, 52e-6}, PEAL_MODE_FUSED);
    expect_taken(true, 1, (double[]){90e-6, 52e-6, 6e-6, 6e-6}, PEAL_MODE_GRAPH);
    expect_taken(true, 2, (double[]){101e-6, 101e-6, 102e-6, 101e-6}, PEAL_MODE_GRAPH);
    expect_taken(true, 2, (double[]){99e-6, 99e-6, 99e-6, 99e-6}, PEAL_MODE_FUSED);
    expect_taken(true, 1, (double[]){10, 11, 0, 0}, PEAL_MODE_SYNC);
    expect_taken(true, 1, (double[]){0, 0, 0, 0}, PEAL_MODE_COUNT);
}

/* Which file the times of a GPU come from. */
static void expect_from(const char *device, const char *from)
{
    peal_known_times known;
    unsetenv("PEAL_MACHINE");
    assert_int_equal(peal_times_known(NULL, device, 3, NULL, &known), PEAL_STATUS_OK);
    if (!*known.from) /* a build that reads no YAML */
        skip();
    assert_string_equal(known.from, from);
    assert_int_equal(known.times.devices, 3);
}

static void test_files_of_devices(void **state)
{
    (void)state;
    expect_from("NVIDIA H100 80GB HBM3", "machines/h100x4.yaml");
    expect_from("NVIDIA H200", "machines/h200x4.yaml");
    expect_from("NVIDIA A100-SXM4-40GB", "machines/h200x4.yaml, another GPU's");
    expect_from(NULL, "machines/host2.yaml");
}

/* Ops that add `usual` each, of which times say `adds`; what they come to. */
static double share(double *adds, const double *usual, int count)
{
    peal_addition list[32];
    double sum = 0, step = 0;

    for (int i = 0; i < count; i++) {
        step += adds[i];
        list[i] = (peal_addition){&adds[i], usual[i], step, true};
    }
    peal_share_noise(list, count);
    for (int i = 0; i < count; i++)
        sum += adds[i];
    return sum;
}

static void expect_about(double found, double expected)
{
    if (fabs(found - expected) > 1e-9)
        fail_msg("%g, not %g", found, expected);
}

/* Behind an op of 100, 24 of 1 each, whose times are as noisy as a hundredth of the step. */
static void test_noise(void **state)
{
    double adds[25] = {100, 0, 0, 3, 0, 1, 0, 2, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 9}, usual[25];
    (void)state;
    for (int i = 0; i < 25; i++)
        usual[i] = i == 0 ? 80 : 1;
    expect_about(share(adds, usual, 25), 124);
    expect_about(adds[0], 100); /* as it was measured */
    for (int i = 1; i < 25; i++)
        assert_true(adds[i] > 0.5 && adds[i] < 2.5);
}

/* One of many that takes a hundred times as long as usual is seen as that. */
static void test_what_is_no_noise(void **state)
{
    double adds[21], usual[21], few[3] = {4, 0, 3}, last[3] = {4, 3, 0}, three[3] = {5, 1, 2};
    (void)state;
    for (int i = 0; i < 21; i++) {
        adds[i] = i == 0 || i == 15 ? 100 : i % 3 == 0 ? 3 : 0;
        usual[i] = i == 0 ? 100 : 1;
    }
    expect_about(share(adds, usual, 21), 215);
    assert_true(adds[15] > 90);
    for (int i = 0; i < 21; i++)
        assert_true(adds[i] > 0.5);
    expect_about(share(few, three, 3), 7); /* each should have been seen: with the one behind it */
    expect_about(few[0], 4);
    expect_about(few[1], 1);
    expect_about(share(last, three, 3), 7); /* or in front */
    expect_about(last[2], 2);
    expect_about(last[1], 1);
    double late[6] = {0, 0, 0, 0, 0, 6}, ones[6] = {1, 1, 1, 1, 1, 1};
    expect_about(share(late, ones, 6), 6);
    expect_about(late[0], 1);
    double hidden[2] = {4, 0};
    const peal_addition message = {&hidden[1], 1, 4, false};
    peal_share_noise(&message, 1);
    expect_about(hidden[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cores),           cmocka_unit_test(test_devices),
        cmocka_unit_test(test_what_is_no_time), cmocka_unit_test(test_whole_steps),
        cmocka_unit_test(test_about_as_fast),   cmocka_unit_test(test_files_of_devices),
        cmocka_unit_test(test_noise),           cmocka_unit_test(test_what_is_no_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
