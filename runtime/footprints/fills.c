/* What shadows are filled with, and whether it is still there. */
#define _GNU_SOURCE
#include "runtime/footprints/internal.h"

#include <string.h>

static const uint64_t outside_f64[FILLS] = {[FILL_REAL] = UINT64_C(
                                                0xc0934a456d5cfaad), /* -1234.5678, in zones */
                                            [FILL_ZERO] = 0,         /* 0 */
                                            [FILL_NAN] = UINT64_C(0x7ff8000000000a11), /* NaN */
                                            [FILL_FINITE] =
                                                UINT64_C(0x40c81cd6e63a5c1c), /* 12345.678901 */
                                            [FILL_HIGH] = UINT64_C(0x7e37e43c8800759c), /* 1e300 */
                                            [FILL_LOW] = UINT64_C(0xfe37e43c8800759c)}; /* -1e300 */
static const uint32_t outside_f32[FILLS] = {0xc49a522b, 0,          0x7fc00a11,
                                            0x4640e6b7, 0x7e967699, 0xfe967699};
/* Finite, so that a point that the kernel leaves out keeps it, and one that it adds to doesn't. */
static const uint64_t old_f64[FILLS] = {[FILL_ZERO] = UINT64_C(0x3f50624dd2f1a9fc),
                                        [FILL_NAN] = UINT64_C(0x4092345678912345),
                                        [FILL_FINITE] = UINT64_C(0xc0f54321fedcba98),
                                        [FILL_HIGH] = UINT64_C(0x7e27e43c88007123),
                                        [FILL_LOW] = UINT64_C(0xfe27e43c88007321)};
static const uint32_t old_f32[FILLS] = {0,          0x3a83126f, 0x44912345,
                                        0xc7a54321, 0x7e167111, 0xfe167333};
/* Of integers: bytes, but for the ends of the range. */
static const unsigned char outside_byte[FILLS] = {0x2d, 0, 0x55, 0xaa, 0xff, 0};
static const unsigned char old_byte[FILLS] = {0, 0x11, 0x33, 0xcc, 0x7e, 0x81};
static const int32_t ends_i32[2] = {INT32_MAX, INT32_MIN};
static const int64_t ends_i64[2] = {INT64_MAX, INT64_MIN};
static const unsigned char ends_u8[2] = {0xff, 1};

/* The element as bytes. */
static void element_of(unsigned char value[8], peal_type type, fill f, bool old)
{
    int end = f == FILL_LOW;
    bool is_end = !old && (f == FILL_HIGH || f == FILL_LOW);
    memset(value, old ? old_byte[f] : outside_byte[f], 8);
    if (type == PEAL_F64)
        memcpy(value, old ? &old_f64[f] : &outside_f64[f], 8);
    else if (type == PEAL_F32)
        memcpy(value, old ? &old_f32[f] : &outside_f32[f], 4);
    else if (is_end && type == PEAL_I32)
        memcpy(value, &ends_i32[end], 4);
    else if (is_end && type == PEAL_I64)
        memcpy(value, &ends_i64[end], 8);
    else if (is_end)
        memset(value, ends_u8[end], 8);
}

/* By copies of twice the size each time. */
static void spread(unsigned char *memory, int64_t bytes, const unsigned char value[8],
                   size_t element)
{
    if (bytes < (int64_t)element)
        return;
    size_t all = (size_t)bytes / element * element, done = element;
    memcpy(memory, value, element);
    for (; done < all; done *= 2)
        memcpy(memory + done, memory, done < all - done ? done : all - done);
}

void fill_outside(unsigned char *memory, int64_t bytes, peal_type type, fill f)
{
    unsigned char value[8];
    element_of(value, type, f, false);
    spread(memory, bytes, value, peal_type_bytes(type));
}

void fill_old(unsigned char *memory, int64_t bytes, peal_type type, fill f)
{
    unsigned char value[8];
    element_of(value, type, f, true);
    spread(memory, bytes, value, peal_type_bytes(type));
}

bool is_old(const unsigned char *at, peal_type type, fill f)
{
    unsigned char value[8];
    element_of(value, type, f, true);
    return !memcmp(at, value, peal_type_bytes(type));
}

int64_t first_broken(const unsigned char *memory, int64_t bytes, peal_type type, fill f)
{
    unsigned char value[8];
    int64_t element = (int64_t)peal_type_bytes(type);
    bytes -= bytes % element;
    if (bytes <= 0)
        return -1;
    element_of(value, type, f, false);
    /* all are alike if each is like the one before */
    if (!memcmp(memory, value, (size_t)element) &&
        !memcmp(memory, memory + element, (size_t)(bytes - element)))
        return -1;
    for (int64_t at = 0; at < bytes; at += element)
        if (memcmp(memory + at, value, (size_t)element) != 0)
            return at;
    return -1;
}

/* AddressSanitizer would put other things of its own where a kernel's variables will lie. */
__attribute__((noinline, no_sanitize_address)) void fill_stack(void *owner)
{
    static const unsigned char bytes[] = {0x5a, 0x00, 0xff, 0xa7};
    unsigned char room[1 << 14];
    memset(room, bytes[((peal_footprints *)owner)->turn++ % sizeof(bytes)], sizeof(room));
    __asm__ volatile("" ::"r"(room) : "memory"); /* they are stored */
}
