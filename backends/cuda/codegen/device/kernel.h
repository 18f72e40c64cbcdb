/* What the kernels of a spec are written with, on a GPU: the words of include/peal/kernel.h for
 * CUDA C++.
 *
 * A tile is run by one block of PEAL_THREADS_ threads (loops.h). The arrays of a call are
 * `restrict`, so that the compiler may start the loads of neighbouring rows together and keep them
 * in registers; but no load is non-coherent: a kernel may have waited for memory that another GPU
 * has just written.
 *
 * With PEAL_COMMUNICATION_FREE the same words make kernels that wait for nothing and send nothing:
 * what they read was complete before they began and nobody writes it while they run.
 */
#ifndef PEAL_KERNEL_H
#define PEAL_KERNEL_H

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEAL_RESTRICT __restrict__
#define restrict __restrict__
#ifndef PEAL_COMMUNICATION_FREE /* no kernel's own parameters, so no load becomes non-coherent */
#define __ldg(peal_address_) (*(peal_address_))
#endif

/* Blocks of that many threads that an SM is to hold. More blocks keep more loads under way, which
 * pays in communication-free kernels, because they run long. The others also hold waits and copies;
 * registers for these cost less than calls would. Self-sending kernels have no copies, so light
 * ones have 4 blocks (1024^2 with partials on one GPU: 12.6 us with 3, 9.8 with 4, 11.3 with 5). A
 * light kernel has up to two floats a point; communication-free ones with partials take 633 us with
 * 6 blocks (16384^2), 677 with 4. */
#ifdef PEAL_COMMUNICATION_FREE
enum { PEAL_AXES = 4, PEAL_THREADS_ = 256, PEAL_BLOCKS_ = 4, PEAL_LIGHT_BLOCKS_ = 6 };
#else
enum {
    PEAL_AXES = 4,
    PEAL_THREADS_ = 256,
    PEAL_BLOCKS_ = 3,
    PEAL_FLAT_BLOCKS_ = 4,
    PEAL_LIGHT_BLOCKS_ = 4
};
#endif

/* The type in which offsets of two and three axes are computed. A unit defines it as `int` if every
 * offset from the point of a tile at which offsets begin (whole.h) is known to fit. Negative
 * offsets are right, too: the sum is signed, does not overflow, and widens with its sign. With 64
 * bits the compiler does not join two accesses, and addresses take registers that could hold loads
 * (27-point relaxation of 512^3 doubles: 1.25 ms, 1.13 with `int`). */
#ifndef PEAL_OFFSET_
#define PEAL_OFFSET_ int64_t
#endif

typedef struct peal_tile {
    int lo[PEAL_AXES];
    int hi[PEAL_AXES];
    int64_t index;
    int64_t count;
    int peal_whole_; /* the kind of a whole tile (launch.h); 0: it is none */
    int peal_odd_;   /* its first column is the second one of a pair in memory */
    int peal_at_[3]; /* the first point of this thread in it */
    int peal_lo_[3]; /* lo: a kernel may change a copy, which is no whole tile then */
    int peal_hi_[3]; /* hi, of a tile of a deep round */
} peal_tile;

typedef struct peal_strides_ {
    int64_t peal_y_, peal_z_, peal_w_;
    /* Of moved views (whole.h), else 0: x of the point that the pointer points to; the point at
     * which offsets begin, and its own from there. */
    int peal_begin_, peal_at_[3];
    int64_t peal_row_, peal_plane_;
    bool peal_fetch_; /* PEAL_AT reads it by non-coherent loads (communication-free kernels) */
} peal_strides_;

/* Of a field with `components`, whose views are never moved. */
typedef struct peal_component_strides_ {
    int64_t peal_first_, peal_second_, peal_third_;
} peal_component_strides_;

/* Where a tile's partial of a reduction goes (0: nobody reads it), and how values are combined. */
template <class type> struct peal_partial_ {
    type *out;
    int combine;
};

/* An element of an array that the kernel only reads. After a barrier, which partials have, the
 * compiler no longer knows that nobody writes the array. It would then load each row only after the
 * row before has been stored, and threads would wait for memory once a row. */
#ifdef PEAL_COMMUNICATION_FREE
template <class type> struct peal_item_ {
    const type *peal_address_;
    bool peal_fetch_;
    __device__ __forceinline__ operator type() const
    {
        return peal_fetch_ ? __ldg(peal_address_) : *peal_address_;
    }
    __device__ __forceinline__ const type *operator&() const
    {
        return peal_address_;
    }
};
template <class type>
static __device__ __forceinline__ peal_item_<type> peal_item_of_(const type *address, bool fetch)
{
    return {address, fetch};
}
template <class type> static __device__ __forceinline__ type &peal_item_of_(type *address, bool)
{
    return *address;
}
#endif

