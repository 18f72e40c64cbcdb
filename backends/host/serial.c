/* `serial`: the executor that defines what a graph means. One thread runs one event at a time for
 * the whole job: of the ready ones the first by (iterations, event, rank). If none is ready, that
 * is a deadlock, and its cycle is reported.
 *
 * Messages are copies in queues, so a send never waits and nothing depends on flags, credits or
 * where the other modes store a piece. */
#include "backends/host/execute.h"
#include "backends/host/walk.h"
#include "base/clock.h"
#include "base/walk_order.h"

#include <stdlib.h>
#include <string.h>

typedef struct serial_message {
    struct serial_message *next;
    unsigned char *data; /* the pieces one after another, dense */
} serial_message;

/* Messages on their way to one incoming channel. */
typedef struct serial_queue {
    serial_message *head, *tail;
    serial_message *taken; /* the message that the WAIT has taken, for the UNPACK after it */
    int sender, channel;   /* hosted index of the sender, and its channel; -1: nobody sends */
    int waits;             /* ops that receive; 2: an UNPACK follows the WAIT */
} serial_queue;

typedef enum serial_phase { SERIAL_SETUP, SERIAL_STEP, SERIAL_FINISH, SERIAL_DONE } serial_phase;

typedef struct serial_rank {
    host_walk walk;
    host_context context;
    serial_phase phase;
    int64_t steps_left;
    bool stop;
    serial_queue *queue; /* by incoming channel */
    peal_walk_order order;
} serial_rank;

typedef struct serial_state {
    serial_rank *rank;
} serial_state;

/* Messages. The sender copies a piece to a dense block, and the receiver unpacks that. */

static int64_t piece_bytes(const host_rank *rank, const peal_piece *piece, bool receives,
                           int64_t extent[PEAL_AXES], int64_t dense[PEAL_AXES])
{
    int array = receives ? piece->target_array : piece->array;
    int64_t points = 1;
    for (int k = 0; k < PEAL_AXES; k++) {
        extent[k] = receives ? piece->target_extent[k] : piece->source.hi[k] - piece->source.lo[k];
        dense[k] = points;
        points *= extent[k] > 0 ? extent[k] : 0;
    }
    return points * (int64_t)peal_type_bytes(rank->schedule->array[array].type);
}

static unsigned char *address(const host_rank *rank, const peal_walk_frame *frame, int array,
                              const int64_t *point)
{
    const peal_schedule_array *a = &rank->schedule->array[array];
    int64_t elements = 0;
    for (int k = 0; k < PEAL_AXES; k++)
        elements += (point[k] - a->layout.stored.lo[k]) * a->layout.stride[k];
    return rank->first[frame->binding[array]] + elements * (int64_t)peal_type_bytes(a->type);
}

/* Reads the number of points of a counted piece from the piece before it, of the array `counts`. */
static bool take_count(host_rank *rank, const peal_op *op, const peal_walk_frame *frame,
                       const peal_piece *piece, const unsigned char *count, int counts,
                       int64_t extent[PEAL_AXES])
{
    if (!piece->counted)
        return true;
    int64_t most = extent[0];
    extent[0] = host_count_at(rank->schedule->array[counts].type, count);
    return host_count_fits(rank, op, frame->counter[0], extent[0], most);
}

static bool send_message(serial_state *state, host_rank *rank, const host_op *op,
                         const peal_walk_frame *frame)
{
    const peal_channel *channel = op->channel;
    int64_t extent[PEAL_AXES], dense[PEAL_AXES], bytes = 0;
    serial_queue *queue = NULL;

    if (op->queue >= 0)
        queue = &state->rank[op->queue >> 16].queue[op->queue & 0xffff];
    if (op->skipped || !queue)
        return true;
    for (int i = 0; i < channel->piece_count; i++)
        bytes += piece_bytes(rank, &channel->piece[i], false, extent, dense);
    serial_message *message = malloc(sizeof(*message) + (size_t)bytes);
    if (!message)
        return host_fail(rank->plan, PEAL_STATUS_ENVIRONMENT);
    *message = (serial_message){.data = (unsigned char *)(message + 1)};
    unsigned char *at = message->data, *count = NULL;
    for (int i = 0; i < channel->piece_count; i++) {
        const peal_piece *piece = &channel->piece[i];
        const peal_schedule_array *array = &rank->schedule->array[piece->array];
        peal_copy copy;
        int64_t size = piece_bytes(rank, piece, false, extent, dense);
        if (!take_count(rank, op->source, frame, piece, count, piece[-piece->counted].array,
                        extent)) {
            free(message);
            return false;
        }
        count = at;
        peal_copy_prepare(&copy, peal_type_bytes(array->type), extent, array->layout.stride, dense);
        peal_copy_run(&copy, at, address(rank, frame, piece->array, piece->source.lo));
        at += size;
    }
    if (queue->tail)
        queue->tail->next = message;
    else
        queue->head = message;
    queue->tail = message;
    return true;
}

