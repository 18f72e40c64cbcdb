/* The user's kernel files and what tasks want of them: what every backend that has kernels compiled
 * needs. */
#ifndef PEAL_BASE_KERNEL_SOURCE_H
#define PEAL_BASE_KERNEL_SOURCE_H

#include "base/arena.h"
#include "base/diagnostic.h"

#include <peal/plugin/schedule.h>

#include <stdio.h>

typedef struct peal_kernel_file {
    const char *path, *text;
} peal_kernel_file;

/* Code for a device, which only its backend has a use for. */
typedef struct peal_device_code {
    const char *path, *data;
    size_t bytes;
} peal_device_code;

typedef struct peal_kernel_files {
    peal_kernel_file *file;
    int count;
    peal_device_code *code; /* files named .fatbin, .ltoir, .cubin or .o (include/peal/block.h) */
    int code_count;
    const char **folder; /* of each file: where #include "..." looks */
    const char *root;    /* that no file may lie outside of; NULL: it may */
    peal_source source;  /* where the graph names them */
} peal_kernel_files;

/* Whether a kernel of the spec's files runs the task. */
bool peal_kernel_is_needed(const peal_schedule_task *task);
/* The name of a task's parameter: its array's, or `u_out` where it is the second one of `u`. */
enum { PEAL_PARAMETER_BYTES = 160 };
void peal_kernel_parameter(const peal_schedule *schedule, const peal_schedule_task *task, int view,
                           char name[PEAL_PARAMETER_BYTES]);
/* "PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, a), long argument_1)": what the user should
 * have written. */
const char *peal_kernel_signature(peal_arena *arena, const peal_schedule *schedule,
                                  const peal_schedule_task *task);
/* The parameters behind `peal_tile t` of a signature: ", PEAL_READ(float, a))". */
const char *peal_kernel_parameters(const char *signature);

/* Whether a file that `from` has included may be run: it lies in root, unless that is NULL
 * (PEAL_E_INCLUDED_FILE_OUTSIDE), and nobody else can change it (PEAL_E_KERNEL_FILE_NOT_TRUSTED;
 * also if it is gone: then nobody can tell). */
peal_status peal_kernel_file_check(const char *root, const char *path, const char *from,
                                   peal_source source, peal_diagnostics *diagnostics);
/* Reads the graph's kernel files, which must be as those that they include
 * (PEAL_E_KERNEL_FILE_UNREADABLE, PEAL_E_KERNEL_FILE_OUTSIDE, PEAL_E_KERNEL_FILE_NOT_TRUSTED,
 * PEAL_E_SYSTEM_CALL_FAILED). */
peal_status peal_kernel_files_read(const peal_graph_data *graph, bool allow_outside,
                                   peal_arena *arena, peal_diagnostics *diagnostics,
                                   peal_kernel_files *out);
/* included.c: the files that the files include, and that those include, as far as they lie in the
 * folders; returns their number. *known: false if an include is computed, so that there may be
 * more. -1: one could not be read for want of means (errno). */
int peal_kernel_files_find(const peal_kernel_files *files, peal_arena *arena,
                           const peal_kernel_file **out, bool *known);
/* The same as a text: everything that the files include, and what that includes, as far as it lies
 * in the folders: names and contents, one after the other, in the arena. NULL: an include is
 * computed, so that nobody can tell (nothing may be kept then). */
const char *peal_kernel_files_included(const peal_kernel_files *files, peal_arena *arena);
/* Whether all that they include may be run. A computed include may not, unless all may. */
peal_status peal_kernel_files_check_included(const peal_kernel_files *files, peal_arena *arena,
                                             peal_diagnostics *diagnostics);
/* Prints a #line directive, then the text of the file. */
void peal_kernel_file_print(const peal_kernel_file *file, FILE *out);

/* Where the files define a kernel; `otherwise` if they don't. */
peal_source peal_kernel_place(const peal_kernel_files *files, const char *kernel,
                              peal_source otherwise);

/* PEAL_E_NO_SUCH_KERNEL: no file defines the task's kernel; names: those that are there. */
peal_status peal_kernel_report_missing(peal_diagnostics *diagnostics, peal_arena *arena,
                                       const peal_kernel_files *files,
                                       const peal_schedule_task *task, const char *signature,
                                       const char *const *names, size_t count);
/* The same, for a graph that names no file at all. */
peal_status peal_kernel_report_no_files(peal_diagnostics *diagnostics,
                                        const peal_schedule_task *task);
/* PEAL_E_KERNEL_SIGNATURE_MISMATCH: the kernel does not fit its task. */
peal_status peal_kernel_report_misfit(peal_diagnostics *diagnostics, peal_arena *arena,
                                      const peal_kernel_files *files,
                                      const peal_schedule_task *task, const char *signature,
                                      const char *message);

#endif
