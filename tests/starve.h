/* An allocator that fails once, on demand. Linked with --wrap=calloc, malloc and
 * realloc. */
#ifndef PEAL_TESTS_STARVE_H
#define PEAL_TESTS_STARVE_H

#include <stdbool.h>

enum { STARVE_CALLOC = 1, STARVE_REALLOC = 2, STARVE_MALLOC = 4 };

/* The call of one of these functions with this number from now on (0: the next one) of this thread
 * returns NULL. functions 0: none, and what starved() says stays. */
void starve_at(int functions, int number);
/* Whether that has happened. */
bool starved(void);

#endif
