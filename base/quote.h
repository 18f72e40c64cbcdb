/* Texts of others on a terminal: of specs, of files' names, of peers. */
#ifndef PEAL_BASE_QUOTE_H
#define PEAL_BASE_QUOTE_H

#include <stdio.h>

/* Writes text so that a terminal only shows it: control characters, bytes that are no UTF-8, and
 * characters that turn the direction of writing become \n, \x1b, \u202e. A line break stays where
 * `indent` says with what the next line begins; NULL: it is quoted as well. */
void peal_print_quoted(FILE *stream, const char *text, const char *indent);

#endif
