/* The engine of UCX between two ends in one process: short messages and fetched ones arrive whole
 * and in order; what makes no sense ends the job with numbers, what comes from somebody else does
 * nothing; messages of a plan that has ended are skipped. Skipped itself where there is no libucp.
 */
#define _GNU_SOURCE
#include "runtime/network/ucx.h"
#include "tests/network/ends.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77 };

/* With all messages short ones, those from so many bytes on fetched, and all of them. */
static void set_long(const char *bytes)
{
    assert_int_equal(setenv("UCX_RNDV_THRESH", bytes, 1), 0);
}

static void messages_arrive(void **state)
{
    static const char *const from[] = {"inf", "20000", "0"};
    (void)state;
    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        set_long(from[i]);
        both_ways(&peal_network_ucx, 0, 20);
    }
}

static void threads_share_the_work(void **state)
{
    (void)state;
    set_long("20000");
    by_threads(&peal_network_ucx, 0);
}

static void a_message_without_a_slot_is_told(void **state)
{
    (void)state;
    without_slots(&peal_network_ucx);
}

/* One that has begun to be fetched as well. */
static void late_messages_are_skipped(void **state)
{
    (void)state;
    int kept = 0;
    set_long("20000");
    for (int turns = 0; turns < 8; turns++) {
        job j;
        pair_plan first, second;
        open_job(&j, &peal_network_ucx, 0);
        attach_plan(&j, &first, 7);
        attach_plan(&j, &second, 8);
        assert_true(send_next(&first, 0, 3) && send_next(&second, 0, 3));
        turn_until_taken(&j, &second, 1, 3);
        turn_until_taken(&j, &first, 1, 3);
        assert_true(send_next(&first, 0, CHANNELS - 1) && send_next(&first, 0, 1));
        for (int i = 0; i < turns; i++)
            peal_network_ucx.progress(j.side[i % SIDES].network);
        detach_side(&first, 1);
        memset(first.from[0][CHANNELS - 1].slot, 0x55, 2 * LONG_MESSAGE);
        for (int i = 0; i < 1000; i++) /* whatever is still under way */
            peal_network_ucx.progress(j.side[i % SIDES].network);
        bool lost = j.side[0].failure || j.side[1].failure;
        if (!lost) { /* else it was amid a message, whose connection has ended with the plan */
            assert_true(send_next(&second, 0, 4));
            turn_until_taken(&j, &second, 1, 4);
            kept++;
        }
        for (int64_t at = 0; at < 2 * LONG_MESSAGE; at++)
            assert_int_equal(first.from[0][CHANNELS - 1].slot[at], 0x55);
        free_plan(&first);
        free_plan(&second);
        close_job(&j);
    }
    assert_true(kept > 0);
}

/* Ports on which somebody here listens, of first to last. */
static int count_listeners(unsigned first, unsigned last)
{
    FILE *file = fopen("/proc/self/net/tcp", "r");
    char line[256];
    unsigned port, kind;
    int count = 0;
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, " %*d: %*x:%x %*x:%*x %x", &port, &kind) == 2 && kind == 0x0a)
            count += port >= first && port <= last;
    if (file)
        fclose(file);
    return count;
}

static void ports_are_those_that_were_chosen(void **state)
{
    const int first = 24310, last = 24329;
    job j;
    pair_plan p;
    (void)state;
    int before = count_listeners(first, last);
    open_job(&j, &peal_network_ucx, 0);
    for (int s = 0; s < SIDES; s++) {
        j.side[s].site.first_port = first;
        j.side[s].site.last_port = last;
    }
    attach_plan(&j, &p, 1);
    assert_true(count_listeners(first, last) >= before + SIDES);
    free_plan(&p);
    close_job(&j);
}

static int take_port(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int taken = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(taken, (const struct sockaddr *)&at, sizeof(at)) || listen(taken, 1)) {
        close(taken);
        return -1;
    }
    return taken;
}

/* Its only port is taken: the other end hears of it, and does not wait for an address. */
static void an_end_that_cannot_says_so(void **state)
{
    int port = 24400, taken = -1;
    job j;
    pair_plan p;
    (void)state;
    while (port < 24500 && taken < 0)
        taken = take_port(port++);
    assert_true(taken >= 0);
    open_job(&j, &peal_network_ucx, 0);
    j.side[0].site.first_port = j.side[0].site.last_port = port - 1;
    for (uint32_t number = 1; number <= 2; number++) { /* again: nobody asks UCX once more */
        begin_plan(&j, &p, number);
        for (int s = 0; s < SIDES; s++) {
            assert_null(p.attached[s]);
            assert_true(j.side[s].network->reason[0]);
        }
        free_plan(&p);
    }
    close(taken);
    close_job(&j);
}

