/* The control plane under attack: garbage, wrong secrets, silence, another user. The job goes on.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/wire.h"
#include "tests/runtime/control/team.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const int64_t long_deadline = INT64_C(60000000000);

/* Whether the other side closed without giving anything. */
static bool is_refused(int socket)
{
    char byte;
    struct pollfd event = {socket, POLLIN, 0};
    return poll(&event, 1, 30000) == 1 && recv(socket, &byte, 1, MSG_DONTWAIT) <= 0;
}

/* Connects to process 0 as somebody who doesn't know the secret, or says nonsense. */
static void attack(const peal_control_blob *victim)
{
    peal_hello right = {.magic = PEAL_HELLO_MAGIC,
                        .wire_version = PEAL_WIRE_VERSION,
                        .kind = PEAL_HELLO_FETCH,
                        .process = 1,
                        .key = 3};
    memcpy(right.secret, victim->endpoint.secret, PEAL_SECRET_BYTES);
    for (int kind = 0; kind < 10; kind++) {
        peal_hello hello = right;
        int64_t until = peal_clock_ns() + long_deadline;
        int socket = peal_wire_connect(victim->endpoint.name, until);
        TEAM_CHECK(socket >= 0);
        if (kind == 0)
            hello.magic ^= 1;
        if (kind == 1)
            hello.secret[15] ^= 1;
        if (kind == 2)
            hello.wire_version++;
        if (kind == 3)
            hello.process = -1;
        if (kind == 4)
            hello.kind = 77;
        if (kind == 5)
            hello.kind = PEAL_HELLO_DATA; /* that edge is taken */
        if (kind == 6)
            memset(&hello, 'G', sizeof(hello));
        if (kind >= 8)
            hello.kind = PEAL_HELLO_STREAM;
        if (kind == 8)
            hello.secret[0] ^= 1;
        if (kind == 9)
            hello.process = 0; /* only those with higher numbers connect */
        if (kind == 7) {       /* half a hello, then silence: must not hold up others */
            TEAM_CHECK(peal_wire_send_small(socket, &hello, 10));
            close(socket);
            continue;
        }
        TEAM_CHECK(peal_wire_send_small(socket, &hello, sizeof(hello)));
        TEAM_CHECK(is_refused(socket));
        close(socket);
    }
}

/* Random bytes, often more or less than a first frame; the seed is fixed. */
static void attack_at_random(const peal_control_blob *victim)
{
    unsigned seed = 20261121;
    for (int client = 0; client < 200; client++) {
        unsigned char bytes[200];
        size_t count = (size_t)rand_r(&seed) % sizeof(bytes) + 1;
        for (size_t i = 0; i < count; i++)
            bytes[i] = (unsigned char)rand_r(&seed);
        int socket = peal_wire_connect(victim->endpoint.name, peal_clock_ns() + long_deadline);
        TEAM_CHECK(socket >= 0);
        TEAM_CHECK(peal_wire_send_small(socket, bytes, count));
        if (count >= sizeof(peal_hello))
            TEAM_CHECK(is_refused(socket));
        close(socket);
    }
}

/* Another user who knows everything: still gets nothing. Only root can try. */
static void attack_as_another_user(const peal_control_blob *victim)
{
    int status = 0;
    if (geteuid() != 0)
        return;
    pid_t child = fork();
    if (!child) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        peal_hello hello = {.magic = PEAL_HELLO_MAGIC,
                            .wire_version = PEAL_WIRE_VERSION,
                            .kind = PEAL_HELLO_FETCH,
                            .process = 1,
                            .key = 3};
        memcpy(hello.secret, victim->endpoint.secret, PEAL_SECRET_BYTES);
        memcpy(address.sun_path + 1, victim->endpoint.name, PEAL_NAME_BYTES);
        socklen_t length =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + PEAL_NAME_BYTES);
        int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (setresuid(65534, 65534, 65534))
            _exit(0); /* a container without other users */
        if (connect(other, (struct sockaddr *)&address, length))
            _exit(1);
        send(other, &hello, sizeof(hello), MSG_NOSIGNAL);
        if (!is_refused(other))
            _exit(2);
        _exit(peal_wire_connect(victim->endpoint.name, peal_clock_ns()) < 0 ? 0 : 3);
    }
    TEAM_CHECK(waitpid(child, &status, 0) == child);
    TEAM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int attacked(test_team *team, int process)
{
    team_seat self;
    peal_control_blob blob;
    int descriptor = -1;
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    memcpy(&blob, team->board->blob[0], sizeof(blob));
    if (process == 0)
        TEAM_CHECK(peal_control_publish(self.control, 3, STDERR_FILENO, 4096) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    if (process == 1) {
        int silent[40];
        for (int i = 0; i < 40; i++)
            silent[i] = peal_wire_connect(blob.endpoint.name, peal_clock_ns() + long_deadline);
        attack(&blob);
        attack_at_random(&blob);
        attack_as_another_user(&blob);
        TEAM_CHECK(peal_control_fetch(self.control, 0, 3, &descriptor, NULL) == PEAL_STATUS_OK);
        close(descriptor);
        for (int i = 0; i < 40; i++)
            close(silent[i]);
    }
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    TEAM_CHECK(self.abort_word == 0);
    team_leave(&self);
    return 0;
}

static void check_garbage(void **state)
{
    test_team team;
    (void)state;
    team_create(&team, 2);
    team_run(&team, attacked);
    assert_int_equal(team.exit_code[0], 0);
    assert_int_equal(team.exit_code[1], 0);
    team_destroy(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
