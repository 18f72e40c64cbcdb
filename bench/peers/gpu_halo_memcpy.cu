/* The GPU halo benchmark on CUDA's own copies: one process and one thread for all GPUs, one copy a
 * neighbour by the copy engines, events between the GPUs; enqueued on streams, and captured in one
 * graph of some rounds. Buffers for packed data are double, so that a copy waits for its sender
 * alone: whoever packs round k has unpacked the peer's data of round k - 1, and the peer packed
 * these after it had unpacked round k - 2.
 *
 * usage: gpu_halo_memcpy GPUS CASE..., a case being "ring BYTES INTERIOR_US" or "box POINTS" */
#include "../gpu/halo.cuh"

enum { ROUNDS = 20 }; /* of a graph; even: buffers alternate */

typedef struct part {
    halo_rank r;
    cudaStream_t stream, side, copies[GPU_MAX];
    cudaEvent_t fork, join, packed, landed[GPU_MAX]; /* landed: of what this rank sends */
    double *out[2], *in[2];
    long landing[HALO_PIECES]; /* of a piece in the peer's field */
} part;

typedef struct job {
    int gpus;
    part part[GPU_MAX];
    bool exchanges, own_streams; /* copies on streams of their own, or after the packing */
    cudaGraphExec_t graph;
    cudaEvent_t begin, end;
    long round;
} job;

static void enqueue_copy(job *j, int rank, int peer, double *to, const double *from, long points)
{
    part *p = &j->part[rank];
    cudaStream_t stream = j->own_streams ? p->copies[peer] : p->stream;
    if (j->own_streams) {
        GPU(cudaStreamWaitEvent(stream, p->packed, 0));
    }
    GPU(cudaMemcpyPeerAsync(to, peer, from, rank, (size_t)points * sizeof(double), stream));
    GPU(cudaEventRecord(p->landed[peer], stream));
}

/* Where a message of `rank` begins in the peer's packed buffer. */
static long landing(const job *j, int rank, int peer)
{
    const halo_side *in = &j->part[peer].r.in;
    for (int k = 0; k < in->message_count; k++) {
        if (in->message[k].peer == rank) {
            return in->message[k].first;
        }
    }
    return 0;
}

static void enqueue_copies(job *j, int rank, int parity)
{
    part *p = &j->part[rank];
    GPU(cudaEventRecord(p->packed, p->stream));
    if (p->r.problem.alone) {
        for (int k = 0; k < p->r.out.pieces.count; k++) {
            const halo_piece *piece = &p->r.out.pieces.piece[k];
            enqueue_copy(j, rank, piece->peer, j->part[piece->peer].r.field + p->landing[k],
                         p->r.field + piece->from, halo_points(piece));
        }
        return;
    }
    for (int i = 0; i < p->r.out.message_count; i++) {
        const halo_message *m = &p->r.out.message[i];
        enqueue_copy(j, rank, m->peer, j->part[m->peer].in[parity] + landing(j, rank, m->peer),
                     p->out[parity] + m->first, m->points);
    }
}

/* Rank `rank` packs, and its copies follow. */
static void enqueue_sends(job *j, int rank, int parity)
{
    part *p = &j->part[rank];
    GPU(cudaSetDevice(rank));
    if (p->r.problem.interior_us > 0) {
        GPU(cudaEventRecord(p->fork, p->stream));
        GPU(cudaStreamWaitEvent(p->side, p->fork, 0));
        halo_interior(&p->r.problem, p->side);
        GPU(cudaEventRecord(p->join, p->side));
    }
    if (!p->r.problem.alone) {
        halo_pack(&p->r, p->out[parity], p->stream);
    }
    if (j->exchanges) {
        enqueue_copies(j, rank, parity);
    }
}

static void enqueue_unpack(job *j, int rank, int parity)
{
    part *p = &j->part[rank];
    GPU(cudaSetDevice(rank));
    for (int i = 0; i < p->r.in.message_count && j->exchanges; i++) {
        GPU(cudaStreamWaitEvent(p->stream, j->part[p->r.in.message[i].peer].landed[rank], 0));
    }
    if (!p->r.problem.alone) {
        halo_unpack(&p->r, p->in[parity], p->stream);
    } else if (j->own_streams) { /* what was sent from the field may change again */
        for (int k = 0; k < p->r.out.pieces.count; k++) {
            GPU(cudaStreamWaitEvent(p->stream, p->landed[p->r.out.pieces.piece[k].peer], 0));
        }
    }
    halo_advance(&p->r, p->stream);
    if (p->r.problem.interior_us > 0) {
        GPU(cudaStreamWaitEvent(p->stream, p->join, 0));
    }
}

