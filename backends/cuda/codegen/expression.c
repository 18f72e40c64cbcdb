/* Prints expressions as C that is CUDA C++ too.
 *
 * Kinds are static (an element's is its buffer's type), so every operator is resolved here to the
 * function of device/expression.h for its kinds, with the conversions that base/expression.c makes
 * while it evaluates. */
#include "backends/cuda/codegen/expression.h"

#include "backends/cuda/codegen/device/launch.h"
#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct printer {
    const peal_scope *scope;
    peal_cuda_elements *elements;
    FILE *out;
    peal_diagnostics *diagnostics;
} printer;

static const char *const kind_names[] = {"an integer", "a real number", "a boolean", "a text"};

static peal_status print(const printer *p, const peal_expr *expr);

static peal_value_kind kind_of(const printer *p, const peal_expr *expr)
{
    return peal_expr_kind_of(expr, p->scope->graph);
}

static bool is_number(peal_value_kind kind)
{
    return kind == PEAL_INTEGER || kind == PEAL_REAL;
}

static peal_status wrong_kind(const printer *p, const peal_expr *expr, peal_value_kind kind)
{
    return peal_report(p->diagnostics, PEAL_E_WRONG_VALUE_TYPE, expr->source, NULL,
                       "this operator cannot take %s", kind_names[kind]);
}

static void print_real(FILE *out, double real)
{
    char number[PEAL_NUMBER_TEXT];
    uint64_t bits;

    if (isfinite(real)) {
        fprintf(out, "(%s)", peal_number_print(number, PEAL_NUMBER_HEX, real));
        return;
    }
    memcpy(&bits, &real, sizeof(bits));
    fprintf(out, "peal_real_of_(0x%" PRIx64 "ull)", bits);
}

static void print_value(FILE *out, const peal_value *value)
{
    if (value->kind == PEAL_REAL)
        print_real(out, value->u.real);
    else if (value->kind == PEAL_BOOLEAN)
        fputs(value->u.boolean ? "1" : "0", out);
    else if (value->u.integer == INT64_MIN)
        fputs("PEAL_LOWEST_", out);
    else
        fprintf(out, "(%" PRId64 "ll)", value->u.integer);
}

/* Neither counters nor elements: a literal; no value: an error when it is looked at. */
static peal_status print_constant(const printer *p, const peal_expr *expr)
{
    peal_value value;

    if (peal_expr_evaluate(expr, p->scope, &value, NULL) == PEAL_STATUS_OK) {
        if (value.kind == PEAL_TEXT)
            return wrong_kind(p, expr, PEAL_TEXT);
        print_value(p->out, &value);
        return PEAL_STATUS_OK;
    }
    fputs(kind_of(p, expr) == PEAL_REAL      ? "(double)peal_no_value_(bad)"
          : kind_of(p, expr) == PEAL_INTEGER ? "(long long)peal_no_value_(bad)"
                                             : "peal_no_value_(bad)",
          p->out);
    return PEAL_STATUS_OK;
}

static peal_status print_element(const printer *p, const peal_expr *expr)
{
    static const char *const read[PEAL_TYPE_COUNT] = {
        [PEAL_F64] = "*(const double *)",
        [PEAL_F32] = "(double)*(const float *)",
        [PEAL_I32] = "(long long)*(const int *)",
        [PEAL_I64] = "(long long)*(const long long *)",
        [PEAL_U8] = "(long long)*(const unsigned char *)",
    };
    peal_cuda_elements *elements = p->elements;
    int index = 0;

    while (index < elements->count && elements->array[index] != expr->index)
        index++;
    if (index == PEAL_LAUNCH_ELEMENTS) {
        elements->overflows = true;
        index = 0;
    } else if (index == elements->count)
        elements->array[elements->count++] = expr->index;
    fprintf(p->out, "(%slaunch->element[%d])", read[p->scope->graph->arrays[expr->index].type],
            index);
    return PEAL_STATUS_OK;
}

