/* Schedules and runs a random graph on the host backend. */
#include "tests/property/graph_job.h"

#include "dsl/dsl.h"

#include <stdlib.h>
#include <string.h>

void graph_job_begin(graph_job *job, uint64_t seed, peal_mode mode)
{
    *job =
        (graph_job){.random = random_graph_create(seed), .diagnostics = peal_diagnostics_create()};
    job->machine = (peal_machine){.ranks = random_graph_ranks(job->random),
                                  .processes = 1,
                                  .workers = 2,
                                  .cache_bytes = 1 << 18};
    peal_status status =
        peal_graph_resolve(random_graph_builder(job->random), job->diagnostics, &job->graph);
    if (!status)
        status = peal_compilation_create(job->graph, &job->machine, mode, job->diagnostics,
                                         &job->compilation);
    if (!status)
        status = peal_compilation_check(job->compilation);
    for (int rank = 0; !status && rank < job->machine.ranks; rank++)
        status = peal_compilation_schedule(job->compilation, rank, &job->schedule[rank]);
    if (!status)
        return;
    peal_diagnostics_print(job->diagnostics, stderr, 5);
    fprintf(stderr, "seed %llu is not valid:\n%s", (unsigned long long)seed,
            random_graph_text(job->random));
    abort();
}

void graph_job_end(graph_job *job)
{
    peal_compilation_destroy(job->compilation);
    peal_diagnostics_destroy(job->diagnostics);
    random_graph_destroy(job->random);
}

static void add_bytes(uint64_t *digest, const unsigned char *byte, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *digest = (*digest ^ byte[i]) * 0x100000001b3u;
}

static void add_rank(const peal_schedule *s, int index, const peal_backend_plan *plan,
                     const unsigned char *segment, uint64_t *digest)
{
    for (int a = 0; a < s->array_count; a++) {
        const peal_layout *of = &s->array[a].layout;
        size_t bytes = peal_type_bytes(s->array[a].type);
        if (!s->array[a].defined)
            continue;
        int64_t offset = s->array[peal_backend_host.storage(plan, index, a)].layout.offset;
        int64_t p[PEAL_AXES];
        for (p[3] = of->own.lo[3]; p[3] < of->own.hi[3]; p[3]++)
            for (p[2] = of->own.lo[2]; p[2] < of->own.hi[2]; p[2]++)
                for (p[1] = of->own.lo[1]; p[1] < of->own.hi[1]; p[1]++) {
                    int64_t at = of->own.lo[0] - of->stored.lo[0];
                    for (int k = 1; k < PEAL_AXES; k++)
                        at += (p[k] - of->stored.lo[k]) * of->stride[k];
                    add_bytes(digest, segment + offset + at * (int64_t)bytes,
                              (size_t)(of->own.hi[0] - of->own.lo[0]) * bytes);
                }
    }
}

static peal_status run(graph_job *job, const peal_backend_rank *rank, int workers,
                       unsigned char *const *segment, uint64_t *digest)
{
    _Atomic int abort_word = 0;
    peal_backend_plan *plan = NULL;
    peal_backend_result result;
    peal_backend_desc desc = {.size = sizeof(desc),
                              .mode = job->schedule[0]->mode,
                              .rank_count = job->machine.ranks,
                              .rank = rank,
                              .workers = workers,
                              .abort_word = &abort_word,
                              .deadline_ns = 5000000000,
                              .diagnostics = job->diagnostics};
    peal_status status = peal_backend_host.create(&desc, &plan);
    if (!status)
        status = peal_backend_host.start(plan, true, random_graph_steps(job->random), true);
    if (!status)
        status = peal_backend_host.wait(plan, &result);
    *digest = 0xcbf29ce484222325u;
    for (int r = 0; !status && r < job->machine.ranks; r++)
        add_rank(job->schedule[r], r, plan, segment[r], digest);
    peal_backend_host.destroy(plan);
    return status;
}

peal_status graph_job_run(graph_job *job, int workers, uint64_t *digest)
{
    peal_backend_rank rank[JOB_RANKS];
    unsigned char *segment[JOB_RANKS], *peers[JOB_RANKS][JOB_RANKS];
    for (int r = 0; r < job->machine.ranks; r++) {
        size_t bytes = ((size_t)job->schedule[r]->segment_bytes + 4095) / 4096 * 4096;
        segment[r] = aligned_alloc(4096, bytes);
        memset(segment[r], 0, bytes);
    }
    for (int r = 0; r < job->machine.ranks; r++) {
        for (int p = 0; p < job->schedule[r]->peer_count; p++)
            peers[r][p] = segment[job->schedule[r]->peer[p].rank];
        rank[r] = (peal_backend_rank){job->schedule[r], segment[r], peers[r]};
    }
    peal_status status = run(job, rank, workers, segment, digest);
    for (int r = 0; r < job->machine.ranks; r++)
        free(segment[r]);
    return status;
}
