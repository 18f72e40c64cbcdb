/* The pieces of a copy: strided boxes in the form that the device and the copy engine take. */
#ifndef PEAL_CUDA_PIECES_H
#define PEAL_CUDA_PIECES_H

#include "backends/cuda/lower/plan.h"

/* The most units of a piece. The device numbers units with 32 bits, and its last number may be a
 * few beyond the end. */
#define PEAL_CUDA_PIECE_UNITS (INT64_C(1) << 30)

/* A box to copy: contiguous runs along up to three axes, whose steps are in bytes. */
typedef struct peal_cuda_copied_box {
    int64_t run; /* bytes */
    int count;   /* axes of more than one run */
    int64_t extent[PEAL_AXES], source[PEAL_AXES], target[PEAL_AXES];
    int64_t source_offset, target_offset;
    int64_t alignment;            /* the bases are multiples of its lowest bit */
    int source_base, target_base; /* of the pieces */
    int counted;    /* bytes of the integer that says how many elements are copied; 0: all are */
    int count_base; /* where that integer lies: base... */
    int64_t count_offset; /* ... and bytes from there */
} peal_cuda_copied_box;

/* Sets run, count, extent and steps of *out from a box of `extent` points with the strides of both
 * sides, in elements of `element` bytes. Axes of one point are dropped; neighbouring axes that are
 * contiguous on both sides are merged. Offsets and bases are not set. */
void peal_cuda_box_normalise(const int64_t *extent, const int64_t *source, const int64_t *target,
                             int64_t element, peal_cuda_copied_box *out);

/* Cuts a box into pieces of at most `most` units (most >= 64). Returns how many there are. out
 * NULL: only counts them. */
int peal_cuda_box_cut_up(const peal_cuda_copied_box *box, int64_t most, peal_device_piece *out);

#endif
