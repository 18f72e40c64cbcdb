/* The child's side of the checks that can hang: each sets up streams that wait, does one thing, and
 * prints one line about what came of it. The parent's deadline ends it if it hangs. */
#include "primitives.cuh"

#include <sys/socket.h>
#include <unistd.h>

enum {
    WAITS_MAX = 32,
    PATIENCE_US = 1500000,
    WORD_APART = 16,
    WORD_STOP = 2048,
    WORD_STARTED = 2064
};

typedef struct waiters {
    int count;
    cudaStream_t stream[WAITS_MAX], rescue, busy;
    cudaEvent_t done[WAITS_MAX];
    uint64_t *flag; /* as the GPU sees them, WORD_APART apart */
    uint64_t *ones; /* pinned, for copies */
} waiters;

static void open_waiters(waiters *w, int count, bool host_flags, bool urgent, int rescue_on)
{
    int low = 0, high = 0;
    void *ones;
    w->count = count;
    GPU(cudaDeviceGetStreamPriorityRange(&low, &high));
    GPU(cudaStreamCreateWithFlags(&w->busy, cudaStreamNonBlocking));
    for (int i = 0; i < count; i++) {
        GPU(cudaStreamCreateWithFlags(&w->stream[i], cudaStreamNonBlocking));
        GPU(cudaEventCreateWithFlags(&w->done[i], cudaEventDisableTiming));
    }
    GPU(cudaSetDevice(rescue_on));
    GPU(cudaStreamCreateWithPriority(&w->rescue, cudaStreamNonBlocking, urgent ? high : low));
    GPU(cudaSetDevice(0));
    w->flag = host_flags ? host_flag_on_gpu : device[0].flag;
    GPU(cudaHostAlloc(&ones, WAITS_MAX * WORD_APART * sizeof(uint64_t), 0));
    w->ones = (uint64_t *)ones;
    for (int i = 0; i < WAITS_MAX * WORD_APART; i++) {
        w->ones[i] = 1;
    }
}

static void enqueue_waits(waiters *w)
{
    for (int i = 0; i < w->count; i++) {
        DRIVER(driver.wait((CUstream)w->stream[i], gpu_address(w->flag + i * WORD_APART), 1,
                           CU_STREAM_WAIT_VALUE_GEQ));
        GPU(cudaEventRecord(w->done[i], w->stream[i]));
    }
}

/* Fills the GPU until the host says stop, or for some seconds. */
__global__ void occupy(uint64_t *host)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        store_release(host + WORD_STARTED, 1);
    }
    if (threadIdx.x == 0) {
        await_flag(host + WORD_STOP, 1);
    }
    __syncthreads();
}

/* True: it runs. */
static bool start_busy(waiters *w)
{
    int blocks = 0;
    cudaDeviceProp property;
    void *arguments[1] = {&host_flag_on_gpu};
    GPU(cudaGetDeviceProperties(&property, 0));
    GPU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, occupy, 1024, 0));
    GPU(cudaLaunchCooperativeKernel(occupy, dim3((unsigned)(blocks * property.multiProcessorCount)),
                                    dim3(1024), arguments, 0, w->busy));
    double begin = gpu_now_us();
    while (!host_flag[WORD_STARTED] && gpu_now_us() - begin < 1e6) {
    }
    return host_flag[WORD_STARTED] != 0;
}

__global__ void store_ones(uint64_t *flag, int count)
{
    for (int i = 0; i < count; i++) {
        store_release(flag + i * WORD_APART, 1);
    }
}

static void release(waiters *w, const char *way, int rescue_on)
{
    GPU(cudaSetDevice(rescue_on));
    if (strstr(way, "stream-write")) {
        for (int i = 0; i < w->count; i++) {
            DRIVER(driver.write((CUstream)w->rescue, gpu_address(w->flag + i * WORD_APART), 1, 0));
        }
    } else if (!strcmp(way, "host-store")) {
        for (int i = 0; i < w->count; i++) {
            __atomic_store_n(&host_flag[i * WORD_APART], 1, __ATOMIC_RELEASE);
        }
    } else if (!strcmp(way, "copy")) {
        GPU(cudaMemcpyAsync(w->flag, w->ones, (size_t)w->count * WORD_APART * sizeof(uint64_t),
                            cudaMemcpyHostToDevice, w->rescue));
    } else {
        store_ones<<<1, 1, 0, w->rescue>>>(w->flag, w->count);
        GPU(cudaGetLastError());
    }
    GPU(cudaSetDevice(0));
}

static int count_done(const waiters *w)
{
    int done = 0;
    for (int i = 0; i < w->count; i++) {
        done += gpu_done(w->done[i]);
    }
    return done;
}

