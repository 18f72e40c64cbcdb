/* Which tiles of one node meet a tile of another one, in closed form. */
#include "scheduler/order/nodes.h"

/* Along one axis: A's tiles i from floor((j * step + low) / divisor) to floor((j * step + high) /
 * divisor).
 *
 * Tile i of A touches [floor((oa + i TA) na / da) + la, ceil((oa + (i+1) TA) na / da) + ha), tile j
 * of B the same with b; the intervals meet iff each begins before the other ends. Solved for i;
 * roundings of B are bounded outwards. */
static void map_axis(const peal_reach_axis *ra, int64_t oa, int64_t ta, const peal_reach_axis *rb,
                     int64_t ob, int64_t tb, peal_map_axis *out)
{
    int64_t na = ra->num, da = ra->den, nb = rb->num, db = rb->den, base = oa * na * db;
    out->divisor = ta * na * db;
    if (rb->fixed) {
        out->divisor = ta * na;
        out->step = 0;
        out->low = (rb->low - ra->high) * da - oa * na;
        out->high = (rb->high - ra->low) * da - oa * na - 1;
    } else {
        out->step = tb * nb * da;
        out->low = (ob * nb - (db - 1) + (rb->low - ra->high) * db) * da - base;
        out->high = ((ob + tb) * nb + (db - 1) + (rb->high - ra->low) * db) * da - base - 1;
    }
    if (out->step == out->divisor) { /* equal tiles: constant offsets */
        out->low = peal_floor_divide(out->low, out->divisor);
        out->high = peal_floor_divide(out->high, out->divisor);
        out->step = out->divisor = 1;
    }
}

static const peal_reach_axis identity = {false, 1, 1, 0, 0};

bool map_tiles(const touch *a, const peal_tiling *at, const peal_tile_range *ar, const touch *b,
               const peal_tiling *bt, const peal_tile_range *br, peal_map_axis map[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++) {
        peal_map_axis *m = &map[k];
        peal_reach_axis fixed_b = {true, 1, 1, b->box.lo[k], b->box.hi[k]};
        const peal_reach_axis *rb = b->tiling < 0 ? &fixed_b : &b->reach->axis[k];
        *m = (peal_map_axis){.b_axis = rb->fixed ? -1 : k, .divisor = 1};
        m->first = a->tiling < 0 ? 0 : ar->lo[k];
        m->last = a->tiling < 0 ? 0 : ar->hi[k] - 1;
        if (a->tiling >= 0 && a->reach->axis[k].fixed) { /* every tile of A touches the same here */
            if (rb->fixed &&
                (rb->low >= a->reach->axis[k].high || rb->high <= a->reach->axis[k].low))
                return false;
            m->b_axis = -1;
            m->low = m->first;
            m->high = m->last;
            continue;
        }
        const peal_reach_axis *ra = a->tiling < 0 ? &identity : &a->reach->axis[k];
        int64_t oa = a->tiling < 0 ? a->box.lo[k] : at->box.lo[k];
        int64_t ta = a->tiling < 0 ? a->box.hi[k] - a->box.lo[k] : at->extent[k];
        if (ta < 1)
            return false;
        map_axis(ra, oa, ta, rb, bt && !rb->fixed ? bt->box.lo[k] : 0,
                 bt && !rb->fixed ? bt->extent[k] : 0, m);
        int64_t j0 = m->b_axis < 0 ? 0 : br->lo[k], j1 = m->b_axis < 0 ? 0 : br->hi[k] - 1;
        if (peal_floor_divide(j1 * m->step + m->high, m->divisor) < m->first ||
            peal_floor_divide(j0 * m->step + m->low, m->divisor) > m->last)
            return false;
    }
    return true;
}
