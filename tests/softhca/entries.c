/* Our own entries of an mlx5 queue beside libmlx5's, and rung by our own stores. Run by softhca.
 *
 *   entries equal          10^5 random messages, byte for byte as libmlx5 writes them
 *   entries rung           3000 messages that the adapter takes from our stores alone
 *   entries rung MUTANT    the same with a mistake in it: number, queue, key, slot, early, order,
 *                          half, overrun, taken, reuse
 *
 * Exit codes: 0; 1: bytes differ; 2: a completion tells an error; 3: a word did not come. */
#define _GNU_SOURCE
#include "ends.h"
#include "runtime/network/mlx5_entries.h"

#include <infiniband/mlx5dv.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    BYTES = 1 << 20,
    WORDS = BYTES - 4096,
    BACK = WORDS + 64, /* where words before an addition go */
    SLOTS = 4,
    SLOT_BYTES = 65536,
    ALIKE = 100000,
    RUNG = 3000,
    SIGNAL_EACH = 8,
    MOST_S = 2 /* until a word has come */
};

enum { FINE, DIFFERS, REFUSED, LOST };

typedef struct couple {
    end one, two;
    card there;
    struct mlx5dv_qp queue;
    struct mlx5dv_cq ring;
    mlx5_queue own;
} couple;

static void *shared(void)
{
    int file = memfd_create("end", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, BYTES))
        abort();
    void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at;
}

static void open_couple(couple *c)
{
    open_end(&c->one, NULL, shared(), BYTES, 12);
    open_end(&c->two, c->one.device, shared(), BYTES, 12);
    card first = card_of(&c->one);
    c->there = card_of(&c->two);
    connect_end(&c->one, &c->there);
    connect_end(&c->two, &first);
    c->queue = (struct mlx5dv_qp){0};
    c->ring = (struct mlx5dv_cq){0};
    struct mlx5dv_obj object = {.qp = {c->one.queue, &c->queue}, .cq = {c->one.ring, &c->ring}};
    if (mlx5dv_init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) || c->queue.sq.stride != 64 ||
        c->ring.cqe_size != 64)
        abort();
    c->own = (mlx5_queue){c->queue.sq.buf, c->queue.sq.wqe_cnt, c->one.queue->qp_num};
}

/* ---- beside libmlx5 ---- */

static uint64_t random_state = 88172645463325252ULL;

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

/* Of an entry's bytes from `unread_at` on so many are no adapter's business: behind an inline word
 * four of its part, and what an addition would compare with. */
static bool is_alike(const couple *c, const mlx5_queue *ours, uint64_t number, uint32_t parts,
                     uint32_t unread_at, uint32_t unread)
{
    uint64_t theirs[8], mine[8];
    memcpy(theirs, (const void *)mlx5_entry_at(&c->own, number), sizeof(theirs));
    memcpy(mine, (const void *)mlx5_entry_at(ours, number), sizeof(mine));
    memset((char *)theirs + unread_at, 0, unread);
    memset((char *)mine + unread_at, 0, unread);
    if (!memcmp(theirs, mine, parts * 16UL) &&
        mlx5_doorbell(&c->own, number) == mlx5_doorbell(ours, number))
        return true;
    fprintf(stderr, "entry %lu:\n", number);
    for (int i = 0; i < 8; i++)
        fprintf(stderr, "  libmlx5 %016lx  ours %016lx\n", theirs[i], mine[i]);
    return false;
}

