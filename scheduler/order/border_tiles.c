/* Launches that messages of the body meet become border tiles, which go first, and the rest; in
 * mode fused on a GPU also those which only a copy within the rank meets. */
#include "base/sorted.h"
#include "scheduler/geometry/geometry.h"
#include "scheduler/order/nodes.h"

#include <stdlib.h>
#include <string.h>

/* Cuts `inner` (a box of tile indexes) so that it no longer meets `hit`, where that loses the
 * fewest tiles. */
static void cut_away(peal_box *inner, const peal_box *hit)
{
    if (!peal_box_meets(inner, hit))
        return;
    int64_t most = -1;
    peal_box best = *inner;
    for (int k = 0; k < PEAL_AXES; k++)
        for (int side = 0; side < 2; side++) {
            peal_box kept = *inner;
            if (side)
                kept.hi[k] = hit->lo[k];
            else
                kept.lo[k] = hit->hi[k];
            int64_t points = peal_box_points(&kept);
            if (points > most) {
                most = points;
                best = kept;
            }
        }
    *inner = best;
}

/* Tiles of a launch that a message touch meets, as a box of tile indexes. */
static bool tiles_met(const touch *of_task, const peal_tiling *tiling, const peal_tile_range *range,
                      const touch *of_message, peal_box *out)
{
    peal_map_axis map[PEAL_AXES];
    if (!touches_conflict(of_task, of_message) ||
        !map_tiles(of_task, tiling, range, of_message, NULL, NULL, map))
        return false;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t low = peal_floor_divide(map[k].low, map[k].divisor);
        int64_t high = peal_floor_divide(map[k].high, map[k].divisor);
        out->lo[k] = low > map[k].first ? low : map[k].first;
        out->hi[k] = (high < map[k].last ? high : map[k].last) + 1;
    }
    return true;
}

/* What messages of a body touch, or copies within the rank: each touch once, where the body has it
 * first. */
typedef struct met_touch {
    const touch *touch;
    int node, number; /* of its node's touches */
} met_touch;

typedef struct met_touches {
    met_touch *item; /* by array, then as the body has them */
    int count;
} met_touches;

/* A touch of a launch that meets one of them. */
typedef struct met_pair {
    const met_touch *met;
    int own;
} met_pair;

static int compare_boxes(const peal_box *a, const peal_box *b)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        if (a->lo[k] != b->lo[k])
            return a->lo[k] < b->lo[k] ? -1 : 1;
        if (a->hi[k] != b->hi[k])
            return a->hi[k] < b->hi[k] ? -1 : 1;
    }
    return 0;
}

static int compare_touches(const touch *a, const touch *b)
{
    if (a->array != b->array)
        return a->array < b->array ? -1 : 1;
    return a->write != b->write ? a->write - b->write : compare_boxes(&a->box, &b->box);
}

static int compare_places(const met_touch *a, const met_touch *b)
{
    return a->node != b->node ? a->node - b->node : a->number - b->number;
}

static int by_touch(const void *left, const void *right)
{
    const met_touch *a = left, *b = right;
    int order = compare_touches(a->touch, b->touch);
    return order ? order : compare_places(a, b);
}

static int by_array(const void *left, const void *right)
{
    const met_touch *a = left, *b = right;
    if (a->touch->array != b->touch->array)
        return a->touch->array < b->touch->array ? -1 : 1;
    return compare_places(a, b);
}

/* By node, then the launch's touch, then the node's. */
static int by_place(const void *left, const void *right)
{
    const met_pair *a = left, *b = right;
    if (a->met->node != b->met->node)
        return a->met->node - b->met->node;
    return a->own != b->own ? a->own - b->own : a->met->number - b->met->number;
}

static bool is_met(const node *m, bool messages)
{
    return messages ? m->kind == NODE_SEND || m->kind == NODE_RECV : m->kind == NODE_LOCAL;
}

static void list_met(const pass_context *pass, const node_list *body, bool messages,
                     met_touches *out)
{
    int count = 0, kept = 0;
    for (int i = 0; i < body->count; i++)
        count += is_met(body->item[i], messages) ? body->item[i]->touch_count : 0;
    met_touch *item = out->item = PEAL_ARENA_ARRAY(pass->arena, met_touch, count + 1);
    count = 0;
    for (int i = 0; i < body->count; i++)
        for (int k = 0; is_met(body->item[i], messages) && k < body->item[i]->touch_count; k++)
            item[count++] = (met_touch){&body->item[i]->touch[k], i, k};
    qsort(item, (size_t)count, sizeof(*item), by_touch);
    for (int i = 0; i < count; i++)
        if (!i || compare_touches(item[kept - 1].touch, item[i].touch))
            item[kept++] = item[i];
    qsort(item, (size_t)kept, sizeof(*item), by_array);
    out->count = kept;
}

/* The first of an array, or of a later one. */
static int first_met(const met_touches *met, int array)
{
    const touch any = {.array = array};
    const met_touch key = {&any, -1, 0};
    return peal_sorted_first(&key, met->item, met->count, sizeof(*met->item), by_array);
}

