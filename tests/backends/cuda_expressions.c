/* The text that the device runs for an expression, compiled for the host, gives what
 * base/expression gives: random expressions, the same values, errors in the same places. */
#define _GNU_SOURCE
#include "backends/cuda/codegen/expression.h"
#include "tests/backends/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXPRESSIONS = 1500, ROUNDS = 3, ARRAYS = 5 };

static const char *root;
static uint64_t state_of_random = 20261121;

static uint32_t pick(uint32_t below)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state_of_random >> 33) % below;
}

/* What names stand for. */

static const peal_type array_types[ARRAYS] = {PEAL_F64, PEAL_F32, PEAL_I32, PEAL_I64, PEAL_U8};
static peal_array arrays[ARRAYS];
static const peal_param params[] = {
    {.name = "n", .value = {.kind = PEAL_INTEGER, .u.integer = 12}},
    {.name = "w", .value = {.kind = PEAL_REAL, .u.real = 0.3}},
};
static peal_graph_data graph = {.params = params, .param_count = 2, .array_count = ARRAYS};
static const int64_t counters[ROUNDS][2] = {{0, 0}, {7, 3}, {4000000000, 1}};
static const double f64[ROUNDS] = {0.0, -2.75, 1e300};
static const float f32[ROUNDS] = {1.5f, -0.0f, INFINITY};
static const int32_t i32[ROUNDS] = {-1, 0, INT32_MIN};
static const int64_t i64[ROUNDS] = {INT64_MIN, 5, INT64_MAX};
static const uint8_t u8[ROUNDS] = {0, 255, 3};

static peal_value element(void *user, int array)
{
    int round = *(int *)user;
    peal_value value = {.kind = array < 2 ? PEAL_REAL : PEAL_INTEGER};

    if (array < 2)
        value.u.real = array == 0 ? f64[round] : (double)f32[round];
    else
        value.u.integer = array == 2 ? i32[round] : array == 3 ? i64[round] : u8[round];
    return value;
}

/* Random expressions. */

static const peal_expr *make(peal_arena *arena, peal_value_kind kind, int depth);

static peal_expr *leaf(peal_arena *arena, peal_expr_kind kind, int index)
{
    peal_expr *expr = PEAL_ARENA_NEW(arena, peal_expr);
    expr->kind = kind;
    expr->index = index;
    return expr;
}

static const peal_expr *make_leaf(peal_arena *arena, peal_value_kind kind)
{
    static const int64_t integers[] = {0, 1, -1, 2, 7, -13, INT64_MAX, INT64_MIN, 4294967296, 1000};
    static const double reals[] = {0.0, -0.0, 1.0, 0.1, -7.25, 1e19, -1e300, 4.9e-324};
    peal_expr *expr = leaf(arena, PEAL_EXPR_CONSTANT, 0);

    expr->value.kind = kind;
    if (kind == PEAL_BOOLEAN)
        expr->value.u.boolean = pick(2);
    else if (kind == PEAL_REAL && pick(3) == 0)
        expr->value.u.real = reals[pick(8)];
    else if (kind == PEAL_REAL)
        return pick(4) ? leaf(arena, PEAL_EXPR_ELEMENT, (int)pick(2))
                       : leaf(arena, PEAL_EXPR_PARAM, 1);
    else if (pick(3) == 0)
        expr->value.u.integer = integers[pick(10)];
    else if (pick(2))
        return leaf(arena, PEAL_EXPR_ELEMENT, 2 + (int)pick(3));
    else if (pick(3))
        return leaf(arena, PEAL_EXPR_COUNTER, (int)pick(2));
    else
        return leaf(arena, pick(2) ? PEAL_EXPR_RANK : PEAL_EXPR_PARAM, 0);
    return expr;
}

static const peal_expr *make_operator(peal_arena *arena, peal_operator op, int count,
                                      const peal_value_kind *kinds, int depth)
{
    const peal_expr **operand = PEAL_ARENA_ARRAY(arena, const peal_expr *, count);
    peal_expr *expr = leaf(arena, PEAL_EXPR_OPERATOR, 0);

    for (int i = 0; i < count; i++)
        operand[i] = make(arena, kinds[i], depth - 1);
    expr->op = op;
    expr->operand = operand;
    expr->operand_count = count;
    return expr;
}