#define PEAL_KERNEL(peal_name_) static __device__ __forceinline__ void peal_kernel_##peal_name_

#define PEAL_READ(peal_type_, peal_array_)                                                         \
    const peal_type_ *PEAL_RESTRICT peal_array_, const peal_strides_ peal_array_##_strides_
#define PEAL_UPDATE(peal_type_, peal_array_)                                                       \
    peal_type_ *PEAL_RESTRICT peal_array_, const peal_strides_ peal_array_##_strides_
#define PEAL_WRITE(peal_type_, peal_array_)                                                        \
    peal_type_ *PEAL_RESTRICT peal_array_, const peal_strides_ peal_array_##_strides_
#define PEAL_READ_C(peal_type_, peal_array_)                                                       \
    const peal_type_ *PEAL_RESTRICT peal_array_,                                                   \
        const peal_component_strides_ peal_array_##_strides_
#define PEAL_UPDATE_C(peal_type_, peal_array_)                                                     \
    peal_type_ *PEAL_RESTRICT peal_array_, const peal_component_strides_ peal_array_##_strides_
#define PEAL_WRITE_C(peal_type_, peal_array_)                                                      \
    peal_type_ *PEAL_RESTRICT peal_array_, const peal_component_strides_ peal_array_##_strides_
#define PEAL_REDUCE(peal_type_, peal_array_) const peal_partial_<peal_type_> peal_array_

#define PEAL_AT(peal_array_, ...)                                                                  \
    PEAL_PICK_(__VA_ARGS__, PEAL_AT_4_, PEAL_AT_3_, PEAL_AT_2_, PEAL_AT_1_, )                      \
    (peal_array_, __VA_ARGS__)
