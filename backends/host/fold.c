/* Folds along fixed trees.
 *
 * The split at the largest power of two makes every left part a perfect tree, whose depth is known.
 * So the recursion is as deep as the logarithm of the count. */
#include "backends/host/fold.h"

#include <math.h>
#include <string.h>

static int64_t left_part(int64_t count)
{
    int64_t half = 1;
    while (half * 2 < count)
        half *= 2;
    return half;
}

/* Sum, min and max of one type. NaN is what differs from itself; integers never do. */
#define DEFINE_FOLD(name, type, wide, lowest, highest)                                             \
    static type name##_join(peal_combine combine, type a, type b)                                  \
    {                                                                                              \
        if (combine == PEAL_SUM)                                                                   \
            return (type)((wide)a + (wide)b);                                                      \
        if (a != a || b != b)                                                                      \
            return a != a ? a : b;                                                                 \
        if (combine == PEAL_MIN)                                                                   \
            return b < a ? b : a;                                                                  \
        return b > a ? b : a;                                                                      \
    }                                                                                              \
    static type name##_tree(peal_combine combine, const type *element, int64_t count,              \
                            int64_t stride)                                                        \
    {                                                                                              \
        if (count == 1)                                                                            \
            return element[0];                                                                     \
        int64_t left = left_part(count);                                                           \
        return name##_join(combine, name##_tree(combine, element, left, stride),                   \
                           name##_tree(combine, element + left * stride, count - left, stride));   \
    }                                                                                              \
    static void name(peal_combine combine, const void *element, int64_t count, int64_t stride,     \
                     void *out)                                                                    \
    {                                                                                              \
        type value = combine == PEAL_SUM                                                           \
                         ? (type)0                                                                 \
                         : (combine == PEAL_MIN ? (type)(highest) : (type)(lowest));               \
        if (count > 0)                                                                             \
            value = name##_tree(combine, element, count, stride);                                  \
        memcpy(out, &value, sizeof(value));                                                        \
    }

DEFINE_FOLD(fold_f64, double, double, -INFINITY, INFINITY)
DEFINE_FOLD(fold_f32, float, float, -INFINITY, INFINITY)
DEFINE_FOLD(fold_i32, int32_t, uint32_t, INT32_MIN, INT32_MAX)
DEFINE_FOLD(fold_i64, int64_t, uint64_t, INT64_MIN, INT64_MAX)
DEFINE_FOLD(fold_u8, uint8_t, uint32_t, 0, UINT8_MAX)

void host_fold(peal_type type, peal_combine combine, const void *element, int64_t count,
               int64_t stride, void *out)
{
    static void (*const folds[PEAL_TYPE_COUNT])(peal_combine, const void *, int64_t, int64_t,
                                                void *) = {
        [PEAL_F64] = fold_f64, [PEAL_F32] = fold_f32, [PEAL_I32] = fold_i32,
        [PEAL_I64] = fold_i64, [PEAL_U8] = fold_u8,
    };
    folds[type](combine, element, count, stride, out);
}
