/* Programs: a schedule's walk, unrolled once for all ranks that are alike. What each instance of an
 * op waits for is resolved here, so that the state of a rank is only the positions of its lanes. */
#include "backends/sim/internal.h"
#include "base/walk.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LANES = INT16_MAX / 2 };

typedef struct decided {
    int32_t *item; /* by instance of the DECIDE */
    int count, capacity;
} decided;

/* A program while it is made. Its lists are in a scratch arena. */
typedef struct unrolling {
    const sim_desc *desc;
    const peal_schedule *schedule;
    const peal_walk_program *walked;
    peal_arena *scratch, *kept;
    peal_walk walk;
    sim_program *out;
    sim_item *item;
    int item_count, item_capacity;
    sim_need *need;
    int need_count, need_capacity;
    int32_t *latest[2]; /* by op: item of its latest instance, and of the one before */
    int32_t *lane_last; /* by lane */
    int32_t *newest;    /* by lane: its latest item that the item which is being made needs */
    int *needed;        /* the lanes that have one */
    int needed_count;
    decided *decision; /* by slot */
    double *posted;
    int posted_capacity;
    double post_s;       /* since the latest verdict */
    int32_t verdict;     /* the DECIDE item that all later items wait for */
    int32_t *is_verdict; /* by item */
    int is_verdict_capacity;
    double *epoch_post; /* by epoch */
    int epoch_capacity;
    int32_t epoch;
    int32_t step;
} unrolling;

/* ---- lanes ---- */

/* The number of lanes without those of count_apart. */
static int count_lanes(const sim_desc *desc, const peal_schedule *schedule)
{
    int most = 0;
    if (schedule->mode == PEAL_MODE_SERIAL || schedule->mode == PEAL_MODE_SYNC)
        return 1;
    if (!desc->times->accelerator)
        return schedule->workers > 1 ? schedule->workers : 1;
    for (int i = 0; i < schedule->op_count; i++)
        most = schedule->op[i].lane > most ? schedule->op[i].lane : most;
    return most < MOST_LANES ? most + 1 : MOST_LANES;
}

/* The number of lanes that have the messages of one channel each, if the mode's times say so. The
 * ops of a channel keep their order. */
static int count_apart(const sim_desc *desc, const peal_schedule *schedule)
{
    bool one = schedule->mode == PEAL_MODE_SERIAL || schedule->mode == PEAL_MODE_SYNC;
    bool apart = desc->times->mode[schedule->mode].apart && !one;
    return apart && schedule->channel_count < MOST_LANES ? schedule->channel_count : 0;
}

static int lane_of(const unrolling *u, const peal_op *op)
{
    if (sim_is_timed_transfer(u->desc->times, u->schedule, op))
        return 0;
    if (u->out->apart && sim_is_of_message(op))
        return u->out->lanes - u->out->apart + op->channel;
    return op->lane > 0 ? op->lane % (u->out->lanes - u->out->apart) : 0;
}

/* ---- items ---- */

/* The walk's hook: `when` is true, and `until` never ends a loop. The CPU waits for either. */
static peal_walk_result verdict(void *user, int slot, uint64_t instance, bool *out)
{
    unrolling *u = user;
    int decide = u->walked->decision_op[slot];
    decided *known = &u->decision[slot];

    *out = u->walked->op[decide].decision_loop < 0;
    if (instance < 1 || instance > (uint64_t)known->count)
        return PEAL_WALK_OP;
    int32_t item = known->item[instance - 1];
    if (item > u->verdict) {
        PEAL_ARENA_ROOM(u->scratch, u->epoch_post, u->epoch, u->epoch_capacity);
        u->epoch_post[u->epoch] = u->post_s;
        u->verdict = item;
        u->is_verdict[item] = ++u->epoch;
        u->post_s = 0;
    }
    return PEAL_WALK_OP;
}

static void need(unrolling *u, int32_t item, int own_lane)
{
    if (item == NO_ITEM)
        return;
    int lane = u->item[item].lane;
    if (lane == own_lane || item <= u->newest[lane])
        return;
    if (u->newest[lane] == NO_ITEM)
        u->needed[u->needed_count++] = lane;
    u->newest[lane] = item;
}

