/* The list of transports, by kind. A new one: its file here, its lowering in scheduler/channels/,
 * one line in each list. */
#ifndef PEAL_RUNTIME_TRANSPORTS_TRANSPORTS_H
#define PEAL_RUNTIME_TRANSPORTS_TRANSPORTS_H

#include <peal/plugin/transport.h>

extern const peal_transport_ops peal_transport_self;
extern const peal_transport_ops peal_transport_shm;
extern const peal_transport_ops peal_transport_p2p;
extern const peal_transport_ops peal_transport_tcp;
extern const peal_transport_ops peal_transport_ucx;
extern const peal_transport_ops peal_transport_verbs;
extern const peal_transport_ops peal_transport_mlx5;

/* NULL: this build has no set-up for the kind. */
const peal_transport_ops *peal_transport_of(peal_transport_kind kind);

#endif
