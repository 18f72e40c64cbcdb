/* The walk over a schedule's ops: where it is, loop counters, how often each op was passed, which
 * storage each array names. Every backend walks the same way; what it does at an op is its own.
 *
 * A program is what is alike in all walks of a rank; it is immutable and may be shared by threads.
 * A walk belongs to one thread. Verdicts of run-time conditions come from a callback, which may say
 * that one is not known yet: then the walk stays where it is. */
#ifndef PEAL_BASE_WALK_H
#define PEAL_BASE_WALK_H

#include "base/expression.h"

/* An expression, and its value if it has the same one at every evaluation. */
typedef struct peal_walk_value {
    const peal_expr *expr; /* NULL: absent */
    bool is_constant;
    peal_value value;
    /* `counter % modulus == remainder` (or !=), the usual condition, without a walk of the tree */
    bool is_periodic, unequal;
    int depth;
    int64_t modulus, remainder;
} peal_walk_value;

typedef struct peal_walk_op {
    peal_walk_value condition; /* IF with a static condition */
    int message_counter;       /* of this end of the channel and this kind of op; -1: none */
    bool decides;              /* a LAUNCH of DECIDE */
    int decision_loop;         /* the loop whose `until` it serves; -1: it serves an IF */
} peal_walk_op;

typedef struct peal_walk_loop {
    const peal_schedule_loop *source;
    peal_walk_value repeat, every, lag;
} peal_walk_loop;

typedef struct peal_walk_program {
    const peal_schedule *schedule;
    peal_walk_op *op;
    peal_walk_loop *loop; /* the schedule's, then the outermost */
    int *decision_op;     /* by slot: its DECIDE; -1: none */
    peal_layout *layout;  /* by array, for expressions */
    int message_counter_count;
} peal_walk_program;

/* What one instance of an op sees of the walk that passed it. */
typedef struct peal_walk_frame {
    const int64_t *counter; /* by depth */
    const int *binding;     /* array -> the array whose storage it has now */
    uint64_t message;       /* number of the message, for ops with a channel */
    uint64_t instance;      /* of the op, from 1 */
} peal_walk_frame;

typedef enum peal_walk_result {
    PEAL_WALK_OP,      /* position is at an op that does something */
    PEAL_WALK_END,     /* of the section */
    PEAL_WALK_BLOCKED, /* a verdict is not known yet; call again */
    PEAL_WALK_FAILED   /* reported */
} peal_walk_result;

typedef struct peal_walk peal_walk;

/* What a walk asks its owner. */
typedef struct peal_walk_hooks {
    void *user;
    /* The verdict of instance `instance` of the DECIDE of `slot`: PEAL_WALK_OP and *out,
     * PEAL_WALK_BLOCKED or PEAL_WALK_FAILED. */
    peal_walk_result (*verdict)(void *user, int slot, uint64_t instance, bool *out);
    peal_diagnostics *diagnostics;
} peal_walk_hooks;

typedef struct peal_walk_loop_state {
    int64_t iteration, repeat, every, lag;
    uint64_t evaluations;
} peal_walk_loop_state;

struct peal_walk {
    const peal_walk_program *program;
    peal_walk_hooks hooks;
    int position; /* next op */
    int64_t *counter;
    int *binding;
    uint64_t *passed;  /* by op: instances */
    uint64_t *message; /* by counter of a channel end */
    peal_walk_loop_state *loop;
};

/* Prepares a rank's walk; everything lies in the arena. */
peal_status peal_walk_program_create(const peal_schedule *schedule, peal_arena *arena,
                                     peal_diagnostics *diagnostics, peal_walk_program **out);
/* At the start of the setup section, before any message but `first_message`. */
void peal_walk_init(peal_walk *walk, const peal_walk_program *program, peal_arena *arena,
                    uint64_t first_message);
/* Copies the state of one walk of a program to another. */
void peal_walk_copy(peal_walk *to, const peal_walk *from);

/* Goes through control ops up to the next op that does something (LAUNCH, COPY, WRITE, WAIT,
 * FENCE) or the end of the section; leaves `position` on it. */
peal_walk_result peal_walk_next(peal_walk *walk, const peal_section *section);
/* Counts the op at `position` as passed, steps over it, and says what its instance sees. */
peal_walk_frame peal_walk_pass(peal_walk *walk);
/* Once, before the first iteration of the outermost loop. */
peal_walk_result peal_walk_enter(peal_walk *walk);
/* After an iteration of the outermost loop: PEAL_WALK_OP and whether `until` ends it. */
peal_walk_result peal_walk_step_done(peal_walk *walk, bool *stop);

/* What names stand for at counters (NULL: none). */
void peal_walk_scope(const peal_walk_program *program, const int64_t *counter, peal_scope *scope);

/* Values. Constant if it depends neither on counters nor on memory. */
peal_status peal_walk_value_prepare(const peal_walk_program *program, const peal_expr *expr,
                                    peal_diagnostics *diagnostics, peal_walk_value *out);
peal_status peal_walk_evaluate(const peal_walk_program *program, const peal_walk_value *value,
                               const int64_t *counter, peal_diagnostics *diagnostics,
                               peal_value *out);
/* expr NULL: `missing`. */
peal_status peal_walk_boolean(const peal_walk_program *program, const peal_walk_value *value,
                              const int64_t *counter, bool missing, peal_diagnostics *diagnostics,
                              bool *out);

#endif
