/* Messages by direction that nobody sends: where the topology has several ranks along the axes of a
 * direction, and each rank that gets to the statement lies at the end. `to: [0, 1]` under `when:
 * rank == 2` is such a one; often ranks 0 and 1 were meant. On few ranks an axis may have one rank,
 * and nothing is to be sent: that is no mistake. */
#include "scheduler/check/check.h"
#include "scheduler/conditions/conditions.h"
#include "scheduler/geometry/geometry.h"

void begin_directions(const common_input *c, const pass_context *pass, direction_use **out)
{
    bool any = false;
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        any |= s && (s->kind == PEAL_STATEMENT_SEND || s->kind == PEAL_STATEMENT_RECV) &&
               s->u.message.peers.kind == PEAL_PEER_DIRECTION;
    }
    *out = any ? PEAL_ARENA_ARRAY(pass->arena, direction_use, c->graph->statement_count) : NULL;
}

void note_directions(const common_input *c, const pass_context *pass, const rank_view *v,
                     direction_use *use)
{
    const pass_context quiet = {pass->arena, NULL};
    for (int i = 0; use && i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        int direction[PEAL_RANK_AXES];
        if (!s || (s->kind != PEAL_STATEMENT_SEND && s->kind != PEAL_STATEMENT_RECV) ||
            s->u.message.peers.kind != PEAL_PEER_DIRECTION || use[i].met || !is_active(v, s) ||
            direction_of(&quiet, &v->scope, &s->u.message.peers.direction, direction))
            continue;
        bool wide = true;
        for (int k = 0; k < PEAL_RANK_AXES; k++)
            wide = wide && (!direction[k] || c->dims[k] > 1);
        use[i].met = neighbour(c, v->position, direction) >= 0;
        if (!wide || use[i].ended)
            continue;
        use[i].ended = true;
        use[i].rank = v->rank;
    }
}

peal_status report_directions(const common_input *c, const pass_context *pass,
                              const direction_use *use)
{
    peal_status first = PEAL_STATUS_OK;
    for (int i = 0; use && i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        if (!use[i].ended || use[i].met)
            continue;
        const peal_message_statement *m = &s->u.message;
        peal_status status = peal_report(
            pass->diagnostics, PEAL_E_DIRECTION_OF_NOBODY, m->peers.source,
            "a list in `to` or `from` is a direction; if ranks are meant, write {ranks: [...]}",
            "no rank that gets to `%s` has a neighbour in its direction (rank %d has none)",
            s->name, use[i].rank);
        first = first ? first : status;
    }
    return first;
}
