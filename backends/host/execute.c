/* Runs the bodies of ops. Everything that is the same in all instances was prepared. */
#define _GNU_SOURCE
#include "backends/host/execute.h"
#include "backends/host/network.h"

#include "backends/host/crash.h"
#include "backends/host/fold.h"
#include "backends/host/walk.h"
#include "base/count.h"
#include "base/prefetch.h"
#include "base/stored.h"

#include <string.h>

void host_context_init(host_context *context, host_rank *rank, int worker)
{
    int tasks = rank->schedule->task_count;

    *context = (host_context){.rank = rank, .worker = worker};
    context->call = PEAL_ARENA_ARRAY(rank->plan->arena, peal_call, tasks + 1);
    for (int i = 0; i < tasks; i++)
        context->call[i] = rank->task[i].call;
}

/* Tiles. */

void host_launch_init(host_launch *launch, host_context *context, const host_op *op,
                      const peal_walk_frame *frame, const host_share *share)
{
    *launch = (host_launch){
        .context = context, .op = op, .frame = frame, .share = share, .partials = true};
    launch->end = INT64_MAX;
    launch->call = &context->call[op->task - context->rank->task];
}

bool host_count_fits(host_rank *rank, const peal_op *op, int64_t step, int64_t count, int64_t most)
{
    if (count >= 0 && count <= most)
        return true;
    return host_fail(rank->plan,
                     peal_count_report(rank->plan->late, rank->schedule, op, step, count, most));
}

/* How many points of its box a task visits. */
static bool count_points(host_launch *launch)
{
    host_rank *rank = launch->context->rank;
    const host_task *task = launch->op->task;

    return host_evaluate_integer(rank, &task->count, launch->frame, 0, &launch->end) &&
           host_count_fits(rank, launch->op->source, launch->frame->counter[0], launch->end,
                           task->source->tiling[0].box.hi[0]);
}

/* Sets bases, which depend on swaps, and arguments. These may read buffers, so this runs after the
 * first tile's waits. */
static bool prepare_call(host_launch *launch)
{
    host_rank *rank = launch->context->rank;
    const host_task *task = launch->op->task;
    const peal_walk_frame *frame = launch->frame;

    launch->prepared = true;
    launch->function = task->full;
    if (task->source->reduction_count > 0) {
        if (!host_evaluate_boolean(rank, &task->needed, frame, true, &launch->partials))
            return false;
        if (!launch->partials) {
            launch->function = task->no_reduction;
            memset(launch->call->partial, 0, sizeof(launch->call->partial));
        }
    }
    for (int i = 0; i < task->source->access_count; i++)
        launch->call->view[i].base = rank->origin[frame->binding[task->source->access[i].array]];
    if (task->count.expr && !count_points(launch))
        return false;
    if (task->has_constant_arguments)
        return true;
    for (int i = 0; i < task->source->argument_count; i++) {
        peal_value value;
        if (!host_evaluate(rank, &task->argument[i], frame, &value))
            return false;
        if (task->source->argument_is_real[i])
            launch->call->argument[i].real =
                value.kind == PEAL_REAL ? value.u.real : (double)value.u.integer;
        else
            launch->call->argument[i].integer =
                value.kind == PEAL_BOOLEAN ? value.u.boolean : value.u.integer;
    }
    return true;
}

/* Sets what differs from tile to tile beside the box: where partials go, and views of accesses with
 * a number of elements a tile. */
static void shift_call(const host_launch *launch)
{
    const host_rank *rank = launch->context->rank;
    const peal_schedule_task *task = launch->op->task->source;
    peal_call *call = launch->call;
    int64_t tile = call->tile.index;

    for (int i = 0; launch->partials && i < task->reduction_count; i++) {
        int array = task->reduction[i].partials;
        size_t bytes = peal_type_bytes(rank->schedule->array[array].type);
        call->partial[i] = rank->first[launch->frame->binding[array]] + (size_t)tile * bytes;
    }
    if (!launch->op->task->shifts)
        return;
    for (int i = 0; i < task->access_count; i++) {
        const peal_task_access *access = &task->access[i];
        if (access->per_tile > 0) {
            int64_t bytes = (int64_t)peal_type_bytes(rank->schedule->array[access->array].type);
            unsigned char *base = rank->origin[launch->frame->binding[access->array]];
            call->view[i].base = base + tile * access->per_tile * bytes;
        }
    }
}

