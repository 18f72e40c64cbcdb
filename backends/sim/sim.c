/* A simulation from its description to its result. */
#include "backends/sim/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_REPORTED = 4, LEAST_TIMED = 2, OPS_AN_ITEM = 8 };

static const peal_source nowhere;

/* Memory that is counted, zeroed; NULL: there is none. */
static void *allocate(size_t *total, size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    *total += memory ? count * size : 0;
    return memory;
}

/* ---- programs ---- */

/* Chooses how many steps are simulated: as many as were asked for; else as many as most_ops and the
 * memory for programs allow. */
static int64_t choose_steps(const sim_desc *desc, const sim_program *first, const int64_t *ranks)
{
    int64_t all = first->all_steps, ops = 0, items = 0;

    for (int i = 0; i < desc->schedule_count; i++) {
        ops += ranks[i] * first[i].step_ops;
        items += first[i].step_ops;
    }
    if (desc->steps >= 0)
        return desc->steps < all ? desc->steps : all;
    if (!desc->most_ops || ops == 0)
        return all;
    int64_t enough = desc->most_ops / ops, kept = desc->most_ops / OPS_AN_ITEM / items;
    enough = kept < enough ? kept : enough;
    enough = enough > LEAST_TIMED ? enough : LEAST_TIMED;
    return enough < all ? enough : all;
}

static peal_status make_programs(const sim_desc *desc, const sim_placement *placement,
                                 int64_t steps, peal_arena *arena, sim_program **out)
{
    sim_program *program = PEAL_ARENA_ARRAY(arena, sim_program, desc->schedule_count);
    peal_status status = PEAL_STATUS_OK;

    for (int i = 0; i < desc->schedule_count && !status; i++)
        status = sim_program_create(desc, placement, desc->schedule[i], steps, arena, &program[i]);
    *out = program;
    return status;
}

/* Unrolls one step of each program, to see how many steps can be simulated. */
static peal_status find_steps(const sim_desc *desc, const sim_placement *placement,
                              peal_arena *arena, sim_result *out)
{
    PEAL_ARENA_GUARD(arena, return sim_no_memory(desc));
    peal_arena *scratch = peal_arena_create_within(arena);
    sim_program *first;
    int64_t *ranks = PEAL_ARENA_ARRAY(scratch, int64_t, desc->schedule_count);
    for (int rank = 0; rank < desc->ranks; rank++)
        ranks[desc->number[rank]]++;
    peal_status status = make_programs(desc, placement, 1, scratch, &first);
    if (!status) {
        out->all_steps = first[0].all_steps;
        out->steps = choose_steps(desc, first, ranks);
    }
    peal_arena_destroy(scratch);
    return status;
}

/* ---- state ---- */

/* Allocates records for as many of the last steps as path_bytes allows. */
static void make_records(sim_state *s, size_t *total)
{
    const sim_desc *desc = s->desc;
    int64_t *items = calloc((size_t)s->steps + 1, sizeof(*items)); /* by step, and after all */
    int64_t bytes = 0, from = s->steps;

    s->recorded = allocate(total, (size_t)desc->schedule_count, sizeof(*s->recorded));
    s->record_base = allocate(total, (size_t)desc->ranks + 1, sizeof(*s->record_base));
    for (int rank = 0; items && rank < desc->ranks; rank++) {
        const sim_program *p = sim_program_of(s, rank);
        for (int i = p->item_count - 1; i >= 0 && p->item[i].step >= 0; i--)
            items[p->item[i].step]++;
    }
    for (; items && from >= 0; from--) {
        bytes += items[from] * (int64_t)sizeof(sim_record);
        if (bytes > desc->path_bytes)
            break;
    }
    s->recorded_steps = s->steps - (from + 1);
    free(items);
    for (int i = 0; s->recorded && i < desc->schedule_count; i++) {
        const sim_program *p = &s->program[i];
        while (s->recorded[i] < p->item_count && p->item[s->recorded[i]].step <= from)
            s->recorded[i]++;
    }
    for (int rank = 0; s->recorded && s->record_base && rank < desc->ranks; rank++)
        s->record_base[rank + 1] =
            s->record_base[rank] +
            (size_t)(sim_program_of(s, rank)->item_count - s->recorded[desc->number[rank]]);
    s->record =
        s->record_base ? allocate(total, s->record_base[desc->ranks], sizeof(*s->record)) : NULL;
    s->no_memory |= !items || !s->recorded || !s->record;
}

