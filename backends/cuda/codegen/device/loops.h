/* How the threads of a block share the points of a tile: PEAL_FOR_2D and PEAL_FOR_3D.
 *
 * A thread runs over neighbouring rows (or planes). A *whole* tile has the extents that launch.h
 * says, so everything but its position is a constant. A thread of it has two neighbouring columns
 * (with three axes: in flat tiles only) of a few rows, and no access is guarded. Where `restrict`
 * allows it (kernel.h), the compiler keeps rows in registers and makes one access of both columns.
 * Which thread has which points, and in which order, follows from the tile's extents alone, so a
 * partial has the same bits in every mode and grid.
 *
 * Shapes are the best of 954 that a harness tried (H200, CUDA 13.0, 2026-11-21; bench/results):
 * 5-point relaxation of 16384^2 floats takes 523 us, 592 in tiles of other extents, and a copy 526.
 * The compiler recognises a row that it has in registers only if all addresses have constant
 * distances from one (PEAL_AT in kernel.h), and if the inner loop over rows has a constant count
 * early. */
#ifndef PEAL_DEVICE_LOOPS_H
#define PEAL_DEVICE_LOOPS_H

#include "peal/launch.h"

enum {
    /* Exponents of threads across a whole tile, and down one of three axes. */
    PEAL_WHOLE_ACROSS_2_ = 6,
    PEAL_WHOLE_ACROSS_3_ = 6,
    PEAL_WHOLE_DOWN_3_ = 2,
    PEAL_WHOLE_ACROSS_FLAT_ = 5,
    PEAL_WHOLE_DOWN_FLAT_ = 3,
    /* Rows of a thread, and how many of them are under way together. */
    PEAL_WHOLE_ROWS_2_ = PEAL_WHOLE_2_Y >> (8 - PEAL_WHOLE_ACROSS_2_),
    PEAL_WHOLE_ROWS_3_ = PEAL_WHOLE_3_Z,
    PEAL_WHOLE_ONCE_3_ = 4
};
static_assert(PEAL_THREADS_ == 1 << 8, "threads");
static_assert(PEAL_WHOLE_COLUMNS << PEAL_WHOLE_ACROSS_2_ == PEAL_WHOLE_2_X, "tile");
static_assert(1 << PEAL_WHOLE_ACROSS_3_ == PEAL_WHOLE_3_X, "tile");
static_assert(1 << PEAL_WHOLE_DOWN_3_ == PEAL_WHOLE_3_Y, "tile");
static_assert(PEAL_WHOLE_COLUMNS << PEAL_WHOLE_ACROSS_FLAT_ == PEAL_WHOLE_FLAT_X, "tile");
static_assert(1 << PEAL_WHOLE_DOWN_FLAT_ == PEAL_WHOLE_FLAT_Y, "tile");

/* Points of a whole tile of that kind along an axis, and rows (or planes) and neighbouring columns
 * of its threads. */
static __device__ constexpr int peal_whole_extent_(int kind, int axis)
{
    return axis == 0              ? kind == PEAL_WHOLE_2   ? PEAL_WHOLE_2_X
                                    : kind == PEAL_WHOLE_3 ? PEAL_WHOLE_3_X
                                                           : PEAL_WHOLE_FLAT_X
           : axis == 1            ? kind == PEAL_WHOLE_2   ? PEAL_WHOLE_2_Y
                                    : kind == PEAL_WHOLE_3 ? PEAL_WHOLE_3_Y
                                                           : PEAL_WHOLE_FLAT_Y
           : kind == PEAL_WHOLE_2 ? 1
           : kind == PEAL_WHOLE_3 ? PEAL_WHOLE_3_Z
                                  : PEAL_WHOLE_FLAT_Z;
}
static __device__ constexpr int peal_whole_rows_(int kind)
{
    return kind == PEAL_WHOLE_DEEP ? 1
           : kind == PEAL_WHOLE_2  ? PEAL_WHOLE_ROWS_2_
           : kind == PEAL_WHOLE_3  ? PEAL_WHOLE_ROWS_3_
                                   : PEAL_WHOLE_FLAT_Z;
}
static __device__ constexpr int peal_whole_columns_(int kind)
{
    return kind == PEAL_WHOLE_2 || kind == PEAL_WHOLE_FLAT ? PEAL_WHOLE_COLUMNS : 1;
}

