/* Predicates: run-time conditions that the device decides without the host. Modes that record
 * iterations need them, because a recorded launch cannot be left out of a replay.
 *
 * Each `when` that reads a buffer, and each `until` of an inner loop, has a word in device memory,
 * its predicate. The DECIDE task writes its verdict there. Every launch in the condition's region
 * reads the word first; if it says "skip", the launch does nothing but write its flags. So the
 * message numbers are the same whatever was decided, and the constants in the recorded launches
 * hold in every replay.
 *
 * The walk passes everything that may run: the inside of every condition, and all iterations that a
 * loop may have. Single steps between replays are emitted in the same way. */
#ifndef PEAL_CUDA_PREDICATE_H
#define PEAL_CUDA_PREDICATE_H

#include "backends/cuda/lower/plan.h"

typedef struct peal_cuda_predicate {
    bool on_device;   /* the device decides; else the host reads the verdict */
    int outer;        /* the predicate whose region it lies in; -1: none */
    int loop;         /* the walk's loop, if it is an `until`; -1: it is a `when` */
    int loop_op;      /* that loop's LOOP op; -1 */
    uint64_t entered; /* the instance of the LOOP for which the word has been set */
    int ring, lag;    /* lag > 0: the first of the lag + 1 words that keep old verdicts */
    bool swaps;       /* its region has a SWAP */
    int *binding;     /* what arrays name where the loop first may end, while a period is sought */
    bool uneven;      /* what arrays name differs among the steps in which the loop may end */
} peal_cuda_predicate;

struct peal_cuda_predicates {
    peal_cuda_predicate *decision; /* by decision slot of the schedule */
    int word_count;                /* of `words`: one a decision, then the rings */
    CUdeviceptr words;
    bool any; /* the device decides at least one */
};

/* Whether the step has a run-time condition beside the end of the outermost loop. */
bool peal_cuda_predicates_are_needed(const peal_schedule *schedule);
/* Sets rank->predicates and the regions of its ops. */
void peal_cuda_predicates_bind(peal_cuda_rank *rank);
/* Whether the device can decide all of them, and skip what they say. If not, *reason is why, in
 * words for a message. */
bool peal_cuda_predicates_are_supported(const peal_cuda_rank *rank, const char **reason);
/* Call it when the walk restarts at another step: forgets which loops have been begun. */
void peal_cuda_predicates_restart(peal_cuda_rank *rank);
/* The predicate by which launches of op `index` are skipped; 0: none. */
CUdeviceptr peal_cuda_skip_word(const peal_cuda_rank *rank, int index);
/* Call it before op `index` is emitted. Launches the lane's group if it belongs to another region,
 * and sets the predicates of the loops that this op is the first op of. False: failed. */
bool peal_cuda_predicate_begin(peal_cuda_rank *rank, int index);
/* Enqueues a launch that sets `word` to 0, or to the value of `outer` (0: none), and `count` words
 * of `ring` to 0. False: failed. */
bool peal_cuda_begin_word(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                          CUdeviceptr outer, CUdeviceptr ring, int count);
/* Fills in the launch of DECIDE `index`: where it stores its verdict, and what it reads. */
void peal_cuda_predicate_decide(peal_cuda_rank *rank, int index, const peal_walk_frame *frame,
                                peal_launch *launch);
/* The verdict that the walk assumes for decision `slot`, if the device decides it. False: the host
 * must read the verdict. */
bool peal_cuda_predicate_verdict(peal_cuda_rank *rank, int slot, bool *verdict);
/* The instance of the DECIDE whose stored word has verdict `instance`: later by the lag. */
uint64_t peal_cuda_predicate_instance(const peal_cuda_rank *rank, int slot, uint64_t instance);

#endif
