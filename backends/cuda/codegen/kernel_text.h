/* Words, brackets and definitions in the text of kernels. */
#ifndef PEAL_CUDA_KERNEL_TEXT_H
#define PEAL_CUDA_KERNEL_TEXT_H

#include "base/kernel_source.h"

#include <stdbool.h>

typedef struct peal_cuda_word {
    const char *at;
    size_t length; /* 0: there is none */
} peal_cuda_word;

bool peal_cuda_is_of_word(char c);
bool peal_cuda_word_is(const peal_cuda_word *w, const char *text);
bool peal_cuda_word_is_one_of(const peal_cuda_word *w, const char *const *words, size_t count);
bool peal_cuda_word_is_same(const peal_cuda_word *a, const peal_cuda_word *b);
/* The next word from `at` on and before `end` that is no number. False: there is none. */
bool peal_cuda_word_find(const char *at, const char *end, peal_cuda_word *out);

/* The last character before `at` that is no blank, in front of `begin` NULL; and the word that ends
 * there. */
const char *peal_cuda_last_before(const char *begin, const char *at);
peal_cuda_word peal_cuda_word_before(const char *begin, const char *at);

/* From `at` on, the first that is no blank. */
const char *peal_cuda_skip_blanks(const char *at);
/* Behind the bracket that closes the one at `at`; NULL: none does. */
const char *peal_cuda_skip_brackets(const char *at, char open, char close);
/* The bracket of either sort that `at` stands in; NULL: none. */
const char *peal_cuda_enclosing(const char *begin, const char *at);
/* The end of the line that `at` is in, with those that continue it. */
const char *peal_cuda_end_of_line(const char *at);

/* The head of the loop, a macro PEAL_FOR..., if what stands before `at` is that and its arguments;
 * else of length 0. */
peal_cuda_word peal_cuda_loop_before(const char *begin, const char *at);

/* A kernel, in one of the texts, which have no comments. */
typedef struct peal_cuda_kernel_text {
    const char **text; /* all texts: what files include, then the files */
    int count;
    const char *begin;      /* of the text that it is in */
    const char *parameters; /* with their bracket */
    const char *body, *end; /* with its brackets; NULL: it is not defined as a whole */
    peal_cuda_word tile;    /* the name of its first parameter */
} peal_cuda_kernel_text;

/* False: it is not known what is included, or the kernel is not defined once. */
bool peal_cuda_kernel_text_find(const peal_kernel_files *files, const char *kernel,
                                peal_arena *arena, peal_cuda_kernel_text *out);

#endif
