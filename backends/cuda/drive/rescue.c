/* After a failure: releases the waits on the streams, so that memory and streams can be freed.
 *
 * Waits in kernels read the abort word. A wait by memory operation ends when its word reaches a
 * value, cyclically: of two values half a cycle apart, written in turn, one satisfies it. Work that
 * still does not end (a kernel that runs for ever) makes the device lost: from then on no driver
 * call is made that could wait for it, and its resources are freed when the process ends. */
#include "backends/cuda/drive/run.h"
#include "base/clock.h"

#include <string.h>

/* The longest time in which no stream goes on. */
static const double patience_s = 1.5;

peal_status peal_cuda_rescue_create(peal_cuda_plan *plan)
{
    const peal_cuda_driver *driver = plan->driver;
    int least = 0, greatest = 0;
    void *pinned = NULL;
    char text[160];
    CUresult result = driver->cuMemHostAlloc_(&pinned, sizeof(uint64_t), CU_MEMHOSTALLOC_DEVICEMAP);

    plan->run->read_word = pinned;
    if (!result)
        result = driver->cuCtxGetStreamPriorityRange_(&least, &greatest);
    if (!result)
        result = driver->cuStreamCreateWithPriority_(&plan->run->rescue, CU_STREAM_NON_BLOCKING,
                                                     greatest);
    if (!result)
        return PEAL_STATUS_OK;
    return peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE, NULL,
                       "cannot create the stream that ends the others' waits: %s",
                       peal_cuda_error(result, text));
}

void peal_cuda_rescue_destroy(peal_cuda_plan *plan)
{
    if (plan->run->rescue)
        plan->driver->cuStreamDestroy_(plan->run->rescue);
    if (plan->run->read_word)
        plan->driver->cuMemFreeHost_(plan->run->read_word);
}

static void nap(void)
{
    peal_clock_sleep(100000);
}

bool peal_cuda_rescue_read(peal_cuda_plan *plan, CUdeviceptr word, uint64_t *value)
{
    const peal_cuda_driver *driver = plan->driver;
    double end = peal_clock_s() + 0.5;
    /* The word may be in host memory: this call finds out where both ends are. */
    CUresult result = driver->cuMemcpyAsync_((CUdeviceptr)(uintptr_t)plan->run->read_word, word,
                                             sizeof(uint64_t), plan->run->rescue);

    while (!result &&
           (result = driver->cuStreamQuery_(plan->run->rescue)) == CUDA_ERROR_NOT_READY &&
           peal_clock_s() < end) {
        result = CUDA_SUCCESS;
        nap();
    }
    *value = *plan->run->read_word;
    return result == CUDA_SUCCESS;
}

/* How many streams are busy. After an error of the device none is. */
static int count_busy_lanes(const peal_cuda_plan *plan)
{
    int busy = 0;

    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes; l++)
            busy +=
                plan->driver->cuStreamQuery_(plan->rank[r].lane[l].stream) == CUDA_ERROR_NOT_READY;
    return busy;
}

void peal_cuda_rescue_write(peal_cuda_plan *plan, uint64_t value)
{
    const peal_cuda_driver *driver = plan->driver;

    if (driver->cuStreamQuery_(plan->run->rescue) != CUDA_SUCCESS)
        return;
    for (int r = 0; r < plan->rank_count; r++)
        for (int i = 0; i < plan->rank[r].schedule->op_count; i++) {
            const peal_cuda_op *op = &plan->rank[r].op[i];
            if (op->source->kind == PEAL_OP_WAIT && !op->self)
                driver->cuStreamWriteValue64_(plan->run->rescue, op->word, value, 0);
        }
}

void peal_cuda_rescue_gates(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count && plan->options.rings; r++)
        if (plan->rank[r].control)
            __atomic_store_n(&plan->rank[r].control->claimed, (unsigned)PEAL_LET_GO,
                             __ATOMIC_RELEASE);
}

/* Whether marks of the plan's lanes have passed since the last look: what was enqueued goes on. */
static bool have_marks_passed(peal_cuda_plan *plan)
{
    const uint64_t marks = (uint64_t)plan->options.marks;
    bool any = false;
    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes; l++) {
            peal_cuda_lane *lane = &plan->rank[r].lane[l];
            while (lane->marks_passed < lane->marks &&
                   !plan->driver->cuEventQuery_(lane->mark[lane->marks_passed % marks])) {
                lane->marks_passed++;
                any = true;
            }
        }
    return any;
}

void peal_cuda_rescue_all(peal_cuda_plan *plan)
{
    double end = peal_clock_s() + patience_s;
    uint64_t value = 0;
    int busy, busy_before = 0;

    peal_cuda_stop_device(plan);
    peal_cuda_rescue_gates(plan);
    while ((busy = count_busy_lanes(plan)) > 0) {
        if (have_marks_passed(plan) || busy < busy_before)
            end = peal_clock_s() + patience_s;
        busy_before = busy;
        if (peal_clock_s() > end) {
            plan->device->lost = true;
            return;
        }
        if (plan->options.signal == PEAL_CUDA_SIGNAL_MEMOP)
            peal_cuda_rescue_write(plan, value += PEAL_CUDA_HALF_CYCLE);
        nap();
    }
    /* The rescue stream may share a queue with other streams: it becomes idle after them. */
    for (end = peal_clock_s() + patience_s;
         plan->driver->cuStreamQuery_(plan->run->rescue) == CUDA_ERROR_NOT_READY; nap())
        if (peal_clock_s() > end) {
            plan->device->lost = true;
            return;
        }
}