/* A tile behind the last visited point adds nothing to its task's results. */
static void clear_partials(const host_launch *launch)
{
    const host_rank *rank = launch->context->rank;
    const peal_schedule_task *task = launch->op->task->source;

    for (int i = 0; launch->partials && i < task->reduction_count; i++)
        host_fold(rank->schedule->array[task->reduction[i].partials].type,
                  task->reduction[i].combine, NULL, 0, 1, launch->call->partial[i]);
}

static inline void call_tile(const host_launch *launch)
{
    peal_call *call = launch->call;

    if (call->tile.hi[0] > launch->end)
        call->tile.hi[0] = (int)launch->end;
    if (call->tile.lo[0] < launch->end)
        launch->function(call);
    else
        clear_partials(launch);
}

static inline void enter_run(peal_call *call, const host_run *run, int64_t offset)
{
    memcpy(call->tile.lo, run->lo, sizeof(call->tile.lo));
    memcpy(call->tile.hi, run->hi, sizeof(call->tile.hi));
    call->tile.lo[0] += (int)(offset * run->extent);
    call->tile.index = run->first + offset;
}

bool host_launch_tiles(host_launch *launch, int64_t count, peal_dispatch_word *done, uint64_t base)
{
    const host_task *task = launch->op->task;
    peal_call *call = launch->call;
    bool shift = task->shifts || (task->source->reduction_count > 0);

    if (launch->op->skipped) {
        if (done && count > 0)
            host_word_store(done, base + (uint64_t)count); /* workers that wait for it go on */
        return true;
    }
    if (count > 0 && !launch->prepared && !prepare_call(launch))
        return false;
    host_enter(launch->context, launch->op, call, launch->frame->counter[0]);
    while (count > 0) {
        const host_run *run = &launch->share->run[launch->run];
        int64_t here = run->count - launch->offset;
        here = here < count ? here : count;
        enter_run(call, run, launch->offset);
        for (int64_t i = 0; i < here; i++) {
            int64_t hi = call->tile.lo[0] + run->extent;
            call->tile.hi[0] = (int)(hi < run->box_hi ? hi : run->box_hi);
            if (shift)
                shift_call(launch);
            call_tile(launch);
            if (done)
                /* Pairs with the acquire load of a worker whose tile waits for this one. */
                host_word_store(done, ++base);
            call->tile.lo[0] = (int)hi;
            call->tile.index++;
        }
        count -= here;
        launch->offset += here;
        if (launch->offset == run->count) {
            launch->run++;
            launch->offset = 0;
        }
    }
    host_leave();
    return true;
}

/* All tiles in one call, but for those behind the last visited point. */
static void call_all(const host_launch *launch)
{
    const host_share *share = launch->share;
    peal_call *call = launch->call;

    for (int r = 0; r < share->run_count && launch->end < INT64_MAX; r++)
        for (int64_t i = 0; i < share->run[r].count; i++) {
            enter_run(call, &share->run[r], i);
            shift_call(launch);
            if (call->tile.lo[0] >= launch->end)
                clear_partials(launch);
        }
    call->tile.index = 0;
    shift_call(launch);
    launch->op->task->run_all(call, launch->op->source, launch->end);
}

bool host_launch_all(host_launch *launch)
{
    const host_share *share = launch->share;
    peal_call *call = launch->call;

    if (launch->op->skipped)
        return true;
    if (!launch->prepared && !prepare_call(launch))
        return false;
    bool partials = launch->partials && launch->op->task->source->reduction_count > 0;
    bool by_tile = partials || share->merged_count == 0;
    bool whole = launch->op->task->run_all && share->tiles > 1;
    if (by_tile && !whole)
        return host_launch_tiles(launch, share->tiles, NULL, 0);
    host_enter(launch->context, launch->op, call, launch->frame->counter[0]);
    if (by_tile)
        call_all(launch);
    for (int i = 0; i < share->merged_count && !by_tile; i++) {
        enter_run(call, &share->merged[i], 0);
        call_tile(launch);
    }
    host_leave();
    return true;
}

