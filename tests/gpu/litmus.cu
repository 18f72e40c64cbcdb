/* Whether GPUs keep the order that docs/memory_model.md says they keep: one small kernel a rule, of
 * blocks that store, release, acquire and load as peal's device code does, by its own instructions
 * (memory.h), with delays at random. A load that sees another step's value than the one it has
 * waited for was forbidden: none may. Each rule is also run without its releases and acquires, for
 * information: what is seen then, if anything, is what the rule forbids.
 *
 * gpu_litmus [ITERATIONS [RULE]]. One line a run; exit status 1: a rule does not hold. Rules
 * between devices are run within the first one, too. */
#include "backends/cuda/device/memory.h"

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 256,
    BLOCKS = 8, /* of a side */
    PART = 512, /* values that a block stores for one step */
    APART = 32, /* words of 8 bytes between two that are polled */
    WORDS = 4 * BLOCKS * APART,
    VALUES = 2 * BLOCKS * PART,
    LOOK = 1024,               /* polls between looks at the clock */
    PATIENCE = 5000 * 1000000u /* ns that a wait may take: then the rule is stuck */
};

/* What one device has: its copy of what is sent to it, and words that others store to. */
struct place {
    unsigned *value;          /* VALUES */
    unsigned long long *flag; /* WORDS: BLOCKS flags, then BLOCKS credits */
    unsigned *epoch;          /* WORDS: BLOCKS epochs, then `arrived` */
    unsigned long long *seen; /* allowed, forbidden, stuck */
};

struct setting {
    place side[2];
    int first; /* side of the first block; the next BLOCKS are of the other one */
    unsigned iterations;
    volatile unsigned *given_up; /* on the host */
};

/* ---- what all rules do ---- */

struct actor {
    const setting &with;
    int side, block;
    unsigned allowed, forbidden;

    __device__ const place &mine() const
    {
        return with.side[side];
    }
    __device__ const place &other() const
    {
        return with.side[1 - side];
    }
    __device__ unsigned *part(const place &at, unsigned step, int of) const
    {
        return at.value + ((step & 1) * BLOCKS + of) * PART;
    }
};

/* Up to about a microsecond, mostly less; each warp its own. */
static __device__ void delay(const actor &a, unsigned step)
{
    unsigned x = ((step * 2 + a.side) * BLOCKS + a.block) * (THREADS / 32) + threadIdx.x / 32;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    x ^= x >> 16;
    if (x % 4 == 0)
        __nanosleep(x >> 8 & 1023);
    else if (x % 4 == 1)
        for (unsigned i = x >> 8 & 127; i > 0; i--)
            asm volatile("" ::: "memory");
}

static __device__ bool is_over(const setting &with, unsigned polls, unsigned long long *begin)
{
    if (polls % LOOK != 0)
        return false;
    unsigned long long now = peal_clock_();
    *begin = *begin ? *begin : now;
    if (now - *begin > PATIENCE)
        *with.given_up = 1;
    return *with.given_up != 0;
}

/* broken: relaxed accesses, as if nobody had to be told. */
template <bool broken> static __device__ void publish(unsigned *epoch, unsigned value)
{
    if (broken)
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(epoch), "r"(value) : "memory");
    else
        peal_release_gpu_(epoch, value);
}

template <bool broken> static __device__ void store_flag(void *flag, unsigned long long value)
{
    if (broken)
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
    else
        peal_store_((unsigned long long)flag, value);
}

template <bool broken> static __device__ void add_share(void *flag)
{
    if (broken)
        asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(flag), "l"(1ull) : "memory");
    else
        peal_add_to_((unsigned long long)flag, 1);
}

/* All threads: until `count` epochs have come so far; a barrier. */
template <bool broken>
static __device__ bool await_epochs(const actor &a, const unsigned *epoch, int count,
                                    unsigned value)
{
    int over = 0;

    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const unsigned *word = epoch + i * APART;
        unsigned long long begin = 0;
        for (unsigned polls = 1; !over; polls++) {
            unsigned seen;
            if (broken)
                asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                             : "=r"(seen)
                             : "l"(word)
                             : "memory");
            else
                seen = peal_acquire_gpu_(word);
            if ((int)(seen - value) >= 0)
                break;
            over = is_over(a.with, polls, &begin);
        }
    }
    return __syncthreads_or(over) == 0;
}

