/* The files that print the kernel of a task: what they are given, and the fragments of a kernel
 * that calls the user's. trampoline.c has the skeleton that these fragments stand in. No other room
 * includes this. */
#ifndef PEAL_CUDA_TASK_PRINTER_H
#define PEAL_CUDA_TASK_PRINTER_H

#include "backends/cuda/codegen/codegen.h"

#include <stdio.h>

enum { PEAL_CUDA_EXPRESSIONS = 4096 /* distinct ones of a plan, at most */ };

/* A task of a rank whose kernels are printed. */
typedef struct peal_cuda_task_printer {
    peal_cuda_source *source;
    const peal_schedule *schedule;
    const peal_scope *scope;
    const peal_schedule_task *task;
    peal_cuda_task_entry *entry;
} peal_cuda_task_printer;

/* The number of the function that computes expr, peal_expression_N_, and the kind of its value.
 * Equal texts are one function. */
peal_status peal_cuda_expression_add(const peal_cuda_task_printer *p, const peal_expr *expr,
                                     int *number, peal_value_kind *kind);

/* ---- whole kernels: all but the name ---- */

/* A variant of the kernel that runs tiles by the user's. */
peal_status peal_cuda_trampoline_print(const peal_cuda_task_printer *p,
                                       const peal_cuda_entry *entry, peal_cuda_variant variant,
                                       const char **out);
/* The kernel of SET, DECIDE, PRINT, FOLD or COMBINE. */
peal_status peal_cuda_builtin_task_print(const peal_cuda_task_printer *p, const char **out);

/* ---- variants ---- */

static inline bool peal_cuda_variant_is_communication_free(peal_cuda_variant variant)
{
    return variant == PEAL_CUDA_COMMUNICATION_FREE ||
           variant == PEAL_CUDA_COMMUNICATION_FREE_NO_REDUCTION;
}

static inline bool peal_cuda_variant_is_self_sending(peal_cuda_variant variant)
{
    return variant == PEAL_CUDA_SELF_SENDING || variant == PEAL_CUDA_SELF_SENDING_NO_REDUCTION;
}

static inline bool peal_cuda_variant_is_shaped(peal_cuda_variant variant)
{
    return variant >= PEAL_CUDA_SHAPED;
}

/* Whether it writes partials of the task. */
static inline bool peal_cuda_variant_reduces(peal_cuda_variant variant,
                                             const peal_schedule_task *task)
{
    bool full = variant == PEAL_CUDA_FULL || variant == PEAL_CUDA_SELF_SENDING ||
                variant == PEAL_CUDA_COMMUNICATION_FREE || variant == PEAL_CUDA_SHAPED;
    return full && task->reduction_count > 0;
}

/* Whether views begin at the tile, and whole tiles are run as such only where they are aligned: not
 * of kernels that may write partials, whose threads have the same points in all units. */
static inline bool peal_cuda_variant_moves(peal_cuda_variant variant,
                                           const peal_schedule_task *task)
{
    return variant >= PEAL_CUDA_COMMUNICATION_FREE || task->reduction_count == 0;
}

/* ---- fragments: the call (call.c) ---- */

/* Compares the type of the user's kernel: a call alone would convert an integer to a double, or cut
 * a real number. Arrays are numbered, so that tasks which differ by their names have the same text,
 * and share their functions. */
void peal_cuda_check_print(const peal_schedule_task *task, const char *signature, FILE *out);

/* The call of the user's kernel: with constants where the tile is a whole one, and without.
 * linked: the kernel is a function that was compiled elsewhere (device/linked.h), which gets views
 * as they are. */
void peal_cuda_call_print(const peal_schedule *schedule, const peal_schedule_task *task,
                          peal_cuda_variant variant, bool linked, FILE *out);

/* The calls for the points that a thread of a deep round has at a time, and where their results go.
 */
void peal_cuda_deep_call_print(const peal_schedule *schedule, const peal_schedule_task *task,
                               const peal_cuda_chain *chain, FILE *out);

/* ---- fragments: reductions that a launch takes along (device/reduce.h, call.c) ---- */

/* The condition of the block that combines contributions instead of running a tile, and its
 * statements. */
#define PEAL_CUDA_IS_PIGGYBACK                                                                     \
    "if (peal_launch_.piggyback.bit && peal_box_->bit == peal_launch_.piggyback.bit)"
void peal_cuda_piggyback_print(const peal_schedule *schedule, const peal_schedule_task *task,
                               FILE *out);
/* Once all tiles are done: the folds of their partials. */
void peal_cuda_folds_print(const peal_schedule *schedule, const peal_schedule_task *task,
                           FILE *out);

/* ---- fragments: staging of a shaped box's tiles (device/staged.h, staging.c) ---- */

/* Before the loop over tiles: the views that are staged, and the first tiles' loads. */
void peal_cuda_stage_print_begin(const peal_schedule *schedule, const peal_schedule_task *task,
                                 FILE *out);
/* In the loop, before the call. */
void peal_cuda_stage_print_before(const peal_schedule *schedule, const peal_schedule_task *task,
                                  FILE *out);
/* In the loop, after the call. */
void peal_cuda_stage_print_after(const peal_schedule *schedule, const peal_schedule_task *task,
                                 FILE *out);

#endif
