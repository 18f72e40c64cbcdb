/* Expressions: a recursive descent over the text, one function a level of precedence.
 *
 *     if else < or < and < not < comparison < + - < * / % < sign < ** < value
 *
 * A parser stops at the first mistake of an expression; the caller goes on with the next one. */
#define _GNU_SOURCE
#include "dsl/expression_parser.h"
#include "base/expression.h"
#include "dsl/resolve.h"

#include <ctype.h>
#include <string.h>

typedef struct operator_word {
    const char *word;
    peal_operator op;
} operator_word;

static const operator_word comparisons[] = {{"==", PEAL_OPERATOR_EQUAL},
                                            {"!=", PEAL_OPERATOR_UNEQUAL},
                                            {"<=", PEAL_OPERATOR_LESS_EQUAL},
                                            {">=", PEAL_OPERATOR_GREATER_EQUAL},
                                            {"<", PEAL_OPERATOR_LESS},
                                            {">", PEAL_OPERATOR_GREATER}};
static const operator_word sums[] = {{"+", PEAL_OPERATOR_ADD}, {"-", PEAL_OPERATOR_SUBTRACT}};
static const operator_word products[] = {{"*", PEAL_OPERATOR_MULTIPLY},
                                         {"/", PEAL_OPERATOR_DIVIDE},
                                         {"%", PEAL_OPERATOR_MODULO}};
static const operator_word functions[] = {
    {"min", PEAL_OPERATOR_MINIMUM}, {"max", PEAL_OPERATOR_MAXIMUM}, {"abs", PEAL_OPERATOR_ABSOLUTE},
    {"sqrt", PEAL_OPERATOR_SQRT},   {"floor", PEAL_OPERATOR_FLOOR}, {"ceil", PEAL_OPERATOR_CEIL},
    {"log2", PEAL_OPERATOR_LOG2},   {"sin", PEAL_OPERATOR_SIN},     {"cos", PEAL_OPERATOR_COS},
    {"tan", PEAL_OPERATOR_TAN},     {"exp", PEAL_OPERATOR_EXP},     {"log", PEAL_OPERATOR_LOG},
    {"tanh", PEAL_OPERATOR_TANH}};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const peal_expr *parse_choice(peal_cursor *c);
static const peal_expr *parse_sign(peal_cursor *c);

void peal_cursor_skip(peal_cursor *c)
{
    while (*c->at && isspace((unsigned char)*c->at))
        c->at++;
}

peal_source peal_cursor_place(peal_cursor *c, const char *at)
{
    return peal_graph_place(c->parser->graph, at, c->source);
}

const peal_expr *peal_syntax_error(peal_cursor *c, const char *at, const char *hint,
                                   const char *what)
{
    peal_parser_report(c->parser, PEAL_E_EXPRESSION_SYNTAX, at, c->source, hint, "%s", what);
    return NULL;
}

static peal_expr *new_node(peal_cursor *c, peal_expr_kind kind, const char *at)
{
    peal_expr *expr = PEAL_ARENA_NEW(c->parser->graph->arena, peal_expr);
    expr->kind = kind;
    expr->source = peal_cursor_place(c, at);
    return expr;
}

static const peal_expr *new_operator(peal_cursor *c, peal_operator op, peal_source place, int count,
                                     const peal_expr *const *operand)
{
    peal_expr *expr = PEAL_ARENA_NEW(c->parser->graph->arena, peal_expr);
    const peal_expr **own = PEAL_ARENA_ARRAY(c->parser->graph->arena, const peal_expr *, count);
    memcpy(own, operand, (size_t)count * sizeof(*own));
    expr->kind = PEAL_EXPR_OPERATOR;
    expr->source = place; /* looked up before the operands: places are cheap in order */
    expr->op = op;
    expr->operand = own;
    expr->operand_count = count;
    return expr;
}

