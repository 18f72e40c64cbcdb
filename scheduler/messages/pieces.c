/* Messages of a rank and their pieces, one by one. */
#include "scheduler/messages/messages.h"

#include <string.h>

void add_piece(const common_input *c, const pass_context *pass, rank_message *m, peal_piece piece)
{
    int64_t points = peal_box_points(&piece.source);
    piece.bytes = points * (int64_t)peal_type_bytes(array_type(c, piece.array));
    if (!(m->piece_count & (m->piece_count - 1))) { /* full at powers of two */
        peal_piece *grown =
            PEAL_ARENA_ARRAY(pass->arena, peal_piece, m->piece_count ? 2 * m->piece_count : 1);
        if (m->piece_count)
            memcpy(grown, m->piece, (size_t)m->piece_count * sizeof(*grown));
        m->piece = grown;
    }
    m->piece[m->piece_count++] = piece;
}

rank_message *add_message(const pass_context *pass, rank_view *v, rank_message m)
{
    PEAL_ARENA_ROOM(pass->arena, v->message, v->message_count, v->message_capacity);
    v->message[v->message_count] = m;
    return &v->message[v->message_count++];
}
