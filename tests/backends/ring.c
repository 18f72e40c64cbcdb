/* Builds the schedules of a ring by hand, as the scheduler would: ops in walk order, dependences by
 * tile where they are. */
#include "tests/backends/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rank_builder {
    ring_job *job;
    peal_schedule *schedule;
    peal_op *op;
    peal_schedule_task *task;
    peal_channel *channel;
    int rank;
} rank_builder;

/* The kernels, as an application would give them. */

static void init_tile(const peal_call *call)
{
    double *a = call->view[0].base;
    for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++) {
        int64_t n = call->argument[0].integer;
        int64_t p = (x + n) % n;
        a[x] = (double)(p * p % 97) - 40;
    }
}

static void relax_tile(const peal_call *call)
{
    const double *a = call->view[0].base;
    double *an = call->view[1].base;
    double sum = 0;
    for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++) {
        an[x] = 0.25 * a[x - 1] + 0.5 * a[x] + 0.3 * a[x + 1] + 0.01 * (double)(x % 5);
        sum += an[x] * an[x];
    }
    if (call->partial_count > 0 && call->partial[0])
        *(double *)call->partial[0] = sum;
}

/* Expressions. */

static const peal_expr *constant(peal_arena *arena, int64_t value)
{
    peal_expr *e = PEAL_ARENA_NEW(arena, peal_expr);
    *e = (peal_expr){.kind = PEAL_EXPR_CONSTANT, .value = {PEAL_INTEGER, {.integer = value}}};
    return e;
}

static const peal_expr *element(peal_arena *arena, int array)
{
    peal_expr *e = PEAL_ARENA_NEW(arena, peal_expr);
    *e = (peal_expr){.kind = PEAL_EXPR_ELEMENT, .index = array};
    return e;
}

static const peal_expr *operate(peal_arena *arena, peal_operator op, const peal_expr *a,
                                const peal_expr *b)
{
    const peal_expr **operand = PEAL_ARENA_ARRAY(arena, const peal_expr *, 2);
    peal_expr *e = PEAL_ARENA_NEW(arena, peal_expr);
    operand[0] = a;
    operand[1] = b;
    *e = (peal_expr){.kind = PEAL_EXPR_OPERATOR, .op = op, .operand_count = 2, .operand = operand};
    return e;
}

/* Arrays. */

static peal_box line(int64_t lo, int64_t hi)
{
    return (peal_box){.axis_count = 1, .lo = {lo}, .hi = {hi, 1, 1, 1}};
}

static void add_arrays(rank_builder *b)
{
    static const char *const names[] = {"a", "an", "norm", "partials", "hits", "late"};
    const ring_options *o = &b->job->options;
    peal_schedule_array *array = PEAL_ARENA_ARRAY(b->job->arena, peal_schedule_array, RING_ARRAYS);
    int64_t first = (int64_t)b->rank * o->points;

    for (int i = 0; i < RING_ARRAYS; i++) {
        int64_t count = i == RING_PARTIALS ? o->tiles : 1;
        peal_layout *layout = &array[i].layout;
        bool field = i <= RING_AN;
        array[i].name = names[i];
        array[i].type = PEAL_F64;
        array[i].swap_group = field ? 0 : -1;
        layout->part = layout->own = field ? line(first, first + o->points) : line(0, count);
        layout->stored = field ? line(first - 1, first + o->points + 1) : layout->own;
        int64_t points = layout->stored.hi[0] - layout->stored.lo[0];
        for (int k = 0; k < PEAL_AXES; k++)
            layout->stride[k] = k == 0 ? 1 : points;
        layout->bytes = points * 8;
        layout->offset = b->schedule->segment_bytes;
        b->schedule->segment_bytes += (layout->bytes + 63) / 64 * 64;
    }
    b->schedule->array = array;
    b->schedule->array_count = RING_ARRAYS;
}

