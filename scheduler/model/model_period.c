/* A period of the performance model from a schedule: which of its ops are A, B, C, S and W, and
 * what they take in a step. */
#include "scheduler/model/model.h"

#include <stdlib.h>

typedef struct roles {
    const peal_schedule *schedule;
    const peal_op_times *times;
    double *before, *after; /* by op: instances a step that a send, or that a wait, makes A or C */
    int *level;             /* by op: messages of this step that it comes after, one by one */
    int *sent_level;        /* by statement: that of its sends */
} roles;

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static bool is_send(const peal_op *op)
{
    return op->kind == PEAL_OP_COPY && op->copy == PEAL_COPY_SEND;
}

static bool is_receive(const peal_op *op)
{
    return (op->kind == PEAL_OP_WAIT && !op->credit) ||
           (op->kind == PEAL_OP_COPY && op->copy == PEAL_COPY_UNPACK);
}

static bool is_task(const peal_op *op)
{
    return op->kind == PEAL_OP_LAUNCH || (op->kind == PEAL_OP_COPY && op->copy == PEAL_COPY_LOCAL);
}

/* Whether an op depends on another one's instance of the same step, or comes after it because it is
 * the rest of its launch. */
static bool is_of_step(const roles *r, const peal_dependence *dependence, int index)
{
    const peal_op *op = &r->schedule->op[index], *other = &r->schedule->op[dependence->op];
    bool is_rest = op->rest && other->border && op->task == other->task;

    return dependence->op < index && (!dependence->lag || is_rest);
}

/* A task that waits for a message, of this step or the one before, and what needs it in this step.
 */
static void find_after(const roles *r, int index)
{
    const peal_op *op = &r->schedule->op[index];
    double count = r->times[index].count, most = 0;

    for (int i = 0; is_task(op) && i < op->dependence_count; i++) {
        int other = op->dependence[i].op;
        const peal_op *from = &r->schedule->op[other];
        if (is_receive(from))
            most = greater(most, r->times[other].count);
        else if (is_task(from) && is_of_step(r, &op->dependence[i], index))
            most = greater(most, r->after[other]);
    }
    r->after[index] = lesser(most, count);
}

/* A task that a send needs, and what it needs itself in this step. */
static void find_before(const roles *r, int index)
{
    const peal_op *op = &r->schedule->op[index];
    double count = is_send(op) ? r->times[index].count : r->before[index];

    for (int i = 0; (is_send(op) || is_task(op)) && i < op->dependence_count; i++) {
        int other = op->dependence[i].op;
        bool counts = is_of_step(r, &op->dependence[i], index) ||
                      (is_send(op) && other > index && !op->dependence[i].lag);
        if (counts && is_task(&r->schedule->op[other]))
            r->before[other] = greater(r->before[other], lesser(count, r->times[other].count));
    }
}

/* Messages of one level can be under way side by side. */
static void find_level(const roles *r, int index)
{
    const peal_op *op = &r->schedule->op[index];
    int most = 0, statement = op->channel >= 0 ? r->schedule->channel[op->channel].statement : -1;

    for (int i = 0; i < op->dependence_count; i++)
        if (is_of_step(r, &op->dependence[i], index) && r->level[op->dependence[i].op] > most)
            most = r->level[op->dependence[i].op];
    if (is_send(op) && most > r->sent_level[statement])
        r->sent_level[statement] = most;
    r->level[index] = is_receive(op) ? r->sent_level[statement] + 1 : most;
}

/* Sections of setup and finish count nothing. */
static void find_roles(const roles *r)
{
    const peal_section *step = &r->schedule->step;

    for (int i = step->first; i < step->end; i++) {
        find_after(r, i);
        find_level(r, i);
    }
    for (int i = step->end - 1; i >= step->first; i--)
        find_before(r, i);
}

static void add_task(peal_period *p, const roles *r, int index)
{
    const peal_op_times *t = &r->times[index];
    const peal_op *op = &r->schedule->op[index];
    double each = t->lane_s + t->device_s, chained = greater(r->before[index], r->after[index]);

    p->chain_s += chained * each;
    p->launch_s += t->count * t->cpu_s;
    if (op->kind != PEAL_OP_LAUNCH) {
        p->copy_s += t->count * each;
        return;
    }
    p->task_s += t->count * each;
    p->before += r->before[index];
    p->after += r->after[index];
    p->inside += t->count - chained;
}

