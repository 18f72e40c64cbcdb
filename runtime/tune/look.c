/* The first look: each candidate alone, one after the other. */
#include "runtime/tune/internal.h"

#include <string.h>

/* Measurements of each; what gained so much alone is combined with others. */
enum { LOOKS = 3 };
static const double combine_gain = 0.02;

/* Runs what serial has run, and compares. */
static peal_status check(tuner *t, int c, peal_plan *plan, double *step_s)
{
    uint64_t digest;
    peal_status status = tuner_run(t, plan, t->check_steps, step_s);
    if (!status)
        status = peal_plan_digest(plan, NULL, &digest);
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

static peal_status time_first(const tuner *t, peal_plan *plan, double step_s, double *best)
{
    peal_status status = PEAL_STATUS_OK;
    *best = step_s;
    for (int i = 0; i < LOOKS && !status && !t->whole; i++) {
        int64_t piece = tuner_piece(step_s);
        status = tuner_run(t, plan, piece, &step_s);
        if (i == 0 || step_s < *best)
            *best = step_s;
    }
    return status;
}

/* Status of the job only: a candidate that cannot be made ready is dropped. */
static peal_status look(tuner *t, int c)
{
    peal_plan *plan = NULL;
    peal_candidate *candidate = &t->out->set.item[c];
    int from = tuner_mark(t);
    double step_s = 0;
    peal_status status = tuner_open(t, c, &plan);
    if (status && !peal_session_status(t->session)) {
        const char *why = peal_session_first_message(t->session, from);
        snprintf(candidate->dropped, sizeof(candidate->dropped), "cannot run: %.140s",
                 why ? why : peal_status_name(status));
        peal_diagnostics_take_back(t->session->diagnostics, from);
        return PEAL_STATUS_OK;
    }
    if (!status)
        status = check(t, c, plan, &step_s);
    if (!status && !t->out->item[c].wrong)
        status = time_first(t, plan, step_s, &t->out->item[c].first_s);
    peal_plan_destroy(plan);
    return status;
}

peal_status tuner_look(tuner *t, int first, int end)
{
    char label[PEAL_LABEL_BYTES];
    peal_status status = PEAL_STATUS_OK;
    int todo = 0, done = 0;
    for (int c = first; c < end; c++)
        todo += !t->out->set.item[c].dropped[0];
    for (int c = first; c < end && !status; c++) {
        const peal_candidate *candidate = &t->out->set.item[c];
        if (candidate->dropped[0])
            continue;
        tuner_progress(t, "look", done++, todo);
        status = look(t, c);
        peal_candidate_label(candidate, label, sizeof(label));
        if (candidate->dropped[0])
            tuner_tell(t, "%s: %s", label, candidate->dropped);
        else if (!status)
            tuner_tell(t, "%s: %.3f us a step", label, t->out->item[c].first_s * 1e6);
    }
    return status;
}

/* Combines what gained alone, and looks at that. */
peal_status tuner_combine(tuner *t)
{
    double seconds[PEAL_MOST_CANDIDATES] = {0};
    peal_candidates *set = &t->out->set;
    int count = set->count;
    for (int c = 0; c < count; c++)
        seconds[c] = set->item[c].dropped[0] ? 0 : t->out->item[c].first_s;
    if (!peal_candidates_combine(set, seconds, combine_gain))
        return PEAL_STATUS_OK;
    return tuner_look(t, count, set->count);
}