static void make_ranks(sim_state *s, size_t *total)
{
    size_t ranks = (size_t)s->desc->ranks;

    s->lane_base = allocate(total, ranks + 1, sizeof(*s->lane_base));
    s->mail_base = allocate(total, ranks + 1, sizeof(*s->mail_base));
    s->cpu = allocate(total, ranks, sizeof(*s->cpu));
    s->no_memory |= !s->lane_base || !s->mail_base || !s->cpu;
    for (int rank = 0; !s->no_memory && rank < s->desc->ranks; rank++) {
        const sim_program *p = sim_program_of(s, rank);
        s->lane_base[rank + 1] = s->lane_base[rank] + (size_t)p->lanes;
        s->mail_base[rank + 1] = s->mail_base[rank] + (size_t)p->schedule->channel_count;
    }
    if (s->no_memory)
        return;
    s->lane = allocate(total, s->lane_base[ranks], sizeof(*s->lane));
    s->mail = allocate(total, s->mail_base[ranks], sizeof(*s->mail));
    s->no_memory |= !s->lane || !s->mail;
    for (size_t i = 0; !s->no_memory && i < s->mail_base[ranks]; i++)
        s->mail[i].waiting = NO_LANE;
    for (int rank = 0; !s->no_memory && rank < s->desc->ranks; rank++)
        for (int i = 0; i < sim_program_of(s, rank)->lanes; i++) {
            const sim_program *p = sim_program_of(s, rank);
            int32_t first = p->first[i];
            s->lane[s->lane_base[rank] + (size_t)i] =
                (sim_lane){first == NO_ITEM ? p->item_count : first, NO_LANE, NO_LANE};
        }
}

/* The memory that the ranks' state will take, and that programs have taken. */
static size_t state_bytes(const sim_state *s, const peal_arena *arena)
{
    size_t bytes = peal_arena_bytes(arena);
    for (int rank = 0; rank < s->desc->ranks; rank++) {
        const sim_program *p = sim_program_of(s, rank);
        bytes += (size_t)p->lanes * sizeof(*s->lane) + 3 * sizeof(*s->lane_base) +
                 (size_t)p->schedule->channel_count * sizeof(*s->mail);
    }
    return bytes;
}

static void make_state(sim_state *s, size_t *total)
{
    size_t devices = (size_t)s->placement.devices * (size_t)s->placement.nodes, lanes;

    make_ranks(s, total);
    if (s->no_memory)
        return;
    lanes = s->lane_base[s->desc->ranks];
    s->device = allocate(total, devices, sizeof(*s->device));
    s->left = allocate(total, (size_t)s->steps, sizeof(*s->left));
    s->step_end = allocate(total, (size_t)s->steps, sizeof(*s->step_end));
    s->no_memory |= !s->device || !s->left || !s->step_end;
    if (s->placement.nodes > 1)
        s->no_memory |= !(s->sent_s = allocate(total, lanes, sizeof(*s->sent_s)));
    if (s->desc->observe)
        s->no_memory |= !(s->begun_s = allocate(total, lanes, sizeof(*s->begun_s)));
    for (int i = 0; i < PEAL_LINK_COUNT; i++) {
        if (s->placement.times->link[i].shared == PEAL_SHARE_NONE)
            continue;
        s->leaves_s[i] = allocate(total, devices, sizeof(double));
        s->enters_s[i] = allocate(total, devices, sizeof(double));
        s->no_memory |= !s->leaves_s[i] || !s->enters_s[i];
    }
    for (int rank = 0; !s->no_memory && rank < s->desc->ranks; rank++) {
        const sim_program *p = sim_program_of(s, rank);
        for (int i = 0; i < p->item_count; i++)
            if (p->item[i].step >= 0 && p->item[i].step < s->steps)
                s->left[p->item[i].step]++;
    }
    if (s->desc->path && !s->no_memory)
        make_records(s, total);
}

static void release_state(sim_state *s)
{
    for (int i = 0; i < PEAL_LINK_COUNT; i++) {
        free(s->leaves_s[i]);
        free(s->enters_s[i]);
    }
    sim_queue_release(&s->queue);
    free(s->lane_base);
    free(s->mail_base);
    free(s->cpu);
    free(s->lane);
    free(s->mail);
    free(s->sent_s);
    free(s->begun_s);
    free(s->device);
    free(s->left);
    free(s->step_end);
    free(s->record);
    free(s->record_base);
    free(s->recorded);
}

/* ---- result ---- */

/* Reports the lanes that are not at their end when nothing can go on. */
static peal_status report_deadlock(const sim_state *s)
{
    char text[400] = "";
    int reported = 0, used = 0, ranks = 0;

    for (int rank = 0; rank < s->desc->ranks; rank++) {
        const sim_program *p = sim_program_of(s, rank);
        bool waits = false;
        for (int i = 0; i < p->lanes; i++) {
            int32_t head = s->lane[s->lane_base[rank] + (size_t)i].head;
            const peal_op *op = head < p->item_count ? &p->schedule->op[p->item[head].op] : NULL;
            waits |= op != NULL;
            if (!op || op->kind != PEAL_OP_WAIT || reported == MOST_REPORTED || used > 300)
                continue;
            used += snprintf(text + used, sizeof(text) - (size_t)used,
                             "%srank %d for %s %u from rank %d", reported++ ? ", " : "", rank,
                             op->credit ? "credit" : "message", p->item[head].message,
                             rank + (int)p->channel[op->channel].offset);
        }
        ranks += waits;
    }
    return peal_report(s->desc->diagnostics, PEAL_E_DEADLOCK_IN_SIMULATION, nowhere, NULL,
                       "%d rank%s for ever: %s", ranks, ranks == 1 ? " waits" : "s wait", text);
}

