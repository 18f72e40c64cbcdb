/* Rows about puts with a signal inside kernels, of two GPUs that answer each other: one way, by
 * size. All ways copy from the GPU's own memory into the peer's, by one block for every 4 KiB (64
 * at most), and the receiver's blocks all wait for the whole message:
 *
 * by hand: 16 bytes a thread; blocks are counted, the last one stores the flag by st.release.sys.
 * as peal: 8 bytes a thread with the places of a mirror; each block adds its share to the flag by
 * red.release.sys (backends/cuda/codegen/device/send.h), or stores it if it is the only one.
 * flag in word: 4 of 8 bytes are data, the others the turn; nothing is released, data is polled.
 */
#include "../../backends/cuda/codegen/device/memory.h"
#include "primitives.cuh"

enum { BY_HAND, AS_PEAL, IN_WORD };
enum { PUT_THREADS = 256, PUT_BLOCKS = 64, PUT_BYTES = 4096, WORD_PUT = 192, WORD_COUNT = 208 };
enum { WORD_PUT_FAILED = 224, WORD_PUT_TIME = 240 };
enum { MOST_BYTES = 1 << 20, POLLS_A_LOOK = 4096 };

/* One side. Data lies in halves of GPU_MEMORY: what is sent, what has come in. */
typedef struct put_side {
    char *from, *to, *in;
    uint64_t *flag, *peer_flag;
    long bytes, step; /* of a message; between rows of the mirror */
    unsigned width;   /* points in such a row */
    int turns, skipped;
    bool leads;
} put_side;

static __device__ bool is_late(long long start)
{
    return clock64() - start > 6000000000;
}

static __device__ void copy_by_hand(const put_side &s)
{
    const long units = s.bytes / 16, first = blockIdx.x * PUT_THREADS + threadIdx.x;
    for (long i = first; i < units; i += (long)gridDim.x * PUT_THREADS) {
        ((uint4 *)s.to)[i] = ((const uint4 *)s.from)[i];
    }
    if (s.bytes % 16 && first == 0) {
        ((uint64_t *)s.to)[2 * units] = ((const uint64_t *)s.from)[2 * units];
    }
}

static __device__ void copy_as_peal(const put_side &s)
{
    const unsigned points = (unsigned)(s.bytes / 8), share = (points + gridDim.x - 1) / gridDim.x;
    const unsigned first = blockIdx.x * share, left = points - first;
    const unsigned count = left < share ? left : share;
    for (unsigned i = threadIdx.x; i < count; i += PUT_THREADS) {
        const unsigned point = first + i, y = point / s.width;
        const long at = (long)(point - y * s.width) * 8 + y * s.step;
        *(uint64_t *)(s.to + at) = *(const uint64_t *)(s.from + at);
    }
}

/* By all threads, for the message of this turn. */
template <int way> static __device__ void put(const put_side &s, uint64_t turn)
{
    if (way == IN_WORD) {
        const long words = s.bytes / 8, step = (long)gridDim.x * PUT_THREADS;
        for (long i = blockIdx.x * PUT_THREADS + threadIdx.x; i < words; i += step) {
            const uint64_t value = ((const uint32_t *)s.from)[i] | turn << 32;
            asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"((uint64_t *)s.to + i),
                         "l"(value)
                         : "memory");
        }
        return;
    }
    if (way == BY_HAND) {
        copy_by_hand(s);
    } else {
        copy_as_peal(s);
    }
    __syncthreads();
    if (threadIdx.x != 0) {
        return;
    }
    const unsigned long long flag = (unsigned long long)(s.peer_flag + WORD_PUT);
    if (way == AS_PEAL && gridDim.x > 1) {
        peal_red_add_release_sys_(flag, 1);
        return;
    }
    if (gridDim.x > 1) {
        unsigned *count = (unsigned *)(s.flag + WORD_COUNT);
        peal_fence_acq_rel_sys_();
        if (atomicAdd(count, 1u) != gridDim.x - 1) {
            return;
        }
        *count = 0;
        peal_fence_acq_rel_gpu_();
    }
    peal_st_release_sys_(flag, way == AS_PEAL ? turn * gridDim.x : turn);
}

/* By all threads: until this turn's message is there. */
template <int way> static __device__ bool await_put(const put_side &s, uint64_t turn)
{
    const long long start = clock64();
    int late = 0;
    if (way == IN_WORD) {
        const long words = s.bytes / 8, step = (long)gridDim.x * PUT_THREADS;
        for (long i = blockIdx.x * PUT_THREADS + threadIdx.x; i < words && !late; i += step) {
            const unsigned long long word = (unsigned long long)((const uint64_t *)s.in + i);
            for (unsigned polls = 1; peal_ld_relaxed_sys_(word) >> 32 < turn && !late; polls++) {
                late = polls % POLLS_A_LOOK == 0 && is_late(start);
            }
        }
        return __syncthreads_or(late) == 0;
    }
    if (threadIdx.x == 0) {
        const unsigned long long word = (unsigned long long)(s.flag + WORD_PUT);
        const uint64_t value = way == AS_PEAL ? turn * gridDim.x : turn;
        for (unsigned polls = 1; peal_ld_acquire_sys_(word) < value && !late; polls++) {
            late = polls % POLLS_A_LOOK == 0 && is_late(start);
        }
    }
    return __syncthreads_or(late) == 0;
}

