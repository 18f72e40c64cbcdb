/* The translation unit of a plan's kernels, and which of them runs which task. */
#ifndef PEAL_CUDA_SOURCE_H
#define PEAL_CUDA_SOURCE_H

#include "backends/cuda/codegen/expression.h"
#include "backends/cuda/jit/kernels.h"
#include "base/kernel_source.h"

#include <stdio.h>

/* A distinct kernel: peal_task_N, and peal_bare_N if it has reductions. */
typedef struct peal_cuda_entry {
    const char *text;           /* all but its name: equal texts are one kernel */
    const char *bare;           /* NULL: none */
    const char *own, *own_bare; /* peal_own_N, peal_own_bare_N: blocks send all themselves */
    const char *plain; /* peal_plain_N: tiles of any shape, no waits, nothing sent; NULL: none */
    const char *plain_full;           /* peal_plain_full_N: the same with partials; NULL: none */
    const char *shaped, *shaped_bare; /* mode fused: tiles of a box whose shape is known */
    const char *signature;
    const peal_schedule *schedule;
    const peal_schedule_task *task; /* the first that needs it; of kind KERNEL: the user's */
    bool is_users, is_light;
    bool is_linked; /* the kernel is a function of the application's device code */
    bool is_reported;
} peal_cuda_entry;

typedef struct peal_cuda_task_entry {
    int entry; /* -1: no kernel runs the task */
    int threads[3];
    peal_cuda_elements *elements;
    unsigned device_arguments;
} peal_cuda_task_entry;

typedef struct peal_cuda_source {
    peal_arena *arena;
    peal_backend_desc own;
    const peal_backend_desc *desc; /* own */
    const peal_graph_data *graph;
    peal_kernel_files files;
    peal_cuda_entry *entry;
    int entry_count;
    const char **expression; /* distinct functions, without their names */
    int expression_count;
    peal_cuda_task_entry **task; /* by hosted rank and task */
    const char *text;            /* the translation unit */
    const char *plain;           /* that of the plain kernels; NULL: there are none */
    const char *fused; /* that of mode fused, but what peal_cuda_translation_units_close ends it
                          with; or NULL */
    bool is_counted;   /* messages carry as many elements as a run says */
    bool is_wide;      /* offsets of an array with two or three axes need 64 bits */
} peal_cuda_source;

/* Everything is in the arena. What is wrong with the user's files or expressions is reported. */
peal_status peal_cuda_source_create(const peal_backend_desc *desc, peal_arena *arena,
                                    peal_cuda_source **out);

/* Texts that grow; the result is in the arena, and the stream is ended. */
FILE *peal_cuda_text_open(char **text, size_t *bytes);
const char *peal_cuda_text_close(peal_arena *arena, FILE *out, char **text);

struct peal_cuda_compile_result;
/* kernels.c: has a text of the source compiled, verbosely (compile.h); errors are reported. */
peal_status peal_cuda_source_compile(const peal_cuda_source *source, const char *text,
                                     int architecture, struct peal_cuda_compile_result *out);

/* translation_unit.c: whether a unit calls functions of the application's device code. */
bool peal_cuda_source_links(const char *text);
/* translation_unit.c: source->text, and plain or fused. */
void peal_cuda_translation_units_print(peal_cuda_source *source);
/* The whole unit of mode fused: shapes are functions peal_shape_0, 1, ... and what they need. */
const char *peal_cuda_translation_units_close(const peal_cuda_source *source, const char *shapes,
                                              int shape_count, peal_arena *arena);

#endif
