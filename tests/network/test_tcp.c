/* The engine of sockets between two ends in one process: every message arrives whole and in order,
 * however little the sockets take at a time; what makes no sense ends the job with numbers; frames
 * of a plan that has ended are skipped. */
#define _GNU_SOURCE
#include "runtime/network/tcp.h"
#include "tests/network/ends.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void messages_arrive(void **state)
{
    (void)state;
    both_ways(&peal_network_tcp, 4096, 7);
    both_ways(&peal_network_tcp, 0, 20);
}

static void threads_share_the_work(void **state)
{
    (void)state;
    by_threads(&peal_network_tcp, 8192);
}

static void a_message_without_a_slot_is_told(void **state)
{
    (void)state;
    without_slots(&peal_network_tcp);
}

/* ---- plans ---- */

/* Two plans alive at a time; then one ends at the receiver while its frames are on their way, once
 * amid a frame. */
static void late_frames_are_skipped(void **state)
{
    (void)state;
    for (int amid = 0; amid < 2; amid++) {
        job j;
        pair_plan first, second;
        open_job(&j, &peal_network_tcp, 0);
        attach_plan(&j, &first, 7);
        attach_plan(&j, &second, 8);
        assert_true(send_next(&first, 0, 3) && send_next(&second, 0, 3));
        turn_until_taken(&j, &second, 1, 3);
        turn_until_taken(&j, &first, 1, 3);
        assert_true(send_next(&first, 0, CHANNELS - 1)); /* longer than a socket takes at once */
        if (amid)
            peal_network_tcp.progress(j.side[1].network);
        assert_true(send_next(&second, 0, 4) && send_next(&first, 0, 1));
        detach_side(&first, 1);
        memset(first.from[0][CHANNELS - 1].slot, 0x55, 2 * LONG_MESSAGE);
        turn_until_taken(&j, &second, 1, 4);
        for (int64_t at = 0; at < 2 * LONG_MESSAGE; at++)
            assert_int_equal(first.from[0][CHANNELS - 1].slot[at], 0x55);
        assert_int_equal(j.side[0].failure, 0);
        assert_int_equal(j.side[1].failure, 0);
        free_plan(&first);
        free_plan(&second);
        close_job(&j);
    }
}

/* Short messages wait for the flush, and leave by one call; long ones do not wait. */
static void short_messages_leave_together(void **state)
{
    job j;
    pair_plan p;
    (void)state;
    open_job(&j, &peal_network_tcp, 0);
    attach_plan(&j, &p, 1);
    for (int i = 0; i < 4; i++)
        assert_true(send_next(&p, 0, i));
    peal_network_tcp.progress(j.side[1].network);
    for (int i = 0; i < 4; i++)
        assert_false(take_next(&p, 1, i));
    peal_network_tcp.flush(p.attached[0]);
    peal_network_tcp.progress(j.side[1].network);
    for (int i = 0; i < 4; i++)
        assert_true(take_next(&p, 1, i));
    assert_true(send_next(&p, 0, 1) && send_next(&p, 0, 4)); /* 40000 bytes */
    peal_network_tcp.progress(j.side[1].network);
    assert_true(take_next(&p, 1, 1) && take_next(&p, 1, 4));
    free_plan(&p);
    close_job(&j);
}

/* The ring holds what the plans that there are may need, however many there have been. */
static void rooms_do_not_add_up(void **state)
{
    job j;
    pair_plan p, other;
    size_t room = 0;
    (void)state;
    open_job(&j, &peal_network_tcp, 0);
    for (uint32_t number = 1; number <= 10; number += 2) {
        attach_plan(&j, &p, number);
        attach_plan(&j, &other, number + 1);
        size_t now = j.side[0].network->link[1]->queue.room;
        assert_true(!room || now == room);
        room = now;
        free_plan(&p);
        free_plan(&other);
    }
    close_job(&j);
}

/* A plan that is given up with frames half sent: the stream carries nothing any more. */
static void what_is_half_sent_ends_the_stream(void **state)
{
    job j;
    pair_plan p;
    (void)state;
    open_job(&j, &peal_network_tcp, 4096);
    attach_plan(&j, &p, 1);
    assert_true(send_next(&p, 0, CHANNELS - 1));
    assert_false(peal_network_tcp.settle(j.side[0].network));
    detach_side(&p, 0);
    assert_true(peal_network_tcp.settle(j.side[0].network));
    free_plan(&p);
    close_job(&j);
}

/* ---- what makes no sense ---- */

static void bad_frames_are_told(void **state)
{
    const uint64_t q = quantum_of(2);
    const struct {
        peal_put_frame frame;
        const char *text;
    } cases[] = {
        {{1, 2 * CHANNELS, q, 0}, "(plan 1, put 12) has the number 12, expected 12"},
        {{1, 1, q, 9}, "has a size of 9, expected 8"},
        {{1, 0, 0, 0}, "has the value 0"},
        {{1, 0, 2 * q, 0}, "has the value"},
        {{1, 0, q + 1, 0}, "has the value"},
        {{1, CHANNELS, 4 * q, 0}, "has the value"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        job j;
        pair_plan p;
        open_job(&j, &peal_network_tcp, 0);
        attach_plan(&j, &p, 1);
        assert_int_equal(send(j.side[0].other, &cases[i].frame, sizeof(cases[i].frame), 0),
                         sizeof(cases[i].frame));
        expect_failure(&j, PEAL_STATUS_INTERNAL, cases[i].text);
        free_plan(&p);
        close_job(&j);
    }
}

static void a_closed_stream_is_told(void **state)
{
    job j;
    pair_plan p;
    (void)state;
    open_job(&j, &peal_network_tcp, 0);
    attach_plan(&j, &p, 1);
    assert_int_equal(shutdown(j.side[0].other, SHUT_RDWR), 0);
    expect_failure(&j, PEAL_STATUS_PEER_LOST, "process 0 has ended");
    assert_true(send_next(&p, 1, 0)); /* goes nowhere, but no harm */
    assert_true(peal_network_tcp.settle(j.side[1].network));
    free_plan(&p);
    close_job(&j);
}

/* A copy of the process that was forked closes its ends, and the streams go on. */
static void a_fork_leaves_the_streams(void **state)
{
    job j;
    pair_plan p;
    int status = 0;
    (void)state;
    open_job(&j, &peal_network_tcp, 0);
    attach_plan(&j, &p, 1);
    pid_t child = fork();
    if (child == 0) {
        peal_network_tcp.disown(j.side[0].network);
        peal_network_tcp.disown(j.side[1].network);
        peal_network_tcp.progress(j.side[0].network);
        _exit(fcntl(j.side[0].other, F_GETFD) >= 0 || fcntl(j.side[1].other, F_GETFD) >= 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(send_next(&p, 0, 4));
    turn_until_taken(&j, &p, 1, 4);
    free_plan(&p);
    close_job(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive),
        cmocka_unit_test(threads_share_the_work),
        cmocka_unit_test(late_frames_are_skipped),
        cmocka_unit_test(short_messages_leave_together),
        cmocka_unit_test(rooms_do_not_add_up),
        cmocka_unit_test(what_is_half_sent_ends_the_stream),
        cmocka_unit_test(bad_frames_are_told),
        cmocka_unit_test(a_message_without_a_slot_is_told),
        cmocka_unit_test(a_closed_stream_is_told),
        cmocka_unit_test(a_fork_leaves_the_streams),
    };
    alarm(120); /* instead of a hang */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
