/* Writes the files of `save` while the device goes on. The array is copied to pinned memory where
 * the task is in its lane; a thread of the rank waits for that copy and writes the file. So a rank
 * saves in the order of its program, and waits for the disk only where it has no room for another
 * copy, before it loads, and at the end of a start. */
#include "backends/cuda/drive/run.h"
#include "backends/cuda/lower/emit.h"

#include "base/array_file.h"
#include "base/clock.h"

#include <string.h>

enum { MOST_COPIES = 8, NAP_NS = 50000 };
static const int64_t most_bytes = INT64_C(4) << 30; /* pinned, of a process */

/* An array that was copied, or is being copied, and its `save`. */
typedef struct copied {
    unsigned char *memory;
    CUevent done;
    const peal_cuda_op *op;
    int64_t *counter;
    int64_t step;
} copied;

struct peal_cuda_file_writer {
    peal_cuda_rank *rank;
    copied copy[MOST_COPIES]; /* a ring */
    int copies;
    pthread_t thread;
    bool has_thread, ends;
    uint64_t enqueued, written; /* saves */
    _Atomic bool writes;        /* the disk is waited for, not the device */
    _Atomic int failed;         /* the peal_status of the first that could not be written */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static peal_cuda_file_writer *writer_of(const peal_cuda_rank *rank)
{
    return rank->plan->run->writer ? &rank->plan->run->writer[rank->index] : NULL;
}

/* ---- the thread ---- */

/* Waits for a copy. *good: it is what the array was; else the run has failed, which others report.
 */
static peal_status await_copy(const peal_cuda_file_writer *writer, const copied *copy, bool *good)
{
    const peal_cuda_plan *plan = writer->rank->plan;
    peal_backoff backoff = peal_cuda_backoff();
    CUresult result;
    char text[160];

    *good = false;
    while ((result = plan->driver->cuEventQuery_(copy->done)) == CUDA_ERROR_NOT_READY) {
        if (peal_cuda_is_aborted(plan))
            return PEAL_STATUS_OK;
        peal_backoff_wait(&backoff);
    }
    *good = !result && !peal_cuda_device_has_failed(plan) && !peal_cuda_is_aborted(plan);
    if (!result || peal_cuda_is_aborted(plan))
        return PEAL_STATUS_OK;
    return peal_report(plan->emission.late, PEAL_E_DRIVER_CALL_FAILED, copy->op->source->source,
                       NULL, "waiting for the copy of `%s`: %s",
                       writer->rank->schedule->array[copy->op->task->array].name,
                       peal_cuda_error(result, text));
}

static peal_status write_file(const peal_cuda_file_writer *writer, const copied *copy)
{
    const peal_cuda_rank *rank = writer->rank;
    const peal_cuda_plan *plan = rank->plan;
    peal_array_file request = {.schedule = rank->schedule,
                               .task = copy->op->task,
                               .first = copy->memory,
                               .step = copy->step,
                               .has_thread = true,
                               .saves = plan->desc.saves,
                               .allow_outside = plan->desc.allow_outside,
                               .diagnostics = plan->emission.late};

    peal_walk_scope(rank->program, copy->counter, &request.scope);
    return peal_array_file_save(&request);
}

/* The run ends at its next look at the abort word. */
static void save(peal_cuda_file_writer *writer, const copied *copy)
{
    bool good;
    int none = 0, status = (int)await_copy(writer, copy, &good);

    if (good) {
        atomic_store(&writer->writes, true);
        status = (int)write_file(writer, copy);
        atomic_store(&writer->writes, false);
    }
    if (!status)
        return;
    atomic_store(&writer->failed, status);
    atomic_compare_exchange_strong(writer->rank->plan->desc.abort_word, &none, status);
}

static void *write_files(void *user)
{
    peal_cuda_file_writer *writer = user;
    const peal_cuda_plan *plan = writer->rank->plan;

    /* Without it the first look at an event fails. */
    plan->driver->cuCtxSetCurrent_(plan->device->context);
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        while (writer->written == writer->enqueued && !writer->ends)
            pthread_cond_wait(&writer->changed, &writer->lock);
        if (writer->written == writer->enqueued)
            break;
        const copied *copy = &writer->copy[writer->written % (uint64_t)writer->copies];
        pthread_mutex_unlock(&writer->lock);
        if (!atomic_load(&writer->failed))
            save(writer, copy);
        pthread_mutex_lock(&writer->lock);
        writer->written++;
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

static uint64_t count_left(peal_cuda_file_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    uint64_t left = writer->enqueued - writer->written;
    pthread_mutex_unlock(&writer->lock);
    /* To the host a slow disk is no device that does not go on; others that wait for this rank have
     * their own deadline. */
    if (left > 0 && atomic_load(&writer->writes))
        writer->rank->plan->run->last_progress = peal_clock_s();
    return left;
}

/* ---- saves ---- */

bool peal_cuda_file_is_written_beside(const peal_cuda_rank *rank, const peal_cuda_op *op)
{
    const peal_cuda_file_writer *writer = writer_of(rank);

    return writer && writer->has_thread && op->task->kind == PEAL_TASK_SAVE;
}

bool peal_cuda_file_writer_has_room(const peal_cuda_rank *rank)
{
    peal_cuda_file_writer *writer = writer_of(rank);

    return count_left(writer) < (uint64_t)writer->copies;
}

bool peal_cuda_file_writer_is_idle(const peal_cuda_rank *rank)
{
    peal_cuda_file_writer *writer = writer_of(rank);

    return !writer || count_left(writer) == 0;
}

bool peal_cuda_file_enqueue(peal_cuda_rank *rank, const peal_cuda_op *op,
                            const peal_walk_frame *frame)
{
    peal_cuda_plan *plan = rank->plan;
    const peal_schedule *schedule = rank->schedule;
    peal_cuda_file_writer *writer = writer_of(rank);
    copied *copy = &writer->copy[writer->enqueued % (uint64_t)writer->copies];
    int storage = frame->binding[op->task->array], index = (int)(op - rank->op);
    int64_t bytes = schedule->array[storage].layout.bytes;
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);

    copy->op = op;
    copy->step = peal_array_file_step(schedule, index, frame->counter[0]);
    memcpy(copy->counter, frame->counter, (size_t)schedule->loop_depth * sizeof(*copy->counter));
    CUresult result =
        bytes > 0 ? plan->driver->cuMemcpyAsync_((CUdeviceptr)(uintptr_t)copy->memory,
                                                 rank->first[storage], (size_t)bytes, lane->stream)
                  : CUDA_SUCCESS;
    if (!result)
        result = plan->driver->cuEventRecord_(copy->done, lane->stream);
    if (result)
        return peal_cuda_report_driver_error(plan, result, op, "a copy");
    if (!peal_cuda_enqueued(rank, lane, index))
        return false;
    pthread_mutex_lock(&writer->lock);
    writer->enqueued++;
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    return true;
}

/* ---- starts ---- */

peal_status peal_cuda_file_writers_failed(const peal_cuda_plan *plan)
{
    int failed = PEAL_STATUS_OK;

    for (int r = 0; plan->run->writer && r < plan->rank_count && !failed; r++)
        failed = atomic_load(&plan->run->writer[r].failed);
    return (peal_status)failed;
}

bool peal_cuda_file_writers_await(peal_cuda_plan *plan)
{
    peal_backoff backoff = peal_cuda_backoff();

    for (int r = 0; plan->run->writer && r < plan->rank_count; r++)
        while (count_left(&plan->run->writer[r]) > 0)
            if (!peal_cuda_poll_once(plan, &backoff))
                return false;
    return true;
}

void peal_cuda_file_writers_settle(const peal_cuda_plan *plan)
{
    for (int r = 0; plan->run->writer && r < plan->rank_count; r++)
        while (count_left(&plan->run->writer[r]) > 0)
            peal_clock_sleep(NAP_NS);
}

/* ---- creation ---- */

/* How many copies a rank has room for, and of how many bytes. 0: its steps save nothing, or too
 * much. */
static int choose_room(const peal_cuda_rank *rank, int64_t *bytes)
{
    const peal_schedule *schedule = rank->schedule;
    int saves = 0;

    *bytes = 1;
    for (int i = 0; i < schedule->op_count; i++) {
        const peal_op *op = &schedule->op[i];
        if (!peal_cuda_moves_file(schedule, op) || schedule->task[op->task].kind != PEAL_TASK_SAVE)
            continue;
        int64_t here = schedule->array[schedule->task[op->task].array].layout.bytes;
        *bytes = here > *bytes ? here : *bytes;
        saves += i >= schedule->step.first && i < schedule->step.end;
    }
    int64_t most = most_bytes / rank->plan->rank_count / *bytes;
    most = most < MOST_COPIES ? most : MOST_COPIES;
    return 2 * saves < most ? 2 * saves : (int)most;
}

static void create_writer(peal_cuda_rank *rank, peal_cuda_file_writer *writer)
{
    const peal_cuda_driver *driver = rank->plan->driver;
    int64_t bytes;
    int wanted = choose_room(rank, &bytes);

    writer->rank = rank;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->changed, NULL);
    while (writer->copies < wanted) {
        copied *copy = &writer->copy[writer->copies];
        void *pinned = NULL;
        copy->counter =
            PEAL_ARENA_ARRAY(rank->plan->arena, int64_t, rank->schedule->loop_depth + 1);
        if (driver->cuEventCreate_(&copy->done, CU_EVENT_DISABLE_TIMING) ||
            driver->cuMemHostAlloc_(&pinned, (size_t)bytes, CU_MEMHOSTALLOC_PORTABLE))
            break;
        copy->memory = pinned;
        writer->copies++;
    }
    if (writer->copies > 0)
        writer->has_thread = !pthread_create(&writer->thread, NULL, write_files, writer);
}

