/* The last rounds: candidates that may be the fastest follow each other, again and again, so that
 * what disturbs the machine disturbs all alike. */
#include "runtime/tune/internal.h"

#include <stdlib.h>
#include <string.h>

/* So many times the rounds that were asked for, if noise is in the way. */
enum { PATIENCE = 3 };

static void judge(tuner *t, const double *seconds, int most_rounds, int rounds)
{
    peal_tuned *out = t->out;
    int count = out->set.count;
    bool takes_part[PEAL_MOST_CANDIDATES] = {false};
    peal_judged judged[PEAL_MOST_CANDIDATES];
    for (int c = 0; c < count; c++)
        takes_part[c] = tuner_is_in(t, c);
    out->rounds = rounds;
    out->best = peal_judge(seconds, most_rounds, takes_part, count, rounds, judged);
    out->chosen = peal_judge_choose(&out->set, judged, out->best);
    for (int c = 0; c < count; c++)
        out->item[c].judged = judged[c];
}

static bool is_open(const tuner *t)
{
    for (int c = 0; c < t->out->set.count; c++)
        if (t->out->item[c].judged.verdict == PEAL_VERDICT_UNCERTAIN)
            return true;
    return false;
}

static peal_status run_rounds(tuner *t, double *seconds, int most_rounds)
{
    peal_status status = PEAL_STATUS_OK;
    int wanted = t->desc->rounds;
    for (int round = 0; round < wanted && !status; round++) {
        tuner_progress(t, "round", round, wanted);
        status = tuner_round(t, round, seconds + round, most_rounds);
        if (status || round + 1 < wanted)
            continue;
        judge(t, seconds, most_rounds, wanted);
        if (is_open(t) && wanted + t->desc->rounds <= most_rounds) {
            wanted += t->desc->rounds;
            tuner_tell(t, "noise hides differences of more than 3 %%: up to round %d", wanted);
        }
    }
    return status;
}

/* Candidates that have ended after as many steps have computed the same; if not, serial tells who
 * is wrong. */
static peal_status check_ends(tuner *t)
{
    peal_plan *plan = NULL;
    int first = -1, differ = 0;
    double ignored;
    for (int c = 0; c < t->out->set.count; c++) {
        if (!tuner_is_in(t, c) || !t->late_steps[c])
            continue;
        first = first < 0 ? c : first;
        differ +=
            t->late_steps[c] == t->late_steps[first] && t->late_digest[c] != t->late_digest[first];
    }
    if (!differ)
        return PEAL_STATUS_OK;
    uint64_t right = t->late_digest[first];
    peal_status status =
        t->out->by_serial ? tuner_open_mode(t, "serial", NULL, &plan) : PEAL_STATUS_OK;
    if (!status && plan)
        status = tuner_run(t, plan, t->late_steps[first], &ignored);
    if (!status && plan)
        status = tuner_outcome(t, plan, &right);
    peal_plan_destroy(plan);
    for (int c = 0; c < t->out->set.count && !status; c++)
        if (tuner_is_in(t, c) && t->late_steps[c] == t->late_steps[first] &&
            t->late_digest[c] != right)
            tuner_report_wrong(t, c, t->late_steps[c]);
    return status;
}

peal_status tuner_rounds(tuner *t)
{
    int most_rounds = PATIENCE * t->desc->rounds;
    double *seconds = calloc((size_t)t->out->set.count * (size_t)most_rounds, sizeof(*seconds));
    if (!seconds)
        return peal_report(t->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for %d rounds", most_rounds);
    peal_status status = run_rounds(t, seconds, most_rounds);
    if (!status)
        status = tuner_close(t);
    if (!status && !t->whole)
        status = check_ends(t);
    if (!status)
        judge(t, seconds, most_rounds, t->out->rounds);
    free(seconds);
    return status;
}
