/* serial on a GPU: the host backend's executor of serial runs everything but the tiles of kernels,
 * which the device runs, all of an op in one launch (of more than 6 ranges in several), which is
 * waited for. Host and device work in the same memory, which both have mapped. */
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/codegen/task_traits.h"
#include "backends/cuda/executor.h"
#include "backends/cuda/jit/kernels.h"
#include "backends/cuda/lower/plan.h"
#include "backends/cuda/stream/stream_sink.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 8 /* points of a thread in tiles of free shape */ };

/* What runs the tiles of one task. */
typedef struct tile_caller {
    peal_cuda_serial *serial;
    const peal_schedule *schedule;
    const peal_schedule_task *task;
    const peal_cuda_task_kernel *kernel;
    struct tile_caller *next;
} tile_caller;

struct peal_cuda_serial {
    peal_backend_plan *host; /* of the host backend */
    peal_cuda_kernels *kernels;
    peal_device *device;
    CUstream stream;
    CUevent done; /* the latest start */
    _Atomic int *abort_word;
    int64_t deadline_ns;
    peal_device_control *control; /* pinned, for the device too */
    tile_caller *callers;
    peal_diagnostics *diagnostics;
    /* the first failure, by which later calls fail, too */
    CUresult error;
    const char *call;
    const tile_caller *failed;
    peal_status refused; /* by the application's `enqueue` */
};

/* ---- tiles ---- */

static void describe_views(peal_launch *launch, const peal_call *call)
{
    for (int i = 0; i < call->view_count; i++) {
        launch->view[i] = (uintptr_t)call->view[i].base;
        for (int k = 1; k < PEAL_AXES; k++)
            launch->stride[i][k - 1] = call->view[i].stride[k];
    }
}

/* The kernel stores the partial of tile t behind that of tile 0. */
static void describe_partials(const tile_caller *caller, peal_launch *launch, const peal_call *call)
{
    const peal_schedule_task *task = caller->task;
    for (int i = 0; i < call->partial_count; i++) {
        peal_type type = caller->schedule->array[task->reduction[i].array].type;
        uint64_t before = (uint64_t)call->tile.index * peal_type_bytes(type);
        if (call->partial[i])
            launch->partial[i] = (uintptr_t)call->partial[i] - before;
    }
}

/* A tile of the schedule is run by one block. Where nothing depends on the tiling, the host passes
 * boxes of several tiles, and as many blocks as they need share them. */
static void describe_box(peal_launch *launch, const peal_call *call, const int threads[3],
                         bool free)
{
    peal_launch_box *box = &launch->box[0];
    box->blocks = 1;
    for (int k = 0; k < PEAL_AXES; k++) {
        int length = call->tile.hi[k] - call->tile.lo[k];
        int extent = free && k < 3 ? threads[k] * (k == 1 ? ROWS : 1) : length;
        box->lo[k] = call->tile.lo[k];
        box->hi[k] = call->tile.hi[k];
        box->extent[k] = extent > 0 ? extent : 1;
        box->count[k] = (unsigned)((length + box->extent[k] - 1) / box->extent[k]);
        box->blocks *= box->count[k];
    }
    box->tile = call->tile.index;
    launch->box_count = 1;
}

static void describe_call(const tile_caller *caller, const peal_call *call, peal_launch *launch)
{
    memset(launch, 0, sizeof(*launch));
    launch->control = (uintptr_t)caller->serial->control;
    launch->tile_count = call->tile.count;
    describe_views(launch, call);
    describe_partials(caller, launch, call);
    for (int i = 0; i < call->argument_count; i++)
        launch->argument[i].integer = call->argument[i].integer;
}

/* After an error every call would fail, so the run ends. The first error is the one that is
 * reported.
 */
static void fail(const tile_caller *caller, CUresult result, const char *call)
{
    peal_cuda_serial *serial = caller->serial;
    int none = 0;
    serial->device->lost |= result == CUDA_ERROR_LAUNCH_TIMEOUT;
    if (!serial->error) {
        serial->error = result;
        serial->call = call;
        serial->failed = caller;
    }
    atomic_compare_exchange_strong(serial->abort_word, &none,
                                   result == CUDA_ERROR_LAUNCH_TIMEOUT ? PEAL_STATUS_DEADLINE
                                                                       : PEAL_STATUS_DEVICE);
}

/* A kernel that never ends must not hold the host: CUDA_ERROR_LAUNCH_TIMEOUT once the deadline has
 * passed or the job was aborted and the kernel goes on all the same. */
