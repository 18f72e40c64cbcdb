/* The rules of docs/memory_model.md as what a block does, step by step, by peal's own instructions;
 * `broken`: without releases and acquires. litmus.cu runs them. */
#ifndef PEAL_TESTS_GPU_LITMUS_RULES_CUH
#define PEAL_TESTS_GPU_LITMUS_RULES_CUH

#include "backends/cuda/codegen/device/memory.h"

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
        peal_st_release_gpu_(epoch, value);
}

template <bool broken> static __device__ void store_flag(void *flag, unsigned long long value)
{
    if (broken)
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
    else
        peal_st_release_sys_((unsigned long long)flag, value);
}

template <bool broken> static __device__ void add_share(void *flag)
{
    if (broken)
        asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(flag), "l"(1ull) : "memory");
    else
        peal_red_add_release_sys_((unsigned long long)flag, 1);
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
                seen = peal_ld_acquire_gpu_(word);
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
            unsigned long long seen =
                broken || lazily ? peal_ld_relaxed_sys_(word) : peal_ld_acquire_sys_(word);
            if ((long long)(seen - value) >= 0)
                break;
            over = is_over(a.with, polls, &begin);
        }
        if (lazily && !broken)
            peal_fence_acq_rel_sys_();
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
            peal_fence_acq_rel_sys_();
        else if (!broken)
            peal_fence_acq_rel_gpu_();
        last = atomicAdd(arrived, 1u) == BLOCKS - 1;
        if (last)
            *(volatile unsigned *)arrived = 0;
        if (last && !broken)
            peal_fence_acq_rel_gpu_();
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
            peal_st_release_gpu_(epoch + a.block * APART, i);
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
            peal_st_release_gpu_(epoch + a.block * APART, i);
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

#endif
