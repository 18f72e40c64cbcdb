/* An exchange by itself, on a stream of the application. A call walks the first or the second phase
 * (send, receive) of an iteration of every rank, and enqueues it on that stream. All lanes are that
 * stream, so its order is the only one; the application's work between the phases is in it as well.
 *
 * No thread of peal waits for the stream. Waits in kernels have their own deadline. A thread, the
 * watcher, sleeps most of the time; it passes an abort on to these waits. It also keeps the
 * deadline of waits by memory operation: words in mapped memory, written before and after each such
 * wait, show which one the stream is in. */
#define _GNU_SOURCE
#include "backends/cuda/embed.h"
#include "base/clock.h"

#include "backends/cuda/drive/run.h"
#include "backends/cuda/executor.h"
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/stream/batch.h"
#include "backends/cuda/stream/stream_sink.h"

#include <stddef.h>
#include <stdlib.h>

enum { OP_BITS = 20 }; /* the low bits of a mark: the op; the step is above them */

/* The wait that a rank's stream was in at the watcher's last check. */
typedef struct watched_wait {
    uint64_t mark; /* 0: none */
    double since;
} watched_wait;

typedef struct peal_cuda_embedding {
    pthread_t watcher;
    pthread_mutex_t lock;
    pthread_cond_t ends;
    bool has_watcher, ending;
    bool must_release;  /* waits are released, whatever the abort word says */
    bool any;           /* something was enqueued */
    bool idle;          /* all of it has been done */
    double last_check;  /* of the watcher */
    watched_wait *wait; /* by rank */
} peal_cuda_embedding;

/* ---- the watcher ---- */

/* Waits by memory operation do not see an abort. They are released by writing values to their
 * words, again and again, since the calling thread may still be enqueuing more of them. */
static void release_waits(peal_cuda_plan *plan, uint64_t *value)
{
    if (plan->options.signal != PEAL_CUDA_SIGNAL_MEMOP)
        return;
    CUcontext previous = peal_cuda_context_enter(plan->device);
    peal_cuda_rescue_write(plan, *value += PEAL_CUDA_HALF_CYCLE);
    peal_cuda_context_leave(plan->device, previous);
}

/* Enqueues the store that tells the watcher that a wait by memory operation begins or has ended. */
static CUresult mark_wait(peal_cuda_rank *rank, peal_cuda_lane *lane, int op, bool begins)
{
    uint64_t offset = begins ? offsetof(peal_device_control, wait_begun)
                             : offsetof(peal_device_control, wait_ended);
    uint64_t mark = (uint64_t)rank->walk.counter[0] << OP_BITS | (uint64_t)(op + 1);

    return peal_cuda_stream_write_word(rank, lane, rank->control_device + offset, mark);
}

static CUresult wait_word(peal_cuda_rank *rank, peal_cuda_lane *lane, int op, CUdeviceptr word,
                          uint64_t value)
{
    CUresult result = mark_wait(rank, lane, op, true);

    if (!result)
        result = peal_cuda_stream_wait_word(rank, lane, op, word, value);
    return result ? result : mark_wait(rank, lane, op, false);
}

/* The lookahead has no bound but the rings of a network: the application enqueues as much as it
 * likes. */
const struct peal_cuda_sink_ops peal_cuda_embed_sink = {
    .launch = peal_cuda_stream_launch,
    .copy = peal_cuda_stream_copy,
    .write_word = peal_cuda_stream_write_word,
    .wait_word = wait_word,
    .ring = peal_cuda_stream_ring,
    .submit = peal_cuda_batch_submit,
    .record = peal_cuda_stream_record,
    .wait_event = peal_cuda_stream_wait_event,
    .call = peal_cuda_stream_call,
};

