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
        !verbs_begin_queue(network, ring->queue))
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
        if (!verbs_join_queue(end->link, end->ring[i].queue, ours[i].first_packet, theirs[i].queue,
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
        verbs_give_up(end->link);
    }
    end->ring_count = end->ring ? count : 0;
    for (int i = 0; i < count && !status; i++) {
        mlx5_ring *ring = &end->ring[i];
        status = make_ring(end, ring, entries_of(count), diagnostics);
        if (!status && getrandom(&ring->first_packet, sizeof(ring->first_packet), 0) !=
                           (ssize_t)sizeof(ring->first_packet))
            status = cannot(end, diagnostics, "have a random number");
        ring->first_packet &= (1U << NUMBER_BITS) - 1;
        bool sends = i < end->pair->out_count; /* others only receive */
        ring->each = sends ? (mlx5_u32)peal_put_entries(&end->pair->out[i]) : 1;
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
            verbs_end_queue(end->link, end->ring[i].queue);
        if (end->ring[i].completions)
            verbs->ibv_destroy_cq(end->ring[i].completions);
    }
    free(end->ring);
    end->ring = NULL;
    end->ring_count = 0;
}

/* ---- messages ---- */

/* The record has the lower half of a count of entries, and a ring fewer than half of that many. */
static uint64_t rung_for(const mlx5_ring *ring)
{
    uint16_t end = (uint16_t)mlx5_big32(*ring->record);
    uint16_t behind = (uint16_t)(end - (uint16_t)(ring->done * ring->each));
    return ring->done + behind / ring->each;
}

/* true: all that has been rung for has arrived. */
static bool reap_ring(verbs_end *end, mlx5_ring *ring)
{
    const verbs_library *verbs = end->link->network->library;
    const uint64_t before = ring->done, rung = rung_for(ring);
    mlx5_u32 counter;
    int state = 1;
    while (ring->done < rung && state > 0) {
        state = mlx5_completion(ring->completion, ring->completion_count, ring->done, &counter);
        ring->done += state > 0;
    }
    if (ring->done != before)
        *ring->taken = mlx5_taken(ring->done);
    if (state < 0) {
        struct ibv_wc got; /* libmlx5 knows what the syndrome means, but not what we have taken */
        int count = ring->done ? 0 : ibv_poll_cq(ring->completions, 1, &got);
        char text[32];
        snprintf(text, sizeof(text), "syndrome %#x", (unsigned)-state);
        verbs_lose(end->link, "a message was not taken",
                   count == 1 ? verbs->ibv_wc_status_str(got.status) : text);
    }
    return ring->done == rung;
}

bool mlx5_reap(verbs_end *end)
{
    bool all = true;
    if (end->is_silent)
        return true;
    for (int i = 0; i < end->ring_count; i++)
        all &= reap_ring(end, &end->ring[i]);
    return all || atomic_load(&end->link->is_broken);
}

static uint64_t most_messages(const mlx5_ring *ring)
{
    uint64_t messages = ring->own.blocks / ring->each;
    return messages < ring->completion_count ? messages : ring->completion_count;
}

/* For so many messages that have not been built. */
static bool has_room(verbs_end *end, mlx5_ring *ring, uint64_t messages)
{
    uint64_t most = most_messages(ring);
    if (ring->built - ring->done + messages <= most)
        return true;
    reap_ring(end, ring);
    return ring->built - ring->done + messages <= most;
}

/* The next message. */
static void build(const verbs_end *end, int number)
{
    const peal_put *put = &end->pair->out[number];
    const verbs_put *to = &end->out[number];
    mlx5_ring *ring = &end->ring[number];
    uint64_t at = ring->built * ring->each, value = put->first + (ring->built + 1) * put->quantum;
    if (put->bytes) {
        uint64_t slot = value / put->quantum % (uint64_t)put->slots * (uint64_t)put->slot_bytes;
        mlx5_put_bytes(&ring->own, at++, (mlx5_place){to->slot + slot, to->slot_key},
                       (mlx5_place){(uintptr_t)peal_put_slot(put, value), to->own_key},
                       (mlx5_u32)put->bytes, 0);
    }
    mlx5_put_word(&ring->own, at, (mlx5_place){to->word, to->word_key}, value, 1);
    ring->built++;
}

