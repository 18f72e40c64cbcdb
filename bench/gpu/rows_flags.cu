/* Rows about flags: how long a store takes to be seen, by kernels, by stream memory operations and
 * by the host, and what batches of memory operations cost. */
#include "primitives.cuh"

/* Words of device[].flag and host_flag that these rows use. */
enum {
    WORD_PING = 8,
    WORD_FAILED = 16,
    WORD_TIME = 24,
    WORD_HOST_IN = 32,
    WORD_HOST_OUT = 48,
    WORD_BATCH = 512
};

static void clear_flags(void)
{
    for (int i = 0; i < device_count; i++) {
        GPU(cudaSetDevice(i));
        GPU(cudaMemset(device[i].flag, 0, GPU_FLAGS * sizeof(uint64_t)));
        GPU(cudaDeviceSynchronize());
    }
    memset((void *)host_flag, 0, GPU_FLAGS * sizeof(uint64_t));
    GPU(cudaSetDevice(0));
}

/* Stores turn after turn to the peer and waits for its answer. The leader notes the time, but for
 * the first turns, in which the other kernel may still have to start. */
__global__ void ping_pong(uint64_t *own, uint64_t *peer, int turns, int skipped, bool leads)
{
    uint64_t start = 0;
    for (int turn = 1; turn <= turns; turn++) {
        if (turn == skipped) {
            start = global_ns();
        }
        if (leads) {
            store_release(peer + WORD_PING, turn);
        }
        if (!await_flag(own + WORD_PING, turn)) {
            own[WORD_FAILED] = 1;
            return;
        }
        if (!leads) {
            store_release(peer + WORD_PING, turn);
        }
    }
    own[WORD_TIME] = global_ns() - start;
}

static double kernel_ping_pong(const row *r)
{
    enum { TURNS = 4000, SKIPPED = 1000 };
    uint64_t word[64];
    (void)r;
    clear_flags();
    for (int i = 0; i < 2; i++) {
        GPU(cudaSetDevice(i));
        ping_pong<<<1, 1, 0, device[i].stream[0]>>>(device[i].flag, device[1 - i].flag, TURNS,
                                                    SKIPPED, i == 0);
        GPU(cudaGetLastError());
    }
    for (int i = 0; i < 2; i++) {
        GPU(cudaStreamSynchronize(device[i].stream[0]));
    }
    GPU(cudaMemcpy(word, device[0].flag, sizeof(word), cudaMemcpyDeviceToHost));
    return word[WORD_FAILED] ? NAN : word[WORD_TIME] * 1e-3 / (2.0 * (TURNS - SKIPPED + 1));
}

static CUstreamBatchMemOpParams write_op(const volatile void *address, uint64_t value)
{
    CUstreamBatchMemOpParams op;
    memset(&op, 0, sizeof(op));
    op.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    op.writeValue.address = gpu_address(address);
    op.writeValue.value64 = value;
    return op;
}

static CUstreamBatchMemOpParams wait_op(const volatile void *address, uint64_t value)
{
    CUstreamBatchMemOpParams op;
    memset(&op, 0, sizeof(op));
    op.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    op.waitValue.address = gpu_address(address);
    op.waitValue.value64 = value;
    op.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    return op;
}

/* One turn of a ping-pong of streams. r->a: as one batch rather than two calls. */
static void memop_turn(int on, int turn, bool batched)
{
    const bool leads = on == 0;
    CUstream stream = (CUstream)device[on].stream[0];
    uint64_t *own = device[on].flag + WORD_PING, *peer = device[1 - on].flag + WORD_PING;
    GPU(cudaSetDevice(on));
    if (batched) {
        CUstreamBatchMemOpParams op[2] = {write_op(peer, turn), wait_op(own, turn)};
        if (!leads) {
            op[0] = wait_op(own, turn);
            op[1] = write_op(peer, turn);
        }
        DRIVER(driver.batch(stream, 2, op, 0));
        return;
    }
    if (leads) {
        DRIVER(driver.write(stream, gpu_address(peer), turn, 0));
    }
    DRIVER(driver.wait(stream, gpu_address(own), turn, CU_STREAM_WAIT_VALUE_GEQ));
    if (!leads) {
        DRIVER(driver.write(stream, gpu_address(peer), turn, 0));
    }
}

