/* The GPU benchmark of horizontal diffusion on NCCL, one thread a GPU: n x n points a GPU, 64
 * levels, three exchanges a step. Ways: a stage's kernel, then its messages, then their unpacking
 * (whole); or the faces, messages and unpacking on a stream of higher priority beside the kernel of
 * all points (overlap); the two fluxes in two kernels or in one; on streams and in a graph. On one
 * GPU there is nothing to send.
 *
 * usage: gpu_hdiff_nccl GPUS [N...] */
#include "../gpu/hdiff.cuh"
#include "gpu_nccl.cuh"

enum { CASES = 16, TUNED_STEPS = 4 };

typedef struct setting {
    const char *name;
    bool overlap, joined; /* joined: both fluxes in one kernel */
} setting;

static const setting settings[] = {{"two fluxes, whole", false, false},
                                   {"one flux, whole", false, true},
                                   {"two fluxes, overlap", true, false},
                                   {"one flux, overlap", true, true}};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]), ALONE = 2 /* of one GPU: the first */ };

/* Of one rank, for all sizes. */
typedef struct member {
    int rank, size;
    ncclComm_t comm;
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
} member;

typedef struct row {
    bool open, left_out, verified;
    uint64_t digest;
    long length;
} row;

/* A size; ways are setting by setting, on streams and in a graph. */
typedef struct job {
    const member *m;
    hdiff_part p;
    hdiff_sums truth;     /* on rank 0 */
    hdiff_shape shape[2]; /* two fluxes, one */
    double *leaving[HDIFF_SIDES], *arriving[HDIFF_SIDES];
    cudaGraphExec_t graph[SETTINGS];
    row way[2 * SETTINGS];
} job;

typedef struct server {
    member m;
    job *known[CASES];
    int known_count;
} server;

typedef struct arguments {
    char **cases;
    ncclUniqueId id;
} arguments;

/* ---- a step ---- */

/* Faces of a stage: into messages, or into the part's own halo. */
static hdiff_faces faces_of(const job *j, const hdiff_call *c, hdiff_stage stage, bool messages,
                            bool images)
{
    hdiff_faces faces = {};
    for (int side = 0; side < HDIFF_SIDES; side++) {
        const bool cut = hdiff_is_cut(&j->p, side);
        if (!hdiff_leaves(stage, side) || !(cut ? messages : images)) {
            continue;
        }
        faces.side[side] =
            cut ? hdiff_face{j->leaving[side], 1, j->p.n} : hdiff_halo(&j->p, c, side);
    }
    return faces;
}

/* The rank next to this one at a side. */
static int neighbour(const job *j, int side)
{
    const int rx = (int)j->p.patch.rx, ry = (int)j->p.patch.ry;
    const int x = j->m->rank % rx, y = j->m->rank / rx, by = side % 2 ? 1 : -1;
    return side < 2 ? (x + by + rx) % rx + rx * y : x + rx * ((y + by + ry) % ry);
}

/* Between two ranks both faces go the same way: what they send first is received first. */
static void exchange(const job *j, hdiff_stage stage, cudaStream_t stream)
{
    const size_t count = (size_t)j->p.n * HDIFF_LEVELS;
    NCCL(ncclGroupStart());
    for (int side = 0; side < HDIFF_SIDES; side++) {
        if (hdiff_leaves(stage, side) && hdiff_is_cut(&j->p, side)) {
            NCCL(ncclSend(j->leaving[side], count, ncclDouble, neighbour(j, side), j->m->comm,
                          stream));
            NCCL(ncclRecv(j->arriving[side], count, ncclDouble, neighbour(j, side ^ 1), j->m->comm,
                          stream));
        }
    }
    NCCL(ncclGroupEnd());
}

static void unpack(const job *j, const hdiff_call *c, hdiff_stage stage, cudaStream_t stream)
{
    hdiff_faces halo = {};
    hdiff_arrived arrived = {};
    for (int side = 0; side < HDIFF_SIDES; side++) {
        if (hdiff_leaves(stage, side) && hdiff_is_cut(&j->p, side)) {
            halo.side[side] = hdiff_halo(&j->p, c, side);
            arrived.from[side] = j->arriving[side];
        }
    }
    hdiff_unpack<<<hdiff_face_grid(j->p.n), 256, 0, stream>>>(arrived, halo, j->p.n);
    GPU(cudaGetLastError());
}

static void after(cudaStream_t waits, cudaEvent_t event, cudaStream_t for_stream)
{
    GPU(cudaEventRecord(event, for_stream));
    GPU(cudaStreamWaitEvent(waits, event, 0));
}

