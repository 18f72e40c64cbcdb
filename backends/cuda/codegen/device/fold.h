/* Fold trees, as schedule.h defines them: binary, split at the largest power of two below the
 * count. Doubling the distance (0+1, 2+3, .. then 0+2, ..) over aligned groups makes the same tree.
 */
#ifndef PEAL_DEVICE_FOLD_H
#define PEAL_DEVICE_FOLD_H

enum { PEAL_SUM_, PEAL_MIN_, PEAL_MAX_ }; /* as peal_combine */

/* Sums of integers wrap. */
static __device__ __forceinline__ double peal_add_(double a, double b)
{
    return a + b;
}
static __device__ __forceinline__ float peal_add_(float a, float b)
{
    return a + b;
}
static __device__ __forceinline__ int32_t peal_add_(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}
static __device__ __forceinline__ int64_t peal_add_(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static __device__ __forceinline__ uint8_t peal_add_(uint8_t a, uint8_t b)
{
    return (uint8_t)(a + b);
}

/* A NaN, which differs from itself, wins. */
template <class type> static __device__ __forceinline__ type peal_join_(int combine, type a, type b)
{
    if (combine == PEAL_SUM_)
        return peal_add_(a, b);
    if (a != a || b != b)
        return a != a ? a : b;
    if (combine == PEAL_MIN_)
        return b < a ? b : a;
    return b > a ? b : a;
}

template <class type> struct peal_limits_;
template <> struct peal_limits_<double> {
    static __device__ __forceinline__ double lowest()
    {
        return -INFINITY;
    }
    static __device__ __forceinline__ double highest()
    {
        return INFINITY;
    }
};
template <> struct peal_limits_<float> {
    static __device__ __forceinline__ float lowest()
    {
        return -INFINITY;
    }
    static __device__ __forceinline__ float highest()
    {
        return INFINITY;
    }
};
template <> struct peal_limits_<int32_t> {
    static __device__ __forceinline__ int32_t lowest()
    {
        return INT32_MIN;
    }
    static __device__ __forceinline__ int32_t highest()
    {
        return INT32_MAX;
    }
};
template <> struct peal_limits_<int64_t> {
    static __device__ __forceinline__ int64_t lowest()
    {
        return INT64_MIN;
    }
    static __device__ __forceinline__ int64_t highest()
    {
        return INT64_MAX;
    }
};
template <> struct peal_limits_<uint8_t> {
    static __device__ __forceinline__ uint8_t lowest()
    {
        return 0;
    }
    static __device__ __forceinline__ uint8_t highest()
    {
        return UINT8_MAX;
    }
};

/* The fold of nothing. */
template <class type> static __device__ __forceinline__ type peal_nothing_(int combine)
{
    if (combine == PEAL_SUM_)
        return (type)0;
    return combine == PEAL_MIN_ ? peal_limits_<type>::highest() : peal_limits_<type>::lowest();
}

static __device__ __forceinline__ uint8_t peal_from_(uint8_t value, int distance)
{
    return (uint8_t)__shfl_down_sync(0xffffffffu, (int)value, distance);
}
template <class type> static __device__ __forceinline__ type peal_from_(type value, int distance)
{
    return __shfl_down_sync(0xffffffffu, value, distance);
}

/* Lane 0 gets the fold of the first `count` of 32 lanes. */
template <class type>
static __device__ __forceinline__ type peal_fold_lanes_(int combine, type value, int lane,
                                                        int count)
{
    for (int distance = 1; distance < 32; distance *= 2) {
        type other = peal_from_(value, distance);
        if (lane + distance < count)
            value = peal_join_(combine, value, other);
    }
    return value;
}

/* The fold of `count` elements that are `stride` apart; of none, peal_nothing_. At most `most`, a
 * power of two, which are all loaded at a time. */
template <class type, int combine, int most>
static __device__ __forceinline__ type peal_fold_group_(const type *element, int count,
                                                        long long stride)
{
    type value[most];

#pragma unroll
    for (int i = 0; i < most; i++)
        value[i] = i < count ? element[i * stride] : peal_nothing_<type>(combine);
#pragma unroll
    for (int distance = 1; distance < most; distance *= 2)
#pragma unroll
        for (int i = 0; i + distance < most; i += 2 * distance)
            if (i + distance < count)
                value[i] = peal_join_(combine, value[i], value[i + distance]);
    return value[0];
}

/* Thread 0 gets the fold of the values of the first `count` of 256 threads. All of them call it. */
template <class type>
static __device__ __forceinline__ type peal_fold_threads_(int combine, type value, int count)
{
    __shared__ type warps[PEAL_THREADS_ / 32];
    int thread = peal_thread_(), lane = thread % 32;

    value = peal_fold_lanes_(combine, value, lane, count - (thread - lane));
    if (lane == 0)
        warps[thread / 32] = value;
    __syncthreads();
    if (thread < 32) {
        value = warps[lane % (PEAL_THREADS_ / 32)];
        value = peal_fold_lanes_(combine, value, lane, (count + 31) / 32);
    }
    __syncthreads(); /* the next fold may use the same memory */
    return value;
}

/* The same of all threads: without a count to compare with. */
template <class type> static __device__ __forceinline__ type peal_fold_all_(int combine, type value)
{
    enum { WARPS = PEAL_THREADS_ / 32 };
    __shared__ type warps[WARPS];
    int thread = peal_thread_();

#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2)
        value = peal_join_(combine, value, peal_from_(value, distance));
    __syncthreads(); /* the fold before may still read them */
    if (thread % 32 == 0)
        warps[thread / 32] = value;
    __syncthreads();
    if (thread != 0)
        return value;
    type all[WARPS];
#pragma unroll
    for (int i = 0; i < WARPS; i++)
        all[i] = warps[i];
#pragma unroll
    for (int distance = 1; distance < WARPS; distance *= 2)
#pragma unroll
        for (int i = 0; i < WARPS; i += 2 * distance)
            all[i] = peal_join_(combine, all[i], all[i + distance]);
    return all[0];
}

template <class type, class given>
static __device__ __forceinline__ void peal_store_partial_(const peal_partial_<type> &partial,
                                                           given value)
{
    type all = peal_fold_all_(partial.combine, (type)value);
    if (peal_thread_() == 0)
        *partial.out = all;
}

#endif