/* The same of a flag; `lazily`: by relaxed polls, and a fence behind them. */
template <bool broken>
static __device__ bool await_flag(const actor &a, const void *flag, unsigned long long value,
                                  bool lazily)
{
    int over = 0;

    if (threadIdx.x == 0) {
        unsigned long long begin = 0, word = (unsigned long long)flag;
        for (unsigned polls = 1; !over; polls++) {
            unsigned long long seen = broken || lazily ? peal_load_(word) : peal_acquire_(word);
            if ((long long)(seen - value) >= 0)
                break;
            over = is_over(a.with, polls, &begin);
        }
        if (lazily && !broken)
            peal_fence_();
    }
    return __syncthreads_or(over) == 0;
}

static __device__ void store_part(unsigned *part, unsigned step)
{
    for (int i = threadIdx.x; i < PART; i += blockDim.x)
        part[i] = step;
}

/* Old values come into the SM's cache, so that a load that needs no newer ones finds them. */
static __device__ void touch_part(const unsigned *part)
{
    for (int i = threadIdx.x; i < PART; i += blockDim.x)
        asm volatile("{\n.reg .u32 value;\nld.global.u32 value, [%0];\n}" ::"l"(part + i));
}

/* Values that other threads have stored than this one would have. */
static __device__ void look_at(actor &a, const unsigned *part, unsigned step)
{
    for (int i = threadIdx.x; i < PART; i += blockDim.x) {
        unsigned value = part[(i * 33 + step) % PART];
        a.allowed += value == step;
        a.forbidden += value != step;
    }
}

/* ---- rules of one device ---- */

/* Epochs: pairs of blocks, one stores and one reads, each behind the other's epoch. */
template <bool broken> static __device__ void epochs(actor &a)
{
    unsigned *part = a.part(a.mine(), 0, a.block / 2);
    unsigned *my_epoch = a.mine().epoch + a.block * APART;
    const unsigned *its_epoch = a.mine().epoch + (a.block ^ 1) * APART;

    for (unsigned i = 1; i <= a.with.iterations; i++) {
        bool reads = a.block & 1;
        if (reads)
            touch_part(part);
        delay(a, i);
        if (!await_epochs<broken>(a, its_epoch, 1, reads ? i : i - 1))
            return;
        if (reads)
            look_at(a, part, i);
        else
            store_part(part, i);
        __syncthreads();
        if (threadIdx.x == 0)
            publish<broken>(my_epoch, i);
    }
}

/* True in the last of the side's blocks, as peal_is_last_ (run.h). */
template <bool broken> static __device__ bool is_last(const actor &a, bool stores_to_peers)
{
    __shared__ unsigned last;
    unsigned *arrived = a.mine().epoch + BLOCKS * APART;

    __syncthreads();
    if (threadIdx.x == 0) {
        if (!broken && stores_to_peers)
            peal_fence_();
        else if (!broken)
            peal_fence_gpu_();
        last = atomicAdd(arrived, 1u) == BLOCKS - 1;
        if (last)
            *(volatile unsigned *)arrived = 0;
        if (last && !broken)
            peal_fence_gpu_();
    }
    __syncthreads();
    return last != 0;
}

/* Counts: all blocks store, the last to be counted reads what all have stored. All wait for the
 * epochs of all, so that one step's count is over before the next one's begins. */
template <bool broken> static __device__ void counts(actor &a)
{
    unsigned *epoch = a.mine().epoch;

    for (unsigned i = 1; i <= a.with.iterations; i++) {
        for (int b = 0; b < BLOCKS; b++)
            touch_part(a.part(a.mine(), 0, b));
        delay(a, i);
        store_part(a.part(a.mine(), 0, a.block), i);
        if (is_last<broken>(a, false))
            for (int b = 0; b < BLOCKS; b++)
                look_at(a, a.part(a.mine(), 0, b), i);
        __syncthreads();
        if (threadIdx.x == 0)
            peal_release_gpu_(epoch + a.block * APART, i);
        if (!await_epochs<false>(a, epoch, BLOCKS, i))
            return;
    }
}

/* ---- rules of two devices, or of two halves of one ---- */

