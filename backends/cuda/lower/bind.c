/* Binds a rank's schedule to device memory: addresses of storages, kernels, boxes of tiles, tables
 * of pieces (copy_pieces.c), words. So emission only fills in launches. */
#include "backends/cuda/gpu/attributes.h"
#include "backends/cuda/gpu/memory.h"
#include "backends/cuda/lower/plan.h"
#include "backends/cuda/lower/predicate.h"

#include "base/box.h"

#include <string.h>

static CUdeviceptr address_of(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static void bind_arrays(peal_cuda_rank *rank)
{
    static const int64_t zero[PEAL_AXES] = {0};
    const peal_schedule *schedule = rank->schedule;
    peal_arena *arena = rank->plan->arena;
    int count = schedule->array_count;

    rank->first = PEAL_ARENA_ARRAY(arena, CUdeviceptr, count + 1);
    rank->origin = PEAL_ARENA_ARRAY(arena, int64_t, count + 1);
    rank->final_binding = PEAL_ARENA_ARRAY(arena, int, count + 1);
    for (int i = 0; i < count; i++) {
        const peal_schedule_array *array = &schedule->array[i];
        rank->final_binding[i] = i;
        rank->first[i] = array->layout.offset < 0
                             ? address_of(array->lent)
                             : address_of(rank->bound->segment) + (uint64_t)array->layout.offset;
        rank->origin[i] = peal_cuda_offset_of(&array->layout, zero, peal_type_bytes(array->type));
    }
    rank->peer_first = PEAL_ARENA_ARRAY(arena, CUdeviceptr *, schedule->peer_count + 1);
    for (int p = 0; p < schedule->peer_count; p++) {
        const peal_peer *peer = &schedule->peer[p];
        bool is_self = peer->rank == schedule->rank;
        rank->peer_first[p] = PEAL_ARENA_ARRAY(arena, CUdeviceptr, count + 1);
        for (int i = 0; i < count; i++)
            rank->peer_first[p][i] = is_self ? rank->first[i]
                                             : address_of(rank->bound->peer_segment[p]) +
                                                   (uint64_t)peer->layout[i].offset;
    }
}

static peal_status bind_tasks(peal_cuda_rank *rank)
{
    const peal_schedule *schedule = rank->schedule;
    peal_diagnostics *diagnostics = rank->plan->desc.diagnostics;
    peal_arena *arena = rank->plan->arena;
    peal_status status = PEAL_STATUS_OK;

    rank->task = PEAL_ARENA_ARRAY(arena, peal_cuda_task, schedule->task_count + 1);
    for (int t = 0; t < schedule->task_count && !status; t++) {
        const peal_schedule_task *source = &schedule->task[t];
        peal_cuda_task *task = &rank->task[t];
        status = peal_walk_value_prepare(rank->program, source->needed, diagnostics, &task->needed);
        task->argument = PEAL_ARENA_ARRAY(arena, peal_walk_value, source->argument_count + 1);
        for (int i = 0; i < source->argument_count && !status; i++)
            status = peal_walk_value_prepare(rank->program, source->argument[i], diagnostics,
                                             &task->argument[i]);
        task->stored_remotely = peal_cuda_remote_store_accesses(source);
        if (!status && (source->cuda_function || source->enqueue))
            status = peal_cuda_call_check(rank, source, task);
    }
    return status;
}

/* ---- words ---- */

/* What a channel stores lies in mailboxes, which are host memory: what processes of this host
 * share, or what is shadowed for those of others. */
static bool is_in_host_memory(const peal_channel *channel)
{
    return channel->transport == PEAL_TRANSPORT_SHM ||
           peal_transport_is_network(channel->transport);
}

/* The address of an offset into the segment of this rank, or (theirs) of the channel's peer. */
static CUdeviceptr address_in_segment(const peal_cuda_rank *rank, const peal_channel *channel,
                                      bool theirs, int64_t offset)
{
    const peal_backend_rank *bound = rank->bound;
    const peal_peer *peer = &rank->schedule->peer[channel->peer_index];
    bool staged = is_in_host_memory(channel);

    if (!theirs || peer->rank == rank->schedule->rank)
        return staged ? address_of(bound->mailbox) +
                            (uint64_t)(offset - rank->schedule->mailbox_offset)
                      : address_of(bound->segment) + (uint64_t)offset;
    return staged ? address_of(bound->peer_mailbox[channel->peer_index]) +
                        (uint64_t)(offset - peer->mailbox_offset)
                  : address_of(bound->peer_segment[channel->peer_index]) + (uint64_t)offset;
}

/* Memory that was opened by IPC is excluded: the driver may report it as this device's, although it
 * is another's. */
static bool can_add_to(const peal_cuda_rank *rank, const peal_channel *channel, CUdeviceptr word)
{
    bool opened =
        channel->transport == PEAL_TRANSPORT_P2P && rank->schedule->machine->path == PEAL_PATH_IPC;

    return !is_in_host_memory(channel) && !opened && peal_cuda_can_add_to(rank->plan->device, word);
}

/* Flags lie in the receiver's segment, credits in the sender's. */
static void bind_words(peal_cuda_rank *rank, const peal_op *op, peal_cuda_op *out)
{
    const peal_channel *channel = out->channel;
    int64_t offset = op->credit ? channel->credit_offset : channel->flag_offset;

    if (channel->staging_bytes > 0)
        out->staging =
            address_in_segment(rank, channel, channel->outgoing, channel->staging_offset);
    out->word = address_in_segment(rank, channel, op->kind != PEAL_OP_WAIT, offset);
    out->can_add = op->kind == PEAL_OP_WRITE && can_add_to(rank, channel, out->word);
}

static peal_cuda_rank *find_hosted_rank(const peal_cuda_plan *plan, int number)
{
    for (int i = 0; i < plan->rank_count; i++)
        if (plan->desc.rank[i].schedule->rank == number)
            return &plan->rank[i];
    return NULL;
}

/* The WRITE of rank `peer`, which this process hosts (it may be `rank` itself), that a WAIT waits
 * for; -1: none. */
static int find_peer_write(const peal_cuda_rank *peer, const peal_cuda_rank *rank,
                           const peal_op *wait)
{
    const peal_channel *mine = &rank->schedule->channel[wait->channel];
    int64_t offset = wait->credit ? mine->credit_offset : mine->flag_offset;

    for (int i = 0; i < peer->schedule->op_count; i++) {
        const peal_op *op = &peer->schedule->op[i];
        if (op->kind != PEAL_OP_WRITE || op->credit != wait->credit)
            continue;
        const peal_channel *channel = &peer->schedule->channel[op->channel];
        int64_t theirs = op->credit ? channel->credit_offset : channel->flag_offset;
        if (channel->peer == rank->schedule->rank && channel->outgoing != mine->outgoing &&
            theirs == offset)
            return i;
    }
    return -1;
}

/* Whether op `index` runs the tiles of a task that a message is made of, and another op runs the
 * rest of the task. Then this op goes to the lane of messages, and the rest runs beside it. */
static bool sends_its_tiles(const peal_schedule *schedule, int index)
{
    const peal_op *op = &schedule->op[index];
    bool sends = false, others = false;

    for (int i = 0; i < schedule->op_count && op->kind == PEAL_OP_LAUNCH; i++) {
        const peal_op *other = &schedule->op[i];
        others |= i != index && other->kind == PEAL_OP_LAUNCH && other->task == op->task;
        if (other->kind == PEAL_OP_COPY && other->copy == PEAL_COPY_SEND)
            for (int d = 0; d < other->dependence_count; d++)
                sends |= other->dependence[d].op == index;
    }
    return sends && others;
}

/* In mode sync a wait is a launch of its own, which takes time. When a test hook makes nobody wait
 * for messages, that launch stays and waits for a value that is there. */
static bool is_launched_wait(const peal_cuda_plan *plan, const peal_schedule *schedule, int index)
{
    peal_backend_hooks hooks = plan->desc.hooks;

    if (!hooks.unawaited || !plan->synchronous || schedule->op[index].kind != PEAL_OP_WAIT)
        return false;
    hooks.unawaited = false;
    return !peal_hooks_skip(&hooks, schedule, index);
}

static void bind_op(peal_cuda_rank *rank, int index)
{
    const peal_cuda_plan *plan = rank->plan;
    const peal_backend_hooks *hooks = &plan->desc.hooks;
    const peal_op *op = &rank->schedule->op[index];
    peal_cuda_op *out = &rank->op[index];

    *out = (peal_cuda_op){.source = op, .peer_op = -1, .region = -1};
    out->lane = op->lane > 0 ? op->lane % rank->lanes : 0;
    out->skipped = peal_hooks_skip(hooks, rank->schedule, index);
    bool idles = out->skipped && is_launched_wait(plan, rank->schedule, index);
    if (rank->lanes > 1 && sends_its_tiles(rank->schedule, index))
        out->lane = rank->lanes - 1;
    if (op->kind == PEAL_OP_LAUNCH) {
        out->task = &rank->schedule->task[op->task];
        out->kernel = peal_cuda_kernels_task(plan->kernels, rank->schedule, out->task);
        if (out->task->function)
            out->skipped = true; /* the application does it itself */
        else if (out->task->kind == PEAL_TASK_KERNEL)
            peal_cuda_tile_boxes_bind(rank, op, out);
    }
    if ((op->kind == PEAL_OP_COPY && op->copy != PEAL_COPY_LOCAL) || op->kind == PEAL_OP_WRITE ||
        op->kind == PEAL_OP_WAIT) {
        out->channel = &rank->schedule->channel[op->channel];
        bind_words(rank, op, out);
        out->peer = find_hosted_rank(plan, out->channel->peer);
        out->self = out->peer != NULL;
        out->idles = idles && !out->self;
        out->skipped &= !out->idles;
    }
    if (op->kind == PEAL_OP_COPY)
        peal_cuda_pieces_bind(rank, out);
}

/* Creates the events of ops that ops of other lanes, or of other ranks of the process, depend on.
 */
static peal_status create_events(peal_cuda_rank *rank)
{
    CUresult result = CUDA_SUCCESS;
    char text[160];

    for (int i = 0; i < rank->schedule->op_count; i++) {
        const peal_op *op = &rank->schedule->op[i];
        for (int d = 0; d < op->dependence_count; d++) {
            peal_cuda_op *other = &rank->op[op->dependence[d].op];
            other->published |= other->lane != rank->op[i].lane;
        }
        if (op->kind == PEAL_OP_WRITE && rank->op[i].self)
            rank->op[i].published = true;
    }
    for (int i = 0; i < rank->schedule->op_count && !result; i++)
        for (int k = 0; k < 2 && rank->op[i].published && !result; k++)
            result = peal_cuda_event_create(rank->plan->device, &rank->op[i].event[k]);
    if (!result)
        return PEAL_STATUS_OK;
    return peal_report(rank->plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE,
                       NULL, "cannot create the events of rank %d: %s", rank->schedule->rank,
                       peal_cuda_error(result, text));
}

/* Words start at the number before the first message: 0, but for the hook that tests how numbers
 * wrap around. */
static peal_status write_first_messages(peal_cuda_rank *rank)
{
    uint64_t first = rank->plan->desc.hooks.first_message;

    for (int i = 0; first && i < rank->schedule->channel_count; i++) {
        const peal_channel *channel = &rank->schedule->channel[i];
        int64_t offset = channel->outgoing ? channel->credit_offset : channel->flag_offset;
        uint64_t value = peal_flag_value(channel, first);
        if (offset < 0)
            continue;
        CUdeviceptr word = address_in_segment(rank, channel, false, offset);
        if (peal_cuda_memory.write(rank->plan->device, (void *)(uintptr_t)word, &value,
                                   sizeof(value), rank->plan->desc.diagnostics))
            return PEAL_STATUS_DEVICE;
    }
    return PEAL_STATUS_OK;
}

/* Where the schedule's own tiles are run, each is a block. A grid has at most 2^31 - 1 blocks. */
static peal_status check_tiles(const peal_cuda_rank *rank)
{
    const peal_schedule *schedule = rank->schedule;
    peal_status status = PEAL_STATUS_OK;

    for (int t = 0; t < schedule->task_count; t++) {
        const peal_schedule_task *task = &schedule->task[t];
        bool exact = !task->mergeable || task->reduction_count > 0;
        if (task->kind == PEAL_TASK_KERNEL && exact && task->tile_count > INT32_MAX)
            status =
                peal_report(rank->plan->desc.diagnostics, PEAL_E_TOO_MANY_TILES, task->source,
                            "give larger tiles, or use more ranks",
                            "task `%s` has %lld tiles on rank %d, a grid at most %d", task->name,
                            (long long)task->tile_count, schedule->rank, INT32_MAX);
    }
    return status;
}

peal_status peal_cuda_rank_bind(peal_cuda_plan *plan, int index)
{
    peal_cuda_rank *rank = &plan->rank[index];
    const peal_schedule *schedule = rank->schedule;

    rank->lanes = plan->options.lanes;
    bind_arrays(rank);
    peal_status status =
        peal_walk_program_create(schedule, plan->arena, plan->desc.diagnostics, &rank->program);
    if (!status)
        status = bind_tasks(rank);
    if (!status)
        status = check_tiles(rank);
    if (status)
        return status;
    peal_walk_order_create(schedule, plan->arena, true, &rank->order);
    peal_walk_init(&rank->walk, rank->program, plan->arena, plan->desc.hooks.first_message);
    rank->op = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_op, schedule->op_count + 1);
    rank->member = PEAL_ARENA_ARRAY(plan->arena, int, schedule->op_count + 1);
    for (int i = 0; i < schedule->op_count; i++)
        bind_op(rank, i);
    if (peal_cuda_repeats(plan))
        peal_cuda_predicates_bind(rank);
    for (int l = 0; l < rank->lanes; l++) {
        rank->lane[l].group.op = PEAL_ARENA_ARRAY(plan->arena, int, schedule->op_count + 1);
        rank->lane[l].group.op_instance =
            PEAL_ARENA_ARRAY(plan->arena, uint64_t, schedule->op_count + 1);
        rank->lane[l].group.op_bits =
            PEAL_ARENA_ARRAY(plan->arena, unsigned, schedule->op_count + 1);
        peal_cuda_group *deferred = &rank->lane[l].deferred;
        deferred->op = PEAL_ARENA_ARRAY(plan->arena, int, schedule->op_count + 1);
        deferred->op_instance = PEAL_ARENA_ARRAY(plan->arena, uint64_t, schedule->op_count + 1);
        deferred->op_bits = PEAL_ARENA_ARRAY(plan->arena, unsigned, schedule->op_count + 1);
        rank->lane[l].log =
            PEAL_ARENA_ARRAY(plan->arena, peal_cuda_log_entry, PEAL_CUDA_LOG_ENTRIES);
        rank->lane[l].graph_log =
            PEAL_ARENA_ARRAY(plan->arena, peal_cuda_log_entry, PEAL_CUDA_LOG_ENTRIES);
    }
    status = create_events(rank);
    return status ? status : write_first_messages(rank);
}

