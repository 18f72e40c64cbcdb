/* `stream`: the thread that walks a rank runs ahead and enqueues op instances on the rank's lanes.
 * A lane runs its queue in order, and waits for ops of other lanes.
 *
 * What an instance depends on is known when it is enqueued. A record of the queue has its counters,
 * which storage each array names, and the count that each other op must have reached. A run-time
 * condition makes the walk wait for its verdict (lag 0), or for one that is some evaluations old.
 */
#include "backends/host/execute.h"
#include "backends/host/threads.h"
#include "backends/host/walk.h"

#include <string.h>

enum { QUEUE_WORDS = 1 << 14, RECORD_HEAD = 4, END_OF_RUN = -1 };

typedef struct lane_queue {
    uint64_t *word; /* a ring */
    uint64_t capacity;
    host_count head; /* how many words the walk has written */
    host_count tail; /* how many words the lane has finished with */
} lane_queue;

typedef struct stream_lane {
    lane_queue queue;
    host_context context;
    int64_t *counter; /* counters of the record that it runs */
    int *binding;
    uint64_t *target;
    int number;
    _Atomic int64_t step; /* of the record that it runs, or ran last */
} stream_lane;

typedef struct stream_rank {
    host_walk walk;
    stream_lane *lane;
    int lanes;
    int depth; /* counters in a record */
} stream_rank;

typedef struct stream_state {
    stream_rank *rank;
    _Atomic int64_t shown; /* steps that somebody was told to be done */
    int per_rank;          /* threads: one that walks, and the lanes of the rank that has most */
} stream_state;

static int lane_of(const stream_rank *me, int op)
{
    int lane = me->walk.rank->schedule->op[op].lane;
    return lane > 0 ? lane % me->lanes : 0;
}

/* The walk. */

static bool make_room(stream_rank *me, lane_queue *queue, uint64_t words)
{
    uint64_t head = queue->head.value;
    uint64_t needed = head + words - queue->capacity;
    host_wait wait = host_walk_wait(&me->walk, HOST_WAIT_QUEUE, -1);

    if (head + words <= queue->capacity || host_word_reached(&queue->tail.value, needed))
        return true;
    return host_wait_slow(&wait, &queue->tail.value, needed);
}

static void put(lane_queue *queue, uint64_t *at, uint64_t value)
{
    queue->word[(*at)++ % queue->capacity] = value;
}

/* How many ops' dependences a record has: a WAIT whose message lands in place has those of its
 * UNPACK, too, which is the next op of the lane. */
static int depending(const stream_rank *me, int op)
{
    return me->walk.rank->op[op].lands ? 2 : 1;
}

static uint64_t record_words(const stream_rank *me, int op)
{
    const peal_schedule *schedule = me->walk.rank->schedule;
    uint64_t words = RECORD_HEAD + (uint64_t)me->depth + (uint64_t)schedule->array_count;
    for (int i = 0; i < depending(me, op); i++)
        words += (uint64_t)schedule->op[op + i].dependence_count;
    return words;
}

static bool enqueue(host_walk *walk, void *user)
{
    stream_rank *me = user;
    int index = walk->position;
    lane_queue *queue = &me->lane[lane_of(me, index)].queue;

    if (walk->jitter)
        host_jitter(&walk->jitter);
    if (!make_room(me, queue, record_words(me, index)))
        return false;
    uint64_t at = queue->head.value;
    uint64_t body = at + RECORD_HEAD;
    for (int k = 0; k < depending(me, index); k++) {
        const peal_op *op = &walk->rank->schedule->op[index + k];
        for (int i = 0; i < op->dependence_count; i++) {
            const peal_dependence *d = &op->dependence[i];
            put(queue, &body, peal_dispatch_target(walk->passed[d->op], d->lag, 1, 0));
        }
    }
    for (int i = 0; i < me->depth; i++)
        put(queue, &body, (uint64_t)walk->counter[i]);
    for (int i = 0; i < walk->rank->schedule->array_count; i++)
        put(queue, &body, (uint64_t)walk->binding[i]);
    peal_walk_frame frame = host_walk_pass(walk);
    put(queue, &at, (uint64_t)index);
    put(queue, &at, frame.message);
    put(queue, &at, frame.instance);
    put(queue, &at, 0);
    /* Pairs with the acquire load in serve. */
    host_word_store(&queue->head.value, body);
    return true;
}