/* Channels 0 and 1 go out to the left and right, 2 and 3 come in from there. */
static void add_channels(rank_builder *b)
{
    const ring_options *o = &b->job->options;
    int64_t first = (int64_t)b->rank * o->points, n = o->points, all = n * o->ranks;
    int slots = o->slots > 0 ? o->slots : 1;

    b->channel = PEAL_ARENA_ARRAY(b->job->arena, peal_channel, 4);
    for (int i = 0; i < 4; i++) {
        bool out = i < 2, left = i % 2 == 0;
        peal_channel *c = &b->channel[i];
        peal_piece *piece = PEAL_ARENA_NEW(b->job->arena, peal_piece);
        int at_receiver = out ? (left ? 1 : 0) : (left ? 0 : 1); /* from its right: 1 */
        c->outgoing = out;
        c->peer = (b->rank + (left ? o->ranks - 1 : 1)) % o->ranks;
        c->transport = PEAL_TRANSPORT_SELF;
        c->edge = peal_arena_print(b->job->arena, "exchange an@7 [%d] %d->%d",
                                   (left ? -1 : 1) * (out ? 1 : -1), out ? b->rank : c->peer,
                                   out ? c->peer : b->rank);
        c->quantum = (uint64_t)1 << 60;
        c->slots = slots;
        c->flag_offset = b->schedule->segment_bytes + at_receiver * 64;
        c->credit_offset =
            o->direct || o->slots == 0
                ? -1
                : b->schedule->segment_bytes + 128 + (out ? (left ? 0 : 64) : (left ? 64 : 0));
        c->staging_bytes = o->direct ? 0 : 64;
        c->staged_count = o->direct ? 0 : 1;
        c->staging_offset = b->schedule->segment_bytes + 256 + at_receiver * 64 * slots;
        c->message_bytes = 8;
        /* The sender's border point; at the receiver the halo point, in its coordinates. */
        int64_t from = out ? (left ? first : first + n - 1)
                           : (left ? (first + all - 1) % all : (first + n) % all);
        int64_t to = out ? (left ? from + (b->rank == 0 ? all : 0)
                                 : from - (b->rank == o->ranks - 1 ? all : 0))
                         : (left ? first - 1 : first + n);
        *piece = (peal_piece){.array = RING_AN,
                              .target_array = RING_AN,
                              .source = line(from, from + 1),
                              .target = {to},
                              .target_extent = {1, 1, 1, 1},
                              .direct = o->direct,
                              .bytes = 8};
        c->piece = piece;
        c->piece_count = 1;
    }
    b->schedule->segment_bytes += 256 + 2 * 64 * slots;
    b->schedule->channel = b->channel;
    b->schedule->channel_count = 4;
}

/* Tasks. */

enum {
    TASK_INIT,
    TASK_RELAX,
    TASK_FOLD,
    TASK_COUNT_HITS,
    TASK_IS_LATE,
    TASK_COUNT_LATE,
    TASK_IS_DONE,
    TASKS
};

static const peal_task_access *access_of(peal_arena *arena, int count, int first, int second)
{
    peal_task_access *access = PEAL_ARENA_ARRAY(arena, peal_task_access, 2);
    access[0] = (peal_task_access){.array = first,
                                   .mode = count == 1 ? PEAL_WRITE_ACCESS : PEAL_READ_ACCESS};
    access[1] = (peal_task_access){.array = second, .mode = PEAL_WRITE_ACCESS};
    return access;
}

static void add_tiled_task(rank_builder *b, int index, const char *name, peal_function function,
                           peal_box box, int tiles)
{
    peal_tiling *tiling = PEAL_ARENA_NEW(b->job->arena, peal_tiling);
    int64_t points = box.hi[0] - box.lo[0];
    peal_schedule_task *task = &b->task[index];

    *tiling = (peal_tiling){.box = box, .extent = {(points + tiles - 1) / tiles, 1, 1, 1}};
    tiling->count[0] = (points + tiling->extent[0] - 1) / tiling->extent[0];
    tiling->count[1] = tiling->count[2] = tiling->count[3] = 1;
    task->name = name;
    task->function = function;
    task->tiling = tiling;
    task->tiling_count = 1;
    task->tile_count = tiling->count[0];
}

