/* Streams, events and captures of the stand-in. A stream is a queue: what is put onto it is done at
 * once (kernels only where they are emulated), unless it waits for a word, for an event, or for a
 * kernel that never ends. What a driver would refuse, or what would hold its caller for ever, is
 * recorded as a line that begins with "bad". Streams and events of an application are small
 * numbers: such an event may always be waited for, and what is put onto such a stream is recorded
 * by standin_on.
 *
 * STANDIN_QUEUES=N: what is put onto streams goes through N queues of the device, which streams
 * have in turn as they are made, one thing after the other; without, each stream has its own. */
#include "tests/standin/streams.h"

#include "tests/standin/record.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OF_APPLICATION = 8, STREAMS = EMULATE_STREAMS, OWN = STREAMS - OF_APPLICATION };
enum { EVENTS = 16384, LEAST_ROOM = 64 };

typedef enum entry_kind { DONE, WORD, VALUE, HALF, CLEAR, EVENT, NEVER, RUN } entry_kind;
typedef struct entry {
    entry_kind kind;
    volatile uint64_t *word; /* WORD: waits for value; VALUE: gets it; HALF: its first half does;
                                CLEAR: waits until a bit is 0 that value has not */
    uint64_t value;          /* EVENT: entries of `other` that come first */
    int other;
    emulate_call *call; /* RUN */
    uint64_t turn;      /* in its device queue */
} entry;

typedef struct stream {
    bool used;
    entry *queue; /* those from done to put; the k-th at k % room */
    uint64_t room, put, done;
    int shared;              /* its device queue */
    int capture;             /* 0: none */
    uint64_t clock[STREAMS]; /* captured work that comes before what is put here next, by stream */
} stream;

typedef struct event {
    bool used, recorded;
    int stream, capture;
    uint64_t put, clock[STREAMS];
} event;

pthread_mutex_t standin_lock = PTHREAD_MUTEX_INITIALIZER;
static stream streams[STREAMS];
static event events[EVENTS + OF_APPLICATION];
static int captures, active; /* numbers of captures */
static bool body;            /* what is captured goes to a graph that there is */
static struct {
    uint64_t put, done;
} device_queue[STREAMS];

static int number_of(CUstream handle)
{
    if ((uintptr_t)handle < OF_APPLICATION)
        return handle ? OWN + (int)(uintptr_t)handle : 0; /* 0: the default stream */
    return (int)((stream *)(void *)handle - streams);
}

/* ---- queues ---- */

static bool is_over(const entry *e)
{
    switch (e->kind) {
    case WORD:
        return (int64_t)(*e->word - e->value) >= 0;
    case VALUE:
        *e->word = e->value;
        return true;
    case HALF:
        *(volatile uint32_t *)e->word = (uint32_t)e->value;
        return true;
    case CLEAR:
        return ~(*(volatile uint32_t *)e->word | (uint32_t)e->value) != 0;
    case EVENT:
        return streams[e->other].done >= e->value;
    case NEVER:
        return false;
    case RUN:
        emulate_run(e->call);
        emulate_forget(e->call);
        return true;
    default:
        return true;
    }
}

/* The next of a stream, if its device queue has come to it. */
static bool end_one(stream *s)
{
    uint64_t *done = &device_queue[s->shared].done;

    if (s->done == s->put)
        return false;
    const entry *next = &s->queue[s->done % s->room];
    if (next->turn != *done || !is_over(next))
        return false;
    ++*done;
    s->done++;
    return true;
}

static void advance(void)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (int s = 0; s < STREAMS; s++)
            while (end_one(&streams[s]))
                moved = true;
    }
}

/* A new stream's queue. One of its own is empty. */
static int take_queue(int number)
{
    const char *asked = getenv("STANDIN_QUEUES");
    if (asked)
        return number % atoi(asked);
    device_queue[number].put = device_queue[number].done = 0;
    return number;
}