/* UCX itself would look for a free one of several for ever. */
static void without_a_free_port_nobody_waits(void **state)
{
    int port = 24330, taken[2] = {-1, -1};
    job j;
    pair_plan p;
    (void)state;
    for (; port < 24400 && taken[1] < 0; port += 2) {
        close(taken[0]);
        taken[0] = take_port(port);
        taken[1] = taken[0] < 0 ? -1 : take_port(port + 1);
    }
    assert_true(taken[1] >= 0);
    open_job(&j, &peal_network_ucx, 0);
    for (int s = 0; s < SIDES; s++) {
        j.side[s].site.first_port = port - 2;
        j.side[s].site.last_port = port - 1;
    }
    begin_plan(&j, &p, 1);
    for (int s = 0; s < SIDES; s++) {
        assert_null(p.attached[s]);
        assert_non_null(strstr(j.side[s].network->reason, "each process needs one more"));
    }
    close(taken[0]);
    close(taken[1]);
    free_plan(&p);
    close_job(&j);
}

typedef struct wrong_message {
    ucx_head add; /* to a right one */
    const char *text;
} wrong_message;

/* Side 0 sends message 1 of channel 1 with another head. */
static void send_wrong(pair_plan *p, const ucx_head *add)
{
    ucx_sending *sending = p->attached[0]->sending[0][1];
    const peal_put *put = &p->out[0][1];
    for (uint64_t k = 0; k < ucx_window(put); k++) {
        sending[k].head.frame.plan += add->frame.plan;
        sending[k].head.frame.put += add->frame.put;
        sending[k].head.frame.bytes += add->frame.bytes;
        sending[k].head.token += add->token;
        sending[k].head.from += add->from;
    }
    assert_true(send_next(p, 0, 1));
}

static void wrong_messages_are_told(void **state)
{
    static const wrong_message cases[] = {
        {{.frame.put = 2 * CHANNELS - 1}, "(plan 1, put 12) has the number 12, expected 12"},
        {{.frame.put = 1}, "has a size of 8, expected 24"},
        {{.frame.bytes = 8}, "has a size of 16, expected 8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        job j;
        pair_plan p;
        open_job(&j, &peal_network_ucx, 0);
        attach_plan(&j, &p, 1);
        send_wrong(&p, &cases[i].add);
        expect_failure(&j, PEAL_STATUS_INTERNAL, cases[i].text);
        free_plan(&p);
        close_job(&j);
    }
}

/* The same message twice, and one that skips too many. */
static void wrong_values_are_told(void **state)
{
    static const int again[] = {0, 3};
    const uint64_t q = quantum_of(2);
    (void)state;
    for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++) {
        job j;
        pair_plan p;
        open_job(&j, &peal_network_ucx, 0);
        attach_plan(&j, &p, 1);
        assert_true(send_next(&p, 0, 1));
        turn_until_taken(&j, &p, 1, 1);
        p.attached[0]->sent[0][1] = (uint64_t)again[i] * q;
        peal_network_ucx.due(p.attached[0], 0, 1, (uint64_t)(again[i] + 1) * q);
        expect_failure(&j, PEAL_STATUS_INTERNAL, "has the value");
        free_plan(&p);
        close_job(&j);
    }
}

/* Whoever finds the worker may send to it. */
static void strangers_do_nothing(void **state)
{
    static const ucx_head strangers[] = {{.token = 1},
                                         {.from = 1},
                                         {.from = 77},
                                         {.frame.plan = 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
        job j;
        pair_plan p;
        open_job(&j, &peal_network_ucx, 0);
        attach_plan(&j, &p, 1);
        send_wrong(&p, &strangers[i]);
        assert_true(send_next(&p, 0, 4));
        turn_until_taken(&j, &p, 1, 4); /* sent later */
        assert_int_equal(atomic_load(&p.from[0][1].flag), 0);
        assert_int_equal(j.side[1].failure, 0);
        free_plan(&p);
        close_job(&j);
    }
}

/* What the forked copy does leaves the connections alone. */
static void a_fork_leaves_the_connections(void **state)
{
    job j;
    pair_plan p;
    int status = 0;
    (void)state;
    open_job(&j, &peal_network_ucx, 0);
    attach_plan(&j, &p, 1);
    pid_t child = fork();
    if (child == 0) {
        peal_network_ucx.disown(j.side[0].network);
        peal_network_ucx.disown(j.side[1].network);
        peal_network_ucx.progress(j.side[0].network);
        peal_network_ucx.due(p.attached[0], 0, 1, quantum_of(2));
        peal_network_ucx.detach(p.attached[0]);
        bool settled = peal_network_ucx.settle(j.side[0].network);
        peal_network_ucx.close(j.side[0].network);
        _exit(settled ? 0 : 1);
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
        cmocka_unit_test(a_message_without_a_slot_is_told),
        cmocka_unit_test(late_messages_are_skipped),
        cmocka_unit_test(ports_are_those_that_were_chosen),
        cmocka_unit_test(an_end_that_cannot_says_so),
        cmocka_unit_test(without_a_free_port_nobody_waits),
        cmocka_unit_test(wrong_messages_are_told),
        cmocka_unit_test(wrong_values_are_told),
        cmocka_unit_test(strangers_do_nothing),
        cmocka_unit_test(a_fork_leaves_the_connections),
    };
    if (peal_network_refuses(PEAL_TRANSPORT_UCX)) {
        printf("skipped: %s\n", peal_network_refuses(PEAL_TRANSPORT_UCX));
        return SKIPPED;
    }
    alarm(120); /* instead of a hang */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
