/* Memory operations that need instructions of the GPU. A name says the operation, its order and its
 * scope: st_release_sys stores with release order in the scope of the system. Tests that run device
 * code on the host define the same names for it. */
#ifndef PEAL_DEVICE_MEMORY_H
#define PEAL_DEVICE_MEMORY_H

static __device__ __forceinline__ unsigned long long peal_ld_relaxed_sys_(unsigned long long word)
{
    unsigned long long value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ unsigned long long peal_ld_acquire_sys_(unsigned long long word)
{
    unsigned long long value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ void peal_red_add_release_sys_(unsigned long long word,
                                                                 unsigned long long value)
{
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

static __device__ __forceinline__ void peal_st_release_sys_(unsigned long long word,
                                                            unsigned long long value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

static __device__ __forceinline__ void peal_fence_acq_rel_sys_()
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

static __device__ __forceinline__ void peal_fence_acq_rel_gpu_()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

#ifndef PEAL_COMMUNICATION_FREE
/* In a kernel that was launched while the kernel before it still ran: waits until that one has
 * ended and all that it stored can be seen; from then on the kernel after this one may be launched.
 */
static __device__ __forceinline__ void peal_follow_kernel_()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#endif

#if !defined(PEAL_COMMUNICATION_FREE) && !defined(PEAL_FUSED)
static __device__ __forceinline__ void peal_follow_()
{
    peal_follow_kernel_();
}
#else
/* Communication-free kernels begin when the kernel before has ended, so the compiler may treat what
 * they load as constant: those instructions in them would forbid it. In mode fused there is one
 * kernel; that of a bundle follows another one once. */
static __device__ __forceinline__ void peal_follow_()
{
}
#endif

/* Epochs of mode fused (fused.h): between blocks of one device. */
static __device__ __forceinline__ unsigned peal_ld_acquire_gpu_(const unsigned *word)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ void peal_st_release_gpu_(unsigned *word, unsigned value)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

/* Between two polls of a word. */
static __device__ __forceinline__ void peal_relax_(unsigned polls)
{
    if (polls > 256)
        __nanosleep(64);
}

/* The address of something in shared memory, as a number of 32 bits. */
typedef unsigned peal_shared_;

static __device__ __forceinline__ peal_shared_ peal_shared_of_(const void *at)
{
    return (unsigned)__cvta_generic_to_shared(at);
}

static __device__ __forceinline__ void *peal_shared_at_(peal_shared_ at)
{
    return __cvta_shared_to_generic(at);
}

/* This thread's number, read anew. What the compiler derives from it and keeps over several work
 * items of mode fused would lie in local memory, which every acquiring load drops from the cache.
 */
static __device__ __forceinline__ int peal_thread_anew_()
{
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

/* Starts a copy of 8 bytes to shared memory. This thread may read them after peal_fetched_, the
 * others after a barrier behind that. */
static __device__ __forceinline__ void peal_fetch_to_(unsigned long long *to,
                                                      const unsigned long long *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from)
                 : "memory");
}

/* The same of 16 aligned bytes, not through the SM's cache, which the waits of other blocks empty.
 */
static __device__ __forceinline__ void peal_fetch_16_to_(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from)
                 : "memory");
}

/* Waits for all copies that this thread has started. */
static __device__ __forceinline__ void peal_fetched_()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* close makes a group of the copies that this thread has started since the last one;
 * peal_fetched_but_ waits for all groups but the latest `behind`. */
static __device__ __forceinline__ void peal_fetch_close_()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int behind> static __device__ __forceinline__ void peal_fetched_but_()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(behind) : "memory");
}

/* Dynamic shared memory: the host says how much when it launches the kernel. More than 48 KiB can
 * be had only so. */
#define PEAL_SHARED_ROOM_(peal_name_, peal_bytes_) extern __shared__ uint4 peal_name_[]

static __device__ __forceinline__ unsigned long long peal_clock_()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* A load that the compiler does not move up. Copies come last in every task; their loads, started
 * early, would add to the registers of the kernel's most expensive part. */
static __device__ __forceinline__ long long peal_fetch_(const long long *address)
{
    long long value;
    asm volatile("ld.s64 %0, [%1];" : "=l"(value) : "l"(address));
    return value;
}

#endif
