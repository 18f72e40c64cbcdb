/* What the GPU benchmarks share: error checks, entry points of the driver, device code to store
 * and await flags, and two ways to time what a stream does.
 *
 * Times are slopes: the same work enqueued `low` and `high` times behind a kernel that keeps the
 * stream busy meanwhile, so that neither launching nor the events count. */
#ifndef PEAL_BENCH_GPU_CUH
#define PEAL_BENCH_GPU_CUH

#include <cuda.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GPU_MAX = 8, GPU_STREAMS = 4, GPU_EXIT = 7 };

/* Thrown instead of ending the program while gpu_throws is set. */
typedef struct gpu_failure {
    int line;
} gpu_failure;

inline bool gpu_throws;

static inline void gpu_fail(int line)
{
    if (gpu_throws) {
        throw gpu_failure{line};
    }
    _Exit(GPU_EXIT);
}

/* Ends the program with the call and the reason. */
static inline void gpu_check(cudaError_t error, const char *call, const char *file, int line)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
        gpu_fail(line);
    }
}

static inline void gpu_check_driver(CUresult result, const char *call, const char *file, int line)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s:%d: %s: CUresult %d\n", file, line, call, (int)result);
        gpu_fail(line);
    }
}

#define GPU(call)    gpu_check((call), #call, __FILE__, __LINE__)
#define DRIVER(call) gpu_check_driver((call), #call, __FILE__, __LINE__)

/* Entry points that the runtime API lacks; looked up at run time, so libcuda is not linked. */
typedef struct gpu_driver {
    decltype(&cuStreamWaitValue64) wait;
    decltype(&cuStreamWriteValue64) write;
    decltype(&cuStreamBatchMemOp) batch;
    decltype(&cuGraphAddBatchMemOpNode) add_batch_node;
    decltype(&cuGraphExecBatchMemOpNodeSetParams) set_batch_node;
    decltype(&cuCtxGetCurrent) current;
    decltype(&cuCtxCreate) create_context;
    decltype(&cuCtxDestroy) destroy_context;
} gpu_driver;

extern gpu_driver driver;

typedef struct gpu_device {
    int id;
    cudaStream_t stream[GPU_STREAMS];
    cudaEvent_t begin, end;
    uint64_t *flag; /* GPU_FLAGS words, zero */
    char *memory;   /* GPU_MEMORY bytes */
} gpu_device;

#define GPU_FLAGS  4096
#define GPU_MEMORY ((size_t)256 << 20)

extern gpu_device device[GPU_MAX];
extern int device_count;
extern volatile uint64_t *host_flag; /* GPU_FLAGS words of mapped memory */
extern uint64_t *host_flag_on_gpu;

/* Finds the entry points; false and a message: there is no driver or it is too old. */
bool gpu_open_driver(void);
/* Opens `wanted` devices (0: all) with peer access among them. */
void gpu_open(int wanted);
void gpu_close(void);
/* Ends captures that a failure left open, and forgets its error. */
void gpu_recover(void);

/* Enqueues the work `count` times on the stream, for GPU_SLOPE or a graph's capture. */
typedef void gpu_enqueue(const void *argument, int count, cudaStream_t stream);

/* Microseconds that one repetition of the work takes on a stream of the device. */
double gpu_stream_slope(int on, gpu_enqueue *enqueue, const void *argument, int low, int high);
/* The same, captured into one graph of so many repetitions. */
double gpu_graph_slope(int on, gpu_enqueue *enqueue, const void *argument, int low, int high);

cudaGraphExec_t gpu_capture(int on, gpu_enqueue *enqueue, const void *argument, int count);

/* Whether the event's work is done. "Not ready" is an answer, yet the runtime keeps it as the last
 * error: it is taken away again. */
static inline bool gpu_done(cudaEvent_t event)
{
    cudaError_t error = cudaEventQuery(event);
    if (error == cudaErrorNotReady) {
        cudaGetLastError();
        return false;
    }
    GPU(error);
    return true;
}

static inline double gpu_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static inline int gpu_compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Sorts the values. */
static inline double gpu_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(double), gpu_compare);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

static inline CUdeviceptr gpu_address(const volatile void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static __device__ inline void store_release(uint64_t *flag, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}

static __device__ inline uint64_t load_acquire(const uint64_t *flag)
{
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
    return value;
}

static __device__ inline uint64_t global_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* Polls until the flag is at least value; gives up after some seconds: false. The clock is looked
 * at seldom, so that it does not slow the polling down. */
static __device__ inline bool await_flag(const uint64_t *flag, uint64_t value)
{
    const long long limit = 6000000000;
    long long start = clock64();
    for (unsigned tries = 1; load_acquire(flag) < value; tries++) {
        if (tries % 4096 == 0 && clock64() - start > limit) {
            return false;
        }
    }
    return true;
}

#endif