static CUresult await_kernels(const peal_cuda_serial *serial)
{
    enum { POLLS_A_LOOK = 256 };
    const peal_cuda_driver *driver = serial->device->driver;
    double limit = 1e-9 * (double)serial->deadline_ns, begin = 0, last = 0;
    CUresult result;

    for (unsigned polls = 1; (result = driver->cuStreamQuery_(serial->stream)); polls++) {
        if (result != CUDA_ERROR_NOT_READY)
            return result;
        if (polls % POLLS_A_LOOK)
            continue;
        double now = peal_clock_s();
        /* The first look, or the process itself was stopped meanwhile. */
        if (last == 0 || (limit > 0 && now - last > limit / 4 + 0.1))
            begin = now;
        last = now;
        if ((limit > 0 && now - begin > limit) ||
            (atomic_load(serial->abort_word) && now - begin > 1.5))
            return CUDA_ERROR_LAUNCH_TIMEOUT;
    }
    return CUDA_SUCCESS;
}

static const int exact[3] = {PEAL_CUDA_TASK_THREADS, 1, 1};

/* Numbers the blocks of the boxes and launches them, if there are any. */
static void launch_boxes(const tile_caller *caller, CUfunction function, const int threads[3],
                         peal_launch *launch)
{
    const peal_cuda_serial *serial = caller->serial;
    void *parameters[] = {launch};
    unsigned blocks = 0;

    for (int b = 0; b < launch->box_count; b++) {
        launch->box[b].first = blocks;
        launch->box[b].bit = 1u << b;
        blocks += launch->box[b].blocks;
    }
    if (!blocks || serial->error)
        return;
    CUresult result =
        serial->device->driver->cuLaunchKernel_(function, blocks, 1, 1, (unsigned)threads[0],
                                                (unsigned)threads[1], (unsigned)threads[2], 0,
                                                serial->stream, parameters, NULL);
    if (result)
        fail(caller, result, "cuLaunchKernel");
}

/* Of several launches the first ones go on when a later one has failed. */
static void await(const tile_caller *caller)
{
    CUresult result = caller->serial->device->lost ? CUDA_SUCCESS : await_kernels(caller->serial);
    if (result)
        fail(caller, result, "cuStreamQuery");
}

static void run_tile(const peal_call *call, bool partials)
{
    const tile_caller *caller = call->user;
    const peal_cuda_task_kernel *kernel = caller->kernel;
    bool free = caller->task->mergeable && (!partials || !caller->task->reduction_count);
    peal_launch launch;

    describe_call(caller, call, &launch);
    describe_box(&launch, call, kernel->threads, free);
    launch_boxes(caller, partials ? kernel->full : kernel->no_reduction,
                 free ? kernel->threads : exact, &launch);
    await(caller);
}

/* Leaves the tiles of a counted task from x = end on to nobody. */
static void cut_box(peal_launch_box *box, int64_t end)
{
    if (box->hi[0] <= end)
        return;
    int length = end > box->lo[0] ? (int)end - box->lo[0] : 0;
    box->hi[0] = box->lo[0] + length;
    box->blocks /= box->count[0];
    box->count[0] = (unsigned)((length + box->extent[0] - 1) / box->extent[0]);
    box->blocks *= box->count[0];
}

/* How whole tiles lie in memory, as peal_cuda_rows_alignment says it; PEAL_UNALIGNED, too, if boxes
 * or arrays differ. */
static int alignment_of(const tile_caller *caller, const peal_launch *launch)
{
    const peal_schedule_task *task = caller->task;
    int found = PEAL_UNALIGNED, whole = peal_cuda_task_whole(task);

    if (whole != PEAL_WHOLE_2 && whole != PEAL_WHOLE_FLAT)
        return PEAL_ALIGNED;
    for (int b = 0; b < launch->box_count; b++) {
        const peal_launch_box *box = &launch->box[b];
        if (box->count[0] > 1 && box->extent[0] % PEAL_WHOLE_COLUMNS != 0)
            return PEAL_UNALIGNED;
        for (int i = 0; i < task->access_count; i++) {
            const peal_task_access *access = &task->access[i];
            if (!peal_cuda_access_is_moved(caller->schedule, access))
                continue;
            int here = peal_cuda_rows_alignment(&caller->schedule->array[access->array],
                                                launch->view[i], box->lo[0]);
            if (!here || (found && found != here))
                return PEAL_UNALIGNED;
            found = here;
        }
    }
    return found ? found : PEAL_ALIGNED;
}

/* A kernel without waits and messages, of which serial has none, is as good; where tiles are
 * aligned it also takes pairs of elements at a time. Else half of each sector of a whole tile would
 * go over the bus by itself (1024^2 doubles on an H200: 2 ms, not 0.2). */