static const peal_expr *make(peal_arena *arena, peal_value_kind kind, int depth)
{
    static const peal_operator unary[] = {PEAL_OPERATOR_NEGATE, PEAL_OPERATOR_ABSOLUTE,
                                          PEAL_OPERATOR_SQRT, PEAL_OPERATOR_FLOOR,
                                          PEAL_OPERATOR_CEIL};
    peal_value_kind number = pick(2) ? PEAL_REAL : PEAL_INTEGER;
    peal_value_kind kinds[3] = {kind, kind, kind};

    if (depth == 0 || pick(8) == 0)
        return make_leaf(arena, kind);
    if (kind == PEAL_BOOLEAN) {
        uint32_t what = pick(5);
        kinds[0] = number;
        kinds[1] = pick(2) ? PEAL_REAL : PEAL_INTEGER;
        if (what == 0)
            return make_operator(arena, PEAL_OPERATOR_EQUAL + pick(6), 2, kinds, depth);
        kinds[0] = kinds[1] = PEAL_BOOLEAN;
        if (what == 1)
            return make_operator(arena, PEAL_OPERATOR_NOT, 1, kinds, depth);
        if (what == 4)
            return make_operator(arena, PEAL_OPERATOR_CHOICE, 3, kinds, depth);
        if (what == 2)
            return make_operator(arena, PEAL_OPERATOR_EQUAL + pick(2), 2, kinds, depth);
        return make_operator(arena, PEAL_OPERATOR_AND + pick(2), 2, kinds, depth);
    }
    if (pick(8) == 0) {
        kinds[0] = PEAL_BOOLEAN;
        kinds[1 + pick(2)] = kind == PEAL_REAL ? number : PEAL_INTEGER;
        return make_operator(arena, PEAL_OPERATOR_CHOICE, 3, kinds, depth);
    }
    if (pick(4) == 0) {
        peal_operator op = unary[kind == PEAL_REAL ? pick(3) : pick(2) + 3 * pick(2)];
        if (op == PEAL_OPERATOR_SQRT || op >= PEAL_OPERATOR_FLOOR)
            kinds[0] = number;
        return make_operator(arena, op, 1, kinds, depth);
    }
    kinds[pick(2)] = kind == PEAL_REAL ? number : PEAL_INTEGER;
    if (pick(4) == 0)
        return make_operator(arena, PEAL_OPERATOR_MINIMUM + pick(2), 2 + (int)pick(2), kinds,
                             depth);
    return make_operator(arena, PEAL_OPERATOR_ADD + pick(5), 2, kinds, depth);
}

/* The program that runs the texts. */

static void print_program_end(FILE *out)
{
    fprintf(out,
            "int main(void)\n{\n    for (int round = 0; round < %d; round++) {\n"
            "        static peal_launch launch;\n"
            "        long long step = counters[round][0] / 2;\n"
            "        launch.step = (unsigned long long)&step;\n"
            "        launch.counter[0] = counters[round][0] - step;\n"
            "        launch.counter[1] = counters[round][1];\n"
            "        for (int i = 0; i < %d; i++) {\n            int bad = 0;\n"
            "            for (int k = 0; k < %d; k++)\n"
            "                launch.element[k] = k < count[i] ? (unsigned long long)"
            "address(element[i][k], round) : 0;\n"
            "            value v;\n"
            "            v = run(i, &launch, &bad);\n"
            "            printf(\"%%d %%llx\\n\", bad, bad ? 0 : v.integer);\n"
            "        }\n    }\n    return 0;\n}\n",
            ROUNDS, EXPRESSIONS, 16);
}

static void print_program_begin(FILE *out)
{
    fprintf(out,
            "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n"
            "#define PEAL_INLINE_ static inline\n"
            "#include \"%s/backends/cuda/codegen/device/launch.h\"\n"
            "#include \"%s/backends/cuda/codegen/device/expression.h\"\n"
            "typedef union value { double real; long long integer; } value;\n",
            root, root);
    fprintf(out, "static const long long counters[%d][2] = {", ROUNDS);
    for (int r = 0; r < ROUNDS; r++)
        fprintf(out, "{%lldll, %lldll},", (long long)counters[r][0], (long long)counters[r][1]);
    fprintf(out, "};\nstatic double f64[] = {0.0, -2.75, 1e300};\n"
                 "static float f32[] = {1.5f, -0.0f, INFINITY};\n"
                 "static int32_t i32[] = {-1, 0, INT32_MIN};\n"
                 "static int64_t i64[] = {INT64_MIN, 5, INT64_MAX};\n"
                 "static uint8_t u8[] = {0, 255, 3};\n"
                 "static void *address(int array, int round)\n{\n"
                 "    return array == 0 ? (void *)&f64[round] : array == 1 ? (void *)&f32[round]\n"
                 "         : array == 2 ? (void *)&i32[round] : array == 3 ? (void *)&i64[round]\n"
                 "                      : (void *)&u8[round];\n}\n");
}

