/* Gives a ring memory, runs it, and knows what comes out. */
#include "tests/backends/ring.h"

#include <stdlib.h>
#include <string.h>

/* Peers are all ranks, by number. */
static void bind_rank(ring_job *job, int rank)
{
    int ranks = job->options.ranks;
    peal_peer *peer = PEAL_ARENA_ARRAY(job->arena, peal_peer, ranks);
    unsigned char **segments = PEAL_ARENA_ARRAY(job->arena, unsigned char *, ranks);

    for (int p = 0; p < ranks; p++) {
        peal_layout *layout = PEAL_ARENA_ARRAY(job->arena, peal_layout, RING_ARRAYS);
        for (int i = 0; i < RING_ARRAYS; i++)
            layout[i] = job->schedule[p].array[i].layout;
        peer[p] = (peal_peer){.rank = p,
                              .layout = layout,
                              .segment_bytes = job->schedule[p].segment_bytes};
        segments[p] = job->segment[p];
    }
    peal_channel *channel = (peal_channel *)job->schedule[rank].channel;
    for (int i = 0; i < 4; i++)
        channel[i].peer_index = channel[i].peer;
    job->schedule[rank].peer = peer;
    job->schedule[rank].peer_count = ranks;
    job->rank[rank] = (peal_backend_rank){&job->schedule[rank], job->segment[rank], segments};
}

void ring_init(ring_job *job, const ring_options *options)
{
    memset(job, 0, sizeof(*job));
    job->options = *options;
    job->arena = peal_arena_create();
    job->diagnostics = peal_diagnostics_create();
    job->graph = (peal_graph_data){.name = "ring", .folder = "."};
    job->graph.array_count = RING_ARRAYS;
    if (options->kernel_file) {
        const char **files = PEAL_ARENA_ARRAY(job->arena, const char *, 1);
        files[0] = options->kernel_file;
        job->graph.folder = options->folder;
        job->graph.kernels = files;
        job->graph.kernel_count = 1;
        job->graph.kernels_source = (peal_source){"ring.yaml", 3, 10};
    }
    peal_array *arrays = PEAL_ARENA_ARRAY(job->arena, peal_array, RING_ARRAYS);
    for (int i = 0; i < RING_ARRAYS; i++)
        arrays[i].type = PEAL_F64;
    job->graph.arrays = arrays;
    job->machine = (peal_machine){options->ranks, 1, options->workers, 1 << 20};
    for (int r = 0; r < options->ranks; r++) {
        ring_build_rank(job, r);
        size_t bytes = (size_t)job->schedule[r].segment_bytes;
        job->segment[r] = aligned_alloc(4096, bytes);
        memset(job->segment[r], 0, bytes);
    }
    for (int r = 0; r < options->ranks; r++)
        bind_rank(job, r);
}

void ring_receive_first(ring_job *job)
{
    for (int r = 0; r < job->options.ranks; r++) {
        peal_op *op = (peal_op *)job->schedule[r].op;
        peal_op moved[4];
        int send = ring_op(job, r, "send"), receive = send + 4;
        memcpy(moved, &op[send], sizeof(moved)); /* send ring send ring */
        op[send] = op[receive];
        op[send + 1] = op[receive + 1];
        memcpy(&op[send + 2], moved, sizeof(moved));
        for (int i = send; i < send + 6; i++) {
            op[i].event = i < send + 2 ? 2 : 3;
            op[i].dependence_count = 0;
        }
    }
}

/* What runs the ring. */
static const peal_backend_ops *backend_of(const ring_job *job)
{
    return job->options.backend ? job->options.backend : &peal_backend_host;
}

peal_status ring_create(ring_job *job)
{
    job->desc = (peal_backend_desc){.size = sizeof(job->desc),
                                    .mode = job->options.mode,
                                    .rank_count = job->options.ranks,
                                    .rank = job->rank,
                                    .workers = job->options.workers,
                                    .abort_word = &job->abort_word,
                                    .deadline_ns = job->options.deadline_ns,
                                    .hooks = job->options.hooks,
                                    .cache_folder = job->options.cache,
                                    .allow_outside = job->options.outside,
                                    .device = job->options.device,
                                    .diagnostics = job->diagnostics};
    if (job->desc.deadline_ns == 0)
        job->desc.deadline_ns = 60000000000;
    return backend_of(job)->create(&job->desc, &job->plan);
}

peal_status ring_run(ring_job *job, bool setup, int64_t steps, bool finish)
{
    peal_status status = backend_of(job)->start(job->plan, setup, steps, finish);
    peal_status waited = backend_of(job)->wait(job->plan, &job->result);
    return status ? status : waited;
}

static const unsigned char *array_memory(const ring_job *job, int rank, int array)
{
    int storage = backend_of(job)->storage(job->plan, rank, array);
    return job->segment[rank] + job->schedule[rank].array[storage].layout.offset;
}

double ring_point(const ring_job *job, int64_t x)
{
    int rank = (int)(x / job->options.points);
    double value;
    memcpy(&value, array_memory(job, rank, RING_A) + 8 * (x % job->options.points + 1), 8);
    return value;
}

double ring_buffer(const ring_job *job, int rank, int array)
{
    double value;
    memcpy(&value, array_memory(job, rank, array), 8);
    return value;
}

void ring_expected(const ring_job *job, int64_t steps, double *field)
{
    int64_t n = (int64_t)job->options.points * job->options.ranks;
    double *next = calloc((size_t)n, sizeof(*next));

    for (int64_t x = 0; x < n; x++)
        field[x] = (double)(x * x % 97) - 40;
    for (int64_t s = 0; s < steps; s++) {
        for (int64_t x = 0; x < n; x++)
            next[x] = 0.25 * field[(x + n - 1) % n] + 0.5 * field[x] + 0.3 * field[(x + 1) % n] +
                      0.01 * (double)(x % 5);
        memcpy(field, next, (size_t)n * sizeof(*next));
    }
    free(next);
}

int ring_op(const ring_job *job, int rank, const char *label)
{
    for (int i = 0; i < job->schedule[rank].op_count; i++)
        if (strcmp(job->schedule[rank].op[i].label, label) == 0)
            return i;
    return -1;
}

void ring_close(ring_job *job)
{
    backend_of(job)->destroy(job->plan);
    for (int r = 0; r < job->options.ranks; r++)
        free(job->segment[r]);
    peal_diagnostics_destroy(job->diagnostics);
    peal_arena_destroy(job->arena);
}
