/* Params: typed by their defaults, overridden by `--set`, held to their ranges. Defines: computed
 * from them. */
#include "base/expression.h"
#include "base/number.h"
#include "dsl/resolve.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"an integer", "a real number", "a boolean", "a text"};

static bool looks_like_number(const char *text, bool *real)
{
    const char *p = text + (*text == '-' || *text == '+');
    int digits = 0;
    *real = false;
    for (; isdigit((unsigned char)*p); p++)
        digits++;
    if (*p == '.') {
        *real = true;
        for (p++; isdigit((unsigned char)*p); p++)
            digits++;
    }
    if (!digits)
        return false;
    if (*p == 'e' || *p == 'E') {
        *real = true;
        p += 1 + (p[1] == '-' || p[1] == '+');
        if (!isdigit((unsigned char)*p))
            return false;
        while (isdigit((unsigned char)*p))
            p++;
    }
    return !*p;
}

peal_value peal_parse_literal(const char *text)
{
    bool real;
    peal_value value = {.kind = PEAL_TEXT, .u.text = text};
    if (!strcmp(text, "true") || !strcmp(text, "false"))
        return (peal_value){.kind = PEAL_BOOLEAN, .u.boolean = text[0] == 't'};
    if (!looks_like_number(text, &real))
        return value;
    if (real) {
        value.kind = PEAL_REAL;
        value.u.real = peal_number_read(text, NULL);
        return value;
    }
    errno = 0;
    int64_t integer = strtoll(text, NULL, 10);
    if (errno)
        return value;
    return (peal_value){.kind = PEAL_INTEGER, .u.integer = integer};
}

static bool is_huge_integer(const char *text)
{
    bool real;
    return looks_like_number(text, &real) && !real && peal_parse_literal(text).kind == PEAL_TEXT;
}

static double as_real(const peal_value *value)
{
    return value->kind == PEAL_INTEGER ? (double)value->u.integer : value->u.real;
}

static int compare(const peal_value *a, const peal_value *b)
{
    if (a->kind == PEAL_INTEGER && b->kind == PEAL_INTEGER)
        return (a->u.integer > b->u.integer) - (a->u.integer < b->u.integer);
    return (as_real(a) > as_real(b)) - (as_real(a) < as_real(b));
}

static void check_bound(peal_parser *parser, const peal_param_desc *desc, const peal_param *param,
                        const char *bound_text, int sign, const char *relation)
{
    if (!bound_text)
        return;
    peal_value bound = peal_parse_literal(bound_text);
    if (bound.kind > PEAL_REAL || param->value.kind > PEAL_REAL) {
        peal_parser_report(parser, PEAL_E_INVALID_PARAM_VALUE, bound_text, desc->source, NULL,
                           "a bound and its param must be numbers");
        return;
    }
    if (compare(&param->value, &bound) * sign < 0)
        peal_parser_report(parser, PEAL_E_INVALID_PARAM_VALUE, desc->value, param->source, NULL,
                           "param `%s` must be %s %s", param->name, relation, bound_text);
}

/* Numbers, names of other params and operators, of which there is one at least: no text that
 * somebody would mean, such as the name of a file. */
static bool is_expression(const peal_parser *parser, const char *own, const char *text)
{
    bool has_operator = false, has_value = false;
    while (*text) {
        char word[64];
        size_t letters = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                      "0123456789.");
        struct peal_name_slot slot;
        if (!letters) {
            if (!strchr("+-*/%() ", *text))
                return false;
            has_operator = has_operator || strchr("+-*/%(", *text);
            text++;
            continue;
        }
        snprintf(word, sizeof(word), "%.*s", (int)letters, text);
        text += letters;
        bool is_number = peal_parse_literal(word).kind <= PEAL_REAL;
        if (!is_number && strcmp(word, "ranks") && strcmp(word, "sqrt") &&
            (!strcmp(word, own) || !peal_name_find(&parser->names, word, &slot)))
            return false;
        has_value = true;
    }
    return has_operator && has_value;
}

static void resolve_param(peal_parser *parser, const peal_param_desc *desc, peal_param *out)
{
    out->source = desc->source;
    out->name = desc->name ? desc->name : "";
    if (!desc->value) {
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, desc->name, desc->source,
                           "its default says of which type it is: params: {n: 64}",
                           "param `%s` has no value", out->name);
        return;
    }
    out->value = (peal_value){.kind = PEAL_TEXT, .u.text = desc->value};
    if (!desc->text)
        out->value = peal_parse_literal(desc->value);
    if (!desc->text && out->value.kind == PEAL_TEXT &&
        is_expression(parser, out->name, desc->value)) {
        peal_parser_report(
            parser, PEAL_E_PARAM_IS_EXPRESSION, desc->value, desc->source,
            "write its value, or put the expression under `define:`; in quotes it is "
            "a text",
            "param `%s` is an expression; params are constants", out->name);
        out->value = (peal_value){.kind = PEAL_INTEGER, .u.integer = 1}; /* one message is enough */
    }
    if (!desc->text && is_huge_integer(desc->value))
        peal_parser_report(parser, PEAL_E_INTEGER_OVERFLOW, desc->value, desc->source,
                           "write it as a real number: 1e20", "param `%s` does not fit 64 bits",
                           out->name);
}

static void add_name(peal_parser *parser, const peal_param_desc *desc, int index, const char *what)
{
    struct peal_name_slot slot;
    const char *name = desc->name ? desc->name : "";
    if (!peal_is_name(name) || peal_is_reserved(name))
        peal_parser_report(parser, PEAL_E_INVALID_NAME, desc->name, desc->source,
                           "a name is a letter, then letters, digits, _; words of the language are "
                           "taken",
                           "`%s` cannot be the name of a %s", name, what);
    else if (!peal_name_add(parser->graph->arena, &parser->names, name, PEAL_NAME_PARAM, index,
                            &slot))
        peal_parser_report(parser, PEAL_E_DUPLICATE_NAME, desc->name, desc->source, NULL,
                           "there is a param or define `%s` already", name);
}

