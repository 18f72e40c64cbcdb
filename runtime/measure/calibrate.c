/* Kernels are timed by functions in their place, which look at the clock and call them: a backend
 * plan on copies of the schedules, as --check-footprints makes them. */
#include "runtime/measure/calibrate.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { PLANS = 8, ROUNDS = 10, FEW_STEPS = 2 };

/* Short, so that some are disturbed by nothing else. */
static const double round_s = 1e-3;

/* Of one task of one rank, which one thread at a time runs. */
typedef struct timed_task {
    peal_function full, bare;
    void *user;
    int64_t ns, calls;
    double points;
} timed_task;

typedef struct calibration {
    peal_plan *plan;
    peal_schedule *schedule; /* copies by hosted rank */
    peal_schedule_task **copy;
    timed_task **timed;
    peal_backend_plan *run;
    double clock_ns; /* of a look at the clock, which the time of a call has in it */
} calibration;

static void timed_call(const peal_call *call)
{
    timed_task *t = call->user;
    peal_call real = *call;
    bool partials = call->partial_count > 0 && call->partial[0];
    double points = 1;
    for (int k = 0; k < PEAL_AXES; k++)
        points *= call->tile.hi[k] > call->tile.lo[k] ? call->tile.hi[k] - call->tile.lo[k] : 0;
    real.user = t->user;
    int64_t begin = peal_clock_ns();
    (partials ? t->full : t->bare)(&real);
    t->ns += peal_clock_ns() - begin;
    t->points += points;
    t->calls++;
}

static double clock_ns(void)
{
    enum { LOOKS = 1000 };
    int64_t begin = peal_clock_ns(), last = begin;
    for (int i = 0; i < LOOKS; i++)
        last = peal_clock_ns();
    return (double)(last - begin) / LOOKS;
}

/* ---- setting up ---- */

static bool wrap_rank(calibration *c, int index)
{
    peal_plan *plan = c->plan;
    const peal_schedule *schedule = plan->binding.rank[index].schedule;
    size_t count = (size_t)schedule->task_count;
    peal_schedule_task *copy = c->copy[index] = calloc(count + 1, sizeof(*copy));
    timed_task *timed = c->timed[index] = calloc(count + 1, sizeof(*timed));
    if (!copy || !timed)
        return false;
    memcpy(copy, schedule->task, count * sizeof(*copy));
    c->schedule[index] = *schedule;
    c->schedule[index].task = copy;
    for (int i = 0; i < schedule->task_count; i++) {
        if (copy[i].kind != PEAL_TASK_KERNEL)
            continue;
        timed[i].full = plan->backend->function(plan->run, index, i, true, &timed[i].user);
        timed[i].bare = plan->backend->function(plan->run, index, i, false, &timed[i].user);
        copy[i].function = timed_call;
        copy[i].user = &timed[i];
    }
    return true;
}

static peal_status wrap(calibration *c)
{
    size_t ranks = (size_t)c->plan->binding.count;
    c->schedule = calloc(ranks + 1, sizeof(*c->schedule));
    c->copy = calloc(ranks + 1, sizeof(*c->copy));
    c->timed = calloc(ranks + 1, sizeof(*c->timed));
    bool fine = c->schedule && c->copy && c->timed;
    for (int r = 0; fine && r < c->plan->binding.count; r++) {
        fine = wrap_rank(c, r);
        c->plan->binding.backend_rank[r].schedule = &c->schedule[r];
    }
    if (!fine)
        return peal_report(c->plan->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE,
                           NULL, "no memory to time kernels");
    return peal_plan_arm(c->plan, &c->plan->binding, PEAL_MODE_SYNC, NULL, &c->run);
}

static void release(calibration *c)
{
    if (c->run)
        c->plan->backend->destroy(c->run);
    for (int r = 0; r < c->plan->binding.count; r++) {
        if (c->copy)
            free(c->copy[r]);
        if (c->timed)
            free(c->timed[r]);
    }
    free(c->schedule);
    free(c->copy);
    free(c->timed);
}

/* ---- rounds ---- */

static peal_status run_steps(calibration *c, bool setup, int64_t steps, peal_backend_result *result)
{
    peal_session_running(c->plan->session, true);
    peal_status status = c->plan->backend->start(c->run, setup, steps, false);
    if (!status)
        status = c->plan->backend->wait(c->run, result);
    peal_session_running(c->plan->session, false);
    return status;
}

