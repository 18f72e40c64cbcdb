/* Lists: "[nx, ny - 2]", "[[1, 0], 0]", and what they stand for: amounts, ranges, directions, axes.
 */
#include "base/expression.h"
#include "dsl/expression_parser.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static bool parse_item(peal_cursor *c, const char *word, int depth, peal_item *out);

static bool refuse(peal_cursor *c, const char *at, const char *hint, const char *what)
{
    peal_parser_report(c->parser, PEAL_E_WRONG_LIST_SHAPE, at, c->source, hint, "%s", what);
    return false;
}

static bool parse_items(peal_cursor *c, const char *word, int depth, peal_item *out)
{
    PEAL_LIST(peal_item) list = {0};
    peal_arena *arena = c->parser->graph->arena;
    const char *start = c->at++;
    if (depth >= PEAL_LIST_DEPTH)
        return refuse(c, start, NULL, "a list this deep makes no sense");
    peal_cursor_skip(c);
    while (*c->at != ']') {
        peal_item item;
        if (!parse_item(c, word, depth + 1, &item))
            return false;
        PEAL_LIST_ADD(arena, &list, item);
        peal_cursor_skip(c);
        if (*c->at == ',')
            c->at++;
        else if (*c->at != ']')
            return refuse(c, c->at, NULL,
                          *c->at ? "expected `,` or `]` in a list" : "`[` without its `]`");
        peal_cursor_skip(c);
    }
    c->at++;
    out->is_list = true;
    out->item = list.item;
    out->count = list.count;
    return true;
}

static bool is_word_here(const char *at, const char *word)
{
    size_t length = word ? strlen(word) : 0;
    return word && !strncmp(at, word, length) && !isalnum((unsigned char)at[length]) &&
           at[length] != '_';
}

static bool parse_item(peal_cursor *c, const char *word, int depth, peal_item *out)
{
    peal_cursor_skip(c);
    *out = (peal_item){.source = peal_cursor_place(c, c->at)};
    if (*c->at == '[')
        return parse_items(c, word, depth, out);
    if (is_word_here(c->at, word)) {
        c->at += strlen(word);
        out->word = word;
        return true;
    }
    out->expr = peal_parse_one(c);
    return out->expr != NULL;
}

const peal_item *peal_parse_list(peal_parser *parser, const char *text, peal_source source,
                                 unsigned allow, const char *word)
{
    peal_cursor c = {.parser = parser, .at = text, .source = source};
    peal_item *item = PEAL_ARENA_NEW(parser->graph->arena, peal_item);
    parser->allow = allow;
    parser->also[0] = word ? word : parser->also[0];
    bool good = parse_item(&c, word, 0, item);
    parser->also[0] = word ? NULL : parser->also[0];
    if (!good)
        return NULL;
    peal_cursor_skip(&c);
    if (!*c.at)
        return item;
    refuse(&c, c.at, item->is_list ? NULL : "a list needs brackets: [a, b]",
           item->is_list ? "expected the end of the list" : "expected one value, or a list");
    return NULL;
}

static bool wrong_shape(peal_parser *parser, const peal_item *item, const char *hint,
                        const char *what)
{
    peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, NULL, item->source, hint, "%s", what);
    return false;
}

static bool too_many(peal_parser *parser, const peal_item *item, int axis_count)
{
    peal_parser_report(parser, PEAL_E_WRONG_AXIS_COUNT, NULL, item->source, NULL,
                       "%d axes are listed where there %s %d", item->count,
                       axis_count == 1 ? "is" : "are", axis_count);
    return false;
}

/* "..., not a text"; of a param, which one and what stands there. */
static bool wrong_kind(peal_parser *parser, const peal_expr *expr, const char *what,
                       const char *wanted, const char *hint)
{
    static const char *const kind_names[] = {"an integer", "a real number", "a boolean", "a text"};
    peal_value_kind kind = peal_expr_kind_of(expr, parser->data);
    const peal_param *param =
        expr->kind == PEAL_EXPR_PARAM ? &parser->data->params[expr->index] : NULL;
    if (param && kind == PEAL_TEXT)
        peal_parser_report(parser, PEAL_E_WRONG_VALUE_TYPE, NULL, expr->source,
                           peal_parse_literal(param->value.u.text).kind == PEAL_TEXT
                               ? "params are constants: a number, true, false or a text"
                               : "leave out the quotes",
                           "%s must be %s, and param `%s` is the text \"%s\"", what, wanted,
                           param->name, param->value.u.text);
    else
        peal_parser_report(parser, PEAL_E_WRONG_VALUE_TYPE, NULL, expr->source, hint,
                           "%s must be %s, not %s", what, wanted, kind_names[kind]);
    return false;
}

bool peal_require_integer(peal_parser *parser, const peal_expr *expr, const char *what)
{
    if (!expr || peal_expr_kind_of(expr, parser->data) == PEAL_INTEGER)
        return true;
    bool real = peal_expr_kind_of(expr, parser->data) == PEAL_REAL;
    return wrong_kind(parser, expr, what, "an integer",
                      real ? "floor or ceil make an integer of it" : NULL);
}

bool peal_require_number(peal_parser *parser, const peal_expr *expr, const char *what)
{
    return !expr || peal_expr_kind_of(expr, parser->data) <= PEAL_REAL ||
           wrong_kind(parser, expr, what, "a number", NULL);
}

