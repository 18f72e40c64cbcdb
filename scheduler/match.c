/* Matching: every send has exactly one receive, of the same size and type, in the same loop; and no
 * cycle of waits. */
#include "scheduler/compilation.h"

#include <stdlib.h>
#include <string.h>

/* Ends of a rank by what identifies a message between two ranks. */
static int compare_keys(const message_end *a, const message_end *b)
{
    if (a->outgoing != b->outgoing)
        return a->outgoing ? -1 : 1;
    if (a->peer != b->peer)
        return a->peer < b->peer ? -1 : 1;
    if (a->tag != b->tag)
        return a->tag < b->tag ? -1 : 1;
    if (a->directed != b->directed)
        return a->directed ? -1 : 1;
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        if (a->direction[k] != b->direction[k])
            return a->direction[k] < b->direction[k] ? -1 : 1;
    return 0;
}

static int by_key(const void *left, const void *right)
{
    const message_end *a = *(const message_end *const *)left,
                      *b = *(const message_end *const *)right;
    int order = compare_keys(a, b);
    return order ? order : a < b ? -1 : a > b;
}

void sort_ends(peal_compilation *c, rank_view *v)
{
    v->sorted_end = PEAL_ARENA_ARRAY(c->arena, const message_end *, v->end_count + 1);
    for (int i = 0; i < v->end_count; i++)
        v->sorted_end[i] = &v->end[i];
    qsort(v->sorted_end, (size_t)v->end_count, sizeof(*v->sorted_end), by_key);
}

