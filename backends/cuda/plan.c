/* A plan on a GPU. Creating it makes everything that a run needs: kernels, streams, words, tables.
 * A start is a thread that walks. */
#include "backends/cuda/embed.h"
#include "backends/cuda/executor.h"
#include "backends/cuda/fused/dispatchers/dispatcher.h"
#include "backends/cuda/fused/fused.h"
#include "backends/cuda/graph/graph.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/options.h"
#include "backends/cuda/stream/run.h"
#include "backends/cuda/stream/stream_sink.h"
#include "base/clock.h"
#include "base/lowering.h"

#include <stdlib.h>
#include <string.h>

/* Offsets in a rank's words: its step and stop words (PEAL_CUDA_STOP_WORD), then the words that
 * blocks count their arrivals in, by lane, then predicates. LONG_POINTS: see has_long_tasks. */
enum { ARRIVED_AT = 256, CONDITIONS_AT = 512, LONG_POINTS = 1 << 20 };

/* Whether a task is long enough for messages to run beside it on a lane of their own. Two lanes
 * must be joined once a step, which short tasks do not pay for (bench/EXPERIMENTS.md, Lanes). */
static bool has_long_tasks(const peal_cuda_plan *plan)
{
    const peal_schedule *schedule = plan->desc.rank[0].schedule;

    for (int i = schedule->step.first; i < schedule->step.end && schedule->peer_count > 0; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->kind != PEAL_OP_LAUNCH || !schedule->task[op->task].mergeable)
            continue;
        int64_t points = 0;
        for (int r = 0; r < op->range_count; r++) {
            const peal_tiling *tiling = &schedule->task[op->task].tiling[op->range[r].tiling];
            int64_t here = 1;
            for (int k = 0; k < PEAL_AXES; k++)
                here *= (op->range[r].hi[k] - op->range[r].lo[k]) * tiling->extent[k];
            points += here;
        }
        if (points >= LONG_POINTS)
            return true;
    }
    return false;
}

static peal_status refuse_fused(const peal_cuda_plan *plan, const char *hint, const char *why)
{
    return peal_report(plan->desc.diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE, PEAL_CUDA_NOWHERE,
                       hint, "mode fused cannot run this: %s", why);
}

/* Sets the options of mode fused, and refuses what it cannot run. The blocks of the persistent
 * kernel wait for blocks of other ranks. Ranks of this process are in the same kernel; but kernels
 * of two processes on one GPU take turns, and would wait for ever. */
static peal_status choose_fused_options(peal_cuda_plan *plan)
{
    _Static_assert((int)PEAL_KERNEL_RANKS == (int)PEAL_FUSED_RANKS_MOST, "what `explain` says");
    const peal_schedule *schedule = plan->desc.rank[0].schedule;
    bool shares_device = schedule->machine && schedule->machine->shares_device;

    plan->options.lanes = 1;
    plan->options.signal = PEAL_CUDA_SIGNAL_FUSED;
    plan->options.copy = PEAL_CUDA_COPY_KERNEL;
    if (!peal_cuda_fused_compiles(plan->device->major * 10))
        return refuse_fused(plan, "--mode graph runs it",
                            "its kernel needs compute capability 8.0, which this GPU has not");
    if (!plan->device->has_cooperative)
        return refuse_fused(plan, "--mode graph runs it",
                            "this GPU has no cooperative launch, by which all blocks of a kernel "
                            "are resident");
    if (shares_device)
        return refuse_fused(plan,
                            "--mode graph runs it; or give each process a GPU, or host all ranks "
                            "in one process",
                            "processes share a GPU, and the persistent kernel of one would keep "
                            "the others' kernels off it");
    if (plan->rank_count > PEAL_FUSED_RANKS_MOST)
        return peal_report(plan->desc.diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE,
                           PEAL_CUDA_NOWHERE,
                           "--mode graph runs it; or use more processes and GPUs",
                           "mode fused cannot run this: %d ranks of a process share a GPU, its "
                           "kernel has room for %d",
                           plan->rank_count, PEAL_FUSED_RANKS_MOST);
    if (plan->rank_count > 1 && plan->options.dispatcher->one_rank)
        return peal_report(plan->desc.diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE,
                           PEAL_CUDA_NOWHERE,
                           "--lower order=tickets runs it; or give each rank a process and a GPU",
                           "mode fused cannot run this: with order=%s a kernel has one rank, "
                           "and %d ranks of a process share a GPU",
                           plan->options.dispatcher->name, plan->rank_count);
    return PEAL_STATUS_OK;
}

