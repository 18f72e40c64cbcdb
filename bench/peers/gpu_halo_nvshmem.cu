/* The GPU halo benchmark on NVSHMEM, one process a GPU. Ways: a put with signal on the stream for
 * each neighbour and a wait on the stream; and, as fast as its device side allows, a packing kernel
 * that stores straight into the neighbours' buffers and signals, and an unpacking kernel that
 * waits, on streams and in a graph. Buffers are double, as in gpu_halo_memcpy.cu.
 *
 * usage: gpu_halo_nvshmem GPUS [CASE...], a case being "ring BYTES INTERIOR_US" or "box POINTS" */
#include "gpu_halo_rank.cuh"
#include "gpu_nvshmem.cuh"

/* Where each piece goes: into a peer's buffer, or for local ones into the field. */
typedef struct targets {
    double *piece[HALO_PIECES];
    int peer[GPU_MAX], peer_count;
} targets;

/* Flags and counters belong to a case: a peer counts the rounds that it has signalled, and pairs of
 * ranks differ from case to case. */
typedef struct job {
    halo_one one;        /* first */
    double *out, *in[2]; /* symmetric */
    long to[GPU_MAX];    /* by message: where it begins in the peer's buffer */
    targets targets[2];
    int turn[HALO_PIECES]; /* exchange alone: which of the pieces between two ranks it is */
    uint64_t *signal;      /* symmetric: by sender, counts messages */
    uint64_t *host_signal; /* symmetric: the same for the puts on the stream, two a sender */
    uint64_t *state;       /* blocks that arrived, rounds sent */
    uint64_t sequence;     /* rounds of the puts on the stream */
    long round;
} job;

enum { ARRIVED, SENT }; /* of `state` */

/* Packs into the peers' memory; the last block signals every peer. */
static __global__ void pack_and_put(halo_pieces pieces, targets to, double *field, uint64_t *signal,
                                    uint64_t *state, int rank)
{
    halo_copy_piece(pieces.piece[blockIdx.y], to.piece[blockIdx.y], field);
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
    halo_copy_piece(pieces.piece[blockIdx.y], field, packed);
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
    const halo_rank *r = &j->one.r;
    cudaStream_t stream = j->one.on.stream;
    pack_and_put<<<halo_grid(&r->out.pieces), HALO_THREADS, 0, stream>>>(r->out.pieces, *to,
                                                                         r->field, j->signal,
                                                                         j->state, r->rank);
    if (r->problem.alone) {
        wait_alone<<<1, 32, 0, stream>>>(*to, j->signal, j->state);
    } else if (r->in.pieces.count > 0) {
        wait_and_unpack<<<halo_grid(&r->in.pieces), HALO_THREADS, 0, stream>>>(r->in.pieces, *to,
                                                                               r->field,
                                                                               j->in[parity],
                                                                               j->signal, j->state);
    }
    GPU(cudaGetLastError());
}

/* Each piece from field to field, with a signal of its own. */
static void put_alone(job *j, uint64_t sequence)
{
    const halo_rank *r = &j->one.r;
    const halo_pieces *out = &r->out.pieces, *in = &r->in.pieces;
    int taken[GPU_MAX] = {0};
    for (int k = 0; k < out->count; k++) {
        const halo_piece *piece = &out->piece[k];
        nvshmemx_putmem_signal_on_stream(r->field + piece->to, r->field + piece->from,
                                         (size_t)halo_points(piece) * sizeof(double),
                                         j->host_signal + 2 * r->rank + j->turn[k], sequence,
                                         NVSHMEM_SIGNAL_SET, piece->peer, j->one.on.stream);
    }
    for (int k = 0; k < in->count; k++) {
        const int peer = in->piece[k].peer;
        nvshmemx_signal_wait_until_on_stream(j->host_signal + 2 * peer + taken[peer]++,
                                             NVSHMEM_CMP_GE, sequence, j->one.on.stream);
    }
}

static void exchange_on_stream(job *j, int parity)
{
    const uint64_t sequence = ++j->sequence;
    const halo_rank *r = &j->one.r;
    cudaStream_t stream = j->one.on.stream;
    if (r->problem.alone) {
        put_alone(j, sequence);
        return;
    }
    halo_pack(r, j->out, stream);
    for (int i = 0; i < r->out.message_count; i++) {
        const halo_message *m = &r->out.message[i];
        nvshmemx_putmem_signal_on_stream(j->in[parity] + j->to[i], j->out + m->first,
                                         (size_t)m->points * sizeof(double),
                                         j->host_signal + 2 * r->rank, sequence, NVSHMEM_SIGNAL_SET,
                                         m->peer, stream);
    }
    for (int i = 0; i < r->in.message_count; i++) {
        nvshmemx_signal_wait_until_on_stream(j->host_signal + 2 * r->in.message[i].peer,
                                             NVSHMEM_CMP_GE, sequence, stream);
    }
    halo_unpack(r, j->in[parity], stream);
}

