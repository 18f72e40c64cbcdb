/* What the kernels of a spec are written with.
 *
 *     PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, an),
 *                        PEAL_REDUCE(double, d2), long rows, double weight)
 *     {
 *         double sum = 0;
 *         PEAL_FOR_2D(t, x, y) {
 *             float v = 0.5f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y));
 *             PEAL_AT(an, x, y) = v;
 *             sum += v;
 *         }
 *         PEAL_PARTIAL(d2, sum);
 *     }
 *
 * Parameters: the tile, then the task's read, update, write and reduce in the order in which it
 * lists them, then its args: an integer is a long, a real a double. peal writes the call, so a
 * wrong number or type of parameters does not compile. peal includes this header before the
 * kernels; including it again does no harm.
 *
 * The same source is compiled for the CPU and for accelerators: use no library but math. A kernel
 * is inlined into its only caller, so that the compiler sees which results nobody asks for. */
#ifndef PEAL_KERNEL_H
#define PEAL_KERNEL_H

#include <peal/call.h>

/* Distances between neighbours along y, z and the fourth axis, in elements; along x it is 1. The
 * names are odd so that no name of a kernel's own, put into a macro, can meet them. */
typedef struct peal_strides_ {
    int64_t peal_y_, peal_z_, peal_w_;
} peal_strides_;

/* Of a field with `components`: along y, z and the fourth axis in memory; its components are behind
 * its axes. Another type with other names, so that PEAL_AT does not compile for it. */
typedef struct peal_component_strides_ {
    int64_t peal_first_, peal_second_, peal_third_;
} peal_component_strides_;

/* Arrays of one call never overlap. Where a kernel may wait for memory that others write, peal
 * defines this away. */
#ifndef PEAL_RESTRICT
#define PEAL_RESTRICT __restrict__
#endif

#define PEAL_KERNEL(peal_name_)                                                                    \
    static inline __attribute__((always_inline)) void peal_kernel_##peal_name_

/* Parameters. u[i] is element i of a buffer without a box; PEAL_AT is for fields. */
#define PEAL_READ(peal_type_, peal_array_)                                                         \
    const peal_type_ *PEAL_RESTRICT peal_array_,                                                   \
        const peal_strides_ peal_array_##_strides_ __attribute__((unused))
#define PEAL_UPDATE(peal_type_, peal_array_)                                                       \
    peal_type_ *PEAL_RESTRICT peal_array_,                                                         \
        const peal_strides_ peal_array_##_strides_ __attribute__((unused))
#define PEAL_WRITE(peal_type_, peal_array_)                                                        \
    peal_type_ *PEAL_RESTRICT peal_array_,                                                         \
        const peal_strides_ peal_array_##_strides_ __attribute__((unused))
/* Fields with `components`. */
#define PEAL_READ_C(peal_type_, peal_array_)                                                       \
    const peal_type_ *PEAL_RESTRICT peal_array_,                                                   \
        const peal_component_strides_ peal_array_##_strides_ __attribute__((unused))
#define PEAL_UPDATE_C(peal_type_, peal_array_)                                                     \
    peal_type_ *PEAL_RESTRICT peal_array_,                                                         \
        const peal_component_strides_ peal_array_##_strides_ __attribute__((unused))
#define PEAL_WRITE_C(peal_type_, peal_array_)                                                      \
    peal_type_ *PEAL_RESTRICT peal_array_,                                                         \
        const peal_component_strides_ peal_array_##_strides_ __attribute__((unused))
#define PEAL_REDUCE(peal_type_, peal_array_) peal_type_ *PEAL_RESTRICT peal_array_

/* The point with these global coordinates, halo included: PEAL_AT(u, x), (u, x, y), (u, x, y, z),
 * (u, x, y, z, w). It can be assigned to. */
#define PEAL_AT(peal_array_, ...)                                                                  \
    PEAL_PICK_(__VA_ARGS__, PEAL_AT_4_, PEAL_AT_3_, PEAL_AT_2_, PEAL_AT_1_, )                      \
    (peal_array_, __VA_ARGS__)
