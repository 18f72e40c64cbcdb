/* Whether GPUs keep the order that docs/memory_model.md says they keep: one small kernel a rule, of
 * blocks that store, release, acquire and load as peal's device code does, by its own instructions
 * (memory.h), with delays at random. A load that sees another step's value than the one it has
 * waited for was forbidden: none may. Each rule is also run without its releases and acquires, for
 * information: what is seen then, if anything, is what the rule forbids.
 *
 * gpu_litmus [ITERATIONS [RULE]]. One line a run; exit status 1: a rule does not hold. Rules
 * between devices are run within the first one, too. */
#include "tests/gpu/litmus_rules.cuh"

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