static void add_value_task(rank_builder *b, int index, const char *name, peal_task_kind kind,
                           int target, const peal_expr *value)
{
    b->task[index] = (peal_schedule_task){.kind = kind,
                                          .name = name,
                                          .tile_count = 1,
                                          .array = target,
                                          .decision = target,
                                          .value = value};
}

static void add_tasks(rank_builder *b)
{
    const ring_options *o = &b->job->options;
    peal_arena *arena = b->job->arena;
    const peal_layout *a = &b->schedule->array[RING_A].layout;
    const peal_expr *hits = element(arena, RING_HITS);

    b->task = PEAL_ARENA_ARRAY(arena, peal_schedule_task, TASKS);
    add_tiled_task(b, TASK_INIT, "init", init_tile, a->stored, 1);
    b->task[TASK_INIT].access = access_of(arena, 1, RING_A, 0);
    b->task[TASK_INIT].access_count = 1;
    const peal_expr **argument = PEAL_ARENA_ARRAY(arena, const peal_expr *, 1);
    argument[0] = constant(arena, (int64_t)o->points * o->ranks);
    b->task[TASK_INIT].argument = argument;
    b->task[TASK_INIT].argument_is_real = PEAL_ARENA_ARRAY(arena, bool, 1);
    b->task[TASK_INIT].argument_count = 1;
    add_tiled_task(b, TASK_RELAX, "relax", relax_tile, a->part, o->tiles);
    b->task[TASK_RELAX].access = access_of(arena, 2, RING_A, RING_AN);
    b->task[TASK_RELAX].access_count = 2;
    if (o->norm) {
        peal_task_reduction *reduction = PEAL_ARENA_NEW(arena, peal_task_reduction);
        *reduction = (peal_task_reduction){RING_NORM, RING_PARTIALS, PEAL_SUM};
        b->task[TASK_RELAX].reduction = reduction;
        b->task[TASK_RELAX].reduction_count = 1;
    }
    b->task[TASK_FOLD] = (peal_schedule_task){.kind = PEAL_TASK_FOLD,
                                              .name = "fold",
                                              .tile_count = 1,
                                              .array = RING_NORM,
                                              .gather = RING_PARTIALS,
                                              .contributions = b->task[TASK_RELAX].tile_count,
                                              .combine = PEAL_SUM};
    add_value_task(b, TASK_COUNT_HITS, "count hits", PEAL_TASK_SET, RING_HITS,
                   operate(arena, PEAL_OPERATOR_ADD, hits, constant(arena, 1)));
    add_value_task(b, TASK_IS_LATE, "is late", PEAL_TASK_DECIDE, 0,
                   operate(arena, PEAL_OPERATOR_GREATER, hits, constant(arena, 3)));
    add_value_task(b, TASK_COUNT_LATE, "count late", PEAL_TASK_SET, RING_LATE,
                   operate(arena, PEAL_OPERATOR_ADD, element(arena, RING_LATE),
                           constant(arena, 1)));
    add_value_task(b, TASK_IS_DONE, "is done", PEAL_TASK_DECIDE, 1,
                   operate(arena, PEAL_OPERATOR_GREATER_EQUAL, hits, constant(arena, o->limit)));
    if (o->kernel_file) {
        b->task[TASK_INIT].function = b->task[TASK_RELAX].function = NULL;
        b->task[TASK_INIT].kernel = "init";
        b->task[TASK_RELAX].kernel = o->relax ? o->relax : "relax";
        b->task[TASK_RELAX].source = (peal_source){"ring.yaml", 12, 5};
    }
    b->schedule->task = b->task;
    b->schedule->task_count = TASKS;
}