/* The kernels of a stage; of both fluxes one or two. */
static void compute(const job *j, hdiff_stage stage, int from, const setting *s, bool messages)
{
    const hdiff_shape *shape = &j->shape[s->joined];
    if (stage == HDIFF_FLUXES && !s->joined) {
        compute(j, HDIFF_FLX, from, s, messages);
        compute(j, HDIFF_FLY, from, s, messages);
        return;
    }
    const hdiff_call call = hdiff_call_of(&j->p, stage, from);
    const hdiff_faces faces = faces_of(j, &call, stage, messages, true);
    hdiff_enqueue(&call, stage, &faces, shape, j->m->stream);
}

static void do_stage(const job *j, hdiff_stage stage, int from, const setting *s)
{
    const hdiff_call call = hdiff_call_of(&j->p, stage, from);
    if (s->overlap) {
        const hdiff_faces faces = faces_of(j, &call, stage, true, false);
        after(j->m->side, j->m->fork, j->m->stream);
        hdiff_enqueue_border(&call, stage, &faces, j->m->side);
        exchange(j, stage, j->m->side);
        unpack(j, &call, stage, j->m->side);
        compute(j, stage, from, s, false);
        after(j->m->stream, j->m->join, j->m->side);
        return;
    }
    compute(j, stage, from, s, true);
    if (j->m->size > 1) {
        exchange(j, stage, j->m->stream);
        unpack(j, &call, stage, j->m->stream);
    }
}

static void do_steps(const job *j, const setting *s, int steps)
{
    for (int step = 0; step < steps; step++) {
        for (hdiff_stage stage : {HDIFF_LAP, HDIFF_FLUXES, HDIFF_OUT}) {
            do_stage(j, stage, step % 2, s);
        }
    }
}

/* ---- blocks, by trial ---- */

static cudaGraphExec_t end_capture(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    GPU(cudaStreamEndCapture(stream, &graph));
    GPU(cudaGraphInstantiate(&replay, graph, 0));
    GPU(cudaGraphDestroy(graph));
    return replay;
}

/* Microseconds of some steps' kernels; not looked at closely if far beyond the best. */
static double time_shape(const job *j, const setting *s, double best_us)
{
    double best = INFINITY;
    GPU(cudaStreamBeginCapture(j->m->stream, cudaStreamCaptureModeThreadLocal));
    for (int step = 0; step < TUNED_STEPS; step++) {
        for (hdiff_stage stage : {HDIFF_LAP, HDIFF_FLUXES, HDIFF_OUT}) {
            compute(j, stage, step % 2, s, false);
        }
    }
    cudaGraphExec_t replay = end_capture(j->m->stream);
    GPU(cudaGraphUpload(replay, j->m->stream));
    for (int i = 0; i < 4 && (i == 0 || best < 1.3 * best_us + 50); i++) {
        GPU(cudaStreamSynchronize(j->m->stream));
        const double start = gpu_now_us();
        GPU(cudaGraphLaunch(replay, j->m->stream));
        GPU(cudaStreamSynchronize(j->m->stream));
        best = fmin(best, gpu_now_us() - start);
    }
    GPU(cudaGraphExecDestroy(replay));
    return best;
}

static void tune(job *j, const setting *s)
{
    static const int blocks[][2] = {{32, 4},  {32, 8},  {64, 2},  {64, 4},
                                    {128, 1}, {128, 2}, {128, 4}, {256, 1}};
    hdiff_shape best = {32, 4, 1};
    double best_us = INFINITY;
    for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
        for (int levels = 1; levels <= 16; levels *= 2) {
            hdiff_shape *shape = &j->shape[s->joined];
            *shape = {blocks[b][0], blocks[b][1], levels};
            const double us = time_shape(j, s, best_us);
            best = us < best_us ? *shape : best;
            best_us = fmin(best_us, us);
        }
    }
    j->shape[s->joined] = best;
}

/* ---- cases ---- */

typedef struct run {
    job *j;
    int way;
} run;

static long enqueue(void *state, long steps)
{
    const run *r = (const run *)state;
    const long chunks = (steps + HDIFF_STEPS - 1) / HDIFF_STEPS;
    for (long i = 0; i < chunks; i++) {
        if (r->way % 2) {
            GPU(cudaGraphLaunch(r->j->graph[r->way / 2], r->j->m->stream));
        } else {
            do_steps(r->j, &settings[r->way / 2], HDIFF_STEPS);
        }
    }
    return chunks * HDIFF_STEPS;
}

static void finish(void *state)
{
    GPU(cudaStreamSynchronize(((const run *)state)->j->m->stream));
}

/* On rank 0: whether the levels that the CPU has computed are right after the first steps. */
static bool verify(const team *t, run *r, uint64_t *digest)
{
    const hdiff_sums *truth = &r->j->truth;
    hdiff_begin(&r->j->p);
    team_barrier(t);
    enqueue(r, HDIFF_STEPS);
    finish(r);
    const hdiff_sums sums = hdiff_digest(&r->j->p, r->j->p.in[HDIFF_STEPS % 2]);
    const uint64_t low = team_sum(t, sums.low), high = team_sum(t, sums.high);
    const uint64_t checked_low = team_sum(t, sums.checked_low);
    const uint64_t checked_high = team_sum(t, sums.checked_high);
    *digest = hdiff_word(low, high);
    return checked_low == truth->checked_low && checked_high == truth->checked_high;
}

