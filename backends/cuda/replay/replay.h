/* Recordings of K steps: recording.c makes them with an engine, replay.c replays them as a whole,
 * and parts.c in parts, with rare steps between. */
#ifndef PEAL_CUDA_REPLAY_H
#define PEAL_CUDA_REPLAY_H

#include "backends/cuda/drive/run.h"
#include "backends/cuda/lower/engine.h"
#include "backends/cuda/replay/step_conditions.h"

enum { REPLAYS_AHEAD = 8 };

/* How one replay changes the state of a rank's walk. */
typedef struct state_change {
    uint64_t *passed, *message;
    int *binding; /* what it is behind it */
    int64_t iterations;
    uint64_t evaluations;
} state_change;

/* A rank's walk in front of a recorded step, for replays that begin or end there. */
typedef struct peal_cuda_moment {
    uint64_t *passed, *message; /* as in state_change: since the first recorded step */
    int *binding;
    int64_t counted;              /* steps that the recording has counted before */
    peal_cuda_pending_wait *wait; /* that the recording has deferred beyond this step */
    int wait_count;
} peal_cuda_moment;

/* Rare steps of which there are recordings: one of each kind, then in turn those that print, up to
 * so many alike. So many are looked at, before the end of the run. */
enum { PEAL_CUDA_RARE_STEPS = 24, PEAL_CUDA_RARE_ALIKE = 8, PEAL_CUDA_RARE_LOOKED_AT = 96 };

/* At most so many short recordings beside the whole ones, of at most so many steps. Slots of
 * recordings: whole ones, pieces, rare steps. */
enum {
    PEAL_CUDA_PIECES = 48,
    PEAL_CUDA_PIECES_UP_TO = 64,
    PEAL_CUDA_FIRST_PIECE = 2,
    PEAL_CUDA_FIRST_RARE = PEAL_CUDA_FIRST_PIECE + PEAL_CUDA_PIECES,
    PEAL_CUDA_RECORDINGS = PEAL_CUDA_FIRST_RARE + PEAL_CUDA_RARE_STEPS
};

/* A short recording (pieces.c), from step `from` of the whole one on. */
typedef struct peal_cuda_piece {
    int64_t from, steps;
    peal_walk *begin;     /* by rank: the state at its first step */
    state_change *change; /* by rank */
} peal_cuda_piece;

/* A rare step that is recorded, as a section of the recording (rare_steps.c) or by itself
 * (rare_graphs.c), for all steps in which everything that its launches hold as constants is the
 * same. */
typedef struct peal_cuda_rare_step {
    int section;              /* or the slot */
    peal_walk *begin;         /* by rank: the state at it */
    peal_cuda_moment *moment; /* by rank: the waits that it waits for from before */
    state_change *change;     /* by rank */
    uint64_t **compared;      /* by rank, by message counter: 0 if its number does not matter */
    bool *truth;              /* by condition: whether it is rare and holds */
    peal_cuda_row *row;       /* that it prints: they have one place, */
    unsigned rows;            /* once it is recorded; before, how many it will print */
    uint64_t used;            /* so the replay of this number (0: none), of those launched, */
    int64_t step;             /* in which it is this step, must be over before it is used again */
} peal_cuda_rare_step;

typedef struct peal_cuda_rare_steps {
    peal_cuda_rare_step of[PEAL_CUDA_RARE_STEPS];
    int count;
    unsigned rows; /* of all of them */
    int *counts;   /* by how many steps are counted, from -uncounted to uncounted: the section
                      that does; -1: none does */
    int64_t uncounted;
    bool *truth; /* scratch */
} peal_cuda_rare_steps;

