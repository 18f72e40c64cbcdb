/* Reads, compiles and runs a spec with all ranks in this process. */
#define _GNU_SOURCE
#include "tests/backends/local_job.h"

#include "base/expression.h"
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"

#include <stdlib.h>
#include <string.h>

typedef struct local_job {
    const local_options *options;
    peal_diagnostics *diagnostics;
    peal_graph *graph;
    const peal_graph_data *data;
    peal_machine machine;
    peal_compilation *compilation;
    peal_backend_rank *rank;
    unsigned char **segment;
    _Atomic int abort_word;
    FILE *out;
} local_job;

static void take_row(void *user, int64_t step, int count, const char *const *names,
                     const peal_value *values)
{
    local_job *job = user;
    fwrite(&step, sizeof(step), 1, job->out);
    for (int i = 0; i < count; i++) {
        fputs(names[i], job->out);
        fwrite(&values[i].u, sizeof(double), 1, job->out);
    }
}

static peal_status compile(local_job *job)
{
    const local_options *o = job->options;
    peal_status status =
        peal_graph_read(o->spec, o->overrides, o->override_count, job->diagnostics, &job->graph);
    if (!status)
        status = peal_graph_resolve(job->graph, job->diagnostics, &job->data);
    if (!status)
        status = peal_compilation_create(job->data, &job->machine, o->mode, job->diagnostics,
                                         &job->compilation);
    return status ? status : peal_compilation_check(job->compilation);
}

static peal_status bind_ranks(local_job *job)
{
    int ranks = job->options->ranks;

    job->rank = calloc((size_t)ranks, sizeof(*job->rank));
    job->segment = calloc((size_t)ranks, sizeof(*job->segment));
    for (int r = 0; r < ranks; r++) {
        peal_status status = peal_compilation_schedule(job->compilation, r, &job->rank[r].schedule);
        if (status)
            return status;
        size_t bytes = ((size_t)job->rank[r].schedule->segment_bytes + 4095) / 4096 * 4096;
        job->segment[r] = aligned_alloc(4096, bytes + 4096);
        memset(job->segment[r], 0, bytes + 4096);
        job->rank[r].segment = job->segment[r];
    }
    for (int r = 0; r < ranks; r++) {
        const peal_schedule *schedule = job->rank[r].schedule;
        unsigned char **peers = calloc((size_t)schedule->peer_count + 1, sizeof(*peers));
        for (int p = 0; p < schedule->peer_count; p++)
            peers[p] = job->segment[schedule->peer[p].rank];
        job->rank[r].peer_segment = peers;
    }
    return PEAL_STATUS_OK;
}

static int64_t steps_of(const local_job *job)
{
    const peal_schedule *schedule = job->rank[0].schedule;
    peal_scope scope = {.graph = job->data, .ranks = job->options->ranks};
    int64_t steps = 1;

    if (job->options->steps > 0)
        return job->options->steps;
    peal_expr_integer(schedule->outer.repeat, &scope, 1, &steps, job->diagnostics);
    return steps;
}

static void gather(local_job *job, const peal_backend_plan *plan)
{
    for (int r = 0; r < job->options->ranks; r++) {
        const peal_schedule *schedule = job->rank[r].schedule;
        for (int a = 0; a < job->data->array_count; a++) {
            const peal_schedule_array *array = &schedule->array[a];
            const peal_layout *own = &array->layout;
            size_t bytes = peal_type_bytes(array->type);
            if (!array->defined)
                continue;
            const peal_layout *now = &schedule->array[peal_backend_host.storage(plan, r, a)].layout;
            int64_t p[PEAL_AXES];
            for (p[3] = own->own.lo[3]; p[3] < own->own.hi[3]; p[3]++)
                for (p[2] = own->own.lo[2]; p[2] < own->own.hi[2]; p[2]++)
                    for (p[1] = own->own.lo[1]; p[1] < own->own.hi[1]; p[1]++) {
                        int64_t at = own->own.lo[0] - own->stored.lo[0];
                        for (int k = 1; k < PEAL_AXES; k++)
                            at += (p[k] - own->stored.lo[k]) * own->stride[k];
                        fwrite(job->segment[r] + now->offset + at * (int64_t)bytes, bytes,
                               (size_t)(own->own.hi[0] - own->own.lo[0]), job->out);
                    }
        }
    }
}

static peal_status run(local_job *job, local_outcome *out)
{
    peal_backend_plan *plan = NULL;
    peal_backend_desc desc = {.size = sizeof(desc),
                              .mode = job->options->mode,
                              .rank_count = job->options->ranks,
                              .rank = job->rank,
                              .workers = job->options->workers,
                              .abort_word = &job->abort_word,
                              .deadline_ns = 20000000000,
                              .cache_folder = job->options->cache,
                              .row = take_row,
                              .row_user = job,
                              .hooks = job->options->hooks,
                              .diagnostics = job->diagnostics};
    peal_status status = peal_backend_host.create(&desc, &plan);

    if (!status)
        status = peal_backend_host.start(plan, true, steps_of(job), true);
    if (!status)
        status = peal_backend_host.wait(plan, &out->result);
    if (!status)
        gather(job, plan);
    peal_backend_host.destroy(plan);
    return status;
}

peal_status local_run(const local_options *options, local_outcome *out)
{
    local_job job = {.options = options,
                     .diagnostics = peal_diagnostics_create(),
                     .machine = {options->ranks, 1, options->workers, 1 << 18}};
    char *bytes = NULL;

    *out = (local_outcome){0};
    job.out = open_memstream(&bytes, &out->count);
    peal_status status = compile(&job);
    if (!status)
        status = bind_ranks(&job);
    if (!status)
        status = run(&job, out);
    fclose(job.out);
    out->bytes = (unsigned char *)bytes;
    if (status)
        peal_diagnostics_print(job.diagnostics, stderr, 0);
    for (int r = 0; job.segment && r < options->ranks; r++) {
        free(job.segment[r]);
        free((void *)job.rank[r].peer_segment);
    }
    free(job.segment);
    free(job.rank);
    peal_compilation_destroy(job.compilation);
    if (job.graph)
        peal_graph_destroy(job.graph);
    peal_diagnostics_destroy(job.diagnostics);
    return status;
}

peal_status local_describe(const local_options *options,
                           peal_status (*use)(const peal_backend_desc *desc, void *user),
                           void *user)
{
    local_job job = {.options = options,
                     .diagnostics = peal_diagnostics_create(),
                     .machine = {options->ranks, 1, options->workers, 1 << 18}};
    peal_status status = compile(&job);

    job.rank = calloc((size_t)options->ranks, sizeof(*job.rank));
    for (int r = 0; r < options->ranks && !status; r++)
        status = peal_compilation_schedule(job.compilation, r, &job.rank[r].schedule);
    if (status)
        peal_diagnostics_print(job.diagnostics, stderr, 0);
    peal_backend_desc desc = {.size = sizeof(desc),
                              .mode = options->mode,
                              .rank_count = options->ranks,
                              .rank = job.rank,
                              .workers = options->workers,
                              .abort_word = &job.abort_word,
                              .cache_folder = options->cache,
                              .diagnostics = job.diagnostics};
    if (!status)
        status = use(&desc, user);
    free(job.rank);
    peal_compilation_destroy(job.compilation);
    if (job.graph)
        peal_graph_destroy(job.graph);
    peal_diagnostics_destroy(job.diagnostics);
    return status;
}