static void enqueue_end(stream_rank *me)
{
    for (int i = 0; i < me->lanes; i++) {
        lane_queue *queue = &me->lane[i].queue;
        if (!make_room(me, queue, RECORD_HEAD))
            return;
        uint64_t at = queue->head.value;
        put(queue, &at, (uint64_t)END_OF_RUN);
        host_word_store(&queue->head.value, at + RECORD_HEAD - 1);
    }
}

/* A lane. */

static bool await_ops(stream_rank *me, stream_lane *lane, int index, const uint64_t *target)
{
    const peal_op *op = &me->walk.rank->schedule->op[index];

    for (int i = 0; i < op->dependence_count; i++) {
        int other = op->dependence[i].op;
        peal_op_kind kind = me->walk.rank->op[other].kind;
        bool works = kind == PEAL_OP_LAUNCH || kind == PEAL_OP_COPY || kind == PEAL_OP_WRITE ||
                     kind == PEAL_OP_WAIT;
        if (!works || target[i] == 0 || lane_of(me, other) == lane->number)
            continue;
        /* Pairs with the release store in run_record. */
        const peal_dispatch_word *done = &host_done(me->walk.rank, other, 0)->value;
        if (host_word_reached(done, target[i]))
            continue;
        host_wait wait = {.rank = me->walk.rank,
                          .kind = HOST_WAIT_TILES,
                          .worker = lane->number,
                          .op = index,
                          .other_op = other,
                          .step = lane->counter[0]};
        if (!host_wait_slow(&wait, done, target[i]))
            return false;
    }
    return true;
}

static uint64_t get(const lane_queue *queue, uint64_t *at)
{
    return queue->word[(*at)++ % queue->capacity];
}

static bool run_record(stream_rank *me, stream_lane *lane, int index, uint64_t at)
{
    host_rank *rank = me->walk.rank;
    const lane_queue *queue = &lane->queue;
    peal_walk_frame frame = {.counter = lane->counter, .binding = lane->binding};

    frame.message = get(queue, &at);
    frame.instance = get(queue, &at);
    at++;
    int own = rank->schedule->op[index].dependence_count, all = own;
    if (depending(me, index) > 1)
        all += rank->schedule->op[index + 1].dependence_count;
    for (int i = 0; i < all; i++)
        lane->target[i] = get(queue, &at);
    for (int i = 0; i < me->depth; i++)
        lane->counter[i] = (int64_t)get(queue, &at);
    for (int i = 0; i < rank->schedule->array_count; i++)
        lane->binding[i] = (int)get(queue, &at);
    atomic_store_explicit(&lane->step, lane->counter[0], memory_order_relaxed);
    if (!await_ops(me, lane, index, lane->target) ||
        (all > own && !await_ops(me, lane, index + 1, lane->target + own)) ||
        !host_execute(&lane->context, &rank->op[index], &frame))
        return false;
    /* Pairs with the acquire loads in await_ops and in read_verdict (walk.c). */
    host_word_store(&host_done(rank, index, 0)->value, frame.instance);
    /* Pairs with the acquire load in make_room: the record has been read. */
    host_word_store(&lane->queue.tail.value, at);
    return true;
}

static void serve(stream_rank *me, stream_lane *lane)
{
    lane_queue *queue = &lane->queue;
    uint64_t jitter = me->walk.rank->plan->desc.hooks.jitter_seed;

    for (;;) {
        uint64_t at = queue->tail.value;
        host_wait wait = {.rank = me->walk.rank,
                          .kind = HOST_WAIT_QUEUE,
                          .worker = lane->number,
                          .op = -1,
                          .other_op = -1};
        if (!host_word_reached(&queue->head.value, at + 1) &&
            !host_wait_slow(&wait, &queue->head.value, at + 1))
            return;
        int index = (int)(int64_t)get(queue, &at);
        if (index == END_OF_RUN) {
            host_word_store(&queue->tail.value, at + RECORD_HEAD - 1);
            return;
        }
        if (jitter)
            host_jitter(&jitter);
        if (!run_record(me, lane, index, at))
            return;
    }
}

