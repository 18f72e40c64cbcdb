/* Puts generated text together. */
#ifndef PEAL_CUDA_TEXT_H
#define PEAL_CUDA_TEXT_H

#include "base/arena.h"

#include <stdio.h>

/* A text that grows. close ends the stream and returns the text, in the arena. */
FILE *peal_cuda_text_open(peal_arena *arena, char **text, size_t *bytes);
const char *peal_cuda_text_close(peal_arena *arena, FILE *out, char **text);

/* A function's body behind its signature, and a block of statements within it: "if (...) { ... }".
 * The function that opens a scope also closes it, so that the braces of a generated kernel can be
 * read in one place. */
void peal_cuda_body_open(FILE *out, const char *signature);
void peal_cuda_body_close(FILE *out);
__attribute__((format(printf, 2, 3))) void peal_cuda_block_open(FILE *out, const char *head, ...);
void peal_cuda_block_else(FILE *out);
void peal_cuda_block_close(FILE *out);

#endif
