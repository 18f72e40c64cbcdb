/* The functions of which generated expressions are made. The text is both C and CUDA C++, so that
 * tests run it on the host. It computes what base/expression.c does: integers of 64 bits whose
 * overflow is an error, `/` that rounds down, `%` that is never negative, IEEE reals. Where
 * base/expression.c reports an error, *bad is set. */
#ifndef PEAL_DEVICE_EXPRESSION_H
#define PEAL_DEVICE_EXPRESSION_H

#ifndef PEAL_INLINE_
#define PEAL_INLINE_ static __device__ __forceinline__
#endif

typedef long long peal_integer_;
typedef unsigned long long peal_bits_;

#define PEAL_LOWEST_ (-9223372036854775807LL - 1)

PEAL_INLINE_ peal_integer_ peal_integer_add_(peal_integer_ a, peal_integer_ b, int *bad)
{
    peal_integer_ sum = (peal_integer_)((peal_bits_)a + (peal_bits_)b);
    *bad |= ((a ^ sum) & (b ^ sum)) < 0;
    return sum;
}

PEAL_INLINE_ peal_integer_ peal_integer_subtract_(peal_integer_ a, peal_integer_ b, int *bad)
{
    peal_integer_ difference = (peal_integer_)((peal_bits_)a - (peal_bits_)b);
    *bad |= ((a ^ b) & (a ^ difference)) < 0;
    return difference;
}

/* A product of magnitudes below 2^31 cannot overflow; else dividing it shows whether it did. */
PEAL_INLINE_ peal_integer_ peal_integer_multiply_(peal_integer_ a, peal_integer_ b, int *bad)
{
    peal_integer_ product = (peal_integer_)((peal_bits_)a * (peal_bits_)b);
    if (a == (int)a && b == (int)b)
        return product;
    if ((a == -1 && b == PEAL_LOWEST_) || (b == -1 && a == PEAL_LOWEST_))
        *bad = 1;
    else if (a != 0 && a != -1 && product / a != b)
        *bad = 1;
    return product;
}

PEAL_INLINE_ peal_integer_ peal_integer_divide_(peal_integer_ a, peal_integer_ b, int *bad)
{
    if (b == 0 || (b == -1 && a == PEAL_LOWEST_)) {
        *bad = 1;
        return 0;
    }
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

PEAL_INLINE_ peal_integer_ peal_integer_modulo_(peal_integer_ a, peal_integer_ b, int *bad)
{
    if (b == 0)
        *bad = 1;
    if (b == 0 || b == -1)
        return 0;
    peal_integer_ remainder = a % b;
    return remainder >= 0 ? remainder : b < 0 ? remainder - b : remainder + b;
}

PEAL_INLINE_ peal_integer_ peal_integer_negate_(peal_integer_ a, int *bad)
{
    return peal_integer_subtract_(0, a, bad);
}

PEAL_INLINE_ peal_integer_ peal_integer_absolute_(peal_integer_ a, int *bad)
{
    return a < 0 ? peal_integer_negate_(a, bad) : a;
}

PEAL_INLINE_ peal_integer_ peal_integer_minimum_(peal_integer_ a, peal_integer_ b)
{
    return b < a ? b : a;
}

PEAL_INLINE_ peal_integer_ peal_integer_maximum_(peal_integer_ a, peal_integer_ b)
{
    return b > a ? b : a;
}

PEAL_INLINE_ double peal_real_minimum_(double a, double b)
{
    return b != b || b < a ? b : a;
}

PEAL_INLINE_ double peal_real_maximum_(double a, double b)
{
    return b != b || b > a ? b : a;
}

PEAL_INLINE_ double peal_real_modulo_(double a, double b)
{
    double remainder = fmod(a, b);
    return remainder < 0 ? remainder + fabs(b) : remainder;
}

/* The nearest integers below and above. */
PEAL_INLINE_ peal_integer_ peal_real_integer_(double rounded, int *bad)
{
    const double limit = 9223372036854775808.0;
    if (!(rounded >= -limit && rounded < limit)) {
        *bad = 1;
        return 0;
    }
    return (peal_integer_)rounded;
}

/* A subexpression that has no value: an error only if it is evaluated. */
PEAL_INLINE_ int peal_no_value_(int *bad)
{
    *bad = 1;
    return 0;
}

/* The real with these bits, for infinities and NaN, which have no literal. */
PEAL_INLINE_ double peal_real_of_(peal_bits_ bits)
{
    union {
        peal_bits_ bits;
        double real;
    } both;
    both.bits = bits;
    return both.real;
}

PEAL_INLINE_ peal_integer_ peal_counter_(const peal_launch *launch, int depth)
{
    peal_integer_ counter = launch->counter[depth];
    if (depth == 0 && launch->step)
        counter += *(const peal_integer_ *)launch->step;
    return counter;
}

#endif
