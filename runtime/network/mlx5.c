/* Own rings on an mlx5 adapter. What a put is due for is written into its ring and rung for by two
 * stores: the record, then the register. A place in the ring is taken again only when the
 * completion of what lay there has been taken. */
#include "runtime/network/mlx5.h"
#include "base/diagnostic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { NUMBER_BITS = 24 };

/* What an end says of one of its rings. */
typedef struct mlx5_card {
    uint32_t queue, first_packet;
} mlx5_card;

static peal_status cannot(const verbs_end *end, peal_diagnostics *diagnostics, const char *what)
{
    return peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0},
                       "use verbs, whose messages share a queue a process, or tcp",
                       "RDMA adapter %s: cannot %s for process %d: %s",
                       end->link->network->device.name, what, end->link->process, strerror(errno));
}

/* ---- making ---- */

/* Queues have two ends: ours that send, and those that only take what the other end sends. */
static int count_of(const verbs_end *end)
{
    return end->pair->out_count > end->pair->in_count ? end->pair->out_count : end->pair->in_count;
}

static uint32_t entries_of(int rings)
{
    uint32_t entries = MLX5_MOST_ENTRIES;
    while (entries > MLX5_LEAST_ENTRIES &&
           (uint64_t)entries * MLX5_BLOCK_BYTES * (uint64_t)rings > MLX5_RING_BYTES)
        entries /= 2;
    return entries;
}

static peal_status make_ring(const verbs_end *end, mlx5_ring *ring, uint32_t entries,
                             peal_diagnostics *diagnostics)
{
    const peal_network *network = end->link->network;
    const verbs_library *verbs = network->library;
    struct mlx5dv_qp queue = {0};
    struct mlx5dv_cq completions = {0};
    ring->completions = verbs->ibv_create_cq(network->device.context, (int)entries, NULL, NULL, 0);
    if (!ring->completions)
        return cannot(end, diagnostics, "make a completion ring");
    struct ibv_qp_init_attr asked = {.send_cq = ring->completions,
                                     .recv_cq = ring->completions,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = {.max_send_wr = entries,
                                             .max_recv_wr = 1,
                                             .max_send_sge = 1,
                                             .max_recv_sge = 1,
                                             .max_inline_data = VERBS_INLINE_BYTES}};
    ring->queue = verbs->ibv_create_qp(network->device.domain, &asked);
    struct mlx5dv_obj object = {.qp = {ring->queue, &queue},
                                .cq = {ring->completions, &completions}};
    if (!ring->queue || mlx5_get()->mlx5dv_init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) ||
        verbs_begin_queue(network, ring->queue))
        return cannot(end, diagnostics, "make a ring");
    if (queue.sq.stride != MLX5_BLOCK_BYTES || completions.cqe_size != MLX5_BLOCK_BYTES ||
        !queue.bf.size) {
        errno = ENOTSUP;
        return cannot(end, diagnostics, "write entries of another size");
    }
    ring->own = (mlx5_queue){queue.sq.buf, queue.sq.wqe_cnt, ring->queue->qp_num};
    ring->record = (volatile mlx5_u32 *)queue.dbrec + MLX5_SENDS;
    ring->bell = queue.bf.reg;
    ring->bell_bytes = queue.bf.size;
    ring->completion = completions.buf;
    ring->completion_count = completions.cqe_cnt;
    ring->taken = (volatile mlx5_u32 *)completions.dbrec;
    return PEAL_STATUS_OK;
}

static peal_status join_rings(verbs_end *end, const mlx5_card *ours, const mlx5_card *theirs,
                              peal_diagnostics *diagnostics)
{
    for (int i = 0; i < end->ring_count; i++)
        if (verbs_join_queue(end->link, end->ring[i].queue, ours[i].first_packet, theirs[i].queue,
                             theirs[i].first_packet))
            return cannot(end, diagnostics, "join a ring");
    return PEAL_STATUS_OK;
}

/* Before the first message goes both ends have joined their rings: the second swap. */
static peal_status swap_and_join(verbs_end *end, mlx5_card *ours, mlx5_card *theirs,
                                 peal_status status, peal_diagnostics *diagnostics)
{
    size_t bytes = ((size_t)end->ring_count + 1) * sizeof(mlx5_card);
    uint64_t ready = 0, they = 0;
    ours[end->ring_count].queue = status == PEAL_STATUS_OK;
    peal_status swapped = verbs_swap(end->link, ours, bytes, theirs, bytes);
    status = status ? status : swapped;
    if (!status && theirs[end->ring_count].queue)
        status = join_rings(end, ours, theirs, diagnostics);
    if (swapped)
        return status;
    ready = !status && theirs[end->ring_count].queue;
    swapped = verbs_swap(end->link, &ready, sizeof(ready), &they, sizeof(they));
    status = status ? status : swapped;
    if (!status && !they)
        status = peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0}, NULL,
                             "process %d cannot make rings for its messages", end->link->process);
    return status;
}

