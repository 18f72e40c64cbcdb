/* The CUDA backend: the contract of backends, each entry passed on to the executor of the mode. */
#include "backends/cuda/ahead.h"
#include "backends/cuda/drive/run.h"
#include "backends/cuda/dry_plan.h"
#include "backends/cuda/executor.h"
#include "backends/cuda/gpu/gpu.h"
#include "backends/cuda/traits.h"

#include <stdlib.h>

static const peal_source nowhere = {0};

struct peal_backend_plan {
    peal_cuda_serial *serial; /* of mode serial; else NULL */
    peal_cuda_plan *plan;
};

/* What a mode needs of the GPUs is known later (plan.c). */
static const char *refuses(peal_mode mode)
{
    (void)mode;
    return NULL;
}

static void destroy(peal_backend_plan *plan)
{
    if (!plan)
        return;
    if (plan->serial)
        peal_cuda_serial_destroy(plan->serial);
    if (plan->plan)
        peal_cuda_plan_destroy(plan->plan);
    free(plan);
}

static peal_status create(const peal_backend_desc *desc, peal_backend_plan **out)
{
    if (refuses(desc->mode))
        return peal_report(desc->diagnostics, PEAL_E_MODE_CANNOT_RUN, nowhere, "use --mode auto",
                           "%s", refuses(desc->mode));
    if (desc->embedded && desc->mode != PEAL_MODE_STREAM)
        return peal_report(desc->diagnostics, PEAL_E_INTERNAL, nowhere, NULL,
                           "an embedded plan in %s", peal_mode_name(desc->mode));
    if (desc->rank_count < 1 || desc->workers < 1 || !desc->abort_word || !desc->device)
        return peal_report(desc->diagnostics, PEAL_E_INTERNAL, nowhere, NULL,
                           "a plan of %d ranks with %d lanes", desc->rank_count, desc->workers);
    peal_backend_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, nowhere, NULL, "no memory");
    CUcontext previous = peal_cuda_context_enter(desc->device);
    peal_status status = desc->mode == PEAL_MODE_SERIAL
                             ? peal_cuda_serial_create(desc, &plan->serial)
                             : peal_cuda_plan_create(desc, &plan->plan);
    peal_cuda_context_leave(desc->device, previous);
    if (status)
        destroy(plan);
    else
        *out = plan;
    return status;
}

static peal_status start(peal_backend_plan *plan, bool setup, int64_t steps, bool finish)
{
    return plan->serial ? peal_cuda_serial_start(plan->serial, setup, steps, finish)
                        : peal_cuda_plan_start(plan->plan, setup, steps, finish);
}

static peal_status wait_end(peal_backend_plan *plan, peal_backend_result *result)
{
    return plan->serial ? peal_cuda_serial_wait(plan->serial, result)
                        : peal_cuda_plan_wait(plan->plan, result);
}

static peal_status follow(peal_backend_plan *plan, void *stream, void *event)
{
    return plan->serial ? peal_cuda_serial_follow(plan->serial, stream, event)
                        : peal_cuda_plan_follow(plan->plan, stream, event);
}

static peal_status end_event(peal_backend_plan *plan, void **event)
{
    return plan->serial ? peal_cuda_serial_event(plan->serial, event)
                        : peal_cuda_plan_event(plan->plan, event);
}

static peal_status enqueue(peal_backend_plan *plan, void *stream, peal_backend_phase phase)
{
    return peal_cuda_plan_enqueue(plan->plan, stream, phase);
}

static peal_status settle(peal_backend_plan *plan)
{
    return peal_cuda_plan_settle(plan->plan);
}

static int storage(const peal_backend_plan *plan, int index, int array)
{
    return plan->serial ? peal_cuda_serial_storage(plan->serial, index, array)
                        : peal_cuda_plan_storage(plan->plan, index, array);
}

static int64_t repeats(const peal_backend_plan *plan, int64_t *first)
{
    return plan->serial ? 1 : peal_cuda_plan_repeats(plan->plan, first);
}

static int64_t replayed(const peal_backend_plan *plan)
{
    return plan->serial ? 0 : peal_cuda_plan_replayed(plan->plan);
}

static int64_t progress(const peal_backend_plan *plan)
{
    return plan->serial ? peal_cuda_serial_progress(plan->serial)
                        : peal_cuda_plan_progress(plan->plan);
}

static peal_function function(const peal_backend_plan *plan, int index, int task, bool partials,
                              void **user)
{
    return plan->serial ? peal_cuda_serial_function(plan->serial, index, task, partials, user)
                        : NULL;
}

const peal_backend_ops peal_backend_cuda = {
    .size = sizeof(peal_backend_ops),
    .name = "cuda",
    .traits = &peal_cuda_traits,
    .refuses = refuses,
    .create = create,
    .rehearse = peal_cuda_rehearse,
    .compile = peal_cuda_compile_ahead,
    .start = start,
    .wait = wait_end,
    .storage = storage,
    .progress = progress,
    .destroy = destroy,
    .repeats = repeats,
    .replayed = replayed,
    .function = function,
    .count = peal_cuda_device_count,
    .open = peal_cuda_device_open,
    .close = peal_cuda_device_close,
    .describe = peal_cuda_device_describe,
    .identify = peal_cuda_device_identify,
    .memory = &peal_cuda_memory,
    .follow = follow,
    .event = end_event,
    .enqueue = enqueue,
    .settle = settle,
};