/* A message with a word behind it, or the word alone: written, or added to. */
static int equal(couple *c)
{
    mlx5_queue ours = {aligned_alloc(64, (size_t)c->own.blocks * 64), c->own.blocks, c->own.number};
    uint64_t number = 0, taken = 0, last[2] = {0};
    for (uint64_t i = 1; i <= ALIKE; i++) {
        uint32_t bytes = (uint32_t)draw(300), kind = (uint32_t)draw(3);
        uint64_t from = draw(SLOT_BYTES), there = draw(SLOT_BYTES), word = draw(UINT64_MAX);
        uint64_t at = WORDS + 8 * draw(8);
        mlx5_place to = {c->there.at + there, c->there.key},
                   words = {c->there.at + at, c->there.key};
        mlx5_place here = {(uintptr_t)c->one.at + from, c->one.memory->lkey};
        mlx5_place back = {(uintptr_t)c->one.at + BACK, c->one.memory->lkey};
        bool signals = i % SIGNAL_EACH == 0;
        uint64_t first = number;
        if (kind < 2) {
            bytes = kind ? 0 : bytes + 1;
            if (bytes)
                mlx5_put_bytes(&ours, number++, to, here, bytes, 0);
            mlx5_put_word(&ours, number++, words, word, signals);
            if (put(&c->one, &c->there, from, there, bytes, at, word, signals))
                return REFUSED;
        } else {
            mlx5_add_word(&ours, number++, words, word, back, signals);
            if (add(&c->one, &c->there, at, word, BACK, signals))
                return REFUSED;
        }
        for (uint64_t n = first; n < number; n++)
            if (!is_alike(c, &ours, n, kind == 2 ? 4 : 3, kind == 2 ? 40 : 44,
                          n + 1 < number ? 0
                          : kind == 2    ? 8
                                         : 4))
                return DIFFERS;
        uint32_t record = ((volatile uint32_t *)c->queue.dbrec)[MLX5_SENDS], counter;
        if (record != mlx5_record(number)) {
            fprintf(stderr, "record %08x, ours %08x\n", record, mlx5_record(number));
            return DIFFERS;
        }
        /* One behind, so that the adapter is not waited for. */
        if (!signals)
            continue;
        last[i / SIGNAL_EACH % 2] = number - 1;
        if (i == SIGNAL_EACH)
            continue;
        while (!mlx5_completion(c->ring.buf, c->ring.cqe_cnt, taken, &counter))
            sched_yield();
        if (counter != (last[(taken + 1) % 2] & 0xffff) || reap(&c->one, NULL) != IBV_WC_SUCCESS)
            return REFUSED;
        if (((volatile uint32_t *)c->ring.dbrec)[0] != mlx5_taken(++taken))
            return DIFFERS;
    }
    free(ours.entry);
    if (reap(&c->one, NULL) != IBV_WC_SUCCESS) /* of the last message */
        return REFUSED;
    return FINE;
}

/* ---- by our own stores ---- */

typedef struct sender {
    couple *c;
    uint64_t number, rings, completions;
    const char *mutant;
} sender;

static bool is_mutant(const sender *s, const char *name)
{
    return !strcmp(s->mutant, name);
}

static void ring(sender *s)
{
    mlx5_u64 doorbell = mlx5_doorbell(&s->c->own, s->number - 1);
    volatile mlx5_u32 *record = (volatile mlx5_u32 *)s->c->queue.dbrec + MLX5_SENDS;
    mlx5_u8 *at = (mlx5_u8 *)s->c->queue.bf.reg + (s->rings++ & 1) * s->c->queue.bf.size;
    atomic_thread_fence(memory_order_seq_cst);
    if (!is_mutant(s, "order"))
        *record = mlx5_record(s->number);
    atomic_thread_fence(memory_order_seq_cst);
    if (is_mutant(s, "half")) {
        ((volatile mlx5_u32 *)(void *)at)[0] = (mlx5_u32)doorbell;
        ((volatile mlx5_u32 *)(void *)at)[1] = (mlx5_u32)(doorbell >> 32);
    } else {
        *(volatile mlx5_u64 *)(void *)at = doorbell;
    }
    atomic_thread_fence(memory_order_seq_cst);
    *record = mlx5_record(s->number);
}

