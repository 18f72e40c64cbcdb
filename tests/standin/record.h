/* What the files of the driver's stand-in share: the record of calls, failures on demand, and what
 * is alive. */
#ifndef PEAL_TESTS_STANDIN_RECORD_H
#define PEAL_TESTS_STANDIN_RECORD_H

#include <stdbool.h>
#include <stddef.h>

/* Notes a call by name; whether it is one that was asked to fail. */
int standin_call(const char *name);

#define NOTE(name)                                                                                 \
    do {                                                                                           \
        if (standin_call(#name))                                                                   \
            return CUDA_ERROR_UNKNOWN;                                                             \
    } while (0)

/* Notes a line of its own. */
void standin_note(const char *line);

/* Notes "bad NAME WHAT": the call is one that a driver would refuse or never return from. */
void standin_bad(const char *name, const char *what);

/* Notes "app NAME" if the stream is one of an application: those of the tests are small numbers. */
void standin_on(const void *stream, const char *name);
/* Memory that the driver knows: its type; bytes 0: no more. */
void standin_memory(unsigned long long address, unsigned long long bytes, unsigned type);
/* 0: unknown. */
unsigned standin_memory_type(unsigned long long address);

/* driver.c: whether STANDIN_LACKS has the word; whether the thread has a context. */
bool standin_lacks(const char *what);
bool standin_has_context(void);
/* handles.c: how much memory a device has; whether it has so much left. */
size_t standin_bytes(void);
bool standin_fits(size_t bytes);

/* Things that are made and must be given back. */
typedef enum standin_kind {
    STANDIN_CONTEXT,
    STANDIN_MEMORY,
    STANDIN_PINNED,
    STANDIN_HANDLE,
    STANDIN_RANGE,
    STANDIN_MAPPING,
    STANDIN_STREAM,
    STANDIN_EVENT,
    STANDIN_MODULE,
    STANDIN_GRAPH,
    STANDIN_EXECUTABLE,
    STANDIN_OPENED,     /* memory of another process, by IPC */
    STANDIN_REGISTERED, /* memory of the host */
    STANDIN_KINDS
} standin_kind;
void standin_made(standin_kind kind);
void standin_gone(standin_kind kind);

#endif
