/* The state of one walk over a rank's ops: its position, loop counters, how often each op was
 * passed, which storage each array names. The prepared program is that of base/walk.h. The walk
 * itself is the host's own: it reads host_op, of which it needs one cache line.
 *
 * Threads do not share a walk: each worker of `fused` has its own, and so has the one thread that
 * drives a rank in the other modes. Only verdicts of run-time conditions come from other threads.
 */
#ifndef PEAL_HOST_WALK_H
#define PEAL_HOST_WALK_H

#include "backends/host/host.h"
#include "backends/host/wait.h"

typedef struct host_walk {
    host_rank *rank;
    int worker;   /* for reports, and as reader of decisions */
    int position; /* next op */
    int64_t *counter;
    int *binding;
    uint64_t *passed;  /* by op: instances */
    uint64_t *message; /* by counter of a channel end */
    peal_walk_loop_state *loop;
    bool concurrent; /* decisions are made by another thread */
    uint64_t jitter;
    _Atomic int64_t steps; /* that it has behind it, since create; any thread reads it */
} host_walk;

typedef enum host_walk_result { HOST_WALK_OP, HOST_WALK_END, HOST_WALK_FAILED } host_walk_result;

void host_walk_init(host_walk *walk, host_rank *rank, int worker, bool concurrent);

/* Passes control ops up to the next op that does something (LAUNCH, COPY, WRITE, WAIT) or the end
 * of the section, and leaves `position` there. */
host_walk_result host_walk_next(host_walk *walk, const peal_section *section);

/* Counts the op at `position` as passed, steps over it, and says what its instance sees. */
static inline peal_walk_frame host_walk_pass(host_walk *walk)
{
    const host_op *op = &walk->rank->op[walk->position];
    peal_walk_frame frame = {.counter = walk->counter, .binding = walk->binding};

    frame.instance = ++walk->passed[walk->position++];
    if (op->message_counter >= 0)
        frame.message = ++walk->message[op->message_counter];
    return frame;
}

/* Walks the run: setup, steps, finish. `visit` is called for every op that does something, at
 * walk->position, and must call host_walk_pass. False: failed. */
typedef bool (*host_walk_visit)(host_walk *walk, void *user);
bool host_walk_run(host_walk *walk, host_walk_visit visit, void *user);

/* Call it once, before the first iteration of the outermost loop. False: failed. */
bool host_walk_enter(host_walk *walk);

/* Call it after an iteration of the outermost loop; *stop: the loop has ended. False: failed. */
bool host_walk_step_done(host_walk *walk, bool *stop);

/* Evaluate a value in the scope of a frame; `missing` is the result if it has no expression. False:
 * that was reported, and the plan has failed. */
bool host_evaluate(host_rank *rank, const peal_walk_value *value, const peal_walk_frame *frame,
                   peal_value *out);
bool host_evaluate_integer(host_rank *rank, const peal_walk_value *value,
                           const peal_walk_frame *frame, int64_t missing, int64_t *out);
bool host_evaluate_boolean(host_rank *rank, const peal_walk_value *value,
                           const peal_walk_frame *frame, bool missing, bool *out);
static inline host_wait host_walk_wait(const host_walk *walk, host_wait_kind kind, int op)
{
    return (host_wait){.rank = walk->rank,
                       .kind = kind,
                       .worker = walk->worker,
                       .op = op,
                       .other_op = -1,
                       .step = walk->counter[0]};
}

#endif
