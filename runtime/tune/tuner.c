/* What all stages of tuning need: plans of candidates, pieces of their steps, and what is told. */
#include "runtime/tune/internal.h"
#include "runtime/verify/verify.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* How long a measurement takes, about. */
static const double usual_piece_s = 0.02;
enum { MOST_PIECE = 1 << 20 };

void tuner_tell(const tuner *t, const char *format, ...)
{
    char line[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (t->desc->tell)
        t->desc->tell(t->desc->user, line);
}

void tuner_progress(const tuner *t, const char *what, int64_t done, int64_t all)
{
    if (t->desc->progress)
        t->desc->progress(t->desc->user, what, done, all);
}

peal_status tuner_open_mode(tuner *t, const char *mode, const peal_candidate *candidate,
                            peal_plan **plan)
{
    peal_plan_options options = t->desc->options;
    options.mode = mode;
    options.lowering = candidate && candidate->lowering[0] ? candidate->lowering : NULL;
    if (candidate && candidate->threads)
        options.threads = candidate->threads;
    options.no_tuning = true;
    options.row = NULL;
    peal_status status = peal_graph_compile(t->desc->graph, t->session, &options, plan);
    if (!status)
        t->repeat = (*plan)->repeat;
    return status;
}

peal_status tuner_ahead_await(const tuner *t, tuner_ahead *ahead, peal_status so_far)
{
    int from = peal_diagnostics_count(t->session->diagnostics);
    peal_session_running(t->session, true);
    tuner_ahead_end(ahead, !so_far);
    peal_session_running(t->session, false);
    return so_far ? so_far : peal_session_agree(t->session, PEAL_STATUS_OK, from);
}

peal_status tuner_open(tuner *t, int c, peal_plan **plan)
{
    const peal_candidate *candidate = &t->out->set.item[c];
    peal_candidate_label(candidate, t->out->under_way, sizeof(t->out->under_way));
    return tuner_open_mode(t, peal_mode_name(candidate->mode), candidate, plan);
}

/* What a process has seen of a piece. */
typedef struct observation {
    double seconds;
    int64_t steps; /* 0 where no rank is hosted */
    int64_t stopped;
} observation;

/* The slowest process counts: messages hold the others to its pace. */
static peal_status share(const tuner *t, observation *own)
{
    int processes = t->session->identity.processes;
    if (processes == 1)
        return PEAL_STATUS_OK;
    observation *all = calloc((size_t)processes, sizeof(*all));
    if (!all)
        return peal_report(t->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for %d times", processes);
    /* In serial the others are here before process 0 is: they wait for it as long as it runs. */
    peal_status status = peal_session_agree(t->session, PEAL_STATUS_OK, 0);
    if (!status)
        status = peal_control_allgather(t->session->control, own, sizeof(*own), all);
    for (int p = 0; !status && p < processes; p++) {
        own->seconds = all[p].seconds > own->seconds ? all[p].seconds : own->seconds;
        own->steps = all[p].steps > own->steps ? all[p].steps : own->steps;
        own->stopped |= all[p].stopped;
    }
    free(all);
    return status;
}

peal_status tuner_run(tuner *t, peal_plan *plan, int64_t steps, double *step_s)
{
    peal_plan_statistics before, after;
    peal_plan_statistics_get(plan, &before);
    peal_status status = peal_plan_start(plan, steps, NULL);
    if (!status)
        status = peal_plan_wait(plan);
    if (status)
        return status;
    peal_plan_statistics_get(plan, &after);
    observation done = {.seconds = after.seconds - before.seconds,
                        .steps = after.steps_done - before.steps_done,
                        .stopped = after.stopped};
    status = share(t, &done);
    t->stopped = done.stopped;
    *step_s = done.steps > 0 ? done.seconds / (double)done.steps : 0;
    return status;
}

/* Only plans that have run are asked. */
peal_status tuner_outcome(const tuner *t, peal_plan *plan, uint64_t *digest)
{
    int64_t things = 0;
    peal_status status = peal_plan_outcome(plan, digest, &things);
    if (!status && things == 0)
        status = peal_report_nothing(plan->data, t->session->diagnostics);
    return status;
}

int64_t tuner_most_steps(const tuner *t)
{
    int64_t given = t->desc->steps;
    return given >= 0 && given < t->repeat ? given : t->repeat;
}

int64_t tuner_piece(const tuner *t, double step_s)
{
    double wanted_s = t->desc->piece_s > 0 ? t->desc->piece_s : usual_piece_s;
    double steps = step_s > 0 ? wanted_s / step_s : 1;
    return steps < 1 ? 1 : steps > MOST_PIECE ? MOST_PIECE : (int64_t)steps;
}

bool tuner_is_in(const tuner *t, int c)
{
    return !t->out->set.item[c].dropped[0];
}

void tuner_report_wrong(tuner *t, int c, int64_t steps)
{
    char label[PEAL_LABEL_BYTES];
    peal_candidate *candidate = &t->out->set.item[c];
    peal_candidate_label(candidate, label, sizeof(label));
    t->out->item[c].wrong = true;
    snprintf(candidate->dropped, sizeof(candidate->dropped), "computes other bits than serial");
    peal_report(t->session->diagnostics, PEAL_E_CANDIDATE_DIFFERS, PEAL_NO_SOURCE,
                "peal run --verify with these options names the first difference",
                "%s computed other bits than serial in %lld step%s", label, (long long)steps,
                steps == 1 ? "" : "s");
}
