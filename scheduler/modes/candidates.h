/* Ways to run a graph of which one may be the fastest: what `peal tune` measures, and what mode
 * auto chooses among. Pure: nothing is measured or predicted here.
 *
 * Modes are in the order of simplicity: sync, stream, graph, fused. `serial` is no candidate: it is
 * what the others are compared with, and has all ranks in process 0. */
#ifndef PEAL_SCHEDULER_MODES_CANDIDATES_H
#define PEAL_SCHEDULER_MODES_CANDIDATES_H

#include <peal/plugin/graph.h>
#include <peal/plugin/machine.h>

#include <stddef.h>

enum {
    PEAL_LOWERING_BYTES = 128,
    PEAL_DROPPED_BYTES = 160,
    PEAL_LABEL_BYTES = 192,
    PEAL_MOST_CANDIDATES = 64
};

typedef struct peal_candidate {
    peal_mode mode;
    int threads;                        /* of a process; 0: as many as there are */
    char lowering[PEAL_LOWERING_BYTES]; /* words of `--lower`; "": none is forced */
    double predicted_s;                 /* a step; 0: nobody knows */
    char dropped[PEAL_DROPPED_BYTES];   /* why it is not looked at any further; "": it is */
} peal_candidate;

typedef struct peal_candidates {
    peal_candidate item[PEAL_MOST_CANDIDATES];
    int count;
} peal_candidates;

typedef struct peal_candidates_desc {
    const peal_graph_data *graph;
    const peal_machine *machine; /* as a plan has it: ranks, processes, workers, devices */
    bool applicable[PEAL_MODE_COUNT];
    bool modes_only;      /* nothing is forced: one a mode */
    bool threads_given;   /* other numbers are not looked at */
    const char *lowering; /* words that all of them have, "" or NULL: none */
} peal_candidates_desc;

/* The modes that are applicable, as they are and with each choice forced that may make a difference
 * to this graph on this machine. */
void peal_candidates_list(const peal_candidates_desc *desc, peal_candidates *out);

/* Drops those that are predicted to take more than `factor` times the shortest prediction. Returns
 * how many; those without a prediction stay. */
int peal_candidates_prune(peal_candidates *set, double factor);

/* What was measured alone, by item (0: was not): for each mode of which two forced choices gained
 * at least `gain` (as a fraction) over none, adds what forces all of these at once, of several
 * values of a word the best. Returns how many were added. */
int peal_candidates_combine(peal_candidates *set, const double *seconds, double gain);

/* By the same: drops what gained less than `gain` over its mode without forced choices, where both
 * were measured. Returns how many. */
int peal_candidates_drop_idle(peal_candidates *set, const double *seconds, double gain);

/* By which a tie is decided: sync, stream, graph, fused; in a mode what forces less. */
bool peal_candidate_is_simpler(const peal_candidate *a, const peal_candidate *b);

/* "graph signal=memop,lanes=2", "fused threads=1". */
void peal_candidate_label(const peal_candidate *candidate, char *text, size_t bytes);

#endif