static void body(host_plan *plan, int index)
{
    stream_state *state = plan->executor_data;
    stream_rank *me = &state->rank[index / state->per_rank];
    int role = index % state->per_rank;

    if (role > me->lanes)
        return;
    if (role > 0) {
        serve(me, &me->lane[role - 1]);
        return;
    }
    if (host_walk_run(&me->walk, enqueue, me))
        enqueue_end(me);
    for (int i = 0; i < me->walk.rank->schedule->array_count; i++)
        me->walk.rank->final_binding[i] = me->walk.binding[i];
}

static void create_lane(host_plan *plan, stream_rank *me, int number)
{
    const peal_schedule *schedule = me->walk.rank->schedule;
    stream_lane *lane = &me->lane[number];
    uint64_t longest = 1;

    for (int i = 0; i < schedule->op_count; i++) {
        uint64_t words = record_words(me, i);
        longest = words > longest ? words : longest;
    }
    lane->number = number;
    lane->queue.capacity = 8 * longest > QUEUE_WORDS ? 8 * longest : QUEUE_WORDS;
    lane->queue.word = PEAL_ARENA_ARRAY(plan->arena, uint64_t, lane->queue.capacity);
    lane->counter = PEAL_ARENA_ARRAY(plan->arena, int64_t, me->depth);
    lane->binding = PEAL_ARENA_ARRAY(plan->arena, int, schedule->array_count + 1);
    lane->target = PEAL_ARENA_ARRAY(plan->arena, uint64_t, longest);
    host_context_init(&lane->context, me->walk.rank, number);
}

static peal_status create(host_plan *plan)
{
    stream_state *state = PEAL_ARENA_NEW(plan->arena, stream_state);

    plan->executor_data = state;
    state->rank = PEAL_ARENA_ARRAY(plan->arena, stream_rank, plan->rank_count);
    for (int i = 0; i < plan->rank_count; i++) {
        stream_rank *me = &state->rank[i];
        const peal_schedule *schedule = plan->rank[i].schedule;
        host_walk_init(&me->walk, &plan->rank[i], 0, true);
        me->lanes = schedule->lanes > 0 ? schedule->lanes : 1;
        me->depth = schedule->loop_depth > 0 ? schedule->loop_depth : 1;
        me->lane = host_aligned(plan->arena, (size_t)me->lanes * sizeof(stream_lane));
        for (int k = 0; k < me->lanes; k++)
            create_lane(plan, me, k);
        if (me->lanes + 1 > state->per_rank)
            state->per_rank = me->lanes + 1;
    }
    return host_threads_create(plan, state->per_rank, body, &plan->threads);
}

/* The walk is ahead: done are the steps that all lanes of the first rank have behind them. A lane
 * without records is as far as the walk was before that was seen. */
static int64_t progress(const host_plan *plan)
{
    stream_state *state = plan->executor_data;
    const stream_rank *first = &state->rank[0];
    /* pairs with the release in host_walk_step_done: records of these steps are seen, too */
    int64_t steps = atomic_load_explicit(&first->walk.steps, memory_order_acquire);
    for (int k = 0; k < first->lanes; k++) {
        const stream_lane *lane = &first->lane[k];
        int64_t step = atomic_load_explicit(&lane->step, memory_order_relaxed);
        uint64_t written = PEAL_DISPATCH_LOAD_ACQUIRE(&lane->queue.head.value);
        if (!host_word_reached(&lane->queue.tail.value, written) && step < steps)
            steps = step;
    }
    int64_t shown = atomic_load(&state->shown);
    while (steps > shown && !atomic_compare_exchange_weak(&state->shown, &shown, steps))
        ;
    return steps > shown ? steps : shown;
}

const host_executor host_stream = {create, host_start, host_wait_all, host_destroy, progress};
