/* What a name of an expression stands for, and whether it may stand there. */
#include "dsl/expression_parser.h"
#include "dsl/resolve.h"

#include "base/expression.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { CANDIDATES = 256 };

static const char axis_letters[] = "xyz";

static peal_expr *node(peal_cursor *c, peal_expr_kind kind, const char *at, int index, int axis)
{
    peal_expr *expr = PEAL_ARENA_NEW(c->parser->graph->arena, peal_expr);
    expr->kind = kind;
    expr->index = index;
    expr->axis = axis;
    expr->source = peal_cursor_place(c, at);
    return expr;
}

static const peal_expr *refuse(peal_cursor *c, const char *at, const char *hint, const char *word,
                               const char *why)
{
    peal_parser_report(c->parser, PEAL_E_NAME_OUT_OF_SCOPE, at, c->source, hint,
                       "`%s` cannot stand here: %s", word, why);
    return NULL;
}

/* The first loop that counts by this name; NULL: none. */
static const raw_statement *loop_counting(const raw_body *body, const char *word)
{
    for (const raw_statement *s = body->first; s; s = s->next) {
        const char *counter = NULL;
        if (s->kind == PEAL_STATEMENT_REPEAT)
            counter = s->copies ? ((const peal_for_desc *)s->desc)->for_
                                : ((const peal_loop_desc *)s->desc)->as;
        if (counter && !strcmp(counter, word))
            return s;
        const raw_statement *inner =
            s->kind == PEAL_STATEMENT_REPEAT ? loop_counting(&s->body, word) : NULL;
        if (inner)
            return inner;
    }
    return NULL;
}

static const peal_expr *unknown_name(peal_cursor *c, const char *word, const char *at)
{
    peal_parser *parser = c->parser;
    for (int i = 0; i < 3; i++) {
        const raw_statement *loop = loop_counting(&parser->graph->section[i], word);
        if (loop)
            return refuse(c, at,
                          peal_arena_print(parser->graph->arena, "it counts the %s in line %d",
                                           loop->copies ? "`for`" : "loop", loop->source.line),
                          word, "a loop counter is known only inside its loop");
    }
    if (peal_define_named(parser, word))
        return refuse(c, at, "define it further up", word,
                      "a define may only use params and what is defined before it");
    const char *candidates[CANDIDATES] = {"rank", "ranks", "rx",   "ry",    "rz", "Rx",
                                          "Ry",   "Rz",    "true", "false", "not"};
    size_t count = 11;
    for (int i = 0; i < 2; i++)
        if (parser->also[i])
            candidates[count++] = parser->also[i];
    for (int i = 0; i < parser->counter_count; i++)
        if (parser->counter[i])
            candidates[count++] = parser->counter[i];
    for (int i = 0; i < parser->data->param_count && count < CANDIDATES; i++)
        candidates[count++] = parser->data->params[i].name;
    for (int i = 0; i < parser->array_ready && count < CANDIDATES; i++)
        candidates[count++] = parser->arrays[i].name;
    const char *hint = peal_parser_hint(parser, word, candidates, count);
    if (!strcasecmp(word, "yes") || !strcasecmp(word, "on"))
        hint = "did you mean `true`?";
    if (!strcasecmp(word, "no") || !strcasecmp(word, "off"))
        hint = "did you mean `false`?";
    if (peal_is_reserved(word))
        hint = "it is a word of the language, which has no value in an expression";
    peal_parser_report(parser, PEAL_E_UNKNOWN_NAME, at, c->source, hint, "unknown name `%s`", word);
    return NULL;
}

/* rank, ranks, rx .. Rz, true, false, pi. */
static bool resolve_fixed(peal_cursor *c, const char *word, const char *at, const peal_expr **out)
{
    unsigned allow = c->parser->allow;
    *out = NULL;
    if (!strcmp(word, "true") || !strcmp(word, "false")) {
        peal_expr *expr = node(c, PEAL_EXPR_CONSTANT, at, 0, 0);
        expr->value.kind = PEAL_BOOLEAN;
        expr->value.u.boolean = word[0] == 't';
        *out = expr;
        return true;
    }
    if (!strcmp(word, "pi")) {
        peal_expr *expr = node(c, PEAL_EXPR_CONSTANT, at, 0, 0);
        expr->value = (peal_value){.kind = PEAL_REAL, .u.real = 3.14159265358979323846};
        *out = expr;
        return true;
    }
    if (!strcmp(word, "ranks")) {
        *out = node(c, PEAL_EXPR_RANKS, at, 0, 0);
        return true;
    }
    bool is_rank = !strcmp(word, "rank");
    const char *axis = word[0] && word[1] && !word[2] ? strchr(axis_letters, word[1]) : NULL;
    bool position = axis && word[0] == 'r', dims = axis && word[0] == 'R';
    if (!is_rank && !position && !dims)
        return false;
    bool allowed = is_rank    ? (allow & (PEAL_ALLOW_RANK | PEAL_ALLOW_TEXT_RANK)) != 0
                   : position ? (allow & PEAL_ALLOW_RANK) != 0
                              : (allow & PEAL_ALLOW_DIMS) != 0;
    if (!allowed)
        refuse(c, at, NULL, word,
               dims ? "the topology is not known yet" : "the value must be the same on all ranks");
    else if (is_rank)
        *out = node(c, PEAL_EXPR_RANK, at, 0, 0);
    else
        *out = node(c, dims ? PEAL_EXPR_RANKS_AXIS : PEAL_EXPR_RANK_AXIS, at, 0,
                    (int)(axis - axis_letters));
    return true;
}