static void forget(calibration *c)
{
    for (int r = 0; r < c->plan->binding.count; r++)
        for (int i = 0; i < c->schedule[r].task_count; i++) {
            c->timed[r][i].ns = c->timed[r][i].calls = 0;
            c->timed[r][i].points = 0;
        }
}

static bool is_of_step(const peal_schedule *schedule, int task)
{
    for (int i = schedule->step.first; i < schedule->step.end; i++)
        if (schedule->op[i].kind == PEAL_OP_LAUNCH && schedule->op[i].task == task)
            return true;
    return false;
}

/* The time of a point of each task in this round, if that is the least so far. */
static void keep(const calibration *c, double *per_point_s)
{
    for (int i = 0; i < c->schedule[0].task_count; i++) {
        double seconds = 0, points = 0;
        for (int r = 0; r < c->plan->binding.count; r++) {
            const timed_task *t = &c->timed[r][i];
            seconds += ((double)t->ns - (double)t->calls * c->clock_ns) * 1e-9;
            points += t->points;
        }
        if (points > 0 && seconds > 0 && (per_point_s[i] <= 0 || seconds / points < per_point_s[i]))
            per_point_s[i] = seconds / points;
    }
}

static peal_status run_rounds(calibration *c, double *per_point_s)
{
    peal_backend_result result = {0};
    int64_t left = c->plan->repeat;
    forget(c);
    peal_status status = run_steps(c, true, left < FEW_STEPS ? left : FEW_STEPS, &result);
    left -= result.steps_done;
    double steps = result.steps_done > 0 && result.seconds > 0
                       ? round_s * (double)result.steps_done / result.seconds
                       : 1;
    keep(c, per_point_s);
    for (int i = 0; i < ROUNDS && left > 0 && !status && !result.stopped; i++) {
        int64_t round = steps < 1 ? 1 : (int64_t)steps;
        forget(c);
        status = run_steps(c, false, round < left ? round : left, &result);
        left -= result.steps_done;
        if (result.seconds > 0)
            steps = round_s * (double)result.steps_done / result.seconds;
        keep(c, per_point_s);
    }
    return status;
}

static void add(peal_machine_times *times, const char *task, double per_point_s)
{
    int at = 0;
    while (at < times->kernel_count && strcmp(times->kernel[at].task, task) != 0)
        at++;
    if (at == PEAL_KERNEL_TIMES || strlen(task) >= PEAL_TASK_NAME_BYTES)
        return;
    times->kernel_count += at == times->kernel_count;
    times->kernel[at] = (peal_kernel_times){.per_point_s = per_point_s};
    strcpy(times->kernel[at].task, task);
}

/* A plan's part: flags count messages from its first run on, so that each has a plan of its own. */
static peal_status calibrate(peal_plan *plan, double *per_point_s)
{
    calibration c = {.plan = plan, .clock_ns = clock_ns()};
    peal_status status = wrap(&c);
    if (!status)
        status = run_rounds(&c, per_point_s);
    release(&c);
    return status;
}

static void add_all(const peal_schedule *schedule, const double *per_point_s,
                    peal_machine_times *times)
{
    for (int i = 0; i < schedule->task_count; i++)
        if (per_point_s[i] > 0 && is_of_step(schedule, i))
            add(times, schedule->task[i].name, per_point_s[i]);
}

peal_status peal_calibrate(peal_session *session, peal_graph *graph, int ranks,
                           peal_machine_times *times)
{
    double *per_point_s = NULL;
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < PLANS && !status; i++) {
        peal_plan *plan = NULL;
        peal_plan_options options = {.size_bytes = sizeof(options),
                                     .mode = "sync",
                                     .ranks = ranks,
                                     .threads = ranks,
                                     .backend = "host"};
        status = peal_graph_compile(graph, session, &options, &plan);
        const peal_schedule *first =
            !status && plan->binding.count ? plan->binding.rank[0].schedule : NULL;
        if (first && !per_point_s)
            per_point_s = calloc((size_t)first->task_count + 1, sizeof(*per_point_s));
        if (first && per_point_s)
            status = calibrate(plan, per_point_s);
        if (first && per_point_s && !status && i + 1 == PLANS)
            add_all(first, per_point_s, times);
        peal_plan_destroy(plan);
    }
    free(per_point_s);
    return status;
}
