/* Run-time conditions that the device alone looks at: in mode graph, whose nodes are what they were
 * when they were captured.
 *
 * Each such `when`, and each `until` of an inner loop, has a word in device memory that its verdict
 * is written to; all launches that hang on it look at the word and, if it says so, do nothing but
 * exchange their flags. So messages count alike whatever was decided, and the constants in the
 * nodes hold at every replay. The walk goes through everything that may be done: into every
 * condition, through every iteration that a loop may have. Single steps between replays are done
 * the same way. */
#ifndef PEAL_CUDA_PREDICATE_H
#define PEAL_CUDA_PREDICATE_H

#include "backends/cuda/lower/plan.h"

typedef struct peal_cuda_predicate {
    bool held;        /* by the device; else the host looks at the verdict */
    int outer;        /* the decision that it hangs on; -1: none */
    int loop;         /* of the walk, whose `until` it is; -1: a `when` */
    int loop_op;      /* that loop's LOOP; -1 */
    uint64_t entered; /* the instance of the LOOP for which the word has been set */
    int ring, lag;    /* lag > 0: lag + 1 verdicts, from this word on */
    bool swaps;       /* in its region */
    int *binding;     /* where the loop may end, while a period is looked for */
    bool uneven;      /* where it may end differs in what arrays name */
} peal_cuda_predicate;

struct peal_cuda_predicates {
    peal_cuda_predicate *decision; /* by decision */
    int word_count;                /* from `words` on: one a decision, then rings */
    CUdeviceptr words;
    bool any; /* something is held */
};

/* Whether something in the step is decided at run time, but for the end of the outermost loop. */
bool peal_cuda_predicates_are_needed(const peal_schedule *schedule);
/* Sets rank->predicates and the regions of its ops. */
void peal_cuda_predicates_bind(peal_cuda_rank *rank);
/* Whether the device can decide all of it; else why not. */
bool peal_cuda_predicates_hold(const peal_cuda_rank *rank, const char **reason);
/* The walk begins anew somewhere else. */
void peal_cuda_predicates_restart(peal_cuda_rank *rank);
/* The word by which launches of an op are skipped; 0: none. */
CUdeviceptr peal_cuda_skip_word(const peal_cuda_rank *rank, int index);
/* Before an op is put onto its lane: what was begun under another condition is launched, and loops
 * that it is the first op of begin anew. */
bool peal_cuda_predicate_begin(peal_cuda_rank *rank, int index);
/* One launch: the word is 0, or what `outer` (0: none) says; `count` words of a ring are 0. */
bool peal_cuda_begin_word(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                          CUdeviceptr outer, CUdeviceptr ring, int count);
/* Where a DECIDE stores its verdict, and what it looks at. */
void peal_cuda_predicate_decide(peal_cuda_rank *rank, int index, const peal_walk_frame *frame,
                                peal_launch *launch);
/* What the walk takes the verdict for. False: the host looks at it. */
bool peal_cuda_predicate_verdict(peal_cuda_rank *rank, int slot, bool *verdict);
/* The host looks for verdict `instance`: that of which instance says so. */
uint64_t peal_cuda_predicate_instance(const peal_cuda_rank *rank, int slot, uint64_t instance);

#endif
