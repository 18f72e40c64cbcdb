/* What the kernels of a spec are written with, on a GPU: the words of include/peal/kernel.h for
 * CUDA C++.
 *
 * A tile is run by one block of PEAL_THREADS_ threads. PEAL_FOR_nD gives each thread its points by
 * the tile's extents and the thread's number alone, so a partial has the same bits in every mode
 * and grid. Nothing is `restrict` and no load is non-coherent: a kernel may have waited for memory
 * that another GPU has just written.
 *
 * With PEAL_PLAIN the same words make kernels that wait for nothing and send nothing: what they
 * read was complete before they began and nobody writes it while they run. There the arrays of a
 * call are `restrict`, and a thread marches down neighbouring rows (or planes), whose loads the
 * compiler may then start together and keep in registers. Such kernels have no reductions. Shapes
 * and numbers of their loops, and the times below, are of a harness that tried some 400 (H200, CUDA
 * 13.0, 2026-11-21; bench/results); the fastest of those that need to know no alignment are here.
 */
#ifndef PEAL_KERNEL_H
#define PEAL_KERNEL_H

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef PEAL_PLAIN
#define PEAL_RESTRICT __restrict__
#define restrict __restrict__
#else
#define PEAL_RESTRICT
#define restrict
#define __restrict__
#define __restrict
#define __ldg(peal_address_) (*(peal_address_))
#endif

/* Blocks of that many threads that an SM is to hold. Plain kernels run long: more loads are under
 * way with more blocks. The others have waits and copies in them, whose registers cost less than
 * calls. */
#ifdef PEAL_PLAIN
enum { PEAL_AXES = 4, PEAL_THREADS_ = 256, PEAL_BLOCKS_ = 4 };
#else
enum { PEAL_AXES = 4, PEAL_THREADS_ = 256, PEAL_BLOCKS_ = 3 };
#endif

/* What offsets of three axes are computed in. The unit of plain kernels says `int` where every
 * offset from the point with coordinates 0, which views point to, is known to fit. Negative ones
 * are right, too: the sum is signed, does not overflow, and widens with its sign. 27-point
 * relaxation of 512^3 doubles: 1.13 ms instead of 1.25; registers of addresses hold loads. */
#ifndef PEAL_OFFSET_
#define PEAL_OFFSET_ int64_t
#endif

typedef struct peal_tile {
    int lo[PEAL_AXES];
    int hi[PEAL_AXES];
    int64_t index;
    int64_t count;
} peal_tile;

typedef struct peal_strides_ {
    int64_t peal_y_, peal_z_, peal_w_;
} peal_strides_;

/* Where a tile's part of a reduction goes (0: nobody reads it) and how threads are joined. */
template <class type> struct peal_partial_ {
    type *out;
    int combine;
};

#define PEAL_KERNEL(peal_name_) static __device__ __forceinline__ void peal_kernel_##peal_name_

#define PEAL_READ(peal_type_, peal_array_)                                                         \
    const peal_type_ *PEAL_RESTRICT peal_array_, const peal_strides_ peal_array_##_strides_
#define PEAL_UPDATE(peal_type_, peal_array_)                                                       \
    peal_type_ *PEAL_RESTRICT peal_array_, const peal_strides_ peal_array_##_strides_
#define PEAL_WRITE(peal_type_, peal_array_)                                                        \
    peal_type_ *PEAL_RESTRICT peal_array_, const peal_strides_ peal_array_##_strides_
#define PEAL_REDUCE(peal_type_, peal_array_) const peal_partial_<peal_type_> peal_array_

#define PEAL_AT(peal_array_, ...)                                                                  \
    PEAL_PICK_(__VA_ARGS__, PEAL_AT_4_, PEAL_AT_3_, PEAL_AT_2_, PEAL_AT_1_, )                      \
    (peal_array_, __VA_ARGS__)