/* Message m: bytes into its slot, and the word behind it; every other word is added to. */
static void send(sender *s, uint64_t m, uint32_t bytes)
{
    couple *c = s->c;
    uint64_t slot = m % SLOTS * SLOT_BYTES;
    uint64_t wrong = is_mutant(s, "slot") ? 64 : 0;
    mlx5_place to = {c->there.at + slot + wrong, c->there.key + is_mutant(s, "key") * 0x100U};
    mlx5_place word = {c->there.at + WORDS, c->there.key};
    mlx5_place from = {(uintptr_t)c->one.at + slot, c->one.memory->lkey};
    mlx5_place back = {(uintptr_t)c->one.at + BACK, c->one.memory->lkey};
    uint64_t number = s->number + is_mutant(s, "number") * (uint64_t)c->own.blocks;
    mlx5_queue own = c->own;
    own.number += is_mutant(s, "queue");
    int early = is_mutant(s, "early");
    mlx5_put_bytes(&own, number + (uint64_t)early, to, from, bytes, 0);
    if (m % 2 || early)
        mlx5_put_word(&own, number + 1 - (uint64_t)early, word, m, 1);
    else
        mlx5_add_word(&own, number + 1, word, 1, back, 1);
    s->number += 2;
    ring(s);
}

/* 1: all that has been rung for is done. */
static int take_completions(sender *s)
{
    couple *c = s->c;
    uint32_t counter;
    while (s->completions < s->number / 2) {
        int state = mlx5_completion(c->ring.buf, c->ring.cqe_cnt, s->completions, &counter);
        if (!state) {
            sched_yield();
            continue;
        }
        if (state < 0)
            return state;
        s->completions++;
        if (!is_mutant(s, "taken"))
            ((volatile mlx5_u32 *)c->ring.dbrec)[0] = mlx5_taken(s->completions);
    }
    return 1;
}

static int await_word(const couple *c, const sender *s, uint64_t value)
{
    uint32_t counter;
    time_t begin = time(NULL);
    while (__atomic_load_n((uint64_t *)(void *)(c->two.at + WORDS), __ATOMIC_ACQUIRE) != value) {
        if (mlx5_completion(c->ring.buf, c->ring.cqe_cnt, s->completions, &counter) < 0)
            return REFUSED;
        if (time(NULL) > begin + MOST_S)
            return LOST;
        sched_yield();
    }
    return FINE;
}

static bool has_arrived(const couple *c, uint64_t m, uint32_t bytes)
{
    const unsigned char *at = c->two.at + m % SLOTS * SLOT_BYTES;
    for (uint32_t i = 0; i < bytes; i++)
        if (at[i] != (unsigned char)(m * 7 + i)) {
            fprintf(stderr, "message %lu: byte %u is wrong\n", m, i);
            return false;
        }
    return true;
}

static int rung(couple *c, const char *mutant)
{
    sender s = {.c = c, .mutant = mutant};
    if (is_mutant(&s, "overrun")) { /* more than the ring holds, rung for at once */
        mlx5_place word = {c->there.at + WORDS, c->there.key};
        for (; s.number < c->own.blocks + 8; s.number++)
            mlx5_put_word(&c->own, s.number, word, 1, 0);
        ring(&s);
        return await_word(c, &s, 1);
    }
    for (uint64_t m = 1; m <= RUNG; m++) {
        uint32_t bytes = (uint32_t)(m * 37 % 5000 + 1);
        unsigned char *from = c->one.at + m % SLOTS * SLOT_BYTES;
        for (uint32_t i = 0; i < bytes; i++)
            from[i] = (unsigned char)(m * 7 + i);
        send(&s, m, bytes);
        int code = await_word(c, &s, m);
        if (code)
            return code;
        if (!has_arrived(c, m, bytes))
            return DIFFERS;
        if (is_mutant(&s, "reuse")) /* as if its place were free, since the message has arrived */
            mlx5_set_word(&c->own, s.number - 1, m + 1);
        if (m % SIGNAL_EACH == 0 && take_completions(&s) < 0)
            return REFUSED;
    }
    return take_completions(&s) < 0 ? REFUSED : FINE;
}

int main(int argc, char **argv)
{
    couple c;
    if (!has_device())
        return 77;
    open_couple(&c);
    int code =
        argc > 1 && !strcmp(argv[1], "equal") ? equal(&c) : rung(&c, argc > 2 ? argv[2] : "");
    if (code)
        return code;
    close_end(&c.one);
    close_end(&c.two);
    ibv_close_device(c.one.device);
    return code;
}
