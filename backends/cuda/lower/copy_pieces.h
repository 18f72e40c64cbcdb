/* The pieces that copies consist of. */
#ifndef PEAL_CUDA_PIECES_H
#define PEAL_CUDA_PIECES_H

#include "backends/cuda/lower/plan.h"

/* Most units of a piece: the device numbers them with 32 bits, and goes past the end by some. */
#define PEAL_CUDA_PIECE_UNITS (INT64_C(1) << 30)

/* A box to copy: contiguous runs along up to three axes, whose steps are in bytes. */
typedef struct peal_cuda_copied_box {
    int64_t run; /* bytes */
    int count;   /* axes of more than one run */
    int64_t extent[PEAL_AXES], source[PEAL_AXES], target[PEAL_AXES];
    int64_t source_offset, target_offset;
    int64_t alignment;            /* the bases are multiples of its lowest bit */
    int source_base, target_base; /* of the pieces */
    int counted;                  /* bytes of the integer that says how many elements; 0: all */
    int count_base;
    int64_t count_offset;
} peal_cuda_copied_box;

/* Axes of more than one point; neighbours that are contiguous on both sides become one. Strides are
 * in elements of `element` bytes. Leaves the offsets alone. */
void peal_cuda_box_normalise(const int64_t *extent, const int64_t *source, const int64_t *target,
                             int64_t element, peal_cuda_copied_box *out);

/* Pieces of at most `most` units (64 or more) that make the box. Returns how many; out NULL: only
 * counts. */
int peal_cuda_box_cut_up(const peal_cuda_copied_box *box, int64_t most, peal_device_piece *out);

#endif
