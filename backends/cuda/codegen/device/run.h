/* What a launch does around its tiles: waits, counts its blocks, copies, stores flags.
 *
 * Order of memory. A flag is stored by st.release.sys, or added to by red.release.sys, after all
 * stores of its message. A waiting lane loads it by ld.acquire.sys; once it sleeps between loads,
 * by ld.relaxed.sys, with fence.acq_rel.sys after the last load. That load pairs with those
 * releases. It pairs with the release of every block that adds: additions are one chain of
 * read-modify-writes, so the load that sees the last of them has observed all. Block barriers carry
 * both sides to the other threads. */
#ifndef PEAL_DEVICE_RUN_H
#define PEAL_DEVICE_RUN_H

#include "peal/memory.h"

/* A launch is a kernel of its own, or, in mode fused, a function (fused.h): then the dispatcher
 * says which block of which grid it is. */
#ifdef PEAL_FUSED
#define PEAL_LAUNCH_     const peal_launch &
#define PEAL_ENTRY_(...) static __device__ __noinline__ void
#define PEAL_TASK_(...)  static __device__ __noinline__ void
/* Functions that are called: inlined, their code would be a part of every task. */
#define PEAL_PART_ __noinline__
__shared__ unsigned peal_fused_block_, peal_fused_blocks_;
/* What the dispatcher is to do once a function has returned. If a task did it itself, what it needs
 * afterwards would lie in local memory. */
enum { PEAL_THEN_NOTHING_, PEAL_THEN_SEND_, PEAL_THEN_PASS_ };
__shared__ int peal_fused_then_;
enum { PEAL_OTHERS_FAILED_ = -1 };
struct peal_fused_failure_ {
    int kind, wait; /* kind 0: none; as in peal_device_control, or that others have given up */
    unsigned long long expected, seen;
};
__shared__ peal_fused_failure_ peal_fused_failed_;
static __device__ __forceinline__ unsigned peal_block_()
{
    return peal_fused_block_;
}
static __device__ __forceinline__ unsigned peal_blocks_()
{
    return peal_fused_blocks_;
}
#else
#define PEAL_LAUNCH_     const __grid_constant__ peal_launch
#define PEAL_ENTRY_(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#define PEAL_TASK_       PEAL_ENTRY_
#define PEAL_PART_       __forceinline__
static __device__ __forceinline__ unsigned peal_block_()
{
    return blockIdx.x;
}
static __device__ __forceinline__ unsigned peal_blocks_()
{
    return gridDim.x;
}
#endif

/* Set once a wait was given up: from then on this module stores no flag. The host may set it. A
 * bundle has that of the module whose launches it has. */
#ifdef PEAL_BUNDLE
__shared__ unsigned *peal_given_up_at_;
#define peal_given_up (*peal_given_up_at_)
#else
extern "C" __device__ unsigned peal_given_up;
__device__ unsigned peal_given_up;
#endif

enum {
    PEAL_EAGER_POLLS_ = 512, /* before a wait begins to sleep, and to leave the SM's cache alone */
    PEAL_POLLS_A_LOOK_ = 1024, /* between looks at the clock and at the host's abort word */
    PEAL_LONGEST_SLEEP_ = 512  /* ns */
};

/* In mode fused a block whose wait was given up ends, and so do all that depend on it. What the
 * others send is complete. */
static __device__ __forceinline__ unsigned peal_has_given_up_()
{
#if defined(PEAL_FUSED) && !defined(PEAL_BUNDLE)
    return 0;
#else
    return *(volatile unsigned *)&peal_given_up;
#endif
}

static __device__ __forceinline__ int peal_block_threads_()
{
    return blockDim.x * blockDim.y * blockDim.z;
}

/* Reports a failure: one thread of the rank fills the fields of the control block, and `failed`
 * says that they are complete. Of PEAL_FAILED_COUNT, `wait` is the op; -1: the launch's. */
