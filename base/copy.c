/* Copies of boxes between strided arrays.
 *
 * Axes of one point vanish and axes that continue each other are merged, so that a face becomes one
 * memcpy, a loop over rows, or a loop over single elements. Faces are small: the loops are chosen
 * once, at preparation, by the size of a run. */
#include "base/copy.h"

#include <stdlib.h>
#include <string.h>

static void copy_nothing(const peal_copy *copy, unsigned char *target, const unsigned char *source)
{
    (void)copy;
    (void)target;
    (void)source;
}

static void copy_block(const peal_copy *copy, unsigned char *target, const unsigned char *source)
{
    memcpy(target, source, (size_t)copy->bytes);
}

/* Lines along the innermost axis. */

/* Single elements with a stride at either end, as the faces across x are: four loads, then four
 * stores, so that the loads do not wait for each other. */
#define COPY_ELEMENTS(name, type)                                                                  \
    static inline void name(unsigned char *t, const unsigned char *s, int64_t n, int64_t to,       \
                            int64_t from, int64_t bytes)                                           \
    {                                                                                              \
        (void)bytes;                                                                               \
        for (; n >= 4; n -= 4, t += 4 * to, s += 4 * from) {                                       \
            type v0, v1, v2, v3;                                                                   \
            memcpy(&v0, s, sizeof(v0));                                                            \
            memcpy(&v1, s + from, sizeof(v1));                                                     \
            memcpy(&v2, s + 2 * from, sizeof(v2));                                                 \
            memcpy(&v3, s + 3 * from, sizeof(v3));                                                 \
            memcpy(t, &v0, sizeof(v0));                                                            \
            memcpy(t + to, &v1, sizeof(v1));                                                       \
            memcpy(t + 2 * to, &v2, sizeof(v2));                                                   \
            memcpy(t + 3 * to, &v3, sizeof(v3));                                                   \
        }                                                                                          \
        for (; n > 0; n--, t += to, s += from)                                                     \
            memcpy(t, s, sizeof(type));                                                            \
    }

COPY_ELEMENTS(line_1, uint8_t)
COPY_ELEMENTS(line_4, uint32_t)
COPY_ELEMENTS(line_8, uint64_t)

static inline void copy_words(unsigned char *t, const unsigned char *s, int64_t bytes)
{
    int64_t at = 0;
    for (; at + 32 <= bytes; at += 32)
        memcpy(t + at, s + at, 32);
    for (; at < bytes; at += 8)
        memcpy(t + at, s + at, 8);
}

/* Rows of a few words: shorter than a call of memcpy. */
static inline void line_words(unsigned char *t, const unsigned char *s, int64_t n, int64_t to,
                              int64_t from, int64_t bytes)
{
    for (; n > 0; n--, t += to, s += from)
        copy_words(t, s, bytes);
}

static inline void line_any(unsigned char *t, const unsigned char *s, int64_t n, int64_t to,
                            int64_t from, int64_t bytes)
{
    for (; n > 0; n--, t += to, s += from)
        memcpy(t, s, (size_t)bytes);
}

/* The loops around a line. All that they need is in locals: what is stored could be anything, so
 * the compiler would read the members again for each row. */
#define COPY_LOOPS(name, line)                                                                     \
    static void name(const peal_copy *copy, unsigned char *target, const unsigned char *source)    \
    {                                                                                              \
        const int64_t n = copy->count[0], rows = copy->count[1], planes = copy->count[2];          \
        const int64_t to = copy->target_step[0], to_row = copy->target_step[1];                    \
        const int64_t from = copy->source_step[0], from_row = copy->source_step[1];                \
        const int64_t bytes = copy->bytes;                                                         \
        for (int64_t k = 0; k < planes; k++) {                                                     \
            unsigned char *t = target + k * copy->target_step[2];                                  \
            const unsigned char *s = source + k * copy->source_step[2];                            \
            for (int64_t j = rows; j > 0; j--, t += to_row, s += from_row)                         \
                line(t, s, n, to, from, bytes);                                                    \
        }                                                                                          \
    }

COPY_LOOPS(copy_rows_1, line_1)
COPY_LOOPS(copy_rows_4, line_4)
COPY_LOOPS(copy_rows_8, line_8)
COPY_LOOPS(copy_rows_words, line_words)
COPY_LOOPS(copy_rows_any, line_any)

static void copy_one_4(const peal_copy *copy, unsigned char *target, const unsigned char *source)
{
    (void)copy;
    memcpy(target, source, 4);
}

static void copy_one_8(const peal_copy *copy, unsigned char *target, const unsigned char *source)
{
    (void)copy;
    memcpy(target, source, 8);
}

static void copy_one_words(const peal_copy *copy, unsigned char *target,
                           const unsigned char *source)
{
    copy_words(target, source, copy->bytes);
}

