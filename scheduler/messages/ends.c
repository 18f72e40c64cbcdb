/* Stage 2, ends: what send and recv statements name on a rank. */
#include "scheduler/conditions/conditions.h"
#include "scheduler/geometry/geometry.h"
#include "scheduler/messages/messages.h"

/* Contents of a constant list on a rank. */
typedef struct constant_list {
    int array; /* -1: none */
    peal_type type;
    peal_constant values;
} constant_list;

static peal_status open_list(const common_input *c, const rank_view *v, int array,
                             constant_list *out)
{
    *out = (constant_list){.array = array};
    if (array < 0)
        return PEAL_STATUS_OK;
    out->type = array_type(c, array);
    return c->graph->constant(c->graph, array, v->rank, c->machine.ranks, false, &out->values);
}

static peal_status constant_at(const common_input *c, const pass_context *pass, const rank_view *v,
                               const constant_list *list, int64_t index, int64_t *out,
                               peal_source source)
{
    peal_type type = list->type;
    if (index >= list->values.count || (type != PEAL_I32 && type != PEAL_I64))
        return peal_report(pass->diagnostics, PEAL_E_INVALID_LIST, source,
                           "give an integer buffer with enough elements",
                           "`%s` (%s, %lld elements on rank %d) has no element %lld",
                           array_name(c, list->array), peal_type_name(type),
                           (long long)list->values.count, v->rank, (long long)index);
    *out = type == PEAL_I32 ? ((const int32_t *)list->values.data)[index]
                            : ((const int64_t *)list->values.data)[index];
    return PEAL_STATUS_OK;
}

static int64_t peer_count(const common_input *c, const rank_view *v, const peal_peers *p)
{
    switch (p->kind) {
    case PEAL_PEER_LIST:
        return v->layout[p->list].stored.hi[0];
    case PEAL_PEER_RANKS:
        return p->rank_count;
    case PEAL_PEER_ALL:
        return c->machine.ranks;
    case PEAL_PEER_ALONG:
        return c->dims[p->axis];
    default:
        return 1;
    }
}

/* Rank of peer k; -1: nobody there. */
static peal_status peer_at(const common_input *c, const pass_context *pass, const rank_view *v,
                           const peal_peers *p, const constant_list *list, int64_t k, int64_t *out,
                           int direction[PEAL_RANK_AXES])
{
    peal_status status = PEAL_STATUS_OK;
    *out = k;
    switch (p->kind) {
    case PEAL_PEER_DIRECTION:
        status = direction_of(pass, &v->scope, &p->direction, direction);
        if (!status)
            *out = neighbour(c, v->position, direction);
        return status;
    case PEAL_PEER_RANK:
        status = peal_expr_integer(p->rank, &v->scope, 0, out, pass->diagnostics);
        break;
    case PEAL_PEER_RANKS:
        status = peal_expr_integer(p->ranks[k], &v->scope, 0, out, pass->diagnostics);
        break;
    case PEAL_PEER_LIST:
        status = constant_at(c, pass, v, list, k, out, p->source);
        break;
    case PEAL_PEER_ALONG: {
        int position[PEAL_RANK_AXES] = {v->position[0], v->position[1], v->position[2]};
        static const int nowhere[PEAL_RANK_AXES] = {0, 0, 0};
        position[p->axis] = (int)k;
        *out = neighbour(c, position, nowhere);
        break;
    }
    default:
        break;
    }
    if (!status && (*out < 0 || *out >= c->machine.ranks))
        status = peal_report(pass->diagnostics, PEAL_E_NO_SUCH_RANK, p->source,
                             "name a rank from 0 to ranks - 1",
                             "rank %lld on rank %d: there are %d ranks", (long long)*out, v->rank,
                             c->machine.ranks);
    return status;
}

/* What the ends of a statement on a rank have in common. */
typedef struct statement_ends {
    const peal_statement *s;
    int64_t count;                /* peers, some of which may not be there */
    constant_list peers, offsets; /* where it names lists */
    bool cut;                     /* each peer has elements of its own */
    int64_t each;                 /* so many, if no list says where they begin */
    peal_box all;
} statement_ends;

static peal_status check_offsets(const common_input *c, const pass_context *pass,
                                 const statement_ends *e)
{
    const peal_message_statement *m = &e->s->u.message;
    if (e->cut && !is_plain_buffer(c, m->points.array))
        return peal_report(pass->diagnostics, PEAL_E_OFFSETS_OUT_OF_BOUNDS, e->s->source,
                           "use a buffer without `box`",
                           "`offsets` count elements; `%s` has coordinates",
                           array_name(c, m->points.array));
    if (!e->cut && e->count > 1 && e->s->kind == PEAL_STATEMENT_RECV)
        return peal_report(pass->diagnostics, PEAL_E_OFFSETS_OUT_OF_BOUNDS, e->s->source,
                           "say `offsets:` (a buffer, or elements a peer)",
                           "%lld peers would all be received into the same elements of `%s`",
                           (long long)e->count, array_name(c, m->points.array));
    return PEAL_STATUS_OK;
}

/* Where a run counts elements there is one count for each peer. */
static peal_status check_counts(const common_input *c, const pass_context *pass, const rank_view *v,
                                const statement_ends *e)
{
    int array = e->s->u.message.count;
    int64_t have = array >= 0 ? v->layout[array].stored.hi[0] : e->count;
    if (have >= e->count)
        return PEAL_STATUS_OK;
    return peal_report(pass->diagnostics, PEAL_E_MESSAGE_COUNT_MISMATCH, e->s->source,
                       "give it an element for each peer",
                       "`%s` has %lld elements on rank %d, but there are %lld peers",
                       array_name(c, array), (long long)have, v->rank, (long long)e->count);
}