peal_status mlx5_make_rings(verbs_end *end, peal_diagnostics *diagnostics)
{
    int count = count_of(end);
    mlx5_card *ours = calloc((size_t)count + 1, sizeof(*ours));
    mlx5_card *theirs = calloc((size_t)count + 1, sizeof(*theirs));
    peal_status status = PEAL_STATUS_OK;
    end->ring = calloc((size_t)count + 1, sizeof(*end->ring));
    if (!ours || !theirs || !end->ring) {
        status = verbs_no_memory(diagnostics);
        atomic_store(&end->link->is_broken, true); /* the other end hears nothing more */
    }
    end->ring_count = end->ring ? count : 0;
    for (int i = 0; i < count && !status; i++) {
        mlx5_ring *ring = &end->ring[i];
        status = make_ring(end, ring, entries_of(count), diagnostics);
        if (!status && getrandom(&ring->first_packet, sizeof(ring->first_packet), 0) !=
                           (ssize_t)sizeof(ring->first_packet))
            status = cannot(end, diagnostics, "have a random number");
        ring->first_packet &= (1U << NUMBER_BITS) - 1;
        bool has_bytes = i < end->pair->out_count && end->pair->out[i].bytes > 0;
        ring->each = has_bytes ? 2 : 1;
        if (!status)
            ours[i] = (mlx5_card){ring->queue->qp_num, ring->first_packet};
    }
    if (ours && theirs && end->ring)
        status = swap_and_join(end, ours, theirs, status, diagnostics);
    free(ours);
    free(theirs);
    return status;
}

void mlx5_free_rings(verbs_end *end)
{
    const verbs_library *verbs = end->link->network->library;
    for (int i = 0; i < end->ring_count; i++) {
        if (end->ring[i].queue)
            verbs->ibv_destroy_qp(end->ring[i].queue);
        if (end->ring[i].completions)
            verbs->ibv_destroy_cq(end->ring[i].completions);
    }
    free(end->ring);
    end->ring = NULL;
    end->ring_count = 0;
}

/* ---- messages ---- */

static bool reap_ring(verbs_end *end, mlx5_ring *ring)
{
    const verbs_library *verbs = end->link->network->library;
    mlx5_u32 counter;
    while (ring->done < ring->rung) {
        int state = mlx5_completion(ring->completion, ring->completion_count, ring->done, &counter);
        if (!state)
            return false;
        if (state < 0) {
            struct ibv_wc got; /* libmlx5 knows what the syndrome means */
            int count = ibv_poll_cq(ring->completions, 1, &got);
            verbs_lose(end->link, "a message was not taken",
                       count == 1 ? verbs->ibv_wc_status_str(got.status) : "an error of the queue");
            return true;
        }
        ring->done++;
    }
    return true;
}

bool mlx5_reap(verbs_end *end)
{
    bool all = true;
    for (int i = 0; i < end->ring_count; i++) {
        mlx5_ring *ring = &end->ring[i];
        uint64_t before = ring->done;
        all &= reap_ring(end, ring);
        if (ring->done != before)
            *ring->taken = mlx5_taken(ring->done);
    }
    return all || atomic_load(&end->link->is_broken);
}

static bool has_room(verbs_end *end, mlx5_ring *ring)
{
    uint64_t messages = ring->own.blocks / ring->each;
    if (messages > ring->completion_count)
        messages = ring->completion_count;
    if (ring->built - ring->done < messages)
        return true;
    uint64_t before = ring->done;
    reap_ring(end, ring);
    if (ring->done != before)
        *ring->taken = mlx5_taken(ring->done);
    return ring->built - ring->done < messages;
}

/* The next message: the one that raises the put's word to a value. */
static void build(const verbs_end *end, int number, mlx5_ring *ring, uint64_t value)
{
    const peal_put *put = &end->pair->out[number];
    const verbs_put *to = &end->out[number];
    uint64_t at = ring->built * ring->each;
    if (put->bytes) {
        uint64_t slot = value / put->quantum % (uint64_t)put->slots * (uint64_t)put->slot_bytes;
        mlx5_put_bytes(&ring->own, at++, (mlx5_place){to->slot + slot, to->slot_key},
                       (mlx5_place){(uintptr_t)peal_put_slot(put, value), to->own_key},
                       (mlx5_u32)put->bytes, 0);
    }
    mlx5_put_word(&ring->own, at, (mlx5_place){to->word, to->word_key}, value, 1);
    ring->built++;
}

/* Entries, then the record, then the register: each must be seen before the next. */
static void ring_for(mlx5_ring *ring, uint64_t message)
{
    uint64_t end = message * ring->each;
    mlx5_u64 doorbell = mlx5_doorbell(&ring->own, end - 1);
    mlx5_u8 *half = ring->bell + (message & 1) * ring->bell_bytes;
    atomic_thread_fence(memory_order_seq_cst);
    *ring->record = mlx5_record(end);
    atomic_thread_fence(memory_order_seq_cst);
    *(volatile mlx5_u64 *)(void *)half = doorbell;
    atomic_thread_fence(memory_order_seq_cst);
    ring->rung = message;
}

void mlx5_post(verbs_end *end, int number)
{
    verbs_put *to = &end->out[number];
    mlx5_ring *ring = &end->ring[number];
    const uint64_t quantum = end->pair->out[number].quantum;
    if (atomic_load(&end->link->is_broken))
        return;
    while (to->sent != to->due && has_room(end, ring)) {
        build(end, number, ring, to->sent + quantum);
        to->sent += quantum;
    }
    if (to->sent != to->due)
        atomic_store(&end->link->has_pending, true);
    if (ring->rung != ring->built)
        ring_for(ring, ring->built);
}
