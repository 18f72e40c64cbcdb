/* Exchanges: which halo points of a rank come from whom, and which of them anybody reads.
 *
 * Both ends run exchange_pieces() on the receiver's view, so they agree on what travels. */
#include "scheduler/conditions/conditions.h"
#include "scheduler/geometry/geometry.h"
#include "scheduler/messages/messages.h"

static bool same_group(const common_input *c, int a, int b)
{
    return a == b || (a < c->graph->array_count && b < c->graph->array_count &&
                      c->swap_group[a] >= 0 && c->swap_group[a] == c->swap_group[b]);
}

/* What the tasks and messages of a rank read of an array, and of those it is swapped with. */
struct read_boxes {
    peal_box *box; /* none within another one before it */
    int count, capacity;
    bool in_halo; /* some reach beyond the rank's own points */
};

/* pass NULL: only whether it is in the halo. */
static void add_read(const pass_context *pass, read_boxes *list, const peal_box *own,
                     const peal_box *box)
{
    list->in_halo |= !peal_box_contains(own, box);
    for (int i = 0; i < list->count; i++)
        if (peal_box_contains(&list->box[i], box))
            return;
    if (!pass)
        return;
    PEAL_ARENA_ROOM(pass->arena, list->box, list->count, list->capacity);
    list->box[list->count++] = *box;
}

static void add_access(const pass_context *pass, const rank_view *v, const peal_schedule_task *t,
                       const peal_task_access *a, read_boxes *list)
{
    const peal_layout *layout = &v->layout[a->array];
    for (int i = 0; i < t->tiling_count; i++)
        for (int j = 0; j < a->reach_count; j++) {
            peal_box range = reach_range(&a->reach[j], &t->tiling[i].box, &layout->stored);
            add_read(pass, list, &layout->own, &range);
        }
}

static void find_reads(const common_input *c, const pass_context *pass, const rank_view *v,
                       int array, read_boxes *out)
{
    for (int i = 0; i < v->task_count; i++) {
        const peal_schedule_task *t = &v->task[i];
        for (int k = 0; k < t->access_count; k++)
            if (t->access[k].mode != PEAL_WRITE_ACCESS && same_group(c, t->access[k].array, array))
                add_access(pass, v, t, &t->access[k], out);
    }
    for (int i = 0; i < v->end_count; i++)
        if (v->end[i].outgoing && same_group(c, v->end[i].array, array))
            add_read(pass, out, &v->layout[array].own, &v->end[i].box);
}

bool halo_is_read(const common_input *c, const rank_view *v, int array)
{
    read_boxes reads = {0};
    find_reads(c, NULL, v, array, &reads);
    return reads.in_halo;
}

static const read_boxes *reads_of(const common_input *c, const pass_context *pass, rank_view *v,
                                  int array)
{
    if (!v->reads)
        v->reads = PEAL_ARENA_ARRAY(pass->arena, read_boxes *, array_total(c));
    if (!v->reads[array]) {
        v->reads[array] = PEAL_ARENA_NEW(pass->arena, read_boxes);
        find_reads(c, pass, v, array, v->reads[array]);
    }
    return v->reads[array];
}

static bool is_read(const read_boxes *reads, const peal_box *box)
{
    for (int i = 0; i < reads->count; i++)
        if (peal_box_meets(&reads->box[i], box))
            return true;
    return false;
}

/* Where the points of a halo box lie at their owner. */
static peal_box owner_coordinates(const common_input *c, const rank_view *v,
                                  const field_shape *shape, const int direction[PEAL_RANK_AXES],
                                  peal_box box)
{
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        int ranks = shape->replicated ? 1 : c->dims[k];
        int position = (shape->replicated ? 0 : v->position[k]) + direction[k];
        int64_t shift = position < 0 ? shape->size[k] : position >= ranks ? -shape->size[k] : 0;
        box.lo[k] += shift;
        box.hi[k] += shift;
    }
    return box;
}

typedef struct piece_sink {
    int peer; /* only pieces that this rank owns */
    rank_message *into;
} piece_sink;

static peal_status item_pieces(const common_input *c, const pass_context *pass, rank_view *v,
                               const peal_exchange_item *item, const piece_sink *sink)
{
    field_shape shape;
    peal_box boxes[27];
    peal_status status = shape_of(c, pass, &v->scope, item->array, &shape);
    if (!status)
        status = exchange_boxes(c, pass, v, item, boxes);
    if (status)
        return status;
    const read_boxes *reads = reads_of(c, pass, v, item->array);
    bool application_reads = !reads->in_halo;
    for (int number = 0; number < 27; number++) {
        int direction[PEAL_RANK_AXES] = {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1};
        const peal_box *box = &boxes[number];
        if (peal_box_is_empty(box) || halo_owner(c, v, item->array, direction) != sink->peer ||
            !(application_reads || is_read(reads, box)))
            continue;
        peal_piece piece = {.array = item->array, .target_array = item->array};
        piece.source = owner_coordinates(c, v, &shape, direction, *box);
        for (int k = 0; k < PEAL_AXES; k++) {
            piece.target[k] = box->lo[k];
            piece.target_extent[k] = box->hi[k] - box->lo[k];
        }
        add_piece(c, pass, sink->into, piece);
        sink->into->application_reads |= application_reads;
    }
    return PEAL_STATUS_OK;
}

