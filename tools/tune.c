/* `peal tune`: measures which way to run a spec is the fastest, and keeps the answer for mode auto.
 */
#define _POSIX_C_SOURCE 200809L
#include "tools/tune.h"
#include "tools/command.h"

#include "runtime/select/answer.h"
#include "runtime/session/session.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const peal_source nowhere;

static bool is_silent(const peal_run *run)
{
    return !run->leads || run->options->quiet || run->options->format != FORMAT_TEXT;
}

/* A line a candidate where no bar is drawn. */
static void tell(void *user, const char *line)
{
    if (!is_silent(user) && !isatty(STDERR_FILENO))
        fprintf(stderr, "%s\n", line);
}

static void progress(void *user, const char *what, int64_t done, int64_t all)
{
    if (!is_silent(user))
        progress_draw(what, done, all, "rounds");
}

static void say_why(void *user, peal_status status)
{
    progress_clear();
    run_tell(user, status);
}

/* The answer's file, if it is known what the answer depends on. */
static void find_path(const peal_run *run, tuning *t)
{
    peal_arena *arena = t->tuned.has_key ? peal_arena_create() : NULL;
    const char *path =
        arena ? peal_answer_path(NULL, t->tuned.key, arena, peal_session_diagnostics(run->session))
              : NULL;
    snprintf(t->path, sizeof(t->path), "%s", path ? path : "");
    peal_arena_destroy(arena);
}

/* Why an answer is not kept, in words; NULL: it may be. */
static const char *obstacle(const peal_options *options)
{
    if (options->mode < MODE_AUTO)
        return "--mode has left out the others";
    if (options->lowering)
        return "--lower was given";
    return NULL;
}

