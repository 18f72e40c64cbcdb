/* Callers at the TCP port of a process who are not of its job, or do not behave as if they were. */
#ifndef PEAL_TESTS_RUNTIME_STRANGERS_H
#define PEAL_TESTS_RUNTIME_STRANGERS_H

#include "runtime/control/handshake.h"

/* A bare connection to the first address. */
int stranger_knocks(const peal_endpoint *victim);
/* Whether the connection ends, whatever is said until then. */
bool stranger_is_dropped(int connection);
/* A call as processes make them; -1 and errno. */
int stranger_calls(const peal_endpoint *victim, const unsigned char *secret, peal_caller caller,
                   peal_handshake *state);

/* So many connections that talk nonsense. */
void strangers_say_nonsense(const peal_endpoint *victim, int count);
/* Calls once as the caller may, then says the same again, and then what the victim itself has said:
 * it believes only the first. The caller's stream has a key that nobody asks for. */
void strangers_replay(const peal_endpoint *victim, peal_caller caller);
/* Calls with a secret that is not the victim's, and is not answered. */
void strangers_call_by(const peal_endpoint *victim, const unsigned char *secret,
                       peal_caller caller);

#endif
