/* What a verification needs to know of a run. */
#ifndef PEAL_RUNTIME_VERIFY_ORACLE_H
#define PEAL_RUNTIME_VERIFY_ORACLE_H

#include "base/redirect.h"
#include "runtime/verify/verify.h"

/* What was started `times` times in a row. */
typedef struct peal_start_run {
    int64_t steps, times;
    bool finish;
} peal_start_run;

/* A schedule whose lent memory is a copy. */
typedef struct peal_serial_rank {
    peal_schedule schedule;
    peal_schedule_array *array;
} peal_serial_rank;

struct peal_oracle {
    peal_machine machine;
    peal_compilation *compilation; /* process 0 */
    peal_serial_rank *serial;      /* process 0: by rank */
    unsigned char **lent;          /* process 0: by rank * arrays + array; initial contents */
    int ranks, arrays;
    peal_start_run *start;
    int start_count, start_room;
    peal_redirect *redirect; /* process 0: where serial saves; NULL: nothing is saved */
    peal_saves *saves;       /* while serial runs */
};

/* Which part of an array is gathered. */
typedef enum peal_extent { PEAL_OWN_POINTS, PEAL_STORED_POINTS } peal_extent;

/* Collective. In process 0 packed[r] becomes the array of rank r (malloc'ed). */
peal_status peal_oracle_gather(peal_plan *plan, int array, peal_extent what,
                               unsigned char **packed);

#endif
