/* Floors of the GPU benchmarks that belong to the machine, asked for as the peers are:
 *
 *   jacobi  a copy of as many bytes as a rank's mesh has, by a kernel of ours or by the runtime,
 *           whichever is faster; in a graph
 *   hdiff   a copy of as many bytes as a rank's five fields have: its three kernels read or write
 *           ten fields
 *   halo    graphs of 64 and of 100 steps of empty kernels: pack, then unpack, and the interior
 *           beside them. What the host spends on a step of these is what no graph goes below
 *
 * usage: gpu_floor halo|jacobi|hdiff GPUS [CASE...] */
#include "gpu/halo.cuh"
#include "gpu/hdiff.cuh"
#include "gpu/jacobi.cuh"

enum { CASES = 32, COPIES = 20, COPY_THREADS = 512, COPY_UNROLL = 4, SHAPES = 5 };

typedef struct plan {
    char name[48], variant[48];
    cudaGraphExec_t graph;
    cudaStream_t stream;
    long steps; /* of the graph */
    long length;
} plan;

typedef struct floors {
    int gpus;
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
    plan known[2 * CASES];
    int known_count;
} floors;

/* ---- the copy ---- */

static __global__ void copy(const float4 *from, float4 *to, long count)
{
    const long stride = (long)gridDim.x * COPY_THREADS * COPY_UNROLL;
    for (long at = (long)blockIdx.x * COPY_THREADS * COPY_UNROLL + threadIdx.x; at < count;
         at += stride) {
        float4 value[COPY_UNROLL];
        for (int i = 0; i < COPY_UNROLL; i++) {
            const long k = at + (long)i * COPY_THREADS;
            value[i] = k < count ? from[k] : float4{};
        }
        for (int i = 0; i < COPY_UNROLL; i++) {
            const long k = at + (long)i * COPY_THREADS;
            if (k < count) {
                to[k] = value[i];
            }
        }
    }
}

/* Shape 0 is the runtime's copy, 1 a thread for its points alone, others some blocks a
 * multiprocessor. */
static void enqueue_copy(const float4 *from, float4 *to, long count, int shape, cudaStream_t stream)
{
    const int blocks[SHAPES] = {0, 0, 2 * 132, 4 * 132, 16 * 132};
    const long all = (count + COPY_THREADS * COPY_UNROLL - 1) / (COPY_THREADS * COPY_UNROLL);
    if (shape == 0) {
        GPU(cudaMemcpyAsync(to, from, (size_t)count * sizeof(*to), cudaMemcpyDeviceToDevice,
                            stream));
        return;
    }
    const long grid = shape == 1 || all < blocks[shape] ? all : blocks[shape];
    copy<<<(unsigned)grid, COPY_THREADS, 0, stream>>>(from, to, count);
    GPU(cudaGetLastError());
}

static cudaGraphExec_t end_capture(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    GPU(cudaStreamEndCapture(stream, &graph));
    GPU(cudaGraphInstantiate(&replay, graph, 0));
    GPU(cudaGraphDestroy(graph));
    GPU(cudaGraphUpload(replay, stream));
    GPU(cudaStreamSynchronize(stream));
    return replay;
}

static cudaGraphExec_t record_copies(float4 *const a[2], long count, int shape, cudaStream_t stream)
{
    GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < COPIES; i++) {
        enqueue_copy(a[i % 2], a[1 - i % 2], count, shape, stream);
    }
    return end_capture(stream);
}

static double time_graph(cudaGraphExec_t graph, cudaStream_t stream)
{
    double best = INFINITY;
    for (int i = 0; i < 4; i++) {
        const double start = gpu_now_us();
        GPU(cudaGraphLaunch(graph, stream));
        GPU(cudaStreamSynchronize(stream));
        best = fmin(best, gpu_now_us() - start);
    }
    return best;
}

/* The fastest of the shapes. count: float4s */
static void open_copy(floors *f, const char *name, long count)
{
    float4 *a[2];
    double best_us = INFINITY;
    plan *p = &f->known[f->known_count++];
    for (int i = 0; i < 2; i++) {
        GPU(cudaMalloc((void **)&a[i], (size_t)count * sizeof(float4)));
        GPU(cudaMemset(a[i], 0, (size_t)count * sizeof(float4)));
    }
    GPU(cudaDeviceSynchronize());
    *p = {};
    for (int shape = 0; shape < SHAPES; shape++) {
        cudaGraphExec_t graph = record_copies(a, count, shape, f->stream);
        const double us = time_graph(graph, f->stream);
        cudaGraphExec_t worse = us < best_us ? p->graph : graph;
        p->graph = us < best_us ? graph : p->graph;
        best_us = fmin(best_us, us);
        if (worse) {
            GPU(cudaGraphExecDestroy(worse));
        }
    }
    p->stream = f->stream;
    p->steps = COPIES;
    snprintf(p->name, sizeof(p->name), "%s", name);
    snprintf(p->variant, sizeof(p->variant), "copy of the same bytes");
}

/* ---- empty kernels ---- */

static __global__ void empty(void)
{
}

