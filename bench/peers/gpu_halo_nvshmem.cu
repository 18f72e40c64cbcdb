/* The GPU halo benchmark on NVSHMEM, one process a GPU. Ways: a put with signal on the stream for
 * each neighbour and a wait on the stream; and, as fast as its device side allows, a packing kernel
 * that stores straight into the neighbours' buffers and signals, and an unpacking kernel that
 * waits, on streams and in a graph. Buffers are double, as in gpu_halo_memcpy.cu.
 *
 * usage: gpu_halo_nvshmem GPUS CASE..., a case being "ring BYTES INTERIOR_US" or "box POINTS" */
#include "../gpu/halo.cuh"
#include "gpu_nvshmem.cuh"

enum { ROUNDS = 20 }; /* of a graph; even: buffers alternate */

/* Where each piece goes: into a peer's buffer, or for local ones into the field. */
typedef struct targets {
    double *piece[HALO_PIECES];
    int peer[GPU_MAX], peer_count;
} targets;

typedef struct job {
    halo_rank r;
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
    double *out, *in[2]; /* in: symmetric */
    long to[GPU_MAX];    /* by message: where it begins in the peer's buffer */
    targets targets[2];
    int turn[HALO_PIECES]; /* exchange alone: which of the pieces between two ranks it is */
    uint64_t *signal;      /* symmetric: by sender, counts messages */
    uint64_t *host_signal; /* symmetric: the same for the puts on the stream, two a sender */
    uint64_t *state;       /* blocks that arrived, rounds sent */
    uint64_t sequence;     /* rounds of the puts on the stream */
    long round;
    bool device_side;
    cudaGraphExec_t graph;
} job;

enum { ARRIVED, SENT };

/* Packs into the peers' memory; the last block signals every peer. */
static __global__ void pack_and_put(halo_pieces pieces, targets to, double *field, uint64_t *signal,
                                    uint64_t *state, int rank)
{
    const halo_piece &p = pieces.piece[blockIdx.y];
    const long points = (long)p.extent[0] * p.extent[1] * p.extent[2];
    double *target = to.piece[blockIdx.y];
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < points;
         i += (long)gridDim.x * blockDim.x) {
        const unsigned row = (unsigned)(i / p.extent[0]),
                       x = (unsigned)(i - (long)row * p.extent[0]);
        const unsigned z = row / (unsigned)p.extent[1], y = row - z * (unsigned)p.extent[1];
        target[p.to + x + y * p.to_y + z * p.to_z] =
            field[p.from + x + y * p.from_y + z * p.from_z];
    }
    __shared__ bool last;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned blocks = gridDim.x * gridDim.y;
        last = atomicAdd((unsigned long long *)&state[ARRIVED], 1ull) == blocks - 1;
        if (last) {
            state[ARRIVED] = 0;
            state[SENT]++;
        }
    }
    __syncthreads();
    if (last && threadIdx.x < to.peer_count) {
        __threadfence_system();
        nvshmemx_signal_op(signal + rank, 1, NVSHMEM_SIGNAL_ADD, to.peer[threadIdx.x]);
    }
}

/* Waits for every peer's signal of this round, then unpacks. */
static __global__ void wait_and_unpack(halo_pieces pieces, targets from, double *field,
                                       const double *packed, uint64_t *signal,
                                       const uint64_t *state)
{
    if (threadIdx.x < from.peer_count) {
        nvshmem_signal_wait_until(signal + from.peer[threadIdx.x], NVSHMEM_CMP_GE, state[SENT]);
    }
    __syncthreads();
    const halo_piece &p = pieces.piece[blockIdx.y];
    const long points = (long)p.extent[0] * p.extent[1] * p.extent[2];
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < points;
         i += (long)gridDim.x * blockDim.x) {
        const unsigned row = (unsigned)(i / p.extent[0]),
                       x = (unsigned)(i - (long)row * p.extent[0]);
        const unsigned z = row / (unsigned)p.extent[1], y = row - z * (unsigned)p.extent[1];
        field[p.to + x + y * p.to_y + z * p.to_z] =
            packed[p.from + x + y * p.from_y + z * p.from_z];
    }
}

/* The same without unpacking. */
static __global__ void wait_alone(targets from, uint64_t *signal, const uint64_t *state)
{
    if (threadIdx.x < from.peer_count) {
        nvshmem_signal_wait_until(signal + from.peer[threadIdx.x], NVSHMEM_CMP_GE, state[SENT]);
    }
}

