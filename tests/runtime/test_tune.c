/* Tuning: judging times that are given, answers in the cache, what mode auto makes of answers and
 * of predictions, in one process and in two; and tuning itself, on a stencil with host functions.
 */
#define _GNU_SOURCE
#include "base/npy.h"
#include "runtime/select/answer.h"
#include "runtime/tune/internal.h"
#include "runtime/tune/tune.h"
#include "tests/runtime/job.h"
#include "tests/runtime/stencil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROUNDS = 9 };

static char folder[] = "/tmp/peal-tune-XXXXXX", elsewhere[] = "/tmp/peal-tune-XXXXXX";

/* ---- judging ---- */

static peal_judged judged[4];

/* A candidate of each mode from sync on; times are those of the rounds, one line a candidate. */
static int choose(int count, const double times[][ROUNDS], int *best)
{
    static const peal_mode modes[] = {PEAL_MODE_SYNC, PEAL_MODE_STREAM, PEAL_MODE_FUSED};
    const bool all[] = {true, true, true};
    peal_candidates set = {.count = count};
    for (int c = 0; c < count; c++)
        set.item[c] = (peal_candidate){.mode = modes[c]};
    *best = peal_judge(&times[0][0], ROUNDS, all, count, ROUNDS, judged);
    return peal_judge_choose(&set, judged, *best);
}

static void what_is_slower_in_each_round_is_slower(void **state)
{
    (void)state;
    /* noise of a factor that both of a round have in common */
    const double times[][ROUNDS] = {{11, 22, 33, 11, 55, 66, 11, 88, 11},
                                    {10, 20, 30, 10, 50, 60, 10, 80, 10}};
    int best;
    assert_int_equal(choose(2, times, &best), 1);
    assert_int_equal(best, 1);
    assert_int_equal(judged[0].verdict, PEAL_VERDICT_SLOWER);
    assert_true(judged[0].ratio > 1.09 && judged[0].ratio < 1.11);
    assert_true(judged[0].ratio_low > 1.09 && judged[0].ratio_high < 1.11);
}

static void a_tie_goes_to_the_simpler(void **state)
{
    (void)state;
    int best;
    const double within_one_percent[][ROUNDS] = {{100.9, 100.9, 100.9, 100.9, 100.9, 100.9, 100.9,
                                                  100.9, 100.9},
                                                 {103, 103, 103, 103, 103, 103, 103, 103, 103},
                                                 {100, 100, 100, 100, 100, 100, 100, 100, 100}};
    assert_int_equal(choose(3, within_one_percent, &best), 0);
    assert_int_equal(best, 2);
    assert_int_equal(judged[0].verdict, PEAL_VERDICT_TIE);
    assert_int_equal(judged[1].verdict, PEAL_VERDICT_SLOWER); /* without noise 3 % are certain */
    const double not_to_be_told_apart[][ROUNDS] = {{102, 98, 104, 95, 102, 102, 99, 103, 102},
                                                   {110, 111, 110, 112, 110, 111, 110, 111, 110},
                                                   {100, 100, 100, 100, 100, 100, 100, 100, 100}};
    assert_int_equal(choose(3, not_to_be_told_apart, &best), 0);
    assert_int_equal(judged[0].verdict, PEAL_VERDICT_TIE);
    assert_int_equal(judged[1].verdict, PEAL_VERDICT_SLOWER);
}

static void noise_that_hides_a_difference_is_uncertain(void **state)
{
    (void)state;
    int best;
    const double times[][ROUNDS] = {{130, 90, 125, 95, 120, 110, 90, 140, 115},
                                    {100, 100, 100, 100, 100, 100, 100, 100, 100}};
    assert_int_equal(choose(2, times, &best), 1); /* the simpler one isn't taken on no grounds */
    assert_int_equal(judged[0].verdict, PEAL_VERDICT_UNCERTAIN);
    assert_true(judged[0].ratio_low < 1 && judged[0].ratio > 1.03);
}