/* By process 0. */
static void keep(const peal_run *run, tuning *t)
{
    const peal_tuned *tuned = &t->tuned;
    const peal_candidate *taken = &tuned->set.item[tuned->chosen];
    peal_answer answer = {.mode = taken->mode,
                          .threads = taken->threads,
                          .step_s = tuned->item[tuned->chosen].judged.median_s,
                          .rounds = tuned->rounds};
    time_t now = time(NULL);
    struct tm utc;
    char *comment = NULL;
    size_t bytes = 0;
    memcpy(answer.lowering, taken->lowering, sizeof(answer.lowering));
    snprintf(answer.name, sizeof(answer.name), "%s", run->spec.data->name);
    snprintf(answer.machine, sizeof(answer.machine), "%s", tuned->machine);
    if (gmtime_r(&now, &utc))
        strftime(answer.date, sizeof(answer.date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    find_path(run, t);
    FILE *out = t->path[0] ? open_memstream(&comment, &bytes) : NULL;
    if (out) {
        tune_print_table(tuned, "# ", out);
        fclose(out);
        t->kept = peal_answer_keep(t->path, tuned->key, &answer, comment);
        free(comment);
    }
    if (!t->kept)
        peal_warn(peal_session_diagnostics(run->session), PEAL_E_TUNING_NOT_SAVED, nowhere, NULL,
                  t->path[0]       ? "the answer is not kept: %s cannot be written"
                  : tuned->has_key ? "the answer is not kept: there is no cache folder%s"
                                   : "the answer is not kept: an #include in a kernel file is "
                                     "computed%s",
                  t->path);
}

/* Tests judge no times: theirs are short. */
static double piece_seconds(void)
{
    const char *given = getenv("PEAL_TEST_PIECE_S");
    return given ? atof(given) : 0;
}

static peal_status tune(peal_run *run)
{
    const peal_options *options = run->options;
    tuning *t = run->tuning = calloc(1, sizeof(*t));
    if (!t)
        return PEAL_STATUS_ENVIRONMENT;
    const peal_tune_desc desc = {.size = sizeof(desc),
                                 .graph = run->spec.graph,
                                 .session = run->session,
                                 .options = {.size_bytes = sizeof(peal_plan_options),
                                             .mode = options->mode < MODE_AUTO
                                                         ? options_mode_name(options->mode)
                                                         : NULL,
                                             .ranks = options->ranks,
                                             .threads = options->threads,
                                             .deadline_s = (double)options->deadline_ns * 1e-9,
                                             .allow_outside = options->allow_outside,
                                             .backend = options->backend,
                                             .lowering = options->lowering,
                                             .transport = options->transport,
                                             .machine = options->machine},
                                 .steps = options->steps,
                                 .rounds = options->rounds ? options->rounds : PEAL_LEAST_ROUNDS,
                                 .piece_s = piece_seconds(),
                                 .tell = tell,
                                 .progress = progress,
                                 .failed = say_why,
                                 .user = run};
    if (options->forget) {
        peal_status status = peal_tune_survey(&desc, &t->tuned);
        find_path(run, t);
        t->forgotten = !status && run->leads && t->path[0] && peal_answer_forget(t->path);
        return status;
    }
    t->measured = true;
    peal_status status = peal_tune(&desc, &t->tuned);
    progress_clear();
    t->unkept = obstacle(options);
    if (run->leads && t->tuned.chosen >= 0 && !t->unkept)
        keep(run, t);
    return status;
}

static void report(const peal_run *run, peal_status status)
{
    if (run->options->format == FORMAT_JSON)
        tune_print_json(run, status);
    else
        tune_print_text(run, status);
    fflush(stdout);
}

static peal_status forget_all(const peal_options *options, peal_diagnostics *diagnostics)
{
    int count = peal_answer_forget_all(NULL, diagnostics);
    if (options->format == FORMAT_JSON) {
        json_t *object = json_begin("peal.tune/1");
        json_object_set_new(object, "forgotten", json_integer(count));
        json_print(object);
    } else {
        printf("%d answer%s forgotten.\n", count, count == 1 ? "" : "s");
    }
    return PEAL_STATUS_OK;
}

static peal_status run_verb(const peal_options *options, peal_diagnostics *diagnostics)
{
    static const job_body body = {tune, report};
    bool measures =
        options->mode_given || options->lowering || options->steps >= 0 || options->rounds;
    if (options->format == FORMAT_DOT)
        return peal_report(diagnostics, PEAL_E_INVALID_OPTION_VALUE, nowhere, NULL,
                           "`peal tune` prints text or json");
    if (options->rounds &&
        (options->rounds < PEAL_LEAST_ROUNDS || options->rounds > PEAL_MOST_ROUNDS))
        return peal_report(diagnostics, PEAL_E_INVALID_OPTION_VALUE, nowhere,
                           "fewer tell nothing apart", "`peal tune` takes %d to %d rounds",
                           PEAL_LEAST_ROUNDS, PEAL_MOST_ROUNDS);
    if (options->forget && measures)
        return peal_report(diagnostics, PEAL_E_CONFLICTING_TUNE_OPTIONS, nowhere,
                           "it measures nothing",
                           "--forget goes with no --mode, --lower, --steps or --rounds");
    if (options->forget && !options->subject)
        return forget_all(options, diagnostics);
    return run_job(options, &body, diagnostics);
}

const peal_command tune_command = {
    "tune", VERB_TUNE,
    "usage: peal tune SPEC [options]\n"
    "       peal tune --forget [SPEC [options]]\n"
    "\n"
    "Measures the ways to run a spec that may be the fastest (modes, and choices that --lower\n"
    "can force), compares what they compute with serial, and keeps the answer in the cache\n"
    "folder: --mode auto takes it for this spec, these params, ranks and this machine.\n"
    "\n"
    "  -n, --ranks N      ranks; --processes, --hosts, --threads, --backend, --transport: as for "
    "run\n"
    "      --set K=V      override a param\n"
    "      --steps S      compare, and run loops with `until`, over S steps at most\n"
    "      --rounds R     of the last candidates (default 9; up to 3 R where there is noise)\n"
    "      --mode M       only this mode's choices; the answer is not kept\n"
    "      --lower K=V,.. in all candidates; the answer is not kept\n"
    "      --machine FILE.yaml  predict with these times what need not be measured\n"
    "      --deadline D   longest wait without progress (default 30s)\n"
    "      --forget       remove the answer, without a spec all of them\n"
    "      --allow-outside  kernels and data may lie outside the spec's folder\n"
    "      --json         as JSON (schema peal.tune/1)\n"
    "  -q, --quiet        only the result\n"
    "  -h, --help         this text\n"
    "\n"
    "example: peal tune samples/heat3d -n 2\n",
    run_verb};
