/* The GPU text of a plan: translation units for NVRTC, made from the spec's C files and the tasks
 * that call them.
 *
 * This room is pure text: it names no header and no function of the driver, and the same schedules
 * give the same bytes. What other rooms may use is here, in task_traits.h (what a task's kernel
 * looks like, before any text is printed), in text.h (how text is put together) and in
 * device/launch.h and device/fused_launch.h (records that host and device share). The rest of
 * device/ is the text that generated code includes.
 *
 * source.c finds the distinct kernels, trampoline.c prints those that call the user's and
 * builtin_task.c those of other tasks, translation_unit.c makes units of them. Every kernel takes
 * one peal_launch by value and is launched with a grid of one axis. */
#ifndef PEAL_CUDA_CODEGEN_H
#define PEAL_CUDA_CODEGEN_H

#include "backends/cuda/codegen/expression.h"
#include "backends/cuda/codegen/task_traits.h"
#include "base/kernel_source.h"
#include "base/text_file.h"

#include <peal/plugin/backend.h>

enum {
    PEAL_CUDA_COPY_THREADS = 256, /* of a block that copies pieces */
    PEAL_CUDA_FOLD_CHUNK = 2048   /* elements that a block of a FOLD task folds */
};

/* ---- kernels of tasks ---- */

/* The kernels that a task may have, of which a launch takes one:
 * - full: writes partials of the task's reductions, if it has any;
 * - no-reduction: of launches whose reductions nobody reads;
 * - self-sending: of launches whose blocks send all that is sent, each its own part: nothing is
 *   left to the last block, so that it needs fewer registers;
 * - communication-free: of launches that wait for nothing and send nothing, with tiles of any
 *   shape: in a unit of its own;
 * - shaped: of boxes whose shape the compiler knows, in mode fused: functions, not kernels;
 * - deep: of such boxes as well, several steps of a chain (device/deep.h).
 * No-reduction variants are there only if the task has reductions; the full one serves else. */
typedef enum peal_cuda_variant {
    PEAL_CUDA_FULL,
    PEAL_CUDA_NO_REDUCTION,
    PEAL_CUDA_SELF_SENDING,
    PEAL_CUDA_SELF_SENDING_NO_REDUCTION,
    PEAL_CUDA_COMMUNICATION_FREE,
    PEAL_CUDA_COMMUNICATION_FREE_NO_REDUCTION,
    PEAL_CUDA_SHAPED,
    PEAL_CUDA_SHAPED_NO_REDUCTION,
    PEAL_CUDA_DEEP,
    PEAL_CUDA_VARIANTS
} peal_cuda_variant;

/* What the name of such a kernel ends with, behind peal_task_N (shaped: peal_tiles_N), as in
 * peal_task_N_no_reduction, peal_task_N_self_sending and peal_task_N_communication_free; "" for the
 * full one. */
const char *peal_cuda_variant_suffix(peal_cuda_variant variant);

/* A distinct kernel: tasks whose texts are equal share it. */
typedef struct peal_cuda_entry {
    const char *text[PEAL_CUDA_VARIANTS]; /* all but the name; NULL: there is no such variant */
    const char *signature;                /* of the user's kernel */
    const peal_schedule *schedule;
    const peal_schedule_task *task; /* the first that needs it; of kind KERNEL: the user's */
    bool is_users, is_light;
    unsigned own_points; /* bit i: access i is stored to at points of the tile alone, as the text
                            says (own_points.h) */
    bool is_linked;      /* the kernel is a function of the application's device code */
    bool is_reported;    /* the compiler's message about it */
} peal_cuda_entry;

/* Which entry runs a task. */
typedef struct peal_cuda_task_entry {
    int entry; /* -1: no kernel runs the task */
    int threads[3];
    peal_cuda_elements *elements;
    unsigned device_arguments; /* bit i: argument i reads elements */
} peal_cuda_task_entry;

/* ---- built-in kernels ---- */

/* One grid each, with the same parameter. */
typedef enum peal_cuda_builtin {
    /* Copies pieces, by all blocks of PEAL_CUDA_COPY_THREADS. If it has writes, each block then
     * adds its part to the flags, or the last block to arrive stores them. */
    PEAL_CUDA_BUILTIN_COPY,
    /* One warp: all waits, then all writes. */
    PEAL_CUDA_BUILTIN_SIGNAL,
    /* One thread: adds argument[0].integer to the word at `step`, and stores it to
     * control->steps_done. */
    PEAL_CUDA_BUILTIN_STEP,
    /* One thread: begins anew what depends on the word at view[0] (device/builtin.h). */
    PEAL_CUDA_BUILTIN_BEGIN,
    /* Reads something at list[i].end places, argument[i].integer bytes apart, from base[i] on. */
    PEAL_CUDA_BUILTIN_TOUCH,
    PEAL_CUDA_BUILTIN_COUNT
} peal_cuda_builtin;