/* Sums of shares: each block stores its part into the other side's memory and adds to its flag;
 * all read the whole message. Two storages, no credits: who has the peer's message i may overwrite
 * what the peer read for i - 1. A block adds behind the epochs of all who add. */
template <bool broken, bool lazily> static __device__ void shares(actor &a)
{
    unsigned *epoch = a.mine().epoch;

    for (unsigned i = 1; i <= a.with.iterations; i++) {
        if (!await_epochs<broken>(a, epoch, BLOCKS, i - 1))
            return;
        store_part(a.part(a.other(), i, a.block), i);
        delay(a, i);
        __syncthreads();
        if (threadIdx.x == 0)
            add_share<broken>(a.other().flag);
        touch_part(a.part(a.mine(), i, (a.block + i) % BLOCKS));
        if (!await_flag<broken>(a, a.mine().flag, (unsigned long long)i * BLOCKS, lazily))
            return;
        for (int b = 0; b < BLOCKS; b++)
            look_at(a, a.part(a.mine(), i, b), i);
        __syncthreads();
        if (threadIdx.x == 0)
            publish<broken>(epoch + a.block * APART, i);
    }
}

/* The last block stores the flag, for what all blocks have stored into the other side's memory. */
template <bool broken> static __device__ void lasts(actor &a)
{
    unsigned *epoch = a.mine().epoch;

    for (unsigned i = 1; i <= a.with.iterations; i++) {
        store_part(a.part(a.other(), i, a.block), i);
        delay(a, i);
        if (is_last<broken>(a, true) && threadIdx.x == blockDim.x - 1)
            store_flag<broken>(a.other().flag, i);
        touch_part(a.part(a.mine(), i, (a.block + i) % BLOCKS));
        if (!await_flag<broken>(a, a.mine().flag, i, false))
            return;
        for (int b = 0; b < BLOCKS; b++)
            look_at(a, a.part(a.mine(), i, b), i);
        __syncthreads();
        if (threadIdx.x == 0)
            peal_release_gpu_(epoch + a.block * APART, i);
        if (!await_epochs<false>(a, epoch, BLOCKS, i)) /* the count is set back */
            return;
    }
}

/* Credits: one storage; block b of side 0 sends to block b of side 1, which gives it back. */
template <bool broken> static __device__ void credits(actor &a)
{
    unsigned long long *flag = a.with.side[1].flag + a.block * APART;
    unsigned long long *credit = a.with.side[0].flag + (BLOCKS + a.block) * APART;
    unsigned *part = a.part(a.with.side[1], 0, a.block);

    for (unsigned i = 1; i <= a.with.iterations; i++) {
        if (a.side == 0) {
            if (!await_flag<broken>(a, credit, i - 1, false))
                return;
            store_part(part, i);
        } else {
            touch_part(part);
            if (!await_flag<broken>(a, flag, i, false))
                return;
            look_at(a, part, i);
            delay(a, i);
            look_at(a, part, i);
        }
        __syncthreads();
        if (threadIdx.x == 0)
            store_flag<broken>(a.side == 0 ? flag : credit, i);
    }
}

/* A chain over both scopes: even blocks send, and wait for the peer's message; the odd block beside
 * each waits for its epoch only, and reads the message. */
template <bool broken> static __device__ void chains(actor &a)
{
    const int sender = a.block & ~1;
    unsigned *my_epoch = a.mine().epoch + a.block * APART;
    const unsigned *its_epoch = a.mine().epoch + (a.block ^ 1) * APART;

    for (unsigned i = 1; i <= a.with.iterations; i++) {
        const unsigned *in = a.part(a.mine(), i, sender);
        if (a.block != sender) {
            touch_part(in);
            if (!await_epochs<broken>(a, its_epoch, 1, i))
                return;
            look_at(a, in, i);
        } else {
            /* the reader beside is through with the message before: this one says so */
            if (!await_epochs<broken>(a, its_epoch, 1, i - 1))
                return;
            store_part(a.part(a.other(), i, sender), i);
            delay(a, i);
            __syncthreads();
            if (threadIdx.x == 0)
                store_flag<broken>(a.other().flag + sender * APART, i);
            if (!await_flag<broken>(a, a.mine().flag + sender * APART, i, false))
                return;
        }
        __syncthreads();
        if (threadIdx.x == 0)
            publish<broken>(my_epoch, i);
    }
}

