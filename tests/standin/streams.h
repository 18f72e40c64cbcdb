/* What launches and copies need of the stand-in's streams. */
#ifndef PEAL_TESTS_STANDIN_STREAMS_H
#define PEAL_TESTS_STANDIN_STREAMS_H

#include <cuda.h>

#include "tests/standin/emulate.h"

#include <pthread.h>
#include <stdbool.h>

extern pthread_mutex_t standin_lock;

#define LOCKED(statement)                                                                          \
    do {                                                                                           \
        pthread_mutex_lock(&standin_lock);                                                         \
        statement;                                                                                 \
        pthread_mutex_unlock(&standin_lock);                                                       \
    } while (0)

/* Puts work onto a stream: what is emulated, or NULL; or what never ends. The caller has the lock.
 */
void standin_put(CUstream handle, emulate_call *call, bool ends);

/* A call that returns when all streams have ended. If one does not within 20 s it is noted as bad,
 * and fails. */
CUresult standin_waits(const char *name);

#endif
