/* Numbers and texts in expressions. */
#include "base/number.h"
#include "dsl/expression_parser.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static peal_expr *new_constant(peal_cursor *c, const char *at)
{
    peal_expr *expr = PEAL_ARENA_NEW(c->parser->graph->arena, peal_expr);
    expr->kind = PEAL_EXPR_CONSTANT;
    expr->source = peal_cursor_place(c, at);
    return expr;
}

static const peal_expr *parse_integer(peal_cursor *c, const char *start, const char *end)
{
    peal_expr *expr = new_constant(c, start);
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

const peal_expr *peal_parse_number(peal_cursor *c)
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
    if (peal_is_word_byte(*p) || *p == '.')
        return peal_syntax_error(c, start, "numbers look like 8, 0.5 or 1e-8; write 2 * n for 2n",
                                 "not a number");
    if (!real)
        return parse_integer(c, start, p);
    peal_expr *expr = new_constant(c, start);
    expr->value.kind = PEAL_REAL;
    expr->value.u.real = peal_number_read(start, NULL);
    c->at = p;
    if (expr->value.u.real > 1.7976931348623157e308)
        return peal_syntax_error(c, start, NULL,
                                 "the number is too large for 64-bit floating point");
    return expr;
}

const peal_expr *peal_parse_text(peal_cursor *c)
{
    const char *start = c->at, *end = strchr(start + 1, *start);
    if (!end)
        return peal_syntax_error(c, start, NULL, "a text without its closing quote");
    peal_expr *expr = new_constant(c, start);
    expr->value.kind = PEAL_TEXT;
    expr->value.u.text =
        peal_arena_copy_bytes(c->parser->graph->arena, start + 1, (size_t)(end - start - 1));
    c->at = end + 1;
    return expr;
}
