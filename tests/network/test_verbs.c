/* The engines for RDMA adapters (verbs; mlx5 if the first word says so), on an adapter of software
 * (tests/softhca): messages and credits both ways at random, by threads, plans one behind the other
 * and side by side, rings that are full, and ends that are told. */
#define _GNU_SOURCE
#include "runtime/network/network.h"
#include "tests/network/ends.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const peal_network_ops *verbs = &peal_network_verbs; /* or mlx5 */

static void messages_arrive(void **state)
{
    (void)state;
    both_ways(verbs, 0, 200);
}

static void threads_share_the_work(void **state)
{
    (void)state;
    by_threads(verbs, 0);
}

static void a_message_without_a_slot_is_told(void **state)
{
    (void)state;
    without_slots(verbs);
}

/* Plans over one connection: each has memory of its own, and what the one still has under way does
 * not reach the next one. */
static void plans_follow_each_other(void **state)
{
    job j;
    pair_plan first, second;
    (void)state;
    open_job(&j, verbs, 0);
    attach_plan(&j, &first, 1);
    for (uint32_t i = 2; i < 40; i++) {
        pair_plan *now = i % 2 ? &first : &second, *before = i % 2 ? &second : &first;
        attach_plan(&j, now, i);
        for (int c = 0; c < CHANNELS - 1; c++) {
            assert_true(send_next(before, 0, c) && send_next(now, 1, c));
            turn_until_taken(&j, before, 1, c);
            turn_until_taken(&j, now, 0, c);
        }
        detach_side(before, (int)(i % 2)); /* with a credit on its way there */
        free_plan(before);
        assert_int_equal(j.side[0].failure, 0);
        assert_int_equal(j.side[1].failure, 0);
    }
    free_plan(&first);
    close_job(&j);
}

/* More credits than the queue has entries, while nobody takes completions: the latest says all. */
static void a_full_queue_waits(void **state)
{
    job j;
    pair_plan p;
    (void)state;
    open_job(&j, verbs, 0);
    attach_plan(&j, &p, 1);
    for (uint64_t i = 1; i <= 3000; i++)
        verbs->due(p.attached[1], 0, CHANNELS, i * quantum_of(2));
    const time_t begin = time(NULL);
    while (p.from[0][0].credit != 3000 * quantum_of(2) && time(NULL) < begin + 20) {
        verbs->progress(j.side[1].network);
        sched_yield();
    }
    assert_int_equal(p.from[0][0].credit, 3000 * quantum_of(2));
    assert_int_equal(j.side[1].failure, 0);
    free_plan(&p);
    close_job(&j);
}

/* As a stream would. */
static void ring(const pair_plan *p, int put, uint64_t message)
{
    peal_network_store store[PEAL_NETWORK_STORES];
    int count = verbs->stores(p->attached[1], 0, put, message, store);
    for (int i = 0; i < count; i++) {
        atomic_thread_fence(memory_order_seq_cst);
        if (store[i].bytes == sizeof(uint32_t))
            *(volatile uint32_t *)store[i].at = (uint32_t)store[i].value;
        else
            *(volatile uint64_t *)store[i].at = store[i].value;
    }
}

/* Of credits written ahead those leave that are rung for before it. */
static void a_silent_plan_sends_nothing(void **state)
{
    job j;
    pair_plan p;
    (void)state;
    if (!verbs->silence)
        skip();
    open_job(&j, verbs, 0);
    attach_plan(&j, &p, 1);
    assert_true(verbs->ahead(p.attached[1], 0, CHANNELS, 3));
    ring(&p, CHANNELS, 2);
    const time_t begin = time(NULL);
    while (p.from[0][0].credit != 2 * quantum_of(2) && time(NULL) < begin + 20)
        sched_yield();
    verbs->silence(p.attached[1]);
    ring(&p, CHANNELS, 3);
    assert_false(verbs->ahead(p.attached[1], 0, CHANNELS, 4));
    assert_true(verbs->settle(j.side[1].network));
    assert_true(send_next(&p, 0, 4)); /* goes nowhere */
    free_plan(&p);
    assert_int_equal(p.from[0][0].credit, 2 * quantum_of(2));
    assert_int_equal(j.side[1].failure, 0);
    close_job(&j);
}

static void a_closed_stream_is_told(void **state)
{
    job j;
    pair_plan p;
    (void)state;
    open_job(&j, verbs, 0);
    attach_plan(&j, &p, 1);
    assert_int_equal(shutdown(j.side[0].other, SHUT_RDWR), 0);
    expect_failure(&j, PEAL_STATUS_PEER_LOST, "process 0 has ended");
    assert_true(send_next(&p, 1, 0)); /* goes nowhere, but no harm */
    assert_true(verbs->settle(j.side[1].network));
    free_plan(&p);
    close_job(&j);
}

static void a_fork_leaves_the_connections(void **state)
{
    job j;
    pair_plan p;
    int status = 0;
    (void)state;
    open_job(&j, verbs, 0);
    attach_plan(&j, &p, 1);
    pid_t child = fork();
    if (child == 0) {
        for (int s = 0; s < SIDES; s++) {
            verbs->disown(j.side[s].network);
            verbs->progress(j.side[s].network);
            if (!verbs->settle(j.side[s].network))
                _exit(1);
            detach_side(&p, s); /* the first process goes on with its objects */
        }
        close_job(&j);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(send_next(&p, 0, 4));
    turn_until_taken(&j, &p, 1, 4);
    free_plan(&p);
    close_job(&j);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive),
        cmocka_unit_test(threads_share_the_work),
        cmocka_unit_test(a_message_without_a_slot_is_told),
        cmocka_unit_test(plans_follow_each_other),
        cmocka_unit_test(a_full_queue_waits),
        cmocka_unit_test(a_silent_plan_sends_nothing),
        cmocka_unit_test(a_closed_stream_is_told),
        cmocka_unit_test(a_fork_leaves_the_connections),
    };
    bool is_mlx5 = argc > 1 && !strcmp(argv[1], "mlx5");
    const char *reason = is_mlx5 ? peal_network_mlx5_refuses() : peal_network_verbs_refuses();
    verbs = is_mlx5 ? &peal_network_mlx5 : verbs;
    if (reason) {
        printf("skipped: %s\n", reason);
        return 77;
    }
    alarm(120); /* instead of a hang */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
