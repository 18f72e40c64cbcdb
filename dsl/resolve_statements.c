/* Bodies: statements in program order get their ids, names, conditions, loops. */
#include "base/expression.h"
#include "dsl/resolve.h"

#include <inttypes.h>
#include <string.h>

/* A statement that `after` may name. */
typedef struct label {
    int id;
    int section;
    const raw_statement *parent;
    bool given;     /* by `name:`, so it must be unique */
    bool ambiguous; /* several tasks have this name */
} label;

typedef struct walk {
    peal_parser *parser;
    int next_id;
    int section;
    peal_name_table names;
    PEAL_LIST(label) labels;
} walk;

static peal_body resolve_body(walk *w, const raw_body *raw);

static void add_label(walk *w, const peal_statement *statement, const raw_statement *raw)
{
    struct peal_name_slot slot;
    label own = {.id = statement->id,
                 .section = w->section,
                 .parent = raw->parent,
                 .given = raw->name != NULL};
    if (!raw->name && raw->kind != PEAL_STATEMENT_TASK)
        return;
    if (peal_name_add(w->parser->graph->arena, &w->names, statement->name, PEAL_NAME_NONE,
                      w->labels.count, &slot)) {
        PEAL_LIST_ADD(w->parser->graph->arena, &w->labels, own);
        return;
    }
    label *other = &w->labels.item[slot.index];
    other->ambiguous = true;
    if (own.given || other->given)
        peal_parser_report(w->parser, PEAL_E_DUPLICATE_STATEMENT_NAME, raw->name, raw->source, NULL,
                           "two statements are named `%s`", statement->name);
}

static bool is_around(const raw_statement *loop, const raw_statement *statement)
{
    for (const raw_statement *s = statement->parent;; s = s->parent) {
        if (s == loop)
            return true;
        if (!s)
            return false;
    }
}

static const char *hint_of_labels(walk *w, const char *name)
{
    const char *candidates[256];
    size_t count = 0;
    for (size_t i = 0; i < w->names.size && count < 256; i++)
        if (w->names.slot[i].name)
            candidates[count++] = w->names.slot[i].name;
    return peal_parser_hint(w->parser, name, candidates, count);
}

static int resolve_after_name(walk *w, const raw_statement *raw, const char *name)
{
    struct peal_name_slot slot;
    if (!peal_name_find(&w->names, name, &slot)) {
        const char *hint = hint_of_labels(w, name);
        peal_parser_report(w->parser, PEAL_E_INVALID_AFTER, name, raw->source,
                           hint ? hint : "it names statements further up by their `name:` or task",
                           "`after` names no statement further up: `%s`", name);
        return -1;
    }
    const label *found = &w->labels.item[slot.index];
    if (found->ambiguous) {
        peal_parser_report(w->parser, PEAL_E_INVALID_AFTER, name, raw->source,
                           "give the statement a `name:` of its own",
                           "`after` is ambiguous: several tasks are named `%s`", name);
        return -1;
    }
    if (found->section == w->section && is_around(found->parent, raw))
        return found->id;
    peal_parser_report(w->parser, PEAL_E_INVALID_AFTER, name, raw->source,
                       "name statements of the same body or of one around it",
                       "`%s` is a statement of another body", name);
    return -1;
}

static void resolve_after(walk *w, const raw_statement *raw, peal_statement *out)
{
    int *ids = PEAL_ARENA_ARRAY(w->parser->graph->arena, int, PEAL_GRAPH_AFTER);
    for (int i = 0; i < PEAL_GRAPH_AFTER && raw->after[i]; i++) {
        int id = resolve_after_name(w, raw, raw->after[i]);
        if (id >= 0)
            ids[out->after_count++] = id;
    }
    out->after = ids;
}

static bool check_counter(peal_parser *parser, const char *name, peal_source source)
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
    if (taken)
        peal_parser_report(parser, PEAL_E_DUPLICATE_NAME, name, source, NULL,
                           "the name `%s` is taken", name);
    return !taken;
}

/* What depends on ranks or on counters of loops around is known later. */
static void require_at_least(peal_parser *parser, const peal_expr *expr, int64_t least,
                             const char *what)
{
    peal_value value;
    if (expr && peal_expr_kind_of(expr, parser->data) == PEAL_INTEGER &&
        peal_constant_value(parser, expr, &value) && value.u.integer < least)
        peal_parser_report(parser, PEAL_E_VALUE_OUT_OF_RANGE, NULL, expr->source, NULL,
                           "%s is %" PRId64 ", and cannot be less than %" PRId64, what,
                           value.u.integer, least);
}

/* repeat, every, lag are known before the loop begins; until is seen from inside of it. */
static void resolve_limits(peal_parser *parser, const peal_loop_desc *desc, peal_loop *out)
{
    unsigned allow = PEAL_ALLOW_UNIFORM | PEAL_ALLOW_COUNTERS;
    out->repeat = peal_parse_expression(parser, desc->repeat, desc->source, allow);
    out->every = peal_parse_expression(parser, desc->every, desc->source, allow);
    out->lag = peal_parse_expression(parser, desc->lag, desc->source, allow);
    peal_require_integer(parser, out->repeat, "`repeat`");
    peal_require_integer(parser, out->every, "`every`");
    peal_require_integer(parser, out->lag, "`lag`");
    require_at_least(parser, out->repeat, 0, "`repeat`");
    require_at_least(parser, out->every, 1, "`every`");
    require_at_least(parser, out->lag, 0, "`lag`");
    if ((desc->every || desc->lag) && !desc->until)
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION,
                           desc->every ? desc->every : desc->lag, desc->source,
                           "every and lag are about until", "`until` is missing");
}

