/* A GPU's block on one host thread: its threads are fibers that change places at barriers and
 * shuffles, in an order that differs from round to round. Blocks run one after the other, or, of a
 * cooperative grid, each on a thread of its own. */
#ifndef PEAL_TESTS_EMULATED_DEVICE_H
#define PEAL_TESTS_EMULATED_DEVICE_H

#include <float.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif
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

/* Of a power of two, all stacks' ends would compete for the same lines of the cache. */
enum { MOST_FIBERS = 256, STACK_BYTES = (1 << 16) + 17 * 64, LATE_US = 10000 };
enum fiber_state { FIBER_RUNS, FIBER_AT_BLOCK, FIBER_AT_WARP, FIBER_DONE };

/* Where a fiber stands; `fiber_change` leaves one and goes on with another. A test changes fibers
 * some ten million times, and swapcontext is a system call each time: on x86-64 only what a call
 * must preserve is kept, on the fiber's own stack. */
#ifdef __x86_64__
typedef void *fiber_at;
extern "C" void fiber_change(fiber_at *from, const fiber_at *to)
    __attribute__((visibility("hidden")));
__asm__(".text\n.p2align 4\n.type fiber_change, @function\nfiber_change:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq (%rsi), %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
        ".size fiber_change, .-fiber_change\n");
static void fiber_make(fiber_at *fiber, char *stack, size_t bytes, void (*begin)())
{
    void **top = (void **)(stack + bytes) - 8; /* six registers, `begin`, which never returns */
    memset(top, 0, 8 * sizeof(*top));
    top[6] = (void *)begin;
    *fiber = top;
}
#else
typedef ucontext_t fiber_at;
static void fiber_change(fiber_at *from, const fiber_at *to)
{
    swapcontext(from, to);
}
static void fiber_make(fiber_at *fiber, char *stack, size_t bytes, void (*begin)())
{
    getcontext(fiber);
    fiber->uc_stack.ss_sp = stack;
    fiber->uc_stack.ss_size = bytes;
    fiber->uc_link = NULL;
    makecontext(fiber, begin, 0);
}
#endif

/* A fiber runs the same thread of one block after the other. */
struct block_fibers {
    fiber_at scheduler, fiber[MOST_FIBERS];
    unsigned char state[MOST_FIBERS];
    char *stack;
    unsigned current, count, made;
    void (*body)(const void *);
    const void *argument;
    uint64_t shuffled[MOST_FIBERS];
    int any;
    bool late; /* goes on long after it has told others something */
    unsigned long long clock;
    unsigned long long order;
};
static thread_local block_fibers device;

static void hold(fiber_state state)
{
    block_fibers *d = &device; /* asked for once: each access to what is a thread's is a call */
    d->state[d->current] = state;
    fiber_change(&d->fiber[d->current], &d->scheduler);
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
static void peal_follow_kernel_()
{
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
        device.body(device.argument);
        hold(FIBER_DONE);
    }
}

/* As many as the block has threads. */
static void make_fibers()
{
    for (; device.made < device.count; device.made++)
        fiber_make(&device.fiber[device.made], device.stack + (size_t)device.made * STACK_BYTES,
                   STACK_BYTES, enter_fiber);
}

/* Lets go all that stand at a barrier which nobody else has to reach. */
static void release(block_fibers *d, unsigned first, unsigned end, fiber_state state)
{
    for (unsigned i = first; i < end; i++)
        if (d->state[i] != state && d->state[i] != FIBER_DONE)
            return;
    for (unsigned i = first; i < end; i++)
        if (d->state[i] == state)
            d->state[i] = FIBER_RUNS;
}

static bool run_round()
{
    block_fibers *d = &device;
    device_index *thread = &threadIdx;
    bool ran = false;
    d->order = d->order * 6364136223846793005ull + 1442695040888963407ull;
    /* 97: prime to powers of two */
    unsigned step = d->count % 97 == 0 ? 1 : 97 % d->count;
    unsigned i = (unsigned)(d->order >> 33) % d->count;
    for (unsigned k = 0; k < d->count;
         k++, i = i + step < d->count ? i + step : i + step - d->count) {
        if (d->state[i] != FIBER_RUNS)
            continue;
        ran = true;
        *thread = {i, 0, 0};
        d->current = i;
        fiber_change(&d->scheduler, &d->fiber[i]);
    }
    for (unsigned w = 0; w < d->count; w += 32)
        release(d, w, w + 32 < d->count ? w + 32 : d->count, FIBER_AT_WARP);
    release(d, 0, d->count, FIBER_AT_BLOCK);
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