/* First end of a view that is not below key, and how many equal it. */
static int find_ends(const rank_view *v, const message_end *key, int *count)
{
    int low = 0, high = v->end_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (compare_keys(v->sorted_end[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    int end = low;
    while (end < v->end_count && !compare_keys(v->sorted_end[end], key))
        end++;
    *count = end - low;
    return low;
}

static const char *describe(const peal_compilation *c, const rank_view *v, const message_end *e,
                            char *text, size_t bytes)
{
    int used = snprintf(text, bytes, "%s of `%s` %s rank %d (on rank %d, tag %lld",
                        e->outgoing ? "send" : "recv", array_name(c, e->array),
                        e->outgoing ? "to" : "from", e->peer, v->rank, (long long)e->tag);
    if (e->directed)
        used += snprintf(text + used, bytes - (size_t)used, ", sender's direction [%d, %d, %d]",
                         e->direction[0], e->direction[1], e->direction[2]);
    snprintf(text + used, bytes - (size_t)used, ")");
    return text;
}

static peal_status check_pair(peal_compilation *c, const rank_view *v, const message_end *e,
                              const message_end *twin)
{
    const message_end *from = e->outgoing ? e : twin, *to = e->outgoing ? twin : e;
    const peal_statement *send = c->statement[from->statement], *recv = c->statement[to->statement];
    char text[200];
    describe(c, v, e, text, sizeof(text));
    if (array_type(c, from->array) != array_type(c, to->array))
        return peal_report(c->diagnostics, PEAL_E142, from->source,
                           "send and recv elements of one type",
                           "%s: `%s` is %s, but `%s`, into which it is received, is %s", text,
                           array_name(c, from->array), peal_type_name(array_type(c, from->array)),
                           array_name(c, to->array), peal_type_name(array_type(c, to->array)));
    if (peal_box_points(&from->box) != peal_box_points(&to->box))
        return peal_report(c->diagnostics, PEAL_E141, from->source,
                           "send as many elements as are received",
                           "%s: %lld elements are sent, %lld are received", text,
                           (long long)peal_box_points(&from->box),
                           (long long)peal_box_points(&to->box));
    if (c->statement_loop[send->id] != c->statement_loop[recv->id])
        return peal_report(c->diagnostics, PEAL_E143, from->source,
                           "put both into the same loop body",
                           "%s: send and recv do not stand in the same loop body", text);
    unsigned dynamic = PEAL_USES_COUNTER | PEAL_USES_ELEMENT;
    bool send_when = send->when && peal_expr_uses(send->when) & dynamic;
    bool recv_when = recv->when && peal_expr_uses(recv->when) & dynamic;
    if (send_when != recv_when || (send_when && send->when->text && recv->when->text &&
                                   strcmp(send->when->text, recv->when->text)))
        return peal_report(c->diagnostics, PEAL_E144, from->source,
                           "give send and recv the same `when`",
                           "%s: send and recv happen under different conditions", text);
    return PEAL_STATUS_OK;
}

peal_status match_end(peal_compilation *c, rank_view *v, const message_end *e,
                      const message_end **twin)
{
    char text[200];
    rank_view *other = view_at(c, e->peer, 2);
    if (!other)
        return c->view[e->peer]->status;
    int mine, theirs;
    message_end key = *e;
    find_ends(v, &key, &mine);
    key.outgoing = !e->outgoing;
    key.peer = v->rank;
    int found = find_ends(other, &key, &theirs);
    if (mine > 1)
        return peal_report(c->diagnostics, PEAL_E140, e->source, "give each its own `tag`",
                           "%s: %d such statements: a match would not be unique",
                           describe(c, v, e, text, sizeof(text)), mine);
    if (!theirs)
        return peal_report(c->diagnostics, PEAL_E139, e->source,
                           e->outgoing ? "add the recv, or let fewer ranks send"
                                       : "add the send, or let fewer receive",
                           "%s has no matching %s", describe(c, v, e, text, sizeof(text)),
                           e->outgoing ? "recv" : "send");
    *twin = other->sorted_end[found];
    return theirs > 1 || !e->outgoing ? PEAL_STATUS_OK : check_pair(c, v, e, *twin);
}

/* Deadlock: each rank runs the events of one pass through its program; a receive needs its send. */
typedef struct replay {
    int *at; /* by rank: next message of its view, in program order (sends of a statement first) */
} replay;

static bool send_has_run(peal_compilation *c, const replay *r, const rank_view *v,
                         const rank_message *m)
{
    const rank_view *sender = c->view[m->peer];
    for (int i = r->at[m->peer]; i < sender->message_count; i++) {
        const rank_message *s = &sender->message[sender->program_order[i]];
        if (s->outgoing && s->peer == v->rank && s->statement == m->statement &&
            s->phase == m->phase && s->tag == m->tag &&
            !memcmp(s->direction, m->direction, sizeof(s->direction)))
            return false;
    }
    return true;
}

static peal_status report_cycle(peal_compilation *c, const replay *r, int start)
{
    char text[600];
    int used = 0, rank = start;
    /* walk until a rank repeats: that is on the cycle */
    for (int i = 0; i < c->machine.ranks; i++)
        rank = c->view[rank]->message[c->view[rank]->program_order[r->at[rank]]].peer;
    int first = rank;
    peal_source source = {0};
    do {
        const rank_view *v = c->view[rank];
        const rank_message *m = &v->message[v->program_order[r->at[rank]]];
        const peal_statement *s = c->statement[m->own_statement];
        source = s->source;
        if (used < 500)
            used += snprintf(text + used, sizeof(text) - (size_t)used,
                             "%srank %d waits in `%s` (line %d) for rank %d", used ? ", " : "",
                             rank, s->name, s->source.line, m->peer);
        rank = m->peer;
    } while (rank != first);
    return peal_report(c->diagnostics, PEAL_E145, source, "move the sends above the receives",
                       "deadlock: %s", text);
}

static peal_status find_deadlock(peal_compilation *c)
{
    replay r = {PEAL_ARENA_ARRAY(c->arena, int, c->machine.ranks)};
    bool moved = true;
    while (moved) {
        moved = false;
        for (int rank = 0; rank < c->machine.ranks; rank++) {
            const rank_view *v = c->view[rank];
            while (r.at[rank] < v->message_count) {
                const rank_message *m = &v->message[v->program_order[r.at[rank]]];
                if (!m->outgoing && !send_has_run(c, &r, v, m))
                    break;
                r.at[rank]++;
                moved = true;
            }
        }
    }
    for (int rank = 0; rank < c->machine.ranks; rank++)
        if (r.at[rank] < c->view[rank]->message_count)
            return report_cycle(c, &r, rank);
    return PEAL_STATUS_OK;
}

/* Messages in program order: a view has them by statement; here phases, and sends before receives,
 * are sorted out. */
static void set_program_order(peal_compilation *c, rank_view *v)
{
    int count = 0;
    v->program_order = PEAL_ARENA_ARRAY(c->arena, int, v->message_count + 1);
    for (int first = 0, end; first < v->message_count; first = end) {
        end = first + 1;
        while (end < v->message_count &&
               v->message[end].own_statement == v->message[first].own_statement)
            end++;
        for (int kind = 0; kind < 4; kind++)
            for (int i = first; i < end; i++)
                if (2 * v->message[i].phase + !v->message[i].outgoing == kind)
                    v->program_order[count++] = i;
    }
}

peal_status match_all(peal_compilation *c)
{
    peal_status first = PEAL_STATUS_OK;
    for (int rank = 0; rank < c->machine.ranks; rank++) {
        rank_view *v = view_at(c, rank, 3);
        if (!v && !first)
            first = c->view[rank]->status;
        if (v)
            set_program_order(c, v);
    }
    return first ? first : find_deadlock(c);
}