/* The smallest power of two that is at least n, as an exponent; at most `most`. */
static __device__ __forceinline__ int peal_exponent_(int n, int most)
{
    int bits = n <= 1 ? 0 : 32 - __clz(n - 1);
    return bits < most ? bits : most;
}

/* The kind of whole tile that the tile is, among those of so many axes; 0: none, or the kernel has
 * changed it. If it has not, the compiler knows the answer. */
static __device__ __forceinline__ int peal_runs_whole_(const peal_tile &tile, int axes)
{
    const int kind = tile.peal_whole_;

    if (kind == PEAL_WHOLE_DEEP)
        return tile.lo[0] == tile.peal_lo_[0] && tile.lo[1] == tile.peal_lo_[1] &&
                       tile.lo[2] == tile.peal_lo_[2] && tile.hi[0] == tile.peal_hi_[0] &&
                       tile.hi[1] == tile.peal_hi_[1] && tile.hi[2] == tile.peal_hi_[2]
                   ? kind
                   : 0;
    const bool whole = kind != 0 && (kind == PEAL_WHOLE_2) == (axes == 2) &&
                       tile.lo[0] == tile.peal_lo_[0] && tile.lo[1] == tile.peal_lo_[1] &&
                       tile.lo[2] == tile.peal_lo_[2] &&
                       tile.hi[0] - tile.lo[0] == peal_whole_extent_(kind, 0) &&
                       tile.hi[1] - tile.lo[1] == peal_whole_extent_(kind, 1) &&
                       tile.hi[2] - tile.lo[2] == peal_whole_extent_(kind, 2);

    return whole ? kind : 0;
}

/* Exponents of the threads along x: 128 for a wide tile of two axes, 64 for three, and what fits
 * for thin ones. */
static __device__ __forceinline__ int peal_across_2_(const peal_tile &tile)
{
    if (peal_runs_whole_(tile, 2))
        return PEAL_WHOLE_ACROSS_2_;
    int x = peal_exponent_(tile.hi[0] - tile.lo[0], 7);
    int y = 8 - peal_exponent_(tile.hi[1] - tile.lo[1], 8);
    return x > y ? x : y;
}

static __device__ __forceinline__ int peal_across_3_(const peal_tile &tile)
{
    const int kind = peal_runs_whole_(tile, 3);
    if (kind)
        return kind == PEAL_WHOLE_FLAT ? PEAL_WHOLE_ACROSS_FLAT_ : PEAL_WHOLE_ACROSS_3_;
    return peal_exponent_(tile.hi[0] - tile.lo[0], 6);
}

/* Exponents of the threads along y: as many of the remaining ones as the tile has points there.
 * Each thread runs over z. */
static __device__ __forceinline__ int peal_down_3_(const peal_tile &tile, int across)
{
    const int kind = peal_runs_whole_(tile, 3);
    if (kind)
        return kind == PEAL_WHOLE_FLAT ? PEAL_WHOLE_DOWN_FLAT_ : PEAL_WHOLE_DOWN_3_;
    return peal_exponent_(tile.hi[1] - tile.lo[1], 8 - across);
}

static __device__ __forceinline__ int peal_least_(int a, int b)
{
    return a < b ? a : b;
}

#define PEAL_UNROLL_4_ _Pragma("unroll 4")
#define PEAL_UNROLL_1_ _Pragma("unroll 1")

/* Thread `peal_part_` of `1 << bits` along an axis steps over [lo, hi); in a whole tile it has one
 * point there. */
