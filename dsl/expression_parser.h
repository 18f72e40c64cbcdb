/* What the parts of the expression parser share. */
#ifndef PEAL_DSL_EXPRESSION_PARSER_H
#define PEAL_DSL_EXPRESSION_PARSER_H

#include "dsl/parser.h"

/* Where a parser is in a text. */
typedef struct peal_cursor {
    peal_parser *parser;
    const char *at;
    peal_source source; /* of the text, if it is not lent by a reader */
    int depth;
} peal_cursor;

void peal_cursor_skip(peal_cursor *cursor);
peal_source peal_cursor_place(peal_cursor *cursor, const char *at);

/* Reports a mistake of syntax that stands at `at`. Gives NULL. */
const peal_expr *peal_syntax_error(peal_cursor *cursor, const char *at, const char *hint,
                                   const char *what);
bool peal_is_word_byte(char c);

/* The number or text that begins here; NULL after a diagnostic. */
const peal_expr *peal_parse_number(peal_cursor *cursor);
const peal_expr *peal_parse_text(peal_cursor *cursor);

/* One expression from the cursor on, up to what cannot belong to it. */
const peal_expr *peal_parse_one(peal_cursor *cursor);

/* The array of a declaration whose name stands at `at`: with the index in brackets that follows at
 * the cursor, which goes on behind it. -1 after a diagnostic. */
int peal_resolve_member(peal_cursor *cursor, const char *at, int declaration);

/* The word that stands at `start`; the cursor is after it and may go on to `.member`. */
const peal_expr *peal_resolve_name(peal_cursor *cursor, const char *word, const char *start);

#endif
