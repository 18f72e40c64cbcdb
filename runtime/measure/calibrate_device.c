/* What launches, copies, and waits that are launched take on a device, mode by mode: steps that end
 * after one op more each time, and in which nobody waits for a message. What they take longer than
 * those before is the op's, among its like: launches that follow each other closely, folds and
 * messages that go with a task, caches as they are in a step. */
#include "runtime/measure/calibrate.h"
#include "runtime/measure/noise.h"

#include "backends/sim/sim.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_STEPS = 8, SAMPLES = 6, MOST_STEPS = 1 << 16, COUNTED_STEPS = 256 };

static const double sample_s = 2e-3;
/* What is passed more rarely, in steps on average, is left to other times. */
static const double least_count = 0.1;

/* Of a step, or what an op adds to it. */
typedef struct cost {
    double step_s, cpu_s; /* cpu_s: of the CPU that drives the device */
} cost;

/* A schedule whose outermost loop no verdict ends, since contents mean nothing: the loop has no
 * `until`, or one that never holds. */
typedef struct endless {
    peal_schedule blind, judged;
    peal_op *op;              /* of blind */
    peal_schedule_task *task; /* of judged */
} endless;

static const peal_expr never = {.kind = PEAL_EXPR_CONSTANT, .value = {.kind = PEAL_BOOLEAN}};

typedef struct device_times {
    peal_plan *plan;
    endless *rank;                 /* by hosted rank */
    const peal_schedule *schedule; /* of the first rank here */
    double *count;                 /* by op of it: passed in a step, on average */
    cost *usual;                   /* by op: what it would add by the machine's times */
    peal_backend_plan *run;
} device_times;

static double greater(double a, double b)
{
    return a > b ? a : b;
}

/* How often ops are passed, as simulations have it: conditions hold, loops go on to their end. */
static peal_status count_ops(const device_times *d, const peal_machine_times *times)
{
    const peal_plan *plan = d->plan;
    int64_t steps = plan->repeat < COUNTED_STEPS ? plan->repeat : COUNTED_STEPS;
    sim_description told;
    sim_desc desc = {.size = sizeof(desc),
                     .ranks = plan->machine.ranks,
                     .schedule = &d->schedule,
                     .schedule_count = 1,
                     .times = times,
                     .diagnostics = plan->session->diagnostics};
    peal_status status = sim_describe(&desc, 0, steps, &told);
    if (status)
        return status;
    for (int i = 0; i < d->schedule->op_count; i++) {
        const sim_op_times *op = &told.op[i];
        double lane_s = op->lane_s + op->device_s, cpu_s = op->cpu_s;
        d->count[i] = op->count;
        if (plan->mode == PEAL_MODE_GRAPH) /* of the step as a whole */
            cpu_s = 0;
        else if (plan->mode == PEAL_MODE_SYNC)
            lane_s += cpu_s;
        d->usual[i] = (cost){op->count * plan->binding.count * greater(lane_s, cpu_s),
                             op->count * plan->binding.count * cpu_s};
    }
    free(told.op);
    return PEAL_STATUS_OK;
}

/* ---- steps ---- */

/* setup: what is repeated on a device begins where messages have been counted that set-up has. */
static peal_status run_steps(const device_times *d, bool setup, int64_t steps, cost *each)
{
    peal_backend_result result = {0};
    peal_session_running(d->plan->session, true);
    peal_status status = d->plan->backend->start(d->run, setup, steps, false);
    if (!status)
        status = d->plan->backend->wait(d->run, &result);
    peal_session_running(d->plan->session, false);
    double done = result.steps_done > 0 ? (double)result.steps_done : 1;
    *each = (cost){result.seconds / done, result.cpu_seconds / done};
    return status;
}