/* rescue WAY WAITS busy|idle */
static int rescue(char **argv)
{
    waiters w;
    const char *way = argv[0];
    const bool busy = !strcmp(argv[2], "busy");
    const int rescue_on = !strcmp(way, "peer-stream-write") ? 1 : 0;
    open_waiters(&w, atoi(argv[1]), !strcmp(way, "host-store"), !strncmp(way, "urgent", 6),
                 rescue_on);
    enqueue_waits(&w);
    const bool runs = busy && start_busy(&w);
    int done = count_done(&w);
    if (done) {
        printf("wrong: %d waits were over before the release\n", done);
        return 1;
    }
    double begin = gpu_now_us();
    release(&w, way, rescue_on);
    double called = gpu_now_us() - begin;
    while (done < w.count && gpu_now_us() - begin < PATIENCE_US) {
        done = count_done(&w);
    }
    printf("%s: %d of %d released after %.1f us, calls %.1f us%s\n", done == w.count ? "yes" : "NO",
           done, w.count, gpu_now_us() - begin, called,
           !busy  ? ""
           : runs ? ", kernel ran"
                  : ", kernel had NOT started");
    fflush(stdout);
    host_flag[WORD_STOP] = 1;
    _exit(0); /* whatever still waits goes with the process */
}

/* end WAY WAITS: what the process does while its streams wait. */
static int end(char **argv)
{
    waiters w;
    const char *way = argv[0];
    CUcontext context = NULL;
    if (!strcmp(way, "destroy-context")) {
        DRIVER(driver.create_context(&context, NULL, 0, 0));
        GPU(cudaMalloc((void **)&device[0].flag, GPU_FLAGS * sizeof(uint64_t)));
        GPU(cudaMemset(device[0].flag, 0, GPU_FLAGS * sizeof(uint64_t)));
        w.count = atoi(argv[1]);
        for (int i = 0; i < w.count; i++) {
            GPU(cudaStreamCreateWithFlags(&w.stream[i], cudaStreamNonBlocking));
            GPU(cudaEventCreateWithFlags(&w.done[i], cudaEventDisableTiming));
        }
        w.flag = device[0].flag;
    } else {
        open_waiters(&w, atoi(argv[1]), false, false, 0);
    }
    enqueue_waits(&w);
    printf("ready\n");
    fflush(stdout);
    double begin = gpu_now_us();
    if (!strcmp(way, "_exit")) {
        _exit(0);
    } else if (!strcmp(way, "kill")) {
        pause();
    } else if (!strcmp(way, "reset")) {
        GPU(cudaDeviceReset());
    } else if (!strcmp(way, "destroy-context")) {
        DRIVER(driver.destroy_context(context));
    } else if (!strcmp(way, "destroy-stream")) {
        for (int i = 0; i < w.count; i++) {
            GPU(cudaStreamDestroy(w.stream[i]));
        }
    }
    if (strcmp(way, "exit") != 0) {
        printf("the call returned after %.1f ms\n", (gpu_now_us() - begin) * 1e-3);
    }
    fflush(stdout);
    return 0;
}

/* Words of a side of `replay`. */
enum {
    WORD_ACK = 256,
    WORD_SIG = 272,
    WORD_DATA = 288,
    WORD_SENT = 304,
    WORD_SEEN = 320,
    WORD_ERRORS = 336
};

__global__ void put(uint64_t *own, uint64_t *peer)
{
    peer[WORD_DATA] = ++own[WORD_SENT];
}

__global__ void check(uint64_t *own)
{
    own[WORD_ERRORS] += own[WORD_DATA] != ++own[WORD_SEEN];
}

typedef struct side {
    uint64_t *own, *peer;
} side;

/* Rounds with credits, all values constant, so that every replay is alike: wait for the credit and
 * take it, put, signal; wait for the peer's signal and take it, look, give credit. */
static void enqueue_rounds(const void *argument, int count, cudaStream_t stream)
{
    const side *s = (const side *)argument;
    CUstream on = (CUstream)stream;
    for (int i = 0; i < count; i++) {
        DRIVER(driver.wait(on, gpu_address(s->own + WORD_ACK), 1, CU_STREAM_WAIT_VALUE_GEQ));
        DRIVER(driver.write(on, gpu_address(s->own + WORD_ACK), 0, 0));
        put<<<1, 1, 0, stream>>>(s->own, s->peer);
        DRIVER(driver.write(on, gpu_address(s->peer + WORD_SIG), 1, 0));
        DRIVER(driver.wait(on, gpu_address(s->own + WORD_SIG), 1, CU_STREAM_WAIT_VALUE_GEQ));
        DRIVER(driver.write(on, gpu_address(s->own + WORD_SIG), 0, 0));
        check<<<1, 1, 0, stream>>>(s->own);
        DRIVER(driver.write(on, gpu_address(s->peer + WORD_ACK), 1, 0));
    }
    GPU(cudaGetLastError());
}

