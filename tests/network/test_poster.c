/* What a device stores for other hosts is posted: the latest value of each word, however many
 * messages it stands for, once; over starts, and anew for another plan. The device is this thread,
 * the engine writes down what it is told. */
#define _GNU_SOURCE
#include "runtime/bind/poster.h"

#include "runtime/network/network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PUTS = 3, TOLD = 64, QUANTUM = 2 };

static struct told {
    int pair, number;
    uint64_t value;
} told[TOLD];
static _Atomic int told_count, turns, unsent;

static void due(peal_network_plan *plan, int pair, int number, uint64_t value)
{
    (void)plan;
    int at = atomic_load(&told_count);
    assert_true(at < TOLD);
    told[at] = (struct told){pair, number, value};
    atomic_store(&told_count, at + 1);
}

static void progress(peal_network *network)
{
    (void)network;
    atomic_fetch_add(&turns, 1);
}

static void sleep_for(peal_network *network, int64_t ns)
{
    (void)network;
    usleep((useconds_t)(ns / 1000));
}

static bool settle(peal_network *network)
{
    (void)network;
    return atomic_fetch_sub(&unsent, 1) <= 0;
}

static const peal_network_ops engine = {.size = sizeof(engine),
                                        .kind = PEAL_TRANSPORT_TCP,
                                        .due = due,
                                        .progress = progress,
                                        .sleep = sleep_for,
                                        .settle = settle};

typedef struct bench {
    peal_session session;
    peal_session_network *network;
    _Atomic uint64_t word[PUTS], in_word;
    peal_put out[PUTS], in;
    peal_pair pair[2];
    peal_poster *poster;
} bench;

/* Two puts go to one process and one to another, from which nothing comes. */
static void open_bench(bench *b)
{
    memset(b, 0, sizeof(*b));
    b->network = &b->session.network[0];
    *b->network = (peal_session_network){.engine = &engine,
                                         .opened = (peal_network *)b,
                                         .session = &b->session};
    b->session.cores = 1;
    b->session.identity.local_processes = 1;
    for (int i = 0; i < PUTS; i++)
        b->out[i] = (peal_put){.at = &b->word[i], .quantum = QUANTUM, .slots = 2};
    b->in = (peal_put){.at = &b->in_word, .quantum = QUANTUM};
    b->pair[0] =
        (peal_pair){.process = 1, .out = b->out, .out_count = 2, .in = &b->in, .in_count = 1};
    b->pair[1] = (peal_pair){.process = 2, .out = b->out + 2, .out_count = 1};
    atomic_store(&told_count, 0);
    atomic_store(&unsent, 0);
    b->poster = peal_poster_create(b->network, NULL, b->pair, 2);
    assert_non_null(b->poster);
}

static void close_bench(bench *b)
{
    peal_poster_destroy(b->poster);
}

static void await(int count)
{
    for (int i = 0; i < 20000 && atomic_load(&told_count) < count; i++)
        usleep(1000);
    assert_int_equal(atomic_load(&told_count), count);
}

static void assert_told(int at, int pair, int number, uint64_t value)
{
    assert_int_equal(told[at].pair, pair);
    assert_int_equal(told[at].number, number);
    assert_int_equal(told[at].value, value);
}

static void each_word_by_its_latest_value(void **state)
{
    bench b;
    (void)state;
    open_bench(&b);
    assert_int_equal(peal_poster_start(b.poster), PEAL_STATUS_OK);
    atomic_store(&b.word[1], QUANTUM);
    await(1);
    assert_told(0, 0, 1, QUANTUM);
    atomic_store(&b.word[2], 3 * QUANTUM); /* three messages, of which none was seen */
    await(2);
    assert_told(1, 1, 0, 3 * QUANTUM);
    usleep(20000); /* asleep by now */
    atomic_store(&b.word[0], QUANTUM);
    await(3);
    assert_told(2, 0, 0, QUANTUM);
    assert_int_equal(peal_poster_end(b.poster, INT64_C(1000000000)), PEAL_STATUS_OK);
    assert_int_equal(atomic_load(&told_count), 3);
    assert_true(peal_poster_seconds(b.poster) > 0);
    close_bench(&b);
}

/* What is stored just before the device ends is posted by the end, and sent before it returns. */
static void the_last_message_leaves(void **state)
{
    bench b;
    (void)state;
    for (int i = 0; i < 50; i++) {
        open_bench(&b);
        assert_int_equal(peal_poster_start(b.poster), PEAL_STATUS_OK);
        usleep((useconds_t)(i * 10));
        atomic_store(&b.word[0], QUANTUM);
        atomic_store(&unsent, 3);
        assert_int_equal(peal_poster_end(b.poster, INT64_C(1000000000)), PEAL_STATUS_OK);
        assert_int_equal(atomic_load(&told_count), 1);
        assert_true(atomic_load(&unsent) < 0);
        close_bench(&b);
    }
}

static void words_are_kept_from_start_to_start(void **state)
{
    bench b;
    (void)state;
    open_bench(&b);
    for (uint64_t start = 1; start <= 3; start++) {
        assert_int_equal(peal_poster_start(b.poster), PEAL_STATUS_OK);
        atomic_store(&b.word[0], start * QUANTUM);
        assert_int_equal(peal_poster_end(b.poster, INT64_C(1000000000)), PEAL_STATUS_OK);
        assert_int_equal(atomic_load(&told_count), (int)start);
        assert_told((int)start - 1, 0, 0, start * QUANTUM);
    }
    close_bench(&b);
    open_bench(&b); /* another plan: its words begin at zero */
    assert_int_equal(peal_poster_start(b.poster), PEAL_STATUS_OK);
    assert_int_equal(peal_poster_end(b.poster, INT64_C(1000000000)), PEAL_STATUS_OK);
    assert_int_equal(atomic_load(&told_count), 0);
    assert_int_equal(peal_poster_end(b.poster, 1), PEAL_STATUS_OK); /* it does not run */
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_by_its_latest_value),
        cmocka_unit_test(the_last_message_leaves),
        cmocka_unit_test(words_are_kept_from_start_to_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