typedef struct peal_cuda_graphs {
    peal_cuda_sink sink;                 /* of emission, while steps are recorded */
    int64_t steps;                       /* K, the steps of a recording */
    int slots;                           /* buffer slots of rows, with a recording each: 1 or 2 */
    struct peal_cuda_bundles *bundles;   /* mode graph (graph/bundle.h); or NULL */
    CUgraph graph[PEAL_CUDA_RECORDINGS]; /* by slot */
    CUgraphExec exec[PEAL_CUDA_RECORDINGS];
    peal_cuda_row *row[2]; /* by slot: the rows that a replay prints */
    unsigned rows;         /* how many these are */
    bool hopes;            /* K was chosen as if there were one launch a step */
    bool is_sure;          /* K's launches fit, however many emission makes of them */
    bool is_even;          /* each step is recorded like the others: it counts itself */
    bool twice;            /* K was chosen so that its steps have room twice, */
    bool is_cramped;       /* and has to be, since joined steps (joined_steps.c) have none */
    bool stops;            /* the outermost loop has an `until` */
    bool loops;            /* it is a WHILE node */
    int64_t rounds;        /* the most passes through the recording in one launch; unrolled: 1 */
    CUfunction round;      /* the last kernel of a WHILE node's body, which ends a round */
    CUgraphConditionalHandle condition;
    peal_cuda_step_conditions conditions;
    peal_walk *begin;          /* by rank: the state at the first recorded step */
    state_change *change;      /* by rank */
    peal_cuda_moment **moment; /* by rank, by step of the recording and behind the last; NULL:
                                  replays are of whole recordings */
    int64_t period;            /* the least number of steps after which the state is as before */
    double launches;           /* of a step, as many as emission may make */
    peal_cuda_piece *piece;    /* the longest first */
    int piece_count;
    peal_cuda_rare_steps rare;
    bool is_apart;  /* a rare step is being recorded */
    bool is_joined; /* steps are being recorded once more */
    int64_t span;   /* how many steps the next launch has */
    int64_t *word;  /* by rank: the value of its step word */
    CUevent done[REPLAYS_AHEAD];
    int64_t first_step[REPLAYS_AHEAD]; /* of the replays that are under way */
    int64_t end_step[REPLAYS_AHEAD];   /* behind their last */
    int64_t from[REPLAYS_AHEAD];       /* the step of the recording that they begin with */
    uint64_t launched, finished;       /* replays */
    int64_t replayed;                  /* steps, that were in replays */
    int64_t report;                    /* steps between two counts of steps, at most */
    bool *counts;                      /* by step of what is recorded: whether a count follows */
    double began;                      /* when the first of those under way was launched */
    int64_t first;                     /* its first step */
    double rate;                       /* the greatest measured steps a second; 0: unknown */
} peal_cuda_graphs;

/* replay_period.c */
/* Chooses the conditions that are kept, the first recorded step (graphs->begin), and K: a multiple
 * of the period that no rare condition cuts, as the steps of the run have it cheapest. 0: there is
 * no period, or it is too long; *reason says why. */
int64_t peal_cuda_choose_steps(peal_cuda_plan *plan, const char **reason);
/* After peal_cuda_choose_steps: whether the engine has room for the launches of one period, as far
 * as graphs->hopes goes. */
bool peal_cuda_launches_fit(const peal_cuda_plan *plan);
/* Walks one iteration and emits nothing; verdicts are false. False: the walk needs a verdict, or an
 * expression failed. */
bool peal_cuda_advance_walk_only(peal_cuda_rank *rank);
/* Whether the walk's messages have the numbers of those behind `begin` and, by counter, `since`
 * more (NULL: none), but for whole rounds of flags and slots. recorded: see peal_cuda_is_period. */
bool peal_cuda_messages_agree(const peal_cuda_rank *rank, const peal_walk *begin,
                              const uint64_t *since, const uint64_t *recorded);
/* Whether everything that recorded launches hold as constants is the same after the `steps`
 * iterations that the rank's walk has made since `begin`, of which none is an event. recorded: by
 * message counter, how many messages the recording has; those without need not come round. NULL:
 * all must. */
bool peal_cuda_is_period(const peal_cuda_rank *rank, const peal_walk *begin, int64_t steps,
                         const uint64_t *recorded);

/* How many steps the run has, as far as choices need it; a guess where that is not known. */
int64_t peal_cuda_steps_of_run(const peal_cuda_plan *plan);
/* How many ops a rank's walk has passed since `begin`. */
uint64_t peal_cuda_ops_since(const peal_cuda_rank *rank, const peal_walk *begin);
/* How many rows the steps print that the walks have made since. begin: by rank. */
uint64_t peal_cuda_rows_since(const peal_cuda_plan *plan, const peal_walk *begin);

/* What the rank's walk has changed since `begin`, in the arena; and the same once more. */
void peal_cuda_change_keep(const peal_cuda_rank *rank, const peal_walk *begin,
                           state_change *change);
void peal_cuda_change_apply(peal_cuda_rank *rank, const state_change *change);

/* recording.c: what is emitted from here on begins with the step that the walks are at. */
void peal_cuda_recording_begin(peal_cuda_plan *plan);
/* All walks go to where they were. begin: by rank. */
void peal_cuda_walks_go_to(peal_cuda_plan *plan, const peal_walk *begin);

/* recording.c: all walks go to the begin of step `step`, and graphs->begin is what they are there.
 * False: a walk needs a verdict, or an expression failed. */
bool peal_cuda_walk_to(peal_cuda_plan *plan, int64_t step);

/* counts.c */
/* Behind which of `steps` steps a recording counts: the last one, and before it so that a count is
 * at most `most` steps behind the one before, and more than half as many; of these the step with
 * the most operations, the latest of several. counts: all false before. */