#define PEAL_PICK_(peal_1_, peal_2_, peal_3_, peal_4_, peal_pick_, ...) peal_pick_
#define PEAL_AT_1_(peal_array_, peal_1_)                                                           \
    peal_array_[(int64_t)(peal_1_)-peal_array_##_strides_.peal_begin_]
/* The row is added before x, so that all of a thread's rows have one base. There are few steps,
 * because the compiler follows a pointer only so far back to the one that is `restrict`. */
#define PEAL_AT_2_(peal_array_, peal_1_, peal_2_)                                                  \
    PEAL_ITEM_(peal_array_,                                                                        \
               peal_array_ + peal_array_##_strides_.peal_row_ +                                    \
                   PEAL_STEP_(peal_array_, peal_2_, 1, peal_y_),                                   \
               (PEAL_OFFSET_)(peal_1_)-peal_array_##_strides_.peal_at_[0])
#define PEAL_AT_3_(peal_array_, peal_1_, peal_2_, peal_3_)                                         \
    PEAL_ITEM_(peal_array_,                                                                        \
               peal_array_ +                                                                       \
                   (peal_array_##_strides_.peal_row_ + peal_array_##_strides_.peal_plane_) +       \
                   (PEAL_STEP_(peal_array_, peal_2_, 1, peal_y_) +                                 \
                    PEAL_STEP_(peal_array_, peal_3_, 2, peal_z_)),                                 \
               (PEAL_OFFSET_)(peal_1_)-peal_array_##_strides_.peal_at_[0])
#ifdef PEAL_COMMUNICATION_FREE
#define PEAL_ITEM_(peal_array_, peal_row_begin_, peal_x_offset_)                                   \
    peal_item_of_((peal_row_begin_) + (peal_x_offset_), peal_array_##_strides_.peal_fetch_)
#else
/* In brackets: a function's name in front of it would get the row. */
#define PEAL_ITEM_(peal_array_, peal_row_begin_, peal_x_offset_) ((peal_row_begin_)[peal_x_offset_])
#endif
#define PEAL_STEP_(peal_array_, peal_i_, peal_axis_, peal_stride_)                                 \
    (((PEAL_OFFSET_)(peal_i_)-peal_array_##_strides_.peal_at_[peal_axis_]) *                       \
     (PEAL_OFFSET_)peal_array_##_strides_.peal_stride_)
#define PEAL_AT_4_(peal_array_, peal_1_, peal_2_, peal_3_, peal_4_)                                \
    peal_array_[(int64_t)(peal_1_)-peal_array_##_strides_.peal_begin_ +                            \
                (int64_t)(peal_2_)*peal_array_##_strides_.peal_y_ +                                \
                (int64_t)(peal_3_)*peal_array_##_strides_.peal_z_ +                                \
                (int64_t)(peal_4_)*peal_array_##_strides_.peal_w_]

#define PEAL_C(peal_array_, peal_c_, ...)                                                          \
    PEAL_PICK_(__VA_ARGS__, PEAL_C_4_, PEAL_C_3_, PEAL_C_2_, PEAL_C_1_, )                          \
    (peal_array_, peal_c_, __VA_ARGS__)
#define PEAL_C_1_(peal_array_, peal_c_, peal_1_)                                                   \
    peal_array_[(int64_t)(peal_1_) + (int64_t)(peal_c_)*peal_array_##_strides_.peal_first_]
#define PEAL_C_2_(peal_array_, peal_c_, peal_1_, peal_2_)                                          \
    peal_array_[(int64_t)(peal_1_) + (int64_t)(peal_2_)*peal_array_##_strides_.peal_first_ +       \
                (int64_t)(peal_c_)*peal_array_##_strides_.peal_second_]
#define PEAL_C_3_(peal_array_, peal_c_, peal_1_, peal_2_, peal_3_)                                 \
    peal_array_[(int64_t)(peal_1_) + (int64_t)(peal_2_)*peal_array_##_strides_.peal_first_ +       \
                (int64_t)(peal_3_)*peal_array_##_strides_.peal_second_ +                           \
                (int64_t)(peal_c_)*peal_array_##_strides_.peal_third_]

#ifdef PEAL_FUSED
static __device__ __forceinline__ int peal_thread_anew_();
#endif

static __device__ __forceinline__ int peal_thread_()
{
#ifdef PEAL_FUSED /* its blocks have one axis of threads */
    return peal_thread_anew_();
#else
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
#endif
}

/* peal_scope_ is of this type where all threads of a tile are; loops and PEAL_ONE declare an int of
 * the same name. A barrier within these would never end, or join threads of different rounds. */
enum peal_scope_all_ : char { peal_scope_ };
#define PEAL_ALL_THREADS_(peal_word_)                                                              \
    static_assert(sizeof(peal_scope_) == 1,                                                        \
                  peal_word_ " is for all threads of a tile: not within PEAL_ONE or PEAL_FOR")

#define PEAL_FOR_1D(peal_tile_, peal_x_)                                                           \
    for (int peal_scope_ = 0, peal_x_ = (peal_tile_).lo[0] + peal_thread_(),                       \
             peal_x_##_end_ = (peal_tile_).hi[0];                                                  \
         peal_x_ < peal_x_##_end_; peal_x_ += PEAL_THREADS_)
#include "peal/loops.h"

#define PEAL_FOR(peal_tile_, peal_i_, peal_n_)                                                     \
    for (int64_t peal_scope_ = 0, peal_i_ = peal_thread_() + 0 * (peal_tile_).count,               \
                 peal_i_##_end_ = (int64_t)(peal_n_);                                              \
         peal_i_ < peal_i_##_end_; peal_i_ += PEAL_THREADS_)

#define PEAL_ONE(peal_tile_) if (int peal_scope_ = ((void)(peal_tile_), peal_thread_() == 0))
#define PEAL_SYNC(peal_tile_)                                                                      \
    do {                                                                                           \
        PEAL_ALL_THREADS_("PEAL_SYNC");                                                            \
        (void)(peal_tile_);                                                                        \
        __syncthreads();                                                                           \
    } while (0)

/* Every thread of the tile gets here, with what it has found itself. */
#define PEAL_PARTIAL(peal_array_, peal_value_)                                                     \
    do {                                                                                           \
        PEAL_ALL_THREADS_("PEAL_PARTIAL");                                                         \
        if ((peal_array_).out)                                                                     \
            peal_store_partial_((peal_array_), (peal_value_));                                     \
    } while (0)

static __device__ __forceinline__ float peal_fma_(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static __device__ __forceinline__ double peal_fma_(double a, double b, double c)
{
    return fma(a, b, c);
}
/* With C's conversions: float if all three are, else double. */
#define PEAL_FMA(peal_a_, peal_b_, peal_c_)                                                        \
    peal_fma_((decltype((peal_a_) * (peal_b_) + (peal_c_)))(peal_a_),                              \
              (decltype((peal_a_) * (peal_b_) + (peal_c_)))(peal_b_),                              \
              (decltype((peal_a_) * (peal_b_) + (peal_c_)))(peal_c_))

#include "peal/fold.h"

#endif
