/* A verification on another number of ranks than the run's: for oracle.c and runtime/verify.c. */
#ifndef PEAL_RUNTIME_VERIFY_OTHER_RANKS_H
#define PEAL_RUNTIME_VERIFY_OTHER_RANKS_H

#include "runtime/verify/oracle.h"

/* In process 0, before the run. status: whether the graph is sound on these ranks; if not, says who
 * asked. PEAL_E_NOT_ON_OTHER_RANKS: it computes something else there by its declarations. */
peal_status peal_other_ranks_admit(const peal_plan *plan, const peal_oracle *oracle,
                                   peal_status status);
/* The stored points of an array of serial rank `rank` (malloc'ed), those that nobody owns zero; of
 * what the ranks of the run own. NULL: no memory. */
unsigned char *peal_other_ranks_part(const peal_plan *plan, const peal_oracle *oracle, int rank,
                                     int array, const peal_packed *packed);
/* What the points of an array have shown. */
typedef struct peal_tally {
    bool defined;              /* there is something to compare */
    int64_t points, differing; /* that were compared; of these */
    double largest;            /* of serial's finite values, where rounding counts */
    double difference;         /* the largest; infinite: no rounding explains it */
    int rank;                  /* of the run, where that is; of equal bits: the first difference */
    int64_t at[PEAL_AXES];
    unsigned char run[8], serial[8]; /* the values there */
} peal_tally;

/* An array of the run, by rank, with that of the serial run. PEAL_E_RANKS_DIFFER: some of what has
 * the same bits on all ranks has not. */
peal_status peal_other_ranks_compare(const peal_plan *plan, const peal_oracle *oracle, int array,
                                     const peal_packed *packed, const peal_binding *serial,
                                     const peal_backend_plan *run, peal_tally *tally);
/* Once all arrays are known (tally: by array). PEAL_E_RANKS_DIFFER: rounding does not explain a
 * difference, by the largest value of all that is rounded, since an array may be a small rest of
 * large ones. The verdict gets what it explains, and what was left out. */
peal_status peal_other_ranks_judge(const peal_plan *plan, const peal_oracle *oracle,
                                   const peal_tally *tally, peal_ranks_verdict *verdict);
/* Of a value whose sums were rounded otherwise: the largest difference that is allowed where the
 * largest value is 1. */
double peal_rounding_of(peal_type type);

#endif