/* An operator whose bits differ between the CPU's library and a GPU's: only before the run. */
static const peal_expr *new_early_operator(peal_cursor *c, peal_operator op, const char *at,
                                           peal_source place, int count,
                                           const peal_expr *const *operand)
{
    for (int i = 0; i < count; i++)
        if (peal_expr_uses(operand[i]) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT)) {
            peal_parser_report(c->parser, PEAL_E_FUNCTION_DURING_RUN, at, c->source,
                               "let a task compute it, or write x * x for x ** 2",
                               "%s takes what is known before the run: %s",
                               op == PEAL_OPERATOR_POWER ? "`**`" : "the function",
                               peal_expr_uses(operand[i]) & PEAL_USES_ELEMENT
                                   ? "not the value of a buffer"
                                   : "not a loop's counter");
            return NULL;
        }
    return new_operator(c, op, place, count, operand);
}

/* Numbers may be mixed; else both values are of one kind. */
static const peal_expr *new_choice(peal_cursor *c, peal_source place,
                                   const peal_expr *const operand[3])
{
    static const char *const names[] = {"an integer", "a real number", "a boolean", "a text"};
    peal_value_kind holds = peal_expr_kind_of(operand[0], c->parser->data);
    if (holds != PEAL_BOOLEAN) {
        peal_parser_report(c->parser, PEAL_E_WRONG_VALUE_TYPE, NULL, place,
                           "a condition compares: a if x > 0 else b", "`if` cannot take %s",
                           names[holds]);
        return NULL;
    }
    peal_value_kind one = peal_expr_kind_of(operand[1], c->parser->data);
    peal_value_kind other = peal_expr_kind_of(operand[2], c->parser->data);
    if (one != other && (one > PEAL_REAL || other > PEAL_REAL)) {
        peal_parser_report(c->parser, PEAL_E_WRONG_VALUE_TYPE, NULL, place, NULL,
                           "`if` has %s before it and %s behind `else`", names[one], names[other]);
        return NULL;
    }
    return new_operator(c, PEAL_OPERATOR_CHOICE, place, 3, operand);
}

bool peal_is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The keyword stands here as a whole word. */
static bool take_keyword(peal_cursor *c, const char *word)
{
    size_t length = strlen(word);
    peal_cursor_skip(c);
    if (strncmp(c->at, word, length) || peal_is_word_byte(c->at[length]))
        return false;
    c->at += length;
    return true;
}

static bool enter(peal_cursor *c, const char *at)
{
    if (++c->depth <= PEAL_EXPRESSION_DEPTH)
        return true;
    peal_parser_report(c->parser, PEAL_E_EXPRESSION_TOO_LONG, at, c->source, NULL,
                       "the expression is nested more than %d deep", PEAL_EXPRESSION_DEPTH);
    return false;
}

static const peal_expr *parse_call(peal_cursor *c, const operator_word *function, const char *start)
{
    const peal_expr *operand[PEAL_EXPR_OPERANDS];
    int count = 0;
    peal_source place = peal_cursor_place(c, start);
    bool many = function->op == PEAL_OPERATOR_MINIMUM || function->op == PEAL_OPERATOR_MAXIMUM;
    c->at++; /* the parenthesis */
    do {
        if (count == PEAL_EXPR_OPERANDS)
            return peal_syntax_error(c, c->at, NULL, "too many arguments");
        operand[count] = parse_choice(c);
        if (!operand[count++])
            return NULL;
        peal_cursor_skip(c);
    } while (*c->at == ',' && c->at++);
    if (*c->at != ')')
        return peal_syntax_error(c, c->at, "quote what holds a comma: \"min(a, b)\"",
                                 "expected `)` or `,` in a call");
    c->at++;
    if (many ? count < 2 : count != 1)
        return peal_syntax_error(c, start, NULL,
                                 many ? "min and max take two or more values"
                                      : "the function takes one value");
    if (function->op >= PEAL_OPERATOR_POWER)
        return new_early_operator(c, function->op, start, place, count, operand);
    return new_operator(c, function->op, place, count, operand);
}