static void one_that_does_not_take_part_is_not_judged(void **state)
{
    (void)state;
    const double times[2 * ROUNDS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    const bool some[] = {false, true}, none[] = {false, false};
    assert_int_equal(peal_judge(times, ROUNDS, some, 2, ROUNDS, judged), 1);
    assert_int_equal(judged[0].verdict, PEAL_VERDICT_NONE);
    assert_int_equal(judged[1].verdict, PEAL_VERDICT_BEST);
    assert_int_equal(peal_judge(times, ROUNDS, none, 2, ROUNDS, judged), -1);
}

/* ---- answers ---- */

static const peal_answer answer = {.mode = PEAL_MODE_SYNC,
                                   .threads = 1,
                                   .lowering = "tile=4096",
                                   .step_s = 1.5e-6,
                                   .rounds = 9,
                                   .date = "2026-11-22T07:40:12Z",
                                   .name = "it's a \"name\"",
                                   .machine = "a processor"};

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void answers_come_back(void **state)
{
    (void)state;
    char path[80], reason[96] = "?", text[4096] = "";
    peal_answer back;
    snprintf(path, sizeof(path), "%s/answer.yaml", folder);
    assert_false(peal_answer_load(path, "k1", &back, reason, sizeof(reason)));
    assert_string_equal(reason, "");
    assert_true(peal_answer_keep(path, "k1", &answer, "# a table\n"));
    assert_true(peal_answer_load(path, "k1", &back, reason, sizeof(reason)));
    assert_int_equal(back.mode, PEAL_MODE_SYNC);
    assert_int_equal(back.threads, 1);
    assert_int_equal(back.rounds, 9);
    assert_string_equal(back.lowering, "tile=4096");
    assert_string_equal(back.date, answer.date);
    assert_string_equal(back.name, "it's a name");
    assert_true(back.step_s == 1.5e-6);
    assert_false(peal_answer_load(path, "k2", &back, reason, sizeof(reason)));
    assert_string_equal(reason, "it answers another question");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    *strstr(text, "sync") = 'S';
    write_text(path, text);
    assert_false(peal_answer_load(path, "k1", &back, reason, sizeof(reason)));
    assert_string_equal(reason, "it has been changed");
    text[length / 2] = 0;
    write_text(path, text);
    assert_false(peal_answer_load(path, "k1", &back, reason, sizeof(reason)));
    assert_string_equal(reason, "its end is missing");
    write_text(path, "tune: 2\n");
    assert_false(peal_answer_load(path, "k1", &back, reason, sizeof(reason)));
    assert_string_equal(reason, "it is no answer of this version");
    assert_true(peal_answer_forget(path));
    assert_false(peal_answer_forget(path));
}

/* ---- mode auto ---- */

static peal_plan_options usual(int ranks)
{
    return (peal_plan_options){.size_bytes = sizeof(peal_plan_options),
                               .ranks = ranks,
                               .cache_folder = folder};
}

static peal_plan *compile(peal_session *session, peal_graph *graph, peal_plan_options options)
{
    peal_plan *plan = NULL;
    JOB_OK(session, peal_graph_compile(graph, session, &options, &plan));
    return plan;
}

/* The file in which the answer to a plan is looked for; its key. */
static void find(peal_session *session, const char *ny, peal_plan_options options, char path[200],
                 char key[PEAL_SHA256_TEXT])
{
    peal_graph *graph = stencil_graph(ny, stencil_relax, NULL);
    peal_arena *arena = peal_arena_create();
    peal_plan *plan = compile(session, graph, options);
    TEAM_CHECK(peal_answer_key(plan, key));
    const char *found = peal_answer_path(options.cache_folder, key, arena, NULL);
    TEAM_CHECK(found);
    snprintf(path, 200, "%s", found);
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
    peal_arena_destroy(arena);
}

static void keys_tell_questions_apart(void **state)
{
    (void)state;
    char path[200], key[5][PEAL_SHA256_TEXT];
    peal_session *session = job_open_alone();
    peal_plan_options threads = usual(2), forced = usual(2);
    threads.threads = 1;
    forced.mode = "stream";
    find(session, "23", usual(2), path, key[0]);
    find(session, "23", usual(1), path, key[1]);
    find(session, "24", usual(2), path, key[2]);
    find(session, "23", threads, path, key[3]);
    for (int i = 1; i < 4; i++)
        assert_string_not_equal(key[0], key[i]);
    find(session, "23", forced, path, key[4]);
    assert_string_equal(key[0], key[4]); /* what answers are about, not how they are found */
    peal_session_destroy(session);
}

static void write_zeros(const char *path, int64_t count)
{
    const double zeros[4] = {0};
    char header[PEAL_NPY_HEADER_BYTES];
    size_t bytes = peal_npy_make_header(PEAL_F64, 1, &count, header);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(header, bytes, 1, file), 1);
    assert_int_equal(fwrite(zeros, sizeof(double), (size_t)count, file), (size_t)count);
    assert_int_equal(fclose(file), 0);
}

