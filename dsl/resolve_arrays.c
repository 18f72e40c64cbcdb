/* Fields and buffers. */
#include "base/expression.h"
#include "dsl/resolve.h"

#include <inttypes.h>
#include <string.h>

static const char *const type_names[PEAL_TYPE_COUNT] = {"f64", "f32", "i32", "i64", "u8"};

int peal_parse_word(peal_parser *parser, const char *word, peal_source source, const char *what,
                    const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(words[i], word))
            return (int)i;
    const char *hint = peal_parser_hint(parser, word, words, count);
    if (!hint) {
        hint = words[0];
        for (size_t i = 1; i < count; i++)
            hint = peal_arena_print(parser->graph->arena, "%s, %s", hint, words[i]);
        hint = peal_arena_print(parser->graph->arena, "possible are: %s", hint);
    }
    peal_parser_report(parser, PEAL_E_UNKNOWN_WORD, word, source, hint, "`%s` is no %s", word,
                       what);
    return -1;
}

static void resolve_type(peal_parser *parser, const char *type, peal_source source, peal_array *out)
{
    static const char *const elsewhere[][2] = {{"double", "f64"}, {"float64", "f64"},
                                               {"float", "f32"},  {"float32", "f32"},
                                               {"int", "i32"},    {"int32", "i32"},
                                               {"long", "i64"},   {"int64", "i64"},
                                               {"char", "u8"},    {"uint8", "u8"}};
    for (size_t i = 0; type && i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
        if (!strcmp(type, elsewhere[i][0])) {
            peal_parser_report(parser, PEAL_E_UNKNOWN_WORD, type, source,
                               peal_arena_print(parser->graph->arena, "write `%s`",
                                                elsewhere[i][1]),
                               "`%s` is no type", type);
            return;
        }
    int index =
        type ? peal_parse_word(parser, type, source, "type", type_names, PEAL_TYPE_COUNT) : 0;
    out->type = index < 0 ? PEAL_F64 : (peal_type)index;
}

static bool resolve_size(peal_parser *parser, const peal_field_desc *field, peal_array *out)
{
    if (!field->size && field->like)
        parser->failures++; /* told of the field that it is like */
    else if (!field->size)
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, field->name, field->source,
                           "say size: [nx, ny], or like: another field", "field `%s` has no size",
                           field->name);
    if (!field->size)
        return false;
    const peal_item *item =
        peal_parse_list(parser, field->size, field->source, PEAL_ALLOW_UNIFORM, NULL);
    if (!item)
        return false;
    int axes = item->is_list ? item->count : 1;
    if (axes < 1 || axes > PEAL_AXES) {
        peal_parser_report(parser, PEAL_E_WRONG_AXIS_COUNT, field->size, field->source, NULL,
                           "a field has 1 to %d axes, not %d", PEAL_AXES, axes);
        return false;
    }
    out->axis_count = axes;
    for (int k = 0; k < axes; k++) {
        const peal_item *part = item->is_list ? &item->item[k] : item;
        if (!part->expr) {
            peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, NULL, part->source, NULL,
                               "expected the size of an axis");
            return false;
        }
        out->size[k] = part->expr;
        peal_require_integer(parser, part->expr, "a size");
    }
    return true;
}

static void resolve_axes(peal_parser *parser, const char *text, const peal_field_desc *field,
                         const char *what, int axis_count, const peal_expr **out)
{
    if (text)
        peal_parse_axes(parser, text, field->source, PEAL_ALLOW_UNIFORM, axis_count, NULL, what,
                        out);
}

