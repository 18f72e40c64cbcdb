/* Which backends there are, and the one device that a process works on. */
#include "runtime/session/device.h"

#include "base/phase.h"
#include "peal_config.h"

#include <stdlib.h>
#include <string.h>

static const peal_backend_ops *const backends[] = {
    &peal_backend_host,
#if PEAL_HAVE_CUDA
    &peal_backend_cuda,
#endif
};
enum { BACKENDS = sizeof(backends) / sizeof(backends[0]) };

static const char not_built[] = "this build has no GPU backend: it was made without CUDA's headers";

const peal_backend_ops *peal_backend_accelerated(void)
{
    for (int i = 0; i < BACKENDS; i++)
        if (backends[i]->open)
            return backends[i];
    return NULL;
}

const peal_backend_ops *peal_backend_named(const char *name)
{
    for (int i = 0; i < BACKENDS; i++)
        if (!strcmp(name, backends[i]->name))
            return backends[i];
    return NULL;
}

bool peal_backend_is_known(const char *name)
{
    return !strcmp(name, "auto") || !strcmp(name, "host") || !strcmp(name, "cuda");
}

int peal_device_count(const char **reason)
{
    const peal_backend_ops *backend = peal_backend_accelerated();
    if (backend)
        return backend->count(reason);
    *reason = not_built;
    return 0;
}

peal_device *peal_session_device(peal_session *session, const char **reason)
{
    const peal_backend_ops *backend = peal_backend_accelerated();
    if (!session->device_tried) {
        const peal_device_request request = {
            .size = sizeof(request),
            .local_process = session->identity.local_process,
            .local_processes = session->identity.local_processes,
            .diagnostics = session->diagnostics,
        };
        session->device_tried = true;
        peal_phase before = peal_phase_enter(10, "the driver of the GPUs");
        session->device_reason = backend ? backend->open(&request, &session->device) : not_built;
        peal_phase_leave(&before);
    }
    if (reason)
        *reason = session->device_reason;
    return session->device;
}

void peal_session_close_device(peal_session *session)
{
    if (session->device)
        peal_backend_accelerated()->close(session->device);
    free(session->neighbours);
    free(session->peer_paths);
    session->device = NULL;
    session->neighbours = NULL;
    session->peer_paths = NULL;
}

peal_memory_space peal_session_memory_space(const peal_session *session,
                                            const peal_machine *machine, peal_mode mode)
{
    if (!machine->accelerator)
        return (peal_memory_space){.mode = mode};
    return (peal_memory_space){.memory = peal_backend_accelerated()->memory,
                               .device = session->device,
                               .mode = mode,
                               .path = machine->processes > 1 ? machine->path : PEAL_PATH_NONE};
}