void peal_cuda_file_writers_create(peal_cuda_plan *plan)
{
    if (plan->synchronous || plan->desc.embedded || plan->device->dry)
        return;
    plan->run->writer = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_file_writer, plan->rank_count);
    for (int r = 0; r < plan->rank_count; r++)
        create_writer(&plan->rank[r], &plan->run->writer[r]);
}

void peal_cuda_file_writers_join(peal_cuda_plan *plan)
{
    for (int r = 0; plan->run->writer && r < plan->rank_count; r++) {
        peal_cuda_file_writer *writer = &plan->run->writer[r];
        if (!writer->has_thread)
            continue;
        pthread_mutex_lock(&writer->lock);
        writer->ends = true;
        pthread_cond_signal(&writer->changed);
        pthread_mutex_unlock(&writer->lock);
        pthread_join(writer->thread, NULL);
        writer->has_thread = false;
    }
}

void peal_cuda_file_writers_destroy(peal_cuda_plan *plan)
{
    const peal_cuda_driver *driver = plan->driver;

    for (int r = 0; plan->run->writer && r < plan->rank_count; r++) {
        peal_cuda_file_writer *writer = &plan->run->writer[r];
        for (int i = 0; i < MOST_COPIES; i++) {
            if (writer->copy[i].done)
                driver->cuEventDestroy_(writer->copy[i].done);
            if (writer->copy[i].memory)
                driver->cuMemFreeHost_(writer->copy[i].memory);
        }
        pthread_cond_destroy(&writer->changed);
        pthread_mutex_destroy(&writer->lock);
    }
    plan->run->writer = NULL;
}
