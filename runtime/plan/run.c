/* A plan that was compiled runs: start, wait, finish. */
#include "runtime/bind/puts.h"
#include "runtime/footprints/footprints.h"
#include "runtime/plan/plan.h"
#include "runtime/verify/verify.h"

static int mark(const peal_plan *plan)
{
    return peal_diagnostics_count(plan->session->diagnostics);
}

static peal_status misuse(const peal_plan *plan, const char *call)
{
    static const char *const names[] = {"is ready to start", "is running: wait for it first",
                                        "has been finished", "has failed"};
    if (plan->state == PEAL_PLAN_FAILED)
        return plan->failure;
    return peal_report(plan->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE, NULL,
                       "%s: the plan %s", call, names[plan->state]);
}

static peal_status fail(peal_plan *plan, peal_status status, int from)
{
    plan->failure = peal_session_fail(plan->session, status, from);
    if (!plan->failure)
        plan->failure = status;
    if (plan->state == PEAL_PLAN_RUNNING)
        peal_session_running(plan->session, false);
    peal_bound_puts_end(plan->binding.puts, peal_plan_deadline_ns(plan));
    plan->state = PEAL_PLAN_FAILED;
    return plan->failure;
}

static peal_status check_start(peal_plan *plan, int64_t n, const peal_start *start)
{
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    if (plan->state != PEAL_PLAN_READY)
        return misuse(plan, "peal_plan_start");
    if (n < 0 && n != PEAL_STEPS_ALL)
        return peal_report(diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           "PEAL_STEPS_ALL starts what is left of `repeat`",
                           "peal_plan_start: %lld steps", (long long)n);
    if (plan->within_repeat && n > plan->repeat - plan->steps_asked)
        return peal_report(diagnostics, PEAL_E_MESSAGE_CONDITION_MISMATCH,
                           plan->data->step.repeat ? plan->data->step.repeat->source
                                                   : PEAL_NO_SOURCE,
                           "let conditions on `step` suit further steps, or start no more than "
                           "`repeat` says",
                           "%lld steps, but messages match and halos are fresh in the first %lld "
                           "alone",
                           (long long)(plan->steps_asked + n), (long long)plan->repeat);
    if (start && start->size_bytes != sizeof(*start))
        return peal_report(diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           "set .size_bytes = sizeof(peal_start)",
                           "peal_start has %zu bytes here, the caller's has %zu", sizeof(*start),
                           start->size_bytes);
    if (start && (start->stream || start->event) && !plan->backend->follow)
        return peal_report(diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           "leave .stream and .event NULL",
                           "peal_plan_start: the %s backend has no streams", plan->backend->name);
    return PEAL_STATUS_OK;
}

/* Of what is about to start. */
static peal_status tell_oracles(peal_plan *plan, int64_t steps, bool finish)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < PEAL_ORACLES && !status; i++) {
        peal_oracle *oracle = plan->oracle[i];
        if (oracle && !plan->setup_done)
            status = peal_oracle_remember(plan, oracle);
        if (oracle && !status)
            status = peal_oracle_note(plan, oracle, steps, finish);
    }
    return status;
}

static peal_status begin(peal_plan *plan, int64_t steps, bool finish)
{
    peal_session_running(plan->session, true);
    plan->state = PEAL_PLAN_RUNNING;
    bool setup = !plan->setup_done;
    plan->setup_done = true;
    peal_backend_plan *run = peal_plan_runner(plan);
    peal_status status =
        plan->hooks.unawaited ? PEAL_STATUS_OK : peal_bound_puts_start(plan->binding.puts);
    return status || !run ? status : plan->backend->start(run, setup, steps, finish);
}

peal_status peal_plan_complete(peal_plan *plan)
{
    peal_backend_result result = {0};
    peal_backend_plan *run = peal_plan_runner(plan);
    double posted_s = peal_bound_puts_seconds(plan->binding.puts);
    peal_status status = run ? plan->backend->wait(run, &result) : PEAL_STATUS_OK;
    peal_status sent = peal_bound_puts_end(plan->binding.puts, peal_plan_deadline_ns(plan));
    if (status || sent)
        return status ? status : sent;
    peal_session_running(plan->session, false);
    plan->steps_done += result.steps_done;
    plan->stopped = result.stopped;
    plan->seconds += result.seconds;
    plan->cpu_seconds +=
        result.cpu_seconds + peal_bound_puts_seconds(plan->binding.puts) - posted_s;
    plan->state = PEAL_PLAN_READY;
    return PEAL_STATUS_OK;
}