static void print_functions(const peal_expr *const *expr, const peal_scope *scope, FILE *out)
{
    static const char *const types[] = {"long long", "double", "int"};
    peal_cuda_elements *elements = calloc(EXPRESSIONS, sizeof(*elements));
    peal_value_kind *kind = calloc(EXPRESSIONS, sizeof(*kind));

    for (int i = 0; i < EXPRESSIONS; i++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *body = open_memstream(&text, &bytes);
        assert_int_equal(peal_cuda_expression_print(expr[i], scope, &elements[i], body, &kind[i],
                                                    NULL),
                         PEAL_STATUS_OK);
        fclose(body);
        fprintf(out,
                "static %s e%d(const peal_launch *launch, int *bad)\n{\n    (void)launch;\n"
                "    (void)bad;\n    return %s;\n}\n",
                types[kind[i]], i, text);
        free(text);
    }
    fprintf(out, "static const int count[] = {");
    for (int i = 0; i < EXPRESSIONS; i++)
        fprintf(out, "%d,", elements[i].count);
    fprintf(out, "};\nstatic const int element[][16] = {");
    for (int i = 0; i < EXPRESSIONS; i++) {
        fprintf(out, "{");
        for (int k = 0; k < 16; k++)
            fprintf(out, "%d,", elements[i].array[k]);
        fprintf(out, "},");
    }
    fprintf(out, "};\nstatic value run(int i, const peal_launch *launch, int *bad)\n{\n"
                 "    value v = {0};\n    switch (i) {\n");
    for (int i = 0; i < EXPRESSIONS; i++)
        fprintf(out, "    case %d: v.%s = e%d(launch, bad); break;\n", i,
                kind[i] == PEAL_REAL ? "real" : "integer", i);
    fprintf(out, "    }\n    return v;\n}\n");
    free(elements);
    free(kind);
}

/* A value's bits; all NaN are alike, for the sign of a made one is the processor's. */
static unsigned long long bits_of(const peal_value *value)
{
    unsigned long long bits;

    if (value->kind == PEAL_BOOLEAN)
        return value->u.boolean;
    if (value->kind == PEAL_REAL && isnan(value->u.real))
        return ~0ull;
    memcpy(&bits, &value->u, sizeof(bits));
    return bits;
}

static void compare(const peal_expr *const *expr, peal_scope *scope, FILE *results)
{
    int errors = 0, values = 0;

    for (int round = 0; round < ROUNDS; round++) {
        scope->counter = counters[round];
        scope->counter_count = 2;
        scope->element = element;
        scope->user = &round;
        for (int i = 0; i < EXPRESSIONS; i++) {
            unsigned long long bits = 0;
            peal_value value = {0};
            int bad = 0;
            assert_int_equal(fscanf(results, "%d %llx", &bad, &bits), 2);
            peal_status status = peal_expr_evaluate(expr[i], scope, &value, NULL);
            peal_value other = {.kind = value.kind};
            memcpy(&other.u, &bits, sizeof(bits));
            if ((status != PEAL_STATUS_OK) != (bad != 0))
                fail_msg("expression %d, round %d: status %d, bad %d", i, round, (int)status, bad);
            errors += bad;
            values += !bad;
            if (!bad && value.kind != PEAL_BOOLEAN && bits_of(&value) != bits_of(&other))
                fail_msg("expression %d, round %d: %llx, not %llx", i, round, bits,
                         bits_of(&value));
            if (!bad && value.kind == PEAL_BOOLEAN && value.u.boolean != (bits != 0))
                fail_msg("expression %d, round %d: %llx, not %d", i, round, bits, value.u.boolean);
        }
    }
    print_message("%d values, %d errors\n", values, errors);
    assert_true(values > EXPRESSIONS && errors > EXPRESSIONS / 10);
}

static void texts_give_the_same(void **state)
{
    char folder[] = "/tmp/peal-expressions-XXXXXX", path[64], command[256];
    const peal_expr **expr = calloc(EXPRESSIONS, sizeof(*expr));
    peal_arena *arena = peal_arena_create();
    peal_scope scope = {.graph = &graph, .rank = 2, .ranks = 4};
    (void)state;

    for (int i = 0; i < ARRAYS; i++)
        arrays[i] = (peal_array){.type = array_types[i]};
    graph.arrays = arrays;
    for (int i = 0; i < EXPRESSIONS; i++)
        expr[i] = make(arena, (peal_value_kind)pick(3), 1 + (int)pick(5));
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/e.c", folder);
    FILE *out = fopen(path, "w");
    print_program_begin(out);
    print_functions(expr, &scope, out);
    print_program_end(out);
    fclose(out);
    snprintf(command, sizeof(command), "%s -std=gnu11 -O1 -w -ffp-contract=off -o %s/e %s -lm",
             getenv("CC") ? getenv("CC") : "cc", folder, path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof(command), "%s/e", folder);
    FILE *results = popen(command, "r");
    assert_non_null(results);
    compare(expr, &scope, results);
    assert_int_equal(pclose(results), 0);
    unlink(path);
    unlink(command);
    rmdir(folder);
    peal_arena_destroy(arena);
    free(expr);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_give_the_same)};
    root = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests_name("expressions on the device", tests, NULL, NULL);
}
