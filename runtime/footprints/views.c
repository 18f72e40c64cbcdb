/* What a tile may touch: accesses, and parts of reductions, as boxes of elements. */
#define _GNU_SOURCE
#include "base/box.h"
#include "base/checked.h"
#include "runtime/footprints/internal.h"

#include <stdlib.h>

bool views_create(checked_task *t)
{
    const peal_schedule_task *task = t->task;
    t->view_count = task->access_count + task->reduction_count;
    t->view = calloc((size_t)t->view_count + 1, sizeof(*t->view));
    if (!t->view)
        return false;
    for (int a = 0; a < task->access_count; a++) {
        const peal_schedule_array *array = &t->schedule->array[task->access[a].array];
        t->view[a] = (checked_view){.name = array->name,
                                    .array = array,
                                    .access = &task->access[a],
                                    .mode = task->access[a].mode};
    }
    for (int r = 0; r < task->reduction_count; r++) {
        checked_view *view = &t->view[task->access_count + r];
        const peal_schedule_array *array = &t->schedule->array[task->reduction[r].array];
        peal_box one = {.axis_count = 1, .hi = {1, 1, 1, 1}};
        *view = (checked_view){.name = array->name,
                               .mode = PEAL_WRITE_ACCESS,
                               .part_index = r,
                               .part = {.name = array->name, .type = array->type}};
        view->part.layout = (peal_layout){.part = one,
                                          .own = one,
                                          .stored = one,
                                          .stride = {1, 1, 1, 1},
                                          .bytes = (int64_t)peal_type_bytes(array->type)};
        view->array = &view->part;
    }
    return true;
}

unsigned char *view_real(const checked_task *t, int view, const peal_call *call)
{
    const checked_view *v = &t->view[view];
    if (!v->access)
        return call->partial[v->part_index];
    const peal_layout *layout = &v->array->layout;
    int64_t offset = -call->tile.index * v->access->per_tile;
    for (int k = 0; k < PEAL_AXES; k++)
        offset += layout->stored.lo[k] * layout->stride[k];
    return (unsigned char *)((uintptr_t)call->view[view].base +
                             (uintptr_t)(offset * view_element(t, view)));
}

int view_boxes(const checked_task *t, int view, const peal_tile *tile,
               peal_box box[PEAL_CALL_VIEWS])
{
    const peal_task_access *a = t->view[view].access;
    const peal_box *stored = &t->view[view].array->layout.stored;
    int count = 0;
    if (!a || a->per_tile > 0) {
        box[0] = *stored;
        if (a) {
            box[0].lo[0] = tile->index * a->per_tile;
            box[0].hi[0] = box[0].lo[0] + a->per_tile;
            box[0] = peal_box_intersect(&box[0], stored);
        }
        return 1;
    }
    for (int r = 0; r < a->reach_count && count < PEAL_CALL_VIEWS; r++) {
        peal_box *b = &box[count++];
        *b = *stored;
        for (int k = 0; k < PEAL_AXES; k++) {
            const peal_reach_axis *axis = &a->reach[r].axis[k];
            b->lo[k] = axis->low;
            b->hi[k] = axis->high;
            if (!axis->fixed) {
                b->lo[k] += peal_floor_divide((int64_t)tile->lo[k] * axis->num, axis->den);
                b->hi[k] += peal_ceil_divide((int64_t)tile->hi[k] * axis->num, axis->den);
            }
        }
        *b = peal_box_intersect(b, stored);
    }
    return count;
}

void view_rows(const checked_task *t, int view, const peal_tile *tile,
               void (*visit)(void *, int64_t, int64_t), void *user)
{
    peal_box box[PEAL_CALL_VIEWS];
    int count = view_boxes(t, view, tile, box);
    for (int i = 0; i < count; i++)
        peal_box_rows(t->view[view].array, &box[i], visit, user);
}

bool view_declares(const checked_task *t, int view, const peal_tile *tile, int64_t element)
{
    const peal_layout *layout = &t->view[view].array->layout;
    peal_box box[PEAL_CALL_VIEWS];
    int64_t point[PEAL_AXES];
    if (element < 0 || element >= layout->bytes / view_element(t, view))
        return false;
    peal_layout_point(layout, element, point);
    int count = view_boxes(t, view, tile, box);
    for (int i = 0; i < count; i++) {
        bool inside = true;
        for (int k = 0; k < PEAL_AXES; k++)
            inside = inside && point[k] >= box[i].lo[k] && point[k] < box[i].hi[k];
        if (inside)
            return true;
    }
    return false;
}