/* Whole stretches of what the device repeats, behind single steps up to the first of them. */
static peal_status take_samples(const device_times *d, cost *least)
{
    const peal_backend_ops *backend = d->plan->backend;
    int64_t first = 0, period = backend->repeats ? backend->repeats(d->run, &first) : 1;
    int64_t left = d->plan->repeat, steps;
    cost each;

    period = period > 0 ? period : 1;
    first = first > 0 ? first : period;
    first = first < left ? first : left;
    peal_status status = run_steps(d, true, first, &each);
    left -= first;
    for (int i = 0; i <= SAMPLES && !status; i++, left -= steps) {
        double enough = i > 0 && each.step_s > 0 ? sample_s / each.step_s : 1;
        steps = enough < 1 ? 1 : enough > MOST_STEPS ? MOST_STEPS : (int64_t)enough;
        steps = (steps + period - 1) / period * period;
        if (steps > left)
            break;
        status = run_steps(d, false, steps, &each);
        if (i > 0 && each.step_s > 0 && (least->step_s <= 0 || each.step_s < least->step_s))
            *least = each;
    }
    if (status || least->step_s > 0)
        return status;
    return peal_report(d->plan->session->diagnostics, PEAL_E_MEASURED_NO_TIME, PEAL_NO_SOURCE,
                       "let the loop go on for longer: its `repeat`, or --set the param in it",
                       "a loop of %lld steps is too short to be timed in mode %s: it takes %lld",
                       (long long)d->plan->repeat, peal_mode_name(d->plan->mode),
                       (long long)(first + 2 * period));
}

/* Of the outermost loop. */
static bool is_verdict(const peal_schedule *schedule, const peal_op *op)
{
    return schedule->outer.until && op->kind == PEAL_OP_LAUNCH &&
           schedule->task[op->task].kind == PEAL_TASK_DECIDE &&
           schedule->task[op->task].decision == schedule->outer.decision;
}

/* What a verdict adds has the looks at it in all launches, and the host's, in it. */
static peal_status time_steps_until(device_times *d, int op, cost *step)
{
    peal_plan *plan = d->plan;
    const peal_backend_hooks before = plan->hooks;
    bool judged = false;

    for (int i = d->schedule->step.first; i <= op; i++)
        judged |= is_verdict(d->schedule, &d->schedule->op[i]);
    for (int r = 0; r < plan->binding.count; r++)
        plan->binding.backend_rank[r].schedule = judged ? &d->rank[r].judged : &d->rank[r].blind;
    plan->hooks = (peal_backend_hooks){.unawaited = true, .end_of_step = op + 1};
    peal_status status = peal_plan_arm(plan, &plan->binding, plan->mode, NULL, &d->run);
    plan->hooks = before;
    *step = (cost){0};
    if (!status)
        status = take_samples(d, step);
    if (d->run)
        plan->backend->destroy(d->run);
    d->run = NULL;
    return status;
}

/* ---- times ---- */

static const peal_kernel_times *default_times(const peal_machine_times *times)
{
    for (int i = 0; i < times->kernel_count; i++)
        if (!times->kernel[i].of_mode && !strcmp(times->kernel[i].task, "default"))
            return &times->kernel[i];
    return NULL;
}

/* Ops of a name together, of a step. */
typedef struct named {
    char name[PEAL_TASK_NAME_BYTES];
    bool kernel, judges; /* judges: the CPU waits for what it says */
    double count, points;
    cost sum;
} named;

/* Of a launch's time what it takes for being one goes to fixed_s; ranks that share a device
 * have been timed together, and all of it is what the device does. */
static void add(const device_times *d, const named *ops, peal_machine_times *times)
{
    const peal_kernel_times *usual = default_times(times);
    peal_mode mode = d->plan->mode;
    const peal_mode_times *m = &times->mode[mode];
    int ranks = d->plan->binding.count;
    double least = m->kernel_s + (usual ? usual->fixed_s : 0);
    double each = ops->sum.step_s / ranks / ops->count, cpu_s = ops->sum.cpu_s / ranks / ops->count;
    int at = 0;

    while (at < times->kernel_count &&
           (!times->kernel[at].of_mode || times->kernel[at].mode != mode ||
            strcmp(times->kernel[at].task, ops->name) != 0))
        at++;
    if (at == PEAL_KERNEL_TIMES)
        return;
    if (mode == PEAL_MODE_SYNC)
        least += m->launch_s + m->synchronize_s;
    if (!ops->kernel || ops->points <= 0 || each < least)
        least = each;
    if (ranks > 1 && ops->points > 0)
        least = 0;
    peal_kernel_times *out = &times->kernel[at];
    times->kernel_count += at == times->kernel_count;
    *out = (peal_kernel_times){.of_mode = true, .mode = mode, .fixed_s = least};
    if (ops->points > 0)
        out->per_point_s = (each - least) * ops->count / ops->points;
    if (mode == PEAL_MODE_STREAM && ops->judges) {
        out->launch_s = m->launch_s < least ? m->launch_s : least;
        out->fixed_s -= out->launch_s;
    } else if (mode == PEAL_MODE_STREAM)
        out->launch_s = cpu_s;
    strcpy(out->task, ops->name);
}

