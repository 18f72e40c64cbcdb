/* Rows about kernels and graphs: launches, nodes, edges, signal and wait kernels, WHILE nodes,
 * events between streams and between GPUs. */
#include "primitives.cuh"

#include <cooperative_groups.h>

enum {
    WORD_SIGNAL = 64,
    WORD_EXPECTED = 80,
    WORD_ROUNDS = 96,
    WORD_ARRIVED = 112,
    WORD_READY = 128
};

__global__ void nothing(void)
{
}

static void enqueue_empty(const void *argument, int count, cudaStream_t stream)
{
    (void)argument;
    for (int i = 0; i < count; i++) {
        nothing<<<1, 1, 0, stream>>>();
    }
    GPU(cudaGetLastError());
}

static double empty_on_stream(const row *r)
{
    return gpu_stream_slope(0, enqueue_empty, r, 20, 220);
}

static double empty_in_graph(const row *r)
{
    return gpu_graph_slope(0, enqueue_empty, r, 100, 600);
}

/* The signal raises a word by one each time, the wait expects one more each time: no reset. */
__global__ void signal_word(uint64_t *flags)
{
    store_release(flags + WORD_SIGNAL, flags[WORD_SIGNAL] + 1);
}

__global__ void wait_word(uint64_t *flags)
{
    if (await_flag(flags + WORD_SIGNAL, flags[WORD_EXPECTED] + 1)) {
        flags[WORD_EXPECTED]++;
    }
}

static void enqueue_signal_and_wait(const void *argument, int count, cudaStream_t stream)
{
    (void)argument;
    for (int i = 0; i < count; i++) {
        signal_word<<<1, 1, 0, stream>>>(device[0].flag);
        wait_word<<<1, 1, 0, stream>>>(device[0].flag);
    }
    GPU(cudaGetLastError());
}

static double signal_and_wait(const row *r)
{
    GPU(cudaMemset(device[0].flag, 0, GPU_FLAGS * sizeof(uint64_t)));
    return gpu_graph_slope(0, enqueue_signal_and_wait, r, 50, 300);
}

/* A small task: every SM, a few hundred nanoseconds of work. */
enum { WORK_BLOCKS = 132, WORK_THREADS = 256 };

static __device__ void work(float *data)
{
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = data[i] * 0.5f + 1.0f;
}

enum { FUSED_WAIT = 1, FUSED_SIGNAL = 2 };

/* The task with a satisfied wait before it (one thread a block polls) and a signal after it (the
 * last block to arrive stores). */
__global__ void task(float *data, uint64_t *flags, int fused)
{
    if (fused & FUSED_WAIT) {
        if (threadIdx.x == 0) {
            await_flag(flags + WORD_READY, 0);
        }
        __syncthreads();
    }
    work(data);
    if (fused & FUSED_SIGNAL) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            unsigned arrived = atomicAdd((unsigned *)(flags + WORD_ARRIVED), 1u);
            if (arrived == gridDim.x - 1) {
                flags[WORD_ARRIVED] = 0;
                __threadfence_system();
                store_release(flags + WORD_SIGNAL, 1);
            }
        }
    }
}

__global__ void await_ready(uint64_t *flags)
{
    await_flag(flags + WORD_READY, 0);
}

__global__ void raise_signal(uint64_t *flags)
{
    store_release(flags + WORD_SIGNAL, 1);
}

