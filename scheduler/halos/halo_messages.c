/* What messages of one's own bring into halos, and how old it is. */
#include "scheduler/halos/cells.h"

#include <string.h>

static bool is_of_field(const halo_map *m, const message_end *e, int statement, bool outgoing)
{
    return e->statement == statement && e->outgoing == outgoing && e->array >= 0 &&
           e->array < m->c->graph->array_count && m->name_of[e->array] >= 0;
}

/* The send of the same field that a receive is for, further up, and whose it is; NULL: none. */
static const message_end *earlier_send(const halo_map *m, const message_end *recv,
                                       const rank_view **sender)
{
    for (int i = 0; i < m->neighbour_count; i++) {
        const halo_neighbour *n = &m->neighbour[i];
        bool from = true;
        for (int k = 0; k < PEAL_RANK_AXES; k++)
            from &= recv->directed ? n->direction[k] == -recv->direction[k] : n->rank == recv->peer;
        for (int k = 0; from && k < n->view->end_count; k++) {
            const message_end *e = &n->view->end[k];
            *sender = n->view;
            if (e->outgoing && e->array == recv->array && e->tag == recv->tag &&
                e->statement < recv->statement && e->directed == recv->directed &&
                (e->directed ? !memcmp(e->direction, recv->direction, sizeof(e->direction))
                             : e->peer == m->rank))
                return e;
        }
    }
    return NULL;
}

/* What a message carries is as old as its send: a name of its own, renewed there. */
static int add_message_name(cell_builder *b, const message_end *recv)
{
    halo_map *m = b->m;
    for (int i = 0; i < m->name_count; i++)
        if (m->name[i].recv == recv->statement && m->name[i].array == recv->array &&
            !m->name[i].is_back)
            return i;
    PEAL_ARENA_ROOM(m->arena, m->name, m->name_count, m->name_capacity);
    m->name[m->name_count] = (halo_name){.array = recv->array,
                                         .recv = recv->statement,
                                         .grid = m->name[m->name_of[recv->array]].grid};
    return m->name_count++;
}

/* ---- Halos that go back to their owner ---- */

/* Whether the two happen in each iteration of one body, in this order. */
static bool in_turns(const halo_map *m, const peal_statement *send, const peal_statement *recv)
{
    const unsigned varies = PEAL_USES_COUNTER | PEAL_USES_ELEMENT;
    return send->id < recv->id &&
           m->c->statement_loop[send->id] == m->c->statement_loop[recv->id] &&
           !(send->when && peal_expr_uses(send->when) & varies) &&
           !(recv->when && peal_expr_uses(recv->when) & varies);
}

static bool is_same_way(const message_end *a, const message_end *b)
{
    return a->tag == b->tag && a->directed == b->directed &&
           (!a->directed || !memcmp(a->direction, b->direction, sizeof(a->direction)));
}

/* My send of just the halo points that a neighbour's receive brings home; NULL: none, or not that
 * alone. */
static const message_end *send_back(const halo_map *m, int name, const halo_neighbour *n,
                                    const message_end *recv)
{
    const message_end *found = NULL;
    int count = 0, back = 0;
    bool to_me = recv->directed ? !memcmp(recv->direction, n->direction, sizeof(recv->direction))
                                : recv->peer == m->rank;
    for (int i = 0; i < m->view->end_count && to_me; i++) {
        const message_end *e = &m->view->end[i];
        if (!e->outgoing || !is_same_way(e, recv) || (!e->directed && e->peer != n->rank))
            continue;
        found = e;
        count++;
    }
    for (int i = 0; i < n->view->end_count && count == 1; i++) {
        const message_end *e = &n->view->end[i];
        back += !e->outgoing && is_same_way(e, recv) && e->peer == recv->peer;
    }
    if (back != 1 || found->array != recv->array ||
        m->c->statement[found->statement]->u.message.count >= 0 ||
        !in_turns(m, m->c->statement[found->statement], m->c->statement[recv->statement]))
        return NULL;
    peal_box moved = box_in_halo(m, name, n, &recv->box);
    for (int k = 0; k < PEAL_AXES; k++)
        if (moved.lo[k] != found->box.lo[k] || moved.hi[k] != found->box.hi[k])
            return NULL;
    return found;
}