/* Its name in all units, "peal_copy". */
const char *peal_cuda_builtin_name(peal_cuda_builtin which);

/* ---- mode fused ---- */

/* Which of an entry's functions the dispatcher of mode fused calls, where it has no shape for the
 * launch: with partials, or without. */
typedef enum peal_cuda_fused_variant {
    PEAL_CUDA_FUSED_FULL,
    PEAL_CUDA_FUSED_NO_REDUCTION,
    PEAL_CUDA_FUSED_VARIANTS
} peal_cuda_fused_variant;
/* The number by which it calls them; built-in kernels have the lowest ones. */
static inline int peal_cuda_fused_number(int entry, peal_cuda_fused_variant variant)
{
    return PEAL_CUDA_BUILTIN_COUNT + PEAL_CUDA_FUSED_VARIANTS * entry + (int)variant;
}

/* What words of --lower change in the persistent kernel's text. */
typedef struct peal_cuda_fused_text {
    const char *device_header; /* the dispatcher's kernel is <peal/DEVICE_HEADER.h> */
} peal_cuda_fused_text;

/* ---- units ---- */

/* What the text of all tasks turns out to need: collected task by task, resolved when units are
 * printed and compiled. */
typedef struct peal_cuda_needs {
    bool counted; /* messages carry as many elements as a run says */
    bool wide;    /* offsets of an array with two or three axes need 64 bits */
    bool linked;  /* functions of the application's device code are called */
} peal_cuda_needs;

/* The units of a plan, and which kernel of them runs which task. */
typedef struct peal_cuda_source {
    peal_arena *arena;
    peal_backend_desc desc; /* a copy, whose ranks are in the arena */
    peal_cuda_fused_text fused_text;
    const peal_graph_data *graph;
    peal_kernel_files files;
    struct peal_cuda_tokens *tokens; /* of these; NULL: their texts are not plain */
    peal_cuda_entry *entry;
    int entry_count;
    const char **expression; /* distinct functions, "TYPE|BODY" */
    int expression_count;
    peal_cuda_task_entry **task; /* by hosted rank and task */
    peal_cuda_needs needs;
    const char *text;               /* the unit of full, no-reduction and self-sending kernels */
    const char *communication_free; /* the unit of those kernels; NULL: there are none */
    const char
        *fused; /* mode fused: its unit up to what peal_cuda_fused_unit_print adds; or NULL */
} peal_cuda_source;

/* Everything is in the arena. What is wrong with the user's files or expressions is reported.
 * fused_text may be NULL: the dispatcher is that of device/dispatch_tiles.h. */
peal_status peal_cuda_source_create(const peal_backend_desc *desc,
                                    const peal_cuda_fused_text *fused_text, peal_arena *arena,
                                    peal_cuda_source **out);

/* What the unit of mode fused has of a recording: only functions that it calls, as compilers take
 * their time with each. */
typedef struct peal_cuda_fused_calls {
    const char *shapes; /* the text of peal_shape_0, 1, ..., and of what they need */
    int shape_count;
    const bool *is_called; /* by peal_cuda_fused_number; NULL: all are */
    int numbers;           /* so many; higher ones are not called */
    int on_sm;             /* blocks that an SM is to hold; 0: PEAL_FUSED_BLOCKS */
    bool is_wide;          /* the list is (fused_launch.h) */
    int turns;             /* of the list (fused_launch.h); 0: one */
} peal_cuda_fused_calls;

/* Whether an architecture (major * 10 + minor) has what that unit, and that of bundles, is written
 * with: cp.async. */
static inline bool peal_cuda_fused_compiles(int architecture)
{
    return architecture >= 80;
}

/* The whole unit of mode fused; calls NULL: without shapes, with all functions. */
const char *peal_cuda_fused_unit_print(const peal_cuda_source *source,
                                       const peal_cuda_fused_calls *calls, peal_arena *arena);

/* The unit of the kernel that runs bundles (device/bundle.h), with the functions that it calls. */
const char *peal_cuda_bundle_unit_print(const peal_cuda_source *source,
                                        const peal_cuda_fused_calls *calls, peal_arena *arena);

/* Names of all PEAL_KERNEL(name) in a text. */
const char **peal_cuda_kernel_names(const char *text, peal_arena *arena, size_t *count);

/* The files of device/ that units include: as <peal/NAME>, and, of the C library, as <NAME>. */
extern const peal_text_file peal_cuda_device_headers[];
extern const peal_text_file peal_cuda_device_libc[];

#endif