/* Kernels that begin early: each looks at what the one before has stored, which may still run. The
 * rule without its wait is that of a kernel that reads as soon as it has begun. */
template <bool broken> static __device__ void begins(actor &a, unsigned step)
{
    const place &at = a.mine();

    for (int b = 0; b < BLOCKS; b++)
        touch_part(a.part(at, step - 1, b));
    if (!broken)
        peal_follow_();
    else
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    for (int b = 0; b < BLOCKS; b++)
        look_at(a, a.part(at, step - 1, b), step - 1);
    delay(a, step);
    store_part(a.part(at, step, a.block), step);
}

/* ---- runs ---- */

enum rule { EPOCHS, COUNTS, SHARES, POLLS, LASTS, CREDITS, CHAINS, BEGINS, RULES };

static const struct {
    const char *name, *what;
    bool between; /* devices */
} rules[RULES] = {
    {"epochs", "st.release.gpu, ld.acquire.gpu, barriers", false},
    {"counts", "fence.acq_rel.gpu, atomicAdd, fence.acq_rel.gpu", false},
    {"shares", "red.release.sys of many blocks, ld.acquire.sys", true},
    {"polls", "red.release.sys, ld.relaxed.sys and fence.acq_rel.sys", true},
    {"lasts", "fence.acq_rel.sys, atomicAdd, st.release.sys of the last", true},
    {"credits", "st.release.sys both ways, one storage", true},
    {"chains", "st.release.sys, then st.release.gpu of who acquired it", true},
    {"begins", "the end of a kernel, griddepcontrol.wait of the next", false},
};

/* step: of a rule that is a kernel a step. */
template <int rule, bool broken>
static __global__ void __launch_bounds__(THREADS)
    litmus(const __grid_constant__ setting with, unsigned step)
{
    actor a = {with, (with.first + (int)blockIdx.x / BLOCKS) & 1, (int)blockIdx.x % BLOCKS, 0, 0};

    if (rule == EPOCHS)
        epochs<broken>(a);
    else if (rule == COUNTS)
        counts<broken>(a);
    else if (rule == SHARES)
        shares<broken, false>(a);
    else if (rule == POLLS)
        shares<broken, true>(a);
    else if (rule == LASTS)
        lasts<broken>(a);
    else if (rule == CREDITS)
        credits<broken>(a);
    else if (rule == CHAINS)
        chains<broken>(a);
    else
        begins<broken>(a, step);
    atomicAdd(&a.mine().seen[0], (unsigned long long)a.allowed);
    atomicAdd(&a.mine().seen[1], (unsigned long long)a.forbidden);
}

typedef void litmus_kernel(setting, unsigned);

template <int rule> static litmus_kernel *choose(int wanted, bool broken)
{
    if constexpr (rule == RULES)
        return NULL;
    else
        return wanted == rule ? (broken ? litmus<rule, true> : litmus<rule, false>)
                              : choose<rule + 1>(wanted, broken);
}

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "gpu_litmus: %s: %s\n", what, cudaGetErrorString(error));
    exit(2);
}

static void *zeros(size_t bytes)
{
    void *memory;
    check(cudaMalloc(&memory, bytes), "cudaMalloc");
    check(cudaMemset(memory, 0, bytes), "cudaMemset");
    return memory;
}

static place open_place(int device)
{
    check(cudaSetDevice(device), "cudaSetDevice");
    place at = {(unsigned *)zeros(VALUES * sizeof(unsigned)),
                (unsigned long long *)zeros(WORDS * sizeof(unsigned long long)),
                (unsigned *)zeros(WORDS * sizeof(unsigned)),
                (unsigned long long *)zeros(2 * sizeof(unsigned long long))};
    check(cudaDeviceSynchronize(), "zeroes");
    return at;
}

static void close_place(const place *at)
{
    cudaFree(at->value);
    cudaFree(at->flag);
    cudaFree(at->epoch);
    cudaFree(at->seen);
}

