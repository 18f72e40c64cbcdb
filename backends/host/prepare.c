/* Binds a rank's schedule to its memory: addresses of storages, copies, words, constant values.
 * What executors then read is small and flat. */
#include "backends/host/kernels.h"
#include "backends/host/network.h"
#include "backends/host/walk.h"

#include "base/box.h"

#include <string.h>

/* Pointer arithmetic that may leave the allocation, because the point with coordinates 0 need not
 * be stored. */
static unsigned char *shifted(unsigned char *base, int64_t bytes)
{
    return (unsigned char *)((uintptr_t)base + (uintptr_t)bytes);
}

static int64_t offset_of(const peal_layout *layout, const int64_t *point, size_t element_bytes)
{
    int64_t elements = 0;
    for (int k = 0; k < PEAL_AXES; k++)
        elements += (point[k] - layout->stored.lo[k]) * layout->stride[k];
    return elements * (int64_t)element_bytes;
}

static void prepare_arrays(host_rank *rank)
{
    static const int64_t zero[PEAL_AXES] = {0};
    const peal_schedule *schedule = rank->schedule;
    peal_arena *arena = rank->plan->arena;
    int count = schedule->array_count;

    rank->origin = PEAL_ARENA_ARRAY(arena, unsigned char *, count + 1);
    rank->first = PEAL_ARENA_ARRAY(arena, unsigned char *, count + 1);
    rank->final_binding = PEAL_ARENA_ARRAY(arena, int, count + 1);
    for (int i = 0; i < count; i++) {
        const peal_schedule_array *array = &schedule->array[i];
        size_t bytes = peal_type_bytes(array->type);
        rank->final_binding[i] = i;
        rank->first[i] = array->layout.offset < 0 ? (unsigned char *)array->lent
                                                  : rank->bound->segment + array->layout.offset;
        rank->origin[i] = shifted(rank->first[i], offset_of(&array->layout, zero, bytes));
        if (array->constant && rank->first[i] && array->layout.bytes > 0)
            memcpy(rank->first[i], array->constant, (size_t)array->layout.bytes);
    }
    rank->peer_first = PEAL_ARENA_ARRAY(arena, unsigned char **, schedule->peer_count + 1);
    for (int p = 0; p < schedule->peer_count; p++) {
        const peal_peer *peer = &schedule->peer[p];
        unsigned char *base =
            peer->rank == schedule->rank ? rank->bound->segment : rank->bound->peer_segment[p];
        rank->peer_first[p] = PEAL_ARENA_ARRAY(arena, unsigned char *, count + 1);
        for (int i = 0; i < count; i++)
            rank->peer_first[p][i] =
                peer->rank == schedule->rank ? rank->first[i] : base + peer->layout[i].offset;
    }
}

/* Binds the caller's function, a kernel of the backend that asks for this plan, or one that was
 * compiled here. */
static bool bind_kernel(host_rank *rank, const peal_schedule_task *source, host_task *task)
{
    const peal_kernel_source *lent = rank->plan->desc.kernels;
    if (lent && !source->function) {
        bool launched_by_caller = source->cuda_function || source->enqueue;
        task->run_all = launched_by_caller ? NULL : lent->run_all;
        return lent->bind(lent->user, rank->schedule, source, &task->full, &task->no_reduction,
                          &task->call.user);
    }
    task->full = task->no_reduction = source->function;
    return source->function ||
           host_kernels_bind(rank->plan->kernels, rank->plan->arena, rank->schedule, source,
                             &task->full, &task->no_reduction);
}

static peal_status prepare_value(const host_rank *rank, const peal_expr *expr, peal_walk_value *out)
{
    return peal_walk_value_prepare(rank->program, expr, rank->plan->desc.diagnostics, out);
}