/* Records a wait that has taken too long, as a kernel would: the next call reports it. */
static void record_wait(peal_cuda_rank *rank, uint64_t mark)
{
    peal_device_control *control = rank->control;
    int index = (int)(mark & ((1u << OP_BITS) - 1)) - 1;
    const peal_cuda_op *op = &rank->op[index];
    uint64_t seen = 0;

    CUcontext previous = peal_cuda_context_enter(rank->plan->device);
    peal_cuda_rescue_read(rank->plan, op->word, &seen);
    peal_cuda_context_leave(rank->plan->device, previous);
    control->kind = PEAL_FAILED_WAIT;
    control->op = index;
    control->step = (long long)(mark >> OP_BITS);
    control->seen = seen;
    control->expected = seen + op->channel->quantum;
    __atomic_store_n(&control->failed, 1, __ATOMIC_RELEASE); /* for check_device_records (poll.c) */
}

/* Whether a stream has been in one of its waits for longer than the deadline. */
static bool is_overdue(peal_cuda_plan *plan)
{
    double now = peal_clock_s(), deadline = 1e-9 * (double)plan->desc.deadline_ns;
    double jump = (deadline < 4 ? deadline / 4 : 1) + 0.1, last = plan->embedding->last_check;

    plan->embedding->last_check = now;
    for (int r = 0; r < plan->rank_count && deadline > 0; r++) {
        const peal_device_control *control = plan->rank[r].control;
        watched_wait *wait = &plan->embedding->wait[r];
        uint64_t ended = __atomic_load_n(&control->wait_ended, __ATOMIC_ACQUIRE);
        uint64_t begun = __atomic_load_n(&control->wait_begun, __ATOMIC_ACQUIRE);
        if (begun == ended || begun != wait->mark) {
            *wait = (watched_wait){begun == ended ? 0 : begun, now};
        } else if (now - last > jump) { /* this process was stopped */
            wait->since = now;
        } else if (now - wait->since > deadline) {
            record_wait(&plan->rank[r], begun);
            return true;
        }
    }
    return false;
}

static void *watch(void *user)
{
    enum { NAP_NS = 20000000 };
    peal_cuda_plan *plan = user;
    peal_cuda_embedding *embedding = plan->embedding;
    bool has_stopped = false;
    uint64_t value = 0;

    pthread_mutex_lock(&embedding->lock);
    while (!embedding->ending) {
        if (plan->options.rings) /* nobody else looks after the network */
            plan->desc.network->progress(plan->desc.network->user);
        if (!has_stopped && (peal_cuda_is_aborted(plan) || is_overdue(plan))) {
            int none = 0; /* who sends what the device stores looks at it, too */
            atomic_compare_exchange_strong(plan->desc.abort_word, &none, PEAL_STATUS_DEADLINE);
            peal_cuda_stop_device(plan);
            has_stopped = true;
        }
        if (has_stopped || embedding->must_release)
            peal_cuda_rescue_gates(plan);
        if (has_stopped || embedding->must_release)
            release_waits(plan, &value);
        struct timespec until = peal_clock_timespec(peal_clock_ns() + NAP_NS);
        pthread_cond_timedwait(&embedding->ends, &embedding->lock, &until);
    }
    pthread_mutex_unlock(&embedding->lock);
    return NULL;
}

peal_status peal_cuda_embed_create(peal_cuda_plan *plan)
{
    peal_cuda_embedding *embedding = PEAL_ARENA_NEW(plan->arena, peal_cuda_embedding);
    pthread_condattr_t attributes;

    embedding->idle = true;
    embedding->wait = PEAL_ARENA_ARRAY(plan->arena, watched_wait, plan->rank_count);
    plan->embedding = embedding;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&embedding->lock, NULL);
    pthread_cond_init(&embedding->ends, &attributes);
    pthread_condattr_destroy(&attributes);
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        rank->walk.position = rank->schedule->step.first;
        if (peal_walk_enter(&rank->walk) != PEAL_WALK_OP)
            return PEAL_STATUS_SPEC;
    }
    if (pthread_create(&embedding->watcher, NULL, watch, plan) != 0)
        return peal_report(plan->desc.diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_CUDA_NOWHERE, NULL,
                           "cannot create the thread that watches an exchange");
    embedding->has_watcher = true;
    return PEAL_STATUS_OK;
}

