/* The data half of the software adapter: registers, records, entries, data, completions. It does
 * what an adapter does with them, in the layouts of <infiniband/mlx5dv.h>, and tells what an
 * adapter must not see. */
#define _GNU_SOURCE
#include "world.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MTU = 4096,
    MOST_BYTES = 64 << 20, /* of a message */
    MOST_PARTS = 63,       /* 16-byte parts of an entry */
    SLOW_NS = 50000,
    LATE_NS = 5000000,
    BURST = 8,            /* entries of a queue in a turn */
    COMPLETION_RECORD = 0 /* word of a completion ring's record: what has been consumed */
};

/* An entry as it was fetched: in one piece, though the ring wraps. */
typedef struct entry {
    unsigned char byte[MOST_PARTS * 16];
    uint32_t opcode, parts;
    bool signals;
} entry;

void hca_wrong(hca_world *world, const char *format, ...)
{
    va_list arguments;
    if (atomic_fetch_add(&world->counts.wrong, 1) >= 10)
        return;
    va_start(arguments, format);
    fputs("softhca: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static hca_range queue_range(const hca_queue *q, uint32_t number)
{
    return (hca_range){HCA_OF_QUEUE, number,    q->generation,
                       q->pid,       q->buffer, (uint64_t)q->entries * HCA_ENTRY_BYTES};
}

/* ---- completions ---- */

/* false: its process is gone. */
static bool ring_consumed(const hca_ring *ring, uint32_t number, uint32_t *out)
{
    hca_range range = {HCA_OF_RING_RECORD, number, ring->generation, ring->pid, ring->record, 8};
    uint32_t word = 0;
    bool there = hca_read(&range, ring->record + COMPLETION_RECORD * 4, &word, sizeof(word));
    *out = be32toh(word) & 0xffffff;
    return there;
}

static void complete(hca_world *world, const hca_queue *q, const hca_unacknowledged *e)
{
    hca_ring *ring = &world->ring[q->ring];
    hca_range range = {HCA_OF_RING, (uint32_t)q->ring, ring->generation,
                       ring->pid,   ring->buffer,      (uint64_t)ring->entries * HCA_ENTRY_BYTES};
    uint64_t at = ring->buffer + (uint64_t)(ring->produced % ring->entries) * HCA_ENTRY_BYTES;
    uint8_t turn = (ring->produced & ring->entries) != 0, before = 0;
    struct mlx5_cqe64 c = {.byte_cnt = htobe32(e->bytes),
                           .sop_drop_qpn = htobe32(e->opcode << 24 | q->number),
                           .wqe_counter = htobe16(e->number),
                           .op_own = (uint8_t)(MLX5_CQE_REQ << 4 | turn)};
    if (e->syndrome) {
        struct mlx5_err_cqe error = {.vendor_err_synd = 0x88,
                                     .syndrome = e->syndrome,
                                     .s_wqe_opcode_qpn = htobe32(e->opcode << 24 | q->number),
                                     .wqe_counter = htobe16(e->number),
                                     .op_own = (uint8_t)(MLX5_CQE_REQ_ERR << 4 | turn)};
        memcpy(&c, &error, sizeof(c));
    }
    uint32_t consumed;
    if (!ring_consumed(ring, (uint32_t)q->ring, &consumed) ||
        !hca_read(&range, at + HCA_ENTRY_BYTES - 1, &before, 1))
        return;
    if (((ring->produced - consumed) & 0xffffff) >= ring->entries)
        hca_wrong(world, "queue %#x: its completion ring of %u is full", q->number, ring->entries);
    if (before >> 4 != 0xf && (before & 1) == turn)
        hca_wrong(world, "queue %#x: owner bit %u of completion %u before its turn", q->number,
                  before & 1U, ring->produced);
    if (!hca_write(&range, at, &c, HCA_ENTRY_BYTES - 8) ||
        !hca_write(&range, at + HCA_ENTRY_BYTES - 8, (char *)&c + HCA_ENTRY_BYTES - 8, 8))
        return; /* its process is gone */
    ring->produced++;
    atomic_fetch_add(&world->counts.completions, 1);
}

/* The oldest entry that waits for it. An adapter whose acknowledgement was lost fetches the entry
 * again: it must still be what it was. */
static void acknowledge(hca_world *world, hca_queue *q, uint32_t number)
{
    const hca_unacknowledged *e = &q->wait[q->first_waiting % HCA_WAITING];
    hca_range range = queue_range(q, number);
    unsigned char now[HCA_ENTRY_BYTES];
    uint64_t at = (uint64_t)(e->number % q->entries) * HCA_ENTRY_BYTES;
    bool there = hca_read(&range, q->buffer + at, now, e->fetched);
    if (there && memcmp(now, e->copy, e->fetched) != 0)
        hca_wrong(world, "queue %#x: entry %u was changed before it was acknowledged", q->number,
                  e->number);
    if (there && e->completes)
        complete(world, q, e);
    q->first_waiting++;
    q->waiting--;
}

/* ---- memory that entries name ---- */

static hca_region *region_of(hca_world *world, uint32_t key)
{
    uint32_t number = (key >> 8) - 1;
    if (number >= HCA_REGIONS || atomic_load(&world->region[number].used) != HCA_USED ||
        (world->region[number].generation & 0xff) != (key & 0xff))
        return NULL;
    return &world->region[number];
}

static bool holds(const hca_region *region, uint64_t address, uint64_t bytes)
{
    return address >= region->address && bytes <= region->bytes &&
           address - region->address <= region->bytes - bytes;
}

static hca_range region_range(const hca_world *world, const hca_region *region)
{
    return (hca_range){HCA_OF_REGION,      (uint32_t)(region - world->region),
                       region->generation, region->pid,
                       region->address,    region->bytes};
}

/* The peer's region, if it may be accessed so; NULL: it may not. */
static hca_region *remote_region(hca_world *world, const hca_queue *peer, uint32_t key,
                                 uint64_t address, uint64_t bytes, uint32_t access)
{
    hca_region *region = region_of(world, key);
    return region && region->pid == peer->pid && (region->access & access) == access &&
                   holds(region, address, bytes)
               ? region
               : NULL;
}

/* ---- entries ---- */

static bool fetch(hca_world *world, const hca_queue *q, uint32_t number, entry *out)
{
    hca_range range = queue_range(q, number);
    uint64_t at = (uint64_t)(q->executed % q->entries) * HCA_ENTRY_BYTES;
    struct mlx5_wqe_ctrl_seg control;
    if (!hca_read(&range, q->buffer + at, &control, sizeof(control)))
        return false;
    uint32_t first = be32toh(control.opmod_idx_opcode), second = be32toh(control.qpn_ds);
    out->opcode = first & 0xff;
    out->parts = second & 0x3f;
    out->signals = (control.fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE) != 0;
    if ((first >> 8 & 0xffff) != q->executed || second >> 8 != q->number || !out->parts) {
        hca_wrong(world, "queue %#x, entry %u: it says queue %#x, entry %u, %u parts", q->number,
                  q->executed, second >> 8, first >> 8 & 0xffff, out->parts);
        out->parts = 1;
        out->opcode = 0xff;
    }
    for (uint32_t i = 0; i < out->parts; i++)
        if (!hca_read(&range, q->buffer + (at + i * 16ULL) % range.bytes,
                      out->byte + (size_t)i * 16, 16))
            return false;
    return true;
}

/* The bytes that an entry names from part `part` on, one behind the other. */
static uint8_t gather(hca_world *world, const hca_queue *q, const entry *e, uint32_t part,
                      unsigned char *to, uint32_t *bytes)
{
    *bytes = 0;
    while (part < e->parts) {
        struct mlx5_wqe_data_seg data;
        memcpy(&data, e->byte + (size_t)part * 16, sizeof(data));
        uint32_t count = be32toh(data.byte_count);
        if (count & MLX5_INLINE_SEG) {
            count &= 0x3ff;
            if (4 + count > (e->parts - part) * 16)
                return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
            memcpy(to + *bytes, e->byte + (size_t)part * 16 + 4, count);
            *bytes += count;
            part += (4 + count + 15) / 16;
            continue;
        }
        count = count ? count : 1U << 31;
        hca_region *region = region_of(world, be32toh(data.lkey));
        if (count > MOST_BYTES - *bytes)
            return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
        if (!region || region->pid != q->pid || !holds(region, be64toh(data.addr), count))
            return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
        hca_range range = region_range(world, region);
        if (!hca_read(&range, be64toh(data.addr), to + *bytes, count))
            return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
        *bytes += count;
        part++;
    }
    return 0;
}

/* In their order; or from any one on around, with every third sent again. */
static bool send_packets(const hca_world *world, const hca_range *to, uint64_t address,
                         const unsigned char *from, uint32_t bytes)
{
    static _Thread_local uint32_t state = 1;
    uint32_t packets = (bytes + MTU - 1) / MTU;
    state = state * 1664525 + 1013904223;
    uint32_t first = world->form.shuffles ? (state >> 8) % packets : 0;
    uint32_t more = world->form.shuffles ? packets / 3 + 1 : 0;
    for (uint32_t i = 0; i < packets + more; i++) {
        uint32_t at = (first + i) % packets * MTU, count = bytes - at < MTU ? bytes - at : MTU;
        if (!hca_write(to, address + at, from + at, count))
            return false;
    }
    return true;
}

static uint8_t write_remote(hca_world *world, const hca_queue *q, const hca_queue *peer,
                            const entry *e, uint32_t *bytes)
{
    static _Thread_local unsigned char *buffer;
    struct mlx5_wqe_raddr_seg to;
    memcpy(&to, e->byte + 16, sizeof(to));
    buffer = buffer ? buffer : malloc(MOST_BYTES);
    uint8_t syndrome =
        buffer ? gather(world, q, e, 2, buffer, bytes) : MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    if (syndrome || *bytes == 0)
        return syndrome;
    if (world->form.most_bytes && *bytes > world->form.most_bytes)
        return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    uint64_t address = be64toh(to.raddr);
    hca_region *region =
        remote_region(world, peer, be32toh(to.rkey), address, *bytes, IBV_ACCESS_REMOTE_WRITE);
    if (!region)
        return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
    hca_range range = region_range(world, region);
    return send_packets(world, &range, address, buffer, *bytes)
               ? 0
               : MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
}

static uint8_t add_remote(hca_world *world, const hca_queue *q, const hca_queue *peer,
                          const entry *e)
{
    struct mlx5_wqe_raddr_seg to;
    struct mlx5_wqe_atomic_seg what;
    struct mlx5_wqe_data_seg back;
    uint64_t before = 0;
    if (e->parts < 4)
        return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    memcpy(&to, e->byte + 16, sizeof(to));
    memcpy(&what, e->byte + 32, sizeof(what));
    memcpy(&back, e->byte + 48, sizeof(back));
    uint64_t address = be64toh(to.raddr), answer = be64toh(back.addr);
    hca_region *region = remote_region(world, peer, be32toh(to.rkey), address, sizeof(uint64_t),
                                       IBV_ACCESS_REMOTE_ATOMIC);
    hca_region *own = region_of(world, be32toh(back.lkey));
    if (!own || own->pid != q->pid || !holds(own, answer, sizeof(before)))
        return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
    if (address % sizeof(uint64_t))
        return MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR;
    if (!region)
        return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
    hca_range there = region_range(world, region), here = region_range(world, own);
    if (!hca_add(&there, address, be64toh(what.swap_add), &before) ||
        !hca_write(&here, answer, &before, sizeof(before)))
        return MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
    return 0;
}

/* NULL: nobody answers there, or drops what comes: it is joined to another queue, or expects other
 * packets. */
static hca_queue *peer_of(hca_world *world, const hca_queue *q)
{
    hca_queue *peer = &world->queue[(q->peer - HCA_QUEUE_NUMBER) % HCA_QUEUES];
    uint32_t state = atomic_load(&peer->state);
    bool answers = atomic_load(&peer->used) == HCA_USED && peer->number == q->peer &&
                   (state == IBV_QPS_RTR || state == IBV_QPS_RTS) && peer->peer == q->number &&
                   peer->first_taken == q->first_sent && peer->mtu == q->mtu;
    return answers && (kill(peer->pid, 0) == 0 || errno == EPERM) ? peer : NULL;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Whether the next entry is on its way, or nobody has answered to it yet: an adapter sends again
 * after 4.096 us * 2^timeout, so many times. */
static bool waits(hca_world *world, hca_queue *q)
{
    const uint64_t every = world->form.loses, now_done = atomic_load(&world->counts.entries);
    const bool answers = !atomic_load(&world->is_cut) && peer_of(world, q);
    const bool is_lost = every && now_done % every == every - 1 && !q->is_resent;
    if (atomic_load(&q->state) != IBV_QPS_RTS || (answers && !is_lost)) {
        q->tried_ns = 0;
        return false;
    }
    const int64_t once_ns = INT64_C(4096) << q->timeout;
    q->tried_ns = q->tried_ns ? q->tried_ns : now_ns();
    if (now_ns() - q->tried_ns < (answers ? once_ns : once_ns * (1 + (int64_t)q->retries)))
        return true;
    q->tried_ns = 0;
    q->is_resent = true;
    return false;
}

static uint8_t do_entry(hca_world *world, hca_queue *q, const entry *e, uint32_t *bytes)
{
    const hca_queue *peer = peer_of(world, q);
    if (atomic_load(&q->state) == IBV_QPS_ERR) {
        atomic_fetch_add(&world->counts.after_error, 1);
        return MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
    }
    if (atomic_load(&q->state) != IBV_QPS_RTS || e->opcode == 0xff)
        return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    if (!peer || (q->is_resent && atomic_load(&world->is_cut)) ||
        (world->form.fails_at && atomic_load(&world->counts.entries) + 1 == world->form.fails_at))
        return MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
    if (e->opcode == MLX5_OPCODE_RDMA_WRITE && !(peer->access & IBV_ACCESS_REMOTE_WRITE))
        return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
    if (e->opcode == MLX5_OPCODE_ATOMIC_FA && !(peer->access & IBV_ACCESS_REMOTE_ATOMIC))
        return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
    if (e->opcode == MLX5_OPCODE_RDMA_WRITE && e->parts >= 2)
        return write_remote(world, q, peer, e, bytes);
    if (e->opcode == MLX5_OPCODE_ATOMIC_FA)
        return add_remote(world, q, peer, e);
    if (e->opcode == MLX5_OPCODE_NOP)
        return 0;
    hca_wrong(world, "queue %#x, entry %u: opcode %#x", q->number, q->executed, e->opcode);
    return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
}

static void execute(hca_world *world, hca_queue *q, uint32_t number)
{
    entry e;
    uint32_t bytes = 0;
    if (!fetch(world, q, number, &e)) {
        q->executed = q->rung; /* its process is gone */
        q->waiting = 0;
        return;
    }
    uint8_t syndrome = do_entry(world, q, &e, &bytes);
    q->is_resent = false;
    if (syndrome)
        atomic_store(&q->state, IBV_QPS_ERR);
    if (q->waiting == HCA_WAITING)
        acknowledge(world, q, number);
    hca_unacknowledged *w = &q->wait[(q->first_waiting + q->waiting++) % HCA_WAITING];
    *w = (hca_unacknowledged){.number = q->executed,
                              .syndrome = syndrome,
                              .completes = syndrome || e.signals,
                              .opcode = e.opcode,
                              .bytes = bytes,
                              .fetched = e.parts < 4 ? e.parts * 16 : HCA_ENTRY_BYTES};
    memcpy(w->copy, e.byte, w->fetched);
    q->executed = (uint16_t)(q->executed + (e.parts + 3) / 4);
    q->worked_ns = world->form.is_late ? now_ns() : 0;
    if (world->form.is_slow)
        nanosleep(&(struct timespec){.tv_nsec = SLOW_NS}, NULL);
    if (syndrome != MLX5_CQE_SYNDROME_WR_FLUSH_ERR) /* that is counted apart */
        atomic_fetch_add(&world->counts.entries, 1);
    atomic_fetch_add(&world->counts.bytes, bytes);
}

/* ---- doorbells ---- */

/* A doorbell's word is the first eight bytes of the last entry, as they lie in memory. Queues may
 * share the register of q. */
static void ring(hca_world *world, const hca_queue *q, uint64_t word)
{
    uint32_t half[2], record = 0;
    memcpy(half, &word, sizeof(half));
    uint32_t name = be32toh(half[1]) >> 8, number = (name - HCA_QUEUE_NUMBER) % HCA_QUEUES;
    uint16_t index = (uint16_t)(be32toh(half[0]) >> 8);
    hca_queue *to = &world->queue[number];
    if (to->number != name || to->page != q->page || to->offset != q->offset) {
        hca_wrong(world, "queue %#x: a doorbell for queue %#x, or half of one", q->number, name);
        return;
    }
    hca_range range = {HCA_OF_QUEUE_RECORD, number, to->generation, to->pid, to->record, 8};
    if (!hca_read(&range, to->record + (uint64_t)MLX5_SND_DBR * 4, &record, sizeof(record)))
        return;
    if (world->form.by_steps)
        record = atomic_load(&to->seen);
    uint16_t end = (uint16_t)be32toh(record);
    if ((int16_t)(end - index) <= 0)
        hca_wrong(world, "queue %#x: doorbell of entry %u before its record, which says %u", name,
                  index, end);
    if ((uint16_t)(end - to->executed) > to->entries)
        hca_wrong(world, "queue %#x: record %u, but %u of %u entries are executed: overrun", name,
                  end, to->executed, to->entries);
    to->rung = end;
    atomic_fetch_add(&world->counts.doorbells, 1);
}

static bool look_at_register(hca_world *world, const hca_queue *q)
{
    bool found = false;
    for (int half = 0; half < 2; half++) {
        uint64_t *at =
            (uint64_t *)(void *)(world->page[q->page] + q->offset + half * HCA_REGISTER_BYTES / 2);
        if (!__atomic_load_n(at, __ATOMIC_RELAXED))
            continue;
        ring(world, q, __atomic_exchange_n(at, 0, __ATOMIC_ACQ_REL));
        found = true;
    }
    return found;
}

/* Late: as many others have been executed, or nothing has for a while. */
static bool is_due(const hca_world *world, const hca_queue *q)
{
    return !world->form.is_late || q->waiting > HCA_WAITING / 2 ||
           now_ns() - q->worked_ns > LATE_NS;
}

bool hca_turn(hca_world *world, int32_t pid)
{
    bool found = false;
    const uint64_t last = world->form.dies_at, down = world->form.downs_at;
    const uint64_t now_done = atomic_load(&world->counts.entries);
    bool is_dead = (last && now_done >= last) || atomic_load(&world->is_down);
    if (down && now_done >= down)
        atomic_store(&world->is_down, true);
    for (uint32_t i = 0; i < HCA_QUEUES; i++) {
        hca_queue *q = &world->queue[i];
        uint32_t used = atomic_load_explicit(&q->used, memory_order_acquire);
        if (used < HCA_USED || (pid && q->pid != pid))
            continue;
        if (used == HCA_CLOSING) {
            atomic_store(&q->used, HCA_FREE);
            continue;
        }
        if (is_dead)
            continue;
        found |= look_at_register(world, q);
        for (int burst = 0; burst < BURST && q->executed != q->rung && !waits(world, q); burst++) {
            execute(world, q, i);
            found = true;
        }
        while (q->waiting > 0 && is_due(world, q))
            acknowledge(world, q, i);
    }
    return found;
}

/* Ended, whoever has not taken note of it yet. */
static bool has_ended(int32_t pid)
{
    char path[64], line[256], state = 'Z';
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT;
    if (fgets(line, sizeof(line), file) && strrchr(line, ')'))
        state = strrchr(line, ')')[2];
    fclose(file);
    return state == 'Z' || state == 'X';
}

static void sweep(_Atomic uint32_t *used, int32_t pid)
{
    uint32_t is_used = HCA_USED;
    if (atomic_load(used) == HCA_USED && has_ended(pid))
        atomic_compare_exchange_strong(used, &is_used, HCA_FREE);
}

void hca_sweep(hca_world *world)
{
    for (int i = 0; i < HCA_QUEUES; i++)
        sweep(&world->queue[i].used, world->queue[i].pid);
    for (int i = 0; i < HCA_RINGS; i++)
        sweep(&world->ring[i].used, world->ring[i].pid);
    for (int i = 0; i < HCA_REGIONS; i++)
        sweep(&world->region[i].used, world->region[i].pid);
    int32_t asked = 0; /* of neighbours, which mostly have one owner, once */
    bool ended = false;
    for (int i = 0; i < HCA_PAGES; i++) {
        int32_t owner = atomic_load(&world->owner[i]);
        if (owner && owner != asked)
            ended = has_ended(owner);
        asked = owner ? owner : asked;
        if (owner && ended)
            atomic_compare_exchange_strong(&world->owner[i], &owner, 0);
    }
}
