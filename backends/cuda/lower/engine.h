/* An engine makes the device repeat recorded iterations: as a CUDA graph (graph/capture.c), or as
 * the persistent kernel (fused/engine.c). replay/recording.c drives either: it chooses how many
 * steps are recorded and emits them to the engine's sink. replay/replay.c launches replays.
 *
 * A plan that prints has two recordings, one for each buffer slot of rows; else it has one. Entries
 * that return a CUresult leave the report of a failure to the caller; those that return a
 * peal_status have reported it. */
#ifndef PEAL_CUDA_LOWER_ENGINE_H
#define PEAL_CUDA_LOWER_ENGINE_H

#include "backends/cuda/lower/sink.h"

/* `steps` steps from step `from` of a recording on, round after round; or a section. */
typedef struct peal_cuda_part {
    int section; /* -1: steps */
    int64_t from, steps;
} peal_cuda_part;

enum { PEAL_CUDA_PARTS = 32 }; /* of a launch, at most */

struct peal_cuda_engine {
    const struct peal_cuda_sink_ops *sink;
    bool is_one_kernel; /* as in peal_cuda_sink */
    int most_launches;  /* the most launches of a rank in a recording; 0: any number */
    /* Whether the waits of a launch are a launch of their own. NULL: no. */
    bool (*receives_apart)(const peal_cuda_plan *plan);
    bool has_pieces; /* short recordings beside the whole one are worth while (replay/pieces.c) */
    int reports;     /* how often a recording counts its steps, so that the host sees progress */
    /* Called before the number of steps is chosen. NULL: nothing is to be done. */
    peal_status (*prepare)(peal_cuda_plan *plan);
    /* Called when no period was found or it has too many launches: gives up an optimisation that
     * makes periods longer. False, or NULL: there is none to give up. */
    bool (*shorten_period)(peal_cuda_plan *plan);
    /* Called when the number of steps has been chosen. NULL: nothing is to be done. */
    peal_status (*settle)(peal_cuda_plan *plan);
    /* Whether the engine looks at steps before they are recorded. While it does, a period of them
     * is emitted to its sink, which puts nothing anywhere; then `looked` is called. NULL: it does
     * not. */
    bool (*looks)(const peal_cuda_plan *plan);
    peal_status (*looked)(peal_cuda_plan *plan);
    /* Begin and end a recording. slot 0 or 1: the buffer slot of the rows that it prints; above: of
     * a piece, which prints none. */
    CUresult (*begin)(peal_cuda_plan *plan, int slot);
    CUresult (*end)(peal_cuda_plan *plan, int slot);
    /* Called before the end, when all steps have been emitted and the lanes joined. False: failed,
     * plan->emission.status says why. NULL: nothing is to be done. */
    bool (*end_round)(peal_cuda_plan *plan);
    /* Makes a recording ready to be launched. A failure has been reported and is returned, or it is
     * *result, which the caller reports. */
    peal_status (*build)(peal_cuda_plan *plan, int slot, CUresult *result);
    /* Called when the driver has refused a recording: gives up what may be the reason, so that it
     * is recorded anew. False, or NULL: there is nothing to give up. */
    bool (*abandon)(peal_cuda_plan *plan, int slot, CUresult result);
    /* Enqueues `rounds` passes through a recording on the origin. */
    CUresult (*launch)(peal_cuda_plan *plan, int slot, int64_t rounds);
    /* Called while steps are recorded: what is emitted from now on belongs to step `step`, counted
     * from the first recorded one, or comes behind the last. NULL: launches are of whole rounds. */
    void (*mark_step)(peal_cuda_rank *rank, int64_t step);
    /* Called behind the steps, with one rank: what is emitted between the two calls is a section of
     * its own, which launches may have between steps. end_section returns its number; -1: there is
     * no room for it, and nothing of it is kept. NULL: there are no sections. */
    void (*begin_section)(peal_cuda_plan *plan);
    int (*end_section)(peal_cuda_plan *plan);
    /* How many sections the recording has, once it is built: those that were recorded, or none. */
    int (*sections)(const peal_cuda_plan *plan, int slot);
    /* Called behind the steps that moments were noted of, with one rank, around their being
     * recorded once more. There a launch may be of two steps, if parts that begin or end between
     * these run the steps as they were recorded first. mark_joined: called in front of a step that
     * parts may begin or end with. NULL: steps are recorded once.
     * end_joined returns false if they are fewer launches, but there is no room for them. */
    void (*begin_joined)(peal_cuda_plan *plan);
    void (*mark_joined)(const peal_cuda_rank *rank, int64_t step);
    bool (*end_joined)(peal_cuda_plan *plan);
    /* Enqueues parts of a recording, one after the other, on the origin: at most PEAL_CUDA_PARTS;
     * with several ranks one. */
    CUresult (*launch_parts)(peal_cuda_plan *plan, int slot, const peal_cuda_part *part, int count);
    /* Whether it can, by the plan's options. */
    bool (*launches_parts)(const peal_cuda_plan *plan);
    /* Which of the steps from + i * period of the recording to begin with: as good as `from`, where
     * so many steps follow. */
    int64_t (*choose_from)(const peal_cuda_plan *plan, int slot, int64_t from, int64_t period,
                           int64_t steps);
    /* The most rounds of one launch. NULL: one. */
    int64_t (*most_rounds)(const peal_cuda_plan *plan);
};

#endif