static void exchange_on_device(job *j, int parity)
{
    const targets *to = &j->targets[parity];
    pack_and_put<<<halo_grid(&j->r.out.pieces), HALO_THREADS, 0, j->stream>>>(j->r.out.pieces, *to,
                                                                              j->r.field, j->signal,
                                                                              j->state, j->r.rank);
    if (j->r.problem.alone) {
        wait_alone<<<1, 32, 0, j->stream>>>(*to, j->signal, j->state);
    } else if (j->r.in.pieces.count > 0) {
        wait_and_unpack<<<halo_grid(&j->r.in.pieces), HALO_THREADS, 0, j->stream>>>(
            j->r.in.pieces, *to, j->r.field, j->in[parity], j->signal, j->state);
    }
    GPU(cudaGetLastError());
}

/* Each piece from field to field, with a signal of its own. */
static void put_alone(job *j, uint64_t sequence)
{
    const halo_pieces *out = &j->r.out.pieces, *in = &j->r.in.pieces;
    int taken[GPU_MAX] = {0};
    for (int k = 0; k < out->count; k++) {
        const halo_piece *piece = &out->piece[k];
        nvshmemx_putmem_signal_on_stream(j->r.field + piece->to, j->r.field + piece->from,
                                         (size_t)halo_points(piece) * sizeof(double),
                                         j->host_signal + 2 * j->r.rank + j->turn[k], sequence,
                                         NVSHMEM_SIGNAL_SET, piece->peer, j->stream);
    }
    for (int k = 0; k < in->count; k++) {
        const int peer = in->piece[k].peer;
        nvshmemx_signal_wait_until_on_stream(j->host_signal + 2 * peer + taken[peer]++,
                                             NVSHMEM_CMP_GE, sequence, j->stream);
    }
}

static void exchange_on_stream(job *j, int parity)
{
    const uint64_t sequence = ++j->sequence;
    if (j->r.problem.alone) {
        put_alone(j, sequence);
        return;
    }
    halo_pack(&j->r, j->out, j->stream);
    for (int i = 0; i < j->r.out.message_count; i++) {
        const halo_message *m = &j->r.out.message[i];
        if (m->peer != j->r.rank) {
            nvshmemx_putmem_signal_on_stream(j->in[parity] + j->to[i], j->out + m->first,
                                             (size_t)m->points * sizeof(double),
                                             j->host_signal + 2 * j->r.rank, sequence,
                                             NVSHMEM_SIGNAL_SET, m->peer, j->stream);
        }
    }
    for (int i = 0; i < j->r.in.message_count; i++) {
        nvshmemx_signal_wait_until_on_stream(j->host_signal + 2 * j->r.in.message[i].peer,
                                             NVSHMEM_CMP_GE, sequence, j->stream);
    }
    halo_unpack(&j->r, j->in[parity], j->stream);
}

static void enqueue_round(job *j)
{
    const bool interior = j->r.problem.interior_us > 0;
    const int parity = (int)(j->round++ % 2);
    if (interior) {
        GPU(cudaEventRecord(j->fork, j->stream));
        GPU(cudaStreamWaitEvent(j->side, j->fork, 0));
        halo_interior(&j->r.problem, j->side);
    }
    if (j->device_side) {
        exchange_on_device(j, parity);
    } else {
        exchange_on_stream(j, parity);
    }
    halo_advance(&j->r, j->stream);
    if (interior) {
        GPU(cudaEventRecord(j->join, j->side));
        GPU(cudaStreamWaitEvent(j->stream, j->join, 0));
    }
}

static long rounds_on_streams(job *j, long rounds, bool device_side)
{
    j->device_side = device_side;
    for (long i = 0; i < rounds; i++) {
        enqueue_round(j);
    }
    return rounds;
}

static long puts(void *state, long rounds)
{
    return rounds_on_streams((job *)state, rounds, false);
}

static long device_side(void *state, long rounds)
{
    return rounds_on_streams((job *)state, rounds, true);
}

static long in_graph(void *state, long rounds)
{
    job *j = (job *)state;
    const long launches = (rounds + ROUNDS - 1) / ROUNDS;
    for (long i = 0; i < launches; i++) {
        GPU(cudaGraphLaunch(j->graph, j->stream));
    }
    return launches * ROUNDS;
}

static void prepare_streams(void *state, bool advances)
{
    ((job *)state)->r.advances = advances;
}

/* A graph begins with buffer 0, so all rounds before it must be over everywhere. */
static void prepare_graph(void *state, bool advances)
{
    job *j = (job *)state;
    cudaGraph_t graph;
    j->r.advances = advances;
    if (j->graph) {
        GPU(cudaGraphExecDestroy(j->graph));
    }
    nvshmem_barrier_all();
    j->round = 0;
    GPU(cudaStreamBeginCapture(j->stream, cudaStreamCaptureModeThreadLocal));
    device_side(j, ROUNDS);
    GPU(cudaStreamEndCapture(j->stream, &graph));
    GPU(cudaGraphInstantiate(&j->graph, graph, 0));
    GPU(cudaGraphDestroy(graph));
}

static void finish(void *state)
{
    GPU(cudaStreamSynchronize(((job *)state)->stream));
}