/* Stores the pieces of a kind: direct ones at the WAIT, staged ones at the UNPACK. */
static bool store_pieces(host_rank *rank, const host_op *op, const peal_walk_frame *frame,
                         const serial_message *message, bool direct, bool staged)
{
    const unsigned char *at = message->data, *count = NULL;
    const peal_channel *channel = op->channel;

    for (int i = 0; i < channel->piece_count; i++) {
        const peal_piece *piece = &channel->piece[i];
        const peal_schedule_array *array = &rank->schedule->array[piece->target_array];
        int64_t extent[PEAL_AXES], dense[PEAL_AXES];
        int64_t size = piece_bytes(rank, piece, true, extent, dense);
        if (!take_count(rank, op->source, frame, piece, count, piece[-piece->counted].target_array,
                        extent))
            return false;
        count = at;
        if (piece->direct ? direct : staged) {
            peal_copy copy;
            peal_copy_prepare(&copy, peal_type_bytes(array->type), extent, dense,
                              array->layout.stride);
            peal_copy_run(&copy, address(rank, frame, piece->target_array, piece->target), at);
        }
        at += size;
    }
    return true;
}

static bool take_message(serial_rank *me, const host_op *op, const peal_walk_frame *frame)
{
    serial_queue *queue = &me->queue[op->source->channel];
    serial_message *message = queue->head;

    queue->head = message->next;
    if (!queue->head)
        queue->tail = NULL;
    bool unpacks = queue->waits > 1;
    free(queue->taken);
    queue->taken = message;
    return store_pieces(me->walk.rank, op, frame, message, true, !unpacks);
}

static bool run_op(serial_state *state, serial_rank *me)
{
    host_walk *walk = &me->walk;
    const host_op *op = &walk->rank->op[walk->position];
    peal_walk_frame frame = host_walk_pass(walk);

    if (op->kind == PEAL_OP_LAUNCH || (op->kind == PEAL_OP_COPY && !op->channel))
        return host_execute(&me->context, op, &frame);
    if (op->kind == PEAL_OP_COPY && op->channel->outgoing)
        return send_message(state, walk->rank, op, &frame);
    if (op->kind == PEAL_OP_WAIT && !op->source->credit && !op->skipped)
        return take_message(me, op, &frame);
    if (op->kind == PEAL_OP_COPY && !op->skipped && me->queue[op->source->channel].taken)
        return store_pieces(walk->rank, op, &frame, me->queue[op->source->channel].taken, false,
                            true);
    return true;
}

/* Events. */

/* Passes control ops, from section to section, up to the next op that does something. */
static bool settle(serial_rank *me)
{
    host_plan *plan = me->walk.rank->plan;
    const peal_schedule *schedule = me->walk.rank->schedule;

    while (me->phase != SERIAL_DONE) {
        const peal_section *section = me->phase == SERIAL_SETUP  ? &schedule->setup
                                      : me->phase == SERIAL_STEP ? &schedule->step
                                                                 : &schedule->finish;
        bool idle = (me->phase == SERIAL_SETUP && !plan->setup) ||
                    (me->phase == SERIAL_STEP && (me->steps_left == 0 || me->stop)) ||
                    (me->phase == SERIAL_FINISH && !plan->finish);
        if (!idle) {
            host_walk_result result = host_walk_next(&me->walk, section);
            if (result != HOST_WALK_END)
                return result == HOST_WALK_OP;
            if (me->phase == SERIAL_STEP) {
                me->steps_left--;
                if (!host_walk_step_done(&me->walk, &me->stop))
                    return false;
                me->walk.position = section->first;
                continue;
            }
        }
        me->phase++;
        me->walk.position = me->phase == SERIAL_STEP     ? schedule->step.first
                            : me->phase == SERIAL_FINISH ? schedule->finish.first
                                                         : 0;
    }
    return true;
}

