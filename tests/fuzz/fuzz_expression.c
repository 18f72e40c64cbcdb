/* Fuzzes the parsers of expressions, lists, amounts, ranges and directions, and evaluates what they
 * accept: no crash, and the kind that was announced. */
#include "base/expression.h"
#include "dsl/parser.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static peal_value element(void *user, int array)
{
    (void)user;
    (void)array;
    return (peal_value){.kind = PEAL_REAL, .u.real = -0.5};
}

static void evaluate(const peal_parser *parser, const peal_expr *expr)
{
    static const int64_t counters[] = {5, 2};
    static const peal_layout layout[4] = {{.part = {2, {3, 4, 0, 0}, {10, 6, 1, 1}}},
                                          {.part = {1, {0, 0, 0, 0}, {1, 1, 1, 1}}},
                                          {.part = {1, {0, 0, 0, 0}, {1, 1, 1, 1}}},
                                          {.part = {1, {0, 0, 0, 0}, {1, 1, 1, 1}}}};
    peal_scope scope = {.graph = parser->data,
                        .rank = 3,
                        .ranks = 8,
                        .position = {1, 1, 0},
                        .dims = {2, 4, 1},
                        .counter = counters,
                        .counter_count = 2,
                        .layout = layout,
                        .element = element};
    peal_value value;
    if (!peal_expr_evaluate(expr, &scope, &value, NULL) &&
        value.kind != peal_expr_kind_of(expr, parser->data))
        abort();
}

static void parse_all(peal_parser *parser, const char *text)
{
    peal_source source = {"fuzz", 1, 1};
    peal_amount amount;
    peal_ranges ranges;
    peal_direction direction;
    const peal_expr *expr = peal_parse_expression(parser, text, source, PEAL_ALLOW_ALL);
    if (expr)
        evaluate(parser, expr);
    peal_parse_list(parser, text, source, PEAL_ALLOW_ALL, "auto");
    peal_parse_amount(parser, text, source, PEAL_ALLOW_STATIC, 2, &amount);
    peal_parse_ranges(parser, text, source, PEAL_ALLOW_UNIFORM, 3, &ranges);
    peal_parse_direction(parser, text, source, 0, &direction);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peal_name_slot slot;
    peal_param params[] = {{.name = "n", .value = {.kind = PEAL_INTEGER, .u.integer = 7}}};
    peal_array arrays[] = {{.name = "u", .kind = PEAL_ARRAY_FIELD, .axis_count = 2},
                           {.name = "s", .kind = PEAL_ARRAY_BUFFER, .points.array = -1},
                           {.name = "w(2)", .kind = PEAL_ARRAY_BUFFER, .points.array = -1},
                           {.name = "w(3)", .kind = PEAL_ARRAY_BUFFER, .points.array = -1}};
    peal_family families[] = {
        {.name = "u", .count = 1},
        {.name = "s", .first = 1, .count = 1},
        {.name = "w", .counter = "l", .low = 2, .first = 2, .count = 2},
    };
    peal_graph_data graph_data = {.params = params,
                                  .param_count = 1,
                                  .arrays = arrays,
                                  .array_count = 4};
    peal_graph *graph = NULL;
    if (peal_graph_create("fuzz", &graph))
        return 0;
    peal_parser parser = {.graph = graph,
                          .data = &graph_data,
                          .arrays = arrays,
                          .array_ready = 4,
                          .family = families,
                          .family_count = 3,
                          .bound = {{"l", 3}},
                          .bound_count = 1,
                          .counter = {"step", "k"},
                          .counter_count = 2,
                          .diagnostics = peal_diagnostics_create()};
    peal_name_add(graph->arena, &parser.names, "n", PEAL_NAME_PARAM, 0, &slot);
    peal_name_add(graph->arena, &parser.names, "u", PEAL_NAME_ARRAY, 0, &slot);
    peal_name_add(graph->arena, &parser.names, "s", PEAL_NAME_ARRAY, 1, &slot);
    peal_name_add(graph->arena, &parser.names, "w", PEAL_NAME_ARRAY, 2, &slot);
    char *text = malloc(size + 1); /* of exactly this size: a read beyond it is seen */
    if (text) {
        memcpy(text, data, size);
        text[size] = 0;
        parse_all(&parser, text);
    }
    free(text);
    peal_diagnostics_destroy(parser.diagnostics);
    peal_graph_destroy(graph);
    return 0;
}