static __device__ __noinline__ void peal_report_failure_now_(const peal_launch *launch, int kind,
                                                             int wait, unsigned long long expected,
                                                             unsigned long long seen)
{
    peal_device_control *control = (peal_device_control *)launch->control;

    atomicExch(&peal_given_up, 1u);
    if (!control || atomicCAS(&control->claimed, 0u, (unsigned)PEAL_CLAIMED) != 0)
        return;
    control->kind = kind;
    control->op = wait < 0 ? launch->op : kind == PEAL_FAILED_COUNT ? wait : launch->wait[wait].op;
    control->wait = wait;
    control->step = launch->counter[0] + (launch->step ? *(volatile long long *)launch->step : 0);
    control->expected = expected;
    control->seen = seen;
    __threadfence_system(); /* pairs with the host's acquire load of `failed` */
    *(volatile unsigned *)&control->failed = 1;
}

static __device__ __forceinline__ void peal_report_failure_(const peal_launch *launch, int kind,
                                                            int wait, unsigned long long expected,
                                                            unsigned long long seen)
{
#ifdef PEAL_FUSED
    (void)launch;
    if (atomicCAS(&peal_fused_failed_.kind, 0, kind) != 0)
        return;
    peal_fused_failed_.wait = wait;
    peal_fused_failed_.expected = expected;
    peal_fused_failed_.seen = seen;
#else
    peal_report_failure_now_(launch, kind, wait, expected, seen);
#endif
}

/* Holds this thread until the word has its value. False: given up. */
static __device__ __forceinline__ bool peal_wait_one_(const peal_launch *launch, int index)
{
    unsigned long long word = launch->wait[index].word, value = launch->wait[index].value;
    unsigned long long begin = 0;
    unsigned sleep = 16;

    for (unsigned polls = 1;; polls++) {
        /* An acquiring load empties the SM's cache; a relaxed one with a fence behind it takes
         * longer. Both pair with peal_st_release_sys_ and peal_red_add_release_sys_ of the sender.
         */
        bool eager = polls <= PEAL_EAGER_POLLS_;
        unsigned long long seen = eager ? peal_ld_acquire_sys_(word) : peal_ld_relaxed_sys_(word);
        if ((long long)(seen - value) >= 0) {
            if (!eager)
                peal_fence_acq_rel_sys_();
            return true;
        }
        if (!eager) {
            __nanosleep(sleep);
            sleep = sleep < PEAL_LONGEST_SLEEP_ ? sleep * 2 : PEAL_LONGEST_SLEEP_;
        }
        if (polls % PEAL_POLLS_A_LOOK_ != 0)
            continue;
        /* `abort` and `failed` in one load over the bus. Relaxed: they order no other memory. */
        if ((launch->control && peal_ld_relaxed_sys_(launch->control) != 0) ||
            *(volatile unsigned *)&peal_given_up) {
            atomicExch(&peal_given_up, 1u);
            return false;
        }
        /* The time of the kernel before, which may still run, does not count. */
        if (!begin)
            peal_follow_();
        unsigned long long now = peal_clock_();
        begin = begin ? begin : now;
        if (launch->budget && now - begin > launch->budget) {
            peal_report_failure_(launch, PEAL_FAILED_WAIT, index, value, seen);
            return false;
        }
    }
}

/* All threads of the block: waits for the words in the mask, a lane of the first warp for each.
 * False: given up, the block must end without counting itself. */
static __device__ __forceinline__ bool peal_wait_(const peal_launch *launch, unsigned mask)
{
    int thread = peal_thread_(), threads = peal_block_threads_();
    int lanes = threads < 32 ? threads : 32;
    int given_up = 0;

    if (thread < lanes) {
        for (int i = thread; i < launch->wait_count; i += lanes)
            if ((mask >> i & 1) && !peal_wait_one_(launch, i))
                given_up = 1;
    }
    bool ok = __syncthreads_or(given_up) == 0;
#ifdef PEAL_FUSED
    if (!ok && thread == 0 && peal_fused_failed_.kind == 0)
        peal_fused_failed_.kind = PEAL_OTHERS_FAILED_;
#endif
    return ok;
}

#include "peal/copy.h"

/* ---- flags ---- */

/* All threads of one block, after all stores that the flags stand for. Stores all flags but those
 * of the box `except`. */
static __device__ __forceinline__ void peal_write_flags_(const peal_launch *launch, unsigned except)
{
    __syncthreads();
    for (int i = peal_thread_(); i < launch->write_count; i += peal_block_threads_())
        if (!except || launch->write[i].boxes != except)
            /* Pairs with the loads in peal_wait_one_ of the receiver. */
            peal_st_release_sys_(launch->write[i].word, launch->write[i].value);
}

