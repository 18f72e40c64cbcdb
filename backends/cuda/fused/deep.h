/* Between the files of deep rounds. */
#ifndef PEAL_CUDA_FUSED_DEEP_H
#define PEAL_CUDA_FUSED_DEEP_H

#include "backends/cuda/fused/fused.h"

/* Steps [begin, end) of the recording that may be rounds, but for the first `ahead` and the last
 * `behind`, which are plain. */
typedef struct peal_cuda_deep_run {
    int begin, end, ahead, behind;
    const peal_cuda_deep *deep;
} peal_cuda_deep_run;

/* How many steps the next round has, of at most `most` if `left` are left: an odd number; 0: they
 * are plain steps. */
static inline int peal_cuda_deep_round(int most, int left)
{
    int steps = left < most ? left - (left % 2 == 0) : most;

    return steps >= PEAL_CUDA_LEAST_DEEP ? steps : 0;
}

/* deep.c: the work item of a step of a run that is its task's. */
int peal_cuda_deep_kernel(const peal_cuda_fused *fused, int step);
/* The first of what it touches by an access. */
const peal_cuda_touch *peal_cuda_deep_touch(const peal_cuda_work_item *item, int access);

/* deep_section.c: appends the section, of so many recorded steps, if there is room for it. */
void peal_cuda_deep_add_section(const peal_cuda_plan *plan, peal_cuda_fused *fused,
                                const peal_cuda_deep_run *runs, int count, int steps);

#endif
