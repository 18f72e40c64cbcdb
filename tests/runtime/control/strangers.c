/* See the header. */
#define _GNU_SOURCE
#include "tests/runtime/control/strangers.h"

#include "base/clock.h"
#include "runtime/control/wire_tcp.h"
#include "tests/runtime/control/team.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const int64_t long_deadline = INT64_C(60000000000);

int stranger_knocks(const peal_endpoint *victim)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEAM_CHECK(victim->address[0].version == 4);
    memcpy(&to.sin_port, victim->address[0].port, sizeof(to.sin_port));
    memcpy(&to.sin_addr, victim->address[0].bytes, sizeof(to.sin_addr));
    TEAM_CHECK(caller >= 0 && connect(caller, (struct sockaddr *)&to, sizeof(to)) == 0);
    return caller;
}

bool stranger_is_dropped(int connection)
{
    char said[256];
    struct pollfd event = {connection, POLLIN, 0};
    while (poll(&event, 1, 30000) == 1)
        if (recv(connection, said, sizeof(said), 0) <= 0)
            return true;
    return false;
}

int stranger_calls(const peal_endpoint *victim, const unsigned char *secret, peal_caller caller,
                   peal_handshake *state)
{
    peal_address address[PEAL_ADDRESSES];
    memcpy(address, victim->address, sizeof(address));
    return peal_wire_call_tcp(address, secret, caller, -1, peal_clock_ns() + long_deadline, state);
}

void strangers_say_nonsense(const peal_endpoint *victim, int count)
{
    unsigned seed = 20261127;
    for (int i = 0; i < count; i++) {
        unsigned char bytes[300];
        size_t size = 1 + (size_t)(rand_r(&seed) % 300);
        int caller = stranger_knocks(victim);
        for (size_t b = 0; b < size; b++)
            bytes[b] = (unsigned char)rand_r(&seed);
        TEAM_CHECK(peal_wire_send_small(caller, bytes, size));
        TEAM_CHECK(size < PEAL_CALL_BYTES || stranger_is_dropped(caller));
        close(caller);
    }
}

static int knock_and_hear(const peal_endpoint *victim, unsigned char challenge[])
{
    int caller = stranger_knocks(victim);
    TEAM_CHECK(recv(caller, challenge, PEAL_CHALLENGE_BYTES, MSG_WAITALL) == PEAL_CHALLENGE_BYTES);
    return caller;
}

/* Says a call by a secret, which is kept in `call`, and hears whether it is answered. */
static bool is_answered(const peal_endpoint *victim, const unsigned char *secret, peal_caller as,
                        unsigned char call[], unsigned char answer[])
{
    unsigned char challenge[PEAL_CHALLENGE_BYTES], nonce[PEAL_NONCE_BYTES];
    int caller = knock_and_hear(victim, challenge);
    peal_handshake h;
    size_t bytes;
    TEAM_CHECK(peal_random_bytes(nonce, sizeof(nonce)));
    peal_handshake_calls(&h, secret, nonce, as);
    peal_handshake_take(&h, challenge, sizeof(challenge));
    memcpy(call, peal_handshake_say(&h, &bytes), PEAL_CALL_BYTES);
    TEAM_CHECK(peal_wire_send_small(caller, call, PEAL_CALL_BYTES));
    ssize_t heard = recv(caller, answer, PEAL_ANSWER_BYTES, MSG_WAITALL);
    if (heard == PEAL_ANSWER_BYTES)
        peal_handshake_take(&h, answer, PEAL_ANSWER_BYTES);
    close(caller);
    TEAM_CHECK(heard <= 0 || h.state == PEAL_HANDSHAKE_DONE);
    return heard > 0;
}

/* On a fresh connection; it must end without an answer. own_challenge: what the victim has said
 * there takes the place of the code at the call's end. */
static void say_again(const peal_endpoint *victim, const unsigned char call[], bool own_challenge)
{
    unsigned char challenge[PEAL_CHALLENGE_BYTES], said[PEAL_CALL_BYTES];
    int caller = knock_and_hear(victim, challenge);
    memcpy(said, call, sizeof(said));
    if (own_challenge)
        memcpy(said + sizeof(said) - sizeof(challenge), challenge, sizeof(challenge));
    TEAM_CHECK(peal_wire_send_small(caller, said, sizeof(said)));
    TEAM_CHECK(recv(caller, challenge, 1, 0) <= 0);
    close(caller);
}

void strangers_replay(const peal_endpoint *victim, peal_caller caller)
{
    unsigned char call[PEAL_CALL_BYTES], answer[PEAL_ANSWER_BYTES];
    TEAM_CHECK(is_answered(victim, victim->secret, caller, call, answer));
    say_again(victim, call, false);
    say_again(victim, call, true);
    memcpy(call + sizeof(call) - sizeof(answer), answer, sizeof(answer));
    say_again(victim, call, false);
}

void strangers_call_by(const peal_endpoint *victim, const unsigned char *secret, peal_caller caller)
{
    unsigned char call[PEAL_CALL_BYTES], answer[PEAL_ANSWER_BYTES];
    TEAM_CHECK(!is_answered(victim, secret, caller, call, answer));
}
