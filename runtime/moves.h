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
    /* This and the next together - 1 moves run plane by plane: `run` copies one of the planes. */
    int together; /* at least 1 in the first of them */
    int64_t planes;
    int64_t to_plane, from_plane; /* bytes */
} peal_move;

/* Fills counts, steps and the function: extent points an axis, strides in elements, that of x is 1.
 */
void peal_move_prepare(peal_move *move, size_t element_bytes, const int64_t extent[PEAL_AXES],
                       const int64_t to_stride[PEAL_AXES], const int64_t from_stride[PEAL_AXES]);

/* Orders moves that may run in any order, so that those of one shape which touch the same cache
 * lines (the two ends of a row are neighbours in memory) run together. */
void peal_moves_arrange(peal_move *move, int count);

/* Runs them. slot counts for those with to_slot or from_slot. */
static inline void peal_moves_run(const peal_move *move, int count, int64_t slot)
{
    for (int i = 0; i < count; i += move[i].together)
        for (int64_t plane = 0; plane < move[i].planes; plane++)
            for (int k = i; k < i + move[i].together; k++) {
                const peal_move *m = &move[k];
                m->run(m, m->to + slot * m->to_slot + plane * m->to_plane,
                       m->from + slot * m->from_slot + plane * m->from_plane);
            }
}

#endif
