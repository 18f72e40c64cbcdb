/* Statements of one line: swap, set, print, load, save. */
#include "base/expression.h"
#include "dsl/resolve.h"

#include <string.h>

/* What is left out is `missing`. What depends on the ranks is compared when they are known. */
static bool differ(const peal_parser *parser, const peal_expr *a, const peal_expr *b,
                   int64_t missing)
{
    peal_value x = {.u.integer = missing}, y = {.u.integer = missing};
    bool known = (!a || peal_constant_value(parser, a, &x)) &&
                 (!b || peal_constant_value(parser, b, &y)) && x.kind == PEAL_INTEGER &&
                 y.kind == PEAL_INTEGER;
    return known && x.u.integer != y.u.integer;
}

static bool axes_differ(const peal_parser *parser, const peal_expr *const *a,
                        const peal_expr *const *b, int64_t missing)
{
    bool differs = false;
    for (int k = 0; k < PEAL_AXES; k++)
        differs |= differ(parser, a[k], b[k], missing);
    return differs;
}

static bool amounts_differ(const peal_parser *parser, const peal_amount *a, const peal_amount *b)
{
    return axes_differ(parser, a->low, b->low, 0) || axes_differ(parser, a->high, b->high, 0);
}

static bool points_differ(const peal_parser *parser, const peal_points *a, const peal_points *b)
{
    if (a->kind != b->kind || a->array != b->array || a->part != b->part ||
        a->ranges.axis_count != b->ranges.axis_count)
        return true;
    bool differs = amounts_differ(parser, &a->amount, &b->amount) ||
                   amounts_differ(parser, &a->part_amount, &b->part_amount);
    for (int k = 0; k < a->ranges.axis_count; k++)
        differs |= differ(parser, a->ranges.low[k], b->ranges.low[k], 0) ||
                   differ(parser, a->ranges.high[k], b->ranges.high[k], 0);
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        differs |= differ(parser, a->direction.step[k], b->direction.step[k], 0);
    return differs;
}

/* What differs between two arrays that are swapped, on any number of ranks; NULL: nothing. */
static const char *difference(const peal_parser *parser, const peal_array *a, const peal_array *b)
{
    if (a->kind != b->kind)
        return "one is a field, the other a buffer";
    if (a->type != b->type)
        return "their types differ";
    if (a->axis_count != b->axis_count || axes_differ(parser, a->size, b->size, 1))
        return "their sizes differ";
    if (amounts_differ(parser, &a->halo, &b->halo))
        return "their halos differ";
    if (axes_differ(parser, a->align, b->align, 1) ||
        axes_differ(parser, a->stagger, b->stagger, 0) ||
        axes_differ(parser, a->coarsen, b->coarsen, 1))
        return "their grids differ (align, stagger, coarsen)";
    if (a->replicated != b->replicated)
        return "one is replicated, the other is cut";
    if (a->components != b->components)
        return "their components differ";
    if (a->file || b->file || a->values || b->values)
        return "constant contents cannot be swapped";
    if (differ(parser, a->count, b->count, 1) || points_differ(parser, &a->points, &b->points))
        return "their counts differ";
    return NULL;
}

void peal_resolve_swap(peal_parser *parser, const peal_swap_desc *desc, peal_statement *out)
{
    int array[2] = {-1, -1};
    for (int i = 0; i < 2; i++)
        if (desc->swap[i])
            array[i] = peal_resolve_array_name(parser, desc->swap[i], desc->source, "`swap`");
        else
            peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, desc->swap[0], desc->source,
                               "swap: [a, b]", "a swap names two fields or two buffers");
    out->u.swap.first = array[0];
    out->u.swap.second = array[1];
    if (!out->name)
        out->name =
            peal_arena_print(parser->graph->arena, "swap %s %s", desc->swap[0] ? desc->swap[0] : "",
                             desc->swap[1] ? desc->swap[1] : "");
    if (array[0] < 0 || array[1] < 0)
        return;
    if (array[0] == array[1]) {
        peal_parser_report(parser, PEAL_E_DUPLICATE_ARRAY, desc->swap[1], desc->source, NULL,
                           "`%s` is swapped with itself", desc->swap[1]);
        return;
    }
    const char *why = difference(parser, &parser->arrays[array[0]], &parser->arrays[array[1]]);
    if (why)
        peal_parser_report(parser, PEAL_E_UNEQUAL_SWAP, desc->swap[0], desc->source,
                           "swap exchanges names, not values; say like: for the second",
                           "`%s` and `%s` cannot be swapped: %s", desc->swap[0], desc->swap[1],
                           why);
}

