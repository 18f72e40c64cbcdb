/* Points: which of an array's a task visits or a message carries. */
#include "dsl/expression_parser.h"
#include "dsl/resolve.h"

#include <string.h>

enum { CANDIDATES = 256, NAMED = 20 };

static const char *list_names(const peal_parser *parser, const char *const *names, int count)
{
    const char *list = count ? "there are" : "the spec declares none";
    for (int i = 0; i < count && i < NAMED; i++)
        list = peal_arena_print(parser->graph->arena, "%s %s", list, names[i]);
    return count > NAMED ? peal_arena_print(parser->graph->arena, "%s ...", list) : list;
}

/* "u", or "u(2)". */
static int resolve_whole_name(peal_parser *parser, const char *name, size_t length,
                              peal_source source, int declaration)
{
    peal_cursor c = {.parser = parser, .at = name + length, .source = source};
    if (parser->family[declaration].first >= parser->array_ready) {
        peal_parser_report(parser, PEAL_E_NAME_OUT_OF_SCOPE, name, source, "declare it further up",
                           "`%s` is declared after what uses it", parser->family[declaration].name);
        return -1;
    }
    int array = peal_resolve_member(&c, name, declaration);
    peal_cursor_skip(&c);
    if (array >= 0 && *c.at) {
        peal_syntax_error(&c, c.at, NULL, "expected the end of the name");
        return -1;
    }
    return array;
}

int peal_resolve_array_name(peal_parser *parser, const char *name, peal_source source,
                            const char *what)
{
    struct peal_name_slot slot;
    const char *candidates[CANDIDATES];
    int count = 0;
    size_t length;
    int declaration = peal_find_declaration(parser, name, &length);
    if (declaration >= 0 && (!name[length] || strchr(" (", name[length])))
        return resolve_whole_name(parser, name, length, source, declaration);
    for (int i = 0; i < parser->array_ready && count < CANDIDATES; i++) {
        candidates[count++] = parser->arrays[i].name;
        if (!strcmp(name, parser->arrays[i].name)) {
            parser->failures++; /* what is wrong with the name has been told */
            return -1;
        }
    }
    const char *hint = peal_parser_hint(parser, name, candidates, (size_t)count);
    if (peal_name_find(&parser->names, name, &slot))
        hint = "it is a param";
    else if (!strcmp(name, "interior") || !strcmp(name, "boundary"))
        hint = "of a field: {u: {part: interior}}";
    else if (strchr(name, '('))
        hint = "boxes and footprints are written {u: {star: 1}}, members of families u(2)";
    peal_parser_report(parser, PEAL_E_UNKNOWN_NAME, name, source,
                       hint ? hint : list_names(parser, candidates, count),
                       "%s names no field or buffer: `%s`", what, name);
    return -1;
}

static int count_forms(const peal_points_desc *desc)
{
    return (desc->grow != NULL) + (desc->rim != NULL) + (desc->box != NULL) +
           (desc->border != NULL) + (desc->halo != NULL) + (desc->ghost != NULL) +
           (desc->count != NULL);
}

static bool contradiction(peal_parser *parser, const char *at, peal_source source, const char *hint,
                          const char *what)
{
    peal_parser_report(parser, PEAL_E_CONFLICTING_KEYS, at, source, hint, "%s", what);
    return false;
}

static bool resolve_part(peal_parser *parser, const peal_points_desc *desc, peal_source source,
                         unsigned allow, int axis_count, peal_points *out)
{
    if (!strcmp(desc->part, "interior"))
        out->part = PEAL_PART_INTERIOR;
    else if (!strcmp(desc->part, "boundary"))
        out->part = PEAL_PART_BOUNDARY;
    else {
        out->part = PEAL_PART_EXTENDED;
        parser->also[0] = "interior", parser->also[1] = "boundary";
        bool good =
            peal_parse_amount(parser, desc->part, source, allow, axis_count, &out->part_amount);
        parser->also[0] = parser->also[1] = NULL;
        return good;
    }
    return true;
}

static bool resolve_form(peal_parser *parser, const peal_points_desc *desc, peal_source source,
                         unsigned allow, int axis_count, peal_points *out)
{
    out->kind = PEAL_POINTS_ALL;
    if (desc->box) {
        out->kind = PEAL_POINTS_RANGES;
        return peal_parse_ranges(parser, desc->box, source, allow, axis_count, &out->ranges);
    }
    if (desc->border || desc->halo || desc->ghost) {
        out->kind = desc->border ? PEAL_POINTS_BORDER
                    : desc->halo ? PEAL_POINTS_HALO
                                 : PEAL_POINTS_GHOST;
        return peal_parse_direction(parser,
                                    desc->border ? desc->border
                                    : desc->halo ? desc->halo
                                                 : desc->ghost,
                                    source, allow, &out->direction);
    }
    if (desc->grow || desc->rim) {
        out->kind = desc->grow ? PEAL_POINTS_GROW : PEAL_POINTS_RIM;
        return peal_parse_amount(parser, desc->grow ? desc->grow : desc->rim, source, allow,
                                 axis_count, &out->amount);
    }
    return true;
}

