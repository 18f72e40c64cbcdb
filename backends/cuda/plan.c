/* A plan on a GPU. Creating it makes everything that a run needs: kernels, streams, words, tables.
 * A start wakes the plan's thread, which walks. */
#include "backends/cuda/ahead.h"
#include "backends/cuda/drive/run.h"
#include "backends/cuda/embed.h"
#include "backends/cuda/executor.h"
#include "backends/cuda/fused/fused.h"
#include "backends/cuda/graph/bundle.h"
#include "backends/cuda/graph/graph.h"
#include "backends/cuda/lower/doorbell.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/options.h"
#include "backends/cuda/stream/batch.h"
#include "backends/cuda/stream/stream_sink.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* Offsets in a rank's words: its step and stop words (PEAL_CUDA_STOP_WORD), then the words that
 * blocks count their arrivals in, by lane, then predicates. */
enum { ARRIVED_AT = 256, CONDITIONS_AT = 512 };

/* Chooses the sink of steps: the plan's streams or, of an embedded exchange, the application's. In
 * modes that record, it may need other signals than the recording does: waiting blocks of one rank
 * must not keep another rank of this process off the GPU. */
static void choose_sink(peal_cuda_plan *plan)
{
    bool separate = plan->rank_count > 1 && plan->options.signal == PEAL_CUDA_SIGNAL_FUSED;

    plan->stream_sink = PEAL_ARENA_NEW(plan->arena, peal_cuda_sink);
    *plan->stream_sink =
        (peal_cuda_sink){.ops =
                             plan->desc.embedded ? &peal_cuda_embed_sink : &peal_cuda_stream_sink,
                         .signal = separate ? PEAL_CUDA_SIGNAL_KERNEL : plan->options.signal};
    plan->emission.sink = plan->stream_sink;
}

static peal_status cannot(peal_cuda_plan *plan, const char *what, CUresult result)
{
    char text[160];
    return peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE, NULL,
                       "cannot %s: %s", what, peal_cuda_error(result, text));
}

static size_t words_of(const peal_cuda_plan *plan)
{
    int most = 0;

    for (int r = 0; r < plan->rank_count && plan->rank[r].predicates; r++)
        if (plan->rank[r].predicates->word_count > most)
            most = plan->rank[r].predicates->word_count;
    return CONDITIONS_AT + ((size_t)most * sizeof(unsigned) + 255) / 256 * 256;
}

static peal_status create_lanes(peal_cuda_plan *plan)
{
    const peal_cuda_driver *driver = plan->driver;
    size_t words = words_of(plan), bytes = (size_t)plan->rank_count * words;
    int least = 0, greatest = 0;
    CUresult result = driver->cuMemAlloc_(&plan->words_device, bytes);

    if (!result)
        result = driver->cuMemsetD8_(plan->words_device, 0, bytes);
    if (!result)
        result = driver->cuCtxGetStreamPriorityRange_(&least, &greatest);
    for (int r = 0; r < plan->rank_count && !result; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        rank->words = plan->words_device + (uint64_t)r * words;
        if (rank->predicates)
            rank->predicates->words = rank->words + CONDITIONS_AT;
        for (int i = 0; i < rank->schedule->op_count; i++)
            if (rank->op[i].idles) /* it waits for 0 in the stop word, which only graphs set */
                rank->op[i].word = rank->words + PEAL_CUDA_STOP_WORD;
        for (int l = 0; l < rank->lanes && !result; l++) {
            peal_cuda_lane *lane = &rank->lane[l];
            lane->arrived = rank->words + ARRIVED_AT + 64 * (uint64_t)l;
            /* The lane of messages is the last one, and has the highest priority. */
            result = driver->cuStreamCreateWithPriority_(&lane->own, CU_STREAM_NON_BLOCKING,
                                                         l > 0 ? greatest : least);
            lane->stream = lane->own;
            if (!result)
                result = driver->cuEventCreate_(&lane->join, CU_EVENT_DISABLE_TIMING);
            if (!result && plan->keeps_order && plan->desc.mode == PEAL_MODE_GRAPH)
                result = driver->cuEventCreate_(&lane->sent_event, CU_EVENT_DISABLE_TIMING);
            for (int m = 0; m < plan->options.marks && !result; m++)
                result = driver->cuEventCreate_(&lane->mark[m], CU_EVENT_DISABLE_TIMING);
        }
    }
    return result ? cannot(plan, "create streams, events or words on the device", result)
                  : PEAL_STATUS_OK;
}