void peal_resolve_set(peal_parser *parser, const peal_set_desc *desc, peal_statement *out)
{
    if (!out->name)
        out->name = peal_arena_print(parser->graph->arena, "set %s", desc->set ? desc->set : "");
    out->u.set.array = -1;
    if (!desc->set || !desc->value) {
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, desc->set, desc->source,
                           "{set: x, value: 0.5}", "a set names a buffer and a value");
        return;
    }
    int array = peal_resolve_array_name(parser, desc->set, desc->source, "`set`");
    out->u.set.array = array;
    out->u.set.value = peal_parse_expression(parser, desc->value, desc->source, PEAL_ALLOW_ALL);
    if (array < 0 || !out->u.set.value)
        return;
    const peal_array *to = &parser->arrays[array];
    if (!peal_is_one_element(parser, to))
        peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, desc->set, desc->source,
                           "tasks write fields and buffers of more elements",
                           "`%s` is not a buffer of one element", to->name);
    else if (to->type == PEAL_F64 || to->type == PEAL_F32)
        peal_require_number(parser, out->u.set.value, "the value of a set");
    else
        peal_require_integer(parser, out->u.set.value, "the value of an integer buffer");
}

void peal_resolve_print(peal_parser *parser, const peal_print_row_desc *desc, peal_statement *out)
{
    peal_print_item *list =
        PEAL_ARENA_ARRAY(parser->graph->arena, peal_print_item, PEAL_GRAPH_PRINT);
    int count = 0;
    for (int i = 0; i < PEAL_GRAPH_PRINT && desc->print[i].name; i++) {
        const peal_print_desc *item = &desc->print[i];
        peal_source source = item->source.line > 0 ? item->source : desc->source;
        for (int j = 0; j < i; j++)
            if (!strcmp(desc->print[j].name, item->name))
                peal_parser_report(parser, PEAL_E_DUPLICATE_NAME, item->name, source, NULL,
                                   "two columns `%s` in a print", item->name);
        if (!item->value)
            peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, item->name, source,
                               "{print: {norm: sqrt(d2)}}", "column `%s` has no value", item->name);
        const peal_expr *value = peal_parse_expression(parser, item->value, source, PEAL_ALLOW_ALL);
        if (value && peal_require_number(parser, value, "what is printed"))
            list[count++] = (peal_print_item){item->name, value};
    }
    if (!desc->print[0].name)
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, NULL, desc->source,
                           "{print: {norm: sqrt(d2)}}", "a print of nothing");
    out->u.print.item = list;
    out->u.print.item_count = count;
    if (!out->name)
        out->name = "print";
}

void peal_check_template(peal_parser *parser, const char *text, peal_source source)
{
    int64_t zero[PEAL_LOOP_DEPTH] = {0};
    peal_scope scope = {.graph = parser->data,
                        .ranks = 1,
                        .counter = zero,
                        .counter_count = parser->counter_count};
    const char *expanded;
    if (peal_template_expand(text, &scope, parser->counter,
                             peal_graph_place(parser->graph, text, source), parser->graph->arena,
                             &expanded, parser->diagnostics))
        parser->failures++;
}

void peal_resolve_file(peal_parser *parser, const peal_file_desc *desc, peal_statement *out)
{
    bool is_load = out->kind == PEAL_STATEMENT_LOAD;
    const char *what = is_load ? desc->load : desc->save;
    out->u.file.array = -1;
    out->u.file.file = peal_file_in_copy(parser, desc->file);
    if (!out->name)
        out->name = peal_arena_print(parser->graph->arena, "%s %s", is_load ? "load" : "save",
                                     what ? what : "");
    if (!what || !desc->file) {
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, what, desc->source,
                           "{save: u, file: \"u.npy\"}", "a %s names a field or buffer and a file",
                           is_load ? "load" : "save");
        return;
    }
    out->u.file.array =
        peal_resolve_array_name(parser, what, desc->source, is_load ? "`load`" : "`save`");
    peal_check_template(parser, out->u.file.file,
                        peal_graph_place(parser->graph, desc->file, desc->source));
}