#define PEAL_ACROSS_(peal_tile_, peal_axis_, peal_i_, peal_whole_, peal_part_, peal_bits_)         \
    for (int peal_i_##_place_ = (peal_whole_) ? 0 : (peal_part_),                                  \
             peal_i_##_places_ =                                                                   \
                 (peal_whole_) ? 1 : (peal_tile_).hi[peal_axis_] - (peal_tile_).lo[peal_axis_];    \
         peal_i_##_place_ < peal_i_##_places_;                                                     \
         peal_i_##_place_ += (peal_whole_) ? 1 : 1 << (peal_bits_))
/* This `if` has its `else`, so that an `else` behind the loop in the user's text belongs to another
 * one. */
#define PEAL_WITH_(peal_i_, peal_value_)                                                           \
    if (int peal_i_ = (peal_value_), peal_scope_ = 0; false) {                                     \
    } else
#define PEAL_PLACE_(peal_tile_, peal_axis_, peal_i_, peal_whole_, peal_column_)                    \
    PEAL_WITH_(peal_i_, (peal_whole_) ? (peal_tile_).peal_at_[peal_axis_] + (peal_column_)         \
                                      : (peal_tile_).lo[peal_axis_] + peal_i_##_place_)
/* ... runs over its part of [lo, hi); in a whole tile over `rows` points, `once` at a time. */
#define PEAL_MARCH_(peal_tile_, peal_axis_, peal_i_, peal_whole_, peal_rows_, peal_once_,          \
                    peal_part_, peal_bits_)                                                        \
    for (int peal_i_##_length_ = (peal_tile_).hi[peal_axis_] - (peal_tile_).lo[peal_axis_],        \
             peal_i_##_share_ = (peal_i_##_length_ + (1 << (peal_bits_)) - 1) >> (peal_bits_),     \
             peal_i_##_first_ = (peal_part_)*peal_i_##_share_,                                     \
             peal_i_##_rest_ = peal_i_##_length_ - peal_i_##_first_, peal_i_##_done_ = 0,          \
             peal_i_##_step_ = (peal_whole_) ? (peal_once_) : 1,                                   \
             peal_i_##_from_ = (peal_whole_) ? (peal_tile_).peal_at_[peal_axis_]                   \
                                             : (peal_tile_).lo[peal_axis_] + peal_i_##_first_,     \
             peal_i_##_end_ = (peal_whole_) ? (peal_rows_)                                         \
                                            : peal_least_(peal_i_##_rest_, peal_i_##_share_);      \
         peal_i_##_done_ < peal_i_##_end_; peal_i_##_done_ += peal_i_##_step_)                     \
    _Pragma("unroll") for (int peal_i_##_now_ = 0; peal_i_##_now_ < peal_i_##_step_;               \
                           peal_i_##_now_++)                                                       \
        PEAL_WITH_(peal_i_, peal_i_##_from_ + peal_i_##_done_ + peal_i_##_now_)

#define PEAL_FOR_2D(peal_tile_, peal_x_, peal_y_)                                                  \
    for (int peal_y_##_whole_ = peal_runs_whole_(peal_tile_, 2),                                   \
             peal_y_##_bits_ = peal_across_2_(peal_tile_),                                         \
             peal_x_##_columns_ = peal_whole_columns_(peal_y_##_whole_), peal_y_##_once_ = 1;      \
         peal_y_##_once_; peal_y_##_once_ = 0)                                                     \
        PEAL_ACROSS_(peal_tile_, 0, peal_x_, peal_y_##_whole_,                                     \
                     peal_thread_() & ((1 << peal_y_##_bits_) - 1), peal_y_##_bits_)               \
    PEAL_UNROLL_4_ PEAL_MARCH_(peal_tile_, 1, peal_y_, peal_y_##_whole_,                           \
                               peal_whole_rows_(peal_y_##_whole_),                                 \
                               peal_whole_rows_(peal_y_##_whole_),                                 \
                               peal_thread_() >> peal_y_##_bits_, 8 - peal_y_##_bits_)             \
        _Pragma("unroll") for (int peal_x_##_column_ = 0; peal_x_##_column_ < peal_x_##_columns_;  \
                               peal_x_##_column_++)                                                \
            PEAL_PLACE_(peal_tile_, 0, peal_x_, peal_y_##_whole_, peal_x_##_column_)
#define PEAL_FOR_3D(peal_tile_, peal_x_, peal_y_, peal_z_)                                         \
    for (int peal_z_##_whole_ = peal_runs_whole_(peal_tile_, 3),                                   \
             peal_z_##_bits_ = peal_across_3_(peal_tile_),                                         \
             peal_z_##_down_ = peal_down_3_(peal_tile_, peal_z_##_bits_),                          \
             peal_x_##_columns_ = peal_whole_columns_(peal_z_##_whole_), peal_z_##_once_ = 1;      \
         peal_z_##_once_; peal_z_##_once_ = 0)                                                     \
        PEAL_ACROSS_(peal_tile_, 1, peal_y_, peal_z_##_whole_,                                     \
                     (peal_thread_() >> peal_z_##_bits_) & ((1 << peal_z_##_down_) - 1),           \
                     peal_z_##_down_)                                                              \
    PEAL_PLACE_(peal_tile_, 1, peal_y_, peal_z_##_whole_, 0)                                       \
    PEAL_ACROSS_(peal_tile_, 0, peal_x_, peal_z_##_whole_,                                         \
                 peal_thread_() & ((1 << peal_z_##_bits_) - 1), peal_z_##_bits_)                   \
    PEAL_UNROLL_1_                                                                                 \
    PEAL_MARCH_(peal_tile_, 2, peal_z_, peal_z_##_whole_, peal_whole_rows_(peal_z_##_whole_),      \
                peal_z_##_whole_ == PEAL_WHOLE_3 ? PEAL_WHOLE_ONCE_3_                              \
                                                 : peal_whole_rows_(peal_z_##_whole_),             \
                peal_thread_() >> (peal_z_##_bits_ + peal_z_##_down_),                             \
                8 - peal_z_##_bits_ - peal_z_##_down_)                                             \
    _Pragma("unroll") for (int peal_x_##_column_ = 0; peal_x_##_column_ < peal_x_##_columns_;      \
                           peal_x_##_column_++)                                                    \
        PEAL_PLACE_(peal_tile_, 0, peal_x_, peal_z_##_whole_, peal_x_##_column_)

/* Bounds may be of any integer type. */
#define PEAL_WITHIN_(peal_first_, peal_i_, peal_end_)                                              \
    ((int64_t)(peal_first_) <= peal_i_ && peal_i_ < (int64_t)(peal_end_))
#define PEAL_KNOW_(peal_in_, peal_value_)                                                          \
    if (const int peal_in_ = (peal_value_), peal_scope_ = 0; false) {                              \
    } else
/* The branch is one for most warps. */
#define PEAL_FOR_1D_INSIDE(peal_tile_, peal_x_, peal_in_, peal_x0_, peal_x1_)                      \
    PEAL_FOR_1D(peal_tile_, peal_x_)                                                               \
    PEAL_KNOW_(peal_in_, PEAL_WITHIN_(peal_x0_, peal_x_, peal_x1_))
#define PEAL_FOR_2D_INSIDE(peal_tile_, peal_x_, peal_y_, peal_in_, peal_x0_, peal_x1_, peal_y0_,   \
                           peal_y1_)                                                               \
    PEAL_FOR_2D(peal_tile_, peal_x_, peal_y_)                                                      \
    PEAL_KNOW_(peal_in_, PEAL_WITHIN_(peal_x0_, peal_x_, peal_x1_) &&                              \
                             PEAL_WITHIN_(peal_y0_, peal_y_, peal_y1_))
#define PEAL_FOR_3D_INSIDE(peal_tile_, peal_x_, peal_y_, peal_z_, peal_in_, peal_x0_, peal_x1_,    \
                           peal_y0_, peal_y1_, peal_z0_, peal_z1_)                                 \
    PEAL_FOR_3D(peal_tile_, peal_x_, peal_y_, peal_z_)                                             \
    PEAL_KNOW_(peal_in_, PEAL_WITHIN_(peal_x0_, peal_x_, peal_x1_) &&                              \
                             PEAL_WITHIN_(peal_y0_, peal_y_, peal_y1_) &&                          \
                             PEAL_WITHIN_(peal_z0_, peal_z_, peal_z1_))

/* Every second point. The others' threads are idle: lines of memory are fetched whole anyway. */
#define PEAL_IF_EVEN_(peal_sum_)                                                                   \
    if ((peal_sum_)&1) {                                                                           \
    } else
#define PEAL_FOR_1D_EVEN(peal_tile_, peal_x_, peal_colour_)                                        \
    PEAL_FOR_1D(peal_tile_, peal_x_) PEAL_IF_EVEN_(peal_x_ ^ (int)(peal_colour_))
#define PEAL_FOR_2D_EVEN(peal_tile_, peal_x_, peal_y_, peal_colour_)                               \
    PEAL_FOR_2D(peal_tile_, peal_x_, peal_y_)                                                      \
    PEAL_IF_EVEN_(peal_x_ ^ peal_y_ ^ (int)(peal_colour_))
#define PEAL_FOR_3D_EVEN(peal_tile_, peal_x_, peal_y_, peal_z_, peal_colour_)                      \
    PEAL_FOR_3D(peal_tile_, peal_x_, peal_y_, peal_z_)                                             \
    PEAL_IF_EVEN_(peal_x_ ^ peal_y_ ^ peal_z_ ^ (int)(peal_colour_))

#endif