/* One way of a size: checked the first time, then timed; rank 0 prints. */
static void measure(const team *t, job *j, int way)
{
    char test[48], name[64];
    row *w = &j->way[way];
    run r = {j, way};
    const team_work work = {&r, enqueue, finish};
    snprintf(test, sizeof(test), "%d/%d", j->p.n, t->size);
    snprintf(name, sizeof(name), "%s, %s", settings[way / 2].name, way % 2 ? "graph" : "streams");
    bench_result result = {"gpu_hdiff", test, "nccl", name, "peer", 0, {0}, true, 0};
    if (!w->open) {
        w->open = true;
        w->left_out = serve_skips(test, name);
        if (!w->left_out) {
            if (t->rank == 0) {
                serve_trying(test, name);
            }
            team_barrier(t);
            if (way % 2) {
                GPU(cudaStreamBeginCapture(j->m->stream, cudaStreamCaptureModeThreadLocal));
                do_steps(j, &settings[way / 2], HDIFF_STEPS);
                j->graph[way / 2] = end_capture(j->m->stream);
            }
            w->verified = verify(t, &r, &w->digest);
        }
    }
    if (w->left_out) {
        return;
    }
    result.verified = w->verified;
    result.digest = w->digest;
    const double cpu_ns = team_time(t, &work, &w->length, &result);
    if (t->rank == 0) {
        serve_print(&result, cpu_ns, "");
    }
}

static job *open_case(const team *t, const member *m, long n)
{
    char test[48];
    job *j = (job *)calloc(1, sizeof(*j));
    snprintf(test, sizeof(test), "%ld/%d", n, t->size);
    if (t->rank == 0) {
        serve_trying(test, "its memory");
    }
    const hdiff_patch patch = hdiff_split(n, t->size);
    if (!j || (t->rank == 0 && !hdiff_truth(&patch, &j->truth))) {
        fprintf(stderr, "no memory for a reference of %ld points a rank and level\n", n * n);
        _Exit(GPU_EXIT);
    }
    j->m = m;
    j->p = hdiff_open(n, t->size, t->rank);
    for (int side = 0; side < HDIFF_SIDES; side++) {
        const size_t bytes = (size_t)n * HDIFF_LEVELS * sizeof(double);
        GPU(cudaMalloc((void **)&j->leaving[side], bytes));
        GPU(cudaMalloc((void **)&j->arriving[side], bytes));
    }
    hdiff_begin(&j->p);
    tune(j, &settings[0]);
    tune(j, &settings[1]);
    team_barrier(t);
    return j;
}

static bool answer(const team *t, int count, char **word, void *user)
{
    server *all = (server *)user;
    const long n = count == 1 ? atol(word[0]) : 0;
    job *j = NULL;
    if (n < 4 || n > 4096) {
        return false;
    }
    for (int i = 0; i < all->known_count && !j; i++) {
        j = all->known[i]->p.n == n ? all->known[i] : NULL;
    }
    if (!j) {
        if (all->known_count == CASES) {
            return false;
        }
        j = all->known[all->known_count++] = open_case(t, &all->m, n);
    }
    for (int way = 0; way < 2 * (t->size > 1 ? SETTINGS : ALONE); way++) {
        measure(t, j, way);
    }
    return true;
}

static void work(team *t, void *argument)
{
    const arguments *a = (const arguments *)argument;
    server *all = (server *)calloc(1, sizeof(*all));
    int least, most;
    if (!all) {
        _Exit(GPU_EXIT);
    }
    member *m = &all->m;
    m->rank = t->rank;
    m->size = t->size;
    nccl_say_version(t);
    if (t->size > 1) {
        NCCL(ncclCommInitRank(&m->comm, t->size, a->id, t->rank));
    }
    GPU(cudaDeviceGetStreamPriorityRange(&least, &most));
    GPU(cudaStreamCreateWithPriority(&m->stream, cudaStreamNonBlocking, least));
    GPU(cudaStreamCreateWithPriority(&m->side, cudaStreamNonBlocking, most));
    for (cudaEvent_t *event : {&m->fork, &m->join}) {
        GPU(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    team_serve(t, a->cases, answer, all);
    team_barrier(t);
}

int main(int argc, char **argv)
{
    arguments a = {argv + 2, {}};
    if (argc < 2) {
        fprintf(stderr, "usage: %s GPUS [N...], e.g. 2 128 512\n", argv[0]);
        return 2;
    }
    setenv("NCCL_NVLS_ENABLE", "0", 1); /* no multicast */
    NCCL(ncclGetUniqueId(&a.id));
    return team_run(atoi(argv[1]), false, work, &a);
}
