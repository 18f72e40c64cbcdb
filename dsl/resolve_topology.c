/* The topology. */
#include "dsl/resolve.h"

static int default_axes(const peal_parser *parser)
{
    for (int i = 0; i < parser->data->array_count; i++)
        if (parser->arrays[i].kind == PEAL_ARRAY_FIELD)
            return parser->arrays[i].axis_count < PEAL_RANK_AXES ? parser->arrays[i].axis_count
                                                                 : PEAL_RANK_AXES;
    return 1;
}

static bool resolve_periodic_item(peal_parser *parser, const peal_item *item, bool *out)
{
    peal_value value;
    if (!item->expr || !peal_constant_value(parser, item->expr, &value) ||
        value.kind != PEAL_BOOLEAN) {
        peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, NULL, item->source,
                           "write periodic: [false, true]", "expected true or false by axis");
        return false;
    }
    *out = value.u.boolean;
    return true;
}

static void resolve_periodic(peal_parser *parser, const peal_topology_desc *desc,
                             peal_topology *out)
{
    const peal_item *item = peal_parse_list(parser, desc->periodic, desc->source, 0, NULL);
    if (!item)
        return;
    if (item->is_list && item->count > out->axis_count) {
        peal_parser_report(parser, PEAL_E_WRONG_AXIS_COUNT, NULL, item->source, NULL,
                           "periodic lists %d axes, the topology has %d", item->count,
                           out->axis_count);
        return;
    }
    for (int k = 0; k < (item->is_list ? item->count : out->axis_count); k++)
        if (!resolve_periodic_item(parser, item->is_list ? &item->item[k] : item,
                                   &out->periodic[k]))
            return;
}

/* "[0, 100, n]" */
static bool resolve_axis_cuts(peal_parser *parser, const peal_item *item, peal_topology *out, int k)
{
    static const char hint[] =
        "write cuts: [[0, 100, 512], auto]: 0, where each part ends, and the size";
    if (!item->is_list || item->count < 2) {
        peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, NULL, item->source, hint,
                           "expected a list of two or more numbers, or auto, by axis");
        return false;
    }
    const peal_expr **cut = PEAL_ARENA_ARRAY(parser->graph->arena, const peal_expr *, item->count);
    for (int i = 0; i < item->count; i++) {
        if (!item->item[i].expr) {
            peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, NULL, item->item[i].source, hint,
                               "expected a number");
            return false;
        }
        cut[i] = item->item[i].expr;
        peal_require_integer(parser, cut[i], "a cut");
    }
    out->cut[k] = cut;
    out->cut_count[k] = item->count;
    return true;
}

static void resolve_cuts(peal_parser *parser, const peal_topology_desc *desc, peal_topology *out)
{
    const peal_item *item = peal_parse_list(parser, desc->cuts, desc->source, 0, "auto");
    if (!item || item->word)
        return;
    if (!item->is_list) {
        peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, desc->cuts, item->source,
                           "write cuts: [[0, 100, 512], auto]", "expected a list by axis, or auto");
        return;
    }
    if (item->count && !item->item[0].is_list && !item->item[0].word) {
        peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, NULL, item->item[0].source,
                           "write cuts: [[0, 100, 512], auto]",
                           "expected a list of cuts, or auto, by axis");
        return;
    }
    if (item->count > out->axis_count) {
        peal_parser_report(parser, PEAL_E_WRONG_AXIS_COUNT, NULL, item->source, NULL,
                           "cuts lists %d axes, the topology has %d", item->count, out->axis_count);
        return;
    }
    for (int k = 0; k < item->count; k++)
        if (!item->item[k].word && !resolve_axis_cuts(parser, &item->item[k], out, k))
            return;
}

void peal_resolve_topology(peal_parser *parser)
{
    const peal_topology_desc *desc = parser->graph->topology;
    peal_topology *out = &parser->data->topology;
    if (!desc)
        return;
    out->given = true;
    out->source = desc->source;
    out->axis_count = default_axes(parser);
    if (desc->dims) {
        const peal_item *item = peal_parse_list(parser, desc->dims, desc->source, 0, "auto");
        if (!item)
            return;
        out->axis_count = item->is_list ? item->count : 1;
        if (out->axis_count < 1 || out->axis_count > PEAL_RANK_AXES) {
            peal_parser_report(parser, PEAL_E_WRONG_AXIS_COUNT, desc->dims, desc->source, NULL,
                               "a topology has 1 to %d axes, not %d", PEAL_RANK_AXES,
                               out->axis_count);
            out->axis_count = 1;
            return;
        }
        for (int k = 0; k < out->axis_count; k++) {
            const peal_item *part = item->is_list ? &item->item[k] : item;
            out->dims[k] = part->expr;
            if (part->is_list)
                peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, NULL, part->source, NULL,
                                   "expected a number or auto by axis");
            peal_require_integer(parser, part->expr, "a number of ranks");
        }
    }
    if (desc->cuts)
        resolve_cuts(parser, desc, out);
    if (desc->periodic)
        resolve_periodic(parser, desc, out);
}