/* One kernel that takes all steps; or one a step, each launched while the one before may run. */
static void start(int rule, bool broken, int blocks, const setting &with)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute early = {};

    config.gridDim = dim3((unsigned)blocks, 1, 1);
    config.blockDim = dim3(THREADS, 1, 1);
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &early;
    config.numAttrs = rule == BEGINS;
    for (unsigned step = 1; step <= (rule == BEGINS ? with.iterations : 1); step++)
        check(cudaLaunchKernelEx(&config, choose<0>(rule, broken), with, step), rules[rule].name);
}

/* Whether the rule holds. Both halves on device 0, or one on each of two. */
static bool try_rule(int rule, bool broken, int devices, unsigned iterations,
                     volatile unsigned *given_up)
{
    setting with = {{open_place(0), open_place(devices - 1)}, 0, iterations, given_up};
    unsigned long long seen[2][2], allowed, forbidden;
    cudaEvent_t event[2];
    float ms = 0;

    *given_up = 0;
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaEventCreate(&event[0]), "cudaEventCreate");
    check(cudaEventCreate(&event[1]), "cudaEventCreate");
    check(cudaEventRecord(event[0]), "cudaEventRecord");
    for (int d = 0; d < devices; d++) {
        check(cudaSetDevice(d), "cudaSetDevice");
        with.first = d;
        start(rule, broken, (devices == 1 ? 2 : 1) * BLOCKS, with);
        if (d == 0)
            check(cudaEventRecord(event[1]), "cudaEventRecord");
    }
    for (int d = 0; d < devices; d++) {
        check(cudaSetDevice(d), "cudaSetDevice");
        check(cudaDeviceSynchronize(), rules[rule].name);
    }
    check(cudaEventElapsedTime(&ms, event[0], event[1]), "cudaEventElapsedTime");
    for (int side = 0; side < 2; side++)
        check(cudaMemcpy(seen[side], with.side[side].seen, sizeof(seen[side]), cudaMemcpyDefault),
              "counts");
    allowed = seen[0][0] + seen[1][0];
    forbidden = seen[0][1] + seen[1][1];
    printf("%-8s %-6s %s: %u steps, %.2f us each, %llu allowed, %llu forbidden%s (%s)\n",
           rules[rule].name, broken ? "broken" : "right", devices == 1 ? "1 device" : "2 devices",
           iterations, 1e3 * ms / iterations, allowed, forbidden, *given_up ? ", STUCK" : "",
           rules[rule].what);
    fflush(stdout);
    cudaEventDestroy(event[0]);
    cudaEventDestroy(event[1]);
    close_place(&with.side[0]);
    close_place(&with.side[1]);
    return broken || (allowed > 0 && forbidden == 0 && !*given_up);
}

/* 2 if the first two devices reach each other's memory. */
static int open_devices(void)
{
    int count = 0, there = 0, back = 0;

    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
        return 0;
    if (count < 2 || cudaDeviceCanAccessPeer(&there, 0, 1) || cudaDeviceCanAccessPeer(&back, 1, 0))
        return 1;
    for (int d = 0; d < 2 && there && back; d++) {
        check(cudaSetDevice(d), "cudaSetDevice");
        check(cudaDeviceEnablePeerAccess(1 - d, 0), "peer access");
    }
    return there && back ? 2 : 1;
}

int main(int argc, char **argv)
{
    unsigned iterations = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 200000;
    unsigned *given_up;

    /* Loading a kernel late might wait for one that waits for it. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    int most = open_devices(), failed = 0;
    if (most == 0 || iterations == 0) {
        fprintf(stderr, "gpu_litmus: %s\n", most == 0 ? "no GPU" : "how many steps?");
        return most == 0 ? 77 : 2;
    }
    check(cudaHostAlloc(&given_up, sizeof(*given_up), cudaHostAllocPortable | cudaHostAllocMapped),
          "cudaHostAlloc");
    for (int rule = 0; rule < RULES; rule++)
        for (int devices = 1; devices <= (rules[rule].between ? most : 1); devices++)
            for (int broken = 0; broken < 2; broken++) {
                if (argc > 2 && strcmp(argv[2], rules[rule].name) != 0)
                    continue;
                unsigned steps =
                    (broken ? iterations / 10 : iterations) / (rule == BEGINS ? 4 : 1) + 1;
                failed += !try_rule(rule, broken, devices, steps, given_up);
            }
    printf("%d of the rules do not hold\n", failed);
    return failed > 0;
}
