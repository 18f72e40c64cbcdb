/* `peal run --exposed`: what communication adds to the time of a step. The same schedule runs once
 * more with its messages left out: nothing is copied, no flag is written or awaited, and what is
 * computed is thrown away. What a step takes longer with them is exposed; the rest of the
 * communication is hidden behind computing. Nothing is added to the run that counts. */
#include "tools/run.h"

#include "base/expression.h"
#include "runtime/session/session.h"

#include <inttypes.h>
#include <stdlib.h>

/* What a process has measured. */
typedef struct unsent_time {
    double sent, unsent; /* a step, with messages and without */
    int64_t steps;       /* without */
} unsent_time;

/* Why the time of a loop's body says nothing without messages; NULL: it does. */
static const char *obstacle_in(const peal_body *body)
{
    const char *why = NULL;
    for (int i = 0; i < body->count && !why; i++) {
        const peal_statement *s = body->statement[i];
        bool is_loop = s->kind == PEAL_STATEMENT_REPEAT;
        if (s->kind == PEAL_STATEMENT_LOAD || s->kind == PEAL_STATEMENT_SAVE)
            why = "the loop reads or writes files";
        else if (peal_expr_uses(s->when) & PEAL_USES_ELEMENT)
            why = "a `when` in the loop depends on what messages bring";
        else if (s->kind == PEAL_STATEMENT_TASK && s->u.task.box.count)
            why = "a box in the loop has as many points as messages bring";
        else if (is_loop && s->u.loop.until)
            why = "an inner `until` depends on what messages bring";
        else if (is_loop)
            why = obstacle_in(&s->u.loop.body);
    }
    return why;
}

/* The slowest process counts: messages hold the others to its pace. */
static peal_status slowest(const peal_run *run, unsent_time mine, unsent_time *out)
{
    *out = mine;
    if (run->processes == 1)
        return PEAL_STATUS_OK;
    unsent_time *all = calloc((size_t)run->processes, sizeof(*all));
    if (!all)
        return PEAL_STATUS_ENVIRONMENT;
    peal_status status = peal_control_allgather(run->session->control, &mine, sizeof(mine), all);
    for (int p = 0; !status && p < run->processes; p++) {
        if (all[p].sent > out->sent)
            out->sent = all[p].sent;
        if (all[p].unsent > out->unsent)
            out->unsent = all[p].unsent;
        if (all[p].steps < out->steps)
            out->steps = all[p].steps;
    }
    free(all);
    return status;
}

static peal_status measure(peal_run *run, peal_plan *plan, mode_result *result)
{
    mode_result own = {.mode = result->mode};
    unsent_time time;
    peal_status status = run_steps(run, plan, result->steps, &own);
    if (!status)
        status = slowest(run,
                         (unsent_time){median_of(result->per_step, result->sample_count),
                                       median_of(own.per_step, own.sample_count), own.steps},
                         &time);
    if (status)
        return status;
    if (time.steps < (result->steps + 1) / 2) /* `until` came to another verdict */
        snprintf(result->unmeasured, sizeof(result->unmeasured),
                 "without messages `until` ends the loop after %" PRId64 " steps", time.steps);
    else {
        result->sent_per_step = time.sent;
        result->unsent_per_step = time.unsent;
    }
    return PEAL_STATUS_OK;
}

peal_status run_unsent(peal_run *run, const peal_plan_options *options, mode_result *result)
{
    const peal_backend_hooks hooks = {.empty_messages = true};
    const char *why = result->mode == PEAL_MODE_SERIAL ? "serial is the reference"
                      : result->steps == 0             ? "no step was run"
                                                       : obstacle_in(&run->spec.data->step.body);
    if (why) {
        snprintf(result->unmeasured, sizeof(result->unmeasured), "%s", why);
        return PEAL_STATUS_OK;
    }
    peal_plan_options again = *options;
    again.mode = peal_mode_name(result->mode);
    again.backend = run->backend->name;
    again.verify = false;
    again.verify_ranks = 0;
    again.watch = NULL;
    again.row = NULL;
    again.hooks = &hooks;
    peal_plan *plan = NULL;
    peal_status status = peal_graph_compile(run->spec.graph, run->session, &again, &plan);
    if (!status)
        status = measure(run, plan, result);
    if (status)
        run_tell(run, status);
    peal_plan_destroy(plan);
    return status;
}
