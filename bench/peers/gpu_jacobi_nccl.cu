/* The GPU Jacobi benchmark on NCCL, one thread a GPU. Ways: the whole sweep, then the exchange of
 * border rows; or borders and exchange on one stream beside the interior on another (overlap); on
 * streams and in a graph. With a norm: a sum over the ranks after every step, in line, or by a
 * communicator of its own on a stream of its own beside the next steps (apart). On one GPU there is
 * nothing to send: the sweep stores its border rows into its own halo.
 *
 * usage: gpu_jacobi_nccl GPUS [N...] (each N a power of two, at least 256) */
#include "../gpu/jacobi_measure.cuh"
#include "gpu_nccl.cuh"

/* Of one rank, for all sizes. */
typedef struct member {
    int rank, size;
    ncclComm_t comm, norms;
    cudaStream_t stream, side, sums;
    cudaEvent_t fork, join, summed;
} member;

typedef struct job {
    jacobi_stage stage; /* first */
    const member *m;
} job;

typedef struct arguments {
    char **cases;
    ncclUniqueId id[2];
} arguments;

/* Between two ranks both rows go the same way: what they send first is received first. */
static void exchange(const job *j, int target)
{
    const jacobi_part *p = &j->stage.p;
    const member *m = j->m;
    const int up = (m->rank + m->size - 1) % m->size, down = (m->rank + 1) % m->size;
    const size_t n = (size_t)p->n;
    float *a = p->a[target];
    NCCL(ncclGroupStart());
    NCCL(ncclSend(a + n, n, ncclFloat, up, m->comm, m->stream));
    NCCL(ncclSend(a + (size_t)p->rows * n, n, ncclFloat, down, m->comm, m->stream));
    NCCL(ncclRecv(a + (size_t)(p->rows + 1) * n, n, ncclFloat, down, m->comm, m->stream));
    NCCL(ncclRecv(a, n, ncclFloat, up, m->comm, m->stream));
    NCCL(ncclGroupEnd());
}

static void after(cudaStream_t waits, cudaEvent_t event, cudaStream_t for_stream)
{
    GPU(cudaEventRecord(event, for_stream));
    GPU(cudaStreamWaitEvent(waits, event, 0));
}

/* The sum over the ranks of what a step changed. */
static void reduce(const member *m, bool apart, double *sum)
{
    if (m->size == 1) {
        return;
    }
    if (apart) {
        after(m->sums, m->summed, m->stream);
    }
    NCCL(ncclAllReduce(sum, sum, 1, ncclDouble, ncclSum, apart ? m->norms : m->comm,
                       apart ? m->sums : m->stream));
}

static void step_whole(const job *j, int from, double *sum)
{
    const jacobi_part *p = &j->stage.p;
    const jacobi_shape *shape = &j->stage.shape[sum != NULL];
    jacobi_sweep s = jacobi_rows(p, shape, from, 1, p->rows + 1, sum);
    if (j->m->size == 1) {
        s.above = s.an + (p->rows + 1) * p->n;
        s.below = s.an;
    }
    jacobi_relax(&s, shape, j->m->stream);
    if (j->m->size > 1) {
        exchange(j, 1 - from);
    }
}

static void step_overlapped(const job *j, int from, double *sum)
{
    const jacobi_part *p = &j->stage.p;
    const jacobi_shape *shape = &j->stage.shape[sum != NULL];
    after(j->m->side, j->m->fork, j->m->stream);
    jacobi_relax_border(p, from, sum, j->m->stream);
    exchange(j, 1 - from);
    if (p->rows > 2) {
        jacobi_sweep s = jacobi_rows(p, shape, from, 2, p->rows, sum);
        jacobi_relax(&s, shape, j->m->side);
    }
    after(j->m->stream, j->m->join, j->m->side);
}

static void chunk(jacobi_stage *stage, const jacobi_setting *setting)
{
    const job *j = (const job *)stage;
    if (setting->norm) {
        GPU(cudaMemsetAsync(stage->p.sum, 0, JACOBI_CHUNK * sizeof(double), stage->stream));
    }
    for (int step = 0; step < JACOBI_CHUNK; step++) {
        double *sum = setting->norm ? stage->p.sum + step : NULL;
        if (setting->second) {
            step_overlapped(j, step % 2, sum);
        } else {
            step_whole(j, step % 2, sum);
        }
        if (sum) {
            reduce(j->m, setting->apart, sum);
        }
    }
    if (setting->norm && setting->apart) {
        after(j->m->stream, j->m->summed, j->m->sums);
    }
}

static jacobi_stage *open_case(const team *t, const jacobi_part *p, void *user)
{
    job *j = (job *)calloc(1, sizeof(*j));
    (void)t;
    if (!j) {
        _Exit(GPU_EXIT);
    }
    j->m = (const member *)user;
    j->stage.p = *p;
    j->stage.stream = j->m->stream;
    for (int i = 0; i < 2; i++) {
        GPU(cudaMalloc((void **)&j->stage.p.a[i],
                       (size_t)(p->rows + 2) * (size_t)p->n * sizeof(float)));
    }
    GPU(cudaMalloc((void **)&j->stage.p.sum, JACOBI_CHUNK * sizeof(double)));
    return &j->stage;
}

static const jacobi_setting several[] = {{"whole", false, false, false},
                                         {"overlap", false, true, false},
                                         {"whole", true, false, false},
                                         {"overlap", true, true, false},
                                         {"whole, sums apart", true, false, true},
                                         {"overlap, sums apart", true, true, true}};
static const jacobi_setting one[] = {{"whole", false, false, false}, {"whole", true, false, false}};

static void work(team *t, void *argument)
{
    const arguments *a = (const arguments *)argument;
    member m = {};
    m.rank = t->rank;
    m.size = t->size;
    nccl_say_version(t);
    if (t->size > 1) {
        NCCL(ncclCommInitRank(&m.comm, t->size, a->id[0], t->rank));
        NCCL(ncclCommInitRank(&m.norms, t->size, a->id[1], t->rank));
    }
    for (cudaStream_t *stream : {&m.stream, &m.side, &m.sums}) {
        GPU(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    }
    for (cudaEvent_t *event : {&m.fork, &m.join, &m.summed}) {
        GPU(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    const jacobi_peer peer = {"nccl",
                              t->size > 1 ? several : one,
                              (int)(t->size > 1 ? sizeof(several) / sizeof(several[0])
                                                : sizeof(one) / sizeof(one[0])),
                              &m,
                              open_case,
                              chunk};
    jacobi_serve(t, &peer, a->cases);
    team_barrier(t);
}

int main(int argc, char **argv)
{
    arguments a = {argv + 2, {}};
    if (argc < 2) {
        fprintf(stderr, "usage: %s GPUS [N...], e.g. 2 256 1024\n", argv[0]);
        return 2;
    }
    setenv("NCCL_NVLS_ENABLE", "0", 1); /* no multicast */
    NCCL(ncclGetUniqueId(&a.id[0]));
    NCCL(ncclGetUniqueId(&a.id[1]));
    return team_run(atoi(argv[1]), false, work, &a);
}
