/* Devices, the driver's entry points, and the slopes that gpu.cuh promises. */
#include "gpu.cuh"

gpu_driver driver;
gpu_device device[GPU_MAX];
int device_count;
volatile uint64_t *host_flag;
uint64_t *host_flag_on_gpu;

static bool find(const char *name, unsigned version, void **entry)
{
    cudaDriverEntryPointQueryResult found;
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, entry, version, cudaEnableDefault, &found);
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess || !*entry) {
        fprintf(stderr, "%s: not in this driver, or no driver: %s\n", name,
                cudaGetErrorString(error));
        return false;
    }
    return true;
}

bool gpu_open_driver(void)
{
    return find("cuStreamWaitValue64", 12000, (void **)&driver.wait) &&
           find("cuStreamWriteValue64", 12000, (void **)&driver.write) &&
           find("cuStreamBatchMemOp", 12000, (void **)&driver.batch) &&
           find("cuGraphAddBatchMemOpNode", 12000, (void **)&driver.add_batch_node) &&
           find("cuGraphExecBatchMemOpNodeSetParams", 12000, (void **)&driver.set_batch_node) &&
           find("cuCtxGetCurrent", 12000, (void **)&driver.current) &&
           find("cuCtxCreate", CUDA_VERSION, (void **)&driver.create_context) &&
           find("cuCtxDestroy", 12000, (void **)&driver.destroy_context);
}

static void open_one(gpu_device *one, int id)
{
    one->id = id;
    GPU(cudaSetDevice(id));
    for (int s = 0; s < GPU_STREAMS; s++) {
        GPU(cudaStreamCreateWithFlags(&one->stream[s], cudaStreamNonBlocking));
    }
    GPU(cudaEventCreate(&one->begin));
    GPU(cudaEventCreate(&one->end));
    GPU(cudaMalloc((void **)&one->flag, GPU_FLAGS * sizeof(uint64_t)));
    GPU(cudaMemset(one->flag, 0, GPU_FLAGS * sizeof(uint64_t)));
    GPU(cudaMalloc((void **)&one->memory, GPU_MEMORY));
    GPU(cudaMemset(one->memory, id + 1, GPU_MEMORY));
    GPU(cudaDeviceSynchronize());
}

void gpu_open(int wanted)
{
    int there = 0;
    GPU(cudaGetDeviceCount(&there));
    device_count = wanted > 0 && wanted < there ? wanted : there < GPU_MAX ? there : GPU_MAX;
    for (int i = 0; i < device_count; i++) {
        open_one(&device[i], i);
    }
    for (int i = 0; i < device_count * device_count; i++) {
        int from = i / device_count, to = i % device_count;
        if (from != to) {
            GPU(cudaSetDevice(from));
            GPU(cudaDeviceEnablePeerAccess(to, 0));
        }
    }
    void *flags, *on_gpu;
    GPU(cudaHostAlloc(&flags, GPU_FLAGS * sizeof(uint64_t),
                      cudaHostAllocMapped | cudaHostAllocPortable));
    memset(flags, 0, GPU_FLAGS * sizeof(uint64_t));
    GPU(cudaHostGetDevicePointer(&on_gpu, flags, 0));
    host_flag = (volatile uint64_t *)flags;
    host_flag_on_gpu = (uint64_t *)on_gpu;
    GPU(cudaSetDevice(0));
}

void gpu_close(void)
{
    for (int i = 0; i < device_count; i++) {
        GPU(cudaSetDevice(i));
        GPU(cudaDeviceSynchronize());
        GPU(cudaFree(device[i].memory));
        GPU(cudaFree(device[i].flag));
        GPU(cudaEventDestroy(device[i].begin));
        GPU(cudaEventDestroy(device[i].end));
        for (int s = 0; s < GPU_STREAMS; s++) {
            GPU(cudaStreamDestroy(device[i].stream[s]));
        }
    }
    GPU(cudaFreeHost((void *)host_flag));
}

static void close_gate(cudaStream_t stream)
{
    host_flag[0] = 0;
    DRIVER(
        driver.wait((CUstream)stream, gpu_address(host_flag_on_gpu), 1, CU_STREAM_WAIT_VALUE_GEQ));
}

static void open_gate(void)
{
    host_flag[0] = 1;
}

/* Microseconds between the events; the gate is open and everything enqueued. */
static double elapsed(gpu_device *one)
{
    float ms;
    GPU(cudaEventSynchronize(one->end));
    GPU(cudaEventElapsedTime(&ms, one->begin, one->end));
    return ms * 1e3;
}

static double time_stream(gpu_device *one, gpu_enqueue *enqueue, const void *argument, int count)
{
    cudaStream_t stream = one->stream[0];
    close_gate(stream);
    GPU(cudaEventRecord(one->begin, stream));
    enqueue(argument, count, stream);
    GPU(cudaEventRecord(one->end, stream));
    open_gate();
    double us = elapsed(one);
    GPU(cudaStreamSynchronize(stream));
    return us;
}

enum { TRIES = 5 };

double gpu_stream_slope(int on, gpu_enqueue *enqueue, const void *argument, int low, int high)
{
    double few[TRIES], many[TRIES];
    GPU(cudaSetDevice(on));
    time_stream(&device[on], enqueue, argument, low);
    for (int i = 0; i < TRIES; i++) {
        few[i] = time_stream(&device[on], enqueue, argument, low);
        many[i] = time_stream(&device[on], enqueue, argument, high);
    }
    return (gpu_median(many, TRIES) - gpu_median(few, TRIES)) / (high - low);
}

cudaGraphExec_t gpu_capture(int on, gpu_enqueue *enqueue, const void *argument, int count)
{
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    cudaStream_t stream = device[on].stream[0];
    GPU(cudaSetDevice(on));
    GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    enqueue(argument, count, stream);
    GPU(cudaStreamEndCapture(stream, &graph));
    GPU(cudaGraphInstantiate(&replay, graph, 0));
    GPU(cudaGraphDestroy(graph));
    return replay;
}

static double time_graph(gpu_device *one, cudaGraphExec_t replay)
{
    cudaStream_t stream = one->stream[0];
    close_gate(stream);
    GPU(cudaEventRecord(one->begin, stream));
    GPU(cudaGraphLaunch(replay, stream));
    GPU(cudaEventRecord(one->end, stream));
    open_gate();
    double us = elapsed(one);
    GPU(cudaStreamSynchronize(stream));
    return us;
}

double gpu_graph_slope(int on, gpu_enqueue *enqueue, const void *argument, int low, int high)
{
    double few[TRIES], many[TRIES];
    cudaGraphExec_t small = gpu_capture(on, enqueue, argument, low);
    cudaGraphExec_t large = gpu_capture(on, enqueue, argument, high);
    for (int i = 0; i < 2; i++) { /* the first launch uploads */
        GPU(cudaGraphLaunch(small, device[on].stream[0]));
        GPU(cudaGraphLaunch(large, device[on].stream[0]));
        GPU(cudaStreamSynchronize(device[on].stream[0]));
    }
    for (int i = 0; i < TRIES; i++) {
        few[i] = time_graph(&device[on], small);
        many[i] = time_graph(&device[on], large);
    }
    GPU(cudaGraphExecDestroy(small));
    GPU(cudaGraphExecDestroy(large));
    return (gpu_median(many, TRIES) - gpu_median(few, TRIES)) / (high - low);
}
