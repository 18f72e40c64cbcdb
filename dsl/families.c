/* Declarations of arrays: one array, or a family u(0), u(1), ... of them, one for each value of its
 * counter; what `like` brings together; and which array a name with an index stands for. */
#include "base/expression.h"
#include "dsl/expression_parser.h"
#include "dsl/resolve.h"

#include <inttypes.h>
#include <string.h>

enum { CANDIDATES = 256, MOST_MEMBERS = 1 << 16, MOST_ARRAYS = 1 << 20, MOST_LIKE = 256 };

/* ---- members ---- */

static size_t word_length(const char *text)
{
    size_t length = 0;
    while (peal_is_word_byte(text[length]))
        length++;
    return length;
}

/* A list of two is low and end; the text is as of `in`. */
bool peal_resolve_range(peal_parser *parser, const char *text, peal_source source, int64_t *low,
                        int64_t *end)
{
    peal_value value;
    int64_t *out[2] = {low, end};
    const peal_item *item = peal_parse_list(parser, text, source, 0, NULL);
    if (!item)
        return false;
    if (!item->is_list || item->count != 2 || !item->item[0].expr || !item->item[1].expr) {
        peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, text, source, "in: [0, 3] is 0, 1, 2",
                           "expected the first number and the one behind the last");
        return false;
    }
    for (int i = 0; i < 2; i++) {
        const peal_expr *expr = item->item[i].expr;
        if (!peal_require_integer(parser, expr, "an end of `in`"))
            return false;
        if (!peal_constant_value(parser, expr, &value)) {
            peal_parser_report(parser, PEAL_E_VALUE_NOT_KNOWN_YET, NULL, expr->source,
                               "it is made of numbers, params, defines and counters of `for`",
                               "`in` is known before the run");
            return false;
        }
        *out[i] = value.u.integer;
    }
    return true;
}

/* The index behind "u("; the cursor goes on behind the bracket. */
static bool take_index(peal_cursor *c, const char *name, int64_t *out)
{
    peal_value value;
    unsigned allow = c->parser->allow;
    c->parser->allow = 0;
    const char *start = ++c->at;
    const peal_expr *expr = peal_parse_one(c);
    c->parser->allow = allow;
    if (!expr)
        return false;
    peal_cursor_skip(c);
    if (*c->at != ')') {
        peal_syntax_error(c, c->at, NULL, "expected `)` behind an index");
        return false;
    }
    c->at++;
    if (!peal_require_integer(c->parser, expr, "an index"))
        return false;
    if (!peal_constant_value(c->parser, expr, &value)) {
        peal_parser_report(c->parser, PEAL_E_VALUE_NOT_KNOWN_YET, start, c->source,
                           "it is made of numbers, params, defines and counters of `for`",
                           "the index of `%s` is known before the run", name);
        return false;
    }
    *out = value.u.integer;
    return true;
}

int peal_resolve_member(peal_cursor *c, const char *at, int declaration)
{
    const peal_family *family = &c->parser->family[declaration];
    int64_t index = 0;
    peal_cursor_skip(c);
    if (*c->at != '(') {
        if (!family->counter)
            return family->first;
        peal_parser_report(c->parser, PEAL_E_WRONG_ARRAY_KIND, at, c->source,
                           peal_arena_print(c->parser->graph->arena,
                                            "write `%s(%" PRId64 ")`, or another of its %d",
                                            family->name, family->low, family->count),
                           "`%s` is a family", family->name);
        return -1;
    }
    if (!family->counter) {
        peal_parser_report(c->parser, PEAL_E_WRONG_ARRAY_KIND, at, c->source,
                           "a family is declared with `for: l, in: [0, 3]`; footprints are written "
                           "{u: {star: 1}}",
                           "`%s` is no family and has no index", family->name);
        return -1;
    }
    if (!take_index(c, family->name, &index))
        return -1;
    if (index >= family->low && (uint64_t)index - (uint64_t)family->low < (uint64_t)family->count)
        return family->first + (int)(index - family->low);
    peal_parser_report(c->parser, PEAL_E_UNKNOWN_NAME, at, c->source,
                       peal_arena_print(c->parser->graph->arena,
                                        "it has `%s(%" PRId64 ")` to `%s(%" PRId64 ")`",
                                        family->name, family->low, family->name,
                                        family->low + family->count - 1),
                       "there is no `%s(%" PRId64 ")`", family->name, index);
    return -1;
}

int peal_find_declaration(peal_parser *parser, const char *text, size_t *length)
{
    struct peal_name_slot slot;
    char name[64];
    *length = word_length(text);
    if (*length == 0 || *length >= sizeof(name))
        return -1;
    memcpy(name, text, *length);
    name[*length] = 0;
    return peal_name_find(&parser->names, name, &slot) && slot.kind == PEAL_NAME_ARRAY ? slot.index
                                                                                       : -1;
}

/* "u(*)", blanks allowed. */
static bool names_all(const char *behind)
{
    const char *const part[] = {"(", "*", ")"};
    for (int i = 0; i < 3; i++) {
        behind += strspn(behind, " ");
        if (*behind++ != *part[i])
            return false;
    }
    return !behind[strspn(behind, " ")];
}