void peal_cuda_counts_place(const uint64_t *operations, int64_t steps, int64_t most, bool *counts);
/* Chooses for the recording that is about to be made. The walks go on. begin: by rank. */
void peal_cuda_counts_choose(peal_cuda_plan *plan, const peal_walk *begin, int64_t steps);

/* recording.c: destroys what a slot has of a graph, so that it can be recorded anew. */
void peal_cuda_recording_free(peal_cuda_plan *plan, int slot);

/* recording.c: records steps that begin with the walks at `begin` (by rank) into a slot behind the
 * whole recordings, which has none yet. *made: false where the driver has no room for it; the mode
 * goes without. */
peal_status peal_cuda_recording_try(peal_cuda_plan *plan, int slot, const peal_walk *begin,
                                    int64_t steps, bool *made);

/* recording.c: called when the plan is created. Records K iterations and has the engine build them.
 * What fails has been reported (PEAL_E_GRAPH_MODE_NOT_APPLICABLE, or the engine's own reports). */
peal_status peal_cuda_graphs_create(peal_cuda_plan *plan);
void peal_cuda_graphs_destroy(peal_cuda_plan *plan);

/* replay.c: runs plan->run->steps iterations: by replays, and step by step where none fits. False:
 * failed. */
bool peal_cuda_graphs_run(peal_cuda_plan *plan);

/* pieces.c */
/* Whether there can be recordings beside the whole one: pieces, and rare steps (rare_graphs.c). */
bool peal_cuda_pieces_can_be(const peal_cuda_plan *plan);
/* Of how many steps the recording is, which might be of so many: of as many as the run has, if that
 * is known to be shorter. */
int64_t peal_cuda_pieces_of_run(peal_cuda_plan *plan, int64_t steps);
/* Whether there are pieces, if the period has so many steps, of so many launches each. */
bool peal_cuda_pieces_fit(const peal_cuda_plan *plan, int64_t period, double launches);
/* Once the whole recording has been made: which pieces there are. Their begins are not set yet. */
void peal_cuda_pieces_choose(peal_cuda_plan *plan);
/* The longest piece of at most so many steps that begins where all ranks are now; -1: none does. */
int peal_cuda_piece_find(const peal_cuda_plan *plan, int64_t most);

/* moment.c */
/* Whether replays may begin and end amid a recording of so many steps. */
bool peal_cuda_moments_fit(const peal_cuda_plan *plan, int64_t steps);
/* Once K is chosen: makes room for moments, if they fit. */
void peal_cuda_moments_create(peal_cuda_plan *plan);
/* While a rank is recorded: notes the moment in front of its next step. What has been emitted is
 * launched, but for deferred waits. False: failed. */
bool peal_cuda_moment_note(peal_cuda_rank *rank);
/* At which step of the recording all ranks are as they are now; -1: at none. */
int64_t peal_cuda_moment_find(const peal_cuda_plan *plan);
/* Keeps the waits that a rank defers now. */
void peal_cuda_moment_keep_waits(const peal_cuda_rank *rank, peal_cuda_moment *moment);
/* Whether all that the rank has to wait for is waited for from the moment on. */
bool peal_cuda_moment_has_waits(const peal_cuda_rank *rank, const peal_cuda_moment *moment);
/* The rank need not wait for that any more. */
void peal_cuda_moment_take_waits(peal_cuda_rank *rank, const peal_cuda_moment *moment);
/* In front of a replay from the moment on: launches what the rank has emitted, and has to wait for
 * but what the recording waits for itself. False: failed. */
bool peal_cuda_moment_enter(peal_cuda_rank *rank, const peal_cuda_moment *moment);
/* The walks go on by `steps` steps from step `from` of the recording on. */
void peal_cuda_moment_advance(peal_cuda_plan *plan, int64_t from, int64_t steps);

/* joined_steps.c */
/* Behind the steps of a whole recording: records them once more, if the engine gains by that.
 * False: failed. */
bool peal_cuda_joined_steps_record(peal_cuda_plan *plan);
/* Called in front of each of them instead of peal_cuda_moment_note. False: failed. */
bool peal_cuda_joined_step_begin(peal_cuda_rank *rank);

/* rare_steps.c */
/* Behind the steps of a recording that has moments: records rare steps as sections, as they come in
 * the run, and counts of steps to put between them. False: failed. */
bool peal_cuda_rare_steps_record(peal_cuda_plan *plan);
/* Once the recording is built: there are none, if the engine has had no room for sections. */
void peal_cuda_rare_steps_settle(peal_cuda_plan *plan);
/* There are none. */
void peal_cuda_rare_steps_clear(peal_cuda_plan *plan);
/* Keeps what the step is that the walks are at, and what it changes, in a new one; the walks go on
 * by it. False: they need the device. */