/* Runs all tiles of a share whose calls differ by bases and tiles only. */
static void run_uniform(host_context *context, const host_op *op, const peal_walk_frame *frame,
                        const host_share *share)
{
    const host_task *task = op->task;
    peal_call *call = &context->call[task - context->rank->task];
    unsigned char *const *origin = context->rank->origin;

    for (int i = 0; i < call->view_count; i++)
        call->view[i].base = origin[frame->binding[task->view_array[i]]];
    const host_run *runs = share->merged_count ? share->merged : share->run;
    int run_count = share->merged_count ? share->merged_count : share->run_count;
    host_enter(context, op, call, frame->counter[0]);
    for (int r = 0; r < run_count; r++) {
        const host_run *run = &runs[r];
        int64_t lo = run->lo[0], extent = run->extent, box_hi = run->box_hi;
        memcpy(call->tile.lo, run->lo, sizeof(call->tile.lo));
        memcpy(call->tile.hi, run->hi, sizeof(call->tile.hi));
        call->tile.index = run->first;
        task->full(call);
        for (int64_t i = 1; i < run->count; i++) {
            lo += extent;
            call->tile.lo[0] = (int)lo;
            call->tile.hi[0] = (int)(lo + extent < box_hi ? lo + extent : box_hi);
            call->tile.index++;
            task->full(call);
        }
    }
    host_leave();
}

/* Built-in tasks. */

static bool store_fits(host_rank *rank, const peal_op *op, int64_t step, const peal_value *value)
{
    const peal_schedule *schedule = rank->schedule;
    peal_type type = schedule->array[schedule->task[op->task].array].type;

    if (value->kind != PEAL_INTEGER || peal_type_holds(type, value->u.integer))
        return true;
    return host_fail(rank->plan,
                     peal_stored_report(rank->plan->late, schedule, op, step, value->u.integer));
}

static void store_value(peal_type type, unsigned char *at, const peal_value *value)
{
    double real = value->kind == PEAL_REAL ? value->u.real : (double)value->u.integer;
    int64_t integer = value->kind == PEAL_REAL ? (int64_t)value->u.real : value->u.integer;

    if (value->kind == PEAL_BOOLEAN)
        real = (double)(integer = value->u.boolean);
    switch (type) {
    case PEAL_F64:
        memcpy(at, &real, sizeof(real));
        break;
    case PEAL_F32: {
        float narrow = (float)real;
        memcpy(at, &narrow, sizeof(narrow));
        break;
    }
    case PEAL_I32: {
        int32_t narrow = (int32_t)integer;
        memcpy(at, &narrow, sizeof(narrow));
        break;
    }
    case PEAL_I64:
        memcpy(at, &integer, sizeof(integer));
        break;
    default:
        *at = (uint8_t)integer;
    }
}

static void fold_rows(const host_rank *rank, const peal_schedule_task *task,
                      const peal_walk_frame *frame)
{
    peal_type type = rank->schedule->array[task->array].type;
    int64_t bytes = (int64_t)peal_type_bytes(type);
    const unsigned char *from = rank->first[frame->binding[task->gather]];
    int64_t lo = task->kind == PEAL_TASK_FOLD ? 0 : task->lo;
    int64_t width = task->kind == PEAL_TASK_FOLD ? 1 : task->hi - task->lo;
    unsigned char *to = rank->first[frame->binding[task->array]] + lo * bytes;

    for (int64_t i = 0; i < width; i++)
        host_fold(type, task->combine, from + i * bytes, task->contributions, width,
                  to + i * bytes);
}

static bool print_row(host_rank *rank, const host_task *task, const peal_walk_frame *frame)
{
    enum { MOST = 64 };
    peal_value value[MOST];
    int count = task->source->item_count < MOST ? task->source->item_count : MOST;

    for (int i = 0; i < count; i++)
        if (!host_evaluate(rank, &task->item[i], frame, &value[i]))
            return false;
    if (rank->schedule->rank == 0 && rank->plan->desc.row)
        rank->plan->desc.row(rank->plan->desc.row_user, frame->counter[0], count, task->name,
                             value);
    return true;
}

static bool decide(host_context *context, const host_task *task, const host_op *op,
                   const peal_walk_frame *frame)
{
    host_rank *rank = context->rank;
    host_decision *decision = &rank->decision[task->source->decision];
    bool verdict = false;

    if (!host_evaluate_boolean(rank, &task->value, frame, false, &verdict))
        return false;
    if (rank->walker_count > 0 && frame->instance > decision->slots) {
        host_wait wait = {.rank = rank,
                          .kind = HOST_WAIT_READERS,
                          .worker = context->worker,
                          .op = (int)(op - rank->op),
                          .other_op = -1,
                          .step = frame->counter[0]};
        uint64_t old = frame->instance - decision->slots;
        for (int i = 0; i < rank->walker_count; i++)
            /* Pairs with the release store in passes_decide (walk.c). */
            if (!host_word_reached(&decision->consumed[i].value, old) &&
                !host_wait_slow(&wait, &decision->consumed[i].value, old))
                return false;
    }
    decision->verdict[frame->instance % decision->slots] = verdict;
    return true;
}