static const char *params_hint(peal_parser *parser, const char *name)
{
    peal_graph_data *data = parser->data;
    const char **names =
        PEAL_ARENA_ARRAY(parser->graph->arena, const char *, data->param_count + 1);
    for (int i = 0; i < data->param_count; i++)
        names[i] = data->params[i].name;
    const char *hint = peal_parser_hint(parser, name, names, (size_t)data->param_count);
    if (hint || data->param_count == 0)
        return hint ? hint : "the spec has no params";
    const char *list = names[0];
    for (int i = 1; i < data->param_count && i < 20; i++)
        list = peal_arena_print(parser->graph->arena, "%s %s", list, names[i]);
    return peal_arena_print(parser->graph->arena, "params are: %s", list);
}

static void apply(peal_parser *parser, peal_param *param, const char *text)
{
    peal_source none = {0};
    peal_value value = peal_parse_literal(text);
    if (param->value.kind == PEAL_TEXT)
        value = (peal_value){.kind = PEAL_TEXT, .u.text = text};
    if (param->value.kind == PEAL_REAL && value.kind == PEAL_INTEGER)
        value = (peal_value){.kind = PEAL_REAL, .u.real = (double)value.u.integer};
    if (value.kind != param->value.kind) {
        peal_parser_report(parser, PEAL_E_INVALID_PARAM_VALUE, NULL, none,
                           "a param has the type of its default in the spec",
                           "--set %s=%s: `%s` is %s", param->name, text, param->name,
                           kind_names[param->value.kind]);
        return;
    }
    param->value = value;
    param->source = none;
}

static void apply_override(peal_parser *parser, peal_param *params, const char *assignment)
{
    peal_arena *arena = parser->graph->arena;
    peal_source none = {0};
    struct peal_name_slot slot;
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment) {
        peal_parser_report(parser, PEAL_E_UNKNOWN_PARAM, NULL, none, "write --set name=value",
                           "`%s` sets nothing", assignment);
        return;
    }
    const char *name = peal_arena_copy_bytes(arena, assignment, (size_t)(equals - assignment));
    const peal_param_desc *define = peal_define_named(parser, name);
    if (define) {
        peal_parser_report(parser, PEAL_E_UNKNOWN_PARAM, NULL, none,
                           peal_arena_print(arena, "set what it is made of: `%s`",
                                            define->value ? define->value : ""),
                           "--set %s: `%s` is defined by the spec", assignment, name);
        return;
    }
    if (!peal_name_find(&parser->names, name, &slot)) {
        peal_parser_report(parser, PEAL_E_UNKNOWN_PARAM, NULL, none, params_hint(parser, name),
                           "--set %s: there is no param `%s`", assignment, name);
        return;
    }
    apply(parser, &params[slot.index], equals + 1);
}

/* ---- defines ---- */

const peal_param_desc *peal_define_named(const peal_parser *parser, const char *name)
{
    const peal_graph *graph = parser->graph;
    for (int i = 0; i < graph->defines.count; i++)
        if (graph->defines.item[i]->name && !strcmp(graph->defines.item[i]->name, name))
            return graph->defines.item[i];
    return NULL;
}

/* A define is a param behind the others, whose value is computed once. */
static void resolve_define(peal_parser *parser, const peal_param_desc *desc, peal_param *out)
{
    peal_scope scope = {.graph = parser->data};
    *out = (peal_param){.name = desc->name ? desc->name : "", .source = desc->source};
    out->value = (peal_value){.kind = PEAL_INTEGER, .u.integer = 1}; /* one message is enough */
    if (!desc->value) {
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, desc->name, desc->source,
                           "an expression of params: define: {h: 1.0 / n}", "`%s` has no value",
                           out->name);
        return;
    }
    const peal_expr *expr = peal_parse_expression(parser, desc->value, desc->source, 0);
    if (expr && peal_expr_evaluate(expr, &scope, &out->value, parser->diagnostics))
        parser->failures++;
}

static void resolve_defines(peal_parser *parser, peal_param *params)
{
    const peal_graph *graph = parser->graph;
    for (int i = 0; i < graph->defines.count; i++) {
        int index = parser->data->param_count;
        resolve_define(parser, graph->defines.item[i], &params[index]);
        add_name(parser, graph->defines.item[i], index, "define"); /* behind what it may name */
        parser->data->param_count++;
    }
}

void peal_resolve_params(peal_parser *parser)
{
    peal_graph *graph = parser->graph;
    int count = graph->params.count;
    peal_param *params =
        PEAL_ARENA_ARRAY(graph->arena, peal_param, count + graph->defines.count + 1);
    for (int i = 0; i < count; i++)
        add_name(parser, graph->params.item[i], i, "param");
    for (int i = 0; i < count; i++) /* with all names: a param may be an expression of later ones */
        resolve_param(parser, graph->params.item[i], &params[i]);
    parser->data->params = params;
    parser->data->param_count = count;
    for (int i = 0; i < graph->overrides.count; i++)
        apply_override(parser, params, graph->overrides.item[i].text);
    for (int i = 0; i < count; i++) {
        const peal_param_desc *desc = graph->params.item[i];
        check_bound(parser, desc, &params[i], desc->min, 1, "at least");
        check_bound(parser, desc, &params[i], desc->max, -1, "at most");
    }
    resolve_defines(parser, params);
}
