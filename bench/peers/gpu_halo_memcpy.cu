/* The GPU halo benchmark on CUDA's own copies: one process and one thread for all GPUs, one copy a
 * neighbour by the copy engines, events between the GPUs; enqueued on streams, and captured in one
 * graph of some rounds. Copies are cudaMemcpyPeerAsync; where a capture refuses these (driver 580
 * does), the graph has cudaMemcpyAsync between the same addresses, and its row says so. Buffers for
 * packed data are double, so that a copy waits for its sender alone: whoever packs round k has
 * unpacked the peer's data of round k - 1, and the peer packed these after it had unpacked round
 * k - 2.
 *
 * usage: gpu_halo_memcpy GPUS [CASE...], a case being "ring BYTES INTERIOR_US" or "box POINTS" */
#include "../gpu/halo_measure.cuh"

typedef struct part {
    halo_rank r;
    double *out[2], *in[2];
    long landing[HALO_PIECES]; /* of a piece in the peer's field */
} part;

/* Of a GPU, for all cases. */
typedef struct gpu_lanes {
    cudaStream_t stream, side, copies[GPU_MAX];
    cudaEvent_t fork, join, packed, landed[GPU_MAX]; /* landed: of what this rank sends */
} gpu_lanes;

typedef struct lanes {
    int gpus;
    gpu_lanes of[GPU_MAX];
    cudaEvent_t begin;
    bool plain_copies; /* cudaMemcpyAsync in captures */
} lanes;

typedef struct job {
    halo_stage stage; /* first */
    lanes *on;
    part part[GPU_MAX];
    bool capturing, own_streams; /* copies on streams of their own, or after the packing */
    long round;
} job;