static bool run_task(host_context *context, const host_op *op, const peal_walk_frame *frame)
{
    host_rank *rank = context->rank;
    const host_task *task = op->task;
    const peal_schedule_task *source = task->source;
    peal_value value;

    switch (source->kind) {
    case PEAL_TASK_FOLD:
    case PEAL_TASK_COMBINE:
        fold_rows(rank, source, frame);
        return true;
    case PEAL_TASK_SET:
        if (!host_evaluate(rank, &task->value, frame, &value) ||
            !store_fits(rank, op->source, frame->counter[0], &value))
            return false;
        store_value(rank->schedule->array[source->array].type,
                    rank->first[frame->binding[source->array]], &value);
        return true;
    case PEAL_TASK_PRINT:
        return print_row(rank, task, frame);
    case PEAL_TASK_LOAD:
        return host_file_load(context, op, frame);
    case PEAL_TASK_SAVE:
        return host_file_save(context, op, frame);
    case PEAL_TASK_DECIDE:
        return decide(context, task, op, frame);
    default:
        break;
    }
    host_launch launch;
    host_launch_init(&launch, context, op, frame, &op->share[0]);
    return host_launch_all(&launch);
}

/* Copies and words. */

int64_t host_count_at(peal_type type, const unsigned char *at)
{
    int32_t narrow;
    int64_t wide;

    if (type == PEAL_I64) {
        memcpy(&wide, at, sizeof(wide));
        return wide;
    }
    memcpy(&narrow, at, sizeof(narrow));
    return narrow;
}

static bool copy_counted(host_rank *rank, const host_op *op, const peal_walk_frame *frame,
                         const host_piece *piece, const unsigned char *count, unsigned char *to,
                         const unsigned char *from)
{
    int64_t elements = host_count_at(piece->count_type, count + piece->count_offset);

    if (!host_count_fits(rank, op->source, frame->counter[0], elements, piece->most))
        return false;
    if (elements > 0)
        memcpy(to, from, (size_t)(elements * piece->element_bytes));
    return true;
}

static bool copy_pieces(host_rank *rank, const host_op *op, const peal_walk_frame *frame)
{
    const peal_channel *channel = op->channel;
    unsigned char *slot = op->staging;

    if (slot && channel->slots > 1)
        slot += (int64_t)(frame->message % (uint64_t)channel->slots) * channel->staging_bytes;
    if (slot && channel->outgoing)
        peal_prefetch_write(slot, channel->staging_bytes);
    else if (slot)
        peal_prefetch_read(slot, channel->staging_bytes);
    for (int i = 0; i < op->piece_count; i++) {
        const host_piece *piece = &op->piece[i];
        const unsigned char *from =
            piece->source_array < 0 ? slot : rank->first[frame->binding[piece->source_array]];
        unsigned char *to =
            piece->target_array < 0 ? slot : op->target[frame->binding[piece->target_array]];
        to += piece->target_offset;
        from += piece->source_offset;
        if (!piece->counted)
            peal_copy_run(&piece->copy, to, from);
        else if (!copy_counted(rank, op, frame, piece,
                               piece->count_array < 0
                                   ? slot
                                   : rank->first[frame->binding[piece->count_array]],
                               to, from))
            return false;
    }
    return true;
}

bool host_execute(host_context *context, const host_op *op, const peal_walk_frame *frame)
{
    if (op->skipped)
        return true;
    switch (op->kind) {
    case PEAL_OP_LAUNCH:
        host_network_before_work(context);
        if (!op->task->is_uniform)
            return run_task(context, op, frame);
        run_uniform(context, op, frame, &op->share[0]);
        return true;
    case PEAL_OP_COPY:
        if (op->leaves)
            host_network_send(context, op, frame);
        else if (context->landed == op)
            context->landed = NULL;
        else
            return copy_pieces(context->rank, op, frame);
        return true;
    case PEAL_OP_WRITE:
        if (op->has_left)
            return true;
        /* Pairs with the acquire load of the peer's WAIT (host_message_wait). It comes after the
         * message's bytes or, of a credit, after this rank's last reads of the consumed message.
         * Threads that wrote or read them were waited for, so the order is transitive. */
        host_word_store(op->word, peal_flag_value(op->channel, frame->message));
        if (op->remote)
            host_network_tell(context, op, frame);
        return true;
    case PEAL_OP_WAIT:
        return host_message_wait(context, op, frame);
    default:
        return true;
    }
}