/* Whether partials are folded in every step. Then there is one lane, so that the task's last launch
 * can do the folds. */
static bool folds_always(const peal_cuda_plan *plan)
{
    const peal_schedule *schedule = plan->desc.rank[0].schedule;
    int depth = 0;

    for (int i = schedule->step.first; i < schedule->step.end; i++) {
        const peal_op *op = &schedule->op[i];
        depth += op->kind == PEAL_OP_IF || op->kind == PEAL_OP_LOOP;
        depth -= op->kind == PEAL_OP_END;
        if (depth == 0 && op->kind == PEAL_OP_LAUNCH &&
            schedule->task[op->task].kind == PEAL_TASK_FOLD)
            return true;
    }
    return false;
}

static peal_status choose_options(peal_cuda_plan *plan)
{
    const peal_schedule *schedule = plan->desc.rank[0].schedule;
    /* Launches may be merged across ops only if nobody waits between two ops. */
    bool may_merge = !plan->synchronous && !plan->desc.embedded;

    plan->options = (peal_cuda_options){.signal = PEAL_CUDA_SIGNAL_FUSED,
                                        .copy = PEAL_CUDA_COPY_KERNEL,
                                        .launches_early = !plan->desc.hooks.no_early_launch,
                                        .defers = may_merge && !plan->desc.hooks.no_deferral,
                                        .folds_in_task = may_merge && !plan->one_kernel,
                                        .lanes = 0,
                                        .plain_points = -1};
    if (plan->desc.mode == PEAL_MODE_SYNC) {
        plan->options.signal = PEAL_CUDA_SIGNAL_KERNEL;
        plan->options.copy = PEAL_CUDA_COPY_ENGINE;
    }
    peal_status words = peal_lowering_check(plan->desc.lowering, plan->desc.diagnostics);
    if (words)
        return words;
    if (!peal_cuda_options_parse(plan->desc.lowering, &plan->options))
        return peal_report(plan->desc.diagnostics, PEAL_E_UNKNOWN_LOWERING, PEAL_CUDA_NOWHERE,
                           "use words of " PEAL_LOWERING_WORDS, "'%s' is no lowering",
                           plan->desc.lowering);
    /* Thresholds for communication-free kernels. They are low where a rank sends nothing, because
     * such a kernel then replaces the only other one. Flat tiles and light tasks of two axes are as
     * fast in the other kernels up to a larger size (bench/EXPERIMENTS.md, "When a kernel without
     * communication pays"). */
    if (plan->options.plain_points >= 0) {
        plan->options.plain_flat_points = plan->options.plain_points;
        plan->options.plain_light_points = plan->options.plain_points;
    } else {
        plan->options.plain_points = schedule->peer_count > 0 ? 1 << 19 : 1 << 17;
        plan->options.plain_flat_points = schedule->peer_count > 0 ? 1 << 21 : 1 << 17;
        plan->options.plain_light_points = 3 << 20;
    }
    if (plan->options.lanes == 0)
        plan->options.lanes =
            plan->desc.mode != PEAL_MODE_SYNC && has_long_tasks(plan) && !folds_always(plan)
                ? PEAL_CUDA_LANES
                : 1;
    if (plan->desc.embedded)
        plan->options.lanes = 1; /* the application's stream */
    /* Kernels of two processes take turns on a GPU: a kernel that waits would keep the other
     * process's off it. */
    if (schedule->machine && schedule->machine->shares_device)
        plan->options.signal = PEAL_CUDA_SIGNAL_MEMOP;
    if (plan->options.signal == PEAL_CUDA_SIGNAL_MEMOP && !plan->device->has_memops)
        return peal_report(plan->desc.diagnostics, PEAL_E_NO_MEMORY_OPERATIONS, PEAL_CUDA_NOWHERE,
                           "give each process a GPU of its own, or host all ranks in one process",
                           "%s cannot do 64-bit memory operations on streams, which %s",
                           plan->device->name,
                           schedule->machine && schedule->machine->shares_device
                               ? "processes that share a GPU wait by"
                               : "signal=memop asks for");
    if (plan->one_kernel)
        return choose_fused_options(plan);
    /* Launches that read a predicate must be ordered behind the one that writes it. */
    if (peal_cuda_repeats(plan) &&
        (schedule->outer.until || peal_cuda_predicates_are_needed(schedule)))
        plan->options.lanes = 1;
    /* Waiting blocks of one rank must not keep another rank of this process off the GPU. */
    if (plan->rank_count > 1 && plan->options.signal == PEAL_CUDA_SIGNAL_FUSED)
        plan->options.signal = PEAL_CUDA_SIGNAL_KERNEL;
    return PEAL_STATUS_OK;
}

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