peal_status peal_cuda_plan_upload(peal_cuda_plan *plan)
{
    int64_t count = 0;

    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        for (int i = 0; i < rank->schedule->op_count; i++) {
            peal_cuda_op *op = &rank->op[i];
            count += op->pieces.count;
            if (op->source->kind == PEAL_OP_WAIT && op->self)
                op->peer_op = find_peer_write(op->peer, rank, op->source);
        }
    }
    if (count == 0)
        return PEAL_STATUS_OK;
    peal_device_piece *all = PEAL_ARENA_ARRAY(plan->arena, peal_device_piece, count);
    size_t bytes = (size_t)count * sizeof(*all);
    bool copied;
    char text[160];

    for (int r = 0, at = 0; r < plan->rank_count; r++)
        for (int i = 0; i < plan->rank[r].schedule->op_count; i++) {
            const peal_cuda_pieces *pieces = &plan->rank[r].op[i].pieces;
            if (pieces->count > 0)
                memcpy(all + at, pieces->piece, (size_t)pieces->count * sizeof(*all));
            at += pieces->count;
        }
    CUresult result =
        peal_cuda_table_create(plan->device, all, bytes, &plan->tables_device, &copied);
    if (result && !copied)
        return peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE,
                           NULL, "no device memory for %lld pieces of messages: %s",
                           (long long)count, peal_cuda_error(result, text));
    if (result)
        return peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE,
                           NULL, "cannot copy the tables of messages to the device: %s",
                           peal_cuda_error(result, text));
    uint64_t before = 0;
    for (int r = 0; r < plan->rank_count; r++)
        for (int i = 0; i < plan->rank[r].schedule->op_count; i++) {
            peal_cuda_pieces *pieces = &plan->rank[r].op[i].pieces;
            pieces->table = plan->tables_device + before * sizeof(*all);
            before += (uint64_t)pieces->count;
        }
    return PEAL_STATUS_OK;
}