void peal_cuda_embed_destroy(peal_cuda_plan *plan)
{
    peal_cuda_embedding *embedding = plan->embedding;

    if (!embedding)
        return;
    if (!embedding->idle) {
        /* The application did not settle: memory must not be freed while exchanges use it. */
        peal_cuda_stop_device(plan);
        pthread_mutex_lock(&embedding->lock);
        embedding->must_release = true;
        pthread_cond_signal(&embedding->ends);
        pthread_mutex_unlock(&embedding->lock);
        plan->driver->cuCtxSynchronize_();
    }
    pthread_mutex_lock(&embedding->lock);
    embedding->ending = true;
    pthread_cond_signal(&embedding->ends);
    pthread_mutex_unlock(&embedding->lock);
    if (embedding->has_watcher)
        pthread_join(embedding->watcher, NULL);
    pthread_cond_destroy(&embedding->ends);
    pthread_mutex_destroy(&embedding->lock);
    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes; l++)
            plan->rank[r].lane[l].stream = plan->rank[r].lane[l].own;
}

/* ---- the walk ---- */

static bool stands_for_application(const peal_cuda_rank *rank, const peal_op *op)
{
    return op->kind == PEAL_OP_LAUNCH && rank->schedule->task[op->task].function;
}

static bool receives(const peal_cuda_rank *rank, const peal_op *op)
{
    if (op->kind == PEAL_OP_COPY)
        return op->copy == PEAL_COPY_UNPACK;
    return op->kind == PEAL_OP_WAIT && !op->credit &&
           !rank->schedule->channel[op->channel].outgoing;
}

/* Emits ops up to the application's tasks, or (sending) up to the first receive, or to the end.
 * through: past both, to the end. */
static peal_cuda_advance advance(peal_cuda_rank *rank, bool sending, bool through)
{
    const peal_section *section = &rank->schedule->step;
    bool moved = false;

    for (;;) {
        peal_walk_result next = peal_walk_next(&rank->walk, section);
        if (next == PEAL_WALK_END)
            return PEAL_CUDA_FINISHED;
        if (next != PEAL_WALK_OP) {
            peal_cuda_fail(rank->plan, PEAL_STATUS_SPEC);
            return PEAL_CUDA_FAILED;
        }
        const peal_op *op = &rank->schedule->op[rank->walk.position];
        if (!through && (stands_for_application(rank, op) || (sending && receives(rank, op))))
            return PEAL_CUDA_FINISHED;
        peal_cuda_advance turn = peal_cuda_may_emit(rank);
        if (turn != PEAL_CUDA_ADVANCED)
            return moved && turn != PEAL_CUDA_FAILED ? PEAL_CUDA_ADVANCED : turn;
        if (!peal_cuda_emit(rank))
            return PEAL_CUDA_FAILED;
        rank->moved = moved = true;
    }
}

/* Emits the ops after the application's tasks: it has read its halos, so credits are given. */
static peal_cuda_advance next_in_release(peal_cuda_rank *rank)
{
    bool stop = false;

    if (!rank->in_round)
        return PEAL_CUDA_FINISHED;
    peal_cuda_advance state = advance(rank, false, true);
    if (state != PEAL_CUDA_FINISHED)
        return state;
    if (peal_walk_step_done(&rank->walk, &stop) != PEAL_WALK_OP || stop) {
        peal_cuda_fail(rank->plan, PEAL_STATUS_INTERNAL);
        return PEAL_CUDA_FAILED;
    }
    rank->walk.position = rank->schedule->step.first;
    rank->in_round = false;
    return PEAL_CUDA_FINISHED;
}

static peal_cuda_advance next_in_send(peal_cuda_rank *rank)
{
    return advance(rank, true, false);
}

static peal_cuda_advance next_in_receive(peal_cuda_rank *rank)
{
    return advance(rank, false, false);
}