/* What a rank gets of a copy's field from an owner. Of a replicated one it has all itself. */
static peal_box copied_box(const common_input *c, const rank_view *receiver, const rank_view *owner,
                           const peal_exchange_item *item)
{
    if (c->graph->arrays[item->array].replicated && receiver->rank != owner->rank)
        return (peal_box){0};
    return peal_box_intersect(&owner->layout[item->array].part, &receiver->layout[item->into].part);
}

static void copy_pieces(const common_input *c, const pass_context *pass, const rank_view *receiver,
                        const rank_view *owner, const peal_exchange_item *item,
                        const piece_sink *sink)
{
    peal_box box = copied_box(c, receiver, owner, item);
    if (peal_box_is_empty(&box))
        return;
    peal_piece piece = {.array = item->array, .target_array = item->into, .source = box};
    for (int k = 0; k < PEAL_AXES; k++) {
        piece.target[k] = box.lo[k];
        piece.target_extent[k] = box.hi[k] - box.lo[k];
    }
    add_piece(c, pass, sink->into, piece);
    sink->into->application_reads = true; /* never stored in place: the field itself is in use */
}

/* The pieces that `receiver` gets from `owner`, who is sink->peer, in exchange s. */
static peal_status exchange_pieces(const common_input *c, const pass_context *pass,
                                   rank_view *receiver, const rank_view *owner,
                                   const peal_statement *s, const piece_sink *sink)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; !status && i < s->u.exchange.item_count; i++) {
        const peal_exchange_item *item = &s->u.exchange.item[i];
        if (item->into >= 0)
            copy_pieces(c, pass, receiver, owner, item, sink);
        else
            status = item_pieces(c, pass, receiver, item, sink);
    }
    return status;
}

static peal_status add_both_ends(const common_input *c, const pass_context *pass, rank_views *views,
                                 condition_table *conditions, rank_view *v, const peal_statement *s,
                                 int peer)
{
    rank_view *other = view_at(views, peer, STAGE_TASKS);
    if (!other)
        return views->of[peer]->status;
    for (int outgoing = 1; outgoing >= 0; outgoing--) {
        rank_message m = {.outgoing = outgoing, .statement = s->id, .peer = peer};
        piece_sink sink = {outgoing ? v->rank : peer, &m};
        peal_status status =
            exchange_pieces(c, pass, outgoing ? other : v, outgoing ? v : other, s, &sink);
        if (status)
            return status;
        if (!m.piece_count)
            continue;
        status = check_partner(c, pass, conditions, v, other, s);
        if (status)
            return status;
        add_message(pass, v, m);
    }
    return PEAL_STATUS_OK;
}

/* Any rank may own what another one gets. */
static peal_status add_copy(const common_input *c, const pass_context *pass, rank_views *views,
                            condition_table *conditions, rank_view *v, const peal_statement *s)
{
    peal_status status = PEAL_STATUS_OK;
    for (int peer = 0; !status && peer < c->machine.ranks; peer++) {
        if (peer == v->rank)
            continue;
        const rank_view *other = view_at(views, peer, STAGE_GEOMETRY);
        bool meets = false;
        if (!other)
            return views->of[peer]->status;
        for (int i = 0; i < s->u.exchange.item_count && !meets; i++) {
            peal_box in = copied_box(c, v, other, &s->u.exchange.item[i]);
            peal_box out = copied_box(c, other, v, &s->u.exchange.item[i]);
            meets = !peal_box_is_empty(&in) || !peal_box_is_empty(&out);
        }
        if (meets)
            status = add_both_ends(c, pass, views, conditions, v, s, peer);
    }
    return status;
}

peal_status add_exchange(const common_input *c, const pass_context *pass, rank_views *views,
                         condition_table *conditions, rank_view *v, const peal_statement *s)
{
    rank_message images = {0};
    piece_sink sink = {v->rank, &images};
    peal_status status = exchange_pieces(c, pass, v, v, s, &sink);
    v->local[s->id] = images.piece;
    v->local_count[s->id] = images.piece_count;
    int done[27], done_count = 0;
    if (!status && peal_is_copy(s))
        return add_copy(c, pass, views, conditions, v, s);
    for (int number = 0; !status && number < 27; number++) {
        int direction[PEAL_RANK_AXES] = {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1};
        int peer = neighbour(c, v->position, direction);
        bool seen = peer < 0 || peer == v->rank;
        for (int i = 0; !seen && i < done_count; i++)
            seen = done[i] == peer;
        if (seen)
            continue;
        done[done_count++] = peer;
        status = add_both_ends(c, pass, views, conditions, v, s, peer);
    }
    return status;
}