static int ascending(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

/* Lists what an item needs. Lanes do one item after the other, so the latest one of each lane is
 * enough. */
static void add_needs(unrolling *u, const peal_op *op, sim_item *item)
{
    u->needed_count = 0;
    for (int i = 0; i < op->dependence_count; i++) {
        const peal_dependence *d = &op->dependence[i];
        need(u, u->latest[d->lag ? 1 : 0][d->op], item->lane);
    }
    need(u, u->verdict, item->lane);
    item->need = u->need_count;
    qsort(u->needed, (size_t)u->needed_count, sizeof(*u->needed), ascending);
    for (int i = 0; i < u->needed_count; i++) {
        int lane = u->needed[i];
        PEAL_ARENA_ROOM(u->scratch, u->need, u->need_count, u->need_capacity);
        u->need[u->need_count++] = (sim_need){lane, u->newest[lane]};
        u->newest[lane] = NO_ITEM;
        item->need_count++;
    }
}

/* How long the CPU takes to enqueue an item. */
static double post_seconds(const unrolling *u, const peal_op *op)
{
    const peal_mode_times *times = &u->desc->times->mode[u->schedule->mode];
    bool first = u->item_count == 0 || u->item[u->item_count - 1].step != u->step;
    switch (u->schedule->mode) {
    case PEAL_MODE_STREAM:
        return u->desc->free_messages && sim_is_of_message(op)
                   ? 0
                   : sim_post_seconds(u->desc->times, u->schedule, op);
    case PEAL_MODE_GRAPH:
        return first ? times->launch_s : 0;
    case PEAL_MODE_FUSED:
        return u->item_count == 0 ? times->launch_s : 0;
    default: /* the CPU is the lane */
        return 0;
    }
}

static void add_item(unrolling *u, int index)
{
    const peal_op *op = &u->schedule->op[index];
    peal_walk_frame frame = peal_walk_pass(&u->walk);
    sim_item item = {.op = index,
                     .step = u->step,
                     .next = NO_ITEM,
                     .epoch = u->epoch,
                     .message = (uint32_t)frame.message,
                     .lane = (int16_t)lane_of(u, op)};
    int32_t number = u->item_count;

    add_needs(u, op, &item);
    u->post_s += post_seconds(u, op);
    PEAL_ARENA_ROOM(u->scratch, u->posted, number, u->posted_capacity);
    u->posted[number] = u->post_s;
    PEAL_ARENA_ROOM(u->scratch, u->is_verdict, number, u->is_verdict_capacity);
    PEAL_ARENA_ROOM(u->scratch, u->item, number, u->item_capacity);
    u->item[u->item_count++] = item;
    if (u->lane_last[item.lane] != NO_ITEM)
        u->item[u->lane_last[item.lane]].next = number;
    else
        u->out->first[item.lane] = number;
    u->lane_last[item.lane] = number;
    u->latest[1][index] = u->latest[0][index];
    u->latest[0][index] = number;
    if (op->kind == PEAL_OP_LAUNCH && u->schedule->task[op->task].kind == PEAL_TASK_DECIDE) {
        decided *known = &u->decision[u->schedule->task[op->task].decision];
        PEAL_ARENA_ROOM(u->scratch, known->item, known->count, known->capacity);
        known->item[known->count++] = number;
    }
}

static bool is_too_much(const unrolling *u)
{
    size_t bytes = peal_arena_bytes(u->scratch) + peal_arena_bytes(u->kept);
    return u->item_count == INT32_MAX / 2 ||
           (u->desc->most_bytes && bytes > (size_t)u->desc->most_bytes);
}

static peal_status unroll_section(unrolling *u, const peal_section *section)
{
    u->walk.position = section->first;
    for (;;) {
        switch (peal_walk_next(&u->walk, section)) {
        case PEAL_WALK_OP:
            if (is_too_much(u))
                return peal_report(u->desc->diagnostics, PEAL_E_SIMULATION_TOO_LARGE,
                                   (peal_source){0}, "simulate fewer steps: --steps",
                                   "what rank %d does, and those before it, is too much to keep",
                                   u->schedule->rank);
            add_item(u, u->walk.position);
            break;
        case PEAL_WALK_END:
            return PEAL_STATUS_OK;
        default:
            return PEAL_STATUS_SPEC;
        }
    }
}

static peal_status unroll_steps(unrolling *u, int64_t steps)
{
    const peal_walk_loop_state *outer = &u->walk.loop[u->schedule->loop_count];
    peal_status status = PEAL_STATUS_OK;
    bool stop;

    if (peal_walk_enter(&u->walk) != PEAL_WALK_OP)
        return PEAL_STATUS_SPEC;
    u->out->all_steps = outer->repeat > 0 ? outer->repeat : 0; /* else a run reports it */
    for (u->step = 0; u->step < steps && !status; u->step++) {
        status = unroll_section(u, &u->schedule->step);
        if (u->step == 0)
            u->out->step_ops = u->item_count;
        if (!status && peal_walk_step_done(&u->walk, &stop) != PEAL_WALK_OP)
            status = PEAL_STATUS_SPEC;
    }
    return status;
}

/* ---- channels ---- */

/* A hash of an edge's name without the ranks at its end. */
static uint64_t hash_edge(const peal_channel *channel)
{
    const char *end = strrchr(channel->edge, ' ');
    uint64_t hash = 0xcbf29ce484222325u;

    for (const char *p = channel->edge; *p && p != end; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    return hash;
}

int sim_compare_ends(const sim_channel *a, const sim_channel *b)
{
    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->outgoing - b->outgoing;
}

static int by_end(const void *left, const void *right)
{
    const sim_channel *a = *(sim_channel *const *)left, *b = *(sim_channel *const *)right;
    int order = sim_compare_ends(a, b);
    return order ? order : a < b ? -1 : a > b;
}

/* Statements of one line may share a name: their channels are numbered. Then lists all by name. */
static void name_ends(sim_channel *channel, int count, peal_arena *arena, sim_program *out)
{
    const sim_channel **list = PEAL_ARENA_ARRAY(arena, const sim_channel *, count + 1);
    uint64_t *number = PEAL_ARENA_ARRAY(arena, uint64_t, count + 1);
    for (int i = 0; i < count; i++)
        list[i] = &channel[i];
    qsort(list, (size_t)count, sizeof(*list), by_end);
    for (int i = 1; i < count; i++)
        if (!sim_compare_ends(list[i - 1], list[i]))
            number[list[i] - channel] = number[list[i - 1] - channel] + 1;
    for (int i = 0; i < count; i++)
        channel[i].name += number[i];
    qsort(list, (size_t)count, sizeof(*list), by_end);
    out->by_end = list;
}

static void make_channels(unrolling *u, peal_arena *arena)
{
    const peal_schedule *schedule = u->schedule;
    sim_channel *channel = PEAL_ARENA_ARRAY(arena, sim_channel, schedule->channel_count + 1);
    int total = 0;

    for (int i = 0; i < schedule->channel_count; i++) {
        const peal_channel *c = &schedule->channel[i];
        channel[i] = (sim_channel){.name = hash_edge(c),
                                   .offset = (int64_t)c->peer - schedule->rank,
                                   .outgoing = c->outgoing,
                                   .credit = c->credit_offset >= 0,
                                   .slots = c->slots,
                                   .staged = c->staged_count,
                                   .bytes = c->message_bytes};
    }
    name_ends(channel, schedule->channel_count, arena, u->out);
    for (int i = 0; i < u->item_count; i++) {
        const peal_op *op = &schedule->op[u->item[i].op];
        if (op->channel < 0)
            continue;
        channel[op->channel].is_used = true;
        channel[op->channel].write_count += op->kind == PEAL_OP_WRITE;
    }
    for (int i = 0; i < schedule->channel_count; i++) {
        channel[i].first_write = total;
        total += channel[i].write_count;
        channel[i].write_count = 0;
    }
    int32_t *write = PEAL_ARENA_ARRAY(arena, int32_t, total + 1);
    for (int i = 0; i < u->item_count; i++) {
        const peal_op *op = &schedule->op[u->item[i].op];
        if (op->channel < 0 || op->kind != PEAL_OP_WRITE)
            continue;
        sim_channel *c = &channel[op->channel];
        write[c->first_write + c->write_count++] = i;
    }
    u->out->channel = channel;
    u->out->write_item = write;
}

/* ---- programs ---- */

static void *keep(peal_arena *arena, const void *list, int count, size_t size)
{
    void *kept = peal_arena_array(arena, (size_t)count + 1, size);
    if (count)
        memcpy(kept, list, (size_t)count * size);
    return kept;
}

static void fill_none(int32_t *list, int count)
{
    for (int i = 0; i < count; i++)
        list[i] = NO_ITEM;
}

static peal_status begin(unrolling *u, peal_arena *arena)
{
    const peal_schedule *schedule = u->schedule;
    peal_walk_program *walked;
    peal_status status =
        peal_walk_program_create(schedule, u->scratch, u->desc->diagnostics, &walked);
    if (status)
        return status;
    u->walked = walked;
    peal_walk_init(&u->walk, walked, u->scratch, 0);
    u->walk.hooks = (peal_walk_hooks){u, verdict, u->desc->diagnostics};
    for (int i = 0; i < 2; i++) {
        u->latest[i] = PEAL_ARENA_ARRAY(u->scratch, int32_t, schedule->op_count + 1);
        fill_none(u->latest[i], schedule->op_count);
    }
    u->out->first = PEAL_ARENA_ARRAY(arena, int32_t, u->out->lanes);
    fill_none(u->out->first, u->out->lanes);
    u->lane_last = PEAL_ARENA_ARRAY(u->scratch, int32_t, u->out->lanes);
    fill_none(u->lane_last, u->out->lanes);
    u->newest = PEAL_ARENA_ARRAY(u->scratch, int32_t, u->out->lanes);
    fill_none(u->newest, u->out->lanes);
    u->needed = PEAL_ARENA_ARRAY(u->scratch, int, u->out->lanes);
    u->decision = PEAL_ARENA_ARRAY(u->scratch, decided, schedule->decision_count + 1);
    u->verdict = NO_ITEM;
    return PEAL_STATUS_OK;
}

static void keep_lists(unrolling *u, peal_arena *arena)
{
    const peal_mode_times *times = &u->desc->times->mode[u->schedule->mode];
    sim_program *out = u->out;

    out->item_count = u->item_count;
    out->item = keep(arena, u->item, u->item_count, sizeof(*u->item));
    out->need = keep(arena, u->need, u->need_count, sizeof(*u->need));
    if (times->launch_s > 0 || times->post_s > 0)
        out->posted = keep(arena, u->posted, u->item_count, sizeof(*u->posted));
    out->is_verdict = keep(arena, u->is_verdict, u->item_count, sizeof(*u->is_verdict));
    out->epoch_post = keep(arena, u->epoch_post, u->epoch, sizeof(*u->epoch_post));
}

peal_status sim_no_memory(const sim_desc *desc)
{
    return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory for a simulation");
}

peal_status sim_program_create(const sim_desc *desc, const sim_placement *placement,
                               const peal_schedule *schedule, int64_t steps, peal_arena *arena,
                               sim_program *out)
{
    unrolling u = {.desc = desc, .schedule = schedule, .kept = arena, .out = out, .step = -1};
    sim_cost *cost;

    int apart = count_apart(desc, schedule);
    *out = (sim_program){.schedule = schedule,
                         .lanes = count_lanes(desc, schedule) + apart,
                         .apart = apart};
    u.scratch = peal_arena_create_within(arena);
    peal_status status = begin(&u, arena);
    if (!status)
        status = unroll_section(&u, &schedule->setup);
    int setup_ops = u.item_count;
    if (!status)
        status = unroll_steps(&u, steps);
    if (!status)
        status = unroll_section(&u, &schedule->finish);
    if (!status) {
        out->step_ops -= out->step_ops ? setup_ops : 0;
        keep_lists(&u, arena);
        make_channels(&u, arena);
        status = sim_costs_create(desc, placement, schedule, arena, &cost);
        out->cost = cost;
    }
    peal_arena_destroy(u.scratch);
    return status;
}