static int64_t count_items(const sim_state *s)
{
    int64_t count = 0;
    for (int rank = 0; rank < s->desc->ranks; rank++)
        count += sim_program_of(s, rank)->item_count;
    return count;
}

/* When all of the first `count` steps have ended. A step may end after the next one. */
static double end_of_steps(const sim_state *s, int64_t count)
{
    double end = 0;
    for (int64_t i = 0; i < count; i++)
        end = s->step_end[i] > end ? s->step_end[i] : end;
    return end;
}

/* Computes the time of a step: the average of all steps but the first; or, if not all steps were
 * simulated, of the later half, which the beginning no longer affects. */
static void time_steps(const sim_state *s, sim_result *out)
{
    int64_t first = s->steps < out->all_steps ? s->steps / 2 : s->steps > 1;

    out->first_timed = first;
    if (s->steps == 0)
        return;
    double begin = first ? end_of_steps(s, first) : s->setup_end;
    double end = end_of_steps(s, s->steps);
    if (end > begin) /* else steps do nothing */
        out->step_s = (end - begin) / (double)(s->steps - first);
    out->kernel_s = s->device_s / ((double)s->steps * s->desc->ranks);
    out->task_s = s->task_s / ((double)s->steps * s->desc->ranks);
}

static void fill_result(const sim_state *s, sim_result *out)
{
    out->seconds = s->queue.now_s;
    out->credits = s->credits;
    out->ops = s->executed;
    out->nodes = s->placement.nodes;
    out->devices = s->placement.nodes * s->placement.devices;
    memcpy(out->traffic, s->traffic, sizeof(out->traffic));
    time_steps(s, out);
    if (s->desc->path)
        sim_path_follow(s, out);
}

static peal_status run_state(sim_state *s, peal_arena *arena, sim_result *out)
{
    size_t bytes = 0, need = state_bytes(s, arena);

    if (s->desc->most_bytes && need > (size_t)s->desc->most_bytes)
        return peal_report(s->desc->diagnostics, PEAL_E_SIMULATION_TOO_LARGE, nowhere,
                           "simulate fewer ranks", "%d ranks need %zu bytes, of %" PRId64,
                           s->desc->ranks, need, s->desc->most_bytes);
    make_state(s, &bytes);
    if (!s->no_memory)
        sim_state_run(s);
    out->rank_bytes = bytes / (size_t)s->desc->ranks;
    out->memory_bytes = bytes + sim_queue_bytes(&s->queue) + peal_arena_bytes(arena);
    if (s->no_memory)
        return peal_report(s->desc->diagnostics, PEAL_E_OUT_OF_MEMORY, nowhere,
                           "simulate fewer ranks",
                           "no memory to simulate %d ranks, beside %zu bytes", s->desc->ranks,
                           out->memory_bytes);
    if (s->executed < count_items(s))
        return report_deadlock(s);
    fill_result(s, out);
    return PEAL_STATUS_OK;
}

static peal_status fill_and_run(sim_state *s, peal_arena *arena, sim_result *out)
{
    PEAL_ARENA_GUARD(arena, return sim_no_memory(s->desc));
    sim_program *program = NULL;
    sim_network *network = NULL;
    peal_status status = make_programs(s->desc, &s->placement, out->steps, arena, &program);

    if (!status)
        status = sim_network_create(s->desc, program, &s->placement, arena, &network);
    s->program = program;
    s->network = network;
    return status ? status : run_state(s, arena, out);
}

static peal_status simulate(const sim_desc *desc, const sim_placement *placement, peal_arena *arena,
                            sim_result *out)
{
    sim_state s = {.desc = desc, .placement = *placement, .steps = out->steps};
    peal_status status = fill_and_run(&s, arena, out);
    release_state(&s);
    return status;
}

peal_status sim_run(const sim_desc *desc, sim_result *out)
{
    peal_arena *arena = peal_arena_create();
    sim_placement placement;
    if (!arena)
        return sim_no_memory(desc);
    *out = (sim_result){0};
    sim_placement_init(&placement, desc);
    peal_status status = find_steps(desc, &placement, arena, out);
    if (!status)
        status = simulate(desc, &placement, arena, out);
    peal_arena_destroy(arena);
    if (status)
        sim_result_release(out);
    return status;
}

void sim_result_release(sim_result *result)
{
    free(result->piece);
    *result = (sim_result){0};
}
