/* The GPU Jacobi benchmark on NVSHMEM, one process a GPU. The sweep stores its border rows straight
 * into the neighbours' halos. Ways: a kernel of its own that signals both neighbours and waits for
 * them after every sweep (signals apart), or waits and signals in the sweep's border blocks
 * (fused); on streams and in a graph. With a norm: every rank puts its sum at every other, signals,
 * waits and adds up; in line, or beside the next steps on a stream of its own (apart).
 *
 * usage: gpu_jacobi_nvshmem GPUS N... (each N a power of two, at least 256) */
#include "../gpu/jacobi.cuh"
#include "gpu_nvshmem.cuh"

enum { UP, DOWN, SIDES };

/* Flags of one rank. Counters count steps and are never reset. */
typedef struct jacobi_flags {
    uint64_t *signal;  /* symmetric: by side, raised by the neighbour there */
    uint64_t *sums;    /* symmetric: by rank, raised by that rank */
    double *gathered;  /* symmetric: [2][ranks] */
    uint64_t *sent;    /* by side: steps signalled; then the norms */
    unsigned *arrived; /* by side: blocks of this step */
    int neighbour[SIDES];
    int rank, size;
} jacobi_flags;

enum { SENT_NORMS = SIDES };

typedef struct job {
    jacobi_part p;
    jacobi_shape shape[2]; /* without and with norm */
    jacobi_flags f;
    float *above[2], *below[2]; /* where border rows go, by array */
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
    bool norm, fused, apart;
    cudaGraphExec_t graph;
} job;

/* The neighbour above gets the signal of its lower side, and the other way round. */
static __device__ inline void signal_side(const jacobi_flags &f, int side)
{
    f.sent[side]++;
    __threadfence_system();
    nvshmemx_signal_op(f.signal + (1 - side), 1, NVSHMEM_SIGNAL_ADD, f.neighbour[side]);
}

/* Whether this block holds the side's border row. */
static __device__ inline bool at_side(int side)
{
    return blockIdx.y == (side == UP ? 0 : gridDim.y - 1);
}

/* A sweep whose border blocks wait for the neighbour's last step, and signal after the last of them
 * is done. Whoever has been signalled may also overwrite the halo that the neighbour read. */
template <bool NORM> static __global__ void fused_sweep(jacobi_sweep s, jacobi_flags f)
{
    const int thread = threadIdx.y * blockDim.x + threadIdx.x;
    if (thread < SIDES && at_side(thread)) {
        nvshmem_signal_wait_until(f.signal + thread, NVSHMEM_CMP_GE, f.sent[thread]);
    }
    __syncthreads();
    jacobi_march<NORM>(s);
    if (!at_side(UP) && !at_side(DOWN)) {
        return;
    }
    __threadfence_system();
    __syncthreads();
    if (thread < SIDES && at_side(thread) && atomicAdd(&f.arrived[thread], 1u) == gridDim.x - 1) {
        f.arrived[thread] = 0;
        signal_side(f, thread);
    }
}

/* Two threads: signal a side, wait for it. */
static __global__ void signal_and_wait(jacobi_flags f)
{
    signal_side(f, threadIdx.x);
    nvshmem_signal_wait_until(f.signal + threadIdx.x, NVSHMEM_CMP_GE, f.sent[threadIdx.x]);
}

/* One warp: everyone's sum of a step at everyone, then added in the order of ranks. */
static __global__ void add_ranks(jacobi_flags f, double *sum, int parity)
{
    const uint64_t step = f.sent[SENT_NORMS] + 1;
    double *gathered = f.gathered + parity * f.size;
    __syncthreads();
    if (threadIdx.x < f.size) {
        nvshmem_double_p(gathered + f.rank, *sum, threadIdx.x);
        nvshmem_fence();
        nvshmemx_signal_op(f.sums + f.rank, 1, NVSHMEM_SIGNAL_ADD, threadIdx.x);
        nvshmem_signal_wait_until(f.sums + threadIdx.x, NVSHMEM_CMP_GE, step);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0;
        for (int i = 0; i < f.size; i++) {
            total += ((volatile double *)gathered)[i];
        }
        *sum = total;
        f.sent[SENT_NORMS] = step;
    }
}

static void enqueue_sweep(job *j, int from, double *sum)
{
    const jacobi_shape *shape = &j->shape[sum != NULL];
    jacobi_sweep s = jacobi_rows(&j->p, shape, from, 1, j->p.rows + 1, sum);
    s.above = j->above[1 - from];
    s.below = j->below[1 - from];
    const dim3 grid = jacobi_grid(&s, shape), block = jacobi_block(shape);
    if (!j->fused) {
        jacobi_relax(&s, shape, j->stream);
        signal_and_wait<<<1, SIDES, 0, j->stream>>>(j->f);
    } else if (sum) {
        fused_sweep<true><<<grid, block, 0, j->stream>>>(s, j->f);
    } else {
        fused_sweep<false><<<grid, block, 0, j->stream>>>(s, j->f);
    }
    GPU(cudaGetLastError());
}

