/* The session's networks: streams to processes of other hosts, for all plans. */
#ifndef PEAL_RUNTIME_SESSION_NETWORK_H
#define PEAL_RUNTIME_SESSION_NETWORK_H

#include "runtime/network/network.h"
#include "runtime/session/session.h"

/* Opens the one of a transport, unless it is open. */
peal_status peal_session_open_network(peal_session *session, peal_transport_kind kind,
                                      peal_session_network **out);
void peal_session_close_networks(peal_session *session);
/* A turn of those that are open. A stream that has ended ends the job, unless who watches the
 * processes says why within a moment. */
void peal_session_turn(peal_session *session);

#endif
