/* Moves: rows of one element, rows of a few words, and long rows each have their own loop. */
#include "runtime/moves.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { SHORT_ROW_BYTES = 512, LINE_BYTES = 64, NEAR_BYTES = 256 };

/* Half of a core's first-level cache: what is touched twice within it is fetched once. */
enum { NEAR_LINES = 16384 / LINE_BYTES };

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

/* Elements of `type` along the innermost axis, four at a time: the loads don't wait for the stores.
 */
#define FOR_ELEMENTS(type)                                                                         \
    for (int64_t k = 0; k < move->count[2]; k++)                                                   \
        for (int64_t j = 0; j < move->count[1]; j++) {                                             \
            unsigned char *t = to + k * move->to_step[2] + j * move->to_step[1];                   \
            const unsigned char *f = from + k * move->from_step[2] + j * move->from_step[1];       \
            const int64_t ts = move->to_step[0], fs = move->from_step[0];                          \
            int64_t i = 0;                                                                         \
            for (; i + 4 <= move->count[0]; i += 4) {                                              \
                type a, b, c, d;                                                                   \
                memcpy(&a, f, sizeof(type));                                                       \
                memcpy(&b, f + fs, sizeof(type));                                                  \
                memcpy(&c, f + 2 * fs, sizeof(type));                                              \
                memcpy(&d, f + 3 * fs, sizeof(type));                                              \
                memcpy(t, &a, sizeof(type));                                                       \
                memcpy(t + ts, &b, sizeof(type));                                                  \
                memcpy(t + 2 * ts, &c, sizeof(type));                                              \
                memcpy(t + 3 * ts, &d, sizeof(type));                                              \
                f += 4 * fs;                                                                       \
                t += 4 * ts;                                                                       \
            }                                                                                      \
            for (; i < move->count[0]; i++, f += fs, t += ts)                                      \
                memcpy(t, f, sizeof(type));                                                        \
        }

static void move_words(const peal_move *move, unsigned char *to, const unsigned char *from)
{
    FOR_ELEMENTS(uint64_t)
}

static void move_halves(const peal_move *move, unsigned char *to, const unsigned char *from)
{
    FOR_ELEMENTS(uint32_t)
}

static void move_bytes(const peal_move *move, unsigned char *to, const unsigned char *from)
{
    FOR_ROWS(*t = *f)
}

static void move_short_rows(const peal_move *move, unsigned char *to, const unsigned char *from)
{
    int64_t bytes = move->bytes, whole = bytes & ~INT64_C(31); /* a multiple of 8 */
    FOR_ROWS({
        int64_t b = 0;
        for (; b < whole; b += 32)
            memcpy(t + b, f + b, 32);
        for (; b < bytes; b += 8)
            memcpy(t + b, f + b, 8);
    })
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
    move->together = 1;
    move->planes = 1;
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

static bool same_shape(const peal_move *a, const peal_move *b)
{
    return a->bytes == b->bytes && a->run == b->run &&
           !memcmp(a->count, b->count, sizeof(a->count)) &&
           !memcmp(a->to_step, b->to_step, sizeof(a->to_step)) &&
           !memcmp(a->from_step, b->from_step, sizeof(a->from_step));
}

static int64_t distance(const unsigned char *a, const unsigned char *b)
{
    int64_t d = (int64_t)((intptr_t)a - (intptr_t)b);
    return d < 0 ? -d : d;
}

/* Rows of one are neighbours of rows of the other, at one row's offset. */
static bool is_near(const unsigned char *a, const unsigned char *b, int64_t row)
{
    int64_t d = distance(a, b);
    return d <= NEAR_BYTES || (row > 0 && distance(a + row, b) <= NEAR_BYTES) ||
           (row > 0 && distance(a, b + row) <= NEAR_BYTES);
}

static bool belong_together(const peal_move *a, const peal_move *b)
{
    if (!same_shape(a, b) || a->bytes > LINE_BYTES)
        return false;
    return is_near(a->from, b->from, a->from_step[0]) || is_near(a->to, b->to, a->to_step[0]);
}

/* The outermost axis becomes the planes. */
static void split_planes(peal_move *move)
{
    int axis = 2;
    while (axis > 0 && move->count[axis] == 1)
        axis--;
    move->planes = move->count[axis];
    move->to_plane = move->to_step[axis];
    move->from_plane = move->from_step[axis];
    move->count[axis] = 1;
}

void peal_moves_arrange(peal_move *move, int count)
{
    for (int i = 0; i < count; i += move[i].together) {
        int64_t rows = move[i].count[0] * move[i].count[1] * move[i].count[2];
        bool has_planes = move[i].count[1] > 1 || move[i].count[2] > 1;
        if (rows <= NEAR_LINES || !has_planes)
            continue; /* small enough to be in the cache anyway */
        int end = i + 1;
        for (int k = end; k < count; k++)
            if (belong_together(&move[i], &move[k])) {
                peal_move found = move[k];
                move[k] = move[end];
                move[end++] = found;
            }
        if (end == i + 1)
            continue;
        move[i].together = end - i;
        for (int k = i; k < end; k++)
            split_planes(&move[k]);
    }
}