/* What the messages of a level take: done by one lane one after the other, but under way side by
 * side; or side by side altogether. */
typedef struct level_times {
    double apart_s[2]; /* the longest of those that come, and go, by lanes of their own */
    double lane_s;     /* the sum of those on a lane */
    double way_s;      /* the longest */
} level_times;

static void add_message(peal_period *p, const roles *r, int index, double *channel_s,
                        level_times *of)
{
    const peal_op_times *t = &r->times[index];
    const peal_op *op = &r->schedule->op[index];
    double each = t->count * (t->lane_s + t->device_s), way = t->count * t->way_s;

    p->post_s += t->count * t->cpu_s;
    *(op->kind == PEAL_OP_COPY ? &p->copy_s : &p->signal_s) += each;
    if (op->credit)
        return;
    of->way_s = greater(of->way_s, way);
    if (t->lane >= 0) {
        of->lane_s += each;
        return;
    }
    double *apart_s = &of->apart_s[r->schedule->channel[op->channel].outgoing];
    channel_s[op->channel] += each + way;
    *apart_s = greater(*apart_s, channel_s[op->channel]);
}

static void add_messages(peal_period *p, const roles *r, double *channel_s, level_times *of,
                         int levels)
{
    const peal_schedule *schedule = r->schedule;

    for (int i = schedule->step.first; i < schedule->step.end; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->channel >= 0)
            add_message(p, r, i, channel_s,
                        &of[r->sent_level[schedule->channel[op->channel].statement]]);
    }
    for (int i = 0; i < levels; i++) {
        double apart_s = of[i].apart_s[0] + of[i].apart_s[1];
        p->way_s += of[i].way_s;
        p->chain_s += apart_s > 0 ? apart_s : of[i].lane_s + of[i].way_s;
    }
}

/* The busiest lane; on a device all lanes together do one thing at a time. */
static double busy_seconds(const roles *r, int lanes)
{
    double *lane_s = calloc((size_t)lanes, sizeof(*lane_s)), device_s = 0, busy = 0;

    for (int i = r->schedule->step.first; lane_s && i < r->schedule->step.end; i++) {
        const peal_op_times *t = &r->times[i];
        device_s += t->count * t->device_s;
        if (t->lane >= 0)
            lane_s[t->lane] += t->count * (t->lane_s + t->device_s);
    }
    for (int i = 0; lane_s && i < lanes; i++)
        busy = greater(busy, lane_s[i]);
    free(lane_s);
    return r->schedule->machine->accelerator ? greater(busy, device_s) : busy;
}

peal_status peal_period_init(peal_period *period, const peal_schedule *schedule,
                             const peal_op_times *times, int lanes)
{
    size_t ops = (size_t)schedule->op_count + 1;
    int statements = 0;
    for (int i = 0; i < schedule->channel_count; i++)
        if (schedule->channel[i].statement >= statements)
            statements = schedule->channel[i].statement + 1;
    roles r = {.schedule = schedule,
               .times = times,
               .before = calloc(ops, sizeof(double)),
               .after = calloc(ops, sizeof(double)),
               .level = calloc(ops, sizeof(int)),
               .sent_level = calloc((size_t)statements + 1, sizeof(int))};
    double *channel_s = calloc((size_t)schedule->channel_count + 1, sizeof(*channel_s));
    level_times *of = calloc(ops, sizeof(*of)); /* there are fewer levels */
    peal_status status = PEAL_STATUS_ENVIRONMENT;

    *period = (peal_period){0};
    if (r.before && r.after && r.level && r.sent_level && channel_s && of) {
        find_roles(&r);
        for (int i = schedule->step.first; i < schedule->step.end; i++)
            if (is_task(&schedule->op[i]))
                add_task(period, &r, i);
        add_messages(period, &r, channel_s, of, schedule->op_count);
        period->busy_s = busy_seconds(&r, lanes);
        status = PEAL_STATUS_OK;
    }
    free(r.before);
    free(r.after);
    free(r.level);
    free(r.sent_level);
    free(channel_s);
    free(of);
    return status;
}