/* Other contents of a buffer, on one rank, are another question. */
static void keys_know_files(void **state)
{
    (void)state;
    char path[2][120], name[120], key[2][PEAL_SHA256_TEXT];
    peal_session *session = job_open_alone();
    snprintf(name, sizeof(name), "%s/weights-{rank}.npy", folder);
    for (int rank = 0; rank < 2; rank++) {
        snprintf(path[rank], sizeof(path[rank]), "%s/weights-%d.npy", folder, rank);
        write_zeros(path[rank], 2);
    }
    for (int i = 0; i < 2; i++) {
        peal_graph *graph = stencil_graph("23", stencil_relax, NULL);
        peal_graph_add_buffer(graph, .name = "weights", .file = name);
        peal_plan *plan = compile(session, graph, usual(2));
        assert_true(peal_answer_key(plan, key[i]));
        peal_plan_destroy(plan);
        peal_graph_destroy(graph);
        write_zeros(path[1], 3);
    }
    assert_string_not_equal(key[0], key[1]);
    for (int rank = 0; rank < 2; rank++)
        assert_int_equal(unlink(path[rank]), 0);
    peal_session_destroy(session);
}

static void auto_takes_answers(void **state)
{
    (void)state;
    char path[200], key[PEAL_SHA256_TEXT];
    peal_session *session = job_open_alone();
    peal_graph *graph = stencil_graph("23", stencil_relax, NULL);
    peal_plan_options options = usual(2), without = usual(2), forced = usual(2);
    without.no_tuning = true;
    forced.mode = "fused";
    find(session, "23", options, path, key);
    assert_true(peal_answer_keep(path, key, &answer, ""));

    peal_plan *plan = compile(session, graph, options);
    assert_int_equal(peal_plan_mode(plan), PEAL_MODE_SYNC);
    assert_int_equal(peal_plan_workers(plan), 1);
    assert_string_equal(peal_plan_choice(plan),
                        "sync threads=1 tile=4096, measured by peal tune on 2026-11-22");
    peal_plan_destroy(plan);
    plan = compile(session, graph, without);
    assert_non_null(strstr(peal_plan_choice(plan), "predicted"));
    peal_plan_destroy(plan);
    plan = compile(session, graph, forced);
    assert_int_equal(peal_plan_mode(plan), PEAL_MODE_FUSED);
    assert_null(peal_plan_choice(plan));
    peal_plan_destroy(plan);

    write_text(path, "tune: 1\nmode: sync\n");
    plan = compile(session, graph, options);
    assert_non_null(strstr(peal_plan_choice(plan), "predicted"));
    peal_plan_destroy(plan);
    peal_answer impossible = answer;
    impossible.mode = PEAL_MODE_GRAPH;
    assert_true(peal_answer_keep(path, key, &impossible, ""));
    plan = compile(session, graph, options);
    assert_int_not_equal(peal_plan_mode(plan), PEAL_MODE_GRAPH);
    peal_plan_destroy(plan);
    assert_int_equal(peal_session_error_count(session), 0);
    assert_int_equal(peal_answer_forget_all(folder, NULL), 1);
    peal_graph_destroy(graph);
    peal_session_destroy(session);
}

/* A machine whose kernels take so long, by mode. */
static const char *write_machine(const char *sync, const char *stream, const char *fused)
{
    static char path[80];
    char text[400];
    snprintf(path, sizeof(path), "%s/machine.yaml", folder);
    snprintf(
        text, sizeof(text),
        "machine: 1\ndevices: 2\nmodes:\n  sync: {kernel_s: %s}\n  stream: {kernel_s: %s}\n"
        "  fused: {kernel_s: %s}\nkernels: {default: {}}\nlinks: {host: {bytes_per_s: 1e15}}\n",
        sync, stream, fused);
    write_text(path, text);
    return path;
}

