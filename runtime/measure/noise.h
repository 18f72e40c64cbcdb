/* Times that are differences of two measured ones, where the difference is less than their noise.
 */
#ifndef PEAL_RUNTIME_MEASURE_NOISE_H
#define PEAL_RUNTIME_MEASURE_NOISE_H

#include <stdbool.h>

/* What an op adds to the time of a step (seconds). */
typedef struct peal_addition {
    double *adds;    /* as it was measured, at least 0 */
    double usual;    /* by the machine's times */
    double step_s;   /* that it ends */
    bool takes_time; /* what adds nothing was not seen: a kernel; a message may hide */
} peal_addition;

/* Among hundreds of ops, one alone adds less than the noise of two times, and would come out as
 * nothing, or as a multiple. So of the ops of which no more is expected, a few that follow each
 * other are taken together, as many as add more than the noise. Their sum stays. Each has its usual
 * time of it, and what is more goes to where it was seen. So has a kernel that added nothing, with
 * the ops beside it. */
void peal_share_noise(const peal_addition *list, int count);

#endif