/* replay GPUS */
static int replay(char **argv)
{
    enum { REPLAYS = 200, ROUNDS = 8 };
    const int on[2] = {0, atoi(argv[0]) > 1 ? 1 : 0};
    uint64_t *base[2] = {device[0].flag, device[on[1]].flag + 1024}, word[2][512], one = 1;
    cudaStream_t stream[2] = {device[0].stream[0], device[on[1]].stream[1]};
    cudaGraphExec_t graph[2];
    for (int i = 0; i < 2; i++) {
        side s = {base[i], base[1 - i]};
        GPU(cudaMemcpy(base[i] + WORD_ACK, &one, sizeof(one), cudaMemcpyHostToDevice));
        graph[i] = gpu_capture(on[i], enqueue_rounds, &s, ROUNDS);
        GPU(cudaSetDevice(on[i]));
        GPU(cudaGraphUpload(graph[i], stream[i]));
        GPU(cudaStreamSynchronize(stream[i]));
    }
    double begin = gpu_now_us();
    for (int i = 0; i < 2 * REPLAYS; i++) {
        GPU(cudaSetDevice(on[i % 2]));
        GPU(cudaGraphLaunch(graph[i % 2], stream[i % 2]));
    }
    uint64_t errors = 0;
    for (int i = 0; i < 2; i++) {
        GPU(cudaStreamSynchronize(stream[i]));
    }
    double us = (gpu_now_us() - begin) / (REPLAYS * ROUNDS);
    for (int i = 0; i < 2; i++) {
        GPU(cudaMemcpy(word[i], base[i], sizeof(word[i]), cudaMemcpyDeviceToHost));
        errors += word[i][WORD_ERRORS] + (word[i][WORD_SEEN] != REPLAYS * ROUNDS);
    }
    printf("%s: %d replays of %d rounds, %llu wrong values, %.2f us a round\n",
           errors ? "NO" : "yes", REPLAYS, ROUNDS, (unsigned long long)errors, us);
    return errors ? 1 : 0;
}

__global__ void turn_kernel(uint64_t *own, uint64_t *peer, uint64_t turn, bool leads)
{
    if (leads) {
        store_release(peer, turn);
    }
    await_flag(own, turn);
    if (!leads) {
        store_release(peer, turn);
    }
}

static void enqueue_turn(uint64_t *own, uint64_t *peer, uint64_t turn, bool leads, bool kernels)
{
    cudaStream_t stream = device[0].stream[0];
    if (kernels) {
        turn_kernel<<<1, 1, 0, stream>>>(own, peer, turn, leads);
        GPU(cudaGetLastError());
        return;
    }
    store_ones<<<1, 1, 0, stream>>>(device[0].flag, 1); /* some work of its own */
    if (leads) {
        DRIVER(driver.write((CUstream)stream, gpu_address(peer), turn, 0));
    }
    DRIVER(driver.wait((CUstream)stream, gpu_address(own), turn, CU_STREAM_WAIT_VALUE_GEQ));
    if (!leads) {
        DRIVER(driver.write((CUstream)stream, gpu_address(peer), turn, 0));
    }
}

/* pair memops|kernels: this process and a fork of it, made before either has seen the GPU. */
static int pair(char **argv)
{
    enum { TURNS = 100 };
    const bool kernels = !strcmp(argv[0], "kernels");
    cudaIpcMemHandle_t handle;
    uint64_t *shared;
    int link[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, link) != 0) {
        return 1;
    }
    const bool leads = fork() != 0;
    if (!gpu_open_driver()) {
        return GPU_EXIT;
    }
    gpu_open(1);
    if (leads) {
        GPU(cudaMalloc((void **)&shared, 2 << 20));
        GPU(cudaMemset(shared, 0, 2 << 20));
        GPU(cudaDeviceSynchronize());
        GPU(cudaIpcGetMemHandle(&handle, shared));
        if (write(link[0], &handle, sizeof(handle)) != sizeof(handle)) {
            return 1;
        }
    } else {
        if (read(link[1], &handle, sizeof(handle)) != sizeof(handle)) {
            return 1;
        }
        GPU(cudaIpcOpenMemHandle((void **)&shared, handle, cudaIpcMemLazyEnablePeerAccess));
    }
    uint64_t *own = shared + (leads ? 0 : 1024), *peer = shared + (leads ? 1024 : 0);
    double begin = 0;
    for (int turn = 1; turn <= TURNS; turn++) {
        enqueue_turn(own, peer, (uint64_t)turn, leads, kernels);
        if (turn == 10) {
            GPU(cudaStreamSynchronize(device[0].stream[0]));
            begin = gpu_now_us();
        }
    }
    GPU(cudaStreamSynchronize(device[0].stream[0]));
    if (leads) {
        printf("yes: %d turns, %.1f us one way\n", TURNS,
               (gpu_now_us() - begin) / (2.0 * (TURNS - 10)));
        fflush(stdout);
    }
    /* The memory lives until the other has also ended. */
    char word = 0;
    if (write(link[leads ? 0 : 1], &word, 1) != 1 || read(link[leads ? 0 : 1], &word, 1) != 1) {
        return 1;
    }
    return 0;
}

int rescue_child(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[0], "pair")) {
        return pair(argv + 1);
    }
    if (!gpu_open_driver()) {
        return GPU_EXIT;
    }
    gpu_open(argc > 1 && (!strcmp(argv[1], "peer-stream-write") || !strcmp(argv[1], "2")) ? 2 : 1);
    if (argc == 4 && !strcmp(argv[0], "rescue")) {
        return rescue(argv + 1);
    }
    if (argc == 3 && !strcmp(argv[0], "end")) {
        return end(argv + 1);
    }
    if (argc == 2 && !strcmp(argv[0], "replay")) {
        return replay(argv + 1);
    }
    return 2;
}
