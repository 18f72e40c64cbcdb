/* Copies of fields from one cut to another. The graph has them as exchanges whose items name where
 * the values go. */
#include "base/expression.h"
#include "dsl/resolve.h"

#include <string.h>

typedef struct copy_parse {
    peal_parser *parser;
    peal_exchange_item list[PEAL_GRAPH_EXCHANGE];
    int count;
} copy_parse;

/* The arrays that the texts of a list name; -1 at the end. */
static int resolve_names(peal_parser *parser, const char *const *text, peal_source source,
                         const char *what, int out[PEAL_GRAPH_EXCHANGE])
{
    int count = 0;
    for (int i = 0; i < PEAL_GRAPH_EXCHANGE && text[i]; i++) {
        peal_members members = peal_members_of(parser, text[i], source);
        int failures = parser->failures;
        for (int m = 0; m < members.count && parser->failures == failures; m++) {
            const char *name = peal_member_name(parser, &members, m);
            int array = peal_resolve_array_name(parser, name, members.source, what);
            if (array >= 0 && parser->arrays[array].kind != PEAL_ARRAY_FIELD)
                peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, name, members.source,
                                   "each rank has its own buffers; send and recv them",
                                   "`%s` is not a field", parser->arrays[array].name);
            else if (array >= 0 && count == PEAL_GRAPH_EXCHANGE)
                peal_parser_report(parser, PEAL_E_TOO_MANY_ACCESSES, name, members.source,
                                   "write two copies", "a copy has at most %d fields",
                                   PEAL_GRAPH_EXCHANGE);
            else if (array >= 0)
                out[count++] = array;
        }
    }
    return count;
}

/* Sizes are compared when they are known (scheduler/geometry/exchange_boxes.c). */
static void add_item(copy_parse *c, int from, int into, peal_source source)
{
    peal_parser *parser = c->parser;
    const peal_array *a = &parser->arrays[from], *b = &parser->arrays[into];
    for (int i = 0; i < c->count; i++)
        if (c->list[i].into == into || c->list[i].array == into || c->list[i].into == from) {
            peal_parser_report(parser, PEAL_E_DUPLICATE_ARRAY, NULL, source,
                               "write two copies, one after the other",
                               "`%s` is copied into and named again",
                               parser->arrays[c->list[i].into == from ? from : into].name);
            return;
        }
    if (from == into)
        peal_parser_report(parser, PEAL_E_DUPLICATE_ARRAY, NULL, source, NULL,
                           "`%s` is copied into itself", a->name);
    else if (a->type != b->type || a->axis_count != b->axis_count || a->components != b->components)
        peal_parser_report(
            parser, PEAL_E_UNEQUAL_COPY, NULL, source,
            "say `like:` for one of them, and `replicated` or another `align` beside "
            "it",
            "`%s` and `%s` differ in %s", a->name, b->name,
            a->type != b->type               ? "type"
            : a->axis_count != b->axis_count ? "their number of axes"
                                             : "components");
    else
        c->list[c->count++] = (peal_exchange_item){.array = from,
                                                   .into = into,
                                                   .footprint = PEAL_FOOTPRINT_WHOLE,
                                                   .source = source};
}

void peal_resolve_copy(peal_parser *parser, const peal_copy_desc *desc, peal_statement *out)
{
    peal_arena *arena = parser->graph->arena;
    copy_parse *c = PEAL_ARENA_NEW(arena, copy_parse);
    int from[PEAL_GRAPH_EXCHANGE], into[PEAL_GRAPH_EXCHANGE];
    int failures = parser->failures;
    c->parser = parser;
    int count = resolve_names(parser, desc->copy, desc->source, "`copy`", from);
    int targets = resolve_names(parser, desc->into, desc->source, "`into`", into);
    if (parser->failures == failures && (count == 0 || count != targets))
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, desc->copy[0], desc->source,
                           "{copy: [a, b], into: [c, d]}",
                           "a copy has as many fields in `into` as in `copy`: %d and %d", count,
                           targets);
    for (int i = 0; i < count && count == targets; i++)
        add_item(c, from[i], into[i],
                 peal_graph_place(parser->graph, desc->copy[count > 1 && desc->copy[1] ? i : 0],
                                  desc->source));
    out->u.exchange.item = c->list;
    out->u.exchange.item_count = c->count;
    for (int i = 0; !out->name && i < c->count; i++)
        out->name = peal_arena_print(arena, "copy %s", parser->arrays[c->list[i].array].name);
    if (!out->name)
        out->name = "copy";
}
