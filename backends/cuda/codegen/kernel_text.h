/* What a kernel's text declares: its parameters, and the loops over its tile's points. Both proofs
 * by text start from it, own_points.h and tile_loops.h. */
#ifndef PEAL_CUDA_KERNEL_TEXT_H
#define PEAL_CUDA_KERNEL_TEXT_H

#include "backends/cuda/codegen/kernel_tokens.h"

enum { PEAL_CUDA_TEXT_LOOPS = 64, PEAL_CUDA_TEXT_AXES = 3, PEAL_CUDA_TEXT_PARTIALS = 16 };

/* A loop over the tile's points, whose head's bracket is token `open`; index: its names. */
typedef struct peal_cuda_tile_loop {
    int open, axes;
    bool is_even; /* over every second point */
    const peal_cuda_token *index[PEAL_CUDA_TEXT_AXES];
} peal_cuda_tile_loop;

/* A kernel whose macros have been expanded, but for peal's own, and one of the arrays among its
 * parameters. */
typedef struct peal_cuda_kernel_text {
    const peal_cuda_token *token;        /* of the kernel, from PEAL_KERNEL to its last bracket */
    int begin, end;                      /* its body's brackets */
    const peal_cuda_token *tile, *array; /* their names */
    int axes;                            /* of the array */
    bool is_straight;                    /* asked for: nothing branches */
    const peal_cuda_token *partial[PEAL_CUDA_TEXT_PARTIALS]; /* names of reductions */
    int partial_count;
    peal_cuda_tile_loop loop[PEAL_CUDA_TEXT_LOOPS];
    int loop_count;
} peal_cuda_kernel_text;

/* Finds the kernel, which has to have so many arrays as parameters, of which number `index` is
 * declared by `access`, as "PEAL_UPDATE". False: it is not there once, it has too many macros, or
 * its head or loops are not plain. */
bool peal_cuda_text_find(peal_cuda_kernel_text *k, const peal_cuda_tokens *tokens, const char *name,
                         int arrays, int index, const char *access, peal_arena *arena);

/* own_points.c: whether it stores into that array at points of its tile alone, has the array
 * nowhere but in PEAL_AT, and leaves the names of its tile and of its loops alone. */
bool peal_cuda_text_stores_at_own(const peal_cuda_kernel_text *k);

/* The bracket that token `at` stands in; -1: none. */
int peal_cuda_text_bracket(const peal_cuda_token *t, int at);
/* Behind the argument that begins at token `at`: the comma, or the bracket that ends the list. */
int peal_cuda_text_argument_end(const peal_cuda_token *t, int at, int close);
/* Whether a word is that of a loop over a tile's points. */
bool peal_cuda_text_is_loop(const peal_cuda_token *word);
/* Whether a word is the name of an index of any of the kernel's loops. */
bool peal_cuda_text_is_index(const peal_cuda_kernel_text *k, const peal_cuda_token *word);
/* Whether a word is the name of one of its reductions. */
bool peal_cuda_text_is_partial(const peal_cuda_kernel_text *k, const peal_cuda_token *word);
/* The loop that a PEAL_AT at token `at` is in, whatever other blocks lie between; NULL: it is in
 * none, or amid an expression. */
const peal_cuda_tile_loop *peal_cuda_text_loop_around(const peal_cuda_kernel_text *k, int at);

#endif
