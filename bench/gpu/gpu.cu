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

void gpu_recover(void)
{
    for (int i = 0; i < device_count * GPU_STREAMS; i++) {
        cudaStream_t stream = device[i / GPU_STREAMS].stream[i % GPU_STREAMS];
        cudaStreamCaptureStatus status;
        cudaGraph_t graph = NULL;
        cudaSetDevice(i / GPU_STREAMS);
        if (cudaStreamIsCapturing(stream, &status) != cudaSuccess ||
            status != cudaStreamCaptureStatusNone) {
            cudaStreamEndCapture(stream, &graph);
        }
        if (graph) {
            cudaGraphDestroy(graph);
        }
    }
    cudaGetLastError();
}

/* Keeps a stream busy while the host enqueues what is to be timed. A wait for the host would do so
 * for any time, but hang if the driver can't take all that is enqueued. */
__global__ void delay(uint64_t ns)
{
    const uint64_t start = global_ns();
    while (global_ns() - start < ns) {
    }
}

typedef struct timed {
    gpu_device *on;
    gpu_enqueue *enqueue; /* or: */
    cudaGraphExec_t graph;
    const void *argument;
    int count;
} timed;

/* Microseconds from the end of the delay to the end of the work. A delay that was over before all
 * was enqueued is doubled, for this and for later calls. */
static double time_once(const timed *t)
{
    static uint64_t delay_ns = 300000;
    cudaStream_t stream = t->on->stream[0];
    for (int attempt = 0;; attempt++) {
        delay<<<1, 1, 0, stream>>>(delay_ns);
        GPU(cudaGetLastError());
        GPU(cudaEventRecord(t->on->begin, stream));
        if (t->graph) {
            GPU(cudaGraphLaunch(t->graph, stream));
        } else {
            t->enqueue(t->argument, t->count, stream);
        }
        GPU(cudaEventRecord(t->on->end, stream));
        const bool late = gpu_done(t->on->begin);
        float ms;
        GPU(cudaEventSynchronize(t->on->end));
        GPU(cudaStreamSynchronize(stream));
        GPU(cudaEventElapsedTime(&ms, t->on->begin, t->on->end));
        if (!late || attempt == 6) {
            return ms * 1e3;
        }
        delay_ns = delay_ns < 10000000 ? delay_ns * 2 : delay_ns;
    }
}

enum { TRIES = 5 };

/* The median of what `many` takes more than `few`, for one repetition. */
static double slope(const timed *few, const timed *many, int difference)
{
    double us[2][TRIES];
    for (int i = 0; i < TRIES; i++) {
        us[0][i] = time_once(few);
        us[1][i] = time_once(many);
    }
    return (gpu_median(us[1], TRIES) - gpu_median(us[0], TRIES)) / difference;
}

double gpu_stream_slope(int on, gpu_enqueue *enqueue, const void *argument, int low, int high)
{
    const timed few = {&device[on], enqueue, NULL, argument, low};
    const timed many = {&device[on], enqueue, NULL, argument, high};
    GPU(cudaSetDevice(on));
    time_once(&few);
    return slope(&few, &many, high - low);
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

double gpu_graph_slope(int on, gpu_enqueue *enqueue, const void *argument, int low, int high)
{
    const timed few = {&device[on], NULL, gpu_capture(on, enqueue, argument, low), NULL, 0};
    const timed many = {&device[on], NULL, gpu_capture(on, enqueue, argument, high), NULL, 0};
    for (int i = 0; i < 2; i++) { /* the first launch uploads */
        GPU(cudaGraphLaunch(few.graph, device[on].stream[0]));
        GPU(cudaGraphLaunch(many.graph, device[on].stream[0]));
        GPU(cudaStreamSynchronize(device[on].stream[0]));
    }
    double us = slope(&few, &many, high - low);
    GPU(cudaGraphExecDestroy(few.graph));
    GPU(cudaGraphExecDestroy(many.graph));
    return us;
}