static void enqueue_round(job *j)
{
    const int parity = (int)(j->round++ % 2);
    for (int rank = 0; rank < j->gpus; rank++) {
        enqueue_sends(j, rank, parity);
    }
    for (int rank = 0; rank < j->gpus; rank++) {
        enqueue_unpack(j, rank, parity);
    }
}

static long on_streams(void *state, long rounds)
{
    for (long i = 0; i < rounds; i++) {
        enqueue_round((job *)state);
    }
    return rounds;
}

static long in_graph(void *state, long rounds)
{
    job *j = (job *)state;
    const long launches = (rounds + ROUNDS - 1) / ROUNDS;
    GPU(cudaSetDevice(0));
    for (long i = 0; i < launches; i++) {
        GPU(cudaGraphLaunch(j->graph, j->part[0].stream));
    }
    return launches * ROUNDS;
}

/* Copy streams are joined into `stream` by the peer's unpacking, in every round. */
static void finish(void *state)
{
    job *j = (job *)state;
    for (int rank = 0; rank < j->gpus; rank++) {
        GPU(cudaSetDevice(rank));
        GPU(cudaStreamSynchronize(j->part[rank].stream));
    }
    GPU(cudaSetDevice(0));
}

static void prepare_streams(void *state, bool advances)
{
    job *j = (job *)state;
    for (int rank = 0; rank < j->gpus; rank++) {
        j->part[rank].r.advances = advances;
    }
}

static void prepare_graph(void *state, bool advances)
{
    job *j = (job *)state;
    cudaGraph_t graph;
    prepare_streams(j, advances);
    if (j->graph) {
        GPU(cudaGraphExecDestroy(j->graph));
    }
    GPU(cudaSetDevice(0));
    GPU(cudaStreamBeginCapture(j->part[0].stream, cudaStreamCaptureModeRelaxed));
    GPU(cudaEventRecord(j->begin, j->part[0].stream));
    for (int rank = 1; rank < j->gpus; rank++) {
        GPU(cudaStreamWaitEvent(j->part[rank].stream, j->begin, 0));
    }
    j->round = 0;
    on_streams(j, ROUNDS);
    for (int rank = 1; rank < j->gpus; rank++) {
        GPU(cudaSetDevice(rank));
        GPU(cudaEventRecord(j->part[rank].fork, j->part[rank].stream));
        GPU(cudaStreamWaitEvent(j->part[0].stream, j->part[rank].fork, 0));
    }
    GPU(cudaSetDevice(0));
    GPU(cudaStreamEndCapture(j->part[0].stream, &graph));
    GPU(cudaGraphInstantiate(&j->graph, graph, 0));
    GPU(cudaGraphDestroy(graph));
}

static void open_part(job *j, int rank, const halo_problem *problem)
{
    part *p = &j->part[rank];
    GPU(cudaSetDevice(rank));
    halo_plan(&p->r, problem, rank);
    for (int k = 0, turn; k < p->r.out.pieces.count; k++) {
        p->landing[k] = halo_landing(&p->r, k, &turn);
    }
    GPU(cudaMalloc((void **)&p->r.field, (size_t)p->r.field_points * sizeof(double)));
    for (int i = 0; i < 2; i++) {
        GPU(cudaMalloc((void **)&p->out[i], (size_t)p->r.out.points * sizeof(double) + 1));
        GPU(cudaMalloc((void **)&p->in[i], (size_t)p->r.in.points * sizeof(double) + 1));
    }
}

static void close_part(part *p, int rank)
{
    GPU(cudaSetDevice(rank));
    GPU(cudaFree(p->r.field));
    for (int i = 0; i < 2; i++) {
        GPU(cudaFree(p->out[i]));
        GPU(cudaFree(p->in[i]));
    }
}