/* Which elements of the statement's array go to (or come from) peer k. */
static peal_status piece_of(const common_input *c, const pass_context *pass, const rank_view *v,
                            const statement_ends *e, int64_t k, peal_box *out)
{
    const peal_message_statement *m = &e->s->u.message;
    int64_t lo = 0, hi = 0;
    peal_status status = PEAL_STATUS_OK;
    *out = e->all;
    if (!e->cut)
        return status;
    if (m->offsets >= 0) {
        status = constant_at(c, pass, v, &e->offsets, k, &lo, m->peers.source);
        if (!status)
            status = constant_at(c, pass, v, &e->offsets, k + 1, &hi, m->peers.source);
    } else if (peal_multiply_overflows(k, e->each, &lo) || peal_add_overflows(lo, e->each, &hi))
        lo = -1;
    if (!status && (lo < 0 || hi < lo || hi > v->layout[m->points.array].stored.hi[0]))
        status = peal_report(
            pass->diagnostics, PEAL_E_OFFSETS_OUT_OF_BOUNDS, e->s->source,
            "offsets grow from 0 to at most the buffer's count",
            "elements [%lld, %lld) of peer %lld are outside `%s`, which has %lld on rank %d",
            (long long)lo, (long long)hi, (long long)k, array_name(c, m->points.array),
            (long long)v->layout[m->points.array].stored.hi[0], v->rank);
    if (!status && lo == hi && m->count >= 0)
        status = peal_report(pass->diagnostics, PEAL_E_MESSAGE_COUNT_MISMATCH, e->s->source,
                             "leave room for one element at least",
                             "of `%s`, whose elements a run counts, peer %lld has none on rank %d",
                             array_name(c, m->points.array), (long long)k, v->rank);
    out->lo[0] = lo;
    out->hi[0] = hi;
    return status;
}

static peal_status begin_ends(const common_input *c, const pass_context *pass, const rank_view *v,
                              const peal_statement *s, message_end *common, statement_ends *out)
{
    const peal_message_statement *m = &s->u.message;
    box_list boxes;
    peal_status status = points_of(c, pass, v, &m->points, &boxes);
    *out = (statement_ends){.s = s,
                            .count = peer_count(c, v, &m->peers),
                            .cut = m->offsets >= 0 || m->offset};
    if (!status)
        status = peal_expr_integer(m->tag, &v->scope, 0, &common->tag, pass->diagnostics);
    if (!status && boxes.count > 1)
        status = peal_report(pass->diagnostics, PEAL_E_UNSUITABLE_BOX, m->points.source,
                             "send one box", "a message of %d boxes", boxes.count);
    if (status || !out->count)
        return status;
    out->all = boxes.count ? boxes.box[0] : (peal_box){.axis_count = 1};
    status = open_list(c, v, m->peers.kind == PEAL_PEER_LIST ? m->peers.list : -1, &out->peers);
    if (!status)
        status = open_list(c, v, m->offsets, &out->offsets);
    if (!status && m->offsets < 0)
        status = peal_expr_integer(m->offset, &v->scope, 0, &out->each, pass->diagnostics);
    return status;
}

/* An end is filled where it stays: there may be millions. */
static peal_status make_statement_ends(const common_input *c, const pass_context *pass,
                                       rank_view *v, const peal_statement *s)
{
    const peal_message_statement *m = &s->u.message;
    message_end all = {.outgoing = s->kind == PEAL_STATEMENT_SEND,
                       .statement = s->id,
                       .array = m->points.array,
                       .condition = v->statement[s->id].condition,
                       .directed = m->peers.kind == PEAL_PEER_DIRECTION};
    statement_ends common;
    bool checked = false;
    peal_status status = begin_ends(c, pass, v, s, &all, &common);
    for (int64_t k = 0; !status && k < common.count; k++) {
        int64_t peer;
        message_end *end = &v->end[v->end_count];
        *end = all;
        status = peer_at(c, pass, v, &m->peers, &common.peers, k, &peer, end->direction);
        if (status || peer < 0)
            continue;
        if (end->directed && !end->outgoing)
            for (int a = 0; a < PEAL_RANK_AXES; a++)
                end->direction[a] = -end->direction[a];
        end->peer = (int)peer;
        end->peer_index = k;
        if (!checked)
            status = check_offsets(c, pass, &common);
        if (!status && !checked)
            status = check_counts(c, pass, v, &common);
        checked = true;
        if (!status)
            status = piece_of(c, pass, v, &common, k, &end->box);
        v->end_count += !status;
    }
    return status;
}

static bool has_ends(const rank_view *v, const peal_statement *s)
{
    return s && (s->kind == PEAL_STATEMENT_SEND || s->kind == PEAL_STATEMENT_RECV) &&
           is_active(v, s);
}

/* All at once: there may be millions. */
static void reserve_ends(const common_input *c, const pass_context *pass, rank_view *v)
{
    int64_t count = 0;
    for (int i = 0; i < c->graph->statement_count; i++)
        if (has_ends(v, c->statement[i]))
            count += peer_count(c, v, &c->statement[i]->u.message.peers);
    if (count > INT32_MAX)
        peal_arena_fail(pass->arena, (size_t)count * sizeof(message_end));
    v->end = PEAL_ARENA_ARRAY(pass->arena, message_end, count);
}

peal_status make_ends(const common_input *c, const pass_context *pass, rank_view *v)
{
    peal_status first = PEAL_STATUS_OK;
    reserve_ends(c, pass, v);
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        if (!has_ends(v, s))
            continue;
        v->statement[i].first_end = v->end_count;
        peal_status status = make_statement_ends(c, pass, v, s);
        if (status && !first)
            first = status;
    }
    return first;
}
