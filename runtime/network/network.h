/* Engines that carry messages between hosts. */
#ifndef PEAL_RUNTIME_NETWORK_NETWORK_H
#define PEAL_RUNTIME_NETWORK_NETWORK_H

#include <peal/plugin/network.h>

/* What goes over a stream: this, then the message's bytes. In the byte order of the hosts, which is
 * the same on all (the control plane's first frame shows it). */
typedef struct peal_put_frame {
    uint32_t plan, put;
    uint64_t value, bytes;
    uint64_t unused; /* 0 */
} peal_put_frame;
/* Kernels put both one behind the other on pages. Where bytes land 1 to 31 bytes further behind the
 * start of a page than they come from, AMD's processors copy them at a third of the speed. */
_Static_assert(sizeof(peal_put_frame) == 32, "a frame's header has 32 bytes");

extern const peal_network_ops peal_network_tcp;   /* by sockets */
extern const peal_network_ops peal_network_ucx;   /* not in builds without UCX's headers */
extern const peal_network_ops peal_network_verbs; /* not in builds without rdma-core's */

extern const peal_network_ops peal_network_mlx5; /* the same */
/* Why this process has no adapter, or none whose rings it can write; NULL: it has one. */
const char *peal_network_verbs_refuses(void);
const char *peal_network_mlx5_refuses(void);

/* The engine of a transport between hosts; why this process cannot use it, NULL: it can. */
const peal_network_ops *peal_network_of(peal_transport_kind kind);
const char *peal_network_refuses(peal_transport_kind kind);
/* All of it on a stream of the control plane, whether it blocks or not; false: the other end is
 * gone.
 */
bool peal_network_give(int stream, const void *data, size_t bytes);
/* What the engine is, or why this process cannot use it (false). */
bool peal_network_describe(peal_transport_kind kind, char *text, size_t bytes);

#endif