/* r->a: what is fused; r->b: what is a node of its own; r->c: what is a memory operation. */
static void enqueue_tasks(const void *argument, int count, cudaStream_t stream)
{
    const row *r = (const row *)argument;
    uint64_t *flags = device[0].flag;
    for (int i = 0; i < count; i++) {
        if (r->b & FUSED_WAIT) {
            await_ready<<<1, 1, 0, stream>>>(flags);
        }
        if (r->c & FUSED_WAIT) {
            DRIVER(driver.wait((CUstream)stream, gpu_address(flags + WORD_READY), 0,
                               CU_STREAM_WAIT_VALUE_GEQ));
        }
        task<<<WORK_BLOCKS, WORK_THREADS, 0, stream>>>((float *)device[0].memory, flags, (int)r->a);
        if (r->b & FUSED_SIGNAL) {
            raise_signal<<<1, 1, 0, stream>>>(flags);
        }
        if (r->c & FUSED_SIGNAL) {
            DRIVER(driver.write((CUstream)stream, gpu_address(flags + WORD_SIGNAL), 1, 0));
        }
    }
    GPU(cudaGetLastError());
}

static double tasks(const row *r)
{
    GPU(cudaMemset(device[0].flag, 0, GPU_FLAGS * sizeof(uint64_t)));
    return gpu_graph_slope(0, enqueue_tasks, r, 50, 250);
}

__global__ void grid_barriers(int count)
{
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    for (int i = 0; i < count; i++) {
        grid.sync();
    }
}

/* A counter that all blocks raise and the first thread of each polls. */
__global__ void counter_barriers(int count, unsigned *counter)
{
    for (int i = 1; i <= count; i++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(counter, 1u);
            while (atomicAdd(counter, 0u) < (unsigned)i * gridDim.x) {
            }
            __threadfence();
        }
        __syncthreads();
    }
}

static void enqueue_counter_barriers(const void *argument, int count, cudaStream_t stream)
{
    unsigned *counter = (unsigned *)(device[0].flag + WORD_ARRIVED);
    void *arguments[2] = {&count, &counter};
    GPU(cudaMemsetAsync(counter, 0, sizeof(*counter), stream));
    GPU(cudaLaunchCooperativeKernel(counter_barriers, dim3((unsigned)((const row *)argument)->a),
                                    dim3(256), arguments, 0, stream));
}

static double plain_barriers(const row *r)
{
    return gpu_stream_slope(0, enqueue_counter_barriers, r, 100, 1100);
}

/* r->a: blocks. */
static void enqueue_barriers(const void *argument, int count, cudaStream_t stream)
{
    void *arguments[1] = {&count};
    GPU(cudaLaunchCooperativeKernel(grid_barriers, dim3((unsigned)((const row *)argument)->a),
                                    dim3(256), arguments, 0, stream));
}

static double barriers(const row *r)
{
    return gpu_stream_slope(0, enqueue_barriers, r, 100, 1100);
}

/* The last kernel of a WHILE body: another round until the counter is used up. */
__global__ void count_round(uint64_t *flags, cudaGraphConditionalHandle handle)
{
    uint64_t left = flags[WORD_ROUNDS] - 1;
    flags[WORD_ROUNDS] = left;
    cudaGraphSetConditional(handle, left != 0);
}

__global__ void set_rounds(uint64_t *flags, uint64_t rounds)
{
    flags[WORD_ROUNDS] = rounds;
}

static void add_kernel(cudaGraphNode_t *node, cudaGraph_t graph, cudaGraphNode_t after,
                       void *kernel, void **arguments)
{
    cudaKernelNodeParams params = {};
    params.func = kernel;
    params.gridDim = params.blockDim = dim3(1, 1, 1);
    params.kernelParams = arguments;
    GPU(cudaGraphAddKernelNode(node, graph, after ? &after : NULL, after ? 1 : 0, &params));
}

