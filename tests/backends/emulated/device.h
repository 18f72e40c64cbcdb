/* A GPU's block on one host thread: its threads are fibers that change places at barriers and
 * shuffles, in an order that differs from round to round. Blocks run one after the other, or, of a
 * cooperative grid, each on a thread of its own. */
#ifndef PEAL_TESTS_EMULATED_DEVICE_H
#define PEAL_TESTS_EMULATED_DEVICE_H

/* Its longjmp refuses to go to another stack. */
#undef _FORTIFY_SOURCE

#include <float.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static thread_local
#define __grid_constant__
#define __launch_bounds__(...)

struct device_index {
    unsigned x, y, z;
};
static thread_local device_index threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

enum { MOST_FIBERS = 256, STACK_BYTES = 1 << 16, LATE_US = 10000 };
enum fiber_state { FIBER_RUNS, FIBER_AT_BLOCK, FIBER_AT_WARP, FIBER_DONE };

/* Contexts make fibers, jumps change between them: a change of contexts is a system call. A fiber
 * runs the same thread of one block after the other. */
static thread_local struct {
    ucontext_t context;
    jmp_buf scheduler, fiber[MOST_FIBERS];
    fiber_state state[MOST_FIBERS];
    char *stack;
    unsigned current, count, made;
    void (*body)(const void *);
    const void *argument;
    uint64_t shuffled[MOST_FIBERS];
    int any;
    bool late; /* goes on long after it has told others something */
    unsigned long long clock;
    unsigned long long order;
} device;

static void hold(fiber_state state)
{
    unsigned me = device.current;
    device.state[me] = state;
    if (_setjmp(device.fiber[me]) == 0)
        _longjmp(device.scheduler, 1);
}

static inline void __syncthreads()
{
    hold(FIBER_AT_BLOCK);
}

static inline void __syncwarp()
{
    hold(FIBER_AT_WARP);
}

static inline int __syncthreads_or(int value)
{
    hold(FIBER_AT_BLOCK);
    device.any = 0;
    hold(FIBER_AT_BLOCK);
    device.any |= value != 0;
    hold(FIBER_AT_BLOCK);
    return device.any;
}

template <class type> static inline type __shfl_down_sync(unsigned, type value, int distance)
{
    unsigned me = device.current;
    type other;
    memcpy(&device.shuffled[me], &value, sizeof(value));
    hold(FIBER_AT_WARP);
    memcpy(&other, &device.shuffled[me % 32 + distance < 32 ? me + distance : me], sizeof(other));
    hold(FIBER_AT_WARP);
    return other;
}