/* Two elements a step, four steps at a time. */
#define COPY_PAIRS(name, type)                                                                     \
    static inline void name(unsigned char *t, const unsigned char *s, int64_t n, int64_t to,       \
                            int64_t from, int64_t to_twin, int64_t from_twin)                      \
    {                                                                                              \
        for (; n >= 4; n -= 4, t += 4 * to, s += 4 * from) {                                       \
            type v[4], w[4];                                                                       \
            for (int i = 0; i < 4; i++) {                                                          \
                memcpy(&v[i], s + i * from, sizeof(type));                                         \
                memcpy(&w[i], s + i * from + from_twin, sizeof(type));                             \
            }                                                                                      \
            for (int i = 0; i < 4; i++) {                                                          \
                memcpy(t + i * to, &v[i], sizeof(type));                                           \
                memcpy(t + i * to + to_twin, &w[i], sizeof(type));                                 \
            }                                                                                      \
        }                                                                                          \
        for (; n > 0; n--, t += to, s += from) {                                                   \
            memcpy(t, s, sizeof(type));                                                            \
            memcpy(t + to_twin, s + from_twin, sizeof(type));                                      \
        }                                                                                          \
    }                                                                                              \
    static void copy_##name(const peal_copy *copy, unsigned char *target,                          \
                            const unsigned char *source)                                           \
    {                                                                                              \
        const int64_t n = copy->count[0], rows = copy->count[1], planes = copy->count[2];          \
        const int64_t to = copy->target_step[0], to_row = copy->target_step[1];                    \
        const int64_t from = copy->source_step[0], from_row = copy->source_step[1];                \
        const int64_t to_twin = copy->target_twin, from_twin = copy->source_twin;                  \
        for (int64_t k = 0; k < planes; k++) {                                                     \
            unsigned char *t = target + k * copy->target_step[2];                                  \
            const unsigned char *s = source + k * copy->source_step[2];                            \
            for (int64_t j = rows; j > 0; j--, t += to_row, s += from_row)                         \
                name(t, s, n, to, from, to_twin, from_twin);                                       \
        }                                                                                          \
    }

COPY_PAIRS(pairs_4, uint32_t)
COPY_PAIRS(pairs_8, uint64_t)

static void choose(peal_copy *copy)
{
    copy->run = copy_rows_any;
    if (copy->bytes == 1)
        copy->run = copy_rows_1;
    else if (copy->bytes == 4)
        copy->run = copy_rows_4;
    else if (copy->bytes == 8)
        copy->run = copy_rows_8;
    else if (copy->bytes % 8 == 0 && copy->bytes <= 256)
        copy->run = copy_rows_words;
    if (copy->count[0] * copy->count[1] * copy->count[2] != 1)
        return;
    if (copy->bytes == 4 || copy->bytes == 8)
        copy->run = copy->bytes == 4 ? copy_one_4 : copy_one_8;
    else
        copy->run = copy->run == copy_rows_words ? copy_one_words : copy_block;
}

void peal_copy_prepare(peal_copy *copy, size_t element_bytes, const int64_t extent[PEAL_AXES],
                       const int64_t source_stride[PEAL_AXES],
                       const int64_t target_stride[PEAL_AXES])
{
    int64_t count[PEAL_AXES], from[PEAL_AXES], to[PEAL_AXES];
    int axes = 0;

    *copy = (peal_copy){.bytes = (int64_t)element_bytes, .count = {1, 1, 1}, .run = copy_nothing};
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t source_step = source_stride[k] * (int64_t)element_bytes;
        int64_t target_step = target_stride[k] * (int64_t)element_bytes;
        if (extent[k] <= 0)
            return;
        if (extent[k] == 1)
            continue;
        if (axes == 0 && source_step == copy->bytes && target_step == copy->bytes) {
            copy->bytes *= extent[k];
        } else if (axes > 0 && source_step == from[axes - 1] * count[axes - 1] &&
                   target_step == to[axes - 1] * count[axes - 1]) {
            count[axes - 1] *= extent[k];
        } else {
            count[axes] = extent[k];
            from[axes] = source_step;
            to[axes++] = target_step;
        }
    }
    /* Four axes that neither vanish nor merge would need a fourth loop: x is contiguous in every
     * layout, so it is part of the run unless its extent is 1. */
    for (int k = 0; k < axes && k < 3; k++) {
        copy->count[k] = count[k];
        copy->source_step[k] = from[k];
        copy->target_step[k] = to[k];
    }
    choose(copy);
}

static bool is_near(int64_t distance, int64_t row)
{
    enum { NEAR = 256 };
    return llabs(distance) <= NEAR || llabs(distance - row) <= NEAR ||
           llabs(distance + row) <= NEAR;
}

bool peal_copy_is_twin(const peal_copy *a, const peal_copy *b, int64_t source_twin,
                       int64_t target_twin)
{
    return a->bytes == b->bytes && a->run == b->run &&
           !memcmp(a->count, b->count, sizeof(a->count)) &&
           !memcmp(a->source_step, b->source_step, sizeof(a->source_step)) &&
           !memcmp(a->target_step, b->target_step, sizeof(a->target_step)) &&
           (is_near(source_twin, a->source_step[0]) || is_near(target_twin, a->target_step[0]));
}

bool peal_copy_pair(peal_copy *copy, int64_t source_twin, int64_t target_twin)
{
    if (copy->run == copy_nothing || (copy->bytes != 4 && copy->bytes != 8))
        return false;
    copy->source_twin = source_twin;
    copy->target_twin = target_twin;
    copy->run = copy->bytes == 4 ? copy_pairs_4 : copy_pairs_8;
    return true;
}
