/* The GPU Jacobi benchmark on NVSHMEM, one process a GPU. The sweep stores its border rows straight
 * into the neighbours' halos. Ways: a kernel of its own that signals both neighbours and waits for
 * them after every sweep (signals apart), or waits and signals in the sweep's border blocks
 * (fused); on streams and in a graph. With a norm: every rank puts its sum at every other, signals,
 * waits and adds up; in line, or beside the next steps on a stream of its own (apart).
 *
 * usage: gpu_jacobi_nvshmem GPUS [N...] (each N a power of two, at least 256) */
#include "../gpu/jacobi_measure.cuh"
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

/* Of one rank, for all sizes. */
typedef struct member {
    jacobi_flags f;
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
} member;

typedef struct job {
    jacobi_stage stage; /* first */
    const member *m;
    float *above[2], *below[2]; /* where border rows go, by array */
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

static void enqueue_sweep(const job *j, int from, double *sum, bool fused)
{
    const jacobi_part *p = &j->stage.p;
    const jacobi_shape *shape = &j->stage.shape[sum != NULL];
    const jacobi_flags *f = &j->m->f;
    jacobi_sweep s = jacobi_rows(p, shape, from, 1, p->rows + 1, sum);
    s.above = j->above[1 - from];
    s.below = j->below[1 - from];
    const dim3 grid = jacobi_grid(&s, shape), block = jacobi_block(shape);
    if (!fused) {
        jacobi_relax(&s, shape, j->m->stream);
        signal_and_wait<<<1, SIDES, 0, j->m->stream>>>(*f);
    } else if (sum) {
        fused_sweep<true><<<grid, block, 0, j->m->stream>>>(s, *f);
    } else {
        fused_sweep<false><<<grid, block, 0, j->m->stream>>>(s, *f);
    }
    GPU(cudaGetLastError());
}

static void chunk(jacobi_stage *stage, const jacobi_setting *setting)
{
    const job *j = (const job *)stage;
    const member *m = j->m;
    if (setting->norm) {
        GPU(cudaMemsetAsync(stage->p.sum, 0, JACOBI_CHUNK * sizeof(double), m->stream));
    }
    for (int step = 0; step < JACOBI_CHUNK; step++) {
        double *sum = setting->norm ? stage->p.sum + step : NULL;
        enqueue_sweep(j, step % 2, sum, setting->second);
        if (sum && m->f.size > 1) {
            if (setting->apart) {
                GPU(cudaEventRecord(m->fork, m->stream));
                GPU(cudaStreamWaitEvent(m->side, m->fork, 0));
            }
            add_ranks<<<1, 32, 0, setting->apart ? m->side : m->stream>>>(m->f, sum, step % 2);
            GPU(cudaGetLastError());
        }
    }
    if (setting->norm && setting->apart) {
        GPU(cudaEventRecord(m->join, m->side));
        GPU(cudaStreamWaitEvent(m->stream, m->join, 0));
    }
}

/* My first row goes below the last row of the rank above, my last above the first of that below. */
static jacobi_stage *open_case(const team *t, const jacobi_part *p, void *user)
{
    const member *m = (const member *)user;
    const long n = p->n;
    job *j = (job *)calloc(1, sizeof(*j));
    jacobi_part up;
    if (!j) {
        _exit(GPU_EXIT);
    }
    j->m = m;
    j->stage.p = *p;
    j->stage.stream = m->stream;
    jacobi_split(&up, n, t->size, m->f.neighbour[UP]);
    const size_t bytes = (size_t)team_max(t, (double)(p->rows + 2)) * (size_t)n * sizeof(float);
    for (int i = 0; i < 2; i++) {
        float *a = (float *)nvshmem_zeroed(bytes);
        j->stage.p.a[i] = a;
        j->above[i] = (float *)nvshmem_ptr(a, m->f.neighbour[UP]) + (up.rows + 1) * n;
        j->below[i] = (float *)nvshmem_ptr(a, m->f.neighbour[DOWN]);
    }
    GPU(cudaMalloc((void **)&j->stage.p.sum, JACOBI_CHUNK * sizeof(double)));
    nvshmem_barrier_all();
    return &j->stage;
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

static const jacobi_setting settings[] = {{"signals apart", false, false, false},
                                          {"fused", false, true, false},
                                          {"signals apart", true, false, false},
                                          {"fused", true, true, false},
                                          {"signals apart, sums apart", true, false, true},
                                          {"fused, sums apart", true, true, true}};

static void work(team *t, void *argument)
{
    member m = {};
    nvshmem_join(t);
    open_flags(t, &m.f);
    GPU(cudaStreamCreateWithFlags(&m.stream, cudaStreamNonBlocking));
    GPU(cudaStreamCreateWithFlags(&m.side, cudaStreamNonBlocking));
    GPU(cudaEventCreateWithFlags(&m.fork, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&m.join, cudaEventDisableTiming));
    /* On one GPU there is nothing to sum up. */
    const jacobi_peer peer = {"nvshmem", settings, t->size > 1 ? 6 : 4, &m, open_case, chunk};
    jacobi_serve(t, &peer, (char **)argument);
    nvshmem_barrier_all();
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s GPUS [N...], e.g. 2 256 1024\n", argv[0]);
        return 2;
    }
    nvshmem_environment("6G"); /* all sizes up to 16384 on one GPU: 2.9 */
    return team_run(atoi(argv[1]), true, work, argv + 2);
}
