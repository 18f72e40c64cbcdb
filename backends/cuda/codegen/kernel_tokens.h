/* The text of kernels as tokens. Only plain texts are taken: what a preprocessor may leave out, or
 * a reader take for something else, is refused. */
#ifndef PEAL_CUDA_KERNEL_TOKENS_H
#define PEAL_CUDA_KERNEL_TOKENS_H

#include "base/kernel_source.h"

#include <stdbool.h>

typedef struct peal_cuda_token {
    const char *at;
    int length;
    bool is_word;
    int match; /* of a bracket of any sort: the other one; -1: there is none */
} peal_cuda_token;

typedef struct peal_cuda_macro {
    const peal_cuda_token *name;
    const peal_cuda_token *token; /* that it is made of, behind its name */
    int count;
    bool has_parameters;
    int value; /* where its value begins */
    int at;    /* it is defined in front of this token of the text */
} peal_cuda_macro;

/* All texts of a plan, without their directives. */
typedef struct peal_cuda_tokens {
    peal_cuda_token *token;
    int count, room;
    peal_cuda_macro *macro;
    int macro_count, macro_room;
} peal_cuda_tokens;

/* False: files of the application are included, or a text is not plain: it has a directive beside
 * #define, #pragma unroll and #include of C's headers for numbers, brackets without their others,
 * or characters that may stand for others; it takes an address, makes references, or has words that
 * change what others mean, or that are of a device's threads; the file has variables, or macros
 * that are empty or whose names are not in capitals. */
bool peal_cuda_tokens_read(const peal_kernel_files *files, peal_arena *arena,
                           peal_cuda_tokens *out);

/* kernel_macros.c: tokens [begin, end) of the texts with macros expanded, peal's own excepted.
 * False: a macro is defined twice, or behind `begin`, or has no such number of arguments, or what
 * comes of them is too much. A few semicolons follow, so that who looks ahead finds something. */
bool peal_cuda_tokens_expand(const peal_cuda_tokens *all, int begin, int end, peal_arena *arena,
                             peal_cuda_tokens *out);
/* Finds the other one of each bracket. False: some has none. */
bool peal_cuda_tokens_match(peal_cuda_token *token, int count, peal_arena *arena);

bool peal_cuda_token_is(const peal_cuda_token *token, const char *text);
bool peal_cuda_token_is_one_of(const peal_cuda_token *token, const char *const *words,
                               size_t count);
bool peal_cuda_token_begins(const peal_cuda_token *token, const char *text);
bool peal_cuda_tokens_equal(const peal_cuda_token *a, const peal_cuda_token *b);
/* The macro of that name; NULL: there is none, or (*several) there are more of them. */
const peal_cuda_macro *peal_cuda_tokens_macro(const peal_cuda_tokens *tokens,
                                              const peal_cuda_token *name, bool *several);

#endif