static void add_name(const device_times *d, const char *name, const cost *adds,
                     peal_machine_times *times)
{
    const peal_schedule *schedule = d->schedule;
    char other[PEAL_TASK_NAME_BYTES];
    named ops = {.kernel = false};

    strcpy(ops.name, name);
    for (int i = schedule->step.first; i < schedule->step.end; i++) {
        const peal_op *op = &schedule->op[i];
        sim_times_name(schedule, op, other);
        if (strcmp(name, other) != 0)
            continue;
        bool launches = op->kind == PEAL_OP_LAUNCH;
        ops.kernel |= launches && schedule->task[op->task].kind == PEAL_TASK_KERNEL;
        ops.judges |= is_verdict(schedule, op);
        ops.count += (launches ? op->range_count > 0 : op->kind != PEAL_OP_WRITE) ? d->count[i] : 0;
        ops.points += launches ? d->count[i] * sim_launch_points(schedule, op) : 0;
        ops.sum.step_s += greater(adds[i].step_s, 0);
        ops.sum.cpu_s += greater(adds[i].cpu_s, 0);
    }
    if (ops.count >= least_count)
        add(d, &ops, times);
}

static void add_all(const device_times *d, const cost *adds, peal_machine_times *times)
{
    char name[PEAL_TASK_NAME_BYTES], other[PEAL_TASK_NAME_BYTES];

    for (int i = d->schedule->step.first; i < d->schedule->step.end; i++) {
        bool known = false;
        sim_times_name(d->schedule, &d->schedule->op[i], name);
        for (int k = d->schedule->step.first; k < i && !known; k++) {
            sim_times_name(d->schedule, &d->schedule->op[k], other);
            known = !strcmp(name, other);
        }
        if (*name && !known)
            add_name(d, name, adds, times);
    }
}

/* The last of those of its name that follow each other. */
static bool is_timed(const device_times *d, int op)
{
    char name[PEAL_TASK_NAME_BYTES], next[PEAL_TASK_NAME_BYTES] = "";

    sim_times_name(d->schedule, &d->schedule->op[op], name);
    for (int i = op + 1; i < d->schedule->step.end && !*next; i++)
        if (d->count[i] >= least_count)
            sim_times_name(d->schedule, &d->schedule->op[i], next);
    return *name && d->count[op] >= least_count && strcmp(name, next) != 0;
}

static peal_status time_ops(device_times *d, cost *adds, peal_addition *step, peal_addition *cpu)
{
    peal_status status = PEAL_STATUS_OK;
    cost before = {0}, until, usual = {0};
    int count = 0;

    for (int i = d->schedule->step.first; i < d->schedule->step.end && !status; i++) {
        usual = (cost){usual.step_s + d->usual[i].step_s, usual.cpu_s + d->usual[i].cpu_s};
        if (!is_timed(d, i))
            continue;
        status = time_steps_until(d, i, &until);
        until = (cost){greater(until.step_s, before.step_s), greater(until.cpu_s, before.cpu_s)};
        adds[i] = (cost){until.step_s - before.step_s, until.cpu_s - before.cpu_s};
        bool is_kernel = d->schedule->op[i].kind == PEAL_OP_LAUNCH &&
                         d->schedule->task[d->schedule->op[i].task].kind == PEAL_TASK_KERNEL;
        step[count] = (peal_addition){&adds[i].step_s, usual.step_s, until.step_s, is_kernel};
        cpu[count++] = (peal_addition){&adds[i].cpu_s, usual.cpu_s, until.cpu_s, false};
        before = until;
        usual = (cost){0};
    }
    peal_share_noise(step, count);
    peal_share_noise(cpu, count);
    return status;
}