/* A chunk of steps from a[0]. */
static void enqueue_chunk(job *j)
{
    if (j->norm) {
        GPU(cudaMemsetAsync(j->p.sum, 0, JACOBI_CHUNK * sizeof(double), j->stream));
    }
    for (int step = 0; step < JACOBI_CHUNK; step++) {
        double *sum = j->norm ? j->p.sum + step : NULL;
        enqueue_sweep(j, step % 2, sum);
        if (sum && j->f.size > 1) {
            cudaStream_t stream = j->apart ? j->side : j->stream;
            if (j->apart) {
                GPU(cudaEventRecord(j->fork, j->stream));
                GPU(cudaStreamWaitEvent(j->side, j->fork, 0));
            }
            add_ranks<<<1, 32, 0, stream>>>(j->f, sum, step % 2);
            GPU(cudaGetLastError());
        }
    }
    if (j->norm && j->apart) {
        GPU(cudaEventRecord(j->join, j->side));
        GPU(cudaStreamWaitEvent(j->stream, j->join, 0));
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
    jacobi_measure(t, &j->p, &streams, "nvshmem", j, truth);
    GPU(cudaStreamBeginCapture(j->stream, cudaStreamCaptureModeThreadLocal));
    enqueue_chunk(j);
    GPU(cudaStreamEndCapture(j->stream, &graph));
    GPU(cudaGraphInstantiate(&j->graph, graph, 0));
    jacobi_measure(t, &j->p, &replay, "nvshmem", j, truth);
    GPU(cudaGraphExecDestroy(j->graph));
    GPU(cudaGraphDestroy(graph));
}

/* The truth of rank 0, for all. */
static jacobi_truth agree(const team *t, long n)
{
    jacobi_truth truth = {0, 0, 0};
    if (t->rank == 0) {
        truth = jacobi_reference(n);
    }
    truth.digest = team_sum(t, truth.digest);
    truth.norm_0 = team_max(t, truth.norm_0);
    truth.norm_100 = team_max(t, truth.norm_100);
    return truth;
}

/* My first row goes below the last row of the rank above, my last above the first of that below. */
static void open_case(const team *t, job *j, long n)
{
    jacobi_part up;
    jacobi_split(&j->p, n, t->size, t->rank);
    jacobi_split(&up, n, t->size, j->f.neighbour[UP]);
    const size_t bytes = (size_t)team_max(t, (double)(j->p.rows + 2)) * (size_t)n * sizeof(float);
    for (int i = 0; i < 2; i++) {
        j->p.a[i] = (float *)nvshmem_zeroed(bytes);
        j->above[i] = (float *)nvshmem_ptr(j->p.a[i], j->f.neighbour[UP]) + (up.rows + 1) * n;
        j->below[i] = (float *)nvshmem_ptr(j->p.a[i], j->f.neighbour[DOWN]);
    }
    jacobi_start(&j->p);
    j->shape[0] = jacobi_tune(&j->p, false, j->stream);
    j->shape[1] = jacobi_tune(&j->p, true, j->stream);
    nvshmem_barrier_all();
}

static void run_case(const team *t, job *j, long n)
{
    const jacobi_truth truth = agree(t, n);
    open_case(t, j, n);
    for (int way = 0; way < 6; way++) {
        char name[48];
        j->norm = way >= 2;
        j->apart = way >= 4;
        j->fused = way % 2;
        if (j->apart && t->size == 1) {
            continue;
        }
        snprintf(name, sizeof(name), "%s%s", j->fused ? "fused" : "signals apart",
                 j->apart ? ", sums apart" : "");
        measure(t, j, name, &truth);
        nvshmem_barrier_all();
    }
    nvshmem_free(j->p.a[1]);
    nvshmem_free(j->p.a[0]);
}

static void open_flags(const team *t, jacobi_flags *f)
{
    f->rank = t->rank;
    f->size = t->size;
    f->neighbour[UP] = (t->rank + t->size - 1) % t->size;
    f->neighbour[DOWN] = (t->rank + 1) % t->size;
    f->signal = (uint64_t *)nvshmem_zeroed(SIDES * sizeof(uint64_t));
    f->sums = (uint64_t *)nvshmem_zeroed(GPU_MAX * sizeof(uint64_t));
    f->gathered = (double *)nvshmem_zeroed(2 * GPU_MAX * sizeof(double));
    GPU(cudaMalloc((void **)&f->sent, (SIDES + 1) * sizeof(uint64_t)));
    GPU(cudaMemset(f->sent, 0, (SIDES + 1) * sizeof(uint64_t)));
    GPU(cudaMalloc((void **)&f->arrived, SIDES * sizeof(unsigned)));
    GPU(cudaMemset(f->arrived, 0, SIDES * sizeof(unsigned)));
    GPU(cudaDeviceSynchronize());
}

static void work(team *t, void *argument)
{
    char **words = (char **)argument;
    static job j;
    nvshmem_join(t);
    open_flags(t, &j.f);
    GPU(cudaStreamCreateWithFlags(&j.stream, cudaStreamNonBlocking));
    GPU(cudaStreamCreateWithFlags(&j.side, cudaStreamNonBlocking));
    GPU(cudaEventCreateWithFlags(&j.fork, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&j.join, cudaEventDisableTiming));
    GPU(cudaMalloc((void **)&j.p.sum, JACOBI_CHUNK * sizeof(double)));
    for (; *words; words++) {
        const long n = atol(*words);
        if (n < 256 || (n & (n - 1)) != 0) {
            fprintf(stderr, "not a size: %s\n", *words);
            _exit(2);
        }
        run_case(t, &j, n);
    }
    nvshmem_free(j.f.gathered);
    nvshmem_free(j.f.sums);
    nvshmem_free(j.f.signal);
    nvshmem_finalize();
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s GPUS N..., e.g. 2 256 1024\n", argv[0]);
        return 2;
    }
    nvshmem_environment("4G");
    return team_run(atoi(argv[1]), true, work, argv + 2);
}