static void auto_takes_what_is_predicted(void **state)
{
    (void)state;
    static const struct {
        const char *sync, *stream, *fused, *starts_with;
    } cases[] = {{"1", "2", "3",
                  "sync, predicted 1000000 us a step (fused 3000000, stream 2000000"},
                 {"3", "2", "1", "fused, predicted"},
                 {"1", "1.01", "0.995", "stream, predicted"},
                 {"1", "1.5", "1", "fused, predicted"}};
    peal_session *session = job_open_alone();
    peal_graph *graph = stencil_graph("23", stencil_relax, NULL);
    peal_plan_options options = usual(1);
    options.threads = 1;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        options.machine = write_machine(cases[i].sync, cases[i].stream, cases[i].fused);
        peal_plan *plan = compile(session, graph, options);
        const char *choice = peal_plan_choice(plan);
        assert_memory_equal(choice, cases[i].starts_with, strlen(cases[i].starts_with));
        assert_non_null(strstr(choice, "machine.yaml"));
        assert_memory_equal(choice, peal_mode_name(peal_plan_mode(plan)),
                            strlen(peal_mode_name(peal_plan_mode(plan))));
        peal_plan_destroy(plan);
    }
    write_text(options.machine, "machine: 1\nmodes: {warp: {}}\n");
    peal_plan *plan = NULL;
    assert_int_equal(peal_graph_compile(graph, session, &options, &plan), PEAL_STATUS_SPEC);
    assert_null(plan);
    peal_graph_destroy(graph);
    peal_session_destroy(session);
}

/* Process 0 has an answer, and the other one another; or only the other one has one. */
static int member_agrees(test_team *team, int process)
{
    char path[200], key[PEAL_SHA256_TEXT];
    peal_session *session;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_graph *graph = stencil_graph("23", stencil_relax, NULL);
    peal_plan_options options = usual(0);
    peal_answer mine = answer;
    options.threads = 1;
    options.cache_folder = process ? elsewhere : folder;
    options.machine = write_machine("9", "9", "1");
    mine.mode = process ? PEAL_MODE_STREAM : PEAL_MODE_SYNC;
    find(session, "23", options, path, key);
    TEAM_CHECK(peal_answer_keep(path, key, &mine, ""));
    job_pass_together(team, process);
    peal_plan *plan = compile(session, graph, options);
    TEAM_CHECK(peal_plan_mode(plan) == PEAL_MODE_SYNC);
    TEAM_CHECK(!strcmp(peal_plan_choice(plan),
                       "sync threads=1 tile=4096, measured by peal tune on 2026-11-22"));
    JOB_OK(session, peal_plan_start(plan, 10, NULL));
    JOB_OK(session, peal_plan_wait(plan));
    TEAM_CHECK(stencil_is_right(plan, 10));
    peal_plan_destroy(plan);
    TEAM_CHECK(process || peal_answer_forget(path));
    plan = compile(session, graph, options);
    TEAM_CHECK(peal_plan_mode(plan) == PEAL_MODE_FUSED);
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
    peal_session_destroy(session);
    return 0;
}

static void process_0_decides(void **state)
{
    (void)state;
    job_run_all(2, member_agrees);
    assert_int_equal(peal_answer_forget_all(elsewhere, NULL), 1);
}

/* ---- tuning ---- */

static int lines_told;

static void count_line(void *user, const char *line)
{
    (void)user;
    (void)line;
    lines_told++;
}

static peal_status tune(peal_session *session, peal_graph *graph, const char *mode, peal_tuned *out)
{
    peal_tune_desc desc = {.size = sizeof(desc),
                           .graph = graph,
                           .session = session,
                           .options = usual(0),
                           .steps = -1,
                           .rounds = PEAL_LEAST_ROUNDS,
                           .piece_s = 1e-4,
                           .tell = count_line};
    desc.options.mode = mode;
    desc.options.threads = 1;
    return peal_tune(&desc, out);
}

static void check_tuned(const peal_tuned *out)
{
    bool any = false;
    TEAM_CHECK(out->by_serial && out->checked_steps == 10);
    TEAM_CHECK(out->set.count >= 9 && out->best >= 0 && out->chosen >= 0);
    TEAM_CHECK(out->rounds >= PEAL_LEAST_ROUNDS && out->piece_steps >= 1 && out->has_key);
    for (int c = 0; c < out->set.count; c++) {
        const peal_tuned_item *item = &out->item[c];
        TEAM_CHECK(!item->wrong);
        TEAM_CHECK((out->set.item[c].dropped[0] != 0) ==
                   (item->judged.verdict == PEAL_VERDICT_NONE));
        any |= item->judged.verdict == PEAL_VERDICT_BEST && item->judged.median_s > 0;
    }
    TEAM_CHECK(any);
    TEAM_CHECK(out->item[out->chosen].judged.verdict == PEAL_VERDICT_BEST ||
               out->item[out->chosen].judged.verdict == PEAL_VERDICT_TIE);
}

