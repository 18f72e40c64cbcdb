/* What the kernel of a task looks like: block, whole tiles, offsets, staging. Whoever lowers a
 * launch of the kernel asks here, as does the text of it. */
#ifndef PEAL_CUDA_TASK_TRAITS_H
#define PEAL_CUDA_TASK_TRAITS_H

#include <peal/plugin/schedule.h>

#include <stdbool.h>

enum {
    PEAL_CUDA_TASK_THREADS = 256 /* of a block of a task with exact tiles; reductions count on it */
};

/* Axes of the task's tiles. */
int peal_cuda_task_axes(const peal_schedule_task *task);

/* The kind of whole tiles that a task of two or three axes has (device/launch.h); 0: it has none.
 */
int peal_cuda_task_whole(const peal_schedule_task *task);

/* Whether a thread has few registers' worth of points in a whole tile. */
bool peal_cuda_task_is_light(const peal_schedule *schedule, const peal_schedule_task *task);

/* A block's shape is a hint for tiles: kernels number the threads of any shape through (PEAL_FOR_nD
 * in device/kernel.h). */
void peal_cuda_task_shape(const peal_schedule_task *task, int threads[3]);

/* Whether, in communication-free and shaped kernels, the access's view points to the tile's first
 * column and offsets begin at a point of the tile (device/whole.h). */
bool peal_cuda_access_is_moved(const peal_schedule *schedule, const peal_task_access *access);

/* If not, all sums of such an offset's terms are less than 2^31, whatever their signs. */
bool peal_cuda_offsets_are_wide(const peal_schedule *schedule);

/* Whether tiles of a shaped box can stage what they read of an access (device/staged.h), and then
 * how far that reaches beside the tile along each axis. The box says whether they do. */
bool peal_cuda_access_stages(const peal_schedule *schedule, const peal_schedule_task *task,
                             int access, int64_t *low, int64_t *high);

/* How steps of a task make a chain: each reads what the step before wrote, and writes what it read
 * itself, since a swap follows. `read` and `written` are indexes of accesses; low and high: how far
 * one reads around a point. rows: points that a thread has under way together in a deep round. */
typedef struct peal_cuda_chain {
    int read, written, rows;
    int64_t low[PEAL_AXES], high[PEAL_AXES];
} peal_cuda_chain;

/* Whether a block may run several steps of the task one after the other (device/deep.h), if they
 * follow each other: the task writes a field pointwise and reads a field that may be swapped with
 * it, and other fields, around each point. */
bool peal_cuda_task_chains(const peal_schedule *schedule, const peal_schedule_task *task,
                           peal_cuda_chain *out);

#endif
