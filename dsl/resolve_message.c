/* Communication: exchange, send, recv, reduce and allreduce over ranks. */
#include "base/expression.h"
#include "dsl/resolve.h"

#include <string.h>

typedef struct exchange_parse {
    peal_parser *parser;
    peal_exchange_item list[PEAL_GRAPH_EXCHANGE];
    int count;
} exchange_parse;

static void resolve_item(exchange_parse *e, const peal_access_desc *item, const char *name,
                         peal_source source)
{
    peal_parser *parser = e->parser;
    peal_exchange_item to = {.into = -1,
                             .footprint = PEAL_FOOTPRINT_WHOLE,
                             .source = peal_graph_place(parser->graph, name, source)};
    to.array = peal_resolve_array_name(parser, name, source, "`exchange`");
    if (to.array < 0)
        return;
    const peal_array *array = &parser->arrays[to.array];
    bool twice = false, good = true;
    for (int i = 0; i < e->count; i++)
        twice = twice || e->list[i].array == to.array;
    if (array->kind != PEAL_ARRAY_FIELD)
        peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, name, source,
                           "buffers have no halo; send and recv them", "`%s` is not a field",
                           array->name);
    else if (twice)
        peal_parser_report(parser, PEAL_E_DUPLICATE_ARRAY, name, source, NULL,
                           "`%s` stands twice in an exchange", array->name);
    else if ((item->grow && item->star) || item->box || item->per_tile || item->tile)
        peal_parser_report(parser, PEAL_E_CONFLICTING_KEYS, name, source, NULL,
                           "an exchange takes all of the halo, or grow or star of it");
    else if (e->count == PEAL_GRAPH_EXCHANGE)
        peal_parser_report(parser, PEAL_E_TOO_MANY_ACCESSES, name, source, "write two exchanges",
                           "an exchange has at most %d fields", PEAL_GRAPH_EXCHANGE);
    else {
        if (item->grow || item->star) {
            to.footprint = item->grow ? PEAL_FOOTPRINT_GROW : PEAL_FOOTPRINT_STAR;
            good = peal_parse_amount(parser, item->grow ? item->grow : item->star, source,
                                     PEAL_ALLOW_UNIFORM | PEAL_ALLOW_COUNTERS, array->axis_count,
                                     &to.amount);
        }
        if (good)
            e->list[e->count++] = to;
    }
}

void peal_resolve_exchange(peal_parser *parser, const peal_exchange_desc *desc, peal_statement *out)
{
    peal_arena *arena = parser->graph->arena;
    exchange_parse *e = PEAL_ARENA_NEW(arena, exchange_parse);
    int given = 0;
    e->parser = parser;
    for (; given < PEAL_GRAPH_EXCHANGE && desc->exchange[given].name; given++) {
        const peal_access_desc *item = &desc->exchange[given];
        peal_source source = item->source.line > 0 ? item->source : desc->source;
        peal_members members = peal_members_of(parser, item->name, source);
        int failures = parser->failures;
        for (int i = 0; i < members.count && parser->failures == failures; i++)
            resolve_item(e, item, peal_member_name(parser, &members, i), members.source);
    }
    if (given == 0)
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, NULL, desc->source, NULL,
                           "an exchange names no field");
    out->u.exchange.item = e->list;
    out->u.exchange.item_count = e->count;
    if (!out->name) {
        out->name = "exchange";
        for (int i = 0; i < e->count; i++)
            out->name =
                peal_arena_print(arena, "%s %s", out->name, parser->arrays[e->list[i].array].name);
    }
}

static int resolve_axis(peal_parser *parser, const char *word, peal_source source)
{
    static const char *const axes[] = {"x", "y", "z"};
    return peal_parse_word(parser, word, source, "axis", axes, PEAL_RANK_AXES);
}

/* The number of the buffer that text names as a list, -1 if it isn't a name of one. */
static int list_named(peal_parser *parser, const char *text)
{
    size_t length;
    int declaration = peal_find_declaration(parser, text, &length);
    if (declaration < 0 || (text[length] && text[length] != '('))
        return -1;
    int index = parser->family[declaration].first;
    const peal_array *array = &parser->arrays[index];
    bool scalar = peal_is_one_element(parser, array);
    if (array->kind != PEAL_ARRAY_BUFFER || (!array->file && !array->values && scalar))
        return -1;
    return peal_resolve_array_name(parser, text, array->source, "a list");
}