static void resolve_replicated(peal_parser *parser, const peal_field_desc *field, peal_array *out)
{
    peal_value value;
    const peal_expr *expr = peal_parse_expression(parser, field->replicated, field->source, 0);
    if (!expr || !peal_require_boolean(parser, expr, "`replicated`"))
        return;
    if (peal_constant_value(parser, expr, &value)) {
        out->replicated = value.u.boolean;
        if (out->replicated && out->data)
            peal_parser_report(parser, PEAL_E_CONFLICTING_KEYS, field->replicated, field->source,
                               "let peal allocate it, and set its contents by a task",
                               "lent memory is each rank's own, `%s` is equal on all", out->name);
    } else
        peal_parser_report(parser, PEAL_E_VALUE_NOT_KNOWN_YET, NULL, expr->source,
                           "it is made of numbers, params, defines and counters of `for`",
                           "`replicated` is known before the run, whatever the number of ranks");
}

static void resolve_components(peal_parser *parser, const peal_field_desc *field, peal_array *out)
{
    enum { MOST = 65535 };
    peal_value value;
    const peal_expr *expr = field->components
                                ? peal_parse_expression(parser, field->components, field->source, 0)
                                : NULL;
    if (!expr || !peal_require_integer(parser, expr, "`components`"))
        return;
    if (!peal_constant_value(parser, expr, &value))
        peal_parser_report(parser, PEAL_E_VALUE_NOT_KNOWN_YET, NULL, expr->source,
                           "it is made of numbers, params, defines and counters of `for`",
                           "`components` is known before the run");
    else if (value.u.integer < 1 || value.u.integer > MOST)
        peal_parser_report(parser, PEAL_E_SIZE_OUT_OF_RANGE, NULL, expr->source,
                           "leave the key out where a point has one value",
                           "a point has 1 to %d components, not %" PRId64, MOST, value.u.integer);
    else if (out->axis_count == PEAL_AXES)
        peal_parser_report(parser, PEAL_E_WRONG_AXIS_COUNT, field->components, field->source, NULL,
                           "a field with components has 1 to %d axes, not %d", PEAL_AXES - 1,
                           out->axis_count);
    else
        out->components = (int)value.u.integer;
}

static void resolve_field(peal_parser *parser, const peal_family *family, peal_array *out)
{
    const peal_field_desc field = family->field;
    out->data = field.data;
    out->axis_count = 1;
    if (family->state != PEAL_FAMILY_MERGED)
        return;
    resolve_type(parser, field.type, field.source, out);
    if (!resolve_size(parser, &field, out))
        return;
    peal_parse_amount(parser, field.halo, field.source, PEAL_ALLOW_UNIFORM, out->axis_count,
                      &out->halo);
    resolve_axes(parser, field.align, &field, "align", out->axis_count, out->align);
    resolve_axes(parser, field.stagger, &field, "stagger", out->axis_count, out->stagger);
    resolve_axes(parser, field.coarsen, &field, "coarsen", out->axis_count, out->coarsen);
    resolve_replicated(parser, &field, out);
    resolve_components(parser, &field, out);
}

static void resolve_values(peal_parser *parser, const peal_buffer_desc *buffer, peal_array *out)
{
    const peal_item *item =
        peal_parse_list(parser, buffer->values, buffer->source, PEAL_ALLOW_TEXT_RANK, NULL);
    if (!item)
        return;
    int count = item->is_list ? item->count : 1;
    const peal_expr **values =
        PEAL_ARENA_ARRAY(parser->graph->arena, const peal_expr *, count ? count : 1);
    for (int i = 0; i < count; i++) {
        const peal_item *part = item->is_list ? &item->item[i] : item;
        values[i] = part->expr;
        if (!part->expr) {
            peal_parser_report(parser, PEAL_E_WRONG_LIST_SHAPE, NULL, part->source, NULL,
                               "values are a list of numbers");
            return;
        }
        if (out->type == PEAL_F64 || out->type == PEAL_F32)
            peal_require_number(parser, part->expr, "a value");
        else
            peal_require_integer(parser, part->expr, "a value of an integer buffer");
    }
    out->values = values;
    out->value_count = count;
}