static void resolve_until(peal_parser *parser, const peal_loop_desc *desc, peal_loop *out)
{
    out->until = peal_parse_expression(parser, desc->until, desc->source, PEAL_ALLOW_ALL);
    peal_require_boolean(parser, out->until, "`until`");
}

static void resolve_repeat(walk *w, const raw_statement *raw, peal_statement *out)
{
    peal_parser *parser = w->parser;
    const peal_loop_desc *desc = raw->desc;
    peal_loop *loop = &out->u.loop;
    int outer_count = parser->counter_count;
    loop->depth = outer_count > 0 ? outer_count : 1;
    if (!out->name)
        out->name = "repeat";
    if (!desc->repeat)
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, NULL, raw->source, NULL,
                           "a loop without `repeat`");
    resolve_limits(parser, desc, loop);
    if (loop->depth >= PEAL_LOOP_DEPTH)
        return; /* reported by the builder */
    if (desc->as && check_counter(parser, desc->as, raw->source))
        loop->counter = desc->as;
    if (outer_count == 0)
        parser->counter[0] = NULL; /* in setup: there is no step yet */
    parser->counter[loop->depth] = loop->counter;
    parser->counter_count = loop->depth + 1;
    loop->body = resolve_body(w, &raw->body);
    resolve_until(parser, desc, loop);
    parser->counter_count = outer_count;
}

static void resolve_kind(walk *w, const raw_statement *raw, peal_statement *out)
{
    peal_parser *parser = w->parser;
    switch (raw->kind) {
    case PEAL_STATEMENT_TASK:
        peal_resolve_task(parser, raw->desc, out);
        break;
    case PEAL_STATEMENT_EXCHANGE:
        peal_resolve_exchange(parser, raw->desc, out);
        break;
    case PEAL_STATEMENT_SEND:
    case PEAL_STATEMENT_RECV:
        peal_resolve_message(parser, raw->desc, out);
        break;
    case PEAL_STATEMENT_REDUCE:
        peal_resolve_rank_reduce(parser, raw->desc, raw->everyone, out);
        break;
    case PEAL_STATEMENT_SWAP:
        peal_resolve_swap(parser, raw->desc, out);
        break;
    case PEAL_STATEMENT_SET:
        peal_resolve_set(parser, raw->desc, out);
        break;
    case PEAL_STATEMENT_PRINT:
        peal_resolve_print(parser, raw->desc, out);
        break;
    case PEAL_STATEMENT_LOAD:
    case PEAL_STATEMENT_SAVE:
        peal_resolve_file(parser, raw->desc, out);
        break;
    case PEAL_STATEMENT_REPEAT:
        resolve_repeat(w, raw, out);
        break;
    }
}

static const peal_statement *resolve_statement(walk *w, const raw_statement *raw)
{
    peal_statement *out = PEAL_ARENA_NEW(w->parser->graph->arena, peal_statement);
    out->kind = raw->kind;
    out->source = raw->source;
    out->id = w->next_id++;
    out->name = raw->name;
    out->when = peal_parse_expression(w->parser, raw->when, raw->source, PEAL_ALLOW_ALL);
    peal_require_boolean(w->parser, out->when, "`when`");
    resolve_after(w, raw, out);
    resolve_kind(w, raw, out);
    add_label(w, out, raw);
    return out;
}

static peal_body resolve_body(walk *w, const raw_body *raw)
{
    peal_body body = {0};
    const peal_statement **list =
        PEAL_ARENA_ARRAY(w->parser->graph->arena, const peal_statement *, raw->count);
    for (const raw_statement *s = raw->first; s; s = s->next)
        list[body.count++] = resolve_statement(w, s);
    body.statement = list;
    return body;
}

static void set_counters(peal_parser *parser, const char *step, const char *reason)
{
    parser->counter[0] = step;
    parser->counter_count = step ? 1 : 0;
    parser->counter_reason = reason;
}

void peal_resolve_statements(peal_parser *parser)
{
    walk w = {.parser = parser};
    peal_graph *graph = parser->graph;
    peal_graph_data *data = parser->data;
    peal_loop *step = &data->step;
    step->counter = "step";
    set_counters(parser, NULL, "the steps begin after setup");
    data->setup = resolve_body(&w, &graph->section[PEAL_SETUP]);
    w.section = PEAL_STEP;
    set_counters(parser, NULL, "a loop counter is known only inside its loop");
    if (graph->loop)
        resolve_limits(parser, graph->loop, step);
    set_counters(parser, "step", NULL);
    step->body = resolve_body(&w, &graph->section[PEAL_STEP]);
    if (graph->loop)
        resolve_until(parser, graph->loop, step);
    w.section = PEAL_FINISH;
    data->finish = resolve_body(&w, &graph->section[PEAL_FINISH]);
    data->statement_count = w.next_id;
}