static const peal_expr *parse_word(peal_cursor *c)
{
    const char *start = c->at, *end = start;
    char word[64];
    while (peal_is_word_byte(*end))
        end++;
    size_t length = (size_t)(end - start);
    if (length >= sizeof(word))
        return peal_syntax_error(c, start, NULL, "a name has at most 63 letters");
    memcpy(word, start, length);
    word[length] = 0;
    c->at = end;
    peal_cursor_skip(c);
    for (size_t i = 0; i < COUNT(functions) && *c->at == '('; i++)
        if (!strcmp(word, functions[i].word))
            return parse_call(c, &functions[i], start);
    size_t same;
    if (*c->at == '(' && peal_find_declaration(c->parser, start, &same) < 0) {
        const char *names[COUNT(functions)];
        for (size_t i = 0; i < COUNT(functions); i++)
            names[i] = functions[i].word;
        const char *hint = peal_parser_hint(c->parser, word, names, COUNT(names));
        if (!strcmp(word, "pow"))
            hint = "write x ** y";
        peal_parser_report(c->parser, PEAL_E_UNKNOWN_NAME, start, c->source,
                           hint ? hint
                                : "functions are min max abs sqrt floor ceil, and before the run "
                                  "log2 sin cos tan exp log tanh",
                           "unknown function `%s`", word);
        return NULL;
    }
    c->at = end;
    return peal_resolve_name(c, word, start);
}

static const peal_expr *parse_parenthesis(peal_cursor *c)
{
    const char *start = c->at++;
    const peal_expr *expr = parse_choice(c);
    if (!expr)
        return NULL;
    peal_cursor_skip(c);
    if (*c->at != ')')
        return peal_syntax_error(c, start, NULL, "`(` without its `)`");
    c->at++;
    return expr;
}

static const peal_expr *parse_value(peal_cursor *c)
{
    peal_cursor_skip(c);
    if (isdigit((unsigned char)*c->at) || (*c->at == '.' && isdigit((unsigned char)c->at[1])))
        return peal_parse_number(c);
    if (peal_is_word_byte(*c->at))
        return parse_word(c);
    if (*c->at == '(')
        return parse_parenthesis(c);
    if (*c->at == '"' || *c->at == '\'')
        return peal_parse_text(c);
    if (*c->at == '!')
        return peal_syntax_error(c, c->at, "write `not`", "expected a value");
    return peal_syntax_error(c, c->at, NULL,
                             *c->at ? "expected a number, a name or `(`"
                                    : "the expression ends too early");
}

/* a ** b ** c is a ** (b ** c), and -a ** b is -(a ** b). */
static const peal_expr *parse_power(peal_cursor *c)
{
    const peal_expr *operand[2] = {parse_value(c), NULL};
    peal_cursor_skip(c);
    const char *at = c->at;
    if (!operand[0] || strncmp(at, "**", 2))
        return operand[0];
    if (!enter(c, at))
        return NULL;
    peal_source place = peal_cursor_place(c, at);
    c->at += 2;
    operand[1] = parse_sign(c);
    c->depth--;
    return operand[1] ? new_early_operator(c, PEAL_OPERATOR_POWER, at, place, 2, operand) : NULL;
}

/* Whether 2^63 stands here, and nothing that binds more than a sign. */
static bool is_opposite_of_least(const char *at)
{
    if (strncmp(at, "9223372036854775808", 19) || peal_is_word_byte(at[19]) || at[19] == '.')
        return false;
    at += 19;
    while (isspace((unsigned char)*at))
        at++;
    return strncmp(at, "**", 2) != 0;
}