/* Launches every kernel once with the stop word set, so that it does nothing. A first launch may
 * allocate memory, and that must not happen while something waits. */
static peal_status warm_up(peal_cuda_plan *plan)
{
    const peal_cuda_driver *driver = plan->driver;
    CUstream stream = plan->rank[0].lane[0].stream;
    unsigned one = 1;
    peal_launch launch;
    void *parameter[] = {&launch};
    CUresult result;

    memset(&launch, 0, sizeof(launch));
    launch.stop = plan->words_device + 16;
    result = driver->cuMemcpyHtoD_(launch.stop, &one, sizeof(one));
    /* The plan's streams are not ordered behind the default stream, on which words and tables were
     * written: wait for those here. */
    if (!result)
        result = driver->cuCtxSynchronize_();
    for (int b = 0; b < PEAL_CUDA_BUILTIN_COUNT && !result; b++)
        result =
            driver->cuLaunchKernel_(peal_cuda_kernels_builtin(plan->kernels, (peal_cuda_builtin)b),
                                    1, 1, 1, 32, 1, 1, 0, stream, parameter, NULL);
    for (int r = 0; r < plan->rank_count && !result; r++)
        for (int i = 0; i < plan->rank[r].schedule->op_count && !result; i++) {
            const peal_cuda_task_kernel *kernel = plan->rank[r].op[i].kernel;
            if (!kernel)
                continue;
            const CUfunction all[] = {kernel->full, kernel->no_reduction, kernel->self_sending,
                                      kernel->self_sending_no_reduction};
            for (int k = 0; k < 4 && all[k] && !result; k++)
                result = driver->cuLaunchKernel_(all[k], 1, 1, 1, (unsigned)kernel->threads[0],
                                                 (unsigned)kernel->threads[1],
                                                 (unsigned)kernel->threads[2], 0, stream, parameter,
                                                 NULL);
        }
    if (!result)
        result = driver->cuStreamSynchronize_(stream);
    return result ? cannot(plan, "launch kernels for the first time", result) : PEAL_STATUS_OK;
}

/* The driver may refuse an adapter's registers: then a thread posts what goes to other hosts. */
static peal_status bind_doorbells(peal_cuda_plan *plan)
{
    char reason[PEAL_CUDA_REASON_BYTES];
    bool rings = plan->options.rings;

    for (int r = 0; r < plan->rank_count && rings; r++)
        rings = peal_cuda_doorbells_bind(&plan->rank[r], reason);
    if (rings) {
        plan->batch = peal_cuda_batch_create(plan);
        plan->desc.network->take_over(plan->desc.network->user);
    }
    if (rings || !plan->options.rings)
        return PEAL_STATUS_OK;
    for (int r = 0; r < plan->rank_count; r++)
        peal_cuda_doorbells_release(&plan->rank[r]);
    if (plan->options.network == PEAL_CUDA_NETWORK_DOORBELL) {
        plan->options.rings = false;
        return peal_cuda_options_refuse_doorbells(plan, reason);
    }
    peal_status status = peal_cuda_options_choose(plan, false);
    choose_sink(plan);
    return status;
}

