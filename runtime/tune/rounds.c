/* The last rounds: candidates that may be the fastest follow each other, again and again, so that
 * what disturbs the machine disturbs all alike. */
#include "runtime/tune/internal.h"

#include <stdlib.h>
#include <string.h>

/* Candidates at most; what took more than so many times the best in the first look is not measured
 * again; so many times the rounds that were asked for, if noise is in the way. */
enum { MOST_FINALISTS = 8, PATIENCE = 3 };
static const double look_factor = 1.3;

/* Drops what was far behind in the first look, and all but the fastest. Returns the fastest's time.
 */
static double choose_finalists(tuner *t)
{
    peal_candidates *set = &t->out->set;
    double best = 0;
    for (int c = 0; c < set->count; c++)
        if (tuner_is_in(t, c) && (best <= 0 || t->out->item[c].first_s < best))
            best = t->out->item[c].first_s;
    for (int c = 0; c < set->count; c++) {
        double mine = t->out->item[c].first_s;
        int before = 0;
        for (int d = 0; d < set->count; d++)
            before += tuner_is_in(t, d) && (t->out->item[d].first_s < mine ||
                                            (d < c && t->out->item[d].first_s <= mine));
        char *dropped = set->item[c].dropped;
        if (tuner_is_in(t, c) && mine > look_factor * best)
            snprintf(dropped, PEAL_DROPPED_BYTES, "%.1f times the best in a first look",
                     mine / best);
        else if (tuner_is_in(t, c) && before >= MOST_FINALISTS)
            snprintf(dropped, PEAL_DROPPED_BYTES, "not among the %d fastest of a first look",
                     MOST_FINALISTS);
    }
    return best;
}

/* Notes what a plan has computed before it goes. */
static peal_status close_plan(tuner *t, int c)
{
    peal_plan_statistics done;
    peal_status status = PEAL_STATUS_OK;
    if (!t->plan[c])
        return status;
    status = peal_plan_digest(t->plan[c], NULL, &t->late_digest[c]);
    peal_plan_statistics_get(t->plan[c], &done);
    t->late_steps[c] = done.steps_done;
    peal_plan_destroy(t->plan[c]);
    t->plan[c] = NULL;
    return status;
}

static peal_status close_plans(tuner *t)
{
    peal_status status = PEAL_STATUS_OK;
    for (int c = 0; c < t->out->set.count; c++) {
        peal_status one = close_plan(t, c);
        status = status ? status : one;
    }
    return status;
}

/* A plan that has begun. Where not all fit into memory beside each other, each goes when the next
 * one comes. */
static peal_status open_finalist(tuner *t, int c)
{
    int from = tuner_mark(t);
    double ignored;
    peal_status status = tuner_open(t, c, &t->plan[c]);
    if (status && t->keeps && !peal_session_status(t->session)) {
        t->keeps = false;
        peal_diagnostics_take_back(t->session->diagnostics, from);
        status = close_plans(t);
        if (!status)
            status = tuner_open(t, c, &t->plan[c]);
    }
    if (status || t->whole)
        return status;
    return tuner_run(t, t->plan[c], t->out->piece_steps, &ignored);
}

static peal_status measure(tuner *t, int c, double *step_s)
{
    int64_t piece = t->out->piece_steps;
    peal_status status = PEAL_STATUS_OK;
    bool used_up = t->plan[c] && t->repeat >= piece && peal_plan_steps_left(t->plan[c]) < piece;
    peal_candidate_label(&t->out->set.item[c], t->out->under_way, sizeof(t->out->under_way));
    if (used_up)
        status = close_plan(t, c);
    if (!status && !t->plan[c])
        status = open_finalist(t, c);
    if (!status)
        status = tuner_run(t, t->plan[c], t->whole ? t->check_steps : piece, step_s);
    if (!status && (!t->keeps || t->whole))
        status = close_plan(t, c);
    return status;
}

/* One after the other, beginning with another one each time. */
static peal_status run_round(tuner *t, int round, int most_rounds, double *seconds)
{
    int count = t->out->set.count;
    peal_status status = PEAL_STATUS_OK;
    for (int k = 0; k < count && !status; k++) {
        int c = (k + round) % count;
        if (tuner_is_in(t, c))
            status = measure(t, c, &seconds[c * most_rounds + round]);
    }
    return status;
}

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
    out->chosen = out->best;
    for (int c = 0; c < count && out->best >= 0; c++) {
        out->item[c].judged = judged[c];
        if (judged[c].verdict == PEAL_VERDICT_TIE &&
            peal_candidate_is_simpler(&out->set.item[c], &out->set.item[out->chosen]))
            out->chosen = c;
    }
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
        status = run_round(t, round, most_rounds, seconds);
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
        status = peal_plan_digest(plan, NULL, &right);
    peal_plan_destroy(plan);
    for (int c = 0; c < t->out->set.count && !status; c++)
        if (tuner_is_in(t, c) && t->late_steps[c] == t->late_steps[first] &&
            t->late_digest[c] != right)
            tuner_report_wrong(t, c, t->late_steps[c]);
    return status;
}

peal_status tuner_rounds(tuner *t)
{
    int most_rounds = PATIENCE * t->desc->rounds, count = t->out->set.count;
    double best = choose_finalists(t);
    double *seconds = calloc((size_t)count * (size_t)most_rounds, sizeof(*seconds));
    if (!seconds)
        return peal_report(t->session->diagnostics, PEAL_E367, PEAL_NO_SOURCE, NULL,
                           "no memory for %d rounds", most_rounds);
    t->keeps = true;
    t->out->piece_steps = t->whole ? t->check_steps : tuner_piece(best);
    peal_status status = run_rounds(t, seconds, most_rounds);
    if (!status)
        status = close_plans(t);
    if (!status && !t->whole)
        status = check_ends(t);
    if (!status)
        judge(t, seconds, most_rounds, t->out->rounds);
    for (int c = 0; c < count; c++)
        peal_plan_destroy(t->plan[c]);
    free(seconds);
    return status;
}
