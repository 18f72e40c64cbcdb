/* What a node touches. */
#include "scheduler/geometry/geometry.h"
#include "scheduler/order/nodes.h"

void add_node(const pass_context *pass, node_list *list, node *n)
{
    PEAL_ARENA_ROOM(pass->arena, list->item, list->count, list->capacity);
    list->item[list->count++] = n;
}

void add_touch(const pass_context *pass, node *n, touch t)
{
    PEAL_ARENA_ROOM(pass->arena, n->touch, n->touch_count, n->touch_capacity);
    n->touch[n->touch_count++] = t;
}

touch fixed_touch(int array, bool write, const peal_box *box)
{
    touch t = {.array = array, .write = write, .tiling = -1, .box = *box};
    return t;
}

touch virtual_touch(int array, bool write)
{
    peal_box one = {.axis_count = 1, .hi = {1, 1, 1, 1}};
    return fixed_touch(array, write, &one);
}

typedef struct element_touches {
    const pass_context *pass;
    const rank_view *v;
    node *n;
} element_touches;

static void touch_element(void *user, int array)
{
    element_touches *e = user;
    add_touch(e->pass, e->n, fixed_touch(array, false, &e->v->layout[array].stored));
}

static void touch_access(const pass_context *pass, const rank_view *v, node *n,
                         const peal_task_access *a, int range)
{
    const peal_schedule_task *t = &v->task[n->task];
    const peal_tile_range *r = &n->range[range];
    const peal_tiling *tiling = &t->tiling[r->tiling];
    peal_box box = tiling->box;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t high = tiling->box.lo[k] + r->hi[k] * tiling->extent[k];
        box.lo[k] = tiling->box.lo[k] + r->lo[k] * tiling->extent[k];
        box.hi[k] = high < tiling->box.hi[k] ? high : tiling->box.hi[k];
    }
    for (int j = 0; j < a->reach_count; j++) {
        touch found = {.array = a->array,
                       .write = a->mode != PEAL_READ_ACCESS,
                       .per_tile = a->per_tile,
                       .tiling = r->tiling,
                       .range = range,
                       .reach = &a->reach[j]};
        found.box = reach_range(&a->reach[j], &box, &v->layout[a->array].stored);
        if (!peal_box_is_empty(&found.box))
            add_touch(pass, n, found);
    }
}

static void touch_kernel(const pass_context *pass, const rank_view *v, node *n)
{
    const peal_schedule_task *t = &v->task[n->task];
    element_touches elements = {pass, v, n};
    for (int i = 0; i < t->access_count; i++)
        for (int r = 0; r < n->range_count; r++)
            touch_access(pass, v, n, &t->access[i], r);
    peal_expr_elements(t->count, touch_element, &elements);
    for (int i = 0; i < t->argument_count; i++)
        peal_expr_elements(t->argument[i], touch_element, &elements);
    for (int i = 0; i < t->reduction_count; i++) {
        touch partials = fixed_touch(t->reduction[i].partials, true,
                                     &v->layout[t->reduction[i].partials].stored);
        partials.per_tile = -1;
        add_touch(pass, n, partials);
    }
}

void touch_launch(const common_input *c, const pass_context *pass, const rank_view *v, node *n)
{
    const peal_schedule_task *t = &v->task[n->task];
    element_touches elements = {pass, v, n};
    switch (t->kind) {
    case PEAL_TASK_KERNEL:
        touch_kernel(pass, v, n);
        break;
    case PEAL_TASK_PRINT:
        for (int i = 0; i < t->item_count; i++)
            peal_expr_elements(t->item[i].value, touch_element, &elements);
        add_touch(pass, n, virtual_touch(console_array(c), true));
        break;
    case PEAL_TASK_LOAD:
    case PEAL_TASK_SAVE:
        add_touch(pass, n,
                  fixed_touch(t->array, t->kind == PEAL_TASK_LOAD, &v->layout[t->array].own));
        add_touch(pass, n, virtual_touch(console_array(c), true));
        break;
    default:
        peal_expr_elements(t->value, touch_element, &elements);
        if (t->gather >= 0)
            add_touch(pass, n, fixed_touch(t->gather, false, &v->layout[t->gather].stored));
        if (t->array >= 0)
            add_touch(pass, n, fixed_touch(t->array, true, &v->layout[t->array].stored));
        break;
    }
}

bool touches_conflict(const touch *a, const touch *b)
{
    return a->array == b->array && (a->write || b->write) && peal_box_meets(&a->box, &b->box);
}
