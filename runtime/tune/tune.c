/* Tuning, as a story: survey (who may be the fastest, by predictions), refer (what serial
 * computes), look (is each candidate right, is it far behind; what gained alone is combined), and
 * rounds in which those that are left follow each other. All processes see the same numbers,
 * those of the slowest of them, and so decide alike. */
#include "base/processor.h"
#include "runtime/select/answer.h"
#include "runtime/select/select.h"
#include "runtime/session/device.h"
#include "runtime/tune/internal.h"

#include <stdlib.h>
#include <string.h>

/* How long serial may compute what the others are compared with. What is predicted to take more
 * than so many times the best is not measured. */
static const double serial_s = 0.3, prune_factor = 2;
/* ---- survey ---- */

static void describe_machine(const peal_plan *plan, peal_tuned *out)
{
    out->backend = plan->backend->name;
    out->ranks = plan->machine.ranks;
    out->processes = plan->session->identity.processes;
    out->workers = plan->machine.workers;
    if (plan->machine.accelerator) {
        peal_device_identity device;
        plan->backend->identify(plan->session->device, &device);
        snprintf(out->machine, sizeof(out->machine), "%.70s, driver %s", device.model,
                 device.driver);
    } else {
        peal_processor_name(out->machine, sizeof(out->machine));
    }
    out->has_key = peal_answer_key(plan, out->key);
}

/* The outline stays. */
static peal_status survey(tuner *t)
{
    peal_plan_options options = t->desc->options;
    options.no_tuning = true;
    options.row = NULL;
    peal_status status = peal_plan_outline(t->desc->graph, t->session, &options, &t->outline);
    if (status)
        return status;
    const peal_plan *plan = t->outline;
    describe_machine(plan, t->out);
    t->stops = plan->data->step.until != NULL;
    status = peal_plan_candidates(t->outline, false, &t->out->set, t->out->from);
    return status ? status
                  : peal_session_keep_files(t->session, plan->data, plan->machine.ranks,
                                            t->desc->options.allow_outside);
}

static void clear(peal_tuned *out)
{
    *out = (peal_tuned){.best = -1, .chosen = -1};
}

peal_status peal_tune_survey(const peal_tune_desc *desc, peal_tuned *out)
{
    tuner t = {.desc = desc, .out = out, .session = desc->session};
    clear(out);
    peal_status status = survey(&t);
    peal_plan_destroy(t.outline);
    return status;
}

static void tell_failure(const tuner *t, peal_status status)
{
    if (status && t->desc->failed)
        t->desc->failed(t->desc->user, status);
}

/* ---- what serial computes ---- */

/* As many steps as serial does in its time; of a loop that stops within it, all. */
static peal_status run_serial(tuner *t, peal_plan *plan)
{
    int64_t most = tuner_most_steps(t), done = 0, piece = 1;
    double step_s = 0, total = 0;
    peal_status status = most > 0 ? PEAL_STATUS_OK : tuner_run(t, plan, 0, &step_s);
    while (!status && done < most && (done == 0 || total < serial_s) && !t->stopped) {
        piece = piece < most - done ? piece : most - done;
        status = tuner_run(t, plan, piece, &step_s);
        total += step_s * (double)piece;
        done += piece;
        piece = done;
    }
    t->check_steps = done;
    t->whole = t->stops && (t->stopped || done == most);
    return status;
}

/* The same in one start, as candidates do it. */
static peal_status run_whole(tuner *t, peal_plan **plan)
{
    double ignored;
    peal_plan_destroy(*plan);
    *plan = NULL;
    peal_status status = tuner_open_mode(t, "serial", NULL, plan);
    return status ? status : tuner_run(t, *plan, t->check_steps, &ignored);
}

/* Where serial cannot run (memory, `require`), candidates are compared with the first of them. */
static peal_status refer(tuner *t)
{
    peal_plan *plan = NULL;
    int from = peal_diagnostics_count(t->session->diagnostics);
    peal_status status = tuner_open_mode(t, "serial", NULL, &plan);
    if (status == PEAL_STATUS_ENVIRONMENT && !peal_session_status(t->session)) {
        const char *why = peal_session_first_message(t->session, from);
        tuner_tell(t, "serial cannot run: %s; candidates are compared with each other",
                   why ? why : "");
        peal_diagnostics_take_back(t->session->diagnostics, from);
        t->whole = t->stops;
        return PEAL_STATUS_OK;
    }
    if (!status) {
        snprintf(t->out->under_way, sizeof(t->out->under_way), "serial");
        status = run_serial(t, plan);
    }
    if (!status && t->whole)
        status = run_whole(t, &plan);
    if (!status)
        status = tuner_outcome(t, plan, &t->reference);
    tell_failure(t, status);
    peal_plan_destroy(plan);
    t->has_reference = t->out->by_serial = !status;
    if (!status)
        tuner_tell(t, "serial: %lld step%s to compare with", (long long)t->check_steps,
                   t->check_steps == 1 ? "" : "s");
    return status;
}

/* ---- all of it ---- */

static int left(const tuner *t)
{
    int count = 0;
    for (int c = 0; c < t->out->set.count; c++)
        count += tuner_is_in(t, c);
    return count;
}

static peal_status none_left(const tuner *t)
{
    bool wrong = false;
    const char *why = "no mode but serial can run it";
    for (int c = 0; c < t->out->set.count; c++) {
        wrong |= t->out->item[c].wrong;
        why = t->out->set.item[c].dropped;
    }
    return wrong ? PEAL_STATUS_WRONG_RESULT
                 : peal_report(t->session->diagnostics, PEAL_E_NOTHING_TO_TUNE, PEAL_NO_SOURCE,
                               "`peal explain` tells which modes can run it", "nothing to tune: %s",
                               why);
}

/* All but the survey. Plans may be left. */
static peal_status measure(tuner *t)
{
    peal_tuned *out = t->out;
    if (!out->set.count)
        return none_left(t);
    out->pruned = peal_candidates_prune(&out->set, prune_factor);
    if (out->pruned)
        tuner_tell(t, "%d of %d candidates are predicted to take more than %.0f times the best",
                   out->pruned, out->set.count, prune_factor);
    tuner_ahead *ahead = tuner_ahead_begin(t, 0);
    peal_status status = tuner_ahead_await(t, ahead, refer(t));
    if (!status)
        status = tuner_look(t);
    if (!status && !left(t))
        return none_left(t);
    return status ? status : tuner_rounds(t);
}

peal_status peal_tune(const peal_tune_desc *desc, peal_tuned *out)
{
    tuner t = {.desc = desc, .out = out, .session = desc->session, .keeps = true};
    clear(out);
    peal_status status = survey(&t);
    if (!status) {
        status = measure(&t);
        tell_failure(&t, status);
    }
    for (int c = 0; c < out->set.count; c++)
        peal_plan_destroy(t.plan[c]);
    peal_plan_destroy(t.outline);
    if (status)
        return status;
    out->checked_steps = t.check_steps;
    out->under_way[0] = 0;
    for (int c = 0; c < out->set.count; c++)
        if (out->item[c].wrong)
            status = PEAL_STATUS_WRONG_RESULT;
    return status;
}