static const halo_way ways[] = {{"puts on stream", "peer", prepare_streams, puts, finish},
                                {"device side, streams", "peer", prepare_streams, device_side,
                                 finish},
                                {"device side, graph", "peer", prepare_graph, in_graph, finish}};

/* Pieces go straight into the peers' fields. */
static void find_fields(job *j)
{
    halo_pieces *out = &j->r.out.pieces;
    long landing[HALO_PIECES];
    for (int k = 0; k < out->count; k++) {
        landing[k] = halo_landing(&j->r, k, &j->turn[k]);
    }
    for (int k = 0; k < out->count; k++) {
        out->piece[k].to = landing[k];
        for (int parity = 0; parity < 2; parity++) {
            j->targets[parity].piece[k] = (double *)nvshmem_ptr(j->r.field, out->piece[k].peer);
        }
    }
}

/* Finds where my messages begin at their receivers, and the addresses of the pieces. */
static void find_targets(job *j)
{
    const halo_side *out = &j->r.out;
    for (int i = 0; i < out->message_count; i++) {
        halo_side in;
        halo_plan_side(&j->r.problem, out->message[i].peer, false, &in);
        for (int k = 0; k < in.message_count; k++) {
            j->to[i] = in.message[k].peer == j->r.rank ? in.message[k].first : j->to[i];
        }
    }
    for (int parity = 0; parity < 2; parity++) {
        targets *t = &j->targets[parity];
        memset(t, 0, sizeof(*t));
        for (int k = 0; k < out->pieces.count; k++) {
            t->piece[k] = j->r.field;
            for (int i = 0; i < out->message_count && !out->pieces.piece[k].local; i++) {
                const halo_message *m = &out->message[i];
                const long at = out->pieces.piece[k].to - m->first;
                if (at >= 0 && at < m->points) {
                    t->piece[k] =
                        (double *)nvshmem_ptr(j->in[parity], m->peer) + j->to[i] - m->first;
                }
            }
        }
        for (int i = 0; i < out->message_count; i++) {
            t->peer[t->peer_count++] = out->message[i].peer;
        }
    }
}

static void run_case(const team *t, job *j, const halo_problem *problem)
{
    halo_plan(&j->r, problem, t->rank);
    const size_t bytes =
        (size_t)team_max(t, (double)j->r.in.points) * sizeof(double) + sizeof(double);
    j->r.field = (double *)nvshmem_zeroed((size_t)j->r.field_points * sizeof(double));
    j->out = (double *)nvshmem_zeroed(bytes);
    j->in[0] = (double *)nvshmem_zeroed(bytes);
    j->in[1] = (double *)nvshmem_zeroed(bytes);
    find_targets(j);
    if (problem->alone) {
        find_fields(j);
    }
    j->round = 0;
    puts(j, 2);
    device_side(j, 2);
    finish(j);
    nvshmem_barrier_all();
    for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
        halo_measure(t, &j->r, &ways[w], "nvshmem", j);
        nvshmem_barrier_all();
    }
    GPU(cudaGraphExecDestroy(j->graph));
    j->graph = NULL;
    nvshmem_free(j->in[1]);
    nvshmem_free(j->in[0]);
    nvshmem_free(j->out);
    nvshmem_free(j->r.field);
}

static void work(team *t, void *argument)
{
    char **words = (char **)argument;
    static job j;
    int count = 0;
    nvshmem_join(t);
    GPU(cudaStreamCreateWithFlags(&j.stream, cudaStreamNonBlocking));
    GPU(cudaStreamCreateWithFlags(&j.side, cudaStreamNonBlocking));
    GPU(cudaEventCreateWithFlags(&j.fork, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&j.join, cudaEventDisableTiming));
    GPU(cudaMalloc((void **)&j.state, 2 * sizeof(uint64_t)));
    GPU(cudaMemset(j.state, 0, 2 * sizeof(uint64_t)));
    j.signal = (uint64_t *)nvshmem_zeroed(GPU_MAX * sizeof(uint64_t));
    j.host_signal = (uint64_t *)nvshmem_zeroed(2 * GPU_MAX * sizeof(uint64_t));
    while (words[count]) {
        count++;
    }
    for (int i = 0; i < count;) {
        halo_problem problem;
        int taken = halo_parse(count - i, words + i, t->size, &problem);
        if (!taken) {
            fprintf(stderr, "not a case: %s\n", words[i]);
            _exit(2);
        }
        run_case(t, &j, &problem);
        i += taken;
    }
    nvshmem_free(j.host_signal);
    nvshmem_free(j.signal);
    nvshmem_finalize();
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s GPUS CASE..., e.g. 2 ring 4096 20 box 64\n", argv[0]);
        return 2;
    }
    nvshmem_environment("1G");
    return team_run(atoi(argv[1]), true, work, argv + 2);
}