/* As a real number if `real`. */
static peal_status print_number(const printer *p, const peal_expr *expr, bool real)
{
    peal_value_kind kind = kind_of(p, expr);

    if (!is_number(kind))
        return wrong_kind(p, expr, kind);
    if (real && kind == PEAL_INTEGER)
        fputs("(double)", p->out);
    return print(p, expr);
}

static peal_status print_call(const printer *p, const char *function, const peal_expr *a,
                              const peal_expr *b, bool real, bool checked)
{
    fprintf(p->out, "%s(", function);
    peal_status status = print_number(p, a, real);
    if (!status && b) {
        fputs(", ", p->out);
        status = print_number(p, b, real);
    }
    fputs(checked ? ", bad)" : ")", p->out);
    return status;
}

static peal_status print_infix(const printer *p, const char *sign, const peal_expr *a,
                               const peal_expr *b, bool real)
{
    fputc('(', p->out);
    peal_status status = print_number(p, a, real);
    fprintf(p->out, " %s ", sign);
    if (!status)
        status = print_number(p, b, real);
    fputc(')', p->out);
    return status;
}

static peal_status print_boolean(const printer *p, const peal_expr *expr)
{
    peal_value_kind kind = kind_of(p, expr);
    return kind == PEAL_BOOLEAN ? print(p, expr) : wrong_kind(p, expr, kind);
}

static peal_status print_booleans(const printer *p, const char *sign, const peal_expr *a,
                                  const peal_expr *b)
{
    fputc('(', p->out);
    peal_status status = print_boolean(p, a);
    fprintf(p->out, " %s ", sign);
    if (!status)
        status = print_boolean(p, b);
    fputc(')', p->out);
    return status;
}

static peal_status print_comparison(const printer *p, const peal_expr *expr)
{
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    const char *sign = signs[expr->op - PEAL_OPERATOR_EQUAL];
    const peal_expr *a = expr->operand[0], *b = expr->operand[1];
    bool equality = expr->op == PEAL_OPERATOR_EQUAL || expr->op == PEAL_OPERATOR_UNEQUAL;

    if (equality && kind_of(p, a) == PEAL_BOOLEAN)
        return print_booleans(p, sign, a, b);
    return print_infix(p, sign, a, b, kind_of(p, a) == PEAL_REAL || kind_of(p, b) == PEAL_REAL);
}

static peal_status print_arithmetic(const printer *p, const peal_expr *expr)
{
    static const char *const functions[] = {"peal_integer_add_", "peal_integer_subtract_",
                                            "peal_integer_multiply_", "peal_integer_divide_",
                                            "peal_integer_modulo_"};
    static const char *const signs[] = {"+", "-", "*", "/"};
    const peal_expr *a = expr->operand[0], *b = expr->operand[1];
    int index = (int)expr->op - (int)PEAL_OPERATOR_ADD;

    if (kind_of(p, expr) != PEAL_REAL)
        return print_call(p, functions[index], a, b, false, true);
    if (expr->op == PEAL_OPERATOR_MODULO)
        return print_call(p, "peal_real_modulo_", a, b, true, false);
    return print_infix(p, signs[index], a, b, true);
}

/* min and max of several are nested calls: f(f(a, b), c). */
static peal_status print_extremum(const printer *p, const peal_expr *expr)
{
    bool real = kind_of(p, expr) == PEAL_REAL, least = expr->op == PEAL_OPERATOR_MINIMUM;
    peal_status status = PEAL_STATUS_OK;

    for (int i = 1; i < expr->operand_count; i++)
        fprintf(p->out, "peal_%s_%s_(", real ? "real" : "integer", least ? "minimum" : "maximum");
    for (int i = 0; i < expr->operand_count && !status; i++) {
        if (i > 0)
            fputs(", ", p->out);
        status = print_number(p, expr->operand[i], real);
        if (i > 0)
            fputc(')', p->out);
    }
    return status;
}

