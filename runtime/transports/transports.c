/* The list of transports. */
#include "runtime/transports/transports.h"

static const peal_transport_ops *const transports[] = {
    &peal_transport_self, &peal_transport_shm,   &peal_transport_p2p,  &peal_transport_tcp,
    &peal_transport_ucx,  &peal_transport_verbs, &peal_transport_mlx5,
};

const peal_transport_ops *peal_transport_of(peal_transport_kind kind)
{
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
        if (transports[i]->kind == kind)
            return transports[i];
    return NULL;
}