static void list_stores(const mlx5_ring *ring, uint64_t message,
                        peal_network_store out[PEAL_NETWORK_STORES])
{
    uint64_t count = message * ring->each;
    mlx5_u8 *half = ring->bell + (message & 1) * ring->bell_bytes;
    out[0] =
        (peal_network_store){(void *)(uintptr_t)ring->record, mlx5_record(count), sizeof(mlx5_u32)};
    out[1] = (peal_network_store){half, mlx5_doorbell(&ring->own, count - 1), sizeof(mlx5_u64)};
}

/* Entries, then the record, then the register: each must be seen before the next. */
static void ring_for(const mlx5_ring *ring, uint64_t message)
{
    peal_network_store store[PEAL_NETWORK_STORES];
    list_stores(ring, message, store);
    atomic_thread_fence(memory_order_seq_cst);
    *(volatile mlx5_u32 *)store[0].at = (mlx5_u32)store[0].value;
    atomic_thread_fence(memory_order_seq_cst);
    *(volatile mlx5_u64 *)store[1].at = store[1].value;
    atomic_thread_fence(memory_order_seq_cst);
}

/* What has been written ahead is only rung for. */
void mlx5_post(verbs_end *end, int number, uint64_t more)
{
    mlx5_ring *ring = &end->ring[number];
    ring->due += more;
    if (ring->is_rung_for || end->is_silent || atomic_load(&end->link->is_broken))
        return;
    while (ring->built < ring->due && has_room(end, ring, 1))
        build(end, number);
    uint64_t message = ring->built < ring->due ? ring->built : ring->due;
    if (message < ring->due)
        atomic_store(&end->link->has_pending, true);
    if (message > rung_for(ring))
        ring_for(ring, message);
}

void mlx5_doorbell_of(verbs_end *end, int number, peal_network_doorbell *out)
{
    const mlx5_ring *ring = &end->ring[number];
    const uintptr_t mask = ~(uintptr_t)(MLX5_PAGE_BYTES - 1);
    *out = (peal_network_doorbell){
        .size = sizeof(*out),
        .pages = {{(void *)((uintptr_t)ring->record & mask), MLX5_PAGE_BYTES, false},
                  {(void *)((uintptr_t)ring->bell & mask), MLX5_PAGE_BYTES, true}},
        .page_count = 2,
        .ahead = (int64_t)most_messages(ring)};
}

bool mlx5_write_ahead(verbs_end *end, int number, uint64_t message)
{
    mlx5_ring *ring = &end->ring[number];
    if (end->is_silent)
        return message <= ring->built;
    if (message > ring->built && !has_room(end, ring, message - ring->built))
        return false;
    while (ring->built < message)
        build(end, number);
    return true;
}

int mlx5_stores(verbs_end *end, int number, uint64_t message,
                peal_network_store out[PEAL_NETWORK_STORES])
{
    const peal_put *put = &end->pair->out[number];
    mlx5_ring *ring = &end->ring[number];
    list_stores(ring, message, out);
    ring->is_rung_for = true;
    ring->due = message > ring->due ? message : ring->due;
    end->out[number].due = put->first + ring->due * put->quantum;
    return PEAL_NETWORK_STORES;
}

/* Entries that are rung for from now on are flushed. */
void mlx5_silence(verbs_end *end)
{
    if (end->is_silent)
        return;
    end->is_silent = true;
    for (int i = 0; i < end->ring_count; i++)
        if (end->ring[i].queue)
            verbs_stop_queue(end->link, end->ring[i].queue);
}