template <class type> static inline type __ldg(const type *place)
{
    return *place;
}
static inline int __clz(int value)
{
    return value ? __builtin_clz((unsigned)value) : 32;
}
static inline void __nanosleep(unsigned ns)
{
    device.clock += ns;
    if (ns >= 1000) /* a pause for its own sake */
        usleep(ns / 1000);
    sched_yield(); /* what is awaited is another process' or block's */
    hold(FIBER_RUNS);
}
static inline void __threadfence_system()
{
}
template <class type> static inline type atomicAdd(type *at, type value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
template <class type> static inline type atomicExch(type *at, type value)
{
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
template <class type> static inline type atomicCAS(type *at, type expected, type value)
{
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

#define PEAL_DEVICE_MEMORY_H
static unsigned long long peal_ld_relaxed_sys_(unsigned long long word)
{
    device.clock += 100;
    return *(volatile unsigned long long *)word;
}
static unsigned long long peal_ld_acquire_sys_(unsigned long long word)
{
    return peal_ld_relaxed_sys_(word);
}
static void told()
{
    if (device.late)
        usleep(LATE_US);
}
static void peal_red_add_release_sys_(unsigned long long word, unsigned long long value)
{
    __atomic_fetch_add((unsigned long long *)word, value, __ATOMIC_SEQ_CST);
    told();
}
static void peal_st_release_sys_(unsigned long long word, unsigned long long value)
{
    *(volatile unsigned long long *)word = value;
    told();
}
static void peal_fence_acq_rel_sys_()
{
}

static void peal_fence_acq_rel_gpu_()
{
}
/* The kernel before, which ends while this one has already begun, may end by giving up. */
extern "C" unsigned peal_given_up;
static bool follows_failure;
static void peal_follow_()
{
    if (follows_failure)
        peal_given_up = 1;
}
#define PEAL_UNUSED_ __attribute__((unused))
PEAL_UNUSED_ static unsigned peal_ld_acquire_gpu_(const unsigned *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
PEAL_UNUSED_ static void peal_st_release_gpu_(unsigned *word, unsigned value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
typedef const void *peal_shared_;

PEAL_UNUSED_ static peal_shared_ peal_shared_of_(const void *at)
{
    return at;
}

PEAL_UNUSED_ static void *peal_shared_at_(peal_shared_ at)
{
    return (void *)at;
}

PEAL_UNUSED_ static int peal_thread_anew_()
{
    return (int)threadIdx.x;
}
PEAL_UNUSED_ static void peal_relax_(unsigned)
{
    __nanosleep(0);
}
PEAL_UNUSED_ static void peal_fetch_to_(unsigned long long *to, const unsigned long long *from)
{
    *to = *from;
}
PEAL_UNUSED_ static void peal_fetch_16_to_(void *to, const void *from)
{
    if (((uintptr_t)to | (uintptr_t)from) % 16 != 0) {
        fprintf(stderr, "16 bytes are fetched that are not aligned\n");
        abort();
    }
    memcpy(to, from, 16);
}
PEAL_UNUSED_ static void peal_fetched_()
{
}
PEAL_UNUSED_ static void peal_fetch_close_()
{
}
template <int behind> PEAL_UNUSED_ static void peal_fetched_but_()
{
}
#define PEAL_SHARED_ROOM_(name, bytes) alignas(16) static thread_local uint4 name[(bytes) / 16 + 1]
PEAL_UNUSED_ static void *__cvta_global_to_generic(unsigned long long at)
{
    return (void *)at;
}
static unsigned long long peal_clock_()
{
    return device.clock;
}
static long long peal_fetch_(const long long *address)
{
    return *address;
}

static void enter_fiber()
{
    for (;;) {
        hold(FIBER_DONE);
        device.body(device.argument);
    }
}

static void change_to_fiber(unsigned index)
{
    device.current = index;
    if (_setjmp(device.scheduler) == 0)
        _longjmp(device.fiber[index], 1);
}

/* As many as the block has threads; each stands behind the end of a block. */
static void make_fibers()
{
    for (; device.made < device.count; device.made++) {
        device.current = device.made;
        getcontext(&device.context);
        device.context.uc_stack.ss_sp = device.stack + (size_t)device.made * STACK_BYTES;
        device.context.uc_stack.ss_size = STACK_BYTES;
        device.context.uc_link = NULL;
        makecontext(&device.context, enter_fiber, 0);
        if (_setjmp(device.scheduler) == 0)
            setcontext(&device.context);
    }
}

/* Lets go all that stand at a barrier which nobody else has to reach. */
static void release(unsigned first, unsigned end, fiber_state state)
{
    for (unsigned i = first; i < end; i++)
        if (device.state[i] != state && device.state[i] != FIBER_DONE)
            return;
    for (unsigned i = first; i < end; i++)
        if (device.state[i] == state)
            device.state[i] = FIBER_RUNS;
}

static bool run_round()
{
    bool ran = false;
    device.order = device.order * 6364136223846793005ull + 1442695040888963407ull;
    unsigned start = (unsigned)(device.order >> 33) % device.count;
    for (unsigned k = 0; k < device.count; k++) {
        unsigned i = (start + k * 97) % device.count; /* 97: prime to powers of two */
        if (device.count % 97 == 0)
            i = k;
        if (device.state[i] != FIBER_RUNS)
            continue;
        ran = true;
        threadIdx = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
        change_to_fiber(i);
    }
    for (unsigned i = 0; i < device.count; i += 32)
        release(i, i + 32 < device.count ? i + 32 : device.count, FIBER_AT_WARP);
    release(0, device.count, FIBER_AT_BLOCK);
    return ran;
}

/* A block that cannot go on ends the program. */
static void run_block(unsigned block)
{
    blockIdx = {block, 0, 0};
    for (unsigned i = 0; i < device.count; i++)
        device.state[i] = FIBER_RUNS;
    while (run_round())
        ;
    for (unsigned i = 0; i < device.count; i++)
        if (device.state[i] != FIBER_DONE) {
            printf("block %u hangs: thread %u in state %d\n", block, i, device.state[i]);
            exit(1);
        }
}

/* Of a thread's fibers: used as far as they are touched, given back when it ends. Apart from
 * `device`, every access to which would ask whether its destructor is known. */
struct device_stacks {
    char *at = NULL;
    ~device_stacks()
    {
        if (at)
            munmap(at, (size_t)MOST_FIBERS * STACK_BYTES);
    }
};

static char *stacks()
{
    static thread_local device_stacks own;

    if (!own.at)
        own.at = (char *)mmap(NULL, (size_t)MOST_FIBERS * STACK_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (own.at == MAP_FAILED)
        abort();
    return own.at;
}

static void prepare(unsigned grid, unsigned threads, void (*body)(const void *),
                    const void *argument)
{
    device.stack = stacks();
    gridDim = {grid, 1, 1};
    blockDim = {threads, 1, 1};
    device.body = body;
    device.argument = argument;
    device.count = threads;
    make_fibers();
}

/* Runs body(argument) as one block after the other. */
static void run_grid(unsigned grid, unsigned threads, void (*body)(const void *),
                     const void *argument)
{
    prepare(grid, threads, body, argument);
    for (unsigned block = 0; block < grid; block++)
        run_block(block);
}

/* All blocks at a time. */
struct together_block {
    unsigned block, grid, threads;
    void (*body)(const void *);
    const void *argument;
    pthread_t thread;
};

static void *run_one(void *user)
{
    const together_block *b = (const together_block *)user;
    const char *late = getenv("EMULATE_LATE"); /* from this block on */
    device.late = late && b->block >= strtoul(late, NULL, 10);
    prepare(b->grid, b->threads, b->body, b->argument);
    run_block(b->block);
    return NULL;
}

__attribute__((unused)) static void run_together(unsigned grid, unsigned threads,
                                                 void (*body)(const void *), const void *argument)
{
    together_block *all = (together_block *)calloc(grid, sizeof(*all));
    for (unsigned b = 0; b < grid; b++) {
        all[b] = {b, grid, threads, body, argument, {}};
        if (pthread_create(&all[b].thread, NULL, run_one, &all[b]))
            exit(1);
    }
    for (unsigned b = 0; b < grid; b++)
        pthread_join(all[b].thread, NULL);
    free(all);
}

#endif
