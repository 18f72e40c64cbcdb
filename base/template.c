/* Text templates: "u-{step:06}-{rank}.npy". `{{` and `}}` stand for a brace. */
#include "base/expression.h"
#include "base/number.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_CANDIDATES = 64 };

typedef struct expansion {
    const peal_scope *scope;
    const char *const *counter_name;
    peal_source source;
    peal_arena *arena;
    peal_diagnostics *diagnostics;
} expansion;

static const char *integer_text(const expansion *e, int64_t value, int width)
{
    /* A sign comes before the digits. */
    return peal_arena_print(e->arena, "%0*" PRId64, width > 0 ? width + (value < 0) : 0, value);
}

static const char *value_text(const expansion *e, const peal_value *value, int width)
{
    char number[PEAL_NUMBER_TEXT];
    switch (value->kind) {
    case PEAL_INTEGER:
        return integer_text(e, value->u.integer, width);
    case PEAL_REAL:
        return peal_arena_print(e->arena, "%s",
                                peal_number_print(number, PEAL_NUMBER_EXACT, value->u.real));
    case PEAL_BOOLEAN:
        return value->u.boolean ? "true" : "false";
    case PEAL_TEXT:
        return value->u.text;
    }
    return "";
}

static peal_status unknown_name(const expansion *e, const char *name)
{
    const char *candidates[NAME_CANDIDATES] = {"rank", "ranks"};
    size_t count = 2;
    const peal_scope *scope = e->scope;
    for (int i = 0; i < scope->counter_count && count < NAME_CANDIDATES; i++)
        if (e->counter_name && e->counter_name[i])
            candidates[count++] = e->counter_name[i];
    for (int i = 0; scope->graph && i < scope->graph->param_count && count < NAME_CANDIDATES; i++)
        candidates[count++] = scope->graph->params[i].name;
    const char *nearest = peal_nearest_word(name, candidates, count);
    const char *hint = !strcmp(name, "step") ? "the steps begin after setup"
                       : nearest
                           ? peal_arena_print(e->arena, "did you mean {%s}?", nearest)
                           : "known are {rank}, {ranks}, params and the counters of the loops "
                             "around this statement";
    return peal_report(e->diagnostics, PEAL_E_UNKNOWN_NAME_IN_TEXT, e->source, hint,
                       "unknown name {%s} in a text", name);
}

static peal_status expand_name(const expansion *e, const char *name, int width, const char **out)
{
    const peal_scope *scope = e->scope;
    if (!strcmp(name, "rank") || !strcmp(name, "ranks")) {
        *out = integer_text(e, name[4] ? scope->ranks : scope->rank, width);
        return PEAL_STATUS_OK;
    }
    for (int i = 0; i < scope->counter_count; i++)
        if (e->counter_name && e->counter_name[i] && !strcmp(e->counter_name[i], name)) {
            *out = integer_text(e, scope->counter ? scope->counter[i] : 0, width);
            return PEAL_STATUS_OK;
        }
    for (int i = 0; scope->graph && i < scope->graph->param_count; i++)
        if (!strcmp(scope->graph->params[i].name, name)) {
            const peal_value *value = &scope->graph->params[i].value;
            if (width > 0 && value->kind != PEAL_INTEGER)
                return peal_report(e->diagnostics, PEAL_E_UNKNOWN_NAME_IN_TEXT, e->source,
                                   "a width is for integers",
                                   "{%s:0%d} in a text: `%s` is no integer", name, width, name);
            *out = value_text(e, value, width);
            return PEAL_STATUS_OK;
        }
    return unknown_name(e, name);
}

const char *peal_template_placeholder(const char *text, char name[PEAL_TEMPLATE_NAME_BYTES],
                                      int *width)
{
    size_t length = strcspn(text + 1, ":}");
    const char *at = text + 1 + length;

    if (length == 0 || length >= PEAL_TEMPLATE_NAME_BYTES)
        return NULL;
    memcpy(name, text + 1, length);
    name[length] = 0;
    *width = 0;
    if (*at == ':') {
        if (*++at != '0')
            return NULL;
        while (*++at >= '0' && *at <= '9' && *width <= PEAL_TEMPLATE_MOST_DIGITS)
            *width = 10 * *width + *at - '0';
        if (*width == 0 || *width > PEAL_TEMPLATE_MOST_DIGITS)
            return NULL;
    }
    return *at == '}' ? at + 1 : NULL;
}

bool peal_template_names(const char *text, const char *name)
{
    char found[PEAL_TEMPLATE_NAME_BYTES];
    int width;
    while (*text) {
        bool doubled = (text[0] == '{' || text[0] == '}') && text[1] == text[0];
        const char *end =
            text[0] == '{' && !doubled ? peal_template_placeholder(text, found, &width) : NULL;
        if (end && !strcmp(found, name))
            return true;
        text = end ? end : text + (doubled ? 2 : 1);
    }
    return false;
}

/* The placeholder at text[0] == '{'; *end is after its '}'. */
static peal_status expand_placeholder(const expansion *e, const char *text, const char **end,
                                      const char **out)
{
    char name[PEAL_TEMPLATE_NAME_BYTES];
    int width;
    *end = peal_template_placeholder(text, name, &width);
    if (!*end)
        return peal_report(
            e->diagnostics, PEAL_E_UNKNOWN_NAME_IN_TEXT, e->source,
            "write {rank}, {step} or a param's name, {step:06} for leading zeros; "
            "{{ stands for a brace",
            "a `{` that is not followed by a name, perhaps `:0` and a width of 1 to 20, and `}`");
    return expand_name(e, name, width, out);
}

peal_status peal_template_expand(const char *text, const peal_scope *scope,
                                 const char *const *counter_name, peal_source source,
                                 peal_arena *arena, const char **out, peal_diagnostics *diagnostics)
{
    expansion e = {scope, counter_name, source, arena, diagnostics};
    const char *result = "";
    while (*text) {
        const char *end = text + 1, *piece = "";
        if ((text[0] == '{' || text[0] == '}') && text[1] == text[0]) {
            piece = peal_arena_copy_bytes(arena, text, 1);
            end = text + 2;
        } else if (text[0] == '{') {
            peal_status status = expand_placeholder(&e, text, &end, &piece);
            if (status)
                return status;
        } else {
            size_t plain = text[0] == '}' ? 1 : strcspn(text, "{}");
            piece = peal_arena_copy_bytes(arena, text, plain);
            end = text + plain;
        }
        result = peal_arena_print(arena, "%s%s", result, piece);
        text = end;
    }
    *out = result;
    return PEAL_STATUS_OK;
}
