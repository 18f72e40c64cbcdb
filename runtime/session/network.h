/* The session's network: streams to processes of other hosts, for all plans. */
#ifndef PEAL_RUNTIME_SESSION_NETWORK_H
#define PEAL_RUNTIME_SESSION_NETWORK_H

#include "runtime/network/network.h"
#include "runtime/session/session.h"

/* Opens it, unless it is open. */
peal_status peal_session_open_network(peal_session *session);
void peal_session_close_network(peal_session *session);
/* A turn, if there is a network. A stream that has ended ends the job, unless who watches the
 * processes says why within a moment. */
void peal_session_turn(peal_session *session);

#endif