static CUfunction choose_kernel(const tile_caller *caller, bool partials, peal_launch *launch)
{
    const peal_cuda_task_kernel *kernel = caller->kernel;

    if (!partials || !kernel->communication_free || !caller->task->mergeable)
        return partials ? kernel->full : kernel->no_reduction;
    launch->aligned = alignment_of(caller, launch);
    return launch->aligned ? kernel->communication_free : kernel->full;
}

/* All tiles of an op, a block each. */
static void run_all(const peal_call *call, const peal_op *op, int64_t end)
{
    const tile_caller *caller = call->user;
    bool partials = call->partial_count > 0 && call->partial[0];
    peal_launch launch;

    describe_call(caller, call, &launch);
    for (int i = 0; i < call->view_count; i++)
        launch.shift[i] = caller->task->access[i].per_tile;
    for (int at = 0; at < op->range_count;) {
        for (launch.box_count = 0; launch.box_count < PEAL_LAUNCH_BOXES && at < op->range_count;) {
            peal_launch_box *box = &launch.box[launch.box_count++];
            peal_cuda_box_exact(caller->task, &op->range[at++], box);
            cut_box(box, end);
        }
        launch_boxes(caller, choose_kernel(caller, partials, &launch), exact, &launch);
    }
    await(caller);
}

/* The application's own work, which is waited for as a kernel is. */
static void run_application(const peal_call *given)
{
    const tile_caller *caller = given->user;
    peal_cuda_serial *serial = caller->serial;
    const peal_cuda_driver *driver = serial->device->driver;
    peal_call call = *given;
    CUresult result = CUDA_SUCCESS;
    if (serial->error || serial->refused)
        return;
    call.user = caller->task->user;
    if (caller->task->cuda_function) {
        result = peal_cuda_call_launch(driver, caller->task, serial->stream, &call);
    } else {
        peal_status status = caller->task->enqueue(serial->stream, &call);
        int none = 0;
        if (status) {
            serial->refused = status;
            serial->failed = caller;
            atomic_compare_exchange_strong(serial->abort_word, &none, (int)status);
            return;
        }
    }
    if (result) {
        fail(caller, result, "cuLaunchKernel");
        return;
    }
    await(caller);
}

static void run_full(const peal_call *call)
{
    run_tile(call, true);
}

static void run_no_reduction(const peal_call *call)
{
    run_tile(call, false);
}

static bool bind(void *user, const peal_schedule *schedule, const peal_schedule_task *task,
                 peal_function *full, peal_function *no_reduction, void **call_user)
{
    peal_cuda_serial *serial = user;
    bool is_application = task->cuda_function || task->enqueue;
    const peal_cuda_task_kernel *kernel =
        is_application ? NULL : peal_cuda_kernels_task(serial->kernels, schedule, task);
    tile_caller *caller = kernel || is_application ? calloc(1, sizeof(*caller)) : NULL;
    if (!caller)
        return false;
    *caller = (tile_caller){.serial = serial,
                            .schedule = schedule,
                            .task = task,
                            .kernel = kernel,
                            .next = serial->callers};
    serial->callers = caller;
    *full = is_application ? run_application : run_full;
    *no_reduction = is_application ? run_application : run_no_reduction;
    *call_user = caller;
    return true;
}

/* ---- plan ---- */

static peal_status prepare(peal_cuda_serial *serial, const peal_backend_desc *desc)
{
    const peal_cuda_driver *driver = serial->device->driver;
    const peal_source nowhere = {0};
    void *pinned = NULL;
    CUresult result = driver->cuMemHostAlloc_(&pinned, sizeof(*serial->control),
                                              CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result)
        return peal_cuda_driver_failed(desc->diagnostics, nowhere, result, "cuMemHostAlloc",
                                       "a page for a plan");
    serial->control = memset(pinned, 0, sizeof(*serial->control));
    result = driver->cuStreamCreateWithPriority_(&serial->stream, CU_STREAM_NON_BLOCKING, 0);
    if (result)
        return peal_cuda_driver_failed(desc->diagnostics, nowhere, result,
                                       "cuStreamCreateWithPriority", "a stream for a plan");
    result = driver->cuEventCreate_(&serial->done, CU_EVENT_DISABLE_TIMING);
    if (result)
        return peal_cuda_driver_failed(desc->diagnostics, nowhere, result, "cuEventCreate",
                                       "an event for a plan");
    peal_status status = peal_cuda_kernels_create(desc, NULL, serial->device, &serial->kernels);
    if (!status)
        status = peal_cuda_kernels_load(serial->kernels);
    if (status)
        return status;
    const peal_kernel_source source = {.user = serial, .bind = bind, .run_all = run_all};
    peal_backend_desc with = *desc;
    with.kernels = &source;
    with.workers = 1;
    return peal_backend_host.create(&with, &serial->host);
}