/* All threads of a block: counts it. True in the last of `blocks`, which then sees what the others
 * have stored. */
static __device__ __forceinline__ bool peal_is_last_(unsigned *arrived, unsigned blocks,
                                                     bool stores_to_peers)
{
    __shared__ unsigned last;

    __syncthreads();
    if (peal_thread_() == 0) {
        /* Loaded early: the load is under way while the blocks are counted. */
        unsigned given_up = *(volatile unsigned *)&peal_given_up;
        last = 1;
        if (blocks > 1) {
            /* Releases this block's stores to the last one's fence below. */
            if (stores_to_peers)
                peal_fence_acq_rel_sys_();
            else
                peal_fence_acq_rel_gpu_();
            last = atomicAdd(arrived, 1u) == blocks - 1;
            if (last) {
                *arrived = 0; /* for the next launch, or round, which begins after this one */
                peal_fence_acq_rel_gpu_(); /* acquires what the blocks before have stored */
            }
        }
        if (given_up)
            last = 0;
    }
    __syncthreads();
    return last != 0;
}

/* ---- the begin of every kernel ---- */

/* A launch that a condition of the run skips: no work is done, but its messages are received and
 * sent. The order is the walk's: all waits, then all flags. */
#ifndef PEAL_COMMUNICATION_FREE
static __device__ __noinline__ void peal_pass_(const peal_launch *launch)
{
    if (launch->wait_count > 0 && !peal_wait_(launch, 0xffffffffu))
        return;
    if (launch->write_count > 0 && !peal_has_given_up_())
        peal_write_flags_(launch, 0);
}
#endif

static __device__ __forceinline__ bool peal_is_stopped_(const peal_launch &launch)
{
    if (!launch.stop && !launch.skip)
        return false;
    peal_follow_(); /* a kernel before may stop this one, or decide that it is skipped */
    if (launch.stop && *(volatile unsigned *)launch.stop != 0)
        return true;
    if (!launch.skip || *(volatile unsigned *)launch.skip == 0)
        return false;
#ifdef PEAL_FUSED
    if (peal_block_() == 0 && peal_thread_() == 0)
        peal_fused_then_ = PEAL_THEN_PASS_;
#elif !defined(PEAL_COMMUNICATION_FREE)
    if (peal_block_() == 0)
        peal_pass_(&launch);
#endif
    return true;
}

/* Waits for words, which other devices write, while the kernel before still runs; reads and stores
 * nothing else before that has ended. False: the block is to end. */
static __device__ __forceinline__ bool peal_await_(const peal_launch &launch, unsigned mask)
{
    bool ok = mask == 0 || peal_wait_(&launch, mask);
    peal_follow_();
    return ok;
}

/* The begin of kernels without tiles. False: the block is to end. */
static __device__ __forceinline__ bool peal_enter_(const peal_launch &launch)
{
    return !peal_is_stopped_(launch) &&
           peal_await_(launch, launch.box_count > 0 ? launch.box[0].waits : 0);
}

/* The begin of kernels with tiles: finds the block's tile and waits for what its box needs. Returns
 * the box, or 0: the block is to end. */
static __device__ __forceinline__ const peal_launch_box *peal_enter_tile_(const peal_launch &launch,
                                                                          peal_tile *tile)
{
    int index = 0;

    if (peal_is_stopped_(launch))
        return 0;
    while (index + 1 < launch.box_count &&
           peal_block_() - launch.box[index].first >= launch.box[index].blocks)
        index++;
    const peal_launch_box &box = launch.box[index];
    unsigned rest = peal_block_() - box.first;
    tile->index = box.tile;
    tile->count = launch.tile_count;
    tile->peal_whole_ = tile->peal_odd_ = 0;
    tile->peal_at_[0] = tile->peal_at_[1] = tile->peal_at_[2] = 0;
    tile->peal_lo_[0] = tile->peal_lo_[1] = tile->peal_lo_[2] = 0;
#pragma unroll
    for (int k = 0; k < PEAL_AXES; k++) {
        unsigned coordinate = rest;
        if (k < PEAL_AXES - 1) {
            unsigned quotient = 0;
            if (rest >= box.count[k]) /* a division takes as long as a point */
                quotient = rest / box.count[k];
            coordinate = rest - quotient * box.count[k];
            rest = quotient;
        }
        int lo = box.lo[k] + (int)coordinate * box.extent[k];
        int hi = box.hi[k];
        lo -= k == 0 ? box.lead : 0;
        tile->lo[k] = k == 0 && lo < box.lo[k] ? box.lo[k] : lo;
        tile->hi[k] = hi - lo > box.extent[k] ? lo + box.extent[k] : hi;
        tile->index += coordinate * box.tile_step[k];
    }
#ifdef PEAL_COMMUNICATION_FREE
    peal_follow_();
#else
    if (!peal_await_(launch, box.waits))
        return 0;
#endif
    return &box;
}