/* Setup by itself, where what it loads may be saved by whoever is through with it. */
static peal_status run_setup(peal_plan *plan, int64_t n)
{
    if (plan->setup_done || !peal_plan_ends_setup(plan))
        return PEAL_STATUS_OK;
    peal_status status = begin(plan, 0, false);
    if (!status)
        status = peal_plan_complete(plan);
    return status ? status : peal_session_barrier(plan->session, PEAL_BARRIER_START, plan->hash, n);
}

static peal_status start_steps(peal_plan *plan, int64_t n, const peal_start *start)
{
    peal_status status = check_start(plan, n, start);
    if (status)
        return status;
    int from = mark(plan);
    if (n == PEAL_STEPS_ALL)
        n = peal_plan_steps_left(plan);
    if (!plan->setup_done) /* nobody saves before all have come */
        peal_originals_begin(plan->originals);
    status = peal_session_barrier(plan->session, PEAL_BARRIER_START, plan->hash, n);
    if (!status)
        status = tell_oracles(plan, n, false);
    peal_backend_plan *run = peal_plan_runner(plan);
    if (!status && run && start && (start->stream || start->event))
        status = plan->backend->follow(run, start->stream, start->event);
    if (!status)
        status = run_setup(plan, n);
    if (!status) {
        plan->steps_asked += n;
        status = begin(plan, n, false);
    }
    return status ? fail(plan, status, from) : PEAL_STATUS_OK;
}

peal_status peal_plan_start(peal_plan *plan, int64_t n, const peal_start *start)
{
    if (!peal_is_plan(plan, __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(plan->session, start_steps(plan, n, start));
}

static peal_status wait_for(peal_plan *plan)
{
    if (plan->state != PEAL_PLAN_RUNNING)
        return misuse(plan, "peal_plan_wait");
    int from = mark(plan);
    peal_status status = peal_plan_complete(plan);
    return status ? fail(plan, status, from) : PEAL_STATUS_OK;
}

peal_status peal_plan_wait(peal_plan *plan)
{
    if (!peal_is_plan(plan, __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(plan->session, wait_for(plan));
}

peal_status peal_plan_event(peal_plan *plan, void **event)
{
    if (!peal_is_plan(plan, __func__) || !peal_argument_check(event, "the event", __func__))
        return PEAL_STATUS_USAGE;
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    peal_backend_plan *run = peal_plan_runner(plan);
    if (plan->state != PEAL_PLAN_RUNNING)
        return misuse(plan, "peal_plan_event");
    if (!plan->backend->event || !run)
        return peal_report(diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                           "call peal_plan_wait", "peal_plan_event: %s",
                           run ? "the host backend has no events" : "no rank is hosted here");
    return plan->backend->event(run, event);
}

/* What `finish` reads and sends may have been proved for the steps that `repeat` says alone. */
static peal_status check_end(peal_plan *plan)
{
    if (!plan->ends_at_repeat || plan->stopped || plan->steps_asked == plan->repeat)
        return PEAL_STATUS_OK;
    return peal_report(plan->session->diagnostics, PEAL_E_MESSAGE_CONDITION_MISMATCH,
                       plan->data->step.repeat ? plan->data->step.repeat->source : PEAL_NO_SOURCE,
                       "start as many steps as `repeat` says, or give the number of steps before "
                       "the graph is checked (peal_graph_set_steps)",
                       "`finish` after %lld steps, but its messages match and its halos are fresh "
                       "after %lld alone",
                       (long long)plan->steps_asked, (long long)plan->repeat);
}

static peal_status finish(peal_plan *plan)
{
    if (plan->state != PEAL_PLAN_READY)
        return misuse(plan, "peal_plan_finish");
    if (!plan->setup_done && peal_plan_ends_setup(plan)) { /* never started: setup by itself */
        peal_status begun = start_steps(plan, 0, NULL);
        begun = begun ? begun : wait_for(plan);
        if (begun)
            return begun;
    }
    int from = mark(plan);
    bool stopped = plan->stopped;
    peal_status status = check_end(plan);
    if (!status)
        status = tell_oracles(plan, 0, true);
    if (!status)
        status = begin(plan, 0, true);
    if (!status)
        status = peal_plan_complete(plan);
    plan->stopped = stopped;
    if (!status)
        status =
            peal_session_barrier(plan->session, PEAL_BARRIER_FINISH, plan->hash, plan->steps_asked);
    if (status)
        return fail(plan, status, from);
    plan->state = PEAL_PLAN_FINISHED;
    peal_watch_tell(plan);
    if (!plan->footprints)
        return PEAL_STATUS_OK;
    return peal_session_agree(plan->session, peal_footprints_status(plan->footprints), 0);
}

peal_status peal_plan_finish(peal_plan *plan)
{
    if (!peal_is_plan(plan, __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(plan->session, finish(plan));
}
