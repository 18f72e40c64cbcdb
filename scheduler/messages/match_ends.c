/* Matching: every send has exactly one receive, of the same size and type, in the same loop.
 * message_match.c does it for all ranks. */
#include "scheduler/conditions/conditions.h"
#include "scheduler/messages/messages.h"

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

static void sort_ends(const pass_context *pass, rank_view *v)
{
    if (v->sorted_end)
        return;
    v->sorted_end = PEAL_ARENA_ARRAY(pass->arena, const message_end *, v->end_count + 1);
    for (int i = 0; i < v->end_count; i++)
        v->sorted_end[i] = &v->end[i];
    qsort(v->sorted_end, (size_t)v->end_count, sizeof(*v->sorted_end), by_key);
}

/* The first end of a view that equals key and stands in the same body, and how many do; if none
 * does, the first that stands in another one. -1: none equals it. */
static int find_ends(const common_input *c, const rank_view *v, const message_end *key, int *count)
{
    int low = 0, high = v->end_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (compare_keys(v->sorted_end[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    int first = -1;
    *count = 0;
    for (; low < v->end_count && !compare_keys(v->sorted_end[low], key); low++) {
        bool here =
            c->statement_loop[v->sorted_end[low]->statement] == c->statement_loop[key->statement];
        if (first < 0 || (here && !*count))
            first = low;
        *count += here;
    }
    return first;
}

/* ---- What is wrong with a match ---- */

static const char *describe(const common_input *c, const end_summary *r, bool outgoing, char *text,
                            size_t bytes)
{
    const peal_statement *s = c->statement[r->statement];
    int used = snprintf(text, bytes, "%s of `%s` %s rank %d (on rank %d, tag %lld",
                        outgoing ? "send" : "recv", array_name(c, s->u.message.points.array),
                        outgoing ? "to" : "from", outgoing ? r->to : r->from,
                        outgoing ? r->from : r->to, (long long)r->tag);
    if (r->direction >= 0)
        used += snprintf(text + used, bytes - (size_t)used, ", sender's direction [%d, %d, %d]",
                         r->direction % 3 - 1, r->direction / 3 % 3 - 1, r->direction / 9 - 1);
    snprintf(text + used, bytes - (size_t)used, ")");
    return text;
}

/* Several ends of one rank where the other has fewer, while somebody else's end has none: one of
 * them may be meant for that. */
static const char *name_orphan(const common_input *c, const pass_context *pass,
                               const end_summary *orphan, bool outgoing)
{
    const peal_statement *s = c->statement[orphan->statement];
    return peal_arena_print(
        pass->arena,
        outgoing
            ? "rank %d waits for `%s` from rank %d (line %d), which nobody sends: is one of "
              "these meant for it? Else give each its own `tag`"
            : "rank %d sends `%s` to rank %d (line %d), which nobody receives: is one of these "
              "meant for it? Else give each its own `tag`",
        outgoing ? orphan->to : orphan->from, array_name(c, s->u.message.points.array),
        outgoing ? orphan->from : orphan->to, s->source.line);
}

peal_status report_ambiguous(const common_input *c, const pass_context *pass, rank_views *views,
                             const end_summary *r, bool outgoing, int count,
                             const end_summary *orphan)
{
    char text[200];
    peal_story story = {0};
    peal_source source = c->statement[r->statement]->source;
    if (peal_diagnostics_want(pass->diagnostics, PEAL_E_DUPLICATE_TAG, source))
        tell_ambiguous(c, pass, views, r, outgoing, &story);
    const char *hint = names_a_rank_twice(pass, views, r, outgoing)
                           ? "it names this rank more than once: write two statements with a `tag` "
                             "each, or directions, which are told apart"
                       : orphan ? name_orphan(c, pass, orphan, outgoing)
                                : "give each its own `tag`";
    return peal_report_story(pass->diagnostics, PEAL_E_DUPLICATE_TAG, source, hint, &story,
                             "%s: %d such statements: a match would not be unique",
                             describe(c, r, outgoing, text, sizeof(text)), count);
}

peal_status report_unmatched(const common_input *c, const pass_context *pass, rank_views *views,
                             const end_summary *r, bool outgoing)
{
    char text[200];
    peal_story story = {0};
    peal_source source = c->statement[r->statement]->source;
    if (peal_diagnostics_want(pass->diagnostics, PEAL_E_UNMATCHED_MESSAGE, source))
        tell_unmatched(c, pass, views, r, outgoing, &story);
    return peal_report_story(pass->diagnostics, PEAL_E_UNMATCHED_MESSAGE, source,
                             outgoing ? "add the recv, or let fewer ranks send"
                                      : "add the send, or let fewer receive",
                             &story, "%s has no matching %s",
                             describe(c, r, outgoing, text, sizeof(text)),
                             outgoing ? "recv" : "send");
}

static const char *count_named(const common_input *c, const peal_statement *s, char *text,
                               size_t bytes)
{
    int array = s->u.message.count;
    if (array < 0)
        return "no `count`";
    snprintf(text, bytes, "`count: %s` (%s)", array_name(c, array),
             peal_type_name(array_type(c, array)));
    return text;
}

static peal_status report_pair(const common_input *c, const pass_context *pass,
                               const end_summary *from, const end_summary *to, pair_difference how)
{
    static const struct {
        peal_code code;
        const char *hint;
    } said[] = {{PEAL_E_MESSAGE_TYPE_MISMATCH, "send and recv elements of one type"},
                {PEAL_E_MESSAGE_SIZE_MISMATCH, "send as many elements as are received"},
                {PEAL_E_MESSAGE_LOOP_MISMATCH, "put both into the same loop body"},
                {PEAL_E_MESSAGE_CONDITION_MISMATCH, "give send and recv the same `when`"},
                {PEAL_E_MESSAGE_COUNT_MISMATCH, "give both a `count:`, of one type, or neither"}};
    const peal_statement *send = c->statement[from->statement];
    int sent = send->u.message.points.array,
        received = c->statement[to->statement]->u.message.points.array;
    char end[200], what[200], name[2][80];
    peal_story story = {0};
    if (peal_diagnostics_want(pass->diagnostics, said[how].code, send->source))
        tell_pair(c, from, to, how, &story);
    if (how == DIFFERS_IN_TYPE)
        snprintf(what, sizeof(what), "`%s` is %s, but `%s`, into which it is received, is %s",
                 array_name(c, sent), peal_type_name(array_type(c, sent)), array_name(c, received),
                 peal_type_name(array_type(c, received)));
    else if (how == DIFFERS_IN_SIZE)
        snprintf(what, sizeof(what), "%lld elements are sent, %lld are received",
                 (long long)from->count, (long long)to->count);
    else if (how == DIFFERS_IN_COUNT)
        snprintf(what, sizeof(what), "send has %s, recv has %s",
                 count_named(c, send, name[0], sizeof(name[0])),
                 count_named(c, c->statement[to->statement], name[1], sizeof(name[1])));
    else
        snprintf(what, sizeof(what), "send and recv %s",
                 how == DIFFERS_IN_LOOP ? "do not stand in the same loop body"
                                        : "happen under different conditions");
    return peal_report_story(pass->diagnostics, said[how].code, send->source, said[how].hint,
                             &story, "%s: %s", describe(c, from, true, end, sizeof(end)), what);
}

/* Send and receive that do not happen together, though they may look so. */
static peal_status report_conditions(const common_input *c, const pass_context *pass,
                                     condition_table *conditions, const end_summary *from,
                                     const end_summary *to)
{
    const peal_statement *send = c->statement[from->statement], *recv = c->statement[to->statement],
                         *writer = NULL;
    int array = -1;
    char end[200];
    peal_story story = {0};
    const condition_end one = {send, from->condition}, other = {recv, to->condition};
    condition_match how = match_conditions(c, conditions, &one, &other, &writer, &array);
    if (how == CONDITIONS_AGREE)
        return PEAL_STATUS_OK;
    if (how == CONDITIONS_DIFFER)
        return report_pair(c, pass, from, to, DIFFERS_IN_CONDITION);
    peal_code code =
        how == CONDITIONS_CHANGE ? PEAL_E_CONDITION_CHANGES : PEAL_E_CONDITIONS_NOT_COMPARABLE;
    if (peal_diagnostics_want(pass->diagnostics, code, send->source))
        tell_pair(c, from, to, DIFFERS_IN_CONDITION, &story);
    if (how == CONDITIONS_CHANGE && story.event_count) {
        int rank = writer->id < recv->id && recv->id < send->id ? to->to : from->from;
        int write = peal_story_add(&story, rank, story_step(c, writer, rank), writer->source,
                                   "`%s` writes `%s`", writer->name, array_name(c, array));
        peal_story_connect(&story, write, "comes between it and", send->id < recv->id ? 1 : 0);
    }
    if (how == CONDITIONS_CHANGE)
        return peal_report_story(
            pass->diagnostics, code, send->source,
            "write it behind both, or keep the value of the condition in a buffer of its own",
            &story,
            "%s: its `when` and that of the recv in line %d name `%s`, which `%s` (line %d) writes "
            "in between",
            describe(c, from, true, end, sizeof(end)), recv->source.line, array_name(c, array),
            writer->name, writer->source.line);
    return peal_report_story(
        pass->diagnostics, code, send->source, "give send and recv the same text of `when`", &story,
        "%s: whether its `when` is that of the recv in line %d cannot be decided",
        describe(c, from, true, end, sizeof(end)), recv->source.line);
}

/* One end counts its elements and the other doesn't, or in another type. */
static bool counts_differ(const common_input *c, int sent, int received)
{
    if (sent < 0 || received < 0)
        return sent >= 0 || received >= 0;
    return array_type(c, sent) != array_type(c, received);
}

peal_status check_pair(const common_input *c, const pass_context *pass, condition_table *conditions,
                       const end_summary *from, const end_summary *to)
{
    const peal_statement *send = c->statement[from->statement], *recv = c->statement[to->statement];
    if (array_type(c, send->u.message.points.array) != array_type(c, recv->u.message.points.array))
        return report_pair(c, pass, from, to, DIFFERS_IN_TYPE);
    if (from->count != to->count)
        return report_pair(c, pass, from, to, DIFFERS_IN_SIZE);
    if (counts_differ(c, send->u.message.count, recv->u.message.count))
        return report_pair(c, pass, from, to, DIFFERS_IN_COUNT);
    if (c->statement_loop[send->id] != c->statement_loop[recv->id])
        return report_pair(c, pass, from, to, DIFFERS_IN_LOOP);
    return report_conditions(c, pass, conditions, from, to);
}

peal_status match_end(const common_input *c, const pass_context *pass, rank_views *views,
                      condition_table *conditions, rank_view *v, const message_end *e,
                      const message_end **peer_end)
{
    rank_view *other = view_at(views, e->peer, STAGE_TASKS);
    if (!other)
        return views->of[e->peer]->status;
    int mine, theirs;
    message_end key = *e;
    end_summary summary = summarize_end(v, e);
    sort_ends(pass, v);
    sort_ends(pass, other);
    find_ends(c, v, &key, &mine);
    key.outgoing = !e->outgoing;
    key.peer = v->rank;
    int found = find_ends(c, other, &key, &theirs);
    if (mine > 1)
        return report_ambiguous(c, pass, views, &summary, e->outgoing, mine, NULL);
    if (found < 0)
        return report_unmatched(c, pass, views, &summary, e->outgoing);
    *peer_end = other->sorted_end[found];
    end_summary end = summarize_end(other, *peer_end);
    if (theirs > 1)
        return report_ambiguous(c, pass, views, &end, !e->outgoing, theirs, NULL);
    return e->outgoing ? check_pair(c, pass, conditions, &summary, &end)
                       : check_pair(c, pass, conditions, &end, &summary);
}