static peal_status arm(peal_cuda_plan *plan)
{
    const peal_schedule *first = plan->desc.rank[0].schedule;
    if (!plan->desc.saves)
        plan->desc.saves = plan->own_saves =
            peal_saves_create(first->graph, first->machine->ranks, NULL, plan->desc.abort_word);
    if (!plan->desc.saves)
        return peal_report(plan->desc.diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_CUDA_NOWHERE, NULL,
                           "no memory");
    const peal_cuda_fused_text fused_text = peal_cuda_options_fused_text(plan->desc.lowering);
    peal_status status =
        peal_cuda_kernels_create(&plan->desc, &fused_text, plan->device, &plan->kernels);
    bool records = plan->desc.mode == PEAL_MODE_FUSED || plan->desc.mode == PEAL_MODE_GRAPH;
    if (!status && records && !plan->device->dry && peal_cuda_kernels_are_missing(plan->kernels))
        plan->ahead = peal_cuda_ahead_begin(&plan->desc);
    if (!status)
        status = peal_cuda_kernels_load(plan->kernels);

    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        rank->plan = plan;
        rank->index = r;
        rank->bound = &plan->desc.rank[r];
        rank->schedule = rank->bound->schedule;
    }
    plan->keeps_order = peal_cuda_keeps_order(plan);
    plan->engine = plan->desc.mode == PEAL_MODE_GRAPH   ? &peal_cuda_graph_engine
                   : plan->desc.mode == PEAL_MODE_FUSED ? &peal_cuda_fused_engine
                                                        : NULL;
    plan->one_kernel = plan->engine && plan->engine->is_one_kernel;
    plan->run->run_iterations = peal_cuda_run_in_blocks;
    plan->host = &peal_cuda_host;
    if (!status)
        status = peal_cuda_options_choose(plan, true);
    choose_sink(plan);
    if (!status)
        status = peal_cuda_mapped_create(plan);
    for (int r = 0; r < plan->rank_count && !status; r++) {
        status = peal_cuda_rank_bind(plan, r);
        plan->rank[r].walk.hooks = (peal_walk_hooks){.user = &plan->rank[r],
                                                     .verdict = peal_cuda_verdict_read,
                                                     .diagnostics = plan->emission.late};
    }
    if (!status)
        status = bind_doorbells(plan);
    if (!status)
        status = peal_cuda_plan_upload(plan);
    if (!status)
        status = create_lanes(plan);
    if (!status)
        status = peal_cuda_rescue_create(plan);
    if (!status)
        status = peal_cuda_interop_create(plan);
    if (!status)
        peal_cuda_file_writers_create(plan);
    if (!status)
        status = warm_up(plan);
    if (!status && plan->desc.embedded)
        status = peal_cuda_embed_create(plan);
    peal_cuda_ahead_end(plan->ahead); /* what is compiled next is in the cache now */
    plan->ahead = NULL;
    if (!status && peal_cuda_repeats(plan))
        status = peal_cuda_graphs_create(plan);
    CUresult result = CUDA_SUCCESS;
    if (!status && (plan->device->dry || plan->desc.embedded))
        result = peal_cuda_wake_links(plan, false);
    else if (!status)
        status = peal_cuda_run_thread_create(plan, &result);
    return result ? cannot(plan,
                           "launch from the thread that drives the device, or read the memory of "
                           "other GPUs",
                           result)
                  : status;
}

/* Moves the reports of the running thread to the caller's list. */
peal_status peal_cuda_flush_diagnostics(peal_cuda_plan *plan)
{
    int count = peal_diagnostics_count(plan->emission.late);
    for (int i = 0; i < count; i++) {
        const peal_diagnostic *d = peal_diagnostics_at(plan->emission.late, i);
        peal_report(plan->desc.diagnostics, d->code, d->source, d->hint, "%s", d->message);
    }
    peal_status status = peal_diagnostics_status(plan->emission.late);
    peal_diagnostics_destroy(plan->emission.late);
    plan->emission.late = peal_diagnostics_create();
    for (int r = 0; r < plan->rank_count; r++)
        plan->rank[r].walk.hooks.diagnostics = plan->emission.late;
    return status;
}

static peal_status no_memory(const peal_backend_desc *desc)
{
    return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_CUDA_NOWHERE, NULL,
                       "no memory");
}

static peal_status try_to_arm(peal_cuda_plan *plan)
{
    PEAL_ARENA_GUARD(plan->arena, return no_memory(&plan->desc));
    int count = plan->desc.rank_count;
    peal_cuda_run *run = PEAL_ARENA_NEW(plan->arena, peal_cuda_run);
    peal_cuda_rank *rank = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_rank, count);
    peal_backend_rank *bound = PEAL_ARENA_ARRAY(plan->arena, peal_backend_rank, count);
    memcpy(bound, plan->desc.rank, (size_t)count * sizeof(*bound));
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->enqueued_changed, NULL);
    pthread_cond_init(&run->changed, NULL);
    plan->run = run;
    plan->rank = rank;
    plan->rank_count = count;
    plan->desc.rank = bound;
    return arm(plan);
}

peal_status peal_cuda_plan_create(const peal_backend_desc *desc, peal_cuda_plan **out)
{
    peal_cuda_plan *plan = calloc(1, sizeof(*plan));

    if (!plan)
        return no_memory(desc);
    plan->desc = *desc;
    plan->device = desc->device;
    plan->driver = plan->device->driver;
    plan->synchronous = desc->mode == PEAL_MODE_SYNC;
    plan->emission.epoch = 1;
    plan->arena = peal_arena_create();
    plan->emission.late = peal_diagnostics_create();
    CUcontext previous = peal_cuda_context_enter(plan->device);
    peal_status status = plan->arena && plan->emission.late ? try_to_arm(plan) : no_memory(desc);
    /* also if memory ran out while another context was entered */
    peal_cuda_context_leave(plan->device, previous);
    if (status && plan->run) {
        peal_cuda_flush_diagnostics(plan);
        peal_cuda_plan_destroy(plan);
    } else if (status) {
        peal_diagnostics_destroy(plan->emission.late);
        peal_arena_destroy(plan->arena);
        free(plan);
    }
    if (status)
        return status;
    *out = plan;
    return PEAL_STATUS_OK;
}

