/* The backends of this build, and the device that a session has opened. */
#ifndef PEAL_RUNTIME_SESSION_DEVICE_H
#define PEAL_RUNTIME_SESSION_DEVICE_H

#include "runtime/memory/storage.h"
#include "runtime/session/session.h"

#include <peal/plugin/backend.h>

/* The backend that needs a device; NULL: this build has none. */
const peal_backend_ops *peal_backend_accelerated(void);
/* "host", "cuda"; NULL: this build has none of that name. */
const peal_backend_ops *peal_backend_named(const char *name);
/* Names that --backend takes, whether built or not. */
bool peal_backend_is_known(const char *name);

/* Devices that this process sees; 0 and why, in words. */
int peal_device_count(const char **reason);
/* The device of this process, opened at the first call and kept until the session ends; NULL and
 * why, in words. */
peal_device *peal_session_device(peal_session *session, const char **reason);
void peal_session_close_device(peal_session *session);
/* Where the memory of a machine's ranks is in this process. */
peal_memory_space peal_session_memory_space(const peal_session *session,
                                            const peal_machine *machine, peal_mode mode);

#endif