bool peal_require_boolean(peal_parser *parser, const peal_expr *expr, const char *what)
{
    return !expr || peal_expr_kind_of(expr, parser->data) == PEAL_BOOLEAN ||
           wrong_kind(parser, expr, what, "a condition",
                      "a condition compares: rr < tol, step % 10 == 0");
}

static bool take_end(peal_parser *parser, const peal_item *item, const peal_expr **low,
                     const peal_expr **high)
{
    const char *hint = "an amount is a number, or a list by axis of numbers or [low, high]";
    *low = item->expr;
    *high = item->expr;
    if (item->is_list) {
        if (item->count != 2 || !item->item[0].expr || !item->item[1].expr)
            return wrong_shape(parser, item, hint, "expected [low, high]");
        *low = item->item[0].expr;
        *high = item->item[1].expr;
    }
    return peal_require_integer(parser, *low, "an amount") &&
           (*high == *low || peal_require_integer(parser, *high, "an amount"));
}

bool peal_parse_amount(peal_parser *parser, const char *text, peal_source source, unsigned allow,
                       int axis_count, peal_amount *out)
{
    *out = (peal_amount){0};
    if (!text)
        return true;
    const peal_item *item = peal_parse_list(parser, text, source, allow, NULL);
    if (!item)
        return false;
    out->given = true;
    out->source = item->source;
    if (item->is_list && item->count > axis_count)
        return too_many(parser, item, axis_count);
    if (!item->is_list) {
        for (int k = 0; k < axis_count; k++)
            out->low[k] = out->high[k] = item->expr;
        return peal_require_integer(parser, item->expr, "an amount");
    }
    for (int k = 0; k < item->count; k++)
        if (!take_end(parser, &item->item[k], &out->low[k], &out->high[k]))
            return false;
    return true;
}

bool peal_parse_ranges(peal_parser *parser, const char *text, peal_source source, unsigned allow,
                       int axis_count, peal_ranges *out)
{
    const char *hint = "ranges are a list by axis of [first, end]: [[0, nx], [0, 1]]";
    *out = (peal_ranges){0};
    const peal_item *item = peal_parse_list(parser, text, source, allow, NULL);
    if (!item)
        return false;
    out->source = item->source;
    if (!item->is_list || item->count == 0)
        return wrong_shape(parser, item, hint, "expected ranges");
    if (item->count > axis_count)
        return too_many(parser, item, axis_count);
    out->axis_count = item->count;
    for (int k = 0; k < item->count; k++) {
        const peal_item *range = &item->item[k];
        if (!range->is_list || range->count != 2 || !range->item[0].expr || !range->item[1].expr)
            return wrong_shape(parser, range, hint, "expected [first, end]");
        out->low[k] = range->item[0].expr;
        out->high[k] = range->item[1].expr;
        if (!peal_require_integer(parser, out->low[k], "a coordinate") ||
            !peal_require_integer(parser, out->high[k], "a coordinate"))
            return false;
    }
    return true;
}

bool peal_parse_direction(peal_parser *parser, const char *text, peal_source source, unsigned allow,
                          peal_direction *out)
{
    const char *hint =
        "a direction lists one of -1, 0, 1 by axis: [0, -1]; ranks are listed as {ranks: [0, 2]}";
    *out = (peal_direction){0};
    const peal_item *item = peal_parse_list(parser, text, source, allow, NULL);
    if (!item)
        return false;
    out->source = item->source;
    if (!item->is_list || item->count == 0)
        return wrong_shape(parser, item, hint, "expected a direction");
    if (item->count > PEAL_RANK_AXES)
        return too_many(parser, item, PEAL_RANK_AXES);
    bool all_zero = true;
    out->axis_count = item->count;
    for (int k = 0; k < item->count; k++) {
        peal_value value;
        out->step[k] = item->item[k].expr;
        if (!out->step[k])
            return wrong_shape(parser, &item->item[k], hint, "expected -1, 0 or 1");
        if (!peal_require_integer(parser, out->step[k], "a direction"))
            return false;
        bool known = peal_constant_value(parser, out->step[k], &value);
        all_zero = all_zero && known && value.u.integer == 0;
        if (known && (value.u.integer < -1 || value.u.integer > 1)) {
            peal_parser_report(parser, PEAL_E_INVALID_DIRECTION, NULL, item->item[k].source, hint,
                               "a direction has no step of %" PRId64, value.u.integer);
            return false;
        }
    }
    if (all_zero)
        peal_parser_report(parser, PEAL_E_INVALID_DIRECTION, NULL, item->source, hint,
                           "the direction leads nowhere");
    return !all_zero;
}

int peal_parse_axes(peal_parser *parser, const char *text, peal_source source, unsigned allow,
                    int axis_count, const char *word, const char *what, const peal_expr **out)
{
    const peal_item *item = peal_parse_list(parser, text, source, allow, word);
    if (!item)
        return -1;
    for (int k = 0; k < axis_count; k++)
        out[k] = item->is_list ? NULL : item->expr;
    if (!item->is_list)
        return item->word || peal_require_integer(parser, item->expr, what) ? axis_count : -1;
    if (item->count > axis_count) {
        too_many(parser, item, axis_count);
        return -1;
    }
    for (int k = 0; k < item->count; k++) {
        if (item->item[k].is_list) {
            wrong_shape(parser, &item->item[k], NULL, "expected a number by axis");
            return -1;
        }
        out[k] = item->item[k].expr;
        if (!peal_require_integer(parser, out[k], what))
            return -1;
    }
    return item->count;
}