peal_members peal_members_of(peal_parser *parser, const char *name, peal_source source)
{
    size_t length;
    int declaration = peal_find_declaration(parser, name, &length);
    if (declaration < 0 || !names_all(name + length))
        return (peal_members){.name = name, .source = source, .count = 1};
    const peal_family *family = &parser->family[declaration];
    peal_source place = peal_graph_place(parser->graph, name, source);
    if (family->counter)
        return (peal_members){.family = family, .source = place, .count = family->count};
    peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, name, source,
                       "a family is declared with `for: l, in: [0, 3]`",
                       "`%s` is no family and has no members", family->name);
    return (peal_members){.count = 0};
}

const char *peal_member_name(const peal_parser *parser, const peal_members *members, int index)
{
    return members->family ? parser->arrays[members->family->first + index].name : members->name;
}

/* ---- like ---- */

static int unknown_like(peal_parser *parser, const peal_field_desc *field)
{
    const char *names[CANDIDATES];
    size_t count = 0;
    for (int i = 0; i < parser->family_count && count < CANDIDATES; i++)
        if (parser->graph->arrays.item[i].field)
            names[count++] = parser->family[i].name;
    peal_parser_report(parser, PEAL_E_INVALID_LIKE, field->like, field->source,
                       peal_parser_hint(parser, field->like, names, count),
                       "`like` names no field: `%s`", field->like);
    return -1;
}

static bool bind(peal_parser *parser, peal_family *family, const char *name, int64_t value)
{
    if (family->bound_count < PEAL_FAMILY_BOUNDS) {
        family->bound[family->bound_count++] = (peal_bound){name, value};
        return true;
    }
    peal_parser_report(parser, PEAL_E_INVALID_LIKE, family->field.like, family->field.source,
                       "say what the field is, without `like`",
                       "`%s` is like a member of a family that is like another one's, more than %d "
                       "deep",
                       family->name, PEAL_FAMILY_BOUNDS);
    return false;
}

/* Takes over the keys that the field doesn't say; of a member its counter's value instead. */
static bool merge(peal_parser *parser, int declaration, int depth);

static bool take_over(peal_parser *parser, peal_family *own, int other)
{
    const peal_context *keys = peal_context_at(PEAL_CONTEXT_FIELD); /* texts, all of them */
    const peal_family *like = &parser->family[other];
    const char *text = own->field.like + word_length(own->field.like);
    peal_cursor c = {.parser = parser, .at = text, .source = own->field.source};
    int64_t index = 0, low, end;
    peal_cursor_skip(&c);
    bool member = *c.at == '(';
    if (member && !like->field.for_) {
        peal_parser_report(parser, PEAL_E_INVALID_LIKE, own->field.like, own->field.source, NULL,
                           "`%s` is no family and has no index", like->name);
        return false;
    }
    if (member && !take_index(&c, like->name, &index))
        return false;
    peal_cursor_skip(&c);
    if (*c.at) {
        peal_syntax_error(&c, c.at, "like: u, or like: u(2)", "expected the end of the name");
        return false;
    }
    if (member && !peal_resolve_range(parser, like->field.in, like->field.source, &low, &end))
        return false;
    if (member && (index < low || index >= end)) {
        peal_parser_report(parser, PEAL_E_UNKNOWN_NAME, own->field.like, own->field.source,
                           peal_arena_print(parser->graph->arena,
                                            "it has `%s(%" PRId64 ")` to `%s(%" PRId64 ")`",
                                            like->name, low, like->name, end - 1),
                           "there is no `%s(%" PRId64 ")`", like->name, index);
        return false;
    }
    for (int i = 0; i < like->bound_count; i++)
        if (!bind(parser, own, like->bound[i].name, like->bound[i].value))
            return false;
    if (member && !bind(parser, own, like->field.for_, index))
        return false;
    for (int i = 0; i < keys->key_count; i++) {
        const char **mine = peal_key_member(&keys->key[i], &own->field);
        const char *of_counter = keys->key[i].name;
        if (!*mine && !(member && (!strcmp(of_counter, "for") || !strcmp(of_counter, "in"))))
            *mine = *(const char **)peal_key_member(&keys->key[i], &like->field);
    }
    return true;
}