/* The first op that is not of the event at the walk's position. */
static int event_end(const serial_rank *me)
{
    const peal_schedule *schedule = me->walk.rank->schedule;
    int at = me->walk.position;
    int event = schedule->op[at].event;

    while (at < schedule->op_count && schedule->op[at].event == event && event >= 0 &&
           schedule->op[at].kind != PEAL_OP_LOOP && schedule->op[at].kind != PEAL_OP_IF &&
           schedule->op[at].kind != PEAL_OP_END)
        at++;
    return at > me->walk.position ? at : me->walk.position + 1;
}

/* The incoming channel whose message the event lacks; -1: it is ready. */
static int missing_channel(const serial_rank *me)
{
    const peal_schedule *schedule = me->walk.rank->schedule;
    int end = event_end(me);

    for (int i = me->walk.position; i < end; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->kind == PEAL_OP_WAIT && !op->credit && !me->walk.rank->op[i].skipped &&
            !me->queue[op->channel].head)
            return op->channel;
    }
    return -1;
}

static peal_walk_place order_key(const serial_rank *me)
{
    return (peal_walk_place){.order = &me->order,
                             .position = me->walk.position,
                             .step = me->walk.counter[0],
                             .loop = me->walk.loop};
}

/* Program order: by section, then by the walks. */
static int compare(const serial_rank *a, const serial_rank *b)
{
    if (a->phase != b->phase)
        return a->phase < b->phase ? -1 : 1;
    peal_walk_place x = order_key(a), y = order_key(b);
    return peal_walk_compare(&x, &y);
}

static const char *edge_name(const peal_channel *channel)
{
    return channel->edge ? channel->edge : "a message";
}

/* No rank is ready: follows who waits for whom, until a rank repeats or has ended, and reports it.
 */
static bool report_deadlock(host_plan *plan, const serial_state *state)
{
    char text[1024] = "";
    size_t used = 0;
    int at = 0;
    bool *seen = PEAL_ARENA_ARRAY(plan->arena, bool, plan->rank_count);
    peal_source source = {0};

    while (state->rank[at].phase == SERIAL_DONE)
        at++;
    while (at >= 0 && !seen[at]) {
        const serial_rank *me = &state->rank[at];
        const peal_schedule *schedule = me->walk.rank->schedule;
        seen[at] = true;
        if (me->phase == SERIAL_DONE) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "; rank %d has ended",
                                     schedule->rank);
            break;
        }
        int channel = missing_channel(me);
        const peal_channel *c = &schedule->channel[channel];
        const peal_op *op = &schedule->op[me->walk.position];
        source = op->source;
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "%srank %d waits in `%s` for %s from rank %d", used ? "; " : "",
                                 schedule->rank, op->label ? op->label : "a receive", edge_name(c),
                                 c->peer);
        used = used < sizeof(text) ? used : sizeof(text) - 1;
        at = me->queue[channel].sender;
    }
    return host_fail(
        plan, peal_report(plan->late, PEAL_E_DEADLOCK_IN_RUN, source,
                          "`check` has found no circle of waits, so something was overwritten: "
                          "try --check-footprints",
                          "no rank can go on at step %lld: %s",
                          (long long)state->rank[0].walk.counter[0], text));
}

/* Runs the first ready event; *more is false when all ranks are done. */
static bool run_event(host_plan *plan, serial_state *state, bool *more)
{
    serial_rank *best = NULL;

    *more = false;
    for (int i = 0; i < plan->rank_count; i++) {
        serial_rank *me = &state->rank[i];
        if (me->phase == SERIAL_DONE)
            continue;
        *more = true;
        if (missing_channel(me) < 0 && (!best || compare(me, best) < 0))
            best = me;
    }
    if (!*more)
        return true;
    if (!best)
        return report_deadlock(plan, state);
    for (int end = event_end(best); best->walk.position < end;)
        if (best->walk.rank->op[best->walk.position].kind == PEAL_OP_SWAP ||
            best->walk.rank->op[best->walk.position].kind == PEAL_OP_FENCE)
            break;
        else if (!run_op(state, best))
            return false;
    return settle(best);
}

