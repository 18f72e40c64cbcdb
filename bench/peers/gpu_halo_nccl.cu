/* The GPU halo benchmark on NCCL: one message a neighbour in a group of sends and receives, beside
 * the interior task on another stream; on streams, and captured in a graph of some rounds. One
 * thread a GPU.
 *
 * usage: gpu_halo_nccl GPUS CASE..., a case being "ring BYTES INTERIOR_US" or "box POINTS" */
#include "../gpu/halo.cuh"
#include "gpu_nccl.cuh"

enum { ROUNDS = 20 }; /* of a graph */

typedef struct job {
    halo_rank r;
    ncclComm_t comm;
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
    double *out, *in;
    cudaGraphExec_t graph;
} job;

typedef struct arguments {
    int count;
    char **words;
    ncclUniqueId id;
} arguments;

/* One message a neighbour, of packed pieces. */
static void exchange_packed(job *j)
{
    halo_pack(&j->r, j->out, j->stream);
    NCCL(ncclGroupStart());
    for (int i = 0; i < j->r.out.message_count; i++) {
        const halo_message *m = &j->r.out.message[i];
        NCCL(ncclSend(j->out + m->first, (size_t)m->points, ncclDouble, m->peer, j->comm,
                      j->stream));
    }
    for (int i = 0; i < j->r.in.message_count; i++) {
        const halo_message *m = &j->r.in.message[i];
        NCCL(
            ncclRecv(j->in + m->first, (size_t)m->points, ncclDouble, m->peer, j->comm, j->stream));
    }
    NCCL(ncclGroupEnd());
    halo_unpack(&j->r, j->in, j->stream);
}

/* One message a piece, from field to field; both ranks list them in the same order. */
static void exchange_alone(job *j)
{
    const halo_pieces *out = &j->r.out.pieces, *in = &j->r.in.pieces;
    NCCL(ncclGroupStart());
    for (int k = 0; k < out->count; k++) {
        NCCL(ncclSend(j->r.field + out->piece[k].from, (size_t)halo_points(&out->piece[k]),
                      ncclDouble, out->piece[k].peer, j->comm, j->stream));
    }
    for (int k = 0; k < in->count; k++) {
        NCCL(ncclRecv(j->r.field + in->piece[k].to, (size_t)halo_points(&in->piece[k]), ncclDouble,
                      in->piece[k].peer, j->comm, j->stream));
    }
    NCCL(ncclGroupEnd());
}

/* The exchange beside the interior. */
static void enqueue_round(job *j)
{
    const bool interior = j->r.problem.interior_us > 0;
    if (interior) {
        GPU(cudaEventRecord(j->fork, j->stream));
        GPU(cudaStreamWaitEvent(j->side, j->fork, 0));
        halo_interior(&j->r.problem, j->side);
    }
    if (j->r.problem.alone) {
        exchange_alone(j);
    } else {
        exchange_packed(j);
    }
    halo_advance(&j->r, j->stream);
    if (interior) {
        GPU(cudaEventRecord(j->join, j->side));
        GPU(cudaStreamWaitEvent(j->stream, j->join, 0));
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
    for (long i = 0; i < launches; i++) {
        GPU(cudaGraphLaunch(j->graph, j->stream));
    }
    return launches * ROUNDS;
}

static void prepare_streams(void *state, bool advances)
{
    ((job *)state)->r.advances = advances;
}

static void prepare_graph(void *state, bool advances)
{
    job *j = (job *)state;
    cudaGraph_t graph;
    j->r.advances = advances;
    if (j->graph) {
        GPU(cudaGraphExecDestroy(j->graph));
    }
    GPU(cudaStreamBeginCapture(j->stream, cudaStreamCaptureModeThreadLocal));
    on_streams(j, ROUNDS);
    GPU(cudaStreamEndCapture(j->stream, &graph));
    GPU(cudaGraphInstantiate(&j->graph, graph, 0));
    GPU(cudaGraphDestroy(graph));
}

static void finish(void *state)
{
    GPU(cudaStreamSynchronize(((job *)state)->stream));
}

static const halo_way ways[] = {{"streams", "peer", prepare_streams, on_streams, finish},
                                {"graph", "peer", prepare_graph, in_graph, finish}};

static void run_case(const team *t, job *j, const halo_problem *problem)
{
    void *out, *in;
    halo_plan(&j->r, problem, t->rank);
    GPU(cudaMalloc((void **)&j->r.field, (size_t)j->r.field_points * sizeof(double)));
    NCCL(ncclMemAlloc(&out, (size_t)j->r.out.points * sizeof(double)));
    NCCL(ncclMemAlloc(&in, (size_t)j->r.in.points * sizeof(double)));
    j->out = (double *)out;
    j->in = (double *)in;
    on_streams(j, 2); /* connections are made by the first exchange, not while capturing */
    finish(j);
    team_barrier(t);
    for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
        halo_measure(t, &j->r, &ways[w], "nccl", j);
    }
    GPU(cudaGraphExecDestroy(j->graph));
    j->graph = NULL;
    team_barrier(t);
    NCCL(ncclMemFree(in));
    NCCL(ncclMemFree(out));
    GPU(cudaFree(j->r.field));
}

static void work(team *t, void *argument)
{
    const arguments *a = (const arguments *)argument;
    static job jobs[GPU_MAX];
    job *j = &jobs[t->rank];
    NCCL(ncclCommInitRank(&j->comm, t->size, a->id, t->rank));
    GPU(cudaStreamCreateWithFlags(&j->stream, cudaStreamNonBlocking));
    GPU(cudaStreamCreateWithFlags(&j->side, cudaStreamNonBlocking));
    GPU(cudaEventCreateWithFlags(&j->fork, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&j->join, cudaEventDisableTiming));
    for (int i = 0; i < a->count;) {
        halo_problem problem;
        int taken = halo_parse(a->count - i, a->words + i, t->size, &problem);
        if (!taken) {
            fprintf(stderr, "not a case: %s\n", a->words[i]);
            _Exit(2);
        }
        run_case(t, j, &problem);
        i += taken;
    }
    team_barrier(t);
    NCCL(ncclCommDestroy(j->comm));
}

int main(int argc, char **argv)
{
    arguments a = {argc - 2, argv + 2, {}};
    if (argc < 4) {
        fprintf(stderr, "usage: %s GPUS CASE..., e.g. 2 ring 4096 20 box 64\n", argv[0]);
        return 2;
    }
    setenv("NCCL_NVLS_ENABLE", "0", 1); /* no multicast */
    NCCL(ncclGetUniqueId(&a.id));
    return team_run(atoi(argv[1]), false, work, &a);
}