static bool check_array(peal_parser *parser, const peal_points_desc *desc, peal_source source,
                        bool message, const peal_array *array)
{
    if (array->kind == PEAL_ARRAY_FIELD)
        return true;
    bool plain =
        !desc->grow && !desc->rim && !desc->border && !desc->halo && !desc->ghost && !desc->part;
    if (message && plain)
        return true;
    peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, desc->name, source,
                       message ? "of a buffer all or {b: [[first, end]]} is sent"
                               : "points that belong to no field are a box of their own: [[0, m]]",
                       "`%s` is not a field", array->name);
    return false;
}

static bool resolve_local(peal_parser *parser, const peal_points_desc *desc, peal_source source,
                          unsigned allow, peal_points *out)
{
    if (desc->part)
        return contradiction(parser, desc->part, source, NULL,
                             "`part` is about a field, this box belongs to none");
    out->kind = PEAL_POINTS_RANGES;
    out->source = peal_graph_place(parser->graph, desc->box, source);
    return peal_parse_ranges(parser, desc->box, source, allow, PEAL_AXES, &out->ranges);
}

/* {count: n, max: m}: points 0 .. m - 1 here, of which the run visits the first n. */
static bool resolve_counted(peal_parser *parser, const peal_points_desc *desc, peal_source source,
                            unsigned allow, peal_points *out)
{
    if (desc->name || desc->part)
        return contradiction(parser, desc->name ? desc->name : desc->part, source, NULL,
                             "points that are counted at run time belong to no field");
    if (!desc->count || !desc->max) {
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, NULL, source,
                           "{count: n, max: m}: memory and tiles are those of `max` points",
                           "a box with `%s` alone", desc->count ? "count" : "max");
        return false;
    }
    out->kind = PEAL_POINTS_COUNT;
    out->source = peal_graph_place(parser->graph, desc->count, source);
    out->count = peal_parse_expression(parser, desc->count, source, allow | PEAL_ALLOW_ELEMENTS);
    out->maximum = peal_parse_expression(parser, desc->max, source, allow);
    return out->count && out->maximum && peal_require_integer(parser, out->count, "a count") &&
           peal_require_integer(parser, out->maximum, "`max`");
}

bool peal_resolve_points(peal_parser *parser, const peal_points_desc *desc, peal_source source,
                         unsigned allow, bool message, peal_points *out)
{
    *out = (peal_points){.array = -1};
    if (desc->source.line > 0)
        source = desc->source;
    out->source = peal_graph_place(parser->graph, desc->name, source);
    bool of_task = allow & PEAL_ALLOW_ELEMENTS;
    allow &= ~(unsigned)PEAL_ALLOW_ELEMENTS;
    if (count_forms(desc) > 1)
        return contradiction(parser, desc->name, source, NULL,
                             "a box is one of grow, rim, box, border, halo, ghost, count");
    if (desc->count || desc->max)
        return of_task
                   ? resolve_counted(parser, desc, source, allow, out)
                   : contradiction(parser, desc->count ? desc->count : desc->max, source,
                                   "a buffer has the largest `count` that it needs",
                                   "only tasks have a box whose points are counted at run time");
    if (!desc->name)
        return desc->box ? resolve_local(parser, desc, source, allow, out) : true;
    if (message && (desc->grow || desc->rim || desc->ghost || desc->part))
        return contradiction(parser, desc->name, source, NULL,
                             "a message carries all, [[first, end]], a border or a halo");
    if (desc->ghost && !of_task)
        return contradiction(parser, desc->ghost, source, NULL, "only tasks visit a ghost box");
    if (desc->part && (desc->border || desc->halo || desc->ghost))
        return contradiction(parser, desc->part, source, NULL,
                             "`part` does not go with border, halo or ghost");
    out->array =
        peal_resolve_array_name(parser, desc->name, source, message ? "a message" : "a box");
    if (out->array < 0)
        return false;
    const peal_array *array = &parser->arrays[out->array];
    if (!check_array(parser, desc, source, message, array) ||
        !resolve_form(parser, desc, source, allow, array->axis_count, out))
        return false;
    return !desc->part || resolve_part(parser, desc, source, allow, array->axis_count, out);
}

static bool names_rank(const peal_expr *const *expr, int count)
{
    for (int i = 0; i < count; i++)
        if (peal_expr_uses(expr[i]) & PEAL_USES_RANK)
            return true;
    return false;
}

bool peal_visits_the_same(const peal_parser *parser, const peal_task_statement *task)
{
    const peal_points *box = &task->box;
    if (box->kind == PEAL_POINTS_ONE)
        return true;
    return box->array >= 0 && parser->arrays[box->array].replicated &&
           !names_rank(box->amount.low, PEAL_AXES) && !names_rank(box->amount.high, PEAL_AXES) &&
           !names_rank(box->part_amount.low, PEAL_AXES) &&
           !names_rank(box->part_amount.high, PEAL_AXES) &&
           !names_rank(box->ranges.low, PEAL_AXES) && !names_rank(box->ranges.high, PEAL_AXES) &&
           !names_rank(box->direction.step, PEAL_RANK_AXES) && !names_rank(task->tile, PEAL_AXES);
}
