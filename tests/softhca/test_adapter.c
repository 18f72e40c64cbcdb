/* The software adapter, as unmodified libibverbs and libmlx5 see it: data before words, rings that
 * wrap, words that are added to, keys and ranges that are refused, and queues behind an error. Run
 * by softhca, which also tells whether the adapter saw what it must not see. */
#define _GNU_SOURCE
#include "ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4 << 20, WORDS = BYTES - 4096, SIGNAL_EACH = 8 };

static void *shared(void)
{
    int file = memfd_create("end", MFD_CLOEXEC);
    assert_true(file >= 0 && !ftruncate(file, BYTES));
    void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    assert_true(at != MAP_FAILED);
    return at;
}

typedef struct couple {
    end one, two;
    card first, second;
} couple;

static void open_couple(couple *c)
{
    open_end(&c->one, NULL, shared(), BYTES, 12);
    open_end(&c->two, c->one.device, shared(), BYTES, 12);
    c->first = card_of(&c->one);
    c->second = card_of(&c->two);
    connect_end(&c->one, &c->second);
    connect_end(&c->two, &c->first);
}

static void close_couple(couple *c)
{
    close_end(&c->one);
    close_end(&c->two);
    assert_int_equal(ibv_close_device(c->one.device), 0);
    munmap(c->one.at, BYTES);
    munmap(c->two.at, BYTES);
}

static uint64_t word_at(const end *e, uint64_t offset)
{
    return __atomic_load_n((uint64_t *)(void *)(e->at + offset), __ATOMIC_ACQUIRE);
}

static void await(const end *e, uint64_t offset, uint64_t value)
{
    while (word_at(e, offset) != value)
        sched_yield();
}

/* Message number `value`, so long, is there. */
static void assert_message(const unsigned char *at, uint32_t bytes, uint64_t value)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (at[i] != (unsigned char)(value + i))
            fail_msg("byte %u of message %lu is %u", i, value, at[i]);
}

static void fill(unsigned char *at, uint32_t bytes, uint64_t value)
{
    for (uint32_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value + i);
}

static void test_words_come_behind_data(void **state)
{
    static const uint32_t sizes[] = {1, 8, 64, 4095, 4097, 65536, 1 << 20};
    couple c;
    (void)state;
    open_couple(&c);
    for (uint64_t i = 1; i <= 1000; i++) {
        uint32_t bytes = i % 100 == 0 ? sizes[i / 100 % 7] : sizes[i % 4];
        fill(c.one.at, bytes, i);
        assert_int_equal(put(&c.one, &c.second, 0, 64, bytes, WORDS, i, i % SIGNAL_EACH == 0), 0);
        await(&c.two, WORDS, i);
        assert_message(c.two.at + 64, bytes, i);
        uint64_t id = 0;
        if (i % SIGNAL_EACH == 0) {
            assert_int_equal(reap(&c.one, &id), IBV_WC_SUCCESS);
            assert_int_equal(id, i);
        }
    }
    close_couple(&c);
}

static void test_words_are_added_to(void **state)
{
    const uint64_t eighth = 1ULL << 61; /* the sum wraps around */
    couple c;
    (void)state;
    open_couple(&c);
    for (uint64_t i = 1; i <= 100; i++) {
        assert_int_equal(add(&c.one, &c.second, WORDS + 8, eighth, 8, true), 0);
        assert_int_equal(reap(&c.one, NULL), IBV_WC_SUCCESS);
        assert_int_equal(word_at(&c.two, WORDS + 8), i * eighth);
        assert_int_equal(word_at(&c.one, 8), (i - 1) * eighth);
    }
    close_couple(&c);
}

/* A key that is not the peer's, an address behind its memory, and one of memory that is no longer
 * registered: told by a completion, and nothing is written; what is posted behind is flushed. */
