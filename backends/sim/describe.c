/* Describes how long the ops of a schedule take, for models that do not simulate events. */
#include "backends/sim/internal.h"

#include <stdlib.h>

static bool cpu_is_lane(const peal_schedule *schedule)
{
    return schedule->mode == PEAL_MODE_SERIAL || schedule->mode == PEAL_MODE_SYNC;
}

/* The CPU's time for an instance. */
static double cpu_seconds(const peal_machine_times *times, const peal_schedule *schedule,
                          const peal_op *op)
{
    const peal_mode_times *mode = &times->mode[schedule->mode];

    if (cpu_is_lane(schedule))
        return op->kind == PEAL_OP_LAUNCH ? mode->launch_s + mode->synchronize_s : 0;
    return schedule->mode == PEAL_MODE_STREAM ? sim_post_seconds(times, schedule, op) : 0;
}

/* The time from the end of a WRITE to the arrival of its word. */
static double way_seconds(const sim_placement *placement, const sim_program *program,
                          const peal_op *op)
{
    const sim_channel *channel = &program->channel[op->channel];
    int rank = program->schedule->rank;
    peal_link_class link = sim_link_between(placement, rank, rank + (int)channel->offset);
    bool carries = link == PEAL_LINK_NETWORK && !op->credit;

    if (placement->one)
        return 0;
    return placement->times->link[link].latency_s +
           (carries ? sim_link_seconds(placement, link, channel->bytes) : 0);
}

static sim_op_times times_of(const sim_desc *desc, const sim_placement *placement,
                             const sim_program *program, int index)
{
    const peal_schedule *schedule = program->schedule;
    const peal_op *op = &schedule->op[index];
    const sim_cost *cost = &program->cost[index];
    sim_op_times times = {.lane = op->lane > 0 ? op->lane : 0,
                          .cpu_s = cpu_seconds(desc->times, schedule, op),
                          .lane_s = cost->lane_s,
                          .device_s = cost->device_s};
    bool on_core = !desc->times->accelerator || placement->one;

    if (cpu_is_lane(schedule) && times.cpu_s > 0) {
        double *has_it = on_core ? &times.device_s : &times.lane_s;
        times.cpu_s = times.cpu_s < *has_it ? times.cpu_s : *has_it;
        *has_it -= times.cpu_s;
    }
    if (op->kind == PEAL_OP_COPY && op->copy == PEAL_COPY_SEND && cost->bytes > 0) {
        int to = schedule->rank + (int)program->channel[op->channel].offset;
        peal_link_class link = sim_link_between(placement, schedule->rank, to);
        if (link != PEAL_LINK_NETWORK)
            times.lane_s += sim_link_seconds(placement, link, cost->bytes);
    }
    if (op->kind == PEAL_OP_WRITE)
        times.way_s = way_seconds(placement, program, op);
    return times;
}

/* The CPU launches a step as a whole: its time counts for the first op of the step. */
static void launch_graph(const peal_schedule *schedule, double launch_s, sim_op_times *list)
{
    int i = schedule->step.first;
    while (i < schedule->step.end && list[i].count <= 0)
        i++;
    if (i < schedule->step.end)
        list[i].cpu_s = launch_s / list[i].count;
}

static peal_status make_program(const sim_desc *desc, const sim_placement *placement,
                                const peal_schedule *schedule, int64_t steps, peal_arena *arena,
                                sim_program *out)
{
    PEAL_ARENA_GUARD(arena, return sim_no_memory(desc));
    return sim_program_create(desc, placement, schedule, steps, arena, out);
}

peal_status sim_describe(const sim_desc *desc, int number, int64_t steps, sim_description *out)
{
    const peal_schedule *schedule = desc->schedule[number];
    peal_arena *arena = peal_arena_create();
    sim_op_times *list = calloc((size_t)schedule->op_count + 1, sizeof(*list));
    sim_placement placement;
    sim_program program;

    sim_placement_init(&placement, desc);
    peal_status status = arena && list
                             ? make_program(desc, &placement, schedule, steps, arena, &program)
                             : sim_no_memory(desc);
    for (int i = 0; !status && i < schedule->op_count; i++) {
        bool timed = sim_is_timed_transfer(desc->times, schedule, &schedule->op[i]);
        bool apart = program.apart && !timed && sim_is_of_message(&schedule->op[i]);
        list[i] = times_of(desc, &placement, &program, i);
        list[i].lane = timed ? 0 : apart ? NO_LANE : list[i].lane % (program.lanes - program.apart);
    }
    for (int i = 0; !status && i < program.item_count; i++)
        if (program.item[i].step >= 0 && program.item[i].step < steps)
            list[program.item[i].op].count++;
    for (int i = 0; !status && i < schedule->op_count && steps > 0; i++)
        list[i].count /= (double)steps;
    if (!status && schedule->mode == PEAL_MODE_GRAPH)
        launch_graph(schedule, desc->times->mode[PEAL_MODE_GRAPH].launch_s, list);
    peal_arena_destroy(arena);
    if (status) {
        free(list);
        return status;
    }
    int devices = placement.nodes * placement.devices, used = desc->ranks * placement.cores;
    int sharers = placement.one ? desc->ranks : (used + devices - 1) / devices;
    *out =
        (sim_description){.sharers = sharers, .lanes = program.lanes - program.apart, .op = list};
    return PEAL_STATUS_OK;
}
