/* Tasks: what a rank computes, cut into tiles, and what each tile touches. */
#ifndef PEAL_SCHEDULER_TASKS_TASKS_H
#define PEAL_SCHEDULER_TASKS_TASKS_H

#include "scheduler/geometry/geometry.h"

peal_status make_tasks(const common_input *c, const pass_context *pass, rank_view *v);
/* new_task.c: its index. */
int add_task(const common_input *c, const pass_context *pass, rank_view *v, const peal_statement *s,
             peal_task_kind kind);
/* kernel_tasks.c, reduction_tasks.c: those of one statement. */
peal_status make_kernel_task(const common_input *c, const pass_context *pass, rank_view *v,
                             const peal_statement *s);
peal_status make_reduction(const common_input *c, const pass_context *pass, rank_view *v,
                           const peal_statement *s);

/* ---- reaches.c ---- */

/* The reaches of one access; their number in *count. */
peal_status reaches_of(const common_input *c, const pass_context *pass, const rank_view *v,
                       const peal_task_statement *task, int box_axes, const peal_access *a,
                       peal_reach reach[PEAL_AXES], int *count);
/* Tiles must not share a point of a coarser array that the task touches: their extents are
 * multiples of these. */
void tile_multiples(const common_input *c, const rank_view *v, const peal_task_statement *task,
                    int64_t multiple[PEAL_AXES]);

/* ---- collisions.c ---- */

/* PEAL_E_TILES_COLLIDE if tiles of the task, however it is cut where the spec doesn't say, touch
 * what others write through access a. */
peal_status check_collisions(const common_input *c, const pass_context *pass, const rank_view *v,
                             const peal_task_statement *task, const peal_schedule_task *t,
                             const peal_access *a, const peal_reach *reach, int count);
/* The same if any tile writes what any tile, itself included, reads of an array that stands twice
 * in the task. */
peal_status check_overlaps(const common_input *c, const pass_context *pass, const rank_view *v,
                           const peal_task_statement *task, const peal_schedule_task *t);
/* How many tiles there are; where the spec doesn't say how many there may be. */
int64_t tiles_asked(const common_input *c, const pass_context *pass, const rank_view *v,
                    const peal_task_statement *task, const peal_schedule_task *t);
/* Whether the task may be cut between any two points. */
bool task_is_divisible(const peal_task_statement *task, const peal_schedule_task *t);

/* ---- tiling.c ---- */

void choose_tiling(const common_input *c, const peal_task_statement *task,
                   const int64_t tile[PEAL_AXES], const int64_t multiple[PEAL_AXES],
                   peal_tiling *tiling);
/* Whether nothing but speed depends on the tiles of a task. */
bool tiles_are_free(const peal_task_statement *task);

/* ---- live_reductions.c ---- */

/* The condition under which somebody reads what a task reduces; NULL: always. */
const peal_expr *reduction_needed(const common_input *c, const pass_context *pass,
                                  const peal_statement *s);
/* Whether the loop does nothing with an array but reduce it over ranks and print it: then it need
 * not wait for it; and whether all that a reduction over ranks gives is so. */
bool array_is_reported(const common_input *c, int array);
bool reduction_is_reported(const common_input *c, const peal_statement *s);
/* Whether a statement uses the value of an array in any way. */
bool statement_reads(const peal_statement *s, int array);
/* Calls visit for each array whose value a statement reads in an expression (args, set, until,
 * when, print). */
void statement_elements(const peal_statement *s, void (*visit)(void *user, int array), void *user);

#endif
