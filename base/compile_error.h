/* What compilers of kernels say, of which a user needs less: no echoes of another mistake, nothing
 * about text that peal has generated. */
#ifndef PEAL_BASE_COMPILE_ERROR_H
#define PEAL_BASE_COMPILE_ERROR_H

#include "base/kernel_source.h"

enum { PEAL_MOST_COMPILE_ERRORS = 50 }; /* of one compilation */

/* A message of the compiler that is an error. */
typedef struct peal_compile_error {
    const char *file; /* NULL: none */
    int line, column;
    const char *message;
} peal_compile_error;

/* What gcc or clang has printed: the lines "file:line:column: error: text"; without one, all of it
 * is one error. In the arena; returns their number, which is never 0. */
int peal_compile_errors_read(const char *text, peal_arena *arena, peal_compile_error **out);
/* Leaves those that say something new, at least one, as the first ones of the list; returns their
 * number. */
int peal_compile_errors_sift(peal_compile_error *error, int count);
/* What to do about it, or NULL. files: how many kernel files there are. */
const char *peal_compile_error_hint(const char *message, int files);
/* PEAL_E_KERNEL_COMPILE_ERROR of a `{` in the files that is never closed, if errors say so in their
 * ways: each compiler tells other things, about what comes behind. PEAL_STATUS_OK: there is none.
 */
peal_status peal_compile_errors_unclosed(const peal_compile_error *error, int count,
                                         const peal_kernel_files *files,
                                         peal_diagnostics *diagnostics);

#endif