static const peal_expr *parse_sign(peal_cursor *c)
{
    peal_cursor_skip(c);
    if (*c->at != '-' && *c->at != '+')
        return parse_power(c);
    const char *start = c->at++;
    if (!enter(c, start))
        return NULL;
    peal_cursor_skip(c);
    if (*start == '-' &&
        is_opposite_of_least(c->at)) { /* the one integer whose opposite doesn't fit */
        peal_expr *least = new_node(c, PEAL_EXPR_CONSTANT, start);
        least->value.u.integer = INT64_MIN;
        c->at += 19;
        c->depth--;
        return least;
    }
    peal_source place = peal_cursor_place(c, start);
    const peal_expr *operand = parse_sign(c);
    c->depth--;
    if (!operand || *start == '+')
        return operand;
    if (operand->kind == PEAL_EXPR_CONSTANT && operand->value.kind <= PEAL_REAL) {
        peal_expr *negated = PEAL_ARENA_NEW(c->parser->graph->arena, peal_expr);
        negated->source = place;
        negated->value = operand->value;
        if (operand->value.kind == PEAL_REAL)
            negated->value.u.real = -operand->value.u.real;
        else if (operand->value.u.integer != INT64_MIN)
            negated->value.u.integer = -operand->value.u.integer;
        else
            return new_operator(c, PEAL_OPERATOR_NEGATE, place, 1, &operand);
        return negated;
    }
    return new_operator(c, PEAL_OPERATOR_NEGATE, place, 1, &operand);
}

static const operator_word *find_operator(peal_cursor *c, const operator_word *words, size_t count)
{
    peal_cursor_skip(c);
    for (size_t i = 0; i < count; i++)
        if (!strncmp(c->at, words[i].word, strlen(words[i].word)))
            return &words[i];
    return NULL;
}

/* left op right op right ...: a chain of operators of one level. */
static const peal_expr *parse_chain(peal_cursor *c, const operator_word *words, size_t count,
                                    const peal_expr *(*parse)(peal_cursor *c))
{
    const peal_expr *left = parse(c);
    const operator_word *found;
    while (left && (found = find_operator(c, words, count))) {
        const char *at = c->at;
        c->at += strlen(found->word);
        peal_source place = peal_cursor_place(c, at);
        const peal_expr *operand[2] = {left, parse(c)};
        left = operand[1] ? new_operator(c, found->op, place, 2, operand) : NULL;
    }
    return left;
}

static const peal_expr *parse_product(peal_cursor *c)
{
    return parse_chain(c, products, COUNT(products), parse_sign);
}

static const peal_expr *parse_sum(peal_cursor *c)
{
    return parse_chain(c, sums, COUNT(sums), parse_product);
}

static const peal_expr *parse_comparison(peal_cursor *c)
{
    const peal_expr *operand[2] = {parse_sum(c), NULL};
    if (!operand[0])
        return NULL;
    const operator_word *found = find_operator(c, comparisons, COUNT(comparisons));
    if (!found)
        return operand[0];
    peal_source place = peal_cursor_place(c, c->at);
    c->at += strlen(found->word);
    operand[1] = parse_sum(c);
    if (!operand[1])
        return NULL;
    if (find_operator(c, comparisons, COUNT(comparisons)))
        return peal_syntax_error(c, c->at, "write a < b and b < c",
                                 "comparisons cannot be chained");
    return new_operator(c, found->op, place, 2, operand);
}

static const peal_expr *parse_not(peal_cursor *c)
{
    peal_cursor_skip(c);
    const char *at = c->at;
    if (!take_keyword(c, "not"))
        return parse_comparison(c);
    if (!enter(c, at))
        return NULL;
    peal_source place = peal_cursor_place(c, at);
    const peal_expr *operand = parse_not(c);
    c->depth--;
    return operand ? new_operator(c, PEAL_OPERATOR_NOT, place, 1, &operand) : NULL;
}