/* Ops. */

static int add_op(rank_builder *b, peal_op op, const char *label, int lane, int event)
{
    int index = b->schedule->op_count++;
    op.statement = event;
    op.event = event;
    op.lane = lane;
    op.label = label;
    op.dependence = PEAL_ARENA_ARRAY(b->job->arena, peal_dependence, 12);
    b->op[index] = op;
    return index;
}

static peal_dependence *depend(rank_builder *b, int op, int on, int lag)
{
    peal_op *at = &b->op[op];
    peal_dependence *d = (peal_dependence *)&at->dependence[at->dependence_count++];
    *d = (peal_dependence){.op = on, .lag = lag, .all = true, .b_tiling = -1};
    return d;
}

/* Tile j of op on tiles j + low .. j + high; from_one: the only tile of op is j = 0. */
static void depend_tiles(rank_builder *b, int op, int on, int lag, int64_t low, int64_t high,
                         bool from_one, int64_t last)
{
    peal_dependence *d = depend(b, op, on, lag);
    d->all = false;
    for (int k = 0; k < PEAL_AXES; k++)
        d->map[k] = (peal_map_axis){.b_axis = -1, .divisor = 1};
    d->map[0] = (peal_map_axis){.b_axis = from_one ? -1 : 0,
                                .step = from_one ? 0 : 1,
                                .low = low,
                                .high = high,
                                .divisor = 1,
                                .last = last};
}

static int launch(rank_builder *b, int task, int lane, int event)
{
    peal_tile_range *range = PEAL_ARENA_NEW(b->job->arena, peal_tile_range);
    const peal_schedule_task *t = &b->task[task];
    peal_op op = {.kind = PEAL_OP_LAUNCH, .task = task, .channel = -1};

    if (t->tiling_count > 0) {
        for (int k = 0; k < PEAL_AXES; k++)
            range->hi[k] = t->tiling[0].count[k];
        op.range = range;
        op.range_count = 1;
    }
    return add_op(b, op, t->name, lane, event);
}

static int message_op(rank_builder *b, peal_op_kind kind, int channel, bool credit,
                      peal_copy_kind copy, const char *label, int event)
{
    peal_op op = {.kind = kind, .channel = channel, .credit = credit, .copy = copy};
    return add_op(b, op, label, channel, event);
}

static void add_sends(rank_builder *b, int relax)
{
    const ring_options *o = &b->job->options;
    int64_t tiles = b->task[TASK_RELAX].tile_count;

    for (int c = 0; c < 2; c++) {
        int credit = -1;
        if (b->channel[c].credit_offset >= 0 && o->mode != PEAL_MODE_SERIAL)
            credit = message_op(b, PEAL_OP_WAIT, c, true, PEAL_COPY_SEND, "await credit", 2);
        int copy = message_op(b, PEAL_OP_COPY, c, false, PEAL_COPY_SEND, "send", 2);
        int write = message_op(b, PEAL_OP_WRITE, c, false, PEAL_COPY_SEND, "ring", 2);
        int64_t border = c == 0 ? 0 : tiles - 1;
        if (credit >= 0)
            depend(b, copy, credit, 0);
        depend_tiles(b, copy, relax, 0, border, border, true, tiles - 1);
        depend(b, write, copy, 0);
        /* relax of the step after next writes what is being sent */
        depend_tiles(b, relax, copy, 1, -border, -border, false, 0);
    }
}

