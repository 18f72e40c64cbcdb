/* What a task's `.enqueue` is: a function of the application that puts work onto a GPU's stream. */
#ifndef PEAL_ENQUEUE_H
#define PEAL_ENQUEUE_H

#include <peal/call.h>
#include <peal/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Puts what it likes onto `stream` (a CUstream or cudaStream_t), and nowhere else: launches,
 * copies, library calls. The GPU's context is current. What it puts there must need no call of the
 * host later, and it must not wait for the stream: what is before on it may wait for other ranks.
 * Tiles come as with peal_device_call. In mode graph it is called while the plan is compiled, with
 * a stream that is being captured, and its work is replayed. Another status than OK ends the run
 * with it. */
typedef peal_status (*peal_enqueue_function)(void *stream, const peal_call *call);

#ifdef __cplusplus
}
#endif
#endif
