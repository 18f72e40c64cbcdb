/* The `load` and `save` tasks, on host memory: shared by all backends. */
#ifndef PEAL_BASE_ARRAY_FILE_H
#define PEAL_BASE_ARRAY_FILE_H

#include "base/expression.h"
#include "base/saves.h"

enum { PEAL_NO_STEP = -1 };

typedef struct peal_array_file {
    const peal_schedule *schedule;
    const peal_schedule_task *task; /* LOAD or SAVE */
    unsigned char *first;           /* host address of the array's first stored point */
    peal_scope scope;               /* for the names in the file's name */
    int64_t step;                   /* in which it is; PEAL_NO_STEP: of no step, in setup, finish */
    peal_saves *saves;              /* of the plan; may be NULL to load */
    bool has_thread;                /* the rank saves on a thread of its own */
    bool allow_outside;             /* of the spec's folder */
    peal_diagnostics *diagnostics;
} peal_array_file;

/* Of the op at `index`, when the outermost counter is `counter`. */
static inline int64_t peal_array_file_step(const peal_schedule *schedule, int index,
                                           int64_t counter)
{
    bool in_step = index >= schedule->step.first && index < schedule->step.end;

    return in_step ? counter : PEAL_NO_STEP;
}

/* The folder that the graph's data files must not leave; NULL: they may lie anywhere, as those of a
 * graph that an application makes itself. */
const char *peal_array_file_root(const peal_graph_data *graph, bool allow_outside);
/* This rank's own points from or to the task's file. PEAL_STATUS_ENVIRONMENT: it cannot be opened,
 * read, created or written; PEAL_STATUS_SPEC: its shape or type is another, or it is outside the
 * spec's folder. A file that was there stays as it was until all ranks have saved. */
peal_status peal_array_file_load(const peal_array_file *request);
peal_status peal_array_file_save(const peal_array_file *request);

#endif