static peal_status run(host_plan *plan)
{
    serial_state *state = plan->executor_data;
    bool more = true;

    for (int i = 0; i < plan->rank_count; i++) {
        serial_rank *me = &state->rank[i];
        me->phase = SERIAL_SETUP;
        me->walk.position = me->walk.rank->schedule->setup.first;
        me->steps_left = plan->steps;
        me->stop = false;
        if (me->walk.loop[me->walk.rank->schedule->loop_count].every == 0 &&
            !host_walk_enter(&me->walk))
            return PEAL_STATUS_OK;
        if (!settle(me))
            return PEAL_STATUS_OK;
    }
    while (more && !host_is_aborted(plan))
        if (!run_event(plan, state, &more))
            break;
    for (int i = 0; i < plan->rank_count; i++)
        memcpy(plan->rank[i].final_binding, state->rank[i].walk.binding,
               (size_t)plan->rank[i].schedule->array_count * sizeof(int));
    plan->end = peal_clock_s();
    return PEAL_STATUS_OK;
}

/* Set-up: queues by receiver, and how senders find them. */

static int hosted_index(const host_plan *plan, int rank)
{
    for (int i = 0; i < plan->rank_count; i++)
        if (plan->rank[i].schedule->rank == rank)
            return i;
    return -1;
}

/* The incoming channel of an outgoing one: it has the same flag or, in schedules without flags, the
 * same edge. */
static int find_incoming(const peal_schedule *receiver, int sender, const peal_channel *outgoing)
{
    int found = -1;
    for (int i = 0; i < receiver->channel_count; i++) {
        const peal_channel *c = &receiver->channel[i];
        if (c->outgoing || c->peer != sender || c->flag_offset != outgoing->flag_offset)
            continue;
        if (c->edge && outgoing->edge && !strcmp(c->edge, outgoing->edge))
            return i;
        found = i;
    }
    return found;
}

static void connect(host_plan *plan, serial_state *state, int index)
{
    host_rank *rank = &plan->rank[index];
    const peal_schedule *schedule = rank->schedule;

    for (int i = 0; i < schedule->op_count; i++) {
        host_op *op = &rank->op[i];
        if (!op->channel)
            continue;
        if (!op->channel->outgoing) {
            if (op->kind == PEAL_OP_COPY || (op->kind == PEAL_OP_WAIT && !op->source->credit))
                state->rank[index].queue[op->source->channel].waits++;
            continue;
        }
        int receiver = hosted_index(plan, op->channel->peer);
        if (receiver < 0 || op->kind != PEAL_OP_COPY)
            continue;
        int channel = find_incoming(plan->rank[receiver].schedule, schedule->rank, op->channel);
        if (channel < 0)
            continue;
        op->queue = receiver << 16 | channel;
        state->rank[receiver].queue[channel].sender = index;
    }
}

static peal_status create(host_plan *plan)
{
    serial_state *state = PEAL_ARENA_NEW(plan->arena, serial_state);

    plan->executor_data = state;
    state->rank = PEAL_ARENA_ARRAY(plan->arena, serial_rank, plan->rank_count);
    for (int i = 0; i < plan->rank_count; i++) {
        serial_rank *me = &state->rank[i];
        int channels = plan->rank[i].schedule->channel_count;
        host_walk_init(&me->walk, &plan->rank[i], 0, false);
        host_context_init(&me->context, &plan->rank[i], 0);
        me->queue = PEAL_ARENA_ARRAY(plan->arena, serial_queue, channels + 1);
        for (int k = 0; k < channels; k++)
            me->queue[k].sender = -1;
        peal_walk_order_create(plan->rank[i].schedule, plan->arena, false, &me->order);
    }
    for (int i = 0; i < plan->rank_count; i++)
        connect(plan, state, i);
    return PEAL_STATUS_OK;
}

static peal_status wait_all(host_plan *plan)
{
    (void)plan;
    return PEAL_STATUS_OK;
}

static void destroy(host_plan *plan)
{
    serial_state *state = plan->executor_data;

    for (int i = 0; state && state->rank && i < plan->rank_count; i++) {
        int channels = state->rank[i].queue ? plan->rank[i].schedule->channel_count : 0;
        for (int k = 0; k < channels; k++) {
            serial_queue *queue = &state->rank[i].queue[k];
            free(queue->taken);
            while (queue->head) {
                serial_message *next = queue->head->next;
                free(queue->head);
                queue->head = next;
            }
        }
    }
}

const host_executor host_serial = {create, run, wait_all, destroy};