static int member_tunes(test_team *team, int process)
{
    peal_session *session;
    static peal_tuned out;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_graph *graph = stencil_graph("23", stencil_relax, NULL);
    JOB_OK(session, tune(session, graph, NULL, &out));
    check_tuned(&out);
    TEAM_CHECK(lines_told > out.set.count);
    peal_graph_destroy(graph);
    peal_session_destroy(session);
    return 0;
}

static void all_candidates_are_measured(void **state)
{
    (void)state;
    job_run_all(1, member_tunes);
    job_run_all(2, member_tunes);
}

static _Atomic int calls;

/* Something else in every call. */
static void fickle(const peal_call *call)
{
    int mine = calls++;
    for (int y = call->tile.lo[1]; y < call->tile.hi[1]; y++)
        for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++)
            *stencil_at(&call->view[1], x, y) = mine;
}

static void what_differs_from_serial_is_wrong(void **state)
{
    (void)state;
    static peal_tuned out;
    peal_session *session = job_open_alone();
    peal_graph *graph = stencil_graph("23", fickle, NULL);
    assert_int_equal(tune(session, graph, NULL, &out), PEAL_STATUS_WRONG_RESULT);
    assert_int_equal(out.chosen, -1);
    assert_true(out.item[0].wrong);
    assert_true(
        job_reported(session, PEAL_E_CANDIDATE_DIFFERS, "sync computed other bits than serial"));
    peal_graph_destroy(graph);
    peal_session_destroy(session);
}

static void one_mode_or_none(void **state)
{
    (void)state;
    static peal_tuned out;
    peal_session *session = job_open_alone();
    peal_graph *graph = stencil_graph("23", stencil_relax, NULL);
    assert_int_equal(tune(session, graph, "stream", &out), PEAL_STATUS_OK);
    for (int c = 0; c < out.set.count; c++)
        assert_int_equal(out.set.item[c].mode, PEAL_MODE_STREAM);
    assert_int_equal(tune(session, graph, "serial", &out), PEAL_STATUS_ENVIRONMENT);
    assert_true(job_reported(session, PEAL_E_NOTHING_TO_TUNE, NULL));
    peal_graph_destroy(graph);
    peal_session_destroy(session);
}

static int make_folders(void **state)
{
    (void)state;
    return mkdtemp(folder) && mkdtemp(elsewhere) ? 0 : 1;
}

static int remove_folders(void **state)
{
    char path[80];
    (void)state;
    snprintf(path, sizeof(path), "%s/machine.yaml", folder);
    unlink(path);
    return rmdir(folder) || rmdir(elsewhere);
}

static void compilers_have_room(void **state)
{
    const int64_t gib = INT64_C(1) << 30;

    (void)state;
    assert_int_equal(tuner_ahead_threads(40, 1, INT64_MAX), 16);
    assert_int_equal(tuner_ahead_threads(5, 1, INT64_MAX), 5);
    assert_int_equal(tuner_ahead_threads(0, 1, INT64_MAX), 0);
    assert_int_equal(tuner_ahead_threads(16, 1, 8 * gib), 8);
    assert_int_equal(tuner_ahead_threads(16, 3, 8 * gib), 2);
    assert_int_equal(tuner_ahead_threads(16, 9, 8 * gib), 1);
    assert_int_equal(tuner_ahead_threads(16, 1, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_slower_in_each_round_is_slower),
        cmocka_unit_test(a_tie_goes_to_the_simpler),
        cmocka_unit_test(noise_that_hides_a_difference_is_uncertain),
        cmocka_unit_test(one_that_does_not_take_part_is_not_judged),
        cmocka_unit_test(compilers_have_room),
        cmocka_unit_test(answers_come_back),
        cmocka_unit_test(keys_tell_questions_apart),
        cmocka_unit_test(keys_know_files),
        cmocka_unit_test(auto_takes_answers),
        cmocka_unit_test(auto_takes_what_is_predicted),
        cmocka_unit_test(process_0_decides),
        cmocka_unit_test(all_candidates_are_measured),
        cmocka_unit_test(what_differs_from_serial_is_wrong),
        cmocka_unit_test(one_mode_or_none),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