static peal_status prepare_task(host_rank *rank, const peal_schedule_task *source, host_task *task)
{
    peal_arena *arena = rank->plan->arena;
    peal_status status = prepare_value(rank, source->needed, &task->needed);

    task->source = source;
    task->has_constant_arguments = true;
    task->argument = PEAL_ARENA_ARRAY(arena, peal_walk_value, source->argument_count + 1);
    for (int i = 0; i < source->argument_count && !status; i++) {
        status = prepare_value(rank, source->argument[i], &task->argument[i]);
        const peal_value *value = &task->argument[i].value;
        if (!task->argument[i].is_constant)
            task->has_constant_arguments = false;
        else if (source->argument_is_real[i])
            task->call.argument[i].real =
                value->kind == PEAL_REAL ? value->u.real : (double)value->u.integer;
        else
            task->call.argument[i].integer =
                value->kind == PEAL_BOOLEAN ? value->u.boolean : value->u.integer;
    }
    if (!status)
        status = prepare_value(rank, source->count, &task->count);
    if (!status)
        status = prepare_value(rank, source->value, &task->value);
    task->item = PEAL_ARENA_ARRAY(arena, peal_walk_value, source->item_count + 1);
    task->name = PEAL_ARENA_ARRAY(arena, const char *, source->item_count + 1);
    for (int i = 0; i < source->item_count && !status; i++) {
        task->name[i] = source->item[i].name;
        status = prepare_value(rank, source->item[i].value, &task->item[i]);
    }
    task->call.tile.count = source->tile_count;
    task->call.view_count = source->access_count;
    task->call.partial_count = source->reduction_count;
    task->call.argument_count = source->argument_count;
    task->call.user = source->user;
    task->view_array = PEAL_ARENA_ARRAY(arena, int, source->access_count + 1);
    for (int i = 0; i < source->access_count; i++) {
        task->view_array[i] = source->access[i].array;
        const peal_schedule_array *array = &rank->schedule->array[source->access[i].array];
        task->shifts = task->shifts || source->access[i].per_tile > 0;
        memcpy(task->call.view[i].stride, array->layout.stride, sizeof(task->call.view[i].stride));
    }
    if (status || source->kind != PEAL_TASK_KERNEL)
        return status;
    if (!bind_kernel(rank, source, task))
        return peal_report(rank->plan->desc.diagnostics, PEAL_E_INTERNAL, source->source, NULL,
                           "task `%s` has no function", source->name);
    task->is_uniform = !task->shifts && task->has_constant_arguments &&
                       source->reduction_count == 0 && !source->count && !task->run_all;
    return PEAL_STATUS_OK;
}

/* Pieces. Strides along axes of one point do not matter; staging is dense, x fastest. */
static void prepare_piece(host_rank *rank, const peal_op *op, const peal_channel *channel,
                          const peal_piece *piece, host_piece *out)
{
    const peal_schedule *schedule = rank->schedule;
    bool local = op->copy == PEAL_COPY_LOCAL;
    bool sends = op->copy == PEAL_COPY_SEND;
    /* Each side takes the type from its own array. */
    int mine = op->copy == PEAL_COPY_UNPACK ? piece->target_array : piece->array;
    size_t bytes = peal_type_bytes(schedule->array[mine].type);
    const peal_layout *target = &schedule->array[piece->target_array].layout;
    int64_t extent[PEAL_AXES], dense[PEAL_AXES], points = 1;

    for (int k = 0; k < PEAL_AXES; k++) {
        /* If the receive has another shape, the same points are stored in the same order. */
        extent[k] = op->copy == PEAL_COPY_UNPACK ? piece->target_extent[k]
                                                 : piece->source.hi[k] - piece->source.lo[k];
        dense[k] = points;
        points *= extent[k];
    }
    if (sends && piece->direct)
        target = &schedule->peer[channel->peer_index].layout[piece->target_array];
    bool from_staging = !local && !sends;
    bool to_staging = sends && !piece->direct;
    const peal_layout *source = &schedule->array[piece->array].layout;
    out->source_array = from_staging ? -1 : piece->array;
    out->target_array = to_staging ? -1 : piece->target_array;
    out->source_offset = from_staging ? piece->staging : offset_of(source, piece->source.lo, bytes);
    out->target_offset = to_staging ? piece->staging : offset_of(target, piece->target, bytes);
    peal_copy_prepare(&out->copy, bytes, extent, from_staging ? dense : source->stride,
                      to_staging ? dense : target->stride);
}

/* The number of elements of a counted piece is the piece before it in the message. */
static void prepare_count(const host_rank *rank, const host_piece *count, const peal_piece *piece,
                          bool unpacks, host_piece *out)
{
    int mine = unpacks ? piece->target_array : piece->array;
    int counts = unpacks ? piece[-1].target_array : piece[-1].array;

    out->counted = true;
    out->count_array = count->source_array;
    out->count_offset = count->source_offset;
    out->count_type = rank->schedule->array[counts].type;
    out->most = unpacks ? piece->target_extent[0] : piece->source.hi[0] - piece->source.lo[0];
    out->element_bytes = (int64_t)peal_type_bytes(rank->schedule->array[mine].type);
}

