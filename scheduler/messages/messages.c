/* Stage 3, messages: what travels between which ranks. Exchanges and reductions make their own
 * messages; those of send and recv statements are made here, once their ends are matched. */
#include "scheduler/messages/messages.h"
#include "scheduler/conditions/conditions.h"

#include <string.h>

/* The count of a message goes before its elements. False: it has none. */
static bool add_header(const common_input *c, const pass_context *pass, rank_message *m,
                       const message_end *from, const message_end *to)
{
    int array = c->statement[from->statement]->u.message.count;
    if (array < 0)
        return false;
    int64_t at = from->peer_index;
    add_piece(c, pass, m,
              (peal_piece){.array = array,
                           .target_array = c->statement[to->statement]->u.message.count,
                           .source = {.axis_count = 1, .lo = {at}, .hi = {at + 1, 1, 1, 1}},
                           .target = {to->peer_index},
                           .target_extent = {1, 1, 1, 1}});
    return true;
}

static peal_status add_explicit(const common_input *c, const pass_context *pass, rank_views *views,
                                condition_table *conditions, rank_view *v, const message_end *end)
{
    const message_end *peer_end;
    peal_status status = match_end(c, pass, views, conditions, v, end, &peer_end);
    if (status)
        return status;
    const message_end *from = end->outgoing ? end : peer_end, *to = end->outgoing ? peer_end : end;
    rank_message m = {.outgoing = end->outgoing,
                      .statement = from->statement,
                      .peer = end->peer,
                      .tag = end->tag,
                      .directed = end->directed};
    memcpy(m.direction, end->direction, sizeof(m.direction));
    m.own_statement = end->statement;
    if (peal_box_is_empty(&from->box))
        return PEAL_STATUS_OK;
    peal_piece piece = {.array = from->array, .target_array = to->array, .source = from->box};
    for (int k = 0; k < PEAL_AXES; k++) {
        piece.target[k] = to->box.lo[k];
        piece.target_extent[k] = to->box.hi[k] - to->box.lo[k];
    }
    piece.counted = add_header(c, pass, &m, from, to);
    add_piece(c, pass, &m, piece);
    add_message(pass, v, m);
    return PEAL_STATUS_OK;
}

peal_status make_messages(const common_input *c, const pass_context *pass, rank_views *views,
                          condition_table *conditions, rank_view *v)
{
    peal_status first = PEAL_STATUS_OK;
    v->message = PEAL_ARENA_ARRAY(pass->arena, rank_message, v->end_count);
    v->message_capacity = v->end_count;
    v->local = PEAL_ARENA_ARRAY(pass->arena, peal_piece *, c->graph->statement_count);
    v->local_count = PEAL_ARENA_ARRAY(pass->arena, int, c->graph->statement_count);
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        peal_status status = PEAL_STATUS_OK;
        int before = v->message_count;
        if (!s || !is_active(v, s))
            continue;
        if (s->kind == PEAL_STATEMENT_EXCHANGE)
            status = add_exchange(c, pass, views, conditions, v, s);
        else if (s->kind == PEAL_STATEMENT_REDUCE)
            status = add_reduction_messages(c, pass, views, conditions, v, s);
        else if (s->kind == PEAL_STATEMENT_SEND || s->kind == PEAL_STATEMENT_RECV)
            for (int k = v->statement[i].first_end;
                 k >= 0 && k < v->end_count && v->end[k].statement == i; k++) {
                peal_status found = add_explicit(c, pass, views, conditions, v, &v->end[k]);
                status = status ? status : found;
            }
        for (int k = before; k < v->message_count; k++)
            if (s->kind == PEAL_STATEMENT_EXCHANGE || s->kind == PEAL_STATEMENT_REDUCE)
                v->message[k].own_statement = i;
        if (status && !first)
            first = status;
    }
    return first;
}
