/* Memory: where arrays, flags, credits and staging lie in a rank's segment. A function of the
 * rank's messages alone, so that its peers compute the same. Slots of messages that will most
 * likely be stored in place come last, where nobody touches them if they are.
 *
 * A flag has a pair of cache lines of its own; a message of a few bytes is staged beside its flag,
 * so that both arrive with one line. */
#include "scheduler/channels/channels.h"
#include "scheduler/geometry/geometry.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = MEMORY_LINE, SMALL_SLOT = 24 };

/* What is more than there can be stays so: whoever asks for the memory is told. */
enum { MOST_BITS = 60 };

static int64_t reserve(int64_t *used, int64_t bytes)
{
    int64_t at = *used;
    *used += (bytes + LINE - 1) / LINE * LINE;
    if (*used > (int64_t)1 << MOST_BITS)
        *used = (int64_t)1 << MOST_BITS;
    return at;
}

static int64_t reserve_slots(int64_t *used, int slots, int64_t slot_bytes)
{
    int64_t bytes;
    if (peal_multiply_overflows(slots, slot_bytes, &bytes) || bytes > (int64_t)1 << MOST_BITS)
        bytes = (int64_t)1 << MOST_BITS;
    return reserve(used, bytes);
}

/* Where the rows of an array are whole lines apart, those of its part begin at lines. */
static int64_t reserve_array(int64_t *used, const peal_layout *layout, int64_t element_bytes)
{
    int64_t row = layout->stride[1] * element_bytes;
    int64_t before = (layout->part.lo[0] - layout->stored.lo[0]) * element_bytes % LINE;
    int64_t shift = layout->stored.axis_count < 2 || row % LINE != 0 ? 0 : (LINE - before) % LINE;

    return reserve(used, shift + layout->bytes) + shift;
}

static void lay_out_arrays(const common_input *c, const rank_view *v, segment_map *map)
{
    for (int i = 0; i < array_total(c); i++) {
        bool lent = i < c->graph->array_count && c->graph->arrays[i].data;
        map->array[i] = lent ? -1
                             : reserve_array(&map->bytes, &v->layout[i],
                                             (int64_t)peal_type_bytes(array_type(c, i)));
    }
}

/* Whether a message may be stored in place, as far as that can be seen here: who decides it
 * (credits.c) looks at the order of both ranks. */
static bool may_be_in_place(const common_input *c, const rank_message *m)
{
    const peal_statement *s = c->statement[m->statement];
    return c->mode != PEAL_MODE_SERIAL && s->kind == PEAL_STATEMENT_EXCHANGE &&
           !m->application_reads && c->statement_section[s->id] == LOOP_OUTER &&
           !(s->when && peal_expr_uses(s->when) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT));
}

/* A slot for all pieces, or for those that are staged in any case. */
static int64_t slot_of(const common_input *c, const rank_view *v, const rank_message *m, bool all)
{
    int64_t slot = 0;
    for (int k = 0; k < m->piece_count; k++)
        if (all || !piece_wants_direct(c, v, m->peer, &m->piece[k]))
            slot += (m->piece[k].bytes + 7) / 8 * 8;
    return slot;
}

static int64_t round_slot(int64_t bytes)
{
    return bytes <= SMALL_SLOT ? SMALL_SLOT : (bytes + 63) / 64 * 64;
}

static void lay_out_messages(const common_input *c, const rank_view *v, segment_map *map)
{
    for (int i = 0; i < v->message_count; i++) {
        const rank_message *m = &v->message[i];
        map->flag[i] = map->staging[i] = map->spare[i] = map->credit[i] = -1;
        if (m->outgoing) {
            map->credit[i] = reserve(&map->bytes, 8);
            continue;
        }
        int64_t slot = slot_of(c, v, m, !may_be_in_place(c, m));
        int slots = message_slots(c, m);
        map->slot_bytes[i] = round_slot(slot);
        map->flag[i] = reserve(&map->bytes, 8);
        map->staging[i] = slot <= SMALL_SLOT && 8 + (int64_t)slots * SMALL_SLOT <= LINE
                              ? map->flag[i] + 8
                              : reserve_slots(&map->bytes, slots, map->slot_bytes[i]);
    }
}

static void lay_out_spare(const common_input *c, const rank_view *v, segment_map *map)
{
    map->all_spare = map->bytes;
    for (int i = 0; i < v->message_count; i++) {
        const rank_message *m = &v->message[i];
        int64_t all = slot_of(c, v, m, true);
        if (m->outgoing || !may_be_in_place(c, m) || slot_of(c, v, m, false) == all)
            continue;
        map->spare_slot_bytes[i] = round_slot(all);
        map->spare[i] = reserve_slots(&map->bytes, message_slots(c, m), map->spare_slot_bytes[i]);
    }
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void list_peers(const pass_context *pass, const rank_view *v, segment_map *map)
{
    map->peer = PEAL_ARENA_ARRAY(pass->arena, int, v->message_count + 1);
    for (int i = 0; i < v->message_count; i++)
        map->peer[i] = v->message[i].peer;
    qsort(map->peer, (size_t)v->message_count, sizeof(*map->peer), by_number);
    for (int i = 0; i < v->message_count; i++)
        if (!i || map->peer[i] != map->peer[i - 1])
            map->peer[map->peer_count++] = map->peer[i];
    map->ready = PEAL_ARENA_ARRAY(pass->arena, int64_t, map->peer_count);
    for (int i = 0; i < map->peer_count; i++)
        map->ready[i] = reserve(&map->bytes, 8);
}

const segment_map *map_segment(const common_input *c, const pass_context *pass, rank_view *v)
{
    if (v->segment)
        return v->segment;
    segment_map *map = PEAL_ARENA_NEW(pass->arena, segment_map);
    map->array = PEAL_ARENA_ARRAY(pass->arena, int64_t, array_total(c));
    map->flag = PEAL_ARENA_ARRAY(pass->arena, int64_t, v->message_count);
    map->staging = PEAL_ARENA_ARRAY(pass->arena, int64_t, v->message_count);
    map->slot_bytes = PEAL_ARENA_ARRAY(pass->arena, int64_t, v->message_count);
    map->spare = PEAL_ARENA_ARRAY(pass->arena, int64_t, v->message_count);
    map->spare_slot_bytes = PEAL_ARENA_ARRAY(pass->arena, int64_t, v->message_count);
    map->credit = PEAL_ARENA_ARRAY(pass->arena, int64_t, v->message_count);
    lay_out_arrays(c, v, map);
    map->mailbox = map->bytes;
    lay_out_messages(c, v, map);
    list_peers(pass, v, map);
    if (map->bytes < LINE)
        map->bytes = LINE;
    lay_out_spare(c, v, map);
    return v->segment = map;
}