static const peal_expr *parse_and(peal_cursor *c)
{
    const peal_expr *left = parse_not(c);
    while (left) {
        peal_cursor_skip(c);
        const char *at = c->at;
        if (!take_keyword(c, "and"))
            return left;
        peal_source place = peal_cursor_place(c, at);
        const peal_expr *operand[2] = {left, parse_not(c)};
        left = operand[1] ? new_operator(c, PEAL_OPERATOR_AND, place, 2, operand) : NULL;
    }
    return NULL;
}

static const peal_expr *parse_or(peal_cursor *c)
{
    peal_cursor_skip(c);
    if (!enter(c, c->at))
        return NULL;
    const peal_expr *left = parse_and(c);
    while (left) {
        peal_cursor_skip(c);
        const char *at = c->at;
        if (!take_keyword(c, "or"))
            break;
        peal_source place = peal_cursor_place(c, at);
        const peal_expr *operand[2] = {left, parse_and(c)};
        left = operand[1] ? new_operator(c, PEAL_OPERATOR_OR, place, 2, operand) : NULL;
    }
    c->depth--;
    return left;
}

static const char *hint_after(const char *at)
{
    if (*at == '=')
        return "write `==` to compare";
    if (*at == '&' || *at == '|')
        return "write `and`, `or`";
    if (*at == '^')
        return "a power is x ** y";
    if (*at == ',')
        return "a list needs brackets: [a, b]";
    if (*at == ')')
        return "there is no `(` for it";
    return NULL;
}

/* a if c else b, which may be one of several: a if c else (b if d else e). */
static const peal_expr *parse_choice(peal_cursor *c)
{
    const peal_expr *operand[3] = {NULL, parse_or(c), NULL};
    peal_cursor_skip(c);
    const char *at = c->at;
    if (!operand[1] || !take_keyword(c, "if"))
        return operand[1];
    if (!enter(c, at))
        return NULL;
    peal_source place = peal_cursor_place(c, at);
    operand[0] = parse_or(c);
    if (!operand[0])
        return NULL;
    if (!take_keyword(c, "else"))
        return peal_syntax_error(c, at, "write a if c else b", "`if` without its `else`");
    operand[2] = parse_choice(c);
    c->depth--;
    return operand[2] ? new_choice(c, place, operand) : NULL;
}

const peal_expr *peal_parse_one(peal_cursor *c)
{
    peal_cursor_skip(c);
    const char *start = c->at;
    const peal_expr *expr = parse_choice(c);
    if (!expr)
        return NULL;
    const char *end = c->at;
    while (end > start && isspace((unsigned char)end[-1]))
        end--;
    if (end - start > PEAL_EXPRESSION_BYTES) {
        peal_parser_report(c->parser, PEAL_E_EXPRESSION_TOO_LONG, start, c->source, NULL,
                           "the expression is longer than %d bytes", PEAL_EXPRESSION_BYTES);
        return NULL;
    }
    peal_expr *whole = PEAL_ARENA_NEW(c->parser->graph->arena, peal_expr);
    *whole = *expr;
    whole->text = peal_arena_copy_bytes(c->parser->graph->arena, start, (size_t)(end - start));
    return whole;
}

const peal_expr *peal_parse_expression(peal_parser *parser, const char *text, peal_source source,
                                       unsigned allow)
{
    if (!text)
        return NULL;
    peal_cursor c = {.parser = parser, .at = text, .source = source};
    if (strlen(text) > PEAL_EXPRESSION_BYTES) {
        peal_parser_report(parser, PEAL_E_EXPRESSION_TOO_LONG, text, source, NULL,
                           "the expression is longer than %d bytes", PEAL_EXPRESSION_BYTES);
        return NULL;
    }
    parser->allow = allow;
    const peal_expr *expr = peal_parse_one(&c);
    peal_cursor_skip(&c);
    if (expr && *c.at)
        return peal_syntax_error(&c, c.at, hint_after(c.at), "expected the end of the expression");
    return expr;
}
