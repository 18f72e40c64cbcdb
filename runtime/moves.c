/* Moves: rows of one element, rows of a few words, and long rows each have their own loop. */
#include "runtime/moves.h"

#include <assert.h>
#include <string.h>

enum { SHORT_ROW_BYTES = 256 };

/* The loops over the outer axes, around ROW with `t` and `f` at the row's first bytes. */
#define FOR_ROWS(ROW)                                                                              \
    for (int64_t k = 0; k < move->count[2]; k++) {                                                 \
        unsigned char *to_plane = to + k * move->to_step[2];                                       \
        const unsigned char *from_plane = from + k * move->from_step[2];                           \
        for (int64_t j = 0; j < move->count[1]; j++) {                                             \
            unsigned char *t = to_plane + j * move->to_step[1];                                    \
            const unsigned char *f = from_plane + j * move->from_step[1];                          \
            for (int64_t i = 0; i < move->count[0]; i++) {                                         \
                ROW;                                                                               \
                t += move->to_step[0];                                                             \
                f += move->from_step[0];                                                           \
            }                                                                                      \
        }                                                                                          \
    }

static void move_words(const peal_move *move, unsigned char *to, const unsigned char *from)
{
    FOR_ROWS(memcpy(t, f, 8))
}

static void move_halves(const peal_move *move, unsigned char *to, const unsigned char *from)
{
    FOR_ROWS(memcpy(t, f, 4))
}

static void move_bytes(const peal_move *move, unsigned char *to, const unsigned char *from)
{
    FOR_ROWS(*t = *f)
}

static void move_short_rows(const peal_move *move, unsigned char *to, const unsigned char *from)
{
    int64_t bytes = move->bytes; /* a multiple of 8 */
    FOR_ROWS(for (int64_t b = 0; b < bytes; b += 8) memcpy(t + b, f + b, 8))
}

static void move_rows(const peal_move *move, unsigned char *to, const unsigned char *from)
{
    FOR_ROWS(memcpy(t, f, (size_t)move->bytes))
}

static void move_nothing(const peal_move *move, unsigned char *to, const unsigned char *from)
{
    (void)move;
    (void)to;
    (void)from;
}

static void choose_function(peal_move *move)
{
    if (move->bytes == 8)
        move->run = move_words;
    else if (move->bytes == 4)
        move->run = move_halves;
    else if (move->bytes == 1)
        move->run = move_bytes;
    else if (move->bytes % 8 == 0 && move->bytes <= SHORT_ROW_BYTES)
        move->run = move_short_rows;
    else
        move->run = move_rows;
}

void peal_move_prepare(peal_move *move, size_t element_bytes, const int64_t extent[PEAL_AXES],
                       const int64_t to_stride[PEAL_AXES], const int64_t from_stride[PEAL_AXES])
{
    int axes = 0;
    int64_t element = (int64_t)element_bytes;
    move->bytes = element;
    for (int i = 0; i < 3; i++) {
        move->count[i] = 1;
        move->to_step[i] = move->from_step[i] = 0;
    }
    for (int k = 0; k < PEAL_AXES; k++)
        if (extent[k] <= 0) {
            move->run = move_nothing;
            return;
        }
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t to_step = to_stride[k] * element, from_step = from_stride[k] * element;
        if (extent[k] == 1)
            continue;
        if (axes == 0 && to_step == move->bytes && from_step == move->bytes) {
            move->bytes *= extent[k]; /* contiguous on both sides */
            continue;
        }
        /* two axes that are one on both sides run as one loop */
        if (axes > 0 && to_step == move->to_step[axes - 1] * move->count[axes - 1] &&
            from_step == move->from_step[axes - 1] * move->count[axes - 1]) {
            move->count[axes - 1] *= extent[k];
            continue;
        }
        assert(axes < 3); /* x is contiguous on both sides, so it became the row */
        move->count[axes] = extent[k];
        move->to_step[axes] = to_step;
        move->from_step[axes] = from_step;
        axes++;
    }
    choose_function(move);
}