#define PEAL_PICK_(peal_1_, peal_2_, peal_3_, peal_4_, peal_pick_, ...) peal_pick_
#define PEAL_AT_1_(peal_array_, peal_1_)                                                           \
    ((void)sizeof(peal_array_##_strides_.peal_y_), peal_array_)[(int64_t)(peal_1_)]
#define PEAL_AT_2_(peal_array_, peal_1_, peal_2_)                                                  \
    peal_array_[(int64_t)(peal_1_) + (int64_t)(peal_2_)*peal_array_##_strides_.peal_y_]
#define PEAL_AT_3_(peal_array_, peal_1_, peal_2_, peal_3_)                                         \
    peal_array_[(int64_t)(peal_1_) + (int64_t)(peal_2_)*peal_array_##_strides_.peal_y_ +           \
                (int64_t)(peal_3_)*peal_array_##_strides_.peal_z_]
#define PEAL_AT_4_(peal_array_, peal_1_, peal_2_, peal_3_, peal_4_)                                \
    peal_array_[(int64_t)(peal_1_) + (int64_t)(peal_2_)*peal_array_##_strides_.peal_y_ +           \
                (int64_t)(peal_3_)*peal_array_##_strides_.peal_z_ +                                \
                (int64_t)(peal_4_)*peal_array_##_strides_.peal_w_]

/* Component c, from 0, of the point of a field with `components`: PEAL_C(f, c, x), (f, c, x, y),
 * (f, c, x, y, z). It can be assigned to. */
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

/* The tile's points, in any order; int coordinates, x fastest here. */
#define PEAL_FOR_1D(peal_tile_, peal_x_)                                                           \
    for (int peal_x_ = (peal_tile_).lo[0], peal_x_##_end_ = (peal_tile_).hi[0];                    \
         peal_x_ < peal_x_##_end_; peal_x_++)
#define PEAL_FOR_2D(peal_tile_, peal_x_, peal_y_)                                                  \
    for (int peal_y_ = (peal_tile_).lo[1], peal_y_##_end_ = (peal_tile_).hi[1];                    \
         peal_y_ < peal_y_##_end_; peal_y_++)                                                      \
    PEAL_FOR_1D(peal_tile_, peal_x_)
#define PEAL_FOR_3D(peal_tile_, peal_x_, peal_y_, peal_z_)                                         \
    for (int peal_z_ = (peal_tile_).lo[2], peal_z_##_end_ = (peal_tile_).hi[2];                    \
         peal_z_ < peal_z_##_end_; peal_z_++)                                                      \
    PEAL_FOR_2D(peal_tile_, peal_x_, peal_y_)

/* Those of them whose coordinates and `colour` have an even sum: 0 and 1 are the two halves of a
 * chessboard, whose points have no neighbour in their half along an axis. The colour is the same
 * for all points. */
#define PEAL_FOR_1D_EVEN(peal_tile_, peal_x_, peal_colour_)                                        \
    PEAL_SECOND_(peal_tile_, peal_x_, (int)(peal_colour_))
#define PEAL_FOR_2D_EVEN(peal_tile_, peal_x_, peal_y_, peal_colour_)                               \
    for (int peal_y_ = (peal_tile_).lo[1], peal_y_##_end_ = (peal_tile_).hi[1];                    \
         peal_y_ < peal_y_##_end_; peal_y_++)                                                      \
    PEAL_SECOND_(peal_tile_, peal_x_, peal_y_ ^ (int)(peal_colour_))
#define PEAL_FOR_3D_EVEN(peal_tile_, peal_x_, peal_y_, peal_z_, peal_colour_)                      \
    for (int peal_z_ = (peal_tile_).lo[2], peal_z_##_end_ = (peal_tile_).hi[2];                    \
         peal_z_ < peal_z_##_end_; peal_z_++)                                                      \
        for (int peal_y_ = (peal_tile_).lo[1], peal_y_##_end_ = (peal_tile_).hi[1];                \
             peal_y_ < peal_y_##_end_; peal_y_++)                                                  \
    PEAL_SECOND_(peal_tile_, peal_x_, peal_y_ ^ peal_z_ ^ (int)(peal_colour_))
#define PEAL_SECOND_(peal_tile_, peal_x_, peal_sum_)                                               \
    for (int peal_x_##_end_ = (peal_tile_).hi[0],                                                  \
             peal_x_##_first_ = (peal_tile_).lo[0] + (((peal_tile_).lo[0] ^ (peal_sum_)) & 1),     \
             peal_x_ = peal_x_##_first_;                                                           \
         peal_x_ < peal_x_##_end_; peal_x_ += 2)

/* The tile's points, and whether each lies inside of walls: `peal_in_`, a const int, is 1 from the
 * first bound of each axis to before the second, else 0. Bounds are the same for all points. A
 * compiler makes loops of their own of the points inside, where peal_in_ is known, so what is asked
 * at walls costs nothing there. */
#define PEAL_FOR_1D_INSIDE(peal_tile_, peal_x_, peal_in_, peal_x0_, peal_x1_)                      \
    PEAL_PARTS_(peal_tile_, peal_x_, peal_in_, peal_x0_, peal_x1_, 1)
#define PEAL_FOR_2D_INSIDE(peal_tile_, peal_x_, peal_y_, peal_in_, peal_x0_, peal_x1_, peal_y0_,   \
                           peal_y1_)                                                               \
    for (int peal_y_ = (peal_tile_).lo[1], peal_y_##_end_ = (peal_tile_).hi[1];                    \
         peal_y_ < peal_y_##_end_; peal_y_++)                                                      \
    PEAL_PARTS_(peal_tile_, peal_x_, peal_in_, peal_x0_, peal_x1_,                                 \
                PEAL_WITHIN_(peal_y0_, peal_y_, peal_y1_))
#define PEAL_FOR_3D_INSIDE(peal_tile_, peal_x_, peal_y_, peal_z_, peal_in_, peal_x0_, peal_x1_,    \
                           peal_y0_, peal_y1_, peal_z0_, peal_z1_)                                 \
    for (int peal_z_ = (peal_tile_).lo[2], peal_z_##_end_ = (peal_tile_).hi[2];                    \
         peal_z_ < peal_z_##_end_; peal_z_++)                                                      \
        for (int peal_y_ = (peal_tile_).lo[1], peal_y_##_end_ = (peal_tile_).hi[1];                \
             peal_y_ < peal_y_##_end_; peal_y_++)                                                  \
    PEAL_PARTS_(peal_tile_, peal_x_, peal_in_, peal_x0_, peal_x1_,                                 \
                PEAL_WITHIN_(peal_y0_, peal_y_, peal_y1_) &&                                       \
                    PEAL_WITHIN_(peal_z0_, peal_z_, peal_z1_))

/* Bounds may be of any integer type. */
#define PEAL_WITHIN_(peal_first_, peal_i_, peal_end_)                                              \
    ((int64_t)(peal_first_) <= peal_i_ && peal_i_ < (int64_t)(peal_end_))

/* A row in three parts: before, inside and behind. All of it is before where other axes have walls.
 * What is given is evaluated where x and the loop's other names are not known yet. */
#define PEAL_PARTS_(peal_tile_, peal_x_, peal_in_, peal_x0_, peal_x1_, peal_row_)                  \
    for (peal_parts_ peal_x_##_parts_ = peal_parts_of_((peal_tile_).lo[0], (peal_tile_).hi[0],     \
                                                       peal_x0_, peal_x1_, peal_row_),             \
                     *peal_x_##_row_ = &peal_x_##_parts_;                                          \
         peal_x_##_row_; peal_x_##_row_ = 0)                                                       \
        PEAL_UNROLL_3_                                                                             \
    for (int peal_x_##_part_ = 0; peal_x_##_part_ < 3; peal_x_##_part_++)                          \
        for (const int peal_in_ = peal_x_##_part_ == 1, *peal_x_##_once_ = &peal_in_;              \
             peal_x_##_once_; peal_x_##_once_ = 0)                                                 \
            for (int peal_x_ = peal_x_##_parts_.peal_at_[peal_x_##_part_],                         \
                     peal_x_##_end_ = peal_x_##_parts_.peal_at_[peal_x_##_part_ + 1];              \
                 peal_x_ < peal_x_##_end_; peal_x_++)
#define PEAL_UNROLL_3_ _Pragma("GCC unroll 3")

typedef struct peal_parts_ {
    int peal_at_[4]; /* where each part begins, and the end */
} peal_parts_;

static inline peal_parts_ peal_parts_of_(int lo, int hi, int64_t first, int64_t end, int row)
{
    int64_t from = first < lo ? lo : first < hi ? first : hi;
    int64_t to = end < from ? from : end < hi ? end : hi;
    peal_parts_ parts = {{lo, row ? (int)from : hi, row ? (int)to : hi, hi}};

    return parts;
}

/* 0 .. n - 1, shared among the tile's threads, of which the CPU has one. */
#define PEAL_FOR(peal_tile_, peal_i_, peal_n_)                                                     \
    for (int64_t peal_i_ = 0 * (peal_tile_).count, peal_i_##_end_ = (int64_t)(peal_n_);            \
         peal_i_ < peal_i_##_end_; peal_i_++)

/* PEAL_ONE(t) { ... } is done by one thread. PEAL_SYNC(t): all before it is visible to all after.
 * PEAL_SYNC and PEAL_PARTIAL are for all threads of a tile: for a GPU they don't compile within
 * PEAL_ONE and the loops above, and must not stand in a branch that only some threads take. */
#define PEAL_ONE(peal_tile_)  if ((void)(peal_tile_), 1)
#define PEAL_SYNC(peal_tile_) ((void)(peal_tile_))

/* This tile's part of a reduction, once a tile. Without a reader it and what leads to it vanish. */
#define PEAL_PARTIAL(peal_array_, peal_value_)                                                     \
    do {                                                                                           \
        if (peal_array_)                                                                           \
            *(peal_array_) = (peal_value_);                                                        \
    } while (0)

/* a * b + c rounded once. Nothing else is contracted, unless the spec says `fma: true`. */
#define PEAL_FMA(peal_a_, peal_b_, peal_c_)                                                        \
    _Generic((peal_a_) * (peal_b_) + (peal_c_), float                                              \
             : __builtin_fmaf, default                                                             \
             : __builtin_fma)((peal_a_), (peal_b_), (peal_c_))

#endif
