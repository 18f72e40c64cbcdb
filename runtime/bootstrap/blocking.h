/* Calls of a library that may block for ever: a thread of their own makes them. */
#ifndef PEAL_RUNTIME_BOOTSTRAP_BLOCKING_H
#define PEAL_RUNTIME_BOOTSTRAP_BLOCKING_H

#include <stdbool.h>
#include <stdint.h>

/* call(user) in another thread: true once it has returned. False: the deadline (0: none) has
 * passed; the call is left to itself, and `user` with it: should it ever return, release(user) is
 * called. */
bool peal_call_within(void (*call)(void *user), void (*release)(void *user), void *user,
                      int64_t deadline_ns);

#endif