template <int way> static __global__ void puts_in_turn(const __grid_constant__ put_side s)
{
    uint64_t start = 0;
    for (int turn = 1; turn <= s.turns; turn++) {
        if (turn == s.skipped) {
            start = global_ns();
        }
        if (s.leads) {
            put<way>(s, turn);
        }
        if (!await_put<way>(s, turn)) {
            s.flag[WORD_PUT_FAILED] = 1;
            return;
        }
        if (!s.leads) {
            put<way>(s, turn);
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        s.flag[WORD_PUT_TIME] = global_ns() - start;
    }
}

/* Data that no earlier row has left: a row's number in every word. */
static void fill(const row *r)
{
    static uint32_t content[MOST_BYTES / 4];
    for (size_t i = 0; i < MOST_BYTES / 4; i++) {
        content[i] = (uint32_t)(i * 2654435761u + (uint32_t)r->a * 7 + (uint32_t)r->b);
    }
    for (int i = 0; i < 2; i++) {
        GPU(cudaSetDevice(i));
        GPU(cudaMemset(device[i].flag, 0, GPU_FLAGS * sizeof(uint64_t)));
        GPU(cudaMemcpy(device[i].memory, content, MOST_BYTES, cudaMemcpyHostToDevice));
        GPU(cudaMemset(device[i].memory + GPU_MEMORY / 2, 0, MOST_BYTES));
        GPU(cudaDeviceSynchronize());
    }
}

/* Whether GPU i has got what the other one has. */
static bool has_arrived(const row *r, int i)
{
    static uint32_t sent[MOST_BYTES / 4], got[MOST_BYTES / 4];
    const bool in_word = r->b == IN_WORD;
    GPU(cudaMemcpy(sent, device[1 - i].memory, (size_t)r->a, cudaMemcpyDefault));
    GPU(cudaMemcpy(got, device[i].memory + GPU_MEMORY / 2, (size_t)r->a, cudaMemcpyDefault));
    for (long k = 0; k < r->a / (in_word ? 8 : 4); k++) {
        if (got[in_word ? 2 * k : k] != sent[k]) {
            return false;
        }
    }
    return true;
}

/* r->a: bytes; r->b: way. Half a turn. */
static double puts(const row *r)
{
    static void (*const kernel[])(put_side) = {puts_in_turn<BY_HAND>, puts_in_turn<AS_PEAL>,
                                               puts_in_turn<IN_WORD>};
    const long blocks = (r->a + PUT_BYTES - 1) / PUT_BYTES;
    const unsigned grid = blocks < PUT_BLOCKS ? (unsigned)blocks : (unsigned)PUT_BLOCKS;
    const int turns = r->a > 65536 ? 600 : 3000;
    uint64_t word[256];
    fill(r);
    for (int i = 0; i < 2; i++) {
        put_side s = {};
        s.from = device[i].memory;
        s.to = device[1 - i].memory + GPU_MEMORY / 2;
        s.in = device[i].memory + GPU_MEMORY / 2;
        s.flag = device[i].flag;
        s.peer_flag = device[1 - i].flag;
        s.bytes = r->a;
        s.width = r->a < 4096 ? (unsigned)(r->a / 8) : 512;
        s.step = (long)s.width * 8;
        s.turns = turns;
        s.skipped = turns / 4;
        s.leads = i == 0;
        GPU(cudaSetDevice(i));
        kernel[r->b]<<<grid, PUT_THREADS, 0, device[i].stream[0]>>>(s);
        GPU(cudaGetLastError());
    }
    for (int i = 0; i < 2; i++) {
        GPU(cudaSetDevice(i));
        GPU(cudaStreamSynchronize(device[i].stream[0]));
    }
    GPU(cudaSetDevice(0));
    GPU(cudaMemcpy(word, device[0].flag, sizeof(word), cudaMemcpyDeviceToHost));
    if (word[WORD_PUT_FAILED] || !has_arrived(r, 0) || !has_arrived(r, 1)) {
        return NAN;
    }
    return word[WORD_PUT_TIME] * 1e-3 / (2.0 * (turns - turns / 4 + 1));
}

void rows_add_puts(void)
{
    static const char *const ways[] = {"by hand", "as peal", "flag in word"};
    static const long sizes[] = {8, 64, 512, 4096, 32768, 262144, MOST_BYTES};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int way = 0; way < 3; way++) {
            row *r =
                row_add(2, "us", puts, 0, "put with signal, %ld bytes, %s", sizes[i], ways[way]);
            r->a = sizes[i];
            r->b = way;
        }
    }
}
