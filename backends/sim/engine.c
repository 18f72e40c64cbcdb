/* The simulation: events in the order of their times. */
#include "backends/sim/internal.h"

/* The kind of an event of the queue, which has kind + EVENTS * (lane or channel). */
typedef enum event_kind {
    ITEM_ENDS,    /* the item of a lane */
    ITEM_POSTED,  /* the CPU has enqueued the item of a lane */
    COPY_LEFT,    /* the bytes of a lane's copy have left its device */
    MESSAGE_LEFT, /* the bytes of a channel's message have left the node; its word follows */
    WORD_ARRIVES, /* at this end of a channel */
    EVENTS
} event_kind;

/* What enabled a lane's item last. */
typedef struct cause {
    int32_t item, rank; /* as in sim_record */
} cause;

/* ---- jitter ---- */

static double random_fraction(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t x = seed + a * 0x9e3779b97f4a7c15u + b * 0xd1b54a32d192ed03u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

/* A factor of at least 1, the same for the same item or channel. */
static double jitter_factor(const sim_state *s, int rank, int64_t what)
{
    return 1 + s->desc->jitter *
                   random_fraction(s->desc->seed, (uint64_t)(uint32_t)rank, (uint64_t)what);
}

static double jittered(const sim_state *s, double seconds, int rank, int64_t what)
{
    return s->desc->jitter > 0 ? seconds * jitter_factor(s, rank, what) : seconds;
}

/* ---- links ---- */

static void push(sim_state *s, double time_s, int rank, int what)
{
    if (!sim_queue_push(&s->queue, time_s, rank, what))
        s->no_memory = true;
}

/* The time at which a rank's end of a shared link is free; NULL: the link is not shared. */
static double *port(const sim_state *s, double *const *ports, peal_link_class link, int rank)
{
    peal_link_share shared = s->placement.times->link[link].shared;
    if (shared == PEAL_SHARE_NONE)
        return NULL;
    return &ports[link][shared == PEAL_SHARE_NODE ? sim_node_of(&s->placement, rank)
                                                  : sim_device_of(&s->placement, rank, 0)];
}

static double latest_of(double a, double b)
{
    return a > b ? a : b;
}

/* Bytes leave from `begin` on, after those that leave before them. Returns when the last has left.
 */
static double leave(sim_state *s, peal_link_class link, int from, double seconds, double begin)
{
    double *free_s = port(s, s->leaves_s, link, from);

    if (!free_s)
        return begin + seconds;
    *free_s = latest_of(begin, *free_s) + seconds;
    return *free_s;
}

/* Bytes enter after those that have entered before. Returns when the last has entered. Called when
 * they have left, so that messages enter in the order in which they leave. */
static double enter(sim_state *s, peal_link_class link, int to, double seconds)
{
    double *free_s = port(s, s->enters_s, link, to);

    if (!free_s)
        return s->queue.now_s;
    *free_s = latest_of(s->queue.now_s, *free_s + seconds);
    return *free_s;
}

/* How long the bytes of a channel's message take on a link. */
static double message_seconds(const sim_state *s, peal_link_class link, int rank,
                              const sim_program *p, int channel)
{
    return jittered(s, sim_link_seconds(&s->placement, link, p->channel[channel].bytes), rank,
                    -1 - channel);
}

/* ---- items ---- */

static sim_record *record_of(const sim_state *s, int rank, int32_t item)
{
    int32_t first = s->recorded ? s->recorded[s->desc->number[rank]] : INT32_MAX;
    return item < first ? NULL : &s->record[s->record_base[rank] + (size_t)(item - first)];
}

/* Adds a lane to a list of those that wait. */
static void wait_for(sim_state *s, int rank, int lane, int16_t *waiting)
{
    s->lane[s->lane_base[rank] + (size_t)lane].next = *waiting;
    *waiting = (int16_t)lane;
}

/* Whether the word of a WAIT has arrived. If not, its lane waits for it. */
static bool word_has_come(sim_state *s, int rank, const sim_program *p, const sim_item *item)
{
    const peal_op *op = &p->schedule->op[item->op];
    const sim_channel *c = &p->channel[op->channel];
    sim_mail *mail = &s->mail[s->mail_base[rank] + (size_t)op->channel];
    uint32_t free_slots = op->credit ? (uint32_t)c->slots : 0;

    if (s->desc->free_messages || mail->arrived + free_slots >= item->message)
        return true;
    wait_for(s, rank, item->lane, &mail->waiting);
    return false;
}

/* Whether the items that an item needs have ended. If not, its lane waits for the lane of one. */
static bool needs_are_met(sim_state *s, int rank, const sim_program *p, const sim_item *item)
{
    sim_lane *lanes = &s->lane[s->lane_base[rank]];

    for (int i = 0; i < item->need_count; i++) {
        const sim_need *need = &p->need[item->need + i];
        sim_lane *other = &lanes[need->lane];
        if (other->head > need->item)
            continue;
        wait_for(s, rank, item->lane, &other->waiting);
        return false;
    }
    return true;
}

static void begin_epoch(sim_cpu *cpu, const sim_program *p, int32_t epoch, double known_s)
{
    double put_s = cpu->epoch_s + p->epoch_post[cpu->epoch];

    cpu->before_s = cpu->epoch_s;
    cpu->epoch_s = latest_of(known_s, put_s);
    cpu->epoch = epoch;
}

/* Whether the CPU has enqueued the item. If not, an event tries again when it has. Items of two
 * epochs ago were enqueued before the epoch after theirs began. */
static bool is_posted(sim_state *s, int rank, const sim_program *p, int32_t head)
{
    const sim_cpu *cpu = &s->cpu[rank];
    int32_t behind = cpu->epoch - p->item[head].epoch;

    if (!p->posted)
        return true;
    double posted = behind > 1    ? cpu->before_s
                    : behind == 1 ? cpu->before_s + p->posted[head]
                                  : cpu->epoch_s + p->posted[head];
    if (posted <= s->queue.now_s)
        return true;
    push(s, posted, rank, p->item[head].lane * EVENTS + ITEM_POSTED);
    return false;
}

/* The device runs the item, from now on or when it is free. Returns when it has. */
static double use_device(sim_state *s, int rank, const sim_item *item, int32_t head,
                         double device_s, sim_record *record)
{
    sim_device *device = &s->device[sim_device_of(&s->placement, rank, item->lane)];
    double begin = latest_of(s->queue.now_s, device->free_s);

    if (record && device->free_s > s->queue.now_s) {
        record->begin_s = begin;
        record->cause = device->item;
        record->cause_rank = device->rank;
    }
    *device = (sim_device){begin + device_s, rank, head};
    if (item->step >= 0 && item->step < s->steps)
        s->device_s += device_s;
    return begin + device_s;
}

/* Begins a copy to another rank's memory. On a network the adapter does it, and the lane goes on.
 */
static void begin_send(sim_state *s, int rank, const sim_program *p, const sim_item *item,
                       double begin)
{
    int channel = p->schedule->op[item->op].channel;
    int to = rank + (int)p->channel[channel].offset;
    peal_link_class link = sim_link_between(&s->placement, rank, to);
    double left = leave(s, link, rank, message_seconds(s, link, rank, p, channel), begin);

    if (link != PEAL_LINK_NETWORK) {
        push(s, left, rank, item->lane * EVENTS + COPY_LEFT);
        return;
    }
    s->sent_s[s->lane_base[rank] + (size_t)item->lane] = left;
    push(s, begin, rank, item->lane * EVENTS + ITEM_ENDS);
}

/* The bytes have left; the copy ends, and its lane goes on, when they have entered. */
static void end_send(sim_state *s, int rank, int lane)
{
    const sim_program *p = sim_program_of(s, rank);
    const sim_item *item = &p->item[s->lane[s->lane_base[rank] + (size_t)lane].head];
    int channel = p->schedule->op[item->op].channel;
    int to = rank + (int)p->channel[channel].offset;
    peal_link_class link = sim_link_between(&s->placement, rank, to);

    push(s, enter(s, link, to, message_seconds(s, link, rank, p, channel)), rank,
         lane * EVENTS + ITEM_ENDS);
}

/* Begins the item of a lane if it can begin now. */
static void begin_item(sim_state *s, int rank, int lane, cause by)
{
    const sim_program *p = sim_program_of(s, rank);
    int32_t head = s->lane[s->lane_base[rank] + (size_t)lane].head;
    const sim_item *item = &p->item[head];
    const peal_op *op = &p->schedule->op[item->op];
    const sim_cost *cost = &p->cost[item->op];
    double end = s->queue.now_s;

    if (!needs_are_met(s, rank, p, item) ||
        (op->kind == PEAL_OP_WAIT && !word_has_come(s, rank, p, item)))
        return;
    sim_record *record = record_of(s, rank, head);
    if (record)
        *record = (sim_record){.begin_s = s->queue.now_s, .cause = by.item, .cause_rank = by.rank};
    if (!is_posted(s, rank, p, head))
        return;
    if (s->begun_s)
        s->begun_s[s->lane_base[rank] + (size_t)lane] = s->queue.now_s;
    double device_s = cost->device_s > 0 ? jittered(s, cost->device_s, rank, head) : 0;
    double lane_s = jittered(s, cost->lane_s, rank, head);
    if (device_s > 0)
        end = use_device(s, rank, item, head, device_s, record);
    end += lane_s;
    if (op->kind == PEAL_OP_LAUNCH && item->step >= 0 && item->step < s->steps)
        s->task_s += device_s + lane_s;
    if (op->kind == PEAL_OP_COPY && op->copy == PEAL_COPY_SEND && cost->bytes > 0)
        begin_send(s, rank, p, item, end);
    else
        push(s, end, rank, lane * EVENTS + ITEM_ENDS);
}

/* Sends a word to the other end of its channel. It arrives after the link's latency; in mode serial
 * at once. */
static void send_word(sim_state *s, int rank, const sim_program *p, int channel, double begin)
{
    int to = rank + (int)p->channel[channel].offset;
    peal_link_class link = sim_link_between(&s->placement, rank, to);
    double way_s = s->placement.one ? 0 : s->placement.times->link[link].latency_s;
    double latency = jittered(s, way_s, rank, -1 - channel);
    int end = sim_network_peer(s->network, s->desc->number[rank], channel, s->desc->number[to]);

    push(s, begin + latency, to, end * EVENTS + WORD_ARRIVES);
}

static void end_write(sim_state *s, int rank, const sim_program *p, const sim_item *item)
{
    const peal_op *op = &p->schedule->op[item->op];
    const sim_channel *c = &p->channel[op->channel];
    peal_link_class link = sim_link_between(&s->placement, rank, rank + (int)c->offset);

    if (item->step >= 0 && item->step < s->steps) {
        s->credits += op->credit;
        s->traffic[link].messages += !op->credit;
        s->traffic[link].bytes += op->credit ? 0 : c->bytes;
    }
    if (s->desc->free_messages)
        return;
    if (link != PEAL_LINK_NETWORK || op->credit || !c->bytes)
        send_word(s, rank, p, op->channel, s->queue.now_s);
    else
        push(s, latest_of(s->queue.now_s, s->sent_s[s->lane_base[rank] + (size_t)item->lane]), rank,
             op->channel * EVENTS + MESSAGE_LEFT);
}

/* The bytes that the adapter sends have left: they, and then their word, enter the other node. */
static void enter_node(sim_state *s, int rank, int channel)
{
    const sim_program *p = sim_program_of(s, rank);
    int to = rank + (int)p->channel[channel].offset;
    double seconds = message_seconds(s, PEAL_LINK_NETWORK, rank, p, channel);

    send_word(s, rank, p, channel, enter(s, PEAL_LINK_NETWORK, to, seconds));
}

static void observe(sim_state *s, int rank, const sim_program *p, const sim_item *item)
{
    const peal_op *op = &p->schedule->op[item->op];
    sim_event event = {.rank = rank,
                       .op = item->op,
                       .begin_s = s->begun_s[s->lane_base[rank] + (size_t)item->lane],
                       .end_s = s->queue.now_s};

    if (op->kind == PEAL_OP_WRITE || op->kind == PEAL_OP_WAIT) {
        const peal_channel *c = &p->schedule->channel[op->channel];
        bool is_free =
            op->credit && op->kind == PEAL_OP_WAIT && item->message <= (uint32_t)c->slots;
        uint64_t message = op->credit && op->kind == PEAL_OP_WAIT
                               ? item->message - (uint32_t)c->slots
                               : item->message;
        event.flag = is_free ? 0 : peal_flag_value(c, message);
    }
    s->desc->observe(s->desc->user, &event);
}

/* Lets the lanes of a list try to go on. */
static void wake(sim_state *s, int rank, int16_t *waiting, cause by)
{
    const sim_lane *lanes = &s->lane[s->lane_base[rank]];
    int lane = *waiting;

    *waiting = NO_LANE;
    while (lane != NO_LANE) {
        int next = lanes[lane].next;
        begin_item(s, rank, lane, by);
        lane = next;
    }
}

/* The item of a lane has ended: the lane goes on, and so do lanes that waited for it. */
static void end_item(sim_state *s, int rank, int lane)
{
    const sim_program *p = sim_program_of(s, rank);
    sim_lane *mine = &s->lane[s->lane_base[rank] + (size_t)lane];
    int32_t head = mine->head;
    const sim_item *item = &p->item[head];
    sim_record *record = record_of(s, rank, head);
    cause by = {head, rank};

    s->executed++;
    if (record)
        record->end_s = s->queue.now_s;
    if (s->desc->observe)
        observe(s, rank, p, item);
    if (p->schedule->op[item->op].kind == PEAL_OP_WRITE)
        end_write(s, rank, p, item);
    if (p->is_verdict[head] && p->posted)
        begin_epoch(&s->cpu[rank], p, p->is_verdict[head], s->queue.now_s);
    if (item->step < 0)
        s->setup_end = s->queue.now_s;
    else if (item->step < s->steps && --s->left[item->step] == 0)
        s->step_end[item->step] = s->queue.now_s;
    if (item->step < s->steps) {
        s->last_rank = rank;
        s->last_item = head;
    }
    mine->head = item->next == NO_ITEM ? p->item_count : item->next;
    wake(s, rank, &mine->waiting, by);
    if (item->next != NO_ITEM)
        begin_item(s, rank, lane, by);
}

static void arrive(sim_state *s, int rank, int channel)
{
    sim_mail *mail = &s->mail[s->mail_base[rank] + (size_t)channel];

    mail->arrived++;
    wake(s, rank, &mail->waiting, (cause){-2 - channel, rank});
}

/* Begins an item that the CPU has now enqueued. What had enabled it before remains its cause. */
static void begin_posted(sim_state *s, int rank, int lane)
{
    const sim_record *record = record_of(s, rank, s->lane[s->lane_base[rank] + (size_t)lane].head);
    cause by = {NO_ITEM, rank};

    if (record)
        by = (cause){record->cause, record->cause_rank};
    begin_item(s, rank, lane, by);
}

static void handle_event(sim_state *s, int rank, int what)
{
    switch (what % EVENTS) {
    case ITEM_ENDS:
        end_item(s, rank, what / EVENTS);
        break;
    case ITEM_POSTED:
        begin_posted(s, rank, what / EVENTS);
        break;
    case COPY_LEFT:
        end_send(s, rank, what / EVENTS);
        break;
    case MESSAGE_LEFT:
        enter_node(s, rank, what / EVENTS);
        break;
    default:
        arrive(s, rank, what / EVENTS);
    }
}

void sim_state_run(sim_state *s)
{
    int rank, what;

    for (rank = 0; rank < s->desc->ranks; rank++) {
        const sim_program *p = sim_program_of(s, rank);
        for (int lane = 0; lane < p->lanes; lane++)
            if (p->first[lane] != NO_ITEM)
                begin_item(s, rank, lane, (cause){NO_ITEM, rank});
    }
    while (!s->no_memory && sim_queue_pop(&s->queue, &rank, &what))
        handle_event(s, rank, what);
}