enum { PUTS }; /* the first of the ways; the others work on the device */
static const halo_way ways[] = {{"puts on stream", false},
                                {"device side, streams", false},
                                {"device side, graph", true}};

static void one_round(halo_stage *stage, int way)
{
    job *j = (job *)stage;
    const int parity = (int)(j->round++ % 2);
    halo_one_begin(&j->one);
    if (way == PUTS) {
        exchange_on_stream(j, parity);
    } else {
        exchange_on_device(j, parity);
    }
    halo_one_end(&j->one);
}

/* A graph begins with buffer 0, so all rounds before it must be over everywhere. */
static cudaGraphExec_t record(halo_stage *stage, int way)
{
    nvshmem_barrier_all();
    ((job *)stage)->round = 0;
    return halo_one_record(stage, way, one_round);
}

/* Pieces go straight into the peers' fields. */
static void find_fields(job *j)
{
    halo_rank *r = &j->one.r;
    halo_pieces *out = &r->out.pieces;
    long landing[HALO_PIECES];
    for (int k = 0; k < out->count; k++) {
        landing[k] = halo_landing(r, k, &j->turn[k]);
    }
    for (int k = 0; k < out->count; k++) {
        out->piece[k].to = landing[k];
        for (int parity = 0; parity < 2; parity++) {
            j->targets[parity].piece[k] = (double *)nvshmem_ptr(r->field, out->piece[k].peer);
        }
    }
}

/* The address of a packed piece in its receiver's buffer, less where it begins in my own. */
static double *find_target(const job *j, int piece, int parity)
{
    const halo_side *out = &j->one.r.out;
    for (int i = 0; i < out->message_count && !out->pieces.piece[piece].local; i++) {
        const halo_message *m = &out->message[i];
        const long at = out->pieces.piece[piece].to - m->first;
        if (at >= 0 && at < m->points) {
            return (double *)nvshmem_ptr(j->in[parity], m->peer) + j->to[i] - m->first;
        }
    }
    return j->one.r.field;
}

/* Finds where my messages begin at their receivers, and the addresses of the pieces. */
static void find_targets(job *j)
{
    const halo_side *out = &j->one.r.out;
    for (int i = 0; i < out->message_count; i++) {
        halo_side in;
        halo_plan_side(&j->one.r.problem, out->message[i].peer, false, &in);
        for (int k = 0; k < in.message_count; k++) {
            j->to[i] = in.message[k].peer == j->one.r.rank ? in.message[k].first : j->to[i];
        }
    }
    for (int parity = 0; parity < 2; parity++) {
        targets *t = &j->targets[parity];
        for (int k = 0; k < out->pieces.count; k++) {
            t->piece[k] = find_target(j, k, parity);
        }
        for (int i = 0; i < out->message_count; i++) {
            t->peer[t->peer_count++] = out->message[i].peer;
        }
    }
}

static halo_stage *open_case(const team *t, const halo_problem *problem, void *user)
{
    job *j = (job *)calloc(1, sizeof(*j));
    if (!j) {
        _exit(GPU_EXIT);
    }
    halo_one_open(&j->one, problem, t->rank, (const halo_streams *)user);
    const size_t bytes =
        (size_t)team_max(t, (double)j->one.r.in.points) * sizeof(double) + sizeof(double);
    j->one.r.field = (double *)nvshmem_zeroed((size_t)j->one.r.field_points * sizeof(double));
    j->out = (double *)nvshmem_zeroed(bytes);
    j->in[0] = (double *)nvshmem_zeroed(bytes);
    j->in[1] = (double *)nvshmem_zeroed(bytes);
    j->signal = (uint64_t *)nvshmem_zeroed(GPU_MAX * sizeof(uint64_t));
    j->host_signal = (uint64_t *)nvshmem_zeroed(2 * GPU_MAX * sizeof(uint64_t));
    GPU(cudaMalloc((void **)&j->state, 2 * sizeof(uint64_t)));
    GPU(cudaMemset(j->state, 0, 2 * sizeof(uint64_t)));
    GPU(cudaDeviceSynchronize());
    find_targets(j);
    if (problem->alone) {
        find_fields(j);
    }
    nvshmem_barrier_all();
    return &j->one.stage;
}

static void work(team *t, void *argument)
{
    nvshmem_join(t);
    halo_streams on = halo_open_streams();
    const halo_peer peer = {"nvshmem",        ways,          sizeof(ways) / sizeof(ways[0]),
                            t->size,          &on,           open_case,
                            halo_one_advance, one_round,     record,
                            halo_one_finish,  halo_one_fill, halo_one_wrong};
    halo_serve(t, &peer, (char **)argument);
    nvshmem_barrier_all();
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s GPUS [CASE...], e.g. 2 \"ring 4096 20\" \"box 64\"\n", argv[0]);
        return 2;
    }
    nvshmem_environment("3G");
    return team_run(atoi(argv[1]), true, work, argv + 2);
}