/* Queues grow: LeakSanitizer looks through all that is static, in each of many processes. */
static void make_room(stream *s)
{
    if (s->put - s->done < s->room)
        return;
    uint64_t room = s->room ? 2 * s->room : LEAST_ROOM;
    entry *queue = malloc(room * sizeof(*queue));
    if (!queue)
        abort();
    for (uint64_t k = s->done; k < s->put; k++)
        queue[k % room] = s->queue[k % s->room];
    free(s->queue);
    s->queue = queue;
    s->room = room;
}

static void put(CUstream handle, entry e)
{
    int number = number_of(handle);
    stream *to = &streams[number];
    if (to->capture) {
        to->clock[number]++;
        if (e.kind == RUN)
            emulate_append(e.call, number, to->clock);
        else if (emulate_append && (e.kind == WORD || e.kind == VALUE))
            emulate_append(emulate_word(e.kind == WORD, e.word, e.value), number, to->clock);
        return;
    }
    if (number >= OWN) /* nobody made it */
        to->shared = number;
    e.turn = device_queue[to->shared].put++;
    make_room(to);
    to->queue[to->put++ % to->room] = e;
    advance();
}

static bool is_busy(const stream *s)
{
    return s->done < s->put;
}

/* What a stream waits for may be another process' to do, which may have to wait for a core: streams
 * [first, end). */
enum { LONGEST_S = 20 };