static const peal_expr *resolve_bound(peal_cursor *c, const char *word, const char *at)
{
    for (int i = c->parser->bound_count - 1; i >= 0; i--)
        if (!strcmp(c->parser->bound[i].name, word)) {
            peal_expr *expr = node(c, PEAL_EXPR_CONSTANT, at, 0, 0);
            expr->value.u.integer = c->parser->bound[i].value;
            return expr;
        }
    return NULL;
}

static bool resolve_counter(peal_cursor *c, const char *word, const char *at, const peal_expr **out)
{
    peal_parser *parser = c->parser;
    *out = NULL;
    for (int i = parser->counter_count - 1; i >= 0; i--)
        if (parser->counter[i] && !strcmp(parser->counter[i], word)) {
            if (parser->allow & PEAL_ALLOW_COUNTERS)
                *out = node(c, PEAL_EXPR_COUNTER, at, i, 0);
            else
                refuse(c, at, NULL, word, "a loop counter is known only inside its loop");
            return true;
        }
    if (strcmp(word, "step"))
        return false;
    refuse(c, at, NULL, word,
           parser->counter_reason ? parser->counter_reason : "it is known only in step and finish");
    return true;
}

static const peal_expr *resolve_member(peal_cursor *c, const char *word, const char *at, int index)
{
    const peal_array *array = &c->parser->arrays[index];
    const char *start = ++c->at, *end = start;
    while (isalnum((unsigned char)*end) || *end == '_')
        end++;
    size_t length = (size_t)(end - start);
    c->at = end;
    bool is_count = length == 5 && !strncmp(start, "count", 5);
    const char *axis = length == 2 && start[1] != 0 ? strchr(axis_letters, start[1]) : NULL;
    const char *origin = length == 2 && start[1] == '0' ? strchr(axis_letters, start[0]) : NULL;
    bool is_extent = axis && start[0] == 'n';
    bool fits = array->kind == PEAL_ARRAY_FIELD ? is_extent || origin : is_count;
    if (!fits) {
        peal_parser_report(c->parser, PEAL_E_UNKNOWN_NAME, start, c->source,
                           "fields have nx ny nz (extent of my part) and x0 y0 z0 (its first "
                           "coordinate), buffers have count",
                           "`%s` has no `%.*s`", word, (int)(length < 60 ? length : 60), start);
        return NULL;
    }
    if (!(c->parser->allow & PEAL_ALLOW_RANK))
        return refuse(c, at, NULL,
                      peal_arena_print(c->parser->graph->arena, "%s.%.*s", word, (int)length,
                                       start),
                      "the value must be the same on all ranks");
    if (is_count)
        return node(c, PEAL_EXPR_COUNT, at, index, 0);
    int k = (int)((is_extent ? axis : origin) - axis_letters);
    if (k >= array->axis_count) {
        peal_parser_report(c->parser, PEAL_E_WRONG_AXIS_COUNT, start, c->source, NULL,
                           "`%s` has no axis %c: it has %d", word, axis_letters[k],
                           array->axis_count);
        return NULL;
    }
    return node(c, is_extent ? PEAL_EXPR_EXTENT : PEAL_EXPR_ORIGIN, at, index, k);
}

static const peal_expr *resolve_array(peal_cursor *c, const char *word, const char *at,
                                      int declaration)
{
    peal_parser *parser = c->parser;
    int index = parser->family[declaration].first;
    if (index < parser->array_ready)
        index = peal_resolve_member(c, at, declaration);
    if (index < 0)
        return NULL;
    if (index >= parser->array_ready)
        return refuse(c, at,
                      parser->family[declaration].first <= parser->array_ready &&
                              parser->family[declaration].counter
                          ? "members of a family may not name each other"
                          : "declare it further up",
                      word, "fields and buffers may only use those that are declared before them");
    if (*c->at == '.')
        return resolve_member(c, word, at, index);
    if (!(parser->allow & PEAL_ALLOW_ELEMENTS))
        return refuse(c, at, "run-time values are for args, set, when, until, print", word,
                      "its value is known only while running");
    if (!peal_is_one_element(parser, &parser->arrays[index])) {
        peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, at, c->source,
                           "only a buffer of one element has a value in expressions",
                           "`%s` is not a buffer of one element", word);
        return NULL;
    }
    return node(c, PEAL_EXPR_ELEMENT, at, index, 0);
}

const peal_expr *peal_resolve_name(peal_cursor *c, const char *word, const char *at)
{
    const peal_expr *out;
    struct peal_name_slot slot;
    const peal_expr *bound = resolve_bound(c, word, at);
    if (bound)
        return bound;
    if (resolve_fixed(c, word, at, &out) || resolve_counter(c, word, at, &out))
        return out;
    if (!peal_name_find(&c->parser->names, word, &slot))
        return unknown_name(c, word, at);
    if (slot.kind == PEAL_NAME_ARRAY)
        return resolve_array(c, word, at, slot.index);
    return node(c, PEAL_EXPR_PARAM, at, slot.index, 0);
}

bool peal_constant_value(const peal_parser *parser, const peal_expr *expr, peal_value *out)
{
    peal_scope scope = {.graph = parser->data};
    if (!expr || peal_expr_uses(expr))
        return false;
    return peal_expr_evaluate(expr, &scope, out, NULL) == PEAL_STATUS_OK;
}