static bool flush(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++)
        if (!peal_cuda_flush_all(&plan->rank[r]))
            return false;
    return true;
}

static bool run_phase(peal_cuda_plan *plan, CUstream stream, peal_backend_phase phase)
{
    if (phase == PEAL_PHASE_SEND)
        return peal_cuda_take_turns(plan, next_in_release) &&
               peal_cuda_take_turns(plan, next_in_send) && flush(plan);
    bool releases = phase == PEAL_PHASE_RELEASE;
    bool ok =
        peal_cuda_take_turns(plan, releases ? next_in_release : next_in_receive) && flush(plan);
    for (int r = 0; r < plan->rank_count && !releases; r++)
        plan->rank[r].in_round = true;
    if (!ok)
        return false;
    CUresult result = plan->driver->cuEventRecord_(plan->run->end_event, stream);
    return !result || peal_cuda_report_driver_error(plan, result, NULL, "the end of an exchange");
}

/* ---- the calls ---- */

/* Makes a stream the lane of all ranks, behind the exchanges on the stream before. Fails if it is
 * being captured or is not usable. */
static CUresult take_stream(peal_cuda_plan *plan, CUstream stream)
{
    const peal_cuda_driver *driver = plan->driver;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = driver->cuStreamIsCapturing_(stream, &capture);

    if (!result && capture != CU_STREAM_CAPTURE_STATUS_NONE)
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!result && plan->embedding->any && plan->rank[0].lane[0].stream != stream)
        result = driver->cuStreamWaitEvent_(stream, plan->run->end_event, 0);
    for (int r = 0; r < plan->rank_count && !result; r++)
        for (int l = 0; l < plan->rank[r].lanes; l++)
            plan->rank[r].lane[l].stream = stream;
    return result;
}

static peal_status outcome(peal_cuda_plan *plan)
{
    peal_status late = peal_cuda_flush_diagnostics(plan);
    int word = atomic_load(plan->desc.abort_word);

    return word ? (peal_status)word : plan->emission.status ? plan->emission.status : late;
}

peal_status peal_cuda_plan_enqueue(peal_cuda_plan *plan, void *stream, peal_backend_phase phase)
{
    if (plan->emission.status || !peal_cuda_check_failure(plan))
        return outcome(plan);
    plan->embedding->idle = false;
    CUcontext previous = peal_cuda_context_enter(plan->device);
    CUresult result = phase == PEAL_PHASE_SEND ? take_stream(plan, stream) : CUDA_SUCCESS;
    bool ok = !result && run_phase(plan, stream, phase);
    peal_cuda_context_leave(plan->device, previous);
    if (result)
        return peal_cuda_interop_failed(plan->desc.diagnostics, plan->device, result);
    plan->embedding->any = plan->embedding->any || phase == PEAL_PHASE_RECEIVE;
    return ok ? PEAL_STATUS_OK : outcome(plan);
}

/* There is no deadline here: waits have their own, and the application's work between them may take
 * any time. */
peal_status peal_cuda_plan_settle(peal_cuda_plan *plan)
{
    CUcontext previous = peal_cuda_context_enter(plan->device);
    peal_backoff backoff = peal_cuda_backoff();
    CUresult result = CUDA_SUCCESS;

    if (plan->embedding->any)
        result = plan->driver->cuEventQuery_(plan->run->end_event);
    while (result == CUDA_ERROR_NOT_READY) {
        plan->run->last_progress = peal_clock_s();
        if (!peal_cuda_poll_once(plan, &backoff))
            break;
        result = plan->driver->cuEventQuery_(plan->run->end_event);
    }
    if (result && result != CUDA_ERROR_NOT_READY)
        peal_cuda_report_driver_error(plan, result, NULL, "an exchange");
    else if (!result)
        plan->embedding->idle = peal_cuda_check_failure(plan);
    peal_cuda_context_leave(plan->device, previous);
    return outcome(plan);
}
