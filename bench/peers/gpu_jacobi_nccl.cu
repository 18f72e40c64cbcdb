/* The GPU Jacobi benchmark on NCCL, one thread a GPU. Ways: the whole sweep, then the exchange of
 * border rows; or borders and exchange on one stream beside the interior on another (overlap); on
 * streams and in a graph. With a norm: a sum over the ranks after every step, in line, or by a
 * communicator of its own on a stream of its own beside the next steps (apart). On one GPU there is
 * nothing to send: the sweep stores its border rows into its own halo.
 *
 * usage: gpu_jacobi_nccl GPUS N... (each N a power of two, at least 256) */
#include "../gpu/jacobi.cuh"
#include "gpu_nccl.cuh"

typedef struct job {
    jacobi_part p;
    jacobi_shape shape[2]; /* without and with norm */
    int rank, size;
    ncclComm_t comm, norms;
    cudaStream_t stream, side, sums;
    cudaEvent_t fork, join, summed;
    bool norm, overlap, apart;
    cudaGraphExec_t graph;
} job;

typedef struct arguments {
    int count;
    char **words;
    ncclUniqueId id[2];
} arguments;

/* Between two ranks both rows go the same way: what they send first is received first. */
static void exchange(job *j, int target)
{
    const jacobi_part *p = &j->p;
    const int up = (j->rank + j->size - 1) % j->size, down = (j->rank + 1) % j->size;
    const size_t n = (size_t)p->n;
    float *a = p->a[target];
    NCCL(ncclGroupStart());
    NCCL(ncclSend(a + n, n, ncclFloat, up, j->comm, j->stream));
    NCCL(ncclSend(a + (size_t)p->rows * n, n, ncclFloat, down, j->comm, j->stream));
    NCCL(ncclRecv(a + (size_t)(p->rows + 1) * n, n, ncclFloat, down, j->comm, j->stream));
    NCCL(ncclRecv(a, n, ncclFloat, up, j->comm, j->stream));
    NCCL(ncclGroupEnd());
}

static void after(cudaStream_t waits, cudaEvent_t event, cudaStream_t for_stream)
{
    GPU(cudaEventRecord(event, for_stream));
    GPU(cudaStreamWaitEvent(waits, event, 0));
}

/* The sum over the ranks of what a step changed. */
static void reduce(job *j, double *sum)
{
    if (j->size == 1) {
        return;
    }
    if (j->apart) {
        after(j->sums, j->summed, j->stream);
    }
    NCCL(ncclAllReduce(sum, sum, 1, ncclDouble, ncclSum, j->apart ? j->norms : j->comm,
                       j->apart ? j->sums : j->stream));
}

static void step_whole(job *j, int from, double *sum)
{
    const jacobi_shape *shape = &j->shape[sum != NULL];
    jacobi_sweep s = jacobi_rows(&j->p, shape, from, 1, j->p.rows + 1, sum);
    if (j->size == 1) {
        s.above = s.an + (j->p.rows + 1) * j->p.n;
        s.below = s.an;
    }
    jacobi_relax(&s, shape, j->stream);
    if (j->size > 1) {
        exchange(j, 1 - from);
    }
}

static void step_overlapped(job *j, int from, double *sum)
{
    const jacobi_shape *shape = &j->shape[sum != NULL];
    after(j->side, j->fork, j->stream);
    jacobi_relax_border(&j->p, from, sum, j->stream);
    exchange(j, 1 - from);
    if (j->p.rows > 2) {
        jacobi_sweep s = jacobi_rows(&j->p, shape, from, 2, j->p.rows, sum);
        jacobi_relax(&s, shape, j->side);
    }
    after(j->stream, j->join, j->side);
}

/* A chunk of steps from a[0]. */
static void enqueue_chunk(job *j)
{
    if (j->norm) {
        GPU(cudaMemsetAsync(j->p.sum, 0, JACOBI_CHUNK * sizeof(double), j->stream));
    }
    for (int step = 0; step < JACOBI_CHUNK; step++) {
        double *sum = j->norm ? j->p.sum + step : NULL;
        if (j->overlap) {
            step_overlapped(j, step % 2, sum);
        } else {
            step_whole(j, step % 2, sum);
        }
        if (sum) {
            reduce(j, sum);
        }
    }
    if (j->norm && j->apart) {
        after(j->stream, j->summed, j->sums);
    }
}

static void on_streams(void *state, long chunks)
{
    for (long i = 0; i < chunks; i++) {
        enqueue_chunk((job *)state);
    }
}