/* Takes from `interior` what others meet, in the order of the body: what is left depends on it.
 * False: they meet nothing. */
static bool cut_met(const pass_context *pass, const rank_view *v, const node *launch,
                    const met_touches *met, peal_box *interior)
{
    const peal_schedule_task *t = &v->task[launch->task];
    met_pair *pair = NULL;
    int count = 0, capacity = 0;
    bool any = false;
    for (int a = 0; a < launch->touch_count; a++) {
        const touch *own = &launch->touch[a];
        for (int i = own->tiling < 0 ? met->count : first_met(met, own->array);
             i < met->count && met->item[i].touch->array == own->array; i++) {
            if (!touches_conflict(own, met->item[i].touch))
                continue;
            PEAL_ARENA_ROOM(pass->arena, pair, count, capacity);
            pair[count++] = (met_pair){&met->item[i], a};
        }
    }
    if (count)
        qsort(pair, (size_t)count, sizeof(*pair), by_place);
    for (int i = 0; i < count; i++) {
        peal_box hit;
        if (tiles_met(&launch->touch[pair[i].own], &t->tiling[0], &launch->range[0],
                      pair[i].met->touch, &hit)) {
            cut_away(interior, &hit);
            any = true;
        }
    }
    return any;
}

/* Where there are many tiles, workers may take them as they come, but not those that go into the
 * rank's own halo. */
static bool takes_tiles(const common_input *c, const peal_schedule_task *t)
{
    int64_t least = c->traits->dynamic_tiles;
    return c->mode == PEAL_MODE_FUSED && least && t->tile_count >= least;
}

/* The border is a box on each side of the interior, along each axis that is cut. */
static bool has_few_boxes(const common_input *c, const peal_schedule_task *t,
                          const peal_box *interior)
{
    int axes = 0;
    for (int k = 0; k < PEAL_AXES; k++)
        axes += interior->hi[k] - interior->lo[k] != t->tiling[0].count[k];
    return axes > 0 && (!c->traits->most_boxes || 1 + 2 * axes <= c->traits->most_boxes);
}

/* The tiles of a launch that no message of the body meets, or, where none does, no copy within the
 * rank; false: it is not split. */
static bool interior_tiles(const common_input *c, const pass_context *pass, const rank_view *v,
                           const node *launch, const met_touches *messages,
                           const met_touches *copies, peal_box *interior)
{
    const peal_schedule_task *t = &v->task[launch->task];
    *interior = (peal_box){.axis_count = PEAL_AXES};
    memcpy(interior->hi, t->tiling[0].count, sizeof(interior->hi));
    bool met = cut_met(pass, v, launch, messages, interior) ||
               (takes_tiles(c, t) && cut_met(pass, v, launch, copies, interior) &&
                has_few_boxes(c, t, interior));
    return met && !peal_box_is_empty(interior);
}

static node *copy_launch(const common_input *c, const pass_context *pass, const rank_view *v,
                         const node *launch, const peal_box *boxes, int count)
{
    node *n = PEAL_ARENA_NEW(pass->arena, node);
    *n = *launch;
    n->touch = NULL;
    n->touch_count = n->touch_capacity = 0;
    n->range = PEAL_ARENA_ARRAY(pass->arena, peal_tile_range, count);
    n->range_count = count;
    for (int i = 0; i < count; i++) {
        memcpy(n->range[i].lo, boxes[i].lo, sizeof(boxes[i].lo));
        memcpy(n->range[i].hi, boxes[i].hi, sizeof(boxes[i].hi));
    }
    touch_launch(c, pass, v, n);
    for (int i = 0; i < launch->touch_count; i++) /* `after` */
        if (launch->touch[i].array > console_array(c))
            add_touch(pass, n, launch->touch[i]);
    return n;
}

void split_border_tiles(const common_input *c, const pass_context *pass, const rank_view *v,
                        node_list *body)
{
    node_list out = {0};
    met_touches messages, copies;
    list_met(pass, body, true, &messages);
    list_met(pass, body, false, &copies);
    for (int i = 0; i < body->count; i++) {
        node *n = body->item[i];
        peal_box interior, all = {.axis_count = PEAL_AXES};
        if (n->kind != NODE_LAUNCH || v->task[n->task].kind != PEAL_TASK_KERNEL ||
            v->task[n->task].tiling_count != 1 || v->task[n->task].tile_count < 2 ||
            !interior_tiles(c, pass, v, n, &messages, &copies, &interior)) {
            add_node(pass, &out, n);
            continue;
        }
        box_list border = {0};
        memcpy(all.hi, v->task[n->task].tiling[0].count, sizeof(all.hi));
        subtract_box(&all, &interior, &border);
        node *first = copy_launch(c, pass, v, n, border.box, border.count);
        first->border = true;
        first->label = peal_arena_print(pass->arena, "%s (border)", n->label);
        add_node(pass, &out, first);
        node *rest = copy_launch(c, pass, v, n, &interior, 1);
        rest->rest = true;
        add_node(pass, &out, rest);
    }
    *body = out;
}
