/* Boxes that follow from other boxes. */
#include "scheduler/geometry/geometry.h"

void subtract_box(const peal_box *from, const peal_box *what, box_list *out)
{
    peal_box middle = *from;
    if (!peal_box_meets(from, what)) {
        if (!peal_box_is_empty(from))
            out->box[out->count++] = *from;
        return;
    }
    for (int k = PEAL_AXES - 1; k >= 0; k--) { /* the outermost axis first: slabs are contiguous */
        peal_box low = middle, high = middle;
        low.hi[k] = what->lo[k];
        high.lo[k] = what->hi[k];
        if (!peal_box_is_empty(&low))
            out->box[out->count++] = low;
        if (!peal_box_is_empty(&high))
            out->box[out->count++] = high;
        middle.lo[k] = middle.lo[k] > what->lo[k] ? middle.lo[k] : what->lo[k];
        middle.hi[k] = middle.hi[k] < what->hi[k] ? middle.hi[k] : what->hi[k];
    }
}

peal_box halo_box(const rank_view *v, int array, const int64_t amount[PEAL_AXES][2],
                  const int *direction)
{
    const peal_layout *layout = &v->layout[array];
    peal_box box = layout->own;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        if (direction[k] < 0) {
            box.lo[k] = layout->part.lo[k] - amount[k][0];
            box.hi[k] = layout->part.lo[k];
        } else if (direction[k] > 0) {
            box.lo[k] = layout->part.hi[k];
            box.hi[k] = layout->part.hi[k] + amount[k][1];
        }
    }
    return box;
}

peal_box border_box(const rank_view *v, int array, const int64_t amount[PEAL_AXES][2],
                    const int *direction)
{
    const peal_layout *layout = &v->layout[array];
    peal_box box = layout->own;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        if (direction[k] < 0) {
            box.lo[k] = layout->part.lo[k];
            box.hi[k] = layout->part.lo[k] + amount[k][1];
        } else if (direction[k] > 0) {
            box.lo[k] = layout->part.hi[k] - amount[k][0];
            box.hi[k] = layout->part.hi[k];
        }
    }
    return box;
}

peal_box reach_range(const peal_reach *reach, const peal_box *box, const peal_box *stored)
{
    peal_box out = {.axis_count = stored->axis_count};
    for (int k = 0; k < PEAL_AXES; k++) {
        const peal_reach_axis *axis = &reach->axis[k];
        if (axis->fixed) {
            out.lo[k] = axis->low;
            out.hi[k] = axis->high;
        } else {
            out.lo[k] = peal_floor_divide(box->lo[k] * axis->num, axis->den) + axis->low;
            out.hi[k] = peal_ceil_divide(box->hi[k] * axis->num, axis->den) + axis->high;
        }
    }
    return out;
}

peal_box piece_target(const peal_piece *piece)
{
    peal_box box = {.axis_count = PEAL_AXES};
    for (int k = 0; k < PEAL_AXES; k++) {
        box.lo[k] = piece->target[k];
        box.hi[k] = piece->target[k] + piece->target_extent[k];
    }
    return box;
}
