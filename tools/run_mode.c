/* One mode of `peal run`: compile, start, wait, finish, compare. */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"
#include "tools/run.h"
#include "tools/stamps.h"

#include "runtime/plan/plan.h"
#include "runtime/session/device.h"
#include "runtime/session/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 5 }; /* of a run, each with a time */

/* Draws a bar while a plan runs. */
typedef struct progress_bar {
    const peal_plan *plan;
    const char *mode;
    int64_t steps;
    _Atomic bool stop;
    pthread_t thread;
    bool started;
} progress_bar;

static void *draw_bar(void *argument)
{
    progress_bar *bar = argument;
    while (!atomic_load(&bar->stop)) {
        peal_clock_sleep(100000000);
        int64_t done = peal_plan_progress(bar->plan);
        if (done < bar->steps && !atomic_load(&bar->stop))
            progress_draw(bar->mode, done, bar->steps, "steps");
    }
    return NULL;
}

static void bar_start(progress_bar *bar, const peal_run *run, const peal_plan *plan)
{
    *bar = (progress_bar){.plan = plan,
                          .mode = peal_mode_name(peal_plan_mode(plan)),
                          .steps = peal_plan_steps_left(plan)};
    bool wanted = run->leads && !run->options->quiet && run->options->format == FORMAT_TEXT &&
                  isatty(STDERR_FILENO);
    bar->started = wanted && pthread_create(&bar->thread, NULL, draw_bar, bar) == 0;
}