/* A box whose extents and strides are read from the launch; shaped.h has boxes whose extents and
 * strides are constants. */
struct peal_any_box_ {
    static __device__ constexpr int extent(int)
    {
        return 0x7fffffff; /* not known */
    }
    static __device__ __forceinline__ long long stride(const peal_launch &launch, int view,
                                                       int axis)
    {
        return launch.stride[view][axis];
    }
    static __device__ __forceinline__ int aligned(const peal_launch &launch)
    {
        return launch.aligned;
    }
};

template <class box = peal_any_box_>
static __device__ __forceinline__ peal_strides_ peal_strides_of_(const peal_launch &launch,
                                                                 int view)
{
    peal_strides_ strides = {};
    strides.peal_y_ = box::stride(launch, view, 0);
    strides.peal_z_ = box::stride(launch, view, 1);
    strides.peal_w_ = box::stride(launch, view, 2);
    return strides;
}

/* The same of a field with components. */
template <class box = peal_any_box_>
static __device__ __forceinline__ peal_component_strides_
peal_component_strides_of_(const peal_launch &launch, int view)
{
    return {box::stride(launch, view, 0), box::stride(launch, view, 1),
            box::stride(launch, view, 2)};
}

/* Where the partial of this tile goes. */
template <class type>
static __device__ __forceinline__ peal_partial_<type>
peal_partial_of_(const peal_launch &launch, int index, int combine, const peal_tile &tile)
{
    peal_partial_<type> partial;
    type *first = (type *)launch.partial[index];
    partial.out = first ? first + tile.index : 0;
    partial.combine = combine;
    return partial;
}

template <class type> static __device__ __forceinline__ peal_partial_<type> peal_no_partial_()
{
    peal_partial_<type> partial;
    partial.out = 0;
    partial.combine = 0;
    return partial;
}

/* The partial of a tile that has no points, as tiles beyond a count have. */
template <class type>
static __device__ __forceinline__ void peal_no_points_(const peal_partial_<type> &partial)
{
    if (partial.out && peal_thread_() == 0)
        *partial.out = peal_nothing_<type>(partial.combine);
}

/* Whether the count of a task's points is out of range, which one thread reports. If so, the block
 * is to end. */
static __device__ __forceinline__ bool peal_miscounts_(const peal_launch &launch, long long count,
                                                       long long most)
{
    bool bad = count < 0 || count > most;

    if (bad && peal_thread_() == 0)
        peal_report_failure_(&launch, PEAL_FAILED_COUNT, -1, (unsigned long long)most,
                             (unsigned long long)count);
    return bad;
}

/* Whether the buffer's type cannot hold the value, which the calling thread reports. If so, it is
 * not to be stored. */
template <class type>
static __device__ __forceinline__ bool peal_misfits_(const peal_launch &launch, long long value)
{
    bool bad = (long long)(type)value != value;

    if (bad)
        peal_report_failure_(&launch, PEAL_FAILED_VALUE, -1, 0, (unsigned long long)value);
    return bad;
}

/* Whether an expression had no value, which one thread reports. If so, the block is to end. */
static __device__ __forceinline__ bool peal_went_wrong_(const peal_launch &launch, int bad)
{
    if (bad && peal_thread_() == 0)
        peal_report_failure_(&launch, PEAL_FAILED_EXPRESSION, -1, 0, 0);
    return bad != 0;
}

#endif