static double memop_ping_pong(const row *r)
{
    enum { TURNS = 110, SKIPPED = 10 };
    float ms;
    clear_flags();
    for (int turn = 1; turn <= TURNS; turn++) { /* it waits for the leader */
        memop_turn(1, turn, r->a);
    }
    for (int turn = 1; turn <= TURNS; turn++) {
        memop_turn(0, turn, r->a);
        if (turn == SKIPPED || turn == TURNS) {
            GPU(cudaEventRecord(turn == TURNS ? device[0].end : device[0].begin,
                                device[0].stream[0]));
        }
    }
    GPU(cudaEventSynchronize(device[0].end));
    GPU(cudaStreamSynchronize(device[1].stream[0]));
    GPU(cudaEventElapsedTime(&ms, device[0].begin, device[0].end));
    GPU(cudaSetDevice(0));
    return ms * 1e3 / (2.0 * (TURNS - SKIPPED));
}

/* The host stores, something on the GPU answers, the host sees it: the median of so many turns.
 * Gives up after seconds. */
static double host_turns(int turns)
{
    static double us[4096];
    for (int turn = 1; turn <= turns; turn++) {
        double start = gpu_now_us();
        host_flag[WORD_HOST_IN] = (uint64_t)turn;
        while (__atomic_load_n(&host_flag[WORD_HOST_OUT], __ATOMIC_ACQUIRE) < (uint64_t)turn) {
            if (gpu_now_us() - start > 3e6) {
                return NAN;
            }
        }
        us[turn - 1] = gpu_now_us() - start;
    }
    return gpu_median(us, turns);
}

/* r->a: one batch a turn rather than two calls. */
static double host_memop(const row *r)
{
    enum { TURNS = 60 };
    CUstream stream = (CUstream)device[0].stream[0];
    clear_flags();
    for (int turn = 1; turn <= TURNS; turn++) {
        CUstreamBatchMemOpParams op[2] = {wait_op(host_flag_on_gpu + WORD_HOST_IN, turn),
                                          write_op(host_flag_on_gpu + WORD_HOST_OUT, turn)};
        if (r->a) {
            DRIVER(driver.batch(stream, 2, op, 0));
        } else {
            DRIVER(driver.batch(stream, 1, &op[0], 0));
            DRIVER(driver.batch(stream, 1, &op[1], 0));
        }
    }
    double us = host_turns(TURNS);
    if (!isnan(us)) {
        GPU(cudaStreamSynchronize(device[0].stream[0]));
    }
    return us;
}

__global__ void answer_host(uint64_t *flags, int turns)
{
    for (int turn = 1; turn <= turns; turn++) {
        if (!await_flag(flags + WORD_HOST_IN, turn)) {
            return;
        }
        store_release(flags + WORD_HOST_OUT, turn);
    }
}

static double host_kernel(const row *r)
{
    enum { TURNS = 2000 };
    (void)r;
    clear_flags();
    answer_host<<<1, 1, 0, device[0].stream[0]>>>(host_flag_on_gpu, TURNS);
    GPU(cudaGetLastError());
    double us = host_turns(TURNS);
    GPU(cudaStreamSynchronize(device[0].stream[0]));
    return us;
}

/* What a row about batches puts into one: so many writes, then so many satisfied waits, on words of
 * this GPU, of the peer, or of the host. */
enum { OWN, PEER, HOST };

static int fill_batch(const row *r, CUstreamBatchMemOpParams *op)
{
    uint64_t *base = r->c == HOST   ? host_flag_on_gpu
                     : r->c == PEER ? device[1].flag
                                    : device[0].flag;
    int count = 0;
    for (int i = 0; i < r->a; i++) {
        op[count++] = write_op(base + WORD_BATCH + i * 16, 1);
    }
    for (int i = 0; i < r->b; i++) {
        op[count++] = wait_op(base + WORD_BATCH + i * 16, r->a ? 1 : 0);
    }
    return count;
}

static void enqueue_batches(const void *argument, int count, cudaStream_t stream)
{
    CUstreamBatchMemOpParams op[64];
    int ops = fill_batch((const row *)argument, op);
    for (int i = 0; i < count; i++) {
        DRIVER(driver.batch((CUstream)stream, ops, op, 0));
    }
}

static double batch_on_stream(const row *r)
{
    clear_flags();
    return gpu_stream_slope(0, enqueue_batches, r, 10, r->a + r->b > 8 ? 30 : 60);
}

static double batch_in_graph(const row *r)
{
    clear_flags();
    return gpu_graph_slope(0, enqueue_batches, r, 20, 120);
}