peal_status peal_cuda_serial_create(const peal_backend_desc *desc, peal_cuda_serial **out)
{
    peal_cuda_serial *serial = calloc(1, sizeof(*serial));
    const peal_source nowhere = {0};
    if (!serial)
        return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, nowhere, NULL, "no memory");
    serial->device = desc->device;
    serial->abort_word = desc->abort_word;
    serial->deadline_ns = desc->deadline_ns;
    serial->diagnostics = desc->diagnostics;
    peal_status status = prepare(serial, desc);
    if (status)
        peal_cuda_serial_destroy(serial);
    else
        *out = serial;
    return status;
}

/* The host's executor of serial runs in start. */
peal_status peal_cuda_serial_start(peal_cuda_serial *serial, bool setup, int64_t steps, bool finish)
{
    CUcontext previous = peal_cuda_context_enter(serial->device);
    peal_status status = peal_backend_host.start(serial->host, setup, steps, finish);
    peal_cuda_context_leave(serial->device, previous);
    return status;
}

peal_status peal_cuda_serial_wait(peal_cuda_serial *serial, peal_backend_result *result)
{
    peal_status status = peal_backend_host.wait(serial->host, result);
    if (!serial->failed)
        return status;
    const peal_schedule_task *task = serial->failed->task;
    char what[120];
    if (serial->refused)
        return peal_report(serial->diagnostics, PEAL_E_ENQUEUE_FAILED, task->source, NULL,
                           "rank %d: `enqueue` of task '%s' returned: %s",
                           serial->failed->schedule->rank, task->name,
                           peal_status_name(serial->refused));
    snprintf(what, sizeof(what), "task '%s' of rank %d", task->name,
             serial->failed->schedule->rank);
    if (serial->error == CUDA_ERROR_LAUNCH_TIMEOUT)
        return peal_report(serial->diagnostics, PEAL_E_GPU_STALLED, task->source,
                           "a kernel that does not end? --deadline sets the limit",
                           "%s: no progress for %.1f s", what, 1e-9 * (double)serial->deadline_ns);
    return peal_cuda_driver_failed(serial->diagnostics, task->source, serial->error, serial->call,
                                   what);
}

/* The host's executor works on the calling thread: it waits here. */
peal_status peal_cuda_serial_follow(peal_cuda_serial *serial, void *stream, void *event)
{
    const peal_cuda_driver *driver = serial->device->driver;
    CUcontext previous = peal_cuda_context_enter(serial->device);
    CUresult result = stream ? driver->cuStreamSynchronize_(stream) : CUDA_SUCCESS;
    if (!result && event)
        result = driver->cuEventSynchronize_(event);
    peal_cuda_context_leave(serial->device, previous);
    return result ? peal_cuda_interop_failed(serial->diagnostics, serial->device, result)
                  : PEAL_STATUS_OK;
}

/* Everything was waited for when start returned. */
peal_status peal_cuda_serial_event(peal_cuda_serial *serial, void **event)
{
    const peal_source nowhere = {0};
    CUcontext previous = peal_cuda_context_enter(serial->device);
    CUresult result = serial->device->driver->cuEventRecord_(serial->done, serial->stream);
    peal_cuda_context_leave(serial->device, previous);
    if (result)
        return peal_cuda_driver_failed(serial->diagnostics, nowhere, result, "cuEventRecord",
                                       "the end of a run");
    *event = serial->done;
    return PEAL_STATUS_OK;
}

int peal_cuda_serial_storage(const peal_cuda_serial *serial, int index, int array)
{
    return peal_backend_host.storage(serial->host, index, array);
}

int64_t peal_cuda_serial_progress(const peal_cuda_serial *serial)
{
    return peal_backend_host.progress(serial->host);
}

peal_function peal_cuda_serial_function(const peal_cuda_serial *serial, int index, int task,
                                        bool partials, void **user)
{
    peal_function found = peal_backend_host.function(serial->host, index, task, partials, user);
    return found;
}

void peal_cuda_serial_destroy(peal_cuda_serial *serial)
{
    const peal_cuda_driver *driver = serial->device->driver;
    CUcontext previous = peal_cuda_context_enter(serial->device);
    if (serial->host)
        peal_backend_host.destroy(serial->host);
    bool lost = serial->device->lost;
    if (serial->kernels && !lost)
        peal_cuda_kernels_destroy(serial->kernels);
    if (serial->done && !lost)
        driver->cuEventDestroy_(serial->done);
    if (serial->stream && !lost)
        driver->cuStreamDestroy_(serial->stream);
    if (serial->control && !lost)
        driver->cuMemFreeHost_(serial->control);
    while (serial->callers) {
        tile_caller *next = serial->callers->next;
        free(serial->callers);
        serial->callers = next;
    }
    peal_cuda_context_leave(serial->device, previous);
    free(serial);
}
