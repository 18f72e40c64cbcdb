/* The equations and conditions of the performance model. */
#include "scheduler/model/model.h"

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static bool is_driven(peal_mode mode)
{
    return mode == PEAL_MODE_SERIAL || mode == PEAL_MODE_SYNC;
}

/* What a device would take if nothing overlapped. */
static double sum_of(const peal_period *p)
{
    return p->task_s + p->copy_s + p->signal_s + p->way_s;
}

/* (1): the CPU launches, waits, sends and waits; what is on the device waits for it. */
static void drive(const peal_period *p, int sharers, peal_model *out)
{
    double all = sum_of(p) + p->launch_s + p->post_s;
    double alone = greater(p->busy_s, p->chain_s) + p->launch_s + p->post_s;

    out->cpu_s = greater(alone, sharers * (p->busy_s + p->launch_s + p->post_s));
    out->device_s = p->task_s;
    out->overlap_s = all - alone;
    out->idle_s = out->cpu_s - p->task_s;
    out->step_s = out->cpu_s;
}

/* (2), (3): the device goes on by itself. */
static void run_ahead(const peal_period *p, int sharers, peal_model *out)
{
    double alone = greater(p->busy_s, p->chain_s);

    out->cpu_s = p->launch_s + p->post_s;
    out->device_s = greater(alone, sharers * p->busy_s);
    out->overlap_s = sum_of(p) - alone;
    out->step_s = greater(out->cpu_s, out->device_s);
    out->idle_s = out->step_s - alone;
}

void peal_model_evaluate(const peal_period *period, peal_mode mode, int sharers, peal_model *out)
{
    if (is_driven(mode))
        drive(period, sharers, out);
    else
        run_ahead(period, sharers, out);
}

void peal_conditions_evaluate(const peal_period *period, const peal_model *model,
                              const peal_period *sync_period, const peal_model *sync_model,
                              peal_conditions *out)
{
    *out = (peal_conditions){
        .asynchronous = model->cpu_s<model->device_s, .fragmented = period->periods> 0 &&
                        greater(period->before, period->after) > 0,
        .message_s = model->device_s - sync_period->task_s,
        .sync_idle_s = sync_model->idle_s,
    };
    out->gains = out->message_s <= out->sync_idle_s;
}
