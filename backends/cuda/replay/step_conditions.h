/* Conditions on the step that a recording must not meet, or must hold in full. */
#ifndef PEAL_CUDA_STEP_CONDITIONS_H
#define PEAL_CUDA_STEP_CONDITIONS_H

#include "backends/cuda/lower/plan.h"
#include "base/step_pattern.h"

/* An atom of a condition; or a value, such as a loop's length, that is always kept; or when a file
 * is read or written, which is always rare: whenever all of `file` hold. */
typedef struct peal_cuda_step_condition {
    peal_cuda_rank *rank;
    peal_step_atom atom;
    const peal_expr **file; /* NULL: it is no file's */
    peal_step_atom *part;   /* the atoms of `file` */
    int file_count, file_room, part_count, part_room;
    int64_t *counter; /* room for the counters of its rank, which are 0 */
    bool is_rare;
    bool usual;       /* rare: what it is in the steps that replays cover */
    int64_t from, to; /* rare: it is as usual in the steps [from, to) */
    bool is_event;    /* and not in `to` */
} peal_cuda_step_condition;

/* Those of all ranks of the process. */
typedef struct peal_cuda_step_conditions {
    peal_cuda_step_condition *of;
    int count, room;
} peal_cuda_step_conditions;

/* Lists them. False: the mode cannot run the plan, *reason says why. *reason must be NULL. */
bool peal_cuda_step_conditions_list(peal_cuda_plan *plan, peal_cuda_step_conditions *out,
                                    const char **reason);
/* Makes those rare whose period is above `most` or that have none, and those of files, and looks at
 * the steps before `end` for what is usual. False: such a one depends on more than the step. */
bool peal_cuda_step_conditions_keep(peal_cuda_step_conditions *of, int64_t most, int64_t end);
/* The first step from `step` on, before `end`, in which a rare condition is not as usual; else
 * `end`. */
int64_t peal_cuda_step_conditions_next(peal_cuda_step_conditions *of, int64_t step, int64_t end);
/* Which rare conditions hold in a step, by condition. */
void peal_cuda_step_conditions_truth(const peal_cuda_step_conditions *of, int64_t step, bool *out);
/* Whether a file may be read or written in a step. */
bool peal_cuda_step_conditions_moves_file(const peal_cuda_step_conditions *of, int64_t step);
/* Whether the kept conditions of a rank are as before after so many steps. */
bool peal_cuda_step_conditions_repeat(const peal_cuda_step_conditions *of,
                                      const peal_cuda_rank *rank, int64_t steps);

#endif
