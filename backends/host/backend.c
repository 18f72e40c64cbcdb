/* The host backend: the entries of the backend's table, most of which call the mode's executor. */
#include "backends/host/kernels.h"
#include "backends/host/threads.h"
#include "backends/host/walk.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static const char *refuses(peal_mode mode)
{
    if (mode == PEAL_MODE_GRAPH)
        return "a graph is recorded for an accelerator; on the CPU `stream` does the same work";
    return NULL;
}

static const host_executor *executor_of(peal_mode mode, int workers)
{
    switch (mode) {
    case PEAL_MODE_SERIAL:
        return &host_serial;
    case PEAL_MODE_SYNC:
        return &host_sync;
    case PEAL_MODE_STREAM:
        /* With one lane nothing needs a queue: the thread that walks runs the ops itself. */
        return workers > 1 ? &host_stream : &host_fused;
    case PEAL_MODE_FUSED:
        return &host_fused;
    default:
        return NULL;
    }
}

static void destroy(host_plan *plan)
{
    if (!plan)
        return;
    if (plan->executor_created)
        plan->executor->destroy(plan);
    host_kernels_destroy(plan->kernels);
    peal_saves_destroy(plan->own_saves);
    peal_diagnostics_destroy(plan->late);
    peal_arena_destroy(plan->arena);
    pthread_mutex_destroy(&plan->failure.lock);
    free(plan);
}

static peal_status no_memory(const peal_backend_desc *desc)
{
    return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory for the tables of a plan");
}

static peal_status prepare(host_plan *plan)
{
    const peal_backend_desc *desc = &plan->desc;
    const peal_schedule *first = desc->rank[0].schedule;

    PEAL_ARENA_GUARD(plan->arena, return no_memory(desc));
    peal_backend_rank *bound = PEAL_ARENA_ARRAY(plan->arena, peal_backend_rank, desc->rank_count);
    memcpy(bound, desc->rank, (size_t)desc->rank_count * sizeof(*bound));
    plan->desc.rank = bound;
    if (!desc->saves)
        plan->desc.saves = plan->own_saves =
            peal_saves_create(first->graph,
                              first->machine ? first->machine->ranks : desc->rank_count, NULL,
                              desc->abort_word);
    if (!desc->saves)
        return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                           "no memory for the counts of saved files");
    peal_status status = host_kernels_create(desc, &plan->kernels);

    plan->turn = host_counts_create(plan->arena, 1);
    plan->rank = host_aligned(plan->arena, (size_t)desc->rank_count * sizeof(host_rank));
    for (int i = 0; i < desc->rank_count && !status; i++) {
        status = host_rank_prepare(plan, i);
    }
    if (status)
        return status;
    plan->executor_created = true;
    return plan->executor->create(plan);
}

static peal_status create(const peal_backend_desc *desc, peal_backend_plan **out)
{
    peal_source nowhere = {0};
    const host_executor *executor = executor_of(desc->mode, desc->workers);

    if (!executor)
        return peal_report(desc->diagnostics, PEAL_E_MODE_NOT_ON_CPU, nowhere, "use --mode auto",
                           "%s", refuses(desc->mode));
    if (desc->rank_count < 1 || desc->workers < 1 || !desc->abort_word)
        return peal_report(desc->diagnostics, PEAL_E_INTERNAL, nowhere, NULL,
                           "a plan of %d ranks with %d workers", desc->rank_count, desc->workers);
    host_plan *plan = calloc(1, sizeof(*plan));
    peal_arena *arena = peal_arena_create();
    peal_diagnostics *late = peal_diagnostics_create();
    if (!plan || !arena || !late) {
        peal_diagnostics_destroy(late);
        peal_arena_destroy(arena);
        free(plan);
        return no_memory(desc);
    }
    pthread_mutex_init(&plan->failure.lock, NULL);
    plan->desc = *desc;
    plan->executor = executor;
    plan->rank_count = desc->rank_count;
    plan->arena = arena;
    plan->late = late;
    peal_status status = prepare(plan);
    if (status) {
        destroy(plan);
        return status;
    }
    *out = plan;
    return PEAL_STATUS_OK;
}

static peal_status start(peal_backend_plan *plan, bool setup, int64_t steps, bool finish)
{
    plan->setup = setup;
    plan->steps = steps;
    plan->finish = finish;
    plan->stopped = false;
    plan->running = true;
    plan->start_step = atomic_load(&plan->steps_done);
    plan->begin = plan->end = peal_clock_s();
    return plan->executor->start(plan);
}

/* Moves the reports of running threads to the caller's list; on the caller's thread. */
static peal_status flush_diagnostics(host_plan *plan)
{
    int count = peal_diagnostics_count(plan->late);
    for (int i = 0; i < count; i++) {
        const peal_diagnostic *d = peal_diagnostics_at(plan->late, i);
        peal_report(plan->desc.diagnostics, d->code, d->source, d->hint, "%s", d->message);
    }
    peal_status status = peal_diagnostics_status(plan->late);
    peal_diagnostics_take_back(plan->late, 0);
    return status;
}

static peal_status wait_end(peal_backend_plan *plan, peal_backend_result *result)
{
    peal_status status = PEAL_STATUS_OK;

    if (plan->running)
        status = plan->executor->wait(plan);
    plan->running = false;
    if (result) {
        result->steps_done = atomic_load(&plan->steps_done) - plan->start_step;
        result->stopped = plan->stopped;
        result->seconds = plan->end - plan->begin;
    }
    host_check_raised(plan);
    peal_status late = flush_diagnostics(plan);
    peal_status waited = host_failure_report(plan);
    int word = atomic_load(plan->desc.abort_word);
    if (status)
        return status;
    if (word)
        return (peal_status)word; /* the first cause counts, here or in another process */
    return late ? late : waited;
}

static int storage(const peal_backend_plan *plan, int index, int array)
{
    return plan->rank[index].final_binding[array];
}

static int64_t progress(const peal_backend_plan *plan)
{
    if (plan->executor->progress)
        return plan->executor->progress(plan);
    return atomic_load_explicit(&((peal_backend_plan *)plan)->steps_done, memory_order_relaxed);
}

static peal_function function(const peal_backend_plan *plan, int index, int task, bool partials,
                              void **user)
{
    const host_task *bound = &plan->rank[index].task[task];
    *user = bound->call.user;
    return partials ? bound->full : bound->no_reduction;
}

const peal_backend_ops peal_backend_host = {
    .size = sizeof(peal_backend_ops),
    .name = "host",
    .traits = &peal_traits_host,
    .refuses = refuses,
    .create = create,
    .start = start,
    .wait = wait_end,
    .storage = storage,
    .progress = progress,
    .destroy = destroy,
    .function = function,
};
