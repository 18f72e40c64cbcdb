/* Measurements: a piece of a candidate's steps, timed. Plans stay between their pieces where memory
 * allows, so that pieces of different candidates follow each other closely. */
#include "runtime/tune/internal.h"

/* Steps that candidates are compared over with each other. */
enum { FEW_STEPS = 64 };

/* Notes what a plan has computed before it goes. */
static peal_status close_plan(tuner *t, int c)
{
    peal_plan_statistics done;
    peal_plan *plan = t->plan[c];
    if (!plan)
        return PEAL_STATUS_OK;
    peal_status status = tuner_outcome(t, plan, &t->late_digest[c]);
    peal_plan_statistics_get(plan, &done);
    t->late_steps[c] = done.steps_done;
    peal_plan_destroy(plan);
    t->plan[c] = NULL;
    return status;
}

peal_status tuner_close(tuner *t)
{
    peal_status status = PEAL_STATUS_OK;
    for (int c = 0; c < t->out->set.count && !status; c++)
        status = close_plan(t, c);
    return status;
}

/* If it cannot be made ready beside the others, they go, and stay away if that has helped; if it
 * cannot be made ready at all it is dropped. The status of the job only. */
static peal_status open_plan(tuner *t, int c)
{
    char *dropped = t->out->set.item[c].dropped;
    int from = peal_diagnostics_count(t->session->diagnostics);
    peal_status status = tuner_open(t, c, &t->plan[c]);
    if (status == PEAL_STATUS_SPEC && !t->has_reference) /* nothing could run it */
        return status;
    if (status && t->keeps && !peal_session_status(t->session)) {
        peal_diagnostics_take_back(t->session->diagnostics, from);
        status = tuner_close(t);
        if (!status)
            status = tuner_open(t, c, &t->plan[c]);
        t->keeps = status != PEAL_STATUS_OK;
    }
    if (!status || peal_session_status(t->session))
        return status;
    const char *why = peal_session_first_message(t->session, from);
    snprintf(dropped, PEAL_DROPPED_BYTES, "cannot run: %.140s",
             why ? why : peal_status_name(status));
    peal_diagnostics_take_back(t->session->diagnostics, from);
    return PEAL_STATUS_OK;
}

/* Runs what serial has run, and compares: a plan's first steps, which also warm it up. */
static peal_status run_first(tuner *t, int c, double *step_s)
{
    uint64_t digest;
    if (!t->check_steps) /* serial could not run */
        t->check_steps = tuner_most_steps(t) < FEW_STEPS ? tuner_most_steps(t) : FEW_STEPS;
    peal_status status = tuner_run(t, t->plan[c], t->check_steps, step_s);
    if (!status)
        status = tuner_outcome(t, t->plan[c], &digest);
    if (status)
        return status;
    if (!t->has_reference) {
        t->has_reference = true;
        t->reference = digest;
    }
    if (digest != t->reference)
        tuner_report_wrong(t, c, t->check_steps);
    return PEAL_STATUS_OK;
}

/* The spec's own steps, if these are enough for a piece; else there are more of them. */
static bool is_used_up(const tuner *t, int c)
{
    int64_t piece = t->out->piece_steps;
    return t->plan[c] && (t->stops || t->repeat >= piece) &&
           peal_plan_steps_left(t->plan[c]) < piece;
}

static peal_status run_piece(tuner *t, peal_plan *plan, double *step_s)
{
    int64_t before, steps;
    peal_status status = peal_plan_whole_steps(plan, t->out->piece_steps, &before, &steps);
    if (!status && before > 0)
        status = tuner_run(t, plan, before, step_s);
    return status ? status : tuner_run(t, plan, steps, step_s);
}

static peal_status measure(tuner *t, int c, double *step_s)
{
    double first_s = 0;
    peal_status status = PEAL_STATUS_OK;
    if (t->whole || !t->keeps || is_used_up(t, c))
        status = close_plan(t, c);
    if (!status && !t->plan[c]) {
        status = open_plan(t, c);
        if (!status && t->plan[c])
            status = run_first(t, c, &first_s);
        if (!status && !t->out->piece_steps)
            t->out->piece_steps = t->whole ? t->check_steps : tuner_piece(t, first_s);
        *step_s = first_s;
    }
    peal_candidate_label(&t->out->set.item[c], t->out->under_way, sizeof(t->out->under_way));
    if (!status && tuner_is_in(t, c) && !t->whole)
        status = run_piece(t, t->plan[c], step_s);
    if (!status && *step_s <= 0)
        *step_s = first_s; /* `until` has ended the loop before the piece */
    if (!status && (t->whole || !t->keeps || !tuner_is_in(t, c)))
        status = close_plan(t, c);
    return status;
}

peal_status tuner_round(tuner *t, int round, double *seconds, int stride)
{
    int count = t->out->set.count;
    peal_status status = PEAL_STATUS_OK;
    for (int k = 0; k < count && !status; k++) {
        int c = (k + round) % count;
        if (tuner_is_in(t, c) && c >= t->resting)
            status = measure(t, c, &seconds[c * stride]);
    }
    return status;
}
