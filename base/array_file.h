/* The `load` and `save` tasks, on host memory: shared by all backends. */
#ifndef PEAL_BASE_ARRAY_FILE_H
#define PEAL_BASE_ARRAY_FILE_H

#include "base/expression.h"

typedef struct peal_array_file {
    const peal_schedule *schedule;
    const peal_schedule_task *task; /* LOAD or SAVE */
    unsigned char *first;           /* host address of the array's first stored point */
    peal_scope scope;               /* for the names in the file's name */
    peal_diagnostics *diagnostics;
} peal_array_file;

/* This rank's own points from or to the task's file. PEAL_STATUS_ENVIRONMENT: it cannot be opened,
 * read, created or written; PEAL_STATUS_SPEC: its shape or type is another. */
peal_status peal_array_file_load(const peal_array_file *request);
peal_status peal_array_file_save(const peal_array_file *request);

#endif