/* Fills, runs and checks all parts; then times, as halo_measure does for one rank a thread. */
static void measure(job *j, const halo_way *way)
{
    bench_result result = {
        "gpu_halo", j->part[0].r.problem.name, "memcpy", way->name, way->kind, 0, {0}, true, 0};
    double cpu_ns[BENCH_BATCHES];
    long rounds = 100;
    way->prepare(j, true);
    for (uint64_t salt = 1; salt <= HALO_SALTS && j->exchanges; salt++) {
        for (int rank = 0; rank < j->gpus; rank++) {
            GPU(cudaSetDevice(rank));
            halo_start(&j->part[rank].r, salt);
        }
        const long done = way->enqueue(j, (long)salt);
        way->finish(j);
        for (int rank = 0; rank < j->gpus; rank++) {
            GPU(cudaSetDevice(rank));
            result.verified = halo_wrong(&j->part[rank].r, salt, done) == 0 && result.verified;
        }
    }
    way->prepare(j, false);
    for (int batch = -2; batch < BENCH_BATCHES; batch++) {
        const double start = bench_now_ns();
        const long done = way->enqueue(j, rounds);
        const double enqueued = bench_now_ns();
        way->finish(j);
        const double ns = (bench_now_ns() - start) / (double)done;
        if (batch < 0) {
            rounds = bench_repetitions(ns, bench_budget_ns());
            continue;
        }
        result.ns[batch] = ns;
        cpu_ns[batch] = (enqueued - start) / (double)done;
        result.batch_count = batch + 1;
    }
    team_print(&result, bench_median(cpu_ns, BENCH_BATCHES), "");
}

static const halo_way ways[][2] = {
    {{"streams", "peer", prepare_streams, on_streams, finish},
     {"graph", "peer", prepare_graph, in_graph, finish}},
    {{"streams, copies apart", "peer", prepare_streams, on_streams, finish},
     {"graph, copies apart", "peer", prepare_graph, in_graph, finish}},
    {{"streams, no exchange", "floor", prepare_streams, on_streams, finish},
     {"graph, no exchange", "floor", prepare_graph, in_graph, finish}},
};

static void run_case(job *j, const halo_problem *problem)
{
    for (int rank = 0; rank < j->gpus; rank++) {
        open_part(j, rank, problem);
    }
    for (int kind = 0; kind < (problem->alone ? 2 : 3); kind++) {
        j->exchanges = kind < 2;
        j->own_streams = kind == 1;
        on_streams(j, 2);
        finish(j);
        measure(j, &ways[kind][0]);
        measure(j, &ways[kind][1]);
        GPU(cudaGraphExecDestroy(j->graph));
        j->graph = NULL;
    }
    for (int rank = 0; rank < j->gpus; rank++) {
        close_part(&j->part[rank], rank);
    }
}

static void open_streams(job *j, int rank)
{
    part *p = &j->part[rank];
    GPU(cudaSetDevice(rank));
    for (int peer = 0; peer < j->gpus; peer++) {
        if (peer != rank) {
            GPU(cudaDeviceEnablePeerAccess(peer, 0));
        }
        GPU(cudaStreamCreateWithFlags(&p->copies[peer], cudaStreamNonBlocking));
        GPU(cudaEventCreateWithFlags(&p->landed[peer], cudaEventDisableTiming));
    }
    GPU(cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    GPU(cudaStreamCreateWithFlags(&p->side, cudaStreamNonBlocking));
    GPU(cudaEventCreateWithFlags(&p->fork, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&p->join, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&p->packed, cudaEventDisableTiming));
}

int main(int argc, char **argv)
{
    static job j;
    if (argc < 4 || atoi(argv[1]) < 1 || atoi(argv[1]) > GPU_MAX) {
        fprintf(stderr, "usage: %s GPUS CASE..., e.g. 2 ring 4096 20 box 64\n", argv[0]);
        return 2;
    }
    j.gpus = atoi(argv[1]);
    bench_pin(0);
    for (int rank = 0; rank < j.gpus; rank++) {
        open_streams(&j, rank);
    }
    GPU(cudaSetDevice(0));
    GPU(cudaEventCreateWithFlags(&j.begin, cudaEventDisableTiming));
    for (int i = 2; i < argc;) {
        halo_problem problem;
        int taken = halo_parse(argc - i, argv + i, j.gpus, &problem);
        if (!taken) {
            fprintf(stderr, "not a case: %s\n", argv[i]);
            return 2;
        }
        run_case(&j, &problem);
        i += taken;
    }
    return 0;
}