static void enqueue_step(const floors *f, const halo_problem *problem)
{
    if (problem->interior_us > 0) {
        GPU(cudaEventRecord(f->fork, f->stream));
        GPU(cudaStreamWaitEvent(f->side, f->fork, 0));
        empty<<<HALO_SPIN_BLOCKS, 128, 0, f->side>>>();
        GPU(cudaEventRecord(f->join, f->side));
    }
    for (int i = 0; i < (problem->alone ? 1 : 2); i++) {
        empty<<<1, HALO_THREADS, 0, f->stream>>>();
    }
    GPU(cudaGetLastError());
    if (problem->interior_us > 0) {
        GPU(cudaStreamWaitEvent(f->stream, f->join, 0));
    }
}

static void open_empty(floors *f, const halo_problem *problem, long steps)
{
    plan *p = &f->known[f->known_count++];
    *p = {};
    GPU(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeThreadLocal));
    for (long i = 0; i < steps; i++) {
        enqueue_step(f, problem);
    }
    p->graph = end_capture(f->stream);
    p->stream = f->stream;
    p->steps = steps;
    snprintf(p->name, sizeof(p->name), "%s", problem->name);
    snprintf(p->variant, sizeof(p->variant), "empty kernels, %ld steps a graph", steps);
}

/* ---- both ---- */

static long launch(void *state, long steps)
{
    const plan *p = (const plan *)state;
    const long launches = (steps + p->steps - 1) / p->steps;
    for (long i = 0; i < launches; i++) {
        GPU(cudaGraphLaunch(p->graph, p->stream));
    }
    return launches * p->steps;
}

static void finish(void *state)
{
    GPU(cudaStreamSynchronize(((const plan *)state)->stream));
}

/* Times what is known of this name; `as`: the case that the row belongs to. */
static bool measure(const team *t, floors *f, const char *bench, const char *name, const char *as)
{
    bool found = false;
    for (int i = 0; i < f->known_count; i++) {
        plan *p = &f->known[i];
        if (strcmp(p->name, name) != 0) {
            continue;
        }
        const team_work work = {p, launch, finish};
        bench_result result = {bench, as, "cuda", p->variant, "floor", 0, {0}, true, 0};
        serve_print(&result, team_time(t, &work, &p->length, &result), "");
        found = true;
    }
    return found;
}

static bool answer_jacobi(const team *t, int count, char **word, void *user)
{
    floors *f = (floors *)user;
    const long n = count == 1 ? atol(word[0]) : 0;
    char name[48], norm[56];
    if (n < 256 || n > 32768) {
        return false;
    }
    snprintf(name, sizeof(name), "%ld/%d", n, f->gpus);
    snprintf(norm, sizeof(norm), "%s/norm", name);
    if (measure(t, f, "gpu_jacobi", name, name)) {
        return measure(t, f, "gpu_jacobi", name, norm);
    }
    if (f->known_count == CASES) {
        return false;
    }
    jacobi_part part;
    jacobi_split(&part, n, f->gpus, 0);
    open_copy(f, name, (part.rows * n + 3) / 4);
    return measure(t, f, "gpu_jacobi", name, name) && measure(t, f, "gpu_jacobi", name, norm);
}

static bool answer_hdiff(const team *t, int count, char **word, void *user)
{
    floors *f = (floors *)user;
    const long n = count == 1 ? atol(word[0]) : 0;
    char name[48];
    if (n < 4 || n > 4096) {
        return false;
    }
    snprintf(name, sizeof(name), "%ld/%d", n, f->gpus);
    if (measure(t, f, "gpu_hdiff", name, name)) {
        return true;
    }
    if (f->known_count == CASES) {
        return false;
    }
    open_copy(f, name, 5 * n * n * HDIFF_LEVELS / 2);
    return measure(t, f, "gpu_hdiff", name, name);
}

/* Graphs are the same for all sizes of a face: one is enough. */
static bool answer_halo(const team *t, int count, char **word, void *user)
{
    floors *f = (floors *)user;
    halo_problem problem;
    if (!halo_parse(count, word, f->gpus, &problem)) {
        return false;
    }
    if (problem.ghost[1] > 0 || problem.ghost[0] != 4096 / (long)sizeof(double) ||
        measure(t, f, "gpu_halo", problem.name, problem.name)) {
        return true;
    }
    if (f->known_count + 2 > CASES) {
        return false;
    }
    open_empty(f, &problem, 64);
    open_empty(f, &problem, 100);
    return measure(t, f, "gpu_halo", problem.name, problem.name);
}

static void work(team *t, void *argument)
{
    static floors f;
    char **words = (char **)argument;
    f.gpus = atoi(words[2]);
    GPU(cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking));
    GPU(cudaStreamCreateWithFlags(&f.side, cudaStreamNonBlocking));
    GPU(cudaEventCreateWithFlags(&f.fork, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&f.join, cudaEventDisableTiming));
    team_serve(t, words + 3,
               !strcmp(words[1], "halo")     ? answer_halo
               : !strcmp(words[1], "jacobi") ? answer_jacobi
                                             : answer_hdiff,
               &f);
}

int main(int argc, char **argv)
{
    if (argc < 3 || (strcmp(argv[1], "halo") != 0 && strcmp(argv[1], "jacobi") != 0 &&
                     strcmp(argv[1], "hdiff") != 0)) {
        fprintf(stderr, "usage: %s halo|jacobi|hdiff GPUS [CASE...], e.g. jacobi 2 1024\n",
                argv[0]);
        return 2;
    }
    return team_run(1, false, work, argv);
}
