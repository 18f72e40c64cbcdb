/* The boxes that processes own, as a grid of ranks: nothing but arithmetic. */
#ifndef PEAL_RUNTIME_EXCHANGE_DECOMPOSE_H
#define PEAL_RUNTIME_EXCHANGE_DECOMPOSE_H

#include <peal/status.h>
#include <peal/types.h>

enum { PEAL_MISFIT_BYTES = 240 };

typedef struct peal_decomposition {
    int64_t lo[PEAL_AXES], extent[PEAL_AXES]; /* of the whole grid, in the caller's coordinates */
    int dims[PEAL_RANK_AXES];
    int64_t *cut[PEAL_RANK_AXES]; /* dims + 1 points, from 0: where the parts along an axis begin */
    int *process_of;              /* by rank = x + dims[0] * (y + dims[1] * z) */
} peal_decomposition;

/* What does not fit, and what was meant, most likely. */
typedef struct peal_misfit {
    char text[PEAL_MISFIT_BYTES];
    const char *hint;
} peal_misfit;

/* Ranks and cuts of the grid that the boxes make up, part[p] being what process p owns, in the
 * caller's coordinates: along each of the first three axes the whole
 * grid is cut at the same points, and each rank is one process. PEAL_STATUS_USAGE: they make up
 * none, and *misfit names two processes or a point; PEAL_STATUS_ENVIRONMENT: no memory. */
peal_status peal_decompose(const peal_box *part, int processes, int axis_count,
                           peal_decomposition *out, peal_misfit *misfit);
void peal_decomposition_free(peal_decomposition *decomposition);

#endif