static bool merge(peal_parser *parser, int declaration, int depth)
{
    peal_family *own = &parser->family[declaration];
    size_t length;
    if (own->state == PEAL_FAMILY_MERGED || own->state == PEAL_FAMILY_BROKEN)
        return own->state == PEAL_FAMILY_MERGED;
    if (own->state == PEAL_FAMILY_MERGING) {
        peal_parser_report(parser, PEAL_E_INVALID_LIKE, own->field.like, own->field.source, NULL,
                           "field `%s` is like itself", own->name);
        own->state = PEAL_FAMILY_BROKEN;
        return false;
    }
    own->state = PEAL_FAMILY_MERGING;
    bool good = true;
    if (own->field.like) {
        int other = peal_find_declaration(parser, own->field.like, &length);
        if (other < 0 || !parser->graph->arrays.item[other].field)
            other = unknown_like(parser, &own->field);
        if (depth > MOST_LIKE) {
            peal_parser_report(parser, PEAL_E_INVALID_LIKE, own->field.like, own->field.source,
                               "declare the field that it comes to first",
                               "`like` leads through more than %d fields", MOST_LIKE);
            other = -1;
        }
        good = other >= 0 && merge(parser, other, depth + 1) && own->state == PEAL_FAMILY_MERGING &&
               take_over(parser, own, other);
    }
    own->state = good ? PEAL_FAMILY_MERGED : PEAL_FAMILY_BROKEN;
    return good;
}

/* ---- families ---- */

/* One array, unless it has a counter. */
static void count_members(peal_parser *parser, peal_family *family, const char *counter,
                          const char *range, const void *data, peal_source source)
{
    int64_t low, end;
    family->count = 1;
    if (!counter && !range)
        return;
    if (!counter || !range) {
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, counter ? counter : range, source,
                           "for: l, in: [0, 3]", "`%s` has %s without %s", family->name,
                           counter ? "`for`" : "`in`", counter ? "`in`" : "`for`");
        return;
    }
    if (data)
        peal_parser_report(parser, PEAL_E_CONFLICTING_KEYS, counter, source,
                           "declare the fields one by one", "lent memory is no family's");
    if (!peal_counter_is_free(parser, counter, source) ||
        !peal_resolve_range(parser, range, source, &low, &end))
        return;
    for (int i = 0; i < family->bound_count; i++)
        if (!strcmp(family->bound[i].name, counter)) {
            peal_parser_report(parser, PEAL_E_DUPLICATE_NAME, counter, source,
                               "take another name for this family's counter",
                               "`%s` is %" PRId64 " in what `%s` is like", counter,
                               family->bound[i].value, family->name);
            return;
        }
    if (low >= end || (uint64_t)end - (uint64_t)low > MOST_MEMBERS) {
        peal_parser_report(parser, PEAL_E_VALUE_OUT_OF_RANGE, range, source,
                           low >= end ? "in: [0, 3] is 0, 1, 2" : NULL,
                           "a family has 1 to %d members, not those of [%" PRId64 ", %" PRId64 "]",
                           MOST_MEMBERS, low, end);
        return;
    }
    family->counter = counter;
    family->low = low;
    family->count = (int)(end - low);
}

static void add_name(peal_parser *parser, const char *name, peal_source source, int declaration)
{
    struct peal_name_slot slot;
    if (!peal_is_name(name) || peal_is_reserved(name))
        peal_parser_report(parser, PEAL_E_INVALID_NAME, name, source,
                           "a name is a letter, then letters, digits, _; words of the language are "
                           "taken",
                           "`%s` cannot be the name of a field or buffer", name);
    else if (!peal_name_add(parser->graph->arena, &parser->names, name, PEAL_NAME_ARRAY,
                            declaration, &slot))
        peal_parser_report(parser, PEAL_E_DUPLICATE_NAME, name, source,
                           "params, fields and buffers share one name space",
                           "there is a %s `%s` already",
                           slot.kind == PEAL_NAME_PARAM                   ? "param"
                           : parser->graph->arrays.item[slot.index].field ? "field"
                                                                          : "buffer",
                           name);
}

int peal_resolve_families(peal_parser *parser)
{
    peal_graph *graph = parser->graph;
    int arrays = 0;
    parser->family_count = graph->arrays.count;
    parser->family = PEAL_ARENA_ARRAY(graph->arena, peal_family, graph->arrays.count + 1);
    for (int i = 0; i < parser->family_count; i++) {
        const raw_array *raw = &graph->arrays.item[i];
        const char *name = raw->field ? raw->field->name : raw->buffer->name;
        parser->family[i] = (peal_family){.name = name ? name : ""};
        if (raw->field)
            parser->family[i].field = *raw->field;
        add_name(parser, parser->family[i].name,
                 raw->field ? raw->field->source : raw->buffer->source, i);
    }
    for (int i = 0; i < parser->family_count; i++) {
        const raw_array *raw = &graph->arrays.item[i];
        peal_family *family = &parser->family[i];
        if (raw->field)
            merge(parser, i, 0);
        family->first = arrays;
        if (raw->field)
            count_members(parser, family, family->field.for_, family->field.in, raw->field->data,
                          raw->field->source);
        else
            count_members(parser, family, raw->buffer->for_, raw->buffer->in, raw->buffer->data,
                          raw->buffer->source);
        if (family->count > MOST_ARRAYS - arrays) {
            peal_parser_report(parser, PEAL_E_VALUE_OUT_OF_RANGE, family->name,
                               raw->field ? raw->field->source : raw->buffer->source, NULL,
                               "there are more than %d fields and buffers", MOST_ARRAYS);
            family->count = 1;
            family->counter = NULL;
        }
        arrays += family->count;
    }
    return arrays;
}