bool peal_cuda_rare_step_look_at(peal_cuda_plan *plan, peal_cuda_rare_step *step);
/* Makes it one of those that are recorded; its rows are those from number `first` on. */
void peal_cuda_rare_step_keep(peal_cuda_plan *plan, peal_cuda_rare_step *step, unsigned first);
/* Has those recorded again that print, in turn, since their rows have one place each; until
 * `again` says no. */
void peal_cuda_rare_steps_copy(peal_cuda_plan *plan,
                               bool (*again)(peal_cuda_plan *plan, peal_cuda_rare_step *step,
                                             void *user),
                               void *user);
/* The one that a rank's step is now, whose rows have the freest place; NULL: none is. */
peal_cuda_rare_step *peal_cuda_rare_step_find(peal_cuda_plan *plan);
/* The walks go on by that step. */
void peal_cuda_rare_step_advance(peal_cuda_plan *plan, const peal_cuda_rare_step *step);
/* Prints the rows of those that the replay of that number had, which is over. */
void peal_cuda_rare_steps_rows_out(peal_cuda_plan *plan, uint64_t replay);
/* The section that counts so many steps; -1: there is none. */
int peal_cuda_rare_steps_count(const peal_cuda_plan *plan, int64_t steps);

/* rare_graphs.c */
/* Whether rare steps may be recorded by themselves, if steps have so many launches each. */
bool peal_cuda_rare_graphs_fit(const peal_cuda_plan *plan, double launches);
/* Once there are pieces: records those of the run, where the engine has no sections, and recordings
 * print nothing. */
peal_status peal_cuda_rare_graphs_record(peal_cuda_plan *plan);

/* parts.c: runs plan->run->steps iterations, if there are moments: by launches of parts of the
 * recording, with rare steps between them, and step by step where none fits. False: failed. */
bool peal_cuda_parts_run(peal_cuda_plan *plan);

/* Whether replays print rows. */
static inline bool peal_cuda_replay_prints(const peal_cuda_graphs *graphs)
{
    return graphs->rows > 0 || graphs->rare.rows > 0;
}

/* The steps that the device has counted, of all starts. */
static inline int64_t peal_cuda_replay_counted(const peal_cuda_plan *plan)
{
    return (int64_t)__atomic_load_n(&plan->rank[0].control->steps_done, __ATOMIC_ACQUIRE);
}

/* Behind the last step of replay number `number` - 1, which is under way. */
static inline int64_t peal_cuda_replay_end_of(const peal_cuda_graphs *graphs, uint64_t number)
{
    return graphs->end_step[(number - 1) % REPLAYS_AHEAD];
}

/* sleep.c */
/* Sleeps for most of the time that the replays before number `last` will take, so that the
 * application has the processor meanwhile. With `until` it does not, since replays may end sooner.
 * False: failed. */
bool peal_cuda_replay_sleep(peal_cuda_plan *plan, uint64_t last);
/* While no rate of steps is known: for how many seconds to sleep next. `past` seconds ago the first
 * of `steps` steps was launched; `counted` of them (0: none) were done when at least `counted_at`
 * of these had passed. 0: look on without a sleep from here on. */
double peal_cuda_replay_nap(double past, int64_t steps, int64_t counted, double counted_at);

/* replay.c, for parts.c. False: failed. */
/* What the step word of a rank is in front of step `at` of the recording, when the walk is there.
 */
int64_t peal_cuda_replay_word(const peal_cuda_plan *plan, int r, int64_t at);
/* Makes the step words what they have to be in front of that step; -1: they are to be exact. */
bool peal_cuda_replay_set_words(peal_cuda_plan *plan, int64_t from);
/* How many steps from here on, of at most `most`, can be replayed: no rare condition is met. */
int64_t peal_cuda_replay_usual(peal_cuda_plan *plan, int64_t most);
/* Launches parts, from step `first` of the run on, `steps` of them. */
bool peal_cuda_replay_launch(peal_cuda_plan *plan, int64_t first, int64_t steps,
                             const peal_cuda_part *part, int count);
/* Waits for the oldest replay that is under way, and prints its rows. */
bool peal_cuda_replay_finish_oldest(peal_cuda_plan *plan);
/* Waits for all of them. */
bool peal_cuda_replay_finish(peal_cuda_plan *plan);
/* At the end of a run's steps. */
bool peal_cuda_replay_end(peal_cuda_plan *plan);

/* stall_report.c: reports the oldest replay that is under way. False: there is none. */
bool peal_cuda_report_replay(peal_cuda_plan *plan);

#endif
