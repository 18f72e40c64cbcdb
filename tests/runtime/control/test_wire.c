/* Sockets of the control plane where something is missing: descriptors, a listener, room in its
 * queue, a socket at all. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void check_waits(void **state)
{
    (void)state;
    assert_int_equal(peal_poll_milliseconds(peal_clock_ns() - 1), 0);
    assert_int_equal(peal_poll_milliseconds(peal_clock_ns() + INT64_C(8000000000000000)), 3600000);
}

static void check_no_descriptors(void **state)
{
    char name[PEAL_NAME_BYTES] = "";
    struct rlimit before, none;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int listener = peal_wire_listen(name), first = errno;
    int client = peal_wire_connect(name, peal_clock_ns()), second = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(listener, -1);
    assert_int_equal(first, EMFILE);
    assert_int_equal(client, -1);
    assert_int_equal(second, EMFILE);
}

static void check_nobody_listens(void **state)
{
    char name[PEAL_NAME_BYTES];
    (void)state;
    int listener = peal_wire_listen(name);
    assert_true(listener >= 0);
    close(listener);
    assert_int_equal(peal_wire_connect(name, peal_clock_ns() + 1000000000), -1);
    assert_int_equal(errno, ECONNREFUSED);
}

/* A listener that takes nobody: who comes when its queue is full waits until its time is over. */
static void check_full_queue(void **state)
{
    enum { GUESTS = 8 };
    char name[PEAL_NAME_BYTES];
    int guest[GUESTS], count = 0;
    (void)state;
    int listener = peal_wire_listen(name);
    assert_true(listener >= 0);
    assert_int_equal(listen(listener, 1), 0);
    while (count < GUESTS &&
           (guest[count] = peal_wire_connect(name, peal_clock_ns() + 5000000)) >= 0)
        count++;
    assert_true(count > 0 && count < GUESTS);
    assert_int_equal(errno, EAGAIN);
    while (count > 0)
        close(guest[--count]);
    close(listener);
}

static void check_no_socket(void **state)
{
    char byte = 0;
    int pipe_end[2];
    (void)state;
    assert_int_equal(pipe(pipe_end), 0);
    assert_false(peal_wire_same_user(pipe_end[0]));
    assert_int_equal(peal_wire_pidfd(pipe_end[0]), -1);
    assert_false(peal_wire_send_small(pipe_end[1], &byte, 1));
    close(pipe_end[0]);
    close(pipe_end[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_waits),          cmocka_unit_test(check_no_descriptors),
        cmocka_unit_test(check_nobody_listens), cmocka_unit_test(check_full_queue),
        cmocka_unit_test(check_no_socket),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