static CUresult wait_for(const char *name, int first, int end)
{
    const struct timespec moment = {0, 1000000};
    struct timespec now;
    bool busy = true;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (time_t until = now.tv_sec + LONGEST_S; busy && now.tv_sec < until;) {
        pthread_mutex_lock(&standin_lock);
        advance();
        busy = false;
        for (int s = first; s < end; s++)
            busy = busy || is_busy(&streams[s]);
        pthread_mutex_unlock(&standin_lock);
        if (busy)
            nanosleep(&moment, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    if (!busy)
        return CUDA_SUCCESS;
    standin_bad(name, "waits for a stream that does not end");
    return CUDA_ERROR_LAUNCH_TIMEOUT;
}

CUresult standin_waits(const char *name)
{
    return wait_for(name, 0, STREAMS);
}

void standin_put(CUstream handle, emulate_call *call, bool ends)
{
    entry e = {.kind = !ends ? NEVER : call ? RUN : DONE, .call = call};
    put(handle, e);
}

/* ---- streams ---- */

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
    (void)priority;
    if (standin_call("cuStreamCreateWithPriority"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(flags & CU_STREAM_NON_BLOCKING))
        standin_bad("cuStreamCreateWithPriority", "makes a stream that others wait for");
    LOCKED(int s = 1; while (s < OWN - 1 && streams[s].used) s++; streams[s].used = true;
           streams[s].put = streams[s].done = 0; streams[s].capture = 0;
           streams[s].shared = take_queue(s); *out = (CUstream)(void *)&streams[s]);
    standin_made(STANDIN_STREAM);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream handle)
{
    NOTE(cuStreamDestroy);
    LOCKED(streams[number_of(handle)].used = false);
    standin_gone(STANDIN_STREAM);
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle)
{
    NOTE(cuStreamQuery);
    if (streams[number_of(handle)].capture) {
        standin_bad("cuStreamQuery", "of a stream that is captured");
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    bool busy;
    LOCKED(advance(); busy = is_busy(&streams[number_of(handle)]));
    return busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle)
{
    NOTE(cuStreamSynchronize);
    return wait_for("cuStreamSynchronize", number_of(handle), number_of(handle) + 1);
}

CUresult cuCtxSynchronize(void)
{
    NOTE(cuCtxSynchronize);
    return standin_waits("cuCtxSynchronize");
}

CUresult cuStreamWaitValue64(CUstream handle, CUdeviceptr word, cuuint64_t value, unsigned flags)
{
    (void)flags;
    NOTE(cuStreamWaitValue64);
    if (body && streams[number_of(handle)].capture)
        standin_bad("cuStreamWaitValue64", "within the body of a conditional node");
    entry e = {.kind = WORD, .word = (volatile uint64_t *)(uintptr_t)word, .value = value};
    LOCKED(put(handle, e));
    return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue64(CUstream handle, CUdeviceptr word, cuuint64_t value, unsigned flags)
{
    (void)flags;
    NOTE(cuStreamWriteValue64);
    if (body && streams[number_of(handle)].capture)
        standin_bad("cuStreamWriteValue64", "within the body of a conditional node");
    entry e = {.kind = VALUE, .word = (volatile uint64_t *)(uintptr_t)word, .value = value};
    LOCKED(put(handle, e));
    return CUDA_SUCCESS;
}

static void *go_on(void *unused)
{
    const struct timespec moment = {0, 500000};
    (void)unused;
    for (;;) {
        nanosleep(&moment, NULL);
        LOCKED(advance());
    }
    return NULL;
}

/* Batches go on without a call of the driver: who rings leaves the rest to the device. */
static void begin_to_go_on(void)
{
    pthread_t thread;
    if (!pthread_create(&thread, NULL, go_on, NULL))
        pthread_detach(thread);
}

/* One place of the stream, whose operations are done one after the other. */
CUresult cuStreamBatchMemOp(CUstream handle, unsigned count, CUstreamBatchMemOpParams *list,
                            unsigned flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)flags;
    pthread_once(&once, begin_to_go_on);
    standin_on(handle, "cuStreamBatchMemOp");
    NOTE(cuStreamBatchMemOp);
    if (streams[number_of(handle)].capture)
        standin_bad("cuStreamBatchMemOp", "of a stream that is captured");
    for (unsigned i = 0; i < count; i++) {
        const CUstreamBatchMemOpParams *op = &list[i];
        entry e = {.value = op->writeValue.value64};
        e.word = (volatile uint64_t *)(uintptr_t)op->writeValue.address;
        e.kind = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64    ? WORD
                 : op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? VALUE
                                                                    : HALF;
        if (op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32)
            e.value = op->writeValue.value;
        else if (op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 &&
                 op->waitValue.flags == CU_STREAM_WAIT_VALUE_NOR)
            e = (entry){.kind = CLEAR, .word = e.word, .value = op->waitValue.value};
        else if (e.kind == HALF)
            standin_bad("cuStreamBatchMemOp", "an operation that the stand-in does not know");
        LOCKED(put(handle, e));
    }
    return CUDA_SUCCESS;
}

/* ---- events ---- */

static event *event_of(CUevent handle)
{
    if ((uintptr_t)handle < OF_APPLICATION)
        return &events[EVENTS + (uintptr_t)handle];
    return (event *)(void *)handle;
}

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    (void)flags;
    if (standin_call("cuEventCreate"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    LOCKED(int e = 0; while (e < EVENTS - 1 && events[e].used) e++; events[e].used = true;
           events[e].recorded = false; *out = (CUevent)(void *)&events[e]);
    standin_made(STANDIN_EVENT);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent handle)
{
    NOTE(cuEventDestroy);
    LOCKED(event_of(handle)->used = false);
    standin_gone(STANDIN_EVENT);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent handle, CUstream on)
{
    event *e = event_of(handle);
    int number = number_of(on);
    standin_on(on, "cuEventRecord");
    NOTE(cuEventRecord);
    LOCKED(e->recorded = true; e->stream = number; e->put = streams[number].put;
           e->capture = streams[number].capture;
           memcpy(e->clock, streams[number].clock, sizeof(e->clock)));
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent handle)
{
    const event *e = event_of(handle);
    NOTE(cuEventQuery);
    if (e->recorded && e->capture) {
        standin_bad("cuEventQuery", "of an event that was recorded in a capture");
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool busy;
    LOCKED(advance(); busy = e->recorded && streams[e->stream].done < e->put);
    return busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static void join(stream *to, const event *e)
{
    if (!to->capture)
        memset(to->clock, 0, sizeof(to->clock));
    to->capture = e->capture;
    for (int s = 0; s < STREAMS; s++)
        to->clock[s] = e->clock[s] > to->clock[s] ? e->clock[s] : to->clock[s];
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent awaited, unsigned flags)
{
    const event *e = event_of(awaited);
    stream *to = &streams[number_of(handle)];
    const char *bad = NULL;
    (void)flags;
    standin_on(handle, "cuStreamWaitEvent");
    NOTE(cuStreamWaitEvent);
    pthread_mutex_lock(&standin_lock);
    if (!e->recorded && e < &events[EVENTS])
        bad = "for an event that has not been recorded";
    else if (e->capture && e->capture != active)
        bad = "for an event of a capture that is over";
    else if (!e->capture && to->capture)
        bad = "within a capture for an event from outside";
    else if (e->capture)
        join(to, e);
    else
        put(handle, (entry){.kind = EVENT, .value = e->put, .other = e->stream});
    pthread_mutex_unlock(&standin_lock);
    if (bad)
        standin_bad("cuStreamWaitEvent", bad);
    return bad ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_SUCCESS;
}

/* ---- capture ---- */

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode)
{
    stream *origin = &streams[number_of(handle)];
    (void)mode;
    NOTE(cuStreamBeginCapture);
    LOCKED(active = ++captures; origin->capture = active;
           memset(origin->clock, 0, sizeof(origin->clock)));
    if (emulate_capture)
        emulate_capture(NULL);
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                     const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                                     size_t count, CUstreamCaptureMode mode)
{
    stream *origin = &streams[number_of(handle)];
    (void)dependencies, (void)data, (void)count, (void)mode;
    if (emulate_capture)
        emulate_capture((void *)graph);
    NOTE(cuStreamBeginCaptureToGraph);
    LOCKED(active = ++captures; origin->capture = active; body = true;
           memset(origin->clock, 0, sizeof(origin->clock)));
    return CUDA_SUCCESS;
}

/* Its body, if it is a conditional node, belongs to it. */
CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params)
{
    static CUgraph bodies[1];
    static char place;
    (void)dependencies, (void)data, (void)count;
    NOTE(cuGraphAddNode);
    *node = (CUgraphNode)(void *)&place;
    bodies[0] = emulate_body ? emulate_body((void *)graph) : (CUgraph)(void *)&place;
    if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        params->conditional.phGraph_out = bodies;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    const char *lacks = getenv("STANDIN_LACKS");
    NOTE(cuStreamIsCapturing);
    bool captured = streams[number_of(handle)].capture ||
                    (lacks && strstr(lacks, "capture") && (uintptr_t)handle == 2);
    *status = captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

#ifndef PEAL_STANDIN_OLD /* an old driver: one entry point less */
CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
    static char place;
    const stream *origin = &streams[number_of(handle)];
    bool joined = true;
    *out = NULL;
    if (standin_call("cuStreamEndCapture")) {
        LOCKED(body = false);
        return CUDA_ERROR_UNKNOWN;
    }
    pthread_mutex_lock(&standin_lock);
    for (int s = 0; s < STREAMS; s++)
        if (streams[s].capture == active) {
            joined = joined && origin->clock[s] >= streams[s].clock[s];
            streams[s].capture = 0;
        }
    active = 0;
    bool owned = body;
    body = false;
    pthread_mutex_unlock(&standin_lock);
    if (!joined) {
        standin_bad("cuStreamEndCapture", "finds work that was not joined");
        return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    *out = emulate_captured ? emulate_captured() : (CUgraph)(void *)&place;
    if (!owned)
        standin_made(STANDIN_GRAPH);
    return CUDA_SUCCESS;
}
#endif
