/* Expressions: a recursive descent over the text, one function a level of precedence.
 *
 *     or < and < not < comparison < + - < * / % < sign < value
 *
 * A parser stops at the first mistake of an expression; the caller goes on with the next one. */
#define _GNU_SOURCE
#include "dsl/expression_parser.h"
#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
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
    {"sqrt", PEAL_OPERATOR_SQRT},   {"floor", PEAL_OPERATOR_FLOOR}, {"ceil", PEAL_OPERATOR_CEIL}};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const peal_expr *parse_or(peal_cursor *c);

void peal_cursor_skip(peal_cursor *c)
{
    while (*c->at && isspace((unsigned char)*c->at))
        c->at++;
}

peal_source peal_cursor_place(peal_cursor *c, const char *at)
{
    return peal_graph_place(c->parser->graph, at, c->source);
}

static const peal_expr *syntax(peal_cursor *c, const char *at, const char *hint, const char *what)
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

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The keyword stands here as a whole word. */
static bool take_keyword(peal_cursor *c, const char *word)
{
    size_t length = strlen(word);
    peal_cursor_skip(c);
    if (strncmp(c->at, word, length) || is_word_byte(c->at[length]))
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

static const peal_expr *parse_integer(peal_cursor *c, const char *start, const char *end)
{
    peal_expr *expr = new_node(c, PEAL_EXPR_CONSTANT, start);
    char digits[24];
    size_t length = (size_t)(end - start);
    c->at = end;
    errno = ERANGE;
    if (length < sizeof(digits)) {
        memcpy(digits, start, length);
        digits[length] = 0;
        errno = 0;
        expr->value.u.integer = strtoll(digits, NULL, 10);
    }
    if (errno) {
        peal_parser_report(c->parser, PEAL_E_INTEGER_OVERFLOW, start, c->source,
                           "write it as a real number: 1e20", "`%.*s` does not fit 64 bits",
                           (int)(length < 40 ? length : 40), start);
        return NULL;
    }
    return expr;
}

static const peal_expr *parse_number(peal_cursor *c)
{
    const char *start = c->at, *p = start;
    while (isdigit((unsigned char)*p))
        p++;
    bool real = *p == '.';
    if (real)
        p++;
    while (isdigit((unsigned char)*p))
        p++;
    if (*p == 'e' || *p == 'E') {
        const char *exponent = p + 1 + (p[1] == '+' || p[1] == '-');
        if (isdigit((unsigned char)*exponent)) {
            real = true;
            p = exponent;
            while (isdigit((unsigned char)*p))
                p++;
        }
    }
    if (is_word_byte(*p) || *p == '.')
        return syntax(c, start, "numbers look like 8, 0.5 or 1e-8; write 2 * n for 2n",
                      "not a number");
    if (!real)
        return parse_integer(c, start, p);
    peal_expr *expr = new_node(c, PEAL_EXPR_CONSTANT, start);
    expr->value.kind = PEAL_REAL;
    expr->value.u.real = peal_number_read(start, NULL);
    c->at = p;
    if (expr->value.u.real > 1.7976931348623157e308)
        return syntax(c, start, NULL, "the number is too large for 64-bit floating point");
    return expr;
}

static const peal_expr *parse_text(peal_cursor *c)
{
    const char *start = c->at, *end = strchr(start + 1, *start);
    if (!end)
        return syntax(c, start, NULL, "a text without its closing quote");
    peal_expr *expr = new_node(c, PEAL_EXPR_CONSTANT, start);
    expr->value.kind = PEAL_TEXT;
    expr->value.u.text =
        peal_arena_copy_bytes(c->parser->graph->arena, start + 1, (size_t)(end - start - 1));
    c->at = end + 1;
    return expr;
}

static const peal_expr *parse_call(peal_cursor *c, const operator_word *function, const char *start)
{
    enum { MOST = 16 };
    const peal_expr *operand[MOST];
    int count = 0;
    peal_source place = peal_cursor_place(c, start);
    bool many = function->op == PEAL_OPERATOR_MINIMUM || function->op == PEAL_OPERATOR_MAXIMUM;
    c->at++; /* the parenthesis */
    do {
        if (count == MOST)
            return syntax(c, c->at, NULL, "too many arguments");
        operand[count] = parse_or(c);
        if (!operand[count++])
            return NULL;
        peal_cursor_skip(c);
    } while (*c->at == ',' && c->at++);
    if (*c->at != ')')
        return syntax(c, c->at, "quote what holds a comma: \"min(a, b)\"",
                      "expected `)` or `,` in a call");
    c->at++;
    if (many ? count < 2 : count != 1)
        return syntax(c, start, NULL,
                      many ? "min and max take two or more values"
                           : "the function takes one value");
    return new_operator(c, function->op, place, count, operand);
}

static const peal_expr *parse_word(peal_cursor *c)
{
    const char *start = c->at, *end = start;
    char word[64];
    while (is_word_byte(*end))
        end++;
    size_t length = (size_t)(end - start);
    if (length >= sizeof(word))
        return syntax(c, start, NULL, "a name has at most 63 letters");
    memcpy(word, start, length);
    word[length] = 0;
    c->at = end;
    peal_cursor_skip(c);
    for (size_t i = 0; i < COUNT(functions) && *c->at == '('; i++)
        if (!strcmp(word, functions[i].word))
            return parse_call(c, &functions[i], start);
    if (*c->at == '(') {
        static const char *const names[] = {"min", "max", "abs", "sqrt", "floor", "ceil"};
        const char *hint = peal_parser_hint(c->parser, word, names, COUNT(names));
        peal_parser_report(c->parser, PEAL_E_UNKNOWN_NAME, start, c->source,
                           hint ? hint : "functions are min max abs sqrt floor ceil",
                           "unknown function `%s`", word);
        return NULL;
    }
    c->at = end;
    return peal_resolve_name(c, word, start);
}

static const peal_expr *parse_parenthesis(peal_cursor *c)
{
    const char *start = c->at++;
    const peal_expr *expr = parse_or(c);
    if (!expr)
        return NULL;
    peal_cursor_skip(c);
    if (*c->at != ')')
        return syntax(c, start, NULL, "`(` without its `)`");
    c->at++;
    return expr;
}

static const peal_expr *parse_value(peal_cursor *c)
{
    peal_cursor_skip(c);
    if (isdigit((unsigned char)*c->at) || (*c->at == '.' && isdigit((unsigned char)c->at[1])))
        return parse_number(c);
    if (is_word_byte(*c->at))
        return parse_word(c);
    if (*c->at == '(')
        return parse_parenthesis(c);
    if (*c->at == '"' || *c->at == '\'')
        return parse_text(c);
    if (*c->at == '!')
        return syntax(c, c->at, "write `not`", "expected a value");
    return syntax(c, c->at, NULL,
                  *c->at ? "expected a number, a name or `(`" : "the expression ends too early");
}

static const peal_expr *parse_sign(peal_cursor *c)
{
    peal_cursor_skip(c);
    if (*c->at != '-' && *c->at != '+')
        return parse_value(c);
    const char *start = c->at++;
    if (!enter(c, start))
        return NULL;
    peal_cursor_skip(c);
    if (*start == '-' && !strncmp(c->at, "9223372036854775808", 19) && !is_word_byte(c->at[19]) &&
        c->at[19] != '.') { /* the one integer whose opposite doesn't fit */
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
        if (*found->word == '*' && *c->at == '*')
            return syntax(c, at, "write x * x", "there is no operator `**`");
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
        return syntax(c, c->at, "write a < b and b < c", "comparisons cannot be chained");
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
        return "there is no power; write x * x";
    if (*at == ',')
        return "a list needs brackets: [a, b]";
    if (*at == ')')
        return "there is no `(` for it";
    return NULL;
}

const peal_expr *peal_parse_one(peal_cursor *c)
{
    peal_cursor_skip(c);
    const char *start = c->at;
    c->depth = 0;
    const peal_expr *expr = parse_or(c);
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
        return syntax(&c, c.at, hint_after(c.at), "expected the end of the expression");
    return expr;
}