static peal_status print_choice(const printer *p, const peal_expr *expr)
{
    peal_value_kind kind = kind_of(p, expr);
    fputc('(', p->out);
    peal_status status = print_boolean(p, expr->operand[0]);
    for (int i = 1; i < 3 && !status; i++) {
        fputs(i == 1 ? " ? " : " : ", p->out);
        status = kind == PEAL_BOOLEAN ? print_boolean(p, expr->operand[i])
                                      : print_number(p, expr->operand[i], kind == PEAL_REAL);
    }
    fputc(')', p->out);
    return status;
}

static peal_status print_rounding(const printer *p, const peal_expr *expr)
{
    if (kind_of(p, expr->operand[0]) == PEAL_INTEGER)
        return print(p, expr->operand[0]);
    fprintf(p->out, "peal_real_integer_(");
    peal_status status = print_call(p, expr->op == PEAL_OPERATOR_FLOOR ? "floor" : "ceil",
                                    expr->operand[0], NULL, true, false);
    fputs(", bad)", p->out);
    return status;
}

static peal_status print_operator(const printer *p, const peal_expr *expr)
{
    const peal_expr *first = expr->operand[0];
    bool real = kind_of(p, expr) == PEAL_REAL;
    peal_status status;

    switch (expr->op) {
    case PEAL_OPERATOR_NOT:
        fputs("(!", p->out);
        status = print_boolean(p, first);
        fputc(')', p->out);
        return status;
    case PEAL_OPERATOR_AND:
        return print_booleans(p, "&&", first, expr->operand[1]);
    case PEAL_OPERATOR_OR:
        return print_booleans(p, "||", first, expr->operand[1]);
    case PEAL_OPERATOR_NEGATE:
        return print_call(p, real ? "-" : "peal_integer_negate_", first, NULL, real, !real);
    case PEAL_OPERATOR_ABSOLUTE:
        return print_call(p, real ? "fabs" : "peal_integer_absolute_", first, NULL, real, !real);
    case PEAL_OPERATOR_SQRT:
        return print_call(p, "sqrt", first, NULL, true, false);
    case PEAL_OPERATOR_FLOOR:
    case PEAL_OPERATOR_CEIL:
        return print_rounding(p, expr);
    case PEAL_OPERATOR_MINIMUM:
    case PEAL_OPERATOR_MAXIMUM:
        return print_extremum(p, expr);
    case PEAL_OPERATOR_CHOICE:
        return print_choice(p, expr);
    default:
        break;
    }
    if (expr->op >= PEAL_OPERATOR_EQUAL && expr->op <= PEAL_OPERATOR_GREATER_EQUAL)
        return print_comparison(p, expr);
    return print_arithmetic(p, expr);
}

static peal_status print(const printer *p, const peal_expr *expr)
{
    if (!(peal_expr_uses(expr) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT)))
        return print_constant(p, expr);
    switch (expr->kind) {
    case PEAL_EXPR_COUNTER:
        fprintf(p->out, "peal_counter_(launch, %d)", expr->index);
        return PEAL_STATUS_OK;
    case PEAL_EXPR_ELEMENT:
        return print_element(p, expr);
    default:
        return print_operator(p, expr);
    }
}

peal_status peal_cuda_expression_print(const peal_expr *expr, const peal_scope *scope,
                                       peal_cuda_elements *elements, FILE *out,
                                       peal_value_kind *kind, peal_diagnostics *diagnostics)
{
    printer p = {scope, elements, out, diagnostics};

    *kind = kind_of(&p, expr);
    return print(&p, expr);
}

void peal_cuda_scope_fill(const peal_schedule *schedule, peal_layout *layout, peal_scope *scope)
{
    for (int i = 0; i < schedule->array_count; i++)
        layout[i] = schedule->array[i].layout;
    *scope = (peal_scope){.graph = schedule->graph,
                          .rank = schedule->rank,
                          .ranks = schedule->machine ? schedule->machine->ranks : 1,
                          .layout = layout};
    memcpy(scope->position, schedule->rank_position, sizeof(scope->position));
    memcpy(scope->dims, schedule->rank_dims, sizeof(scope->dims));
}