static void bar_stop(progress_bar *bar)
{
    if (!bar->started)
        return;
    atomic_store(&bar->stop, true);
    pthread_join(bar->thread, NULL);
    progress_clear();
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

double median_of(const double *sorted, int count)
{
    if (count == 0)
        return -1;
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* --watch. */
static peal_status look(peal_plan *plan, mode_result *result)
{
    peal_status status = peal_plan_watch(plan);
    result->not_a_number = status == PEAL_STATUS_WRONG_RESULT;
    return status;
}

/* Starts and waits; with --watch in pieces, with a look behind each. */
static peal_status run_piece(const peal_run *run, peal_plan *plan, int64_t steps,
                             mode_result *result)
{
    peal_plan_statistics now = {0};
    peal_status status = PEAL_STATUS_OK;
    do {
        bool watches = plan->options.watch != NULL;
        int64_t most = watches ? run->options->watch_steps : steps, n = steps < most ? steps : most;
        steps -= n;
        status = peal_plan_start(plan, n, NULL);
        if (!status)
            status = peal_plan_wait(plan);
        if (watches && status == PEAL_STATUS_WRONG_RESULT)
            result->not_a_number = true; /* a tile of mode serial */
        if (watches && !status)
            status = look(plan, result);
        peal_plan_statistics_get(plan, &now);
    } while (!status && steps > 0 && !now.stopped);
    return status;
}

peal_status run_steps(const peal_run *run, peal_plan *plan, int64_t steps, mode_result *result)
{
    stamps *s = malloc(sizeof(*s));
    if (s)
        stamps_start(s, plan);
    peal_status status = run_piece(run, plan, steps, result);
    peal_plan_statistics after = {0};
    peal_plan_statistics_get(plan, &after);
    if (s) {
        stamps_stop(s);
        result->sample_count = stamps_parts(s, PARTS, result->per_step);
        free(s);
    }
    if (result->sample_count < 2 && after.steps_done > 0) {
        result->per_step[0] = after.seconds / (double)after.steps_done;
        result->sample_count = 1;
    }
    qsort(result->per_step, (size_t)result->sample_count, sizeof(double), by_value);
    result->steps = after.steps_done;
    result->stopped = after.stopped;
    result->seconds = after.seconds;
    result->cpu_seconds = after.cpu_seconds;
    result->memory_bytes = after.memory_bytes;
    result->replayed = peal_plan_replayed(plan);
    return status;
}

static void remember_plan(peal_run *run, const peal_plan *plan)
{
    run->ranks = peal_plan_rank_count(plan);
    run->workers = peal_plan_workers(plan);
    run->hash = peal_plan_hash(plan);
    run->transport = peal_plan_transport(plan);
    peal_plan_dims(plan, run->dims);
    peal_plan_describe(plan, run->description, sizeof(run->description));
    const char *choice = peal_plan_choice(plan);
    snprintf(run->choice, sizeof(run->choice), "%s", choice ? choice : "");
    if (run->backend->open)
        run->backend->describe(peal_session_device(run->session, NULL), run->device,
                               sizeof(run->device));
    if (!run->leads || run->options->format != FORMAT_TEXT || run->options->quiet ||
        run->result_count > 1)
        return;
    if (run->options->mode != MODE_ALL)
        printf("%s: %s\n%s%s%s", run->spec.data->name, run->description,
               run->choice[0] ? "auto: " : "", run->choice, run->choice[0] ? "\n" : "");
    else
        printf("%s: %d ranks (%d x %d x %d) in %d process%s%s%s, every mode in turn\n",
               run->spec.data->name, run->ranks, run->dims[0], run->dims[1], run->dims[2],
               run->processes, run->processes == 1 ? "" : "es", run->device[0] ? " on " : "",
               run->device);
}

/* What both have computed: with serial's outcome at hand, equal ones. */
static peal_status compare_outcome(const peal_run *run, peal_plan *plan, mode_result *result)
{
    const mode_result *first = &run->result[0];
    int64_t things = 0;
    peal_status status = peal_plan_digest(plan, NULL, &result->digest);
    if (status == PEAL_STATUS_OK)
        status = peal_plan_outcome(plan, &result->outcome, &things);
    result->nothing = status == PEAL_STATUS_OK && things == 0;
    if (things > 0 && first->ran && first->mode == PEAL_MODE_SERIAL) {
        result->compared = true;
        result->equal = result->outcome == first->outcome;
    }
    return status;
}

/* With --verify, or if outcomes differ, every bit. */
static peal_status compare(peal_run *run, peal_plan *plan, mode_result *result, bool verify)
{
    peal_status status = compare_outcome(run, plan, result);
    if (status == PEAL_STATUS_OK && verify && result->mode != PEAL_MODE_SERIAL) {
        bool differed = result->compared && !result->equal;
        status = peal_plan_verify_by(plan, PEAL_SAME_RANKS, NULL);
        result->compared = status == PEAL_STATUS_OK || status == PEAL_STATUS_WRONG_RESULT;
        result->equal = status == PEAL_STATUS_OK && (result == &run->result[0] || !differed);
        result->nothing = result->nothing && !result->compared; /* files, perhaps */
    }
    if (status == PEAL_STATUS_OK && result->compared && !result->equal)
        status =
            peal_report(peal_session_diagnostics(run->session), PEAL_E_RESULT_DIFFERS,
                        (peal_source){0}, "--verify names the first difference",
                        "mode %s computed other bits than serial", peal_mode_name(result->mode));
    return status;
}

/* --verify-ranks. In mode all, serial stands for the others. */
static peal_status compare_ranks(peal_plan *plan, mode_result *result)
{
    peal_status status = peal_plan_verify_by(plan, PEAL_OTHER_RANKS, &result->ranks);
    result->compared_ranks = status == PEAL_STATUS_OK || status == PEAL_STATUS_WRONG_RESULT;
    result->equal_ranks = status == PEAL_STATUS_OK;
    return status;
}

static peal_status execute(peal_run *run, peal_plan *plan, mode_result *result, bool verify)
{
    progress_bar bar;
    int64_t given = run->options->steps;
    bar_start(&bar, run, plan);
    peal_status status =
        run_steps(run, plan, given >= 0 ? given : peal_plan_steps_left(plan), result);
    if (status == PEAL_STATUS_OK)
        status = peal_plan_finish(plan);
    if (status == PEAL_STATUS_OK && plan->options.watch)
        status = look(plan, result);
    bar_stop(&bar);
    result->ran = status == PEAL_STATUS_OK;
    if (status == PEAL_STATUS_OK && !run->options->check_footprints)
        status = compare(run, plan, result, verify);
    if (status == PEAL_STATUS_OK && plan->options.verify_ranks)
        status = compare_ranks(plan, result);
    return status;
}

/* --mode all: what the device cannot hold was refused when the plan was made, in all processes. The
 * next mode is run; the reason stands in the table. */
static bool pass_over(const peal_run *run, mode_result *result, peal_status status, int from)
{
    peal_diagnostics *diagnostics = peal_session_diagnostics(run->session);
    bool can_be_refused = result->mode == PEAL_MODE_GRAPH || result->mode == PEAL_MODE_FUSED;
    if (run->options->mode != MODE_ALL || status != PEAL_STATUS_ENVIRONMENT || !can_be_refused ||
        !run->backend->open || peal_session_status(run->session))
        return false;
    const char *why = peal_session_first_message(run->session, from);
    const char *reason = why ? strstr(why, "cannot run this: ") : NULL; /* the row names the mode */
    snprintf(result->refused, sizeof(result->refused), "%s",
             reason ? reason + strlen("cannot run this: ")
             : why  ? why
                    : "another process cannot make it ready");
    result->refusal = result->refused;
    peal_diagnostics_take_back(diagnostics, from);
    return true;
}

peal_status run_mode(peal_run *run, int mode)
{
    const peal_options *options = run->options;
    bool prints = run->leads && run->result_count == 0;
    bool verify = options->verify && mode != PEAL_MODE_SERIAL;
    bool verifies_ranks = options->mode != MODE_ALL || mode == PEAL_MODE_SERIAL;
    peal_plan_options plan_options = {.size_bytes = sizeof(plan_options),
                                      .mode = mode == MODE_AUTO ? NULL : options_mode_name(mode),
                                      .ranks = options->ranks,
                                      .threads = options->threads,
                                      .deadline_s = (double)options->deadline_ns * 1e-9,
                                      .verify = verify,
                                      .verify_ranks = verifies_ranks ? options->verify_ranks : 0,
                                      .watch = options->watch,
                                      .check_footprints = options->check_footprints,
                                      .allow_outside = options->allow_outside,
                                      .row = prints ? row_table_add : NULL,
                                      .row_user = &run->rows,
                                      .backend = options->backend,
                                      .lowering = options->lowering,
                                      .transport = options->transport,
                                      .no_tuning = options->no_tuning,
                                      .machine = options->machine};
    mode_result *result = &run->result[run->result_count++];
    *result = (mode_result){.mode = mode == MODE_AUTO ? mode_automatic(run->backend, run->spec.data)
                                                      : (peal_mode)mode};
    if (mode != MODE_AUTO)
        result->refusal = mode_refusal(run->backend, run->spec.data, (peal_mode)mode);
    if (result->refusal && options->mode == MODE_ALL)
        return PEAL_STATUS_OK;
    peal_plan *plan = NULL;
    int from = peal_diagnostics_count(peal_session_diagnostics(run->session));
    peal_status status = peal_graph_compile(run->spec.graph, run->session, &plan_options, &plan);
    if (status != PEAL_STATUS_OK)
        return pass_over(run, result, status, from) ? PEAL_STATUS_OK : status;
    result->mode = peal_plan_mode(plan);
    run->backend = peal_backend_named(peal_plan_backend(plan));
    remember_plan(run, plan);
    status = execute(run, plan, result, verify);
    if (status)
        run_tell(run, status);
    peal_plan_destroy(plan);
    if (status == PEAL_STATUS_OK && options->exposed)
        status = run_unsent(run, &plan_options, result);
    return status;
}
