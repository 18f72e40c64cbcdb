/* Checked 64-bit arithmetic: every product of extents goes through these. True: overflow. */
#ifndef PEAL_BASE_CHECKED_H
#define PEAL_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool peal_add_overflows(int64_t a, int64_t b, int64_t *out)
{
    return __builtin_add_overflow(a, b, out);
}

static inline bool peal_multiply_overflows(int64_t a, int64_t b, int64_t *out)
{
    return __builtin_mul_overflow(a, b, out);
}

/* The greatest common divisor; 0 if both are 0. */
static inline int64_t peal_greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* Rounded down; b > 0. */
static inline int64_t peal_floor_divide(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b < 0);
}

/* Rounded up; b > 0. */
static inline int64_t peal_ceil_divide(int64_t a, int64_t b)
{
    return -peal_floor_divide(-a, b);
}

#endif
