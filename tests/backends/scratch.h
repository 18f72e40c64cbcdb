/* Folders of a test's own, and files in them. */
#ifndef PEAL_TESTS_SCRATCH_H
#define PEAL_TESTS_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* A new folder, and its removal with all that it holds. */
bool scratch_make(char *path, size_t bytes);
/* One of that name where tests keep what they compile (PEAL_TEST_CACHE), if they do: a compiled
 * kernel is known by its folder, too. */
bool scratch_keep(char *path, size_t bytes, const char *name);
void scratch_remove(const char *path);

/* A file of it. */
void scratch_write(const char *folder, const char *name, const char *text);

/* How many entries it has; the path of one of them. */
int scratch_entries(const char *folder, char *last, size_t bytes);

#endif