static cudaGraphExec_t build_while(uint64_t rounds)
{
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    cudaGraphConditionalHandle handle;
    cudaGraphNode_t first, loop, inner, last;
    uint64_t *flags = device[0].flag;
    void *first_arguments[2] = {&flags, &rounds}, *last_arguments[2] = {&flags, &handle};
    GPU(cudaGraphCreate(&graph, 0));
    GPU(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    add_kernel(&first, graph, NULL, (void *)set_rounds, first_arguments);
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
    GPU(cudaGraphAddNode(&loop, graph, &first, NULL, 1, &params));
    cudaGraph_t body = params.conditional.phGraph_out[0];
    add_kernel(&inner, body, NULL, (void *)nothing, NULL);
    add_kernel(&last, body, inner, (void *)count_round, last_arguments);
    GPU(cudaGraphInstantiate(&replay, graph, 0));
    GPU(cudaGraphDestroy(graph));
    return replay;
}

static double time_replay(cudaGraphExec_t replay)
{
    float ms;
    cudaStream_t stream = device[0].stream[0];
    GPU(cudaEventRecord(device[0].begin, stream));
    GPU(cudaGraphLaunch(replay, stream));
    GPU(cudaEventRecord(device[0].end, stream));
    GPU(cudaEventSynchronize(device[0].end));
    GPU(cudaEventElapsedTime(&ms, device[0].begin, device[0].end));
    return ms * 1e3;
}

static double while_round(const row *r)
{
    (void)r;
    cudaGraphExec_t few = build_while(100), many = build_while(1100);
    time_replay(few);
    time_replay(many);
    double us = (time_replay(many) - time_replay(few)) / 1000;
    GPU(cudaGraphExecDestroy(few));
    GPU(cudaGraphExecDestroy(many));
    return us;
}

/* r->a: nodes of a chain of empty kernels; r->b: the CPU's time of a launch, else the GPU's time a
 * node of graphs launched one behind the other. */
static double graph_launch(const row *r)
{
    enum { LAUNCHES = 40 };
    double us[LAUNCHES];
    cudaStream_t stream = device[0].stream[0];
    cudaGraphExec_t replay = gpu_capture(0, enqueue_empty, r, (int)r->a);
    GPU(cudaGraphLaunch(replay, stream));
    GPU(cudaStreamSynchronize(stream));
    double begin = gpu_now_us();
    for (int i = 0; i < LAUNCHES; i++) {
        double start = gpu_now_us();
        GPU(cudaGraphLaunch(replay, stream));
        us[i] = gpu_now_us() - start;
    }
    GPU(cudaStreamSynchronize(stream));
    double node = (gpu_now_us() - begin) / LAUNCHES / (double)r->a;
    GPU(cudaGraphExecDestroy(replay));
    return r->b ? gpu_median(us, LAUNCHES) : node;
}

/* A kernel on one stream, then on another, each waiting for the other by events: r->a: streams of
 * two GPUs. */
static void enqueue_alternating(const void *argument, int count, cudaStream_t stream)
{
    const bool two = ((const row *)argument)->a != 0;
    const int on[2] = {0, two ? 1 : 0};
    cudaStream_t side[2] = {stream, device[on[1]].stream[1]};
    cudaEvent_t there, back;
    GPU(cudaSetDevice(on[0]));
    GPU(cudaEventCreateWithFlags(&there, cudaEventDisableTiming));
    GPU(cudaSetDevice(on[1]));
    GPU(cudaEventCreateWithFlags(&back, cudaEventDisableTiming));
    for (int i = 0; i < count; i++) {
        GPU(cudaSetDevice(on[0]));
        nothing<<<1, 1, 0, side[0]>>>();
        GPU(cudaEventRecord(there, side[0]));
        GPU(cudaSetDevice(on[1]));
        GPU(cudaStreamWaitEvent(side[1], there, 0));
        nothing<<<1, 1, 0, side[1]>>>();
        GPU(cudaEventRecord(back, side[1]));
        GPU(cudaSetDevice(on[0]));
        GPU(cudaStreamWaitEvent(side[0], back, 0));
    }
    GPU(cudaGetLastError());
    GPU(cudaEventDestroy(there));
    GPU(cudaEventDestroy(back));
}

/* Half of a turn: one kernel and the edge before it. */
static double alternating_streams(const row *r)
{
    return gpu_stream_slope(0, enqueue_alternating, r, 10, 60) / 2;
}

static double alternating_graph(const row *r)
{
    return gpu_graph_slope(0, enqueue_alternating, r, 50, 150) / 2;
}

/* One kernel, r->a side by side, one kernel: the edges that a halo exchange makes. */
static void enqueue_forks(const void *argument, int count, cudaStream_t stream)
{
    const int sides = (int)((const row *)argument)->a;
    cudaEvent_t fork, join;
    GPU(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    for (int i = 0; i < count; i++) {
        nothing<<<1, 1, 0, stream>>>();
        GPU(cudaEventRecord(fork, stream));
        for (int s = 1; s < sides; s++) {
            GPU(cudaStreamWaitEvent(device[0].stream[s], fork, 0));
            nothing<<<1, 1, 0, device[0].stream[s]>>>();
        }
        nothing<<<1, 1, 0, stream>>>();
        for (int s = 1; s < sides; s++) {
            GPU(cudaEventRecord(join, device[0].stream[s]));
            GPU(cudaStreamWaitEvent(stream, join, 0));
        }
    }
    GPU(cudaGetLastError());
    GPU(cudaEventDestroy(fork));
    GPU(cudaEventDestroy(join));
}

static double forks(const row *r)
{
    return gpu_graph_slope(0, enqueue_forks, r, 20, 120);
}

static void task_row(double expected, const char *name, long fused, long nodes, long memops)
{
    row *r = row_add(1, "us", tasks, expected, "%s", name);
    r->a = fused;
    r->b = nodes;
    r->c = memops;
}

static void add_tasks(void)
{
    const int both = FUSED_WAIT | FUSED_SIGNAL;
    task_row(0, "task of 132 blocks, graph chain", 0, 0, 0);
    task_row(0, "the same + satisfied wait fused at its start", FUSED_WAIT, 0, 0);
    task_row(0, "the same + signal fused at its end", FUSED_SIGNAL, 0, 0);
    task_row(0, "the same + both fused", both, 0, 0);
    task_row(0, "the same + wait kernel before, signal kernel after", 0, both, 0);
    task_row(0, "the same + wait and write memory operations as nodes", 0, 0, both);
}

void rows_add_launches(void)
{
    static const int nodes[4] = {1, 10, 100, 1000};
    row_add(1, "us", empty_on_stream, 2.6, "empty kernel, stream");
    row_add(1, "us", empty_in_graph, 0.51, "empty kernel, graph chain");
    row_add(1, "us", signal_and_wait, 2.3, "signal kernel + wait kernel, graph chain");
    row_add(1, "us", while_round, 4.4, "WHILE node: a round of 2 small kernels");
    row_add(1, "us", barriers, 1.02, "grid barrier, 132 blocks")->a = 132;
    row_add(1, "us", barriers, 1.02, "grid barrier, 264 blocks")->a = 264;
    row_add(1, "us", plain_barriers, 1.4, "barrier by a plain counter, 132 blocks")->a = 132;
    add_tasks();
    for (int i = 0; i < 4; i++) {
        row *cpu = row_add(1, "us", graph_launch, 0, "graph of %d kernels: launch, CPU", nodes[i]);
        cpu->a = nodes[i];
        cpu->b = 1;
        row_add(1, "us", graph_launch, 0, "graph of %d kernels: replays, a node", nodes[i])->a =
            nodes[i];
    }
    row_add(1, "us", alternating_streams, 0, "kernel + event between two streams")->a = 0;
    row_add(1, "us", alternating_graph, 0, "kernel + edge between two branches, graph")->a = 0;
    row_add(2, "us", alternating_streams, 0, "kernel + event between streams of two GPUs")->a = 1;
    row_add(2, "us", alternating_graph, 0, "kernel + edge between two GPUs, one graph")->a = 1;
    row_add(1, "us", forks, 0, "kernel, 2 side by side, joined: graph")->a = 2;
    row_add(1, "us", forks, 0, "kernel, 4 side by side, joined: graph")->a = 4;
}