/* Pieces are independent of each other, so the two at the ends of x are copied as one. */
static void add_piece(host_op *out, const host_piece *piece)
{
    enum { LOOK_BACK = 64 };
    int first = out->piece_count > LOOK_BACK ? out->piece_count - LOOK_BACK : 0;
    for (int i = first; i < out->piece_count; i++) {
        host_piece *other = &out->piece[i];
        int64_t source = piece->source_offset - other->source_offset;
        int64_t target = piece->target_offset - other->target_offset;
        if (piece->source_array == other->source_array &&
            piece->target_array == other->target_array &&
            peal_copy_is_twin(&other->copy, &piece->copy, source, target) &&
            peal_copy_pair(&other->copy, source, target))
            return;
    }
    out->piece[out->piece_count++] = *piece;
}

static void prepare_copy(host_rank *rank, const peal_op *op, host_op *out)
{
    const peal_channel *channel = out->channel;
    const peal_piece *piece = op->copy == PEAL_COPY_LOCAL ? op->piece : channel->piece;
    int count = op->copy == PEAL_COPY_LOCAL ? op->piece_count : channel->piece_count;

    out->target = rank->first;
    if (op->copy == PEAL_COPY_SEND)
        out->target = rank->peer_first[channel->peer_index];
    out->piece = PEAL_ARENA_ARRAY(rank->plan->arena, host_piece, count + 1);
    for (int i = 0; i < count; i++) {
        if (op->copy == PEAL_COPY_UNPACK && piece[i].direct)
            continue;
        host_piece prepared = {0};
        prepare_piece(rank, op, channel, &piece[i], &prepared);
        if (piece[i].counted) {
            prepare_count(rank, &out->piece[out->piece_count - 1], &piece[i],
                          op->copy == PEAL_COPY_UNPACK, &prepared);
            out->piece[out->piece_count++] = prepared;
        } else
            add_piece(out, &prepared);
    }
}

/* Flags lie in the receiver's segment, credits in the sender's. */
static void prepare_words(host_rank *rank, const peal_op *op, host_op *out)
{
    const peal_channel *channel = out->channel;
    const peal_peer *peer = &rank->schedule->peer[channel->peer_index];
    unsigned char *mine = rank->bound->segment;
    unsigned char *theirs =
        peer->rank == rank->schedule->rank ? mine : rank->bound->peer_segment[channel->peer_index];
    int64_t offset = op->credit ? channel->credit_offset : channel->flag_offset;

    if (channel->staging_bytes > 0)
        out->staging = (channel->outgoing ? theirs : mine) + channel->staging_offset;
    if (op->kind == PEAL_OP_WAIT)
        out->word = (peal_dispatch_word *)(void *)(mine + offset);
    else if (op->kind == PEAL_OP_WRITE)
        out->word = (peal_dispatch_word *)(void *)(theirs + offset);
}

static void prepare_op(host_rank *rank, int index)
{
    const host_plan *plan = rank->plan;
    const peal_backend_hooks *hooks = &plan->desc.hooks;
    const peal_op *op = &rank->schedule->op[index];
    host_op *out = &rank->op[index];
    bool has_channel = (op->kind == PEAL_OP_COPY && op->copy != PEAL_COPY_LOCAL) ||
                       op->kind == PEAL_OP_WRITE || op->kind == PEAL_OP_WAIT;

    *out = (host_op){.kind = op->kind, .source = op, .queue = -1};
    out->message_counter = rank->program->op[index].message_counter;
    out->owner = op->lane > 0 ? op->lane % rank->share_count : 0;
    out->skipped = peal_hooks_skip(hooks, rank->schedule, index);
    if (op->kind == PEAL_OP_LAUNCH) {
        out->task = &rank->task[op->task];
        out->decides = rank->program->op[index].decides;
    }
    if (has_channel) {
        out->channel = &rank->schedule->channel[op->channel];
        prepare_words(rank, op, out);
        out->remote = op->kind == PEAL_OP_WRITE &&
                      peal_transport_is_network(out->channel->transport) && plan->desc.network;
    }
    if (op->kind == PEAL_OP_COPY)
        prepare_copy(rank, op, out);
    out->condition = rank->program->op[index].condition;
}