static void resolve_buffer(peal_parser *parser, const peal_buffer_desc *buffer, peal_array *out)
{
    bool has_box = buffer->box.name || buffer->box.box;
    int ways =
        (buffer->count != NULL) + has_box + (buffer->file != NULL) + (buffer->values != NULL);
    out->data = buffer->data;
    out->keep = buffer->keep;
    out->axis_count = 1;
    resolve_type(parser, buffer->type, buffer->source, out);
    if (ways > 1) {
        peal_parser_report(parser, PEAL_E_CONFLICTING_KEYS, buffer->name, buffer->source,
                           "each of them says how many elements there are",
                           "buffer `%s` has more than one of count, box, file, values", out->name);
        return;
    }
    if (buffer->count) {
        out->count = peal_parse_expression(parser, buffer->count, buffer->source,
                                           PEAL_ALLOW_RANK | PEAL_ALLOW_DIMS);
        peal_require_integer(parser, out->count, "a count");
    }
    if (has_box && peal_resolve_points(parser, &buffer->box, buffer->source,
                                       PEAL_ALLOW_RANK | PEAL_ALLOW_DIMS, false, &out->points))
        out->axis_count = out->points.array >= 0 ? parser->arrays[out->points.array].axis_count
                                                 : out->points.ranges.axis_count;
    if (buffer->file) {
        out->file = peal_file_in_copy(parser, buffer->file);
        peal_check_template(parser, out->file,
                            peal_graph_place(parser->graph, buffer->file, buffer->source));
    }
    if (buffer->values)
        resolve_values(parser, buffer, out);
}

bool peal_is_one_element(const peal_parser *parser, const peal_array *array)
{
    peal_value value;
    if (array->kind != PEAL_ARRAY_BUFFER || array->points.kind != PEAL_POINTS_ONE)
        return false;
    if (array->file || array->value_count > 1)
        return false;
    return !array->count || (peal_constant_value(parser, array->count, &value) &&
                             value.kind == PEAL_INTEGER && value.u.integer == 1);
}

/* Member `index` of a declaration: with its counter's value. */
static void resolve_member(peal_parser *parser, int declaration, int index)
{
    const peal_family *family = &parser->family[declaration];
    const raw_array *raw = &parser->graph->arrays.item[declaration];
    parser->bound_count = 0;
    for (int i = 0; i < family->bound_count; i++)
        parser->bound[parser->bound_count++] = family->bound[i];
    if (family->counter)
        parser->bound[parser->bound_count++] = (peal_bound){family->counter, family->low + index};
    parser->array_ready = family->first + index;
    if (raw->field)
        resolve_field(parser, family, &parser->arrays[family->first + index]);
    else
        resolve_buffer(parser, raw->buffer, &parser->arrays[family->first + index]);
    parser->bound_count = 0;
}

void peal_resolve_arrays(peal_parser *parser)
{
    peal_graph *graph = parser->graph;
    int count = peal_resolve_families(parser);
    peal_array *arrays = PEAL_ARENA_ARRAY(graph->arena, peal_array, count);
    parser->arrays = arrays;
    parser->data->arrays = arrays;
    parser->data->array_count = count;
    for (int d = 0; d < parser->family_count; d++) {
        const raw_array *raw = &graph->arrays.item[d];
        const peal_family *family = &parser->family[d];
        for (int i = 0; i < family->count; i++) {
            peal_array *array = &arrays[family->first + i];
            array->kind = raw->kind;
            array->name = family->counter ? peal_arena_print(graph->arena, "%s(%" PRId64 ")",
                                                             family->name, family->low + i)
                                          : family->name;
            array->points.array = -1;
            array->source = raw->field ? raw->field->source : raw->buffer->source;
        }
    }
    for (int d = 0; d < parser->family_count; d++) {
        int failures = parser->failures;
        for (int i = 0; i < parser->family[d].count; i++)
            if (parser->failures == failures)
                resolve_member(parser, d, i);
            else
                arrays[parser->family[d].first + i].axis_count = 1; /* one message is enough */
    }
    parser->array_ready = count;
}
