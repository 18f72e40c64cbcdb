/* Values that are not numbers, in rows of memory. */
#include "runtime/watch/watch.h"

#include <string.h>

peal_watched peal_watched_named(const char *name)
{
    return !name                  ? PEAL_WATCH_NOTHING
           : !strcmp(name, "nan") ? PEAL_WATCH_NAN
           : !strcmp(name, "inf") ? PEAL_WATCH_INFINITE
                                  : PEAL_WATCH_NOTHING;
}

static int64_t find_f64(uint64_t above, const unsigned char *row, int64_t count)
{
    uint64_t any = 0, bits;
    for (int64_t i = 0; i < count; i++) {
        memcpy(&bits, row + i * 8, sizeof(bits));
        any |= (bits & INT64_MAX) > above;
    }
    for (int64_t i = 0; any && i < count; i++) {
        memcpy(&bits, row + i * 8, sizeof(bits));
        if ((bits & INT64_MAX) > above)
            return i;
    }
    return -1;
}

static int64_t find_f32(uint32_t above, const unsigned char *row, int64_t count)
{
    uint32_t any = 0, bits;
    for (int64_t i = 0; i < count; i++) {
        memcpy(&bits, row + i * 4, sizeof(bits));
        any |= (bits & INT32_MAX) > above;
    }
    for (int64_t i = 0; any && i < count; i++) {
        memcpy(&bits, row + i * 4, sizeof(bits));
        if ((bits & INT32_MAX) > above)
            return i;
    }
    return -1;
}

/* Without its sign, a NaN is above infinity, and that above all other numbers. */
int64_t peal_watch_find(peal_watched what, peal_type type, const unsigned char *row, int64_t bytes)
{
    static const uint64_t f64_infinity = UINT64_C(0x7ff) << 52;
    static const uint32_t f32_infinity = UINT32_C(0xff) << 23;
    unsigned less = what == PEAL_WATCH_INFINITE;
    if (what && type == PEAL_F64)
        return find_f64(f64_infinity - less, row, bytes / 8);
    if (what && type == PEAL_F32)
        return find_f32(f32_infinity - less, row, bytes / 4);
    return -1;
}
