/* Room of a thread's own for texts that functions return, good until the thread asks again.
 *
 * Thread-local arrays would do the same, but the library has variables that signal handlers read
 * (backends/host/crash.h), so all of its thread-local memory has to be there when a thread begins;
 * of that an application that opens the library by dlopen has some hundred bytes to give. */
#ifndef PEAL_BASE_THREAD_ROOM_H
#define PEAL_BASE_THREAD_ROOM_H

#include <stddef.h>

/* Who keeps something. */
typedef enum peal_room {
    PEAL_ROOM_HANDLE,    /* base/handle.c */
    PEAL_ROOM_REFUSAL,   /* scheduler/modes/applicability.c */
    PEAL_ROOM_OBJECTION, /* runtime/select/automatic.c */
    PEAL_ROOM_DEVICE,    /* backends/cuda/gpu/context.c */
    PEAL_ROOMS
} peal_room;

/* The calling thread's room of a kind: the same memory each time, zero at first, freed with the
 * thread. `bytes` is the same in all calls for a kind. NULL: no memory. */
void *peal_thread_room(peal_room room, size_t bytes);

#endif
