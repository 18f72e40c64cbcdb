/* Arithmetic of boxes of points. */
#ifndef PEAL_BASE_BOX_H
#define PEAL_BASE_BOX_H

#include <peal/types.h>

static inline bool peal_box_is_empty(const peal_box *box)
{
    for (int k = 0; k < PEAL_AXES; k++)
        if (box->lo[k] >= box->hi[k])
            return true;
    return false;
}

/* Points of a box whose extents have been checked; 0 if empty. */
static inline int64_t peal_box_points(const peal_box *box)
{
    int64_t points = 1;
    if (peal_box_is_empty(box))
        return 0;
    for (int k = 0; k < PEAL_AXES; k++)
        points *= box->hi[k] - box->lo[k];
    return points;
}

static inline peal_box peal_box_intersect(const peal_box *a, const peal_box *b)
{
    peal_box out = *a;
    for (int k = 0; k < PEAL_AXES; k++) {
        out.lo[k] = a->lo[k] > b->lo[k] ? a->lo[k] : b->lo[k];
        out.hi[k] = a->hi[k] < b->hi[k] ? a->hi[k] : b->hi[k];
    }
    return out;
}

static inline bool peal_box_meets(const peal_box *a, const peal_box *b)
{
    peal_box common = peal_box_intersect(a, b);
    return !peal_box_is_empty(&common);
}

/* inner within outer; an empty inner is within anything. */
static inline bool peal_box_contains(const peal_box *outer, const peal_box *inner)
{
    if (peal_box_is_empty(inner))
        return true;
    for (int k = 0; k < PEAL_AXES; k++)
        if (inner->lo[k] < outer->lo[k] || inner->hi[k] > outer->hi[k])
            return false;
    return true;
}

#endif
