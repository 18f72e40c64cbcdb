/* What a verification needs to know of a run. */
#ifndef PEAL_RUNTIME_VERIFY_ORACLE_H
#define PEAL_RUNTIME_VERIFY_ORACLE_H

#include "base/redirect.h"
#include "runtime/verify/likeness.h"
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
    peal_machine machine;    /* of the serial run: one process */
    bool on_other_ranks;     /* than the run's */
    peal_likeness *likeness; /* process 0, of an oracle on other ranks: what is compared how */
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

/* A box of an array, densely packed, x fastest. */
typedef struct peal_packed {
    peal_box box;
    unsigned char *data; /* malloc'ed; NULL: it has not come */
} peal_packed;

/* Collective. *packed: in process 0 the array of all ranks of the run, by rank; else NULL. */
peal_status peal_oracle_gather(peal_plan *plan, int array, peal_extent what, peal_packed **packed);
void peal_packed_free(peal_packed *packed, int ranks);

#endif
