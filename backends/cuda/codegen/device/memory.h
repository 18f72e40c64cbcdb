/* What only a GPU's own instructions can say; tests that run device code on the host have their
 * own.
 */
#ifndef PEAL_DEVICE_MEMORY_H
#define PEAL_DEVICE_MEMORY_H

static __device__ __forceinline__ unsigned long long peal_load_(unsigned long long word)
{
    unsigned long long value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ unsigned long long peal_acquire_(unsigned long long word)
{
    unsigned long long value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ void peal_add_to_(unsigned long long word,
                                                    unsigned long long value)
{
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

static __device__ __forceinline__ void peal_store_(unsigned long long word,
                                                   unsigned long long value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

static __device__ __forceinline__ void peal_fence_()
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

static __device__ __forceinline__ void peal_fence_gpu_()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

#if !defined(PEAL_COMMUNICATION_FREE) && !defined(PEAL_FUSED)
/* A kernel that was launched while the one before it still ran goes on when that has ended and all
 * that it stored can be seen; then its own successor may be launched. Else nothing. */
static __device__ __forceinline__ void peal_follow_()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#else
/* Plain kernels begin when the one before has ended: what they load may be kept, and started in any
 * order, as if it was constant. With that instruction in them it could not. In mode fused there is
 * one kernel. */
static __device__ __forceinline__ void peal_follow_()
{
}
#endif

/* Epochs of mode fused (fused.h): between blocks of one device. */
static __device__ __forceinline__ unsigned peal_acquire_gpu_(const unsigned *word)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ void peal_release_gpu_(unsigned *word, unsigned value)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

/* Between two polls. */
static __device__ __forceinline__ void peal_relax_(unsigned polls)
{
    if (polls > 256)
        __nanosleep(64);
}

/* Where something in shared memory is, as a number to keep there. */
typedef unsigned peal_shared_;

static __device__ __forceinline__ peal_shared_ peal_shared_of_(const void *at)
{
    return (unsigned)__cvta_generic_to_shared(at);
}

static __device__ __forceinline__ void *peal_shared_at_(peal_shared_ at)
{
    return __cvta_shared_to_generic(at);
}

/* This thread's number, read anew: what the compiler derived from it and kept over the records of
 * mode fused would lie in local memory, whose lines are lost with every acquiring load. */
static __device__ __forceinline__ int peal_thread_anew_()
{
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

/* 8 bytes on their way to shared memory, there for the thread after peal_fetched_ and for the
 * others behind a barrier. */
static __device__ __forceinline__ void peal_fetch_to_(unsigned long long *to,
                                                      const unsigned long long *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from)
                 : "memory");
}

/* The same of 16 aligned bytes, past the SM's cache, which other blocks' waits empty. */
static __device__ __forceinline__ void peal_fetch_16_to_(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from)
                 : "memory");
}

static __device__ __forceinline__ void peal_fetched_()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* What this thread has on its way belongs together; until all is there but what belongs to the
 * latest `behind` of those. */
static __device__ __forceinline__ void peal_fetch_close_()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int behind> static __device__ __forceinline__ void peal_fetched_but_()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(behind) : "memory");
}

/* Shared memory that the host gives the kernel when it launches it: more than 48 KiB can be had so
 * only. */
#define PEAL_SHARED_ROOM_(peal_name_, peal_bytes_) extern __shared__ uint4 peal_name_[]

static __device__ __forceinline__ unsigned long long peal_clock_()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Loads that the compiler leaves where they stand: a kernel's registers are as many as its
 * hungriest part needs, and copies come last in every task. */
static __device__ __forceinline__ long long peal_fetch_(const long long *address)
{
    long long value;
    asm volatile("ld.s64 %0, [%1];" : "=l"(value) : "l"(address));
    return value;
}

#endif
