/* The defined order of reductions: binary trees over [0, n), split at the largest power of two
 * below n. */
#ifndef PEAL_HOST_FOLD_H
#define PEAL_HOST_FOLD_H

#include <peal/types.h>

/* *out = fold of element[i * stride], i in [0, count), stride in elements. No element: 0, +inf or
 * -inf; for integers the limits of the type. min and max: NaN wins. Integer sums wrap. */
void host_fold(peal_type type, peal_combine combine, const void *element, int64_t count,
               int64_t stride, void *out);

#endif
