/* Copies of boxes between strided arrays.
 *
 * Axes of one point vanish and axes that continue each other are merged, so that a face becomes one
 * memcpy, a loop over rows, or a loop over single elements. Faces are small: the loops are chosen
 * once, at preparation, by the size of a run. */
#include "backends/host/copy.h"

#include <string.h>

static void copy_nothing(const host_copy *copy, unsigned char *target, const unsigned char *source)
{
    (void)copy;
    (void)target;
    (void)source;
}

static void copy_block(const host_copy *copy, unsigned char *target, const unsigned char *source)
{
    memcpy(target, source, (size_t)copy->bytes);
}

/* One copy loop for runs of a size that the compiler knows. */
#define COPY_LOOP(name, size)                                                                      \
    static void name(const host_copy *copy, unsigned char *target, const unsigned char *source)    \
    {                                                                                              \
        const int64_t n = copy->count[0], to = copy->target_step[0], from = copy->source_step[0];  \
        for (int64_t k = 0; k < copy->count[2]; k++)                                               \
            for (int64_t j = 0; j < copy->count[1]; j++) {                                         \
                unsigned char *t = target + j * copy->target_step[1] + k * copy->target_step[2];   \
                const unsigned char *s =                                                           \
                    source + j * copy->source_step[1] + k * copy->source_step[2];                  \
                _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++, t += to, s += from)        \
                    memcpy(t, s, (size_t)(size));                                                  \
            }                                                                                      \
    }

COPY_LOOP(copy_rows_1, 1)
COPY_LOOP(copy_rows_4, 4)
COPY_LOOP(copy_rows_8, 8)
COPY_LOOP(copy_rows_16, 16)
COPY_LOOP(copy_rows_24, 24)
COPY_LOOP(copy_rows_32, 32)
COPY_LOOP(copy_rows_64, 64)
COPY_LOOP(copy_rows_any, copy->bytes)

static inline void copy_words(unsigned char *t, const unsigned char *s, int64_t bytes)
{
    int64_t at = 0;
    for (; at + 32 <= bytes; at += 32)
        memcpy(t + at, s + at, 32);
    for (; at < bytes; at += 8)
        memcpy(t + at, s + at, 8);
}

/* Rows of a few words: shorter than a call of memcpy. */
static void copy_rows_words(const host_copy *copy, unsigned char *target,
                            const unsigned char *source)
{
    const int64_t n = copy->count[0], to = copy->target_step[0], from = copy->source_step[0];
    const int64_t bytes = copy->bytes;
    for (int64_t k = 0; k < copy->count[2]; k++)
        for (int64_t j = 0; j < copy->count[1]; j++) {
            unsigned char *t = target + j * copy->target_step[1] + k * copy->target_step[2];
            const unsigned char *s = source + j * copy->source_step[1] + k * copy->source_step[2];
            for (int64_t i = 0; i < n; i++, t += to, s += from)
                copy_words(t, s, bytes);
        }
}

static void copy_one_4(const host_copy *copy, unsigned char *target, const unsigned char *source)
{
    (void)copy;
    memcpy(target, source, 4);
}

static void copy_one_8(const host_copy *copy, unsigned char *target, const unsigned char *source)
{
    (void)copy;
    memcpy(target, source, 8);
}

static void copy_one_words(const host_copy *copy, unsigned char *target,
                           const unsigned char *source)
{
    copy_words(target, source, copy->bytes);
}

static void choose(host_copy *copy)
{
    static const struct {
        int64_t bytes;
        void (*run)(const host_copy *copy, unsigned char *target, const unsigned char *source);
    } sizes[] = {{1, copy_rows_1},   {4, copy_rows_4},   {8, copy_rows_8},  {16, copy_rows_16},
                 {24, copy_rows_24}, {32, copy_rows_32}, {64, copy_rows_64}};

    copy->run = copy_rows_any;
    if (copy->bytes % 8 == 0 && copy->bytes <= 256)
        copy->run = copy_rows_words;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (sizes[i].bytes == copy->bytes)
            copy->run = sizes[i].run;
    if (copy->count[0] * copy->count[1] * copy->count[2] != 1)
        return;
    if (copy->bytes == 4 || copy->bytes == 8)
        copy->run = copy->bytes == 4 ? copy_one_4 : copy_one_8;
    else
        copy->run = copy->run == copy_rows_words ? copy_one_words : copy_block;
}

void host_copy_prepare(host_copy *copy, size_t element_bytes, const int64_t extent[PEAL_AXES],
                       const int64_t source_stride[PEAL_AXES],
                       const int64_t target_stride[PEAL_AXES])
{
    int64_t count[PEAL_AXES], from[PEAL_AXES], to[PEAL_AXES];
    int axes = 0;

    *copy = (host_copy){.bytes = (int64_t)element_bytes, .count = {1, 1, 1}, .run = copy_nothing};
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
