/* Copies of statements: counters of `for`, and the names that statements have in a copy. */
#include "base/expression.h"
#include "dsl/expression_parser.h"
#include "dsl/resolve.h"

#include <inttypes.h>
#include <string.h>

bool peal_counter_is_free(peal_parser *parser, const char *name, peal_source source)
{
    struct peal_name_slot slot;
    if (!peal_is_name(name) || peal_is_reserved(name)) {
        peal_parser_report(parser, PEAL_E_INVALID_NAME, name, source,
                           "a name is a letter, then letters, digits, _; words of the language are "
                           "taken",
                           "`%s` cannot be the name of a counter", name);
        return false;
    }
    bool taken = peal_name_find(&parser->names, name, &slot);
    for (int i = 0; i < parser->counter_count; i++)
        taken = taken || (parser->counter[i] && !strcmp(parser->counter[i], name));
    for (int i = 0; i < parser->bound_count; i++)
        taken = taken || !strcmp(parser->bound[i].name, name);
    if (taken)
        peal_parser_report(parser, PEAL_E_DUPLICATE_NAME, name, source, NULL,
                           "the name `%s` is taken", name);
    return !taken;
}

bool peal_is_in_copy(const peal_parser *parser, const peal_expr **when)
{
    peal_scope scope = {.graph = parser->data};
    bool holds = true;
    if (parser->bound_count == 0 || !*when || peal_expr_boolean(*when, &scope, true, &holds, NULL))
        return true;
    *when = NULL;
    return holds;
}

const char *peal_file_in_copy(const peal_parser *parser, const char *text)
{
    peal_arena *arena = parser->graph->arena;
    const char *out = "";
    if (parser->bound_count == 0 || !text || !strchr(text, '{'))
        return text;
    while (*text) {
        char name[PEAL_TEMPLATE_NAME_BYTES];
        int width, i = parser->bound_count;
        bool doubled = text[0] == '{' && text[1] == '{';
        const char *end =
            text[0] == '{' && !doubled ? peal_template_placeholder(text, name, &width) : NULL;
        while (end && --i >= 0 && strcmp(parser->bound[i].name, name))
            ;
        if (end && i >= 0) {
            int64_t value = parser->bound[i].value;
            out = peal_arena_print(arena, "%s%0*" PRId64, out, width > 0 ? width + (value < 0) : 0,
                                   value);
            text = end;
            continue;
        }
        size_t length = doubled ? 2 : 1 + strcspn(text + 1, "{");
        out = peal_arena_print(arena, "%s%s", out, peal_arena_copy_bytes(arena, text, length));
        text += length;
    }
    return out;
}

const char *peal_name_in_copy(const peal_parser *parser, const char *name, int counters)
{
    for (int i = 0; i < counters; i++)
        name = peal_arena_print(parser->graph->arena, "%s%s%" PRId64 "%s", name, i ? "," : "(",
                                parser->bound[i].value, i + 1 == counters ? ")" : "");
    return name;
}

/* The value of what stands in brackets behind a statement's name. */
static bool take_value(peal_cursor *c, int64_t *out)
{
    peal_value value;
    c->parser->allow = 0;
    const char *start = c->at;
    const peal_expr *expr = peal_parse_one(c);
    if (!expr || !peal_require_integer(c->parser, expr, "an index"))
        return false;
    if (peal_constant_value(c->parser, expr, &value)) {
        *out = value.u.integer;
        return true;
    }
    peal_parser_report(c->parser, PEAL_E_VALUE_NOT_KNOWN_YET, start, c->source,
                       "it is made of numbers, params, defines and counters of `for`",
                       "which copy is meant is known before the run");
    return false;
}

const char *peal_name_with_values(peal_parser *parser, const char *text, peal_source source)
{
    size_t length = 0;
    while (peal_is_word_byte(text[length]))
        length++;
    peal_arena *arena = parser->graph->arena;
    peal_cursor c = {.parser = parser, .at = text + length, .source = source};
    peal_cursor_skip(&c);
    if (!length || *c.at != '(')
        return text;
    const char *name = peal_arena_copy_bytes(arena, text, length);
    for (const char *before = "("; *c.at == '(' || *c.at == ','; before = ",") {
        int64_t value;
        c.at++;
        if (!take_value(&c, &value))
            return NULL;
        name = peal_arena_print(arena, "%s%s%" PRId64, name, before, value);
        peal_cursor_skip(&c);
    }
    if (*c.at != ')' || c.at[1]) {
        peal_syntax_error(&c, c.at, "after: sweep(l)", "expected `)` and the end of the name");
        return NULL;
    }
    return peal_arena_print(arena, "%s)", name);
}