/* The number of slots for verdicts: more than the walk looks back, and some for the lookahead. */
static uint64_t verdict_slots(const host_rank *rank, int slot)
{
    uint64_t slots = 64;
    for (int i = 0; i <= rank->schedule->loop_count; i++) {
        const peal_walk_loop *loop = &rank->loop[i];
        if (loop->source->until && loop->source->decision == slot && loop->lag.is_constant)
            while (slots < 2 * ((uint64_t)loop->lag.value.u.integer + 2))
                slots *= 2;
    }
    return slots;
}

static void prepare_decisions(host_rank *rank)
{
    const peal_schedule *schedule = rank->schedule;
    peal_arena *arena = rank->plan->arena;

    rank->decision = PEAL_ARENA_ARRAY(arena, host_decision, schedule->decision_count + 1);
    for (int i = 0; i < schedule->decision_count; i++) {
        host_decision *decision = &rank->decision[i];
        decision->op = rank->program->decision_op[i];
        decision->slots = verdict_slots(rank, i);
        decision->verdict = PEAL_ARENA_ARRAY(arena, bool, decision->slots);
        decision->consumed =
            host_counts_create(arena, rank->walker_count > 0 ? rank->walker_count : 1);
    }
}

void *host_aligned(peal_arena *arena, size_t bytes)
{
    uintptr_t raw = (uintptr_t)peal_arena_allocate(arena, bytes + HOST_LINE);
    return (void *)((raw + HOST_LINE - 1) / HOST_LINE * HOST_LINE);
}

host_count *host_counts_create(peal_arena *arena, int count)
{
    return host_aligned(arena, (size_t)count * sizeof(host_count));
}

/* Words start at the number before the first message: 0, but for the hook that tests how numbers
 * wrap around. */
static void prepare_first_message(host_rank *rank)
{
    uint64_t first = rank->plan->desc.hooks.first_message;
    for (int i = 0; first && i < rank->schedule->channel_count; i++) {
        const peal_channel *channel = &rank->schedule->channel[i];
        int64_t offset = channel->outgoing ? channel->credit_offset : channel->flag_offset;
        if (offset >= 0)
            host_word_store((peal_dispatch_word *)(void *)(rank->bound->segment + offset),
                            peal_flag_value(channel, first));
    }
}

peal_status host_rank_prepare(host_plan *plan, int index)
{
    host_rank *rank = &plan->rank[index];
    const peal_schedule *schedule = plan->desc.rank[index].schedule;
    bool concurrent = plan->desc.mode == PEAL_MODE_FUSED || plan->desc.mode == PEAL_MODE_STREAM;

    rank->plan = plan;
    rank->index = index;
    rank->schedule = schedule;
    rank->bound = &plan->desc.rank[index];
    rank->share_count = 1;
    if (plan->desc.mode == PEAL_MODE_FUSED || plan->desc.mode == PEAL_MODE_SYNC)
        rank->share_count = plan->desc.workers;
    if (plan->executor == &host_fused && rank->share_count == 1)
        concurrent = false; /* the one walk runs the DECIDEs itself */
    rank->walker_count = !concurrent ? 0 : rank->share_count;
    atomic_store(&rank->progress.op, -1);
    prepare_arrays(rank);
    peal_status status =
        peal_walk_program_create(schedule, plan->arena, plan->desc.diagnostics, &rank->program);
    if (status)
        return status;
    rank->loop = rank->program->loop;
    prepare_decisions(rank);
    rank->task = PEAL_ARENA_ARRAY(plan->arena, host_task, schedule->task_count + 1);
    for (int i = 0; i < schedule->task_count && !status; i++)
        status = prepare_task(rank, &schedule->task[i], &rank->task[i]);
    rank->op = PEAL_ARENA_ARRAY(plan->arena, host_op, schedule->op_count + 1);
    if (status)
        return status;
    for (int i = 0; i < schedule->op_count; i++)
        prepare_op(rank, i);
    for (int i = 0; i + 1 < rank->schedule->op_count; i++) {
        rank->op[i].lands = host_network_lands(rank, i);
        if (host_network_leaves(rank, i))
            rank->op[i].leaves = rank->op[i + 1].has_left = true;
    }
    rank->done = host_counts_create(plan->arena, (schedule->op_count + 1) * rank->share_count);
    host_shares_prepare(rank);
    if (plan->desc.mode == PEAL_MODE_FUSED && rank->share_count > 1)
        status = host_needs_prepare(rank);
    prepare_first_message(rank);
    return status;
}