static void add_receives(rank_builder *b, int relax)
{
    const ring_options *o = &b->job->options;
    int64_t tiles = b->task[TASK_RELAX].tile_count;

    for (int c = 2; c < 4; c++) {
        int64_t border = c == 2 ? 0 : tiles - 1;
        int ready = message_op(b, PEAL_OP_WAIT, c, false, PEAL_COPY_SEND, "receive", 3);
        if (!o->direct) {
            int unpack = message_op(b, PEAL_OP_COPY, c, false, PEAL_COPY_UNPACK, "unpack", 3);
            depend(b, unpack, ready, 0);
            depend_tiles(b, unpack, relax, 1, border, border, true, tiles - 1);
            ready = unpack;
        }
        depend_tiles(b, relax, ready, 0, -border, -border, false, 0);
        if (b->channel[c].credit_offset >= 0 && o->mode != PEAL_MODE_SERIAL) {
            int credit = message_op(b, PEAL_OP_WRITE, c, true, PEAL_COPY_SEND, "give credit", 3);
            depend(b, credit, ready, 0);
        }
    }
}

static void add_branch(rank_builder *b, int hits)
{
    int decide = launch(b, TASK_IS_LATE, 2, 5);
    depend(b, decide, hits, 0);
    depend(b, hits, decide, 0);
    int branch = add_op(b, (peal_op){.kind = PEAL_OP_IF, .decision = 0, .channel = -1}, "if", 0, 6);
    int late = launch(b, TASK_COUNT_LATE, 0, 6);
    depend(b, late, late, 0);
    int end = add_op(b, (peal_op){.kind = PEAL_OP_END, .end = branch, .channel = -1}, "end", 0, 6);
    b->op[branch].end = end;
}

static void add_ops(rank_builder *b)
{
    const ring_options *o = &b->job->options;
    int64_t last = b->task[TASK_RELAX].tile_count - 1;
    int hits = -1;

    b->op = PEAL_ARENA_ARRAY(b->job->arena, peal_op, RING_OPS);
    int init = launch(b, TASK_INIT, 0, 0);
    b->schedule->setup = (peal_section){0, 1};
    int relax = launch(b, TASK_RELAX, 0, 1);
    depend(b, relax, init, 0);
    depend_tiles(b, relax, relax, 0, -1, 1, false, last);
    if (o->norm) {
        int fold = launch(b, TASK_FOLD, 1, 1);
        b->op[fold].event = 4;
        depend(b, fold, relax, 0);
        depend(b, relax, fold, 0);
    }
    add_sends(b, relax);
    add_receives(b, relax);
    if (o->limit > 0) {
        hits = launch(b, TASK_COUNT_HITS, 1, 4);
        depend(b, hits, hits, 0);
    }
    if (o->branch)
        add_branch(b, hits);
    add_op(b, (peal_op){.kind = PEAL_OP_SWAP, .first = RING_A, .second = RING_AN, .channel = -1},
           "swap", 0, 7);
    if (o->limit > 0) {
        int decide = launch(b, TASK_IS_DONE, 0, 8);
        depend(b, decide, hits, 0);
        depend(b, hits, decide, 0);
        b->schedule->outer.until = true;
        b->schedule->outer.decision = 1;
        b->schedule->outer.every = o->every ? constant(b->job->arena, o->every) : NULL;
        b->schedule->outer.lag = o->lag ? constant(b->job->arena, o->lag) : NULL;
    }
    b->schedule->op = b->op;
    b->schedule->step = (peal_section){1, b->schedule->op_count};
    b->schedule->finish = (peal_section){b->schedule->op_count, b->schedule->op_count};
    b->schedule->decision_count = 2;
}

void ring_build_rank(ring_job *job, int rank)
{
    peal_schedule *schedule = &job->schedule[rank];
    rank_builder b = {.job = job, .schedule = schedule, .rank = rank};

    *schedule = (peal_schedule){.graph = &job->graph,
                                .machine = &job->machine,
                                .mode = job->options.mode,
                                .rank = rank,
                                .rank_position = {rank},
                                .rank_dims = {job->options.ranks, 1, 1},
                                .workers = job->options.workers,
                                .lanes = job->options.lanes,
                                .loop_depth = 1};
    add_arrays(&b);
    add_channels(&b);
    add_tasks(&b);
    add_ops(&b);
    schedule->segment_bytes = (schedule->segment_bytes + 4095) / 4096 * 4096;
}
