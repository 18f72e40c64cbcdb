/* The geometry of fields, point by point. */
#include "tests/scheduler/brute.h"

void brute_finish(brute_field *f)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        f->size[k] = 0;
        for (int64_t p = 0; p < f->whole[k]; p++) /* c lives where c * coarsen lives */
            f->size[k] += p % f->coarsen[k] == 0;
        if (!f->periodic[k])
            f->size[k] += f->stagger[k];
    }
}

int64_t brute_image(const brute_field *f, int axis, int64_t p)
{
    while (f->periodic[axis] && p < 0)
        p += f->size[axis];
    while (f->periodic[axis] && p >= f->size[axis])
        p -= f->size[axis];
    return p;
}

int brute_owner_along(const brute_field *f, int axis, int64_t p)
{
    if (p < 0)
        return 0;
    int64_t fine = p * f->coarsen[axis], units = 0;
    if (fine >= f->whole[axis])
        return f->dims[axis] - 1;
    for (int rank = 0; f->end[axis]; rank++)
        if (fine < f->end[axis][rank])
            return rank;
    for (int64_t at = 0; at < f->whole[axis]; at += f->align[axis])
        units++;
    int64_t unit = fine / f->align[axis];
    for (int rank = 0;; rank++) { /* deal the units out, the first ranks one more */
        int64_t mine = units / f->dims[axis] + (rank < units % f->dims[axis]);
        if (unit < mine)
            return rank;
        unit -= mine;
    }
}

static bool in_part_along(const brute_field *f, int k, int position, int64_t p)
{
    return p >= 0 && p < f->size[k] && brute_owner_along(f, k, p) == position;
}

static bool is_ghost_along(const brute_field *f, int k, int position, int64_t p)
{
    return !f->periodic[k] &&
           ((p < 0 && position == 0) || (p >= f->size[k] && position == f->dims[k] - 1));
}

/* How far p lies beyond the part along an axis: negative below, positive above. */
static int64_t beyond(const brute_field *f, int k, int position, int64_t p)
{
    int64_t low = 0, high = 0;
    bool any = false;
    for (int64_t q = 0; q < f->size[k]; q++)
        if (in_part_along(f, k, position, q)) {
            low = any ? low : q;
            high = q;
            any = true;
        }
    return p < low ? p - low : p > high ? p - high : 0;
}

static bool is_stored_along(const brute_field *f, int k, int position, int64_t p)
{
    int64_t far = beyond(f, k, position, p);
    return far < 0 ? -far <= f->halo[k][0] : far <= f->halo[k][1];
}

bool brute_in_part(const brute_field *f, const int position[PEAL_AXES], const int64_t p[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++)
        if (!in_part_along(f, k, position[k], p[k]))
            return false;
    return true;
}

bool brute_is_stored(const brute_field *f, const int position[PEAL_AXES],
                     const int64_t p[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++)
        if (!is_stored_along(f, k, position[k], p[k]))
            return false;
    return true;
}

bool brute_is_own(const brute_field *f, const int position[PEAL_AXES], const int64_t p[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++)
        if (!in_part_along(f, k, position[k], p[k]) && !is_ghost_along(f, k, position[k], p[k]))
            return false;
    return brute_is_stored(f, position, p);
}

void brute_direction(const brute_field *f, const int position[PEAL_AXES],
                     const int64_t p[PEAL_AXES], int direction[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t far = beyond(f, k, position[k], p[k]);
        direction[k] = is_ghost_along(f, k, position[k], p[k]) ? 0 : (far > 0) - (far < 0);
    }
}

bool brute_is_refused(const brute_field *f)
{
    for (int k = 0; k < f->axis_count; k++)
        for (int r = 0; r < f->dims[k]; r++) {
            int64_t points = 0;
            int64_t extra = 0;
            for (int64_t p = 0; p < f->size[k]; p++) {
                points += in_part_along(f, k, r, p);
                extra += in_part_along(f, k, r, p) && p * f->coarsen[k] >= f->whole[k];
            }
            if (points == extra)
                return true;
            bool below = f->periodic[k] || r > 0, above = f->periodic[k] || r + 1 < f->dims[k];
            if ((below && f->halo[k][1] > points) || (above && f->halo[k][0] > points))
                return true;
        }
    return false;
}

bool brute_next(const int64_t low[PEAL_AXES], const int64_t high[PEAL_AXES], int64_t p[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++) {
        if (++p[k] < high[k])
            return true;
        p[k] = low[k];
    }
    return false;
}

int64_t brute_halo_points(const brute_field *f, const int position[PEAL_AXES])
{
    int64_t low[PEAL_AXES], high[PEAL_AXES], p[PEAL_AXES], count = 0;
    for (int k = 0; k < PEAL_AXES; k++) {
        p[k] = low[k] = -f->halo[k][0];
        high[k] = f->size[k] + f->halo[k][1];
    }
    do
        count += brute_is_stored(f, position, p) && !brute_is_own(f, position, p);
    while (brute_next(low, high, p));
    return count;
}