#define PEAL_PICK_(peal_1_, peal_2_, peal_3_, peal_4_, peal_pick_, ...) peal_pick_
#define PEAL_AT_1_(peal_array_, peal_1_)                                                           \
    ((void)sizeof(peal_array_##_strides_), peal_array_)[(int64_t)(peal_1_)]
#define PEAL_AT_2_(peal_array_, peal_1_, peal_2_)                                                  \
    peal_array_[(int64_t)(peal_1_) + (int64_t)(peal_2_)*peal_array_##_strides_.peal_y_]
#define PEAL_AT_3_(peal_array_, peal_1_, peal_2_, peal_3_)                                         \
    peal_array_[(PEAL_OFFSET_)(peal_1_) +                                                          \
                (PEAL_OFFSET_)(peal_2_) * (PEAL_OFFSET_)peal_array_##_strides_.peal_y_ +           \
                (PEAL_OFFSET_)(peal_3_) * (PEAL_OFFSET_)peal_array_##_strides_.peal_z_]
#define PEAL_AT_4_(peal_array_, peal_1_, peal_2_, peal_3_, peal_4_)                                \
    peal_array_[(int64_t)(peal_1_) + (int64_t)(peal_2_)*peal_array_##_strides_.peal_y_ +           \
                (int64_t)(peal_3_)*peal_array_##_strides_.peal_z_ +                                \
                (int64_t)(peal_4_)*peal_array_##_strides_.peal_w_]

static __device__ __forceinline__ int peal_thread_()
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

/* The smallest power of two that is at least n, as an exponent; at most `most`. */
static __device__ __forceinline__ int peal_exponent_(int n, int most)
{
    int bits = n <= 1 ? 0 : 32 - __clz(n - 1);
    return bits < most ? bits : most;
}

#ifdef PEAL_PLAIN
/* Exponents of the threads along x: 128 for a wide tile of two axes, 64 for three, and what fits
 * for thin ones. */
static __device__ __forceinline__ int peal_across_2_(const peal_tile &tile)
{
    int x = peal_exponent_(tile.hi[0] - tile.lo[0], 7);
    int y = 8 - peal_exponent_(tile.hi[1] - tile.lo[1], 8);
    return x > y ? x : y;
}

static __device__ __forceinline__ int peal_across_3_(const peal_tile &tile)
{
    return peal_exponent_(tile.hi[0] - tile.lo[0], 6);
}

/* What is left of the threads goes along y, as far as it can; z is marched along. */
static __device__ __forceinline__ int peal_down_3_(const peal_tile &tile, int across)
{
    return peal_exponent_(tile.hi[1] - tile.lo[1], 8 - across);
}
#else
/* Exponents of the threads along x and y, the rest goes along z: 64 x 4 for a wide tile of two
 * axes, 32 x 4 x 2 for one of three, and what fits for thin ones. */
static __device__ __forceinline__ int peal_across_2_(const peal_tile &tile)
{
    int x = peal_exponent_(tile.hi[0] - tile.lo[0], 6);
    int y = 8 - peal_exponent_(tile.hi[1] - tile.lo[1], 8);
    return x > y ? x : y;
}

static __device__ __forceinline__ int peal_across_3_(const peal_tile &tile)
{
    return peal_exponent_(tile.hi[0] - tile.lo[0], 5);
}

static __device__ __forceinline__ int peal_down_3_(const peal_tile &tile, int across)
{
    int z = peal_exponent_(tile.hi[2] - tile.lo[2], 1);
    return peal_exponent_(tile.hi[1] - tile.lo[1], 8 - across - z);
}
#endif

/* What a name means where all threads of a tile are; within loops and PEAL_ONE it is an int. A
 * barrier there would never end, or join threads in different rounds. */
enum peal_scope_all_ : char { peal_scope_ };
#define PEAL_ALL_THREADS_(peal_word_)                                                              \
    static_assert(sizeof(peal_scope_) == 1,                                                        \
                  peal_word_ " is for all threads of a tile: not within PEAL_ONE or PEAL_FOR")

#define PEAL_FOR_1D(peal_tile_, peal_x_)                                                           \
    for (int peal_scope_ = 0, peal_x_ = (peal_tile_).lo[0] + peal_thread_(),                       \
             peal_x_##_end_ = (peal_tile_).hi[0];                                                  \
         peal_x_ < peal_x_##_end_; peal_x_ += PEAL_THREADS_)
#ifdef PEAL_PLAIN
/* Thread `peal_part_` of `1 << bits` along an axis marches over its share of [lo, hi). */
#define PEAL_MARCH_(peal_tile_, peal_axis_, peal_i_, peal_part_, peal_bits_)                       \
    for (int peal_scope_ = 0,                                                                      \
             peal_i_##_length_ = (peal_tile_).hi[peal_axis_] - (peal_tile_).lo[peal_axis_],        \
             peal_i_##_share_ = (peal_i_##_length_ + (1 << (peal_bits_)) - 1) >> (peal_bits_),     \
             peal_i_##_first_ = (peal_part_)*peal_i_##_share_,                                     \
             peal_i_##_rest_ = peal_i_##_length_ - peal_i_##_first_,                               \
             peal_i_ = (peal_tile_).lo[peal_axis_] + peal_i_##_first_,                             \
             peal_i_##_end_ = peal_i_ + (peal_i_##_rest_ < peal_i_##_share_ ? peal_i_##_rest_      \
                                                                            : peal_i_##_share_);   \
         peal_i_ < peal_i_##_end_; peal_i_++)
#define PEAL_ACROSS_(peal_tile_, peal_axis_, peal_i_, peal_part_, peal_bits_)                      \
    for (int peal_i_##_at_ = (peal_part_),                                                         \
             peal_i_##_width_ = (peal_tile_).hi[peal_axis_] - (peal_tile_).lo[peal_axis_],         \
             peal_i_ = (peal_tile_).lo[peal_axis_] + peal_i_##_at_;                                \
         peal_i_##_at_ < peal_i_##_width_; peal_i_##_at_ += 1 << (peal_bits_),                     \
             peal_i_ = (peal_tile_).lo[peal_axis_] + peal_i_##_at_)
/* 5-point relaxation of 16384^2 floats: 581 us with 128 threads across and 16 rows in flight, 642
 * with 64 and 8; a copy takes 528. */
#define PEAL_FOR_2D(peal_tile_, peal_x_, peal_y_)                                                  \
    for (int peal_y_##_bits_ = peal_across_2_(peal_tile_), peal_y_##_once_ = 1; peal_y_##_once_;   \
         peal_y_##_once_ = 0)                                                                      \
        PEAL_ACROSS_(peal_tile_, 0, peal_x_, peal_thread_() & ((1 << peal_y_##_bits_) - 1),        \
                     peal_y_##_bits_)                                                              \
    _Pragma("unroll 16") PEAL_MARCH_(peal_tile_, 1, peal_y_, peal_thread_() >> peal_y_##_bits_,    \
                                     8 - peal_y_##_bits_)
#define PEAL_FOR_3D(peal_tile_, peal_x_, peal_y_, peal_z_)                                         \
    for (int peal_z_##_bits_ = peal_across_3_(peal_tile_),                                         \
             peal_z_##_down_ = peal_down_3_(peal_tile_, peal_z_##_bits_), peal_z_##_once_ = 1;     \
         peal_z_##_once_; peal_z_##_once_ = 0)                                                     \
        PEAL_ACROSS_(peal_tile_, 1, peal_y_,                                                       \
                     (peal_thread_() >> peal_z_##_bits_) & ((1 << peal_z_##_down_) - 1),           \
                     peal_z_##_down_)                                                              \
    PEAL_ACROSS_(peal_tile_, 0, peal_x_, peal_thread_() & ((1 << peal_z_##_bits_) - 1),            \
                 peal_z_##_bits_)                                                                  \
    _Pragma("unroll 2")                                                                            \
        PEAL_MARCH_(peal_tile_, 2, peal_z_, peal_thread_() >> (peal_z_##_bits_ + peal_z_##_down_), \
                    8 - peal_z_##_bits_ - peal_z_##_down_)
#else
#define PEAL_ROW_(peal_tile_, peal_x_, peal_across_)                                               \
    for (int peal_scope_ = 0,                                                                      \
             peal_x_ = (peal_tile_).lo[0] + (peal_thread_() & ((1 << (peal_across_)) - 1)),        \
             peal_x_##_end_ = (peal_tile_).hi[0];                                                  \
         peal_x_ < peal_x_##_end_; peal_x_ += 1 << (peal_across_))
#define PEAL_FOR_2D(peal_tile_, peal_x_, peal_y_)                                                  \
    for (int peal_y_##_across_ = peal_across_2_(peal_tile_),                                       \
             peal_y_ = (peal_tile_).lo[1] + (peal_thread_() >> peal_y_##_across_),                 \
             peal_y_##_end_ = (peal_tile_).hi[1];                                                  \
         peal_y_ < peal_y_##_end_; peal_y_ += PEAL_THREADS_ >> peal_y_##_across_)                  \
    PEAL_ROW_(peal_tile_, peal_x_, peal_y_##_across_)
#define PEAL_FOR_3D(peal_tile_, peal_x_, peal_y_, peal_z_)                                         \
    for (int peal_z_##_across_ = peal_across_3_(peal_tile_),                                       \
             peal_z_##_down_ = peal_down_3_(peal_tile_, peal_z_##_across_),                        \
             peal_z_ =                                                                             \
                 (peal_tile_).lo[2] + (peal_thread_() >> (peal_z_##_across_ + peal_z_##_down_)),   \
             peal_z_##_end_ = (peal_tile_).hi[2];                                                  \
         peal_z_ < peal_z_##_end_;                                                                 \
         peal_z_ += PEAL_THREADS_ >> (peal_z_##_across_ + peal_z_##_down_))                        \
        for (int peal_y_ = (peal_tile_).lo[1] +                                                    \
                           ((peal_thread_() >> peal_z_##_across_) & ((1 << peal_z_##_down_) - 1)), \
                 peal_y_##_end_ = (peal_tile_).hi[1];                                              \
             peal_y_ < peal_y_##_end_; peal_y_ += 1 << peal_z_##_down_)                            \
    PEAL_ROW_(peal_tile_, peal_x_, peal_z_##_across_)
#endif

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
/* As C would convert: float if all are, else double. */
#define PEAL_FMA(peal_a_, peal_b_, peal_c_)                                                        \
    peal_fma_((decltype((peal_a_) * (peal_b_) + (peal_c_)))(peal_a_),                              \
              (decltype((peal_a_) * (peal_b_) + (peal_c_)))(peal_b_),                              \
              (decltype((peal_a_) * (peal_b_) + (peal_c_)))(peal_c_))

#include "peal/fold.h"

#endif
