/* Prints how a trampoline calls the user's kernel. */
#ifndef PEAL_CUDA_CALL_SOURCE_H
#define PEAL_CUDA_CALL_SOURCE_H

#include <peal/plugin/schedule.h>

#include <stdbool.h>
#include <stdio.h>

/* With partials (FULL), or without (BARE); OWN: of launches whose blocks send all that is sent
 * themselves; PLAIN: for the unit of plain kernels; SHAPED: of a box that the compiler knows, in
 * mode fused. */
typedef enum peal_cuda_trampoline {
    PEAL_CUDA_TRAMPOLINE_FULL,
    PEAL_CUDA_TRAMPOLINE_NO_REDUCTION,
    PEAL_CUDA_TRAMPOLINE_SELF_SENDING_FULL,
    PEAL_CUDA_TRAMPOLINE_SELF_SENDING_NO_REDUCTION,
    PEAL_CUDA_TRAMPOLINE_COMMUNICATION_FREE_FULL,
    PEAL_CUDA_TRAMPOLINE_COMMUNICATION_FREE_NO_REDUCTION,
    PEAL_CUDA_TRAMPOLINE_SHAPED_FULL,
    PEAL_CUDA_TRAMPOLINE_SHAPED_NO_REDUCTION
} peal_cuda_trampoline;

static inline bool peal_cuda_trampoline_is_communication_free(peal_cuda_trampoline kind)
{
    return kind == PEAL_CUDA_TRAMPOLINE_COMMUNICATION_FREE_FULL ||
           kind == PEAL_CUDA_TRAMPOLINE_COMMUNICATION_FREE_NO_REDUCTION;
}

static inline bool peal_cuda_trampoline_is_self_sending(peal_cuda_trampoline kind)
{
    return kind == PEAL_CUDA_TRAMPOLINE_SELF_SENDING_FULL ||
           kind == PEAL_CUDA_TRAMPOLINE_SELF_SENDING_NO_REDUCTION;
}

static inline bool peal_cuda_trampoline_is_shaped(peal_cuda_trampoline kind)
{
    return kind >= PEAL_CUDA_TRAMPOLINE_SHAPED_FULL;
}

/* Whether views begin at the tile, and whole tiles are run as such only where they are aligned: not
 * of kernels that may write partials, whose threads have the same points in all units. */
static inline bool peal_cuda_trampoline_moves(peal_cuda_trampoline kind,
                                              const peal_schedule_task *task)
{
    return kind >= PEAL_CUDA_TRAMPOLINE_COMMUNICATION_FREE_FULL || task->reduction_count == 0;
}

static inline bool peal_cuda_trampoline_has_partials(peal_cuda_trampoline kind)
{
    return kind == PEAL_CUDA_TRAMPOLINE_FULL || kind == PEAL_CUDA_TRAMPOLINE_SELF_SENDING_FULL ||
           kind == PEAL_CUDA_TRAMPOLINE_COMMUNICATION_FREE_FULL ||
           kind == PEAL_CUDA_TRAMPOLINE_SHAPED_FULL;
}

int peal_cuda_task_axes(const peal_schedule_task *task);

/* The kind of whole tiles that a task of two or three axes has (device/launch.h); 0: of others. */
int peal_cuda_task_whole(const peal_schedule_task *task);

/* A thread has few registers' worth of points in a whole tile. */
bool peal_cuda_task_is_light(const peal_schedule *schedule, const peal_schedule_task *task);

/* A block's shape is a hint for tiles: kernels number the threads of any shape through (PEAL_FOR_nD
 * in device/kernel.h). */
void peal_cuda_task_shape(const peal_schedule_task *task, int threads[3]);

/* True: in plain kernels the view points to the tile's first column, and offsets begin at a point
 * of the tile (device/whole.h). */
bool peal_cuda_access_is_moved(const peal_schedule *schedule, const peal_task_access *access);

/* If not, all sums of such an offset's terms are less than 2^31, whatever their signs. */
bool peal_cuda_offsets_are_wide(const peal_schedule *schedule);

/* What tiles of a shaped box read of an access, beside the tile along each axis, is staged unless
 * the box says otherwise (device/staged.h); false: it cannot be. */
bool peal_cuda_access_stages(const peal_schedule *schedule, const peal_schedule_task *task,
                             int access, int64_t *low, int64_t *high);
/* Statements of the loop over a shaped box's tiles: before it, and around the call. */
void peal_cuda_stage_print_begin(const peal_schedule *schedule, const peal_schedule_task *task,
                                 FILE *out);
void peal_cuda_stage_print_turn(const peal_schedule *schedule, const peal_schedule_task *task,
                                FILE *out);
void peal_cuda_stage_print_end(const peal_schedule *schedule, const peal_schedule_task *task,
                               FILE *out);

/* A call alone would convert an integer to a double, or cut a real number: the kernel's type is
 * compared as well. Arrays are numbered, so that tasks which differ by their names have the same
 * text, and share their functions. */
void peal_cuda_check_print(const peal_schedule_task *task, const char *signature, FILE *out);

/* Between what enters the tile and what follows its run. */
/* linked: the kernel is a function that was compiled elsewhere (device/linked.h): it gets views as
 * they are. */
void peal_cuda_call_print(const peal_schedule *schedule, const peal_schedule_task *task,
                          peal_cuda_trampoline kind, bool linked, FILE *out);

/* What a launch takes along (device/reduce.h): a rider instead of a tile (the block after what is
 * printed is the tile's), and, once all tiles are done, the folds. */
void peal_cuda_piggyback_print(const peal_schedule *schedule, const peal_schedule_task *task,
                               FILE *out);
void peal_cuda_folds_print(const peal_schedule *schedule, const peal_schedule_task *task,
                           FILE *out);

#endif