/* Ranks by name of a list, or one by one. */
static void resolve_ranks(peal_parser *parser, const char *text, peal_source source,
                          peal_peers *out)
{
    out->list = list_named(parser, text);
    if (out->list >= 0) {
        out->kind = PEAL_PEER_LIST;
        return;
    }
    const peal_item *item = peal_parse_list(parser, text, source, PEAL_ALLOW_STATIC, NULL);
    if (!item)
        return;
    int count = item->is_list ? item->count : 1;
    const peal_expr **rank = PEAL_ARENA_ARRAY(parser->graph->arena, const peal_expr *, count + 1);
    for (int i = 0; i < count; i++) {
        const peal_item *one = item->is_list ? &item->item[i] : item;
        rank[i] = one->expr;
        if (!one->expr)
            peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, NULL, one->source, NULL,
                               "`ranks` lists numbers of ranks: [0, 1]");
        if (!one->expr || !peal_require_integer(parser, one->expr, "a rank"))
            return;
    }
    if (count == 0)
        peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, text, source, NULL,
                           "`ranks` lists nobody: nothing would be sent or received");
    out->kind = PEAL_PEER_RANKS;
    out->ranks = rank;
    out->rank_count = count;
}

/* A direction has at most the axes that ranks have. */
static void check_direction(peal_parser *parser, const char *text, peal_source source,
                            const peal_direction *direction)
{
    const peal_graph_data *data = parser->data;
    int axes = data->topology.given ? data->topology.axis_count : 0;
    for (int i = 0; i < data->array_count && !data->topology.given; i++)
        if (parser->arrays[i].kind == PEAL_ARRAY_FIELD && parser->arrays[i].axis_count > axes)
            axes = parser->arrays[i].axis_count;
    axes = axes ? axes : 1;
    if (direction->axis_count > axes)
        peal_parser_report(parser, PEAL_E_INVALID_DIRECTION, text, source,
                           "if ranks are meant, write {ranks: [...]}",
                           "a direction with %d steps, but ranks lie along %d ax%cs",
                           direction->axis_count, axes, axes == 1 ? 'i' : 'e');
}

static void resolve_peers(peal_parser *parser, const peal_message_desc *desc, const char *text,
                          const char *word, peal_peers *out)
{
    const char *along = desc->along, *ranks = desc->ranks;
    peal_source source = desc->source;
    *out = (peal_peers){.list = -1, .kind = PEAL_PEER_ALL};
    out->source = peal_graph_place(parser->graph, along ? along : ranks ? ranks : text, source);
    if ((along && text) || (ranks && text) || (along && ranks)) {
        peal_parser_report(parser, PEAL_E_CONFLICTING_KEYS, along ? along : ranks, source, NULL,
                           "`%s` and `%s` together", text ? word : "ranks",
                           along ? "along" : "ranks");
        return;
    }
    if (ranks) {
        resolve_ranks(parser, ranks, source, out);
        return;
    }
    if (along) {
        int axis = resolve_axis(parser, along, source);
        out->kind = PEAL_PEER_ALONG;
        out->axis = axis < 0 ? 0 : axis;
        return;
    }
    if (!text) {
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, NULL, source,
                           "a direction [0, -1], a rank, {ranks: [0, 1]}, all, or {along: x}",
                           "`%s` is missing", word);
        return;
    }
    if (!strcmp(text, "all"))
        return;
    if (text[strspn(text, " \t\n")] == '[') {
        out->kind = PEAL_PEER_DIRECTION;
        if (peal_parse_direction(parser, text, source, PEAL_ALLOW_STATIC, &out->direction))
            check_direction(parser, text, source, &out->direction);
        return;
    }
    out->list = list_named(parser, text);
    out->kind = out->list >= 0 ? PEAL_PEER_LIST : PEAL_PEER_RANK;
    if (out->kind == PEAL_PEER_LIST)
        return;
    parser->also[0] = "all";
    out->rank = peal_parse_expression(parser, text, source, PEAL_ALLOW_STATIC);
    parser->also[0] = NULL;
    peal_require_integer(parser, out->rank, "a rank");
}

static void resolve_offsets(peal_parser *parser, const peal_message_desc *desc,
                            peal_message_statement *out)
{
    out->offsets = -1;
    if (!desc->offsets)
        return;
    if (out->peers.kind == PEAL_PEER_DIRECTION || out->peers.kind == PEAL_PEER_RANK)
        peal_parser_report(parser, PEAL_E_CONFLICTING_KEYS, desc->offsets, desc->source,
                           "offsets say which piece each of several peers gets",
                           "offsets with a single peer");
    out->offsets = list_named(parser, desc->offsets);
    if (out->offsets >= 0)
        return;
    out->offset = peal_parse_expression(parser, desc->offsets, desc->source, PEAL_ALLOW_STATIC);
    peal_require_integer(parser, out->offset, "offsets");
}

