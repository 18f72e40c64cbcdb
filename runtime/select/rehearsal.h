/* Whether the plan of a mode can be made, found without a device: the backend makes it for one that
 * is not there, for the ranks of each process, and for one of those that are alike. */
#ifndef PEAL_RUNTIME_SELECT_REHEARSAL_H
#define PEAL_RUNTIME_SELECT_REHEARSAL_H

#include "base/diagnostic.h"

#include <peal/plugin/backend.h>

typedef struct peal_rehearsal_desc {
    size_t size; /* sizeof(peal_rehearsal_desc) */
    const peal_backend_ops *backend;
    const peal_graph_data *graph;
    /* Ranks, processes, workers, traits, and the path between processes; as the plan that it is
     * about has them. */
    const peal_machine *machine;
    peal_mode mode;       /* that can run the graph (peal_graph_refuses, the backend's refuses) */
    const char *lowering; /* as in peal_backend_desc */
    bool allow_outside;
    peal_diagnostics
        *diagnostics; /* gets what is wrong with the graph, and why there is no memory */
} peal_rehearsal_desc;

enum { PEAL_REHEARSED = 64 }; /* so many processes, each unlike the others, are tried out */
/* Of more ranks it is not asked what is saved: mode auto does so in each start. */
enum { PEAL_REHEARSED_SAVINGS = 16 };

typedef struct peal_rehearsal {
    bool refused;
    int process; /* refused: the first one that is */
    peal_code code;
    char text[240];    /* refused: why, without the mode's name */
    char change[160];  /* what would help; "": nothing is known */
    double saved;      /* as in peal_backend_rehearsal, of the process that saves least; of more
                          than PEAL_REHEARSED_SAVINGS ranks 0 */
    char note[240];    /* the same, of the first */
    int first_unknown; /* ranks from this one on were not tried out; the machine's ranks: all were
                        */
} peal_rehearsal;

/* A plan that cannot be made is no failure: *out says so. Errors that have nothing to do with the
 * mode, such as of kernels that are missing, are left to those who build them. */
peal_status peal_rehearse(const peal_rehearsal_desc *desc, peal_rehearsal *out);

#endif
