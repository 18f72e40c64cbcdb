/* Moves: copies of boxes between strided arrays with everything worked out beforehand, for paths
 * where a hundred nanoseconds count. */
#ifndef PEAL_RUNTIME_MOVES_H
#define PEAL_RUNTIME_MOVES_H

#include <peal/types.h>

/* Rows of `bytes` contiguous bytes, count[0] * count[1] * count[2] of them. */
typedef struct peal_move {
    unsigned char *to;
    const unsigned char *from;
    int64_t bytes;
    int64_t count[3];
    int64_t to_step[3], from_step[3]; /* bytes */
    int64_t to_slot, from_slot;       /* added to the addresses for each slot */
    void (*run)(const struct peal_move *move, unsigned char *to, const unsigned char *from);
} peal_move;

/* Fills counts, steps and the function: extent points an axis, strides in elements, that
 * of x is 1. */
void peal_move_prepare(peal_move *move, size_t element_bytes, const int64_t extent[PEAL_AXES],
                       const int64_t to_stride[PEAL_AXES], const int64_t from_stride[PEAL_AXES]);

static inline void peal_move_run(const peal_move *move, int64_t slot)
{
    move->run(move, move->to + slot * move->to_slot, move->from + slot * move->from_slot);
}

#endif