static int add_back_name(cell_builder *b, const message_end *recv)
{
    halo_map *m = b->m;
    for (int i = 0; i < m->name_count; i++)
        if (m->name[i].is_back && m->name[i].recv == recv->statement &&
            m->name[i].array == recv->array)
            return i;
    PEAL_ARENA_ROOM(m->arena, m->name, m->name_count, m->name_capacity);
    m->name[m->name_count] = (halo_name){.array = recv->array,
                                         .recv = recv->statement,
                                         .is_back = true,
                                         .grid = m->name[m->name_of[recv->array]].grid};
    return m->name_count++;
}

/* What a neighbour receives into its own points. */
static void use_recv_of(cell_builder *b, const peal_statement *s, int name, const halo_neighbour *n,
                        const message_end *recv)
{
    const message_end *send = b->cuts ? NULL : send_back(b->m, name, n, recv);
    if (!send) {
        use_box_of(b, name, n, &recv->box);
        return;
    }
    const peal_expr *when = b->effect->when;
    end_effect(b, s);
    begin_effect(b, s, name, -1, s->source);
    int back = add_back_name(b, recv);
    b->effect->when = when;
    b->effect->back = back;
    use_box_of(b, name, n, &recv->box);
    end_effect(b, s);
    const peal_statement *sent = b->m->c->statement[send->statement];
    begin_effect(b, sent, back, -1, sent->source);
    set_when(b, sent, b->m->view);
    use_box(b, back, CELLS_RENEWED, &send->box);
    end_effect(b, sent);
    begin_effect(b, s, name, -1, s->source);
    b->effect->when = when;
}

/* ---- Statements ---- */

void use_recv(cell_builder *b, const peal_statement *s)
{
    halo_map *m = b->m;
    const rank_view *sender;
    int name = m->name_of[s->u.message.points.array];
    if (name < 0)
        return;
    begin_effect(b, s, name, -1, s->source);
    set_when(b, s, m->view);
    for (int i = 0; i < m->view->end_count; i++) {
        const message_end *e = &m->view->end[i];
        if (!is_of_field(m, e, s->id, false) || s->u.message.count >= 0)
            continue;
        use_box(b, name, CELLS_RENEWED, &e->box);
        if (earlier_send(m, e, &sender)) {
            int from = add_message_name(b, e);
            b->effect->from = from;
        }
    }
    for (int i = 0; i < m->neighbour_count; i++) {
        const rank_view *its = m->neighbour[i].view;
        if (its->statement[s->id].when) { /* in iterations of its own */
            end_effect(b, s);
            begin_effect(b, s, name, -1, s->source);
            set_when(b, s, its);
        }
        for (int k = 0; k < its->end_count; k++)
            if (is_of_field(m, &its->end[k], s->id, false))
                use_recv_of(b, s, name, &m->neighbour[i], &its->end[k]);
    }
    end_effect(b, s);
}

/* What is sent now is what comes by the names of its receives. */
void use_sends(cell_builder *b)
{
    halo_map *m = b->m;
    for (int i = 0; i < m->view->end_count; i++) {
        const message_end *e = &m->view->end[i];
        if (e->outgoing || !is_of_field(m, e, e->statement, false))
            continue;
        const rank_view *sender;
        const message_end *send = earlier_send(m, e, &sender);
        if (!send)
            continue;
        const peal_statement *s = m->c->statement[send->statement];
        begin_effect(b, s, add_message_name(b, e), -1, s->source);
        set_when(b, s, sender);
        use_box(b, b->effect->name, CELLS_RENEWED, &e->box);
        end_effect(b, s);
    }
}