static double batch_submission(const row *r)
{
    enum { CALLS = 64 };
    CUstreamBatchMemOpParams op[64];
    double us[CALLS];
    int ops = fill_batch(r, op);
    clear_flags();
    for (int i = 0; i < CALLS; i++) {
        double start = gpu_now_us();
        DRIVER(driver.batch((CUstream)device[0].stream[0], ops, op, 0));
        us[i] = gpu_now_us() - start;
    }
    GPU(cudaStreamSynchronize(device[0].stream[0]));
    return gpu_median(us, CALLS);
}

/* Changing the value of a one-write node of an instantiated graph. */
static double patching(const row *r)
{
    enum { CALLS = 2000 };
    CUcontext context;
    CUgraphNode node;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    CUstreamBatchMemOpParams op = write_op(device[0].flag + WORD_BATCH, 1);
    CUDA_BATCH_MEM_OP_NODE_PARAMS params;
    (void)r;
    DRIVER(driver.current(&context));
    memset(&params, 0, sizeof(params));
    params.ctx = context;
    params.count = 1;
    params.paramArray = &op;
    GPU(cudaGraphCreate(&graph, 0));
    DRIVER(driver.add_batch_node(&node, (CUgraph)graph, NULL, 0, &params));
    GPU(cudaGraphInstantiate(&replay, graph, 0));
    GPU(cudaGraphLaunch(replay, device[0].stream[0]));
    GPU(cudaStreamSynchronize(device[0].stream[0]));
    double start = gpu_now_us();
    for (int i = 0; i < CALLS; i++) {
        op.writeValue.value64 = (cuuint64_t)i;
        DRIVER(driver.set_batch_node((CUgraphExec)replay, node, &params));
    }
    double us = (gpu_now_us() - start) / CALLS;
    GPU(cudaGraphExecDestroy(replay));
    GPU(cudaGraphDestroy(graph));
    return us;
}

static void batch_row(int gpus, row_measure *measure, double expected, const char *name,
                      long writes, long waits, long where)
{
    row *r = row_add(gpus, "us", measure, expected, "%s", name);
    r->a = writes;
    r->b = waits;
    r->c = where;
}

static void add_batches(void)
{
    static const int counts[4] = {1, 2, 8, 32};
    static const double writes[4] = {1.75, 2.4, 6.5, 22.6}, waits[4] = {1.2, 1.3, 2.3, 6.1};
    static const double calls[4] = {0.7, 0, 1.0, 2.2};
    char name[64];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "batch of %d writes, stream", counts[i]);
        batch_row(1, batch_on_stream, writes[i], name, counts[i], 0, OWN);
        snprintf(name, sizeof(name), "batch of %d writes, graph node", counts[i]);
        batch_row(1, batch_in_graph, counts[i] == 1 ? 1.9 : 0, name, counts[i], 0, OWN);
        snprintf(name, sizeof(name), "batch of %d satisfied waits, stream", counts[i]);
        batch_row(1, batch_on_stream, waits[i], name, 0, counts[i], OWN);
        snprintf(name, sizeof(name), "batch of %d satisfied waits, graph node", counts[i]);
        batch_row(1, batch_in_graph, 0, name, 0, counts[i], OWN);
        snprintf(name, sizeof(name), "submitting a batch of %d writes, CPU", counts[i]);
        batch_row(1, batch_submission, calls[i], name, counts[i], 0, OWN);
    }
}

void rows_add_flags(void)
{
    row_add(2, "us", kernel_ping_pong, 1.31,
            "flag: kernel store -> peer's polling kernel, one way");
    row_add(2, "us", memop_ping_pong, 6.8, "flag: stream write -> peer's stream wait, one way")->a =
        0;
    row_add(2, "us", memop_ping_pong, 6.8, "flag: the same, write and wait in one batch")->a = 1;
    row_add(1, "us", host_memop, 4.4, "host store -> stream wait -> stream write -> host")->a = 0;
    row_add(1, "us", host_memop, 4.4, "the same, wait and write in one batch")->a = 1;
    row_add(1, "us", host_kernel, 3.1, "host store -> polling kernel -> host");
    batch_row(1, batch_on_stream, 2.4, "batch: write + satisfied wait, stream", 1, 1, OWN);
    batch_row(1, batch_in_graph, 2.4, "batch: write + satisfied wait, graph node", 1, 1, OWN);
    add_batches();
    batch_row(2, batch_in_graph, 0, "one write to the peer, graph node", 1, 0, PEER);
    batch_row(1, batch_in_graph, 0, "one write to the host, graph node", 1, 0, HOST);
    batch_row(1, batch_in_graph, 0, "one satisfied wait on the host's word, graph node", 0, 1,
              HOST);
    row_add(1, "us", patching, 0.08, "patching a memory-operation node, CPU");
}