peal_status peal_cuda_plan_start(peal_cuda_plan *plan, bool setup, int64_t steps, bool finish)
{
    plan->run->setup = setup;
    plan->run->steps = steps;
    plan->run->finish = finish;
    plan->run->stopped = false;
    plan->run->start_step = atomic_load(&plan->run->steps_done);
    plan->run->begin = plan->run->end = peal_clock_s();
    plan->run->ended = plan->run->enqueued = false;
    peal_status status = peal_cuda_run_thread_start(plan);
    plan->run->running = !status;
    return status;
}

peal_status peal_cuda_plan_wait(peal_cuda_plan *plan, peal_backend_result *result)
{
    if (plan->run->running)
        peal_cuda_run_thread_await(plan);
    plan->run->running = false;
    plan->run->follows = false;
    if (result) {
        result->steps_done = atomic_load(&plan->run->steps_done) - plan->run->start_step;
        result->stopped = plan->run->stopped;
        result->seconds = plan->run->end - plan->run->begin;
        result->cpu_seconds = plan->run->cpu;
    }
    peal_status late = peal_cuda_flush_diagnostics(plan);
    int word = atomic_load(plan->desc.abort_word);
    if (word)
        return (peal_status)word; /* the first cause counts, here or in another process */
    return plan->emission.status ? plan->emission.status : late;
}

static void destroy_rank(const peal_cuda_plan *plan, peal_cuda_rank *rank)
{
    const peal_cuda_driver *driver = plan->driver;

    for (int l = 0; l < rank->lanes; l++) {
        peal_cuda_lane *lane = &rank->lane[l];
        for (int m = 0; m < PEAL_CUDA_RINGING_MARKS; m++)
            if (lane->mark[m])
                driver->cuEventDestroy_(lane->mark[m]);
        if (lane->join)
            driver->cuEventDestroy_(lane->join);
        if (lane->sent_event)
            driver->cuEventDestroy_(lane->sent_event);
        if (lane->own)
            driver->cuStreamDestroy_(lane->own);
    }
    for (int i = 0; rank->op && i < rank->schedule->op_count; i++)
        for (int k = 0; k < 2; k++)
            if (rank->op[i].event[k])
                driver->cuEventDestroy_(rank->op[i].event[k]);
}

static void destroy_on_device(peal_cuda_plan *plan)
{
    peal_cuda_fused_destroy(plan);
    peal_cuda_bundles_destroy(plan);
    peal_cuda_graphs_destroy(plan);
    peal_cuda_rescue_destroy(plan);
    peal_cuda_interop_destroy(plan);
    peal_cuda_file_writers_destroy(plan);
    for (int r = 0; r < plan->rank_count; r++)
        destroy_rank(plan, &plan->rank[r]);
    for (int r = 0; r < plan->rank_count; r++)
        peal_cuda_doorbells_release(&plan->rank[r]);
    peal_cuda_mapped_destroy(plan);
    if (plan->tables_device)
        plan->driver->cuMemFree_(plan->tables_device);
    if (plan->words_device)
        plan->driver->cuMemFree_(plan->words_device);
    peal_cuda_kernels_destroy(plan->kernels);
}

void peal_cuda_plan_destroy(peal_cuda_plan *plan)
{
    if (!plan)
        return;
    CUcontext previous = peal_cuda_context_enter(plan->device);
    peal_cuda_ahead_end(plan->ahead); /* of a plan that could not be created */
    if (plan->run->running) {
        int none = 0;
        atomic_compare_exchange_strong(plan->desc.abort_word, &none, (int)PEAL_STATUS_USAGE);
    }
    peal_cuda_run_thread_destroy(plan);
    peal_cuda_file_writers_join(plan);
    peal_cuda_embed_destroy(plan);
    if (!plan->device->lost) /* else its resources are freed when the process ends */
        destroy_on_device(plan);
    peal_cuda_context_leave(plan->device, previous);
    peal_saves_destroy(plan->own_saves);
    peal_diagnostics_destroy(plan->emission.late);
    pthread_cond_destroy(&plan->run->enqueued_changed);
    pthread_cond_destroy(&plan->run->changed);
    pthread_mutex_destroy(&plan->run->lock);
    peal_arena_destroy(plan->arena);
    free(plan);
}