/* Counts are elements of a buffer, one for each peer. */
static void resolve_count(peal_parser *parser, const peal_message_desc *desc,
                          peal_message_statement *out)
{
    out->count = -1;
    if (!desc->count)
        return;
    int array = peal_resolve_array_name(parser, desc->count, desc->source, "`count`");
    if (array < 0 || out->points.array < 0)
        return;
    const peal_array *count = &parser->arrays[array], *sent = &parser->arrays[out->points.array];
    if (count->kind != PEAL_ARRAY_BUFFER || count->points.kind != PEAL_POINTS_ONE ||
        (count->type != PEAL_I32 && count->type != PEAL_I64))
        peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, desc->count, desc->source,
                           "say {type: i32}",
                           "`%s` is no buffer of integers without `box`: it cannot hold counts",
                           count->name);
    else if (sent->kind != PEAL_ARRAY_BUFFER || sent->points.kind != PEAL_POINTS_ONE)
        peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, desc->count, desc->source,
                           "send a buffer without `box`",
                           "`count` counts elements; `%s` has coordinates", sent->name);
    else if (array == out->points.array)
        peal_parser_report(parser, PEAL_E_DUPLICATE_ARRAY, desc->count, desc->source, NULL,
                           "`%s` stands twice in a message", count->name);
    else
        out->count = array;
}

void peal_resolve_message(peal_parser *parser, const peal_message_desc *desc, peal_statement *out)
{
    bool is_send = out->kind == PEAL_STATEMENT_SEND;
    peal_message_statement *message = &out->u.message;
    const peal_points_desc *points = is_send ? &desc->send : &desc->recv;
    const char *wrong = is_send ? desc->from : desc->to;
    message->points.array = -1;
    if (!points->name)
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, points->box, desc->source, NULL,
                           "a %s names no field or buffer", is_send ? "send" : "recv");
    else
        peal_resolve_points(parser, points, desc->source, PEAL_ALLOW_STATIC, true,
                            &message->points);
    if (wrong)
        peal_parser_report(parser, PEAL_E_CONFLICTING_KEYS, wrong, desc->source, NULL,
                           is_send ? "a send goes `to`, not `from`"
                                   : "a recv comes `from`, not `to`");
    resolve_peers(parser, desc, is_send ? desc->to : desc->from, is_send ? "to" : "from",
                  &message->peers);
    message->tag = peal_parse_expression(parser, desc->tag, desc->source, PEAL_ALLOW_STATIC);
    peal_require_integer(parser, message->tag, "a tag");
    resolve_offsets(parser, desc, message);
    resolve_count(parser, desc, message);
    if (!out->name)
        out->name = peal_arena_print(parser->graph->arena, "%s %s", is_send ? "send" : "recv",
                                     points->name ? points->name : "");
}

void peal_resolve_rank_reduce(peal_parser *parser, const peal_rank_reduce_desc *desc, bool everyone,
                              peal_statement *out)
{
    peal_arena *arena = parser->graph->arena;
    peal_reduction list[PEAL_CALL_PARTIALS];
    peal_rank_reduction *reduce = &out->u.reduce;
    int count = peal_resolve_reductions(parser, desc->reduce, desc->source, false, list);
    peal_reduction *own = PEAL_ARENA_ARRAY(arena, peal_reduction, count);
    const char *name = everyone ? "allreduce" : "reduce";
    reduce->along = -1;
    for (int i = 0; i < count; i++) {
        own[i] = list[i];
        for (int j = 0; j < i; j++)
            if (list[j].array == list[i].array)
                peal_parser_report(parser, PEAL_E_DUPLICATE_ARRAY, NULL, list[i].source, NULL,
                                   "`%s` stands twice in a reduction",
                                   parser->arrays[list[i].array].name);
    }
    if (!desc->reduce[0].name)
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, NULL, desc->source,
                           "write {allreduce: {d2: sum}}", "the reduction names no buffer");
    reduce->item = own;
    reduce->item_count = count;
    if (desc->along)
        reduce->along = resolve_axis(parser, desc->along, desc->source);
    if (everyone && desc->to)
        peal_parser_report(parser, PEAL_E_CONFLICTING_KEYS, desc->to, desc->source,
                           "reduce goes to one rank, allreduce to all", "an allreduce with `to`");
    else if (!everyone && !desc->to)
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, NULL, desc->source,
                           "say to: 0, or write allreduce", "a reduce without `to`");
    reduce->root = peal_parse_expression(parser, desc->to, desc->source,
                                         PEAL_ALLOW_UNIFORM | PEAL_ALLOW_COUNTERS);
    peal_require_integer(parser, reduce->root, "a rank");
    for (int i = 0; i < count && !out->name; i++)
        name = peal_arena_print(arena, "%s %s", name, parser->arrays[list[i].array].name);
    if (!out->name)
        out->name = name;
}