static peal_status no_stream(peal_cuda_plan *plan, CUresult result)
{
    char text[160];
    return peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE, NULL,
                       "cannot create streams, events or words on the device: %s",
                       peal_cuda_error(result, text));
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
            for (int m = 0; m < PEAL_CUDA_MARKS && !result; m++)
                result = driver->cuEventCreate_(&lane->mark[m], CU_EVENT_DISABLE_TIMING);
        }
    }
    return result ? no_stream(plan, result) : PEAL_STATUS_OK;
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
    return result ? no_stream(plan, result) : PEAL_STATUS_OK;
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
        status = choose_options(plan);
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
        status = peal_cuda_plan_upload(plan);
    if (!status)
        status = create_lanes(plan);
    if (!status)
        status = peal_cuda_rescue_create(plan);
    if (!status)
        status = peal_cuda_interop_create(plan);
    if (!status)
        status = warm_up(plan);
    if (!status && plan->desc.embedded)
        status = peal_cuda_embed_create(plan);
    if (!status && peal_cuda_repeats(plan))
        status = peal_cuda_graphs_create(plan);
    return status;
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
    if (pthread_create(&plan->run->thread, NULL, peal_cuda_run_thread, plan) != 0)
        return peal_report(plan->desc.diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_CUDA_NOWHERE, NULL,
                           "cannot create the thread that drives the device");
    plan->run->running = true;
    return PEAL_STATUS_OK;
}

peal_status peal_cuda_plan_wait(peal_cuda_plan *plan, peal_backend_result *result)
{
    if (plan->run->running)
        pthread_join(plan->run->thread, NULL);
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
        for (int m = 0; m < PEAL_CUDA_MARKS; m++)
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
    peal_cuda_graphs_destroy(plan);
    peal_cuda_rescue_destroy(plan);
    peal_cuda_interop_destroy(plan);
    for (int r = 0; r < plan->rank_count; r++)
        destroy_rank(plan, &plan->rank[r]);
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
    if (plan->run->running) {
        int none = 0;
        atomic_compare_exchange_strong(plan->desc.abort_word, &none, (int)PEAL_STATUS_USAGE);
        pthread_join(plan->run->thread, NULL);
    }
    peal_cuda_embed_destroy(plan);
    if (!plan->device->lost) /* else its resources are freed when the process ends */
        destroy_on_device(plan);
    peal_cuda_context_leave(plan->device, previous);
    peal_saves_destroy(plan->own_saves);
    peal_diagnostics_destroy(plan->emission.late);
    pthread_cond_destroy(&plan->run->enqueued_changed);
    pthread_mutex_destroy(&plan->run->lock);
    peal_arena_destroy(plan->arena);
    free(plan);
}