static void test_refusals(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        couple c;
        open_couple(&c);
        card wrong = c.second;
        uint64_t there = 64;
        enum ibv_wc_status expected = IBV_WC_REM_ACCESS_ERR;
        if (kind == 0)
            wrong.key ^= 0x1100;
        if (kind == 1)
            there = BYTES - 4;
        if (kind == 2)
            wrong.key ^= 1; /* of an earlier registration */
        if (kind == 3) {
            c.one.memory->lkey ^= 0x3300;
            expected = IBV_WC_LOC_PROT_ERR;
        }
        assert_int_equal(put(&c.one, &wrong, 0, there, 8, WORDS, 7, true), 0);
        assert_int_equal(reap(&c.one, NULL), expected);
        assert_int_equal(reap(&c.one, NULL), IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(word_at(&c.two, WORDS), 0);
        assert_int_equal(put(&c.one, &c.second, 0, 64, 8, WORDS, 8, true), 0);
        assert_int_equal(reap(&c.one, NULL), IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(reap(&c.one, NULL), IBV_WC_WR_FLUSH_ERR);
        close_couple(&c);
    }
}

/* ---- queues ---- */

/* A queue is brought up step by step, and told all that belongs to each. */
static void test_states(void **state)
{
    const int joins = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS};
    end e;
    (void)state;
    open_end(&e, NULL, shared(), BYTES, 12);
    assert_int_not_equal(ibv_modify_qp(e.queue, &a, IBV_QP_STATE), 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_not_equal(ibv_modify_qp(e.queue, &a, IBV_QP_STATE | IBV_QP_PORT), 0);
    assert_int_equal(ibv_modify_qp(e.queue, &a,
                                   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                       IBV_QP_ACCESS_FLAGS),
                     0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .dest_qp_num = e.queue->qp_num,
                             .ah_attr = {.dlid = 1, .port_num = 1}};
    assert_int_not_equal(ibv_modify_qp(e.queue, &a, joins), 0); /* no MTU */
    a.path_mtu = IBV_MTU_1024;
    assert_int_not_equal(ibv_modify_qp(e.queue, &a, joins & ~IBV_QP_RQ_PSN), 0);
    assert_int_equal(ibv_modify_qp(e.queue, &a, joins), 0);
    a.qp_state = IBV_QPS_ERR;
    assert_int_equal(ibv_modify_qp(e.queue, &a, IBV_QP_STATE), 0);
    close_end(&e);
    ibv_close_device(e.device);
    munmap(e.at, BYTES);
}

/* Packets that the other end does not expect are dropped, and so is what comes to a queue in the
 * error state: the sender is told when it has sent often enough. */
static void test_nobody_answers(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
        couple c;
        open_couple(&c);
        if (kind == 0)
            assert_int_equal(ibv_modify_qp(c.two.queue, &error, IBV_QP_STATE), 0);
        else
            connect_again(&c.two, &c.first, 7);
        assert_int_equal(put(&c.one, &c.second, 0, 64, 8, WORDS, 7, true), 0);
        assert_int_equal(reap(&c.one, NULL), IBV_WC_RETRY_EXC_ERR);
        assert_int_equal(reap(&c.one, NULL), IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(word_at(&c.two, WORDS), 0);
        close_couple(&c);
    }
}

/* ---- two processes ---- */

typedef struct board {
    card card[2];
    _Atomic int there;
} board;

static void meet(board *b, int count)
{
    b->there++;
    while (b->there < count)
        sched_yield();
}

/* A ball that goes to and fro; each side checks what it has got. */
static int play(board *b, int side, uint64_t rounds)
{
    end e;
    open_end(&e, NULL, shared(), BYTES, 12);
    b->card[side] = card_of(&e);
    meet(b, 2);
    connect_end(&e, &b->card[!side]);
    meet(b, 4);
    for (uint64_t i = 1; i <= rounds; i++) {
        uint32_t bytes = (uint32_t)(i * 37 % 9000 + 1);
        if (side) {
            await(&e, WORDS, i);
            assert_message(e.at + 65536, bytes, i);
        }
        fill(e.at, bytes, i + (uint64_t)side);
        bool signalled = i % SIGNAL_EACH == 0;
        assert_int_equal(put(&e, &b->card[!side], 0, 65536, bytes, WORDS, i, signalled), 0);
        if (!side) {
            await(&e, WORDS, i);
            assert_message(e.at + 65536, bytes, i + 1);
        }
        if (signalled)
            assert_int_equal(reap(&e, NULL), IBV_WC_SUCCESS);
    }
    meet(b, 6);
    close_end(&e);
    ibv_close_device(e.device);
    return 0;
}

static void test_two_processes(void **state)
{
    (void)state;
    board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0)
        _exit(play(b, 1, 2000));
    play(b, 0, 2000);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    munmap(b, sizeof(*b));
}

/* Who sends to a process that has gone is told. */
static void test_a_peer_that_is_gone(void **state)
{
    (void)state;
    board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    end e;
    open_end(&e, NULL, shared(), BYTES, 12);
    b->card[child == 0] = card_of(&e);
    meet(b, 2);
    connect_end(&e, &b->card[child != 0]);
    meet(b, 4);
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(put(&e, &b->card[1], 0, 64, 8, WORDS, 1, true), 0);
    assert_int_equal(reap(&e, NULL), IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(reap(&e, NULL), IBV_WC_WR_FLUSH_ERR);
    close_end(&e);
    ibv_close_device(e.device);
    munmap(b, sizeof(*b));
}

int main(void)
{
    if (!has_device())
        return 77; /* libibverbs has no provider of its devices here */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words_come_behind_data),
                                       cmocka_unit_test(test_words_are_added_to),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_states),
                                       cmocka_unit_test(test_nobody_answers),
                                       cmocka_unit_test(test_two_processes),
                                       cmocka_unit_test(test_a_peer_that_is_gone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
