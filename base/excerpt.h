/* The line of a file that a message is about, with a caret below its column. */
#ifndef PEAL_BASE_EXCERPT_H
#define PEAL_BASE_EXCERPT_H

#include <peal/types.h>

#include <stdbool.h>
#include <stdio.h>

/* Prints "   12 | the line" and a caret, if source is a place in a text file that can be read. A
 * long line is cut around the column. */
void peal_excerpt_print(FILE *stream, peal_source source, bool color);

#endif
