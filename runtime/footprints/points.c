/* Points of a tile: where peal chooses the tiles, a kernel has to keep to what it declares in any,
 * and to give a point the same value in any. Corners, edges, and one more point run by themselves,
 * as tiles of another number. */
#define _GNU_SOURCE
#include "base/box.h"
#include "runtime/footprints/internal.h"

enum { PROBE_BYTES = 1 << 22, PROBES = 81 };

/* Bytes that a run of this tile brings and compares. */
static int64_t bytes_of(const checked_task *t, const peal_call *call)
{
    int64_t bytes = 1;
    for (int i = 0; i < t->view_count; i++) {
        peal_box box[PEAL_CALL_VIEWS];
        int count = view_boxes(t, i, &call->tile, box);
        for (int b = 0; b < count; b++)
            bytes += peal_box_bytes(&box[b], t->view[i].array->type);
    }
    return bytes;
}

/* Position `which` (first, any, last) on axis k of a tile. */
static void take_point(const checked_task *t, const peal_call *call, int k, int which,
                       peal_tile *tile)
{
    int64_t step = point_extent(t, k), lo = call->tile.lo[k], hi = call->tile.hi[k];
    int64_t count = (hi - lo + step - 1) / step, index = 0;
    if (which == 1) /* another one each time */
        index = (int64_t)((t->calls * 2654435761u + (uint64_t)count / 2) % (uint64_t)count);
    else if (which == 2)
        index = count - 1;
    tile->lo[k] = (int)(lo + index * step);
    tile->hi[k] = (int)(lo + (index + 1) * step < hi ? lo + (index + 1) * step : hi);
}

/* Whether a point touches elements of this access alone: its own, along axes that the box has. */
static bool is_of_points(const checked_task *t, const peal_task_access *access)
{
    int axes = t->task->tiling_count ? t->task->tiling[0].box.axis_count : 0;
    for (int r = 0; r < access->reach_count; r++)
        for (int k = 0; k < axes; k++) {
            const peal_reach_axis *axis = &access->reach[r].axis[k];
            if (axis->fixed || axis->low || axis->high)
                return false;
        }
    return true;
}

/* Whether the outputs of one point are others than those that the tile around it gave. What
 * independent tasks touch around their points may be of several. */
static bool find_other_value(const checked_task *t, const peal_call *one, finding *out)
{
    const unsigned char *kept = t->owner->whole;
    for (int i = 0; i < t->task->access_count; i++) {
        row_visit v = visit_of(t, i, FILL_REAL);
        v.from = kept;
        v.nans_are_alike = true;
        if (is_output(t, i) && view_real(t, i, one) && is_of_points(t, t->view[i].access))
            view_rows(t, i, &one->tile, row_equal, &v);
        if (v.found >= 0)
            return note(out, FINDING_TILE, t, i, v.found);
        kept += is_output(t, i) ? t->view[i].array->layout.bytes : 0;
    }
    return false;
}

/* The whole tile once more, as one of another number: whatever it touches has to be the same. */
static bool find_number(const checked_task *t, const peal_call *call, finding *out)
{
    const unsigned char *kept = t->owner->whole;
    peal_call other = *call;
    other.tile.index += 1;
    other.tile.count += 2;
    put_inputs(t, &other, FILL_REAL);
    bool good = run_tile(t, &other, FILL_REAL), found = false;
    for (int i = 0; i < t->task->access_count && good && !found; i++) {
        row_visit v = visit_of(t, i, FILL_REAL);
        v.from = kept;
        v.nans_are_alike = true;
        if (is_output(t, i) && view_real(t, i, call))
            view_rows(t, i, &call->tile, row_equal, &v);
        found = v.found >= 0 && note(out, FINDING_TILE, t, i, v.found);
        kept += is_output(t, i) ? t->view[i].array->layout.bytes : 0;
    }
    settle(t, call, FILL_REAL);
    return found;
}

/* The outputs of the whole tile, to compare those of its points with. False: it has none. */
static bool keep_whole(const checked_task *t, const peal_call *call, finding *out)
{
    begin_statics(t);
    put_inputs(t, call, FILL_REAL);
    bool good = run_tile(t, call, FILL_REAL);
    if (good)
        keep_outputs(t, call, t->owner->whole);
    find_static(t, out);
    settle(t, call, FILL_REAL);
    return good;
}

bool check_points(checked_task *t, const peal_call *call, finding *out)
{
    peal_call one = *call;
    int64_t bytes = 0;
    bool single = true;
    for (int k = 0; k < PEAL_AXES; k++)
        single = single && call->tile.hi[k] - call->tile.lo[k] <= point_extent(t, k);
    if (!t->tiles_are_free)
        return false;
    bool whole = keep_whole(t, call, out);
    if (out->kind || (whole && find_number(t, call, out)))
        return true;
    if (single)
        return false;
    for (int probe = 0; probe < PROBES && bytes < PROBE_BYTES; probe++) {
        bool again = false;
        for (int k = 0, rest = probe; k < PEAL_AXES; k++, rest /= 3) {
            bool one_point = call->tile.hi[k] - call->tile.lo[k] <= point_extent(t, k);
            take_point(t, call, k, one_point ? 0 : (rest + 1) % 3, &one.tile);
            again = again || (rest % 3 > 0 && one_point);
        }
        if (again) /* an axis of one point */
            continue;
        one.tile.index = call->tile.index + probe + 1;
        one.tile.count = call->tile.count + PROBES + 1;
        bytes += bytes_of(t, &one);
        bool found = check_tile(t, &one, out) ||
                     (whole && t->bits_are_given && find_other_value(t, &one, out)) ||
                     find_quiet_store(t, &one, out);
        settle(t, &one, FILL_REAL);
        if (found) {
            for (int k = 0; k < PEAL_AXES; k++)
                out->point[k] = one.tile.lo[k];
            out->has_point = true;
            out->tile = one.tile;
            return true;
        }
    }
    return false;
}
