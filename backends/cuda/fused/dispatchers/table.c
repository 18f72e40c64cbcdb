/* The dispatchers of mode fused, by name. */
#include "backends/cuda/fused/dispatchers/dispatcher.h"

#include <string.h>

/* The first one is the default. */
static const peal_cuda_dispatcher *const dispatchers[] = {
    &peal_cuda_dispatcher_tiles,
    &peal_cuda_dispatcher_grid,
    &peal_cuda_dispatcher_tickets,
    &peal_cuda_dispatcher_paper,
};
enum { DISPATCHERS = sizeof(dispatchers) / sizeof(dispatchers[0]) };

const peal_cuda_dispatcher *peal_cuda_dispatcher_find(const char *name, size_t length)
{
    for (int i = 0; i < DISPATCHERS; i++)
        if (strlen(dispatchers[i]->name) == length && !memcmp(dispatchers[i]->name, name, length))
            return dispatchers[i];
    return NULL;
}

const peal_cuda_dispatcher *peal_cuda_dispatcher_default(void)
{
    return dispatchers[0];
}