static void enqueue_copy(job *j, int rank, int peer, double *to, const double *from, long points)
{
    gpu_lanes *l = &j->on->of[rank];
    cudaStream_t stream = j->own_streams ? l->copies[peer] : l->stream;
    const size_t bytes = (size_t)points * sizeof(double);
    if (j->own_streams) {
        GPU(cudaStreamWaitEvent(stream, l->packed, 0));
    }
    if (j->capturing && j->on->plain_copies) {
        GPU(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    } else {
        GPU(cudaMemcpyPeerAsync(to, peer, from, rank, bytes, stream));
    }
    GPU(cudaEventRecord(l->landed[peer], stream));
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
    const part *p = &j->part[rank];
    GPU(cudaEventRecord(j->on->of[rank].packed, j->on->of[rank].stream));
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
    const part *p = &j->part[rank];
    const gpu_lanes *l = &j->on->of[rank];
    GPU(cudaSetDevice(rank));
    if (p->r.problem.interior_us > 0) {
        GPU(cudaEventRecord(l->fork, l->stream));
        GPU(cudaStreamWaitEvent(l->side, l->fork, 0));
        halo_interior(&p->r.problem, l->side);
        GPU(cudaEventRecord(l->join, l->side));
    }
    if (!p->r.problem.alone) {
        halo_pack(&p->r, p->out[parity], l->stream);
    }
    enqueue_copies(j, rank, parity);
}

static void enqueue_unpack(job *j, int rank, int parity)
{
    const part *p = &j->part[rank];
    const gpu_lanes *l = &j->on->of[rank];
    GPU(cudaSetDevice(rank));
    for (int i = 0; i < p->r.in.message_count; i++) {
        GPU(cudaStreamWaitEvent(l->stream, j->on->of[p->r.in.message[i].peer].landed[rank], 0));
    }
    if (!p->r.problem.alone) {
        halo_unpack(&p->r, p->in[parity], l->stream);
    } else if (j->own_streams) { /* what was sent from the field may change again */
        for (int k = 0; k < p->r.out.pieces.count; k++) {
            GPU(cudaStreamWaitEvent(l->stream, l->landed[p->r.out.pieces.piece[k].peer], 0));
        }
    }
    halo_advance(&p->r, l->stream);
    if (p->r.problem.interior_us > 0) {
        GPU(cudaStreamWaitEvent(l->stream, l->join, 0));
    }
}

/* Two ways with copies after the packing, two with copies apart. */
static void one_round(halo_stage *stage, int way)
{
    job *j = (job *)stage;
    const int parity = (int)(j->round++ % 2);
    j->own_streams = way >= 2;
    for (int rank = 0; rank < j->on->gpus; rank++) {
        enqueue_sends(j, rank, parity);
    }
    for (int rank = 0; rank < j->on->gpus; rank++) {
        enqueue_unpack(j, rank, parity);
    }
    GPU(cudaSetDevice(0));
}

/* Copy streams are joined into `stream` by the peer's unpacking, in every round. */
static void finish(halo_stage *stage)
{
    const job *j = (const job *)stage;
    for (int rank = 0; rank < j->on->gpus; rank++) {
        GPU(cudaSetDevice(rank));
        GPU(cudaStreamSynchronize(j->on->of[rank].stream));
    }
    GPU(cudaSetDevice(0));
}

static void advance(halo_stage *stage, bool advances)
{
    job *j = (job *)stage;
    for (int rank = 0; rank < j->on->gpus; rank++) {
        j->part[rank].r.advances = advances;
    }
}

static cudaGraphExec_t record(halo_stage *stage, int way)
{
    job *j = (job *)stage;
    lanes *on = j->on;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    GPU(cudaStreamBeginCapture(stage->stream, cudaStreamCaptureModeRelaxed));
    GPU(cudaEventRecord(on->begin, stage->stream));
    for (int rank = 1; rank < on->gpus; rank++) {
        GPU(cudaStreamWaitEvent(on->of[rank].stream, on->begin, 0));
    }
    j->round = 0;
    j->capturing = true;
    for (int i = 0; i < HALO_ROUNDS; i++) {
        one_round(stage, way);
    }
    j->capturing = false;
    for (int rank = 1; rank < on->gpus; rank++) {
        GPU(cudaSetDevice(rank));
        GPU(cudaEventRecord(on->of[rank].fork, on->of[rank].stream));
        GPU(cudaStreamWaitEvent(stage->stream, on->of[rank].fork, 0));
    }
    GPU(cudaSetDevice(0));
    GPU(cudaStreamEndCapture(stage->stream, &graph));
    GPU(cudaGraphInstantiate(&replay, graph, 0));
    GPU(cudaGraphDestroy(graph));
    return replay;
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

static halo_stage *open_case(const team *t, const halo_problem *problem, void *user)
{
    job *j = (job *)calloc(1, sizeof(*j));
    (void)t;
    if (!j) {
        _Exit(GPU_EXIT);
    }
    j->on = (lanes *)user;
    j->stage.stream = j->on->of[0].stream;
    for (int rank = 0; rank < j->on->gpus; rank++) {
        open_part(j, rank, problem);
    }
    GPU(cudaSetDevice(0));
    one_round(&j->stage, 0);
    one_round(&j->stage, 2);
    finish(&j->stage);
    return &j->stage;
}

static void fill(halo_stage *stage, uint64_t salt)
{
    const job *j = (const job *)stage;
    for (int rank = 0; rank < j->on->gpus; rank++) {
        GPU(cudaSetDevice(rank));
        halo_start(&j->part[rank].r, salt);
    }
    GPU(cudaSetDevice(0));
}

static uint64_t wrong(halo_stage *stage, uint64_t salt, long rounds)
{
    const job *j = (const job *)stage;
    uint64_t sum = 0;
    for (int rank = 0; rank < j->on->gpus; rank++) {
        GPU(cudaSetDevice(rank));
        sum += halo_wrong(&j->part[rank].r, salt, rounds);
    }
    GPU(cudaSetDevice(0));
    return sum;
}

static void open_lanes(lanes *on, int rank)
{
    gpu_lanes *l = &on->of[rank];
    GPU(cudaSetDevice(rank));
    for (int peer = 0; peer < on->gpus; peer++) {
        if (peer != rank) {
            GPU(cudaDeviceEnablePeerAccess(peer, 0));
        }
        GPU(cudaStreamCreateWithFlags(&l->copies[peer], cudaStreamNonBlocking));
        GPU(cudaEventCreateWithFlags(&l->landed[peer], cudaEventDisableTiming));
    }
    GPU(cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking));
    GPU(cudaStreamCreateWithFlags(&l->side, cudaStreamNonBlocking));
    GPU(cudaEventCreateWithFlags(&l->fork, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&l->join, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&l->packed, cudaEventDisableTiming));
}

/* Whether a capture takes cudaMemcpyPeerAsync. What fails here must leave nothing behind. */
static bool captures_peer_copies(const lanes *on)
{
    const int peer = on->gpus > 1 ? 1 : 0;
    cudaStream_t stream = on->of[0].stream;
    cudaGraph_t graph = NULL;
    void *here, *there;
    GPU(cudaSetDevice(peer));
    GPU(cudaMalloc(&there, sizeof(double)));
    GPU(cudaSetDevice(0));
    GPU(cudaMalloc(&here, sizeof(double)));
    GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    cudaError_t error = cudaMemcpyPeerAsync(there, peer, here, 0, sizeof(double), stream);
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    error = error ? error : ended;
    if (graph) {
        cudaGraphDestroy(graph);
    }
    cudaGetLastError();
    GPU(cudaFree(here));
    GPU(cudaFree(there));
    if (error) {
        fprintf(stderr, "cudaMemcpyPeerAsync in a capture: %s\n", cudaGetErrorString(error));
    }
    return !error;
}

static void work(team *t, void *argument)
{
    static lanes on;
    static halo_way ways[] = {{"streams", false},
                              {"graph", true},
                              {"streams, copies apart", false},
                              {"graph, copies apart", true}};
    char **words = (char **)argument;
    on.gpus = atoi(words[1]);
    for (int rank = 0; rank < on.gpus; rank++) {
        open_lanes(&on, rank);
    }
    GPU(cudaSetDevice(0));
    GPU(cudaEventCreateWithFlags(&on.begin, cudaEventDisableTiming));
    on.plain_copies = !captures_peer_copies(&on);
    if (on.plain_copies) {
        ways[1].name = "graph, MemcpyAsync";
        ways[3].name = "graph, MemcpyAsync apart";
    }
    const halo_peer peer = {"memcpy", ways,      sizeof(ways) / sizeof(ways[0]),
                            on.gpus,  &on,       open_case,
                            advance,  one_round, record,
                            finish,   fill,      wrong};
    halo_serve(t, &peer, words + 2);
}

int main(int argc, char **argv)
{
    if (argc < 2 || atoi(argv[1]) < 1 || atoi(argv[1]) > GPU_MAX) {
        fprintf(stderr, "usage: %s GPUS [CASE...], e.g. 2 \"ring 4096 20\" \"box 64\"\n", argv[0]);
        return 2;
    }
    return team_run(1, false, work, argv);
}
