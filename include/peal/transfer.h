/* One message alone, for applications that keep their own loop: no task is declared. What MPI's
 * persistent requests are, and LibMP's iput and wait_word, on the host or on a GPU's stream.
 *
 *     peal_transfer *there, *back;
 *     peal_transfer_create(session, &there, .from = 0, .to = 1, .data = ball, .bytes = n);
 *     peal_transfer_create(session, &back, .from = 1, .to = 0, .data = ball, .bytes = n);
 *     for (...) {
 *         if (process == 0) {
 *             peal_transfer_start(there, stream);
 *             peal_transfer_wait(back, stream);
 *         } else if (process == 1) {
 *             peal_transfer_wait(there, stream);
 *             peal_transfer_start(back, stream);
 *         }
 *     }
 *     peal_transfer_destroy(there);
 *     peal_transfer_destroy(back);
 *
 * The n-th wait is for the n-th start. Two messages of a transfer may be on their way: the start of
 * a third waits until the first has been waited for, and nothing is ever overwritten before. (On
 * the host and by tcp, the start of a message that is larger than what sockets take waits, too,
 * until the receiver is in a call of peal's.) What is sent is taken by the start, and what arrives
 * is put into the receiver's memory by the wait: in between each process does with its memory what
 * it likes.
 *
 * On the host both calls run on the calling thread. With memory of a GPU both put their half onto a
 * stream and return: start sends what the stream's work so far leaves, and what is put onto the
 * stream after wait sees what has come. Nothing waits for the host; where messages to another host
 * are rung for by the stream (docs/guide.md), nobody but the GPU and the adapter is needed. */
#ifndef PEAL_TRANSFER_H
#define PEAL_TRANSFER_H

#include <peal/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What goes from where to where. All but data and lowering are equal in all processes. */
typedef struct peal_transfer_desc {
    size_t size_bytes;  /* sizeof(peal_transfer_desc) */
    peal_source source; /* the caller's place (PEAL_HERE), for messages */
    int from, to;       /* processes of the session, two of them */
    void *data;     /* in `from` what is sent, in `to` where it arrives; not looked at elsewhere.
                       The caller's until destroy: of the host, which may write it, or of this
                       process's GPU (both ends alike; whether it is so long is not checked) */
    int64_t bytes;  /* 1 to 2^31 - 1 */
    bool on_demand; /* `to` asks for it: start and wait are its, and `from` answers */
    const char *backend;   /* "host", "cuda"; NULL or "auto": cuda if the memory is a GPU's */
    const char *lowering;  /* of cuda, as in peal_plan_options; NULL: peal chooses */
    const char *transport; /* the same */
} peal_transfer_desc;

typedef struct peal_transfer peal_transfer;

/* Prepares a message that can be sent any number of times. Collective over the session, whoever
 * takes part; all processes return the same status. PEAL_STATUS_USAGE: a descriptor that makes no
 * sense, or another one than process 0's (E366), memory that cannot be used (E365, E366), another
 * kind of memory or transport in another process (E354); PEAL_STATUS_ENVIRONMENT: too little
 * memory, or no path; PEAL_STATUS_DEADLINE: some process, in which nothing of peal's
 * was under way, did not call it. */
peal_status peal_transfer_create_desc(peal_session *session, const peal_transfer_desc *desc,
                                      peal_transfer **out);
#ifndef __cplusplus
/* peal_transfer_create(session, &transfer, .from = 0, .to = 1, ...) */
#define peal_transfer_create(session, out, ...)                                                    \
    peal_transfer_create_desc((session), PEAL_DESC(peal_transfer_desc, __VA_ARGS__), (out))
#endif

/* In process `from`: sends. (On demand, in process `to`: asks.) stream: NULL on the host; on a GPU
 * a CUstream or cudaStream_t of this process's GPU, NULL being CUDA's default stream. It must not
 * be capturing. Another stream than that of the message before is made to wait for that one. On the
 * host it returns once data may be written again; it waits while two messages have not been waited
 * for, for the session's deadline at most. PEAL_STATUS_USAGE: another process calls, or a stream
 * that cannot be used; after a failure, the first cause's status. */
peal_status peal_transfer_start(peal_transfer *transfer, void *stream);

/* In process `to`: receives; on demand, what it has asked for, on the stream of the start. On the
 * host it returns once the bytes are at data. On a GPU the stream waits, and the call returns at
 * once, with the status of what was known by then. A message that does not come ends the wait after
 * the session's deadline, an abort within moments; what is at data is undefined then, the next call
 * on the transfer or peal_session_status says why. */
peal_status peal_transfer_wait(peal_transfer *transfer, void *stream);

/* On demand, in process `from`: answers the next start with what is at data when it comes, however
 * late. Where LibMP's iget reads the memory of a process that does nothing, this process has put
 * answers onto a stream, ahead. On the host it returns once the answer has been sent. On a GPU the
 * stream waits for the start, and the call returns at once: a stream that does nothing else can be
 * given many, some hundred before the call waits for room. In the end there must have been a start
 * for each. Status as of peal_transfer_wait. */
peal_status peal_transfer_answer(peal_transfer *transfer, void *stream);

/* One line: bytes, processes, transport, hash. */
void peal_transfer_describe(const peal_transfer *transfer, char *text, size_t bytes);

/* Agrees with the others that all messages have arrived, and frees it. Collective unless the job
 * was aborted. NULL is fine (and then not collective). PEAL_STATUS_OK only if there were as many
 * waits as starts, and as answers on demand (else PEAL_STATUS_USAGE, E354). */
peal_status peal_transfer_destroy(peal_transfer *transfer);

#ifdef __cplusplus
}
#endif
#endif