static void in_graph(void *state, long chunks)
{
    job *j = (job *)state;
    for (long i = 0; i < chunks; i++) {
        GPU(cudaGraphLaunch(j->graph, j->stream));
    }
}

static void finish(void *state)
{
    GPU(cudaStreamSynchronize(((job *)state)->stream));
}

/* One setting on streams and in a graph. */
static void measure(const team *t, job *j, const char *name, const jacobi_truth *truth)
{
    char label[2][64];
    cudaGraph_t graph;
    snprintf(label[0], sizeof(label[0]), "%s, streams", name);
    snprintf(label[1], sizeof(label[1]), "%s, graph", name);
    const jacobi_way streams = {label[0], j->norm, on_streams, finish};
    const jacobi_way replay = {label[1], j->norm, in_graph, finish};
    jacobi_measure(t, &j->p, &streams, "nccl", j, truth);
    team_barrier(t);
    GPU(cudaStreamBeginCapture(j->stream, cudaStreamCaptureModeThreadLocal));
    enqueue_chunk(j);
    GPU(cudaStreamEndCapture(j->stream, &graph));
    GPU(cudaGraphInstantiate(&j->graph, graph, 0));
    team_barrier(t);
    jacobi_measure(t, &j->p, &replay, "nccl", j, truth);
    GPU(cudaGraphExecDestroy(j->graph));
    GPU(cudaGraphDestroy(graph));
}

static void run_case(const team *t, job *j, long n)
{
    static jacobi_truth truth;
    jacobi_split(&j->p, n, t->size, t->rank);
    if (t->rank == 0) {
        truth = jacobi_reference(n);
    }
    for (int i = 0; i < 2; i++) {
        GPU(cudaMalloc((void **)&j->p.a[i], (size_t)(j->p.rows + 2) * (size_t)n * sizeof(float)));
    }
    jacobi_start(&j->p);
    j->shape[0] = jacobi_tune(&j->p, false, j->stream);
    j->shape[1] = jacobi_tune(&j->p, true, j->stream);
    team_barrier(t);
    for (int way = 0; way < (t->size > 1 ? 6 : 3); way++) { /* on one GPU every other */
        const int setting = t->size > 1 ? way : way * 2;
        char name[32];
        j->norm = setting >= 2;
        j->apart = setting >= 4;
        j->overlap = setting % 2;
        if (j->apart && t->size == 1) {
            continue;
        }
        snprintf(name, sizeof(name), "%s%s", j->overlap ? "overlap" : "whole",
                 j->apart ? ", sums apart" : "");
        measure(t, j, name, &truth);
    }
    team_barrier(t);
    GPU(cudaFree(j->p.a[0]));
    GPU(cudaFree(j->p.a[1]));
}

static void work(team *t, void *argument)
{
    arguments *a = (arguments *)argument;
    static job jobs[GPU_MAX];
    job *j = &jobs[t->rank];
    j->rank = t->rank;
    j->size = t->size;
    if (t->size > 1) {
        NCCL(ncclCommInitRank(&j->comm, t->size, a->id[0], t->rank));
        NCCL(ncclCommInitRank(&j->norms, t->size, a->id[1], t->rank));
    }
    for (cudaStream_t *stream : {&j->stream, &j->side, &j->sums}) {
        GPU(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    }
    for (cudaEvent_t *event : {&j->fork, &j->join, &j->summed}) {
        GPU(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    GPU(cudaMalloc((void **)&j->p.sum, JACOBI_CHUNK * sizeof(double)));
    for (int i = 0; i < a->count; i++) {
        const long n = atol(a->words[i]);
        if (n < 256 || (n & (n - 1)) != 0) {
            fprintf(stderr, "not a size: %s\n", a->words[i]);
            _Exit(2);
        }
        run_case(t, j, n);
    }
    team_barrier(t);
    if (t->size > 1) {
        NCCL(ncclCommDestroy(j->norms));
        NCCL(ncclCommDestroy(j->comm));
    }
}

int main(int argc, char **argv)
{
    arguments a = {argc - 2, argv + 2, {}};
    if (argc < 3) {
        fprintf(stderr, "usage: %s GPUS N..., e.g. 2 256 1024\n", argv[0]);
        return 2;
    }
    setenv("NCCL_NVLS_ENABLE", "0", 1); /* no multicast */
    NCCL(ncclGetUniqueId(&a.id[0]));
    NCCL(ncclGetUniqueId(&a.id[1]));
    return team_run(atoi(argv[1]), false, work, &a);
}
