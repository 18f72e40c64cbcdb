/* Bodies: statements in program order get their ids, names, conditions, loops. */
#include "base/expression.h"
#include "dsl/resolve.h"

#include <inttypes.h>
#include <string.h>

/* A statement that `after` may name. */
typedef struct label {
    int id;
    int section;
    const peal_statement *loop; /* around it; NULL: none */
    bool given;                 /* by `name:`, so it must be unique */
    bool ambiguous;             /* several tasks have this name */
} label;

/* The statements of a body, while copies are added to it. */
typedef PEAL_LIST(const peal_statement *) statement_list;

enum { MOST_STATEMENTS = 10000 /* where there are copies */, MOST_COPIES = 100000 };

typedef struct walk {
    peal_parser *parser;
    int next_id, copies;
    int section;
    const peal_statement *loop[PEAL_LOOP_DEPTH]; /* around what is resolved, outermost first */
    int loop_count;
    peal_name_table names;
    PEAL_LIST(label) labels;
} walk;

static peal_body resolve_body(walk *w, const raw_body *raw);

static void add_label(walk *w, const peal_statement *statement, const raw_statement *raw)
{
    struct peal_name_slot slot;
    label own = {.id = statement->id,
                 .section = w->section,
                 .loop = w->loop_count ? w->loop[w->loop_count - 1] : NULL,
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

/* A loop of another copy is another loop. */
static bool is_around(const walk *w, const label *found)
{
    bool around = !found->loop;
    for (int i = 0; i < w->loop_count && !around; i++)
        around = w->loop[i] == found->loop;
    return around && found->section == w->section;
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

/* In a copy a name means the statement of this copy, or of one around it. */
static bool find_label(walk *w, const char *name, struct peal_name_slot *slot)
{
    for (int counters = w->parser->bound_count; counters >= 0; counters--)
        if (peal_name_find(&w->names, peal_name_in_copy(w->parser, name, counters), slot))
            return true;
    return false;
}

static int resolve_after_name(walk *w, const raw_statement *raw, const char *text)
{
    struct peal_name_slot slot;
    const char *name = peal_name_with_values(w->parser, text, raw->source);
    if (!name)
        return -1;
    if (!find_label(w, name, &slot)) {
        const char *hint = hint_of_labels(w, name);
        peal_parser_report(w->parser, PEAL_E_INVALID_AFTER, text, raw->source,
                           hint ? hint : "it names statements further up by their `name:` or task",
                           "`after` names no statement further up: `%s`", name);
        return -1;
    }
    const label *found = &w->labels.item[slot.index];
    if (found->ambiguous) {
        peal_parser_report(w->parser, PEAL_E_INVALID_AFTER, text, raw->source,
                           "give the statement a `name:` of its own",
                           "`after` is ambiguous: several tasks are named `%s`", name);
        return -1;
    }
    if (is_around(w, found))
        return found->id;
    peal_parser_report(w->parser, PEAL_E_INVALID_AFTER, text, raw->source,
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
    if (desc->as && peal_counter_is_free(parser, desc->as, raw->source))
        loop->counter = desc->as;
    if (outer_count == 0)
        parser->counter[0] = NULL; /* in setup: there is no step yet */
    parser->counter[loop->depth] = loop->counter;
    parser->counter_count = loop->depth + 1;
    w->loop[w->loop_count++] = out;
    loop->body = resolve_body(w, &raw->body);
    w->loop_count--;
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
        if (raw->is_copy)
            peal_resolve_copy(parser, raw->desc, out);
        else
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

/* NULL: it is not there. */
static const peal_statement *resolve_statement(walk *w, const raw_statement *raw)
{
    peal_parser *parser = w->parser;
    const peal_expr *when = peal_parse_expression(parser, raw->when, raw->source, PEAL_ALLOW_ALL);
    if (!peal_is_in_copy(parser, &when))
        return NULL;
    peal_statement *out = PEAL_ARENA_NEW(parser->graph->arena, peal_statement);
    out->kind = raw->kind;
    out->source = raw->source;
    out->id = w->next_id++;
    out->name = raw->name;
    out->when = when;
    peal_require_boolean(parser, out->when, "`when`");
    resolve_after(w, raw, out);
    resolve_kind(w, raw, out);
    if (out->name && (raw->name || raw->kind == PEAL_STATEMENT_TASK))
        out->name = peal_name_in_copy(parser, out->name, parser->bound_count);
    add_label(w, out, raw);
    return out;
}

static void resolve_into(walk *w, const raw_body *raw, statement_list *list);

/* All copies say the same of a mistake: the first one that has some is the last one. */
static void make_copies(walk *w, const raw_statement *raw, statement_list *list)
{
    peal_parser *parser = w->parser;
    const peal_for_desc *desc = raw->desc;
    int64_t low, end;
    if (!desc->for_ || !desc->in) {
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, desc->for_, raw->source,
                           "for: l, in: [0, 3]", "copies have a counter and its values");
        return;
    }
    if (!peal_counter_is_free(parser, desc->for_, raw->source) ||
        !peal_resolve_range(parser, desc->in, raw->source, &low, &end) ||
        parser->bound_count == PEAL_BOUNDS) /* reported by the builder */
        return;
    peal_bound *bound = &parser->bound[parser->bound_count++];
    int failures = parser->failures;
    uint64_t copies = low < end ? (uint64_t)end - (uint64_t)low : 0;
    for (uint64_t i = 0; i < copies && parser->failures == failures; i++) {
        int64_t turn = (int64_t)i; /* it stops long before it is too large */
        *bound = (peal_bound){desc->for_, desc->down ? end - 1 - turn : low + turn};
        if (w->next_id > MOST_STATEMENTS || ++w->copies > MOST_COPIES)
            peal_parser_report(parser, PEAL_E_TOO_MANY_COPIES, desc->in, raw->source,
                               "a `repeat` counts while the job runs",
                               "there are more than %d statements with all copies",
                               MOST_STATEMENTS);
        else
            resolve_into(w, &raw->body, list);
    }
    parser->bound_count--;
}

static void resolve_into(walk *w, const raw_body *raw, statement_list *list)
{
    for (const raw_statement *s = raw->first; s; s = s->next) {
        if (s->copies) {
            make_copies(w, s, list);
            continue;
        }
        const peal_statement *one = resolve_statement(w, s);
        if (one)
            PEAL_LIST_ADD(w->parser->graph->arena, list, one);
    }
}

static peal_body resolve_body(walk *w, const raw_body *raw)
{
    statement_list list = {0};
    resolve_into(w, raw, &list);
    return (peal_body){.statement = list.item, .count = list.count};
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