static bool make_endless(const peal_schedule *schedule, endless *out)
{
    size_t ops = (size_t)schedule->op_count, tasks = (size_t)schedule->task_count;

    out->blind = out->judged = *schedule;
    out->blind.op = out->op = calloc(ops + 1, sizeof(*out->op));
    out->judged.task = out->task = calloc(tasks + 1, sizeof(*out->task));
    if (!out->op || !out->task)
        return false;
    memcpy(out->op, schedule->op, ops * sizeof(*out->op));
    memcpy(out->task, schedule->task, tasks * sizeof(*out->task));
    for (size_t i = 0; i < ops; i++)
        if (is_verdict(schedule, &schedule->op[i])) {
            out->op[i].kind = PEAL_OP_FENCE;
            out->task[out->op[i].task].value = &never;
        }
    out->blind.outer.until = false;
    return true;
}

static bool make_all_endless(device_times *d)
{
    const peal_binding *binding = &d->plan->binding;

    d->rank = calloc((size_t)binding->count, sizeof(*d->rank));
    if (!d->rank)
        return false;
    for (int r = 0; r < binding->count; r++) {
        if (!make_endless(binding->rank[r].schedule, &d->rank[r]))
            return false;
    }
    d->schedule = &d->rank[0].judged;
    return true;
}

static void release(const device_times *d)
{
    peal_binding *binding = &d->plan->binding;

    for (int r = 0; d->rank && r < binding->count; r++) {
        binding->backend_rank[r].schedule = binding->rank[r].schedule;
        free(d->rank[r].op);
        free(d->rank[r].task);
    }
    free(d->rank);
    free(d->count);
    free(d->usual);
}

static peal_status calibrate(peal_plan *plan, peal_machine_times *times)
{
    device_times d = {.plan = plan};
    size_t ops = (size_t)plan->binding.rank[0].schedule->op_count + 1;
    cost *adds = calloc(ops, sizeof(*adds));
    peal_addition *list = calloc(2 * ops, sizeof(*list));
    d.count = calloc(ops, sizeof(*d.count));
    d.usual = calloc(ops, sizeof(*d.usual));
    peal_status status = adds && list && d.count && d.usual && make_all_endless(&d)
                             ? count_ops(&d, times)
                             : peal_report(plan->session->diagnostics, PEAL_E_OUT_OF_MEMORY,
                                           PEAL_NO_SOURCE, NULL, "no memory to time kernels");
    if (!status)
        status = time_ops(&d, adds, list, list + ops);
    if (!status)
        add_all(&d, adds, times);
    free(adds);
    free(list);
    release(&d);
    return status;
}

/* Steps as they are: what is decided by data then has some. */
static peal_status run_first_steps(peal_plan *plan)
{
    int64_t left = peal_plan_steps_left(plan), first = left < FIRST_STEPS ? left : FIRST_STEPS;
    peal_status status = peal_plan_start(plan, first, NULL);
    return status ? status : peal_plan_wait(plan);
}

peal_status peal_calibrate_device(peal_session *session, peal_graph *graph, const char *backend,
                                  int ranks, peal_machine_times *times)
{
    peal_status status = PEAL_STATUS_OK;
    for (int mode = PEAL_MODE_SYNC; mode < PEAL_MODE_COUNT && !status; mode++) {
        peal_plan *plan = NULL;
        if (!times->mode[mode].given)
            continue;
        status = peal_measure_plan(session, graph, backend, (peal_mode)mode, ranks, &plan);
        if (!status && plan)
            status = run_first_steps(plan);
        if (!status && plan && plan->binding.count > 0)
            status = calibrate(plan, times);
        peal_plan_destroy(plan);
    }
    return status;
}
