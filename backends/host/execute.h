/* Runs the bodies of op instances: tiles of a task, built-in tasks, copies, words. */
#ifndef PEAL_HOST_EXECUTE_H
#define PEAL_HOST_EXECUTE_H

#include "backends/host/host.h"
#include "backends/host/wait.h"

/* A thread that runs ops of one rank. */
typedef struct host_context {
    host_rank *rank;
    int worker;
    peal_call *call;       /* by task: this thread's own */
    bool has_told;         /* messages of other hosts, which may not have left yet */
    const host_op *landed; /* the next UNPACK, if its message lies where it belongs already */
} host_context;

void host_context_init(host_context *context, host_rank *rank, int worker);

/* A LAUNCH instance under way on one thread. */
typedef struct host_launch {
    host_context *context;
    const host_op *op;
    const peal_walk_frame *frame;
    const host_share *share;
    peal_call *call;
    peal_function function;
    bool partials;  /* somebody reads them */
    bool prepared;  /* its arguments are evaluated, which only the first tile's waits permit */
    int64_t end;    /* of a counted box: points from here on are not visited */
    int run;        /* the run that it is at, */
    int64_t offset; /* and the tile in it */
} host_launch;

void host_launch_init(host_launch *launch, host_context *context, const host_op *op,
                      const peal_walk_frame *frame, const host_share *share);
/* Runs the next `count` tiles of the share. done: NULL, or where base + 1, base + 2 ... is stored
 * after each tile, for the workers that wait. False: failed. */
bool host_launch_tiles(host_launch *launch, int64_t count, peal_dispatch_word *done, uint64_t base);
/* Runs all tiles of the share, in as few calls as the task allows; for shares of which nobody waits
 * for single tiles. False: failed. */
bool host_launch_all(host_launch *launch);

/* Runs a LAUNCH of a built-in task, a COPY or a WRITE. False: failed. */
bool host_execute(host_context *context, const host_op *op, const peal_walk_frame *frame);

/* WAIT: whether its word has the value now; and waits until it has (false: failed). */
bool host_message_ready(const host_op *op, const peal_walk_frame *frame);
bool host_message_wait(host_context *context, const host_op *op, const peal_walk_frame *frame);

/* Reads an integer of a buffer of counts; and whether a count is in [0, most] (if not, that has
 * been reported and the plan has failed). */
int64_t host_count_at(peal_type type, const unsigned char *at);
bool host_count_fits(host_rank *rank, const peal_op *op, int64_t step, int64_t count, int64_t most);

/* file.c: `load` and `save` tasks. False: failed. */
bool host_file_load(host_context *context, const host_op *op, const peal_walk_frame *frame);
bool host_file_save(host_context *context, const host_op *op, const peal_walk_frame *frame);

static inline bool host_is_kernel(const host_op *op)
{
    return op->task->source->kind == PEAL_TASK_KERNEL;
}

#endif
