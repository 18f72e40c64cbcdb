/* Text templates: "u-{step}-{rank}.npy". `{{` and `}}` stand for a brace. */
#include "base/expression.h"
#include "base/number.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_BYTES = 64, NAME_CANDIDATES = 64 };

typedef struct expansion {
    const peal_scope *scope;
    const char *const *counter_name;
    peal_source source;
    peal_arena *arena;
    peal_diagnostics *diagnostics;
} expansion;

static const char *value_text(const expansion *e, const peal_value *value)
{
    char number[PEAL_NUMBER_TEXT];
    switch (value->kind) {
    case PEAL_INTEGER:
        return peal_arena_print(e->arena, "%" PRId64, value->u.integer);
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

static peal_status expand_name(const expansion *e, const char *name, const char **out)
{
    const peal_scope *scope = e->scope;
    if (!strcmp(name, "rank") || !strcmp(name, "ranks")) {
        *out = peal_arena_print(e->arena, "%d", name[4] ? scope->ranks : scope->rank);
        return PEAL_STATUS_OK;
    }
    for (int i = 0; i < scope->counter_count; i++)
        if (e->counter_name && e->counter_name[i] && !strcmp(e->counter_name[i], name)) {
            *out = peal_arena_print(e->arena, "%" PRId64, scope->counter ? scope->counter[i] : 0);
            return PEAL_STATUS_OK;
        }
    for (int i = 0; scope->graph && i < scope->graph->param_count; i++)
        if (!strcmp(scope->graph->params[i].name, name)) {
            *out = value_text(e, &scope->graph->params[i].value);
            return PEAL_STATUS_OK;
        }
    return unknown_name(e, name);
}

/* The placeholder at text[0] == '{'; *end is after its '}'. */
static peal_status expand_placeholder(const expansion *e, const char *text, const char **end,
                                      const char **out)
{
    const char *close = strchr(text, '}');
    char name[NAME_BYTES];
    size_t length = close ? (size_t)(close - text - 1) : 0;
    if (!close || length == 0 || length >= sizeof(name))
        return peal_report(e->diagnostics, PEAL_E_UNKNOWN_NAME_IN_TEXT, e->source,
                           "write {rank}, {step} or a param's name; {{ stands for a brace",
                           "a `{` without a name and `}` in a text");
    memcpy(name, text + 1, length);
    name[length] = 0;
    *end = close + 1;
    return expand_name(e, name, out);
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
