/* Mode fused on a GPU: what mode graph would capture becomes work items of one persistent kernel
 * (codegen/device/fused.h).
 *
 * In the order in which they act on a plan:
 *   record.c          records launches as work items
 *   footprint.c       what the blocks of a work item read and write
 *   reduction_ring.c  memory that lets folds be some steps behind
 *   deep.c            finds steps that a block runs without asking others
 *   deep_choice.c     how many of them, and on which tiles
 *   deep_section.c    work items of such rounds
 *   turns.c           makes a list of few steps of many that differ in numbers only
 *   build.c           conducts the rest: how many blocks each rank has, the kernel, its lists
 *   shapes.c          prints what the compiler may know of the launches
 *   partition.c       which part of a work item each block runs
 *   partition_classes.c  which work items have the same partitions
 *   block_footprint.c what blocks touch in it, and which of them meet
 *   block_deps.c      which other blocks each partition waits for
 *   dispatchers/      how blocks get their work: the contract, and a file for each --lower order=
 *   upload.c          all of that in device memory
 *   joined.c          the recorded steps once more, without bounds between them
 *   launch.c          launches the kernel */
#ifndef PEAL_CUDA_FUSED_H
#define PEAL_CUDA_FUSED_H

#include "backends/cuda/codegen/device/fused_launch.h"
#include "backends/cuda/codegen/task_traits.h"
#include "backends/cuda/lower/engine.h"
#include "backends/cuda/lower/plan.h"

#include <stdio.h>

/* Memory that blocks of a work item may read or write. A space is one of the rank's storages, a
 * part of the reduction ring, or a word of the run. */
typedef struct peal_cuda_touch {
    int space;
    bool write;
    unsigned boxes; /* bits: by blocks of which boxes of the launch; all bits of a copy */
    enum {
        PEAL_CUDA_TOUCH_ALL,   /* the whole space */
        PEAL_CUDA_TOUCH_REACH, /* `reach` around the tile */
        PEAL_CUDA_TOUCH_INDEX, /* the element whose index is the tile's number */
        PEAL_CUDA_TOUCH_BOX    /* from `lo` to `hi` */
    } kind;
    const peal_reach *reach;
    int lo[PEAL_AXES], hi[PEAL_AXES];
    CUdeviceptr
        word; /* a message writes it, for which these blocks wait by this word; 0: none does */
} peal_cuda_touch;

enum { PEAL_CUDA_WORK_ITEM_TOUCHES = 256 };

/* Boxes of a launch that has a shape; one of more boxes is run by the general function. */
enum { PEAL_CUDA_SHAPED_BOXES = 4 };

/* Shared memory of a block that is the dispatcher's; and how much more with a wide list. */
enum { PEAL_CUDA_DISPATCHER_BYTES = 28 * 1024, PEAL_CUDA_WIDE_BYTES = 7 * 1024 };

/* A round of several steps of a task, as one work item (deep.c). */
enum { PEAL_CUDA_LEAST_DEEP = 3 };
typedef struct peal_cuda_deep {
    peal_cuda_chain chain;
    int axes;
    int steps;     /* at most; odd */
    int wraps[3];  /* points of the domain where a window goes beyond its periodic end; 0 */
    int extent[3]; /* of a tile; a block has one */
    int64_t window_bytes;
    bool chunks; /* lines of a window are copied by 16 bytes */
} peal_cuda_deep;

typedef struct peal_cuda_work_item {
    int number;      /* of the function that runs it */
    unsigned blocks; /* of its grid */
    bool after_all;  /* each of its partitions waits for all blocks, */
    bool spares;     /* but not for what blocks do aside (`serves`) and it does not touch */
    unsigned each;   /* how many blocks of its grid a partition has, about */
    bool cyclic;     /* neighbouring blocks of the kernel run neighbouring tiles (partition.c), */
    bool dynamic;    /* and take tiles one by one where these neither wait for messages nor send */
    bool back;       /* partitions are run from their end */
    bool overflows;  /* it touches more than can be recorded */
    peal_cuda_touch *touch;
    int touch_count;
    bool receives; /* it only waits for the messages of the work item after it */
    int64_t step;
    int kind;                       /* work items of a kind have the same partitions */
    const peal_schedule_task *task; /* if its tiles may be cut in any way; or NULL */
    bool deepens;                   /* there is a text of it for rounds of several steps */
    bool copies, images;            /* it copies within the rank; only to images, if anything */
    const peal_schedule *schedule;
    bool partials;
    int shape;                  /* -1: none, a general function runs it */
    const peal_cuda_deep *deep; /* NULL: it is of one step */
    int serves; /* the task whose result it folds or sends while other blocks go on; -1: none */
    bool alone; /* the dispatcher waits and adds to flags for it, these amounts: */
    uint64_t quantum[PEAL_LAUNCH_WRITES];
    unsigned
        first_blocks; /* how many come first and send; some blocks of the kernel run only these */
    int service; /* if it has one block: which block runs it, counted from the kernel's last one */
    const uint64_t *growth; /* by word of the launch (fused_launch.h); NULL: nothing grows */
    peal_launch launch;     /* by far most of it, and last, so that all before can be kept apart */
} peal_cuda_work_item;

/* A recorded work item that lies so far behind that the list has it only as part of a turn: all in
 * front of its launch, and what that uses of itself, packed. */
typedef struct peal_cuda_later_item {
    void *traits;
    char *words;
} peal_cuda_later_item;

/* One block that others wait for, and that does more than count steps. */
static inline bool peal_cuda_is_single(const peal_cuda_work_item *item)
{
    return item->blocks == 1 && item->serves < 0 && item->launch.box_count > 0;
}

/* The part of the work items, and of the list of tickets, that one launch runs. */
typedef struct peal_cuda_ticket_launch {
    int item, end;  /* work items [item, end) */
    size_t ticket;  /* index of its first ticket in the list */
    unsigned count; /* of tickets */
} peal_cuda_ticket_launch;

/* Work items that are recorded, behind those that a list may have; more are counted only. */
enum { PEAL_CUDA_LATER_ITEMS = 1 << 15 };

/* Recorded steps whose work items may lie across their bounds (joined.c). */
typedef struct peal_cuda_joined {
    int first; /* work item */
    int *at; /* by recorded step: its first work item, counted from `first`; -1: one lies across */
    int64_t open_step; /* begins while a launch is open of the step before; -1: none does */
    int open_item;     /* that is to be this work item, */
    int open_ops;      /* of so many ops, if it gets no more, */
    int open_op;       /* first this instance of this one */
    uint64_t open_instance;
} peal_cuda_joined;

/* The work items of a rank, for one buffer slot. */
typedef struct peal_cuda_fused {
    peal_cuda_work_item *item;
    int count, room;
    peal_cuda_later_item *later; /* those from PEAL_FUSED_WIDE_ITEMS on, */
    int later_count, later_room;
    bool is_behind; /* unless they are recorded behind the steps: in sections, or joined */
    int plain;    /* of the recorded steps; behind them is the fast section, if any: the same steps
                     with deep rounds, or joined (joined.c); */
    int fast_end; /* and from here on are the sections of launches that come between steps */
    int *section; /* by section, and behind the last: its first work item */
    int section_count, section_room;
    int *at_step; /* by recorded step, and behind the last: its first work item */
    int step_room;
    int *fast_pending; /* by recorded step: how many plain steps have to follow its begin, if it is
                          reached in the fast section, before a launch may end */
    int *fast_at;      /* by recorded step: its first work item, counted from the begin of the fast
                          section; -1: it begins within one. NULL: there is no such section */
    peal_cuda_joined *joined; /* NULL: steps were not recorded joined, or gain nothing */
    const struct peal_cuda_dispatcher *dispatcher;
    peal_cuda_touch *touch; /* room for those of the work item that is being recorded */
    bool *served;           /* by op: the latest work item that it was recorded in is done aside */
    int kinds, most_kinds, most_items; /* most: that the kernel has room for */
    int *kind_item;                    /* by kind: its first work item */
    unsigned blocks;                   /* of the kernel, for this rank */
    unsigned grid; /* how many blocks, or workers, have a partition of a work item */
    int services;  /* the last `services` of them run the work items of one block */
    peal_cuda_ticket_launch *part; /* with tickets: the launches of a round */
    int part_count;
    CUdeviceptr memory;
} peal_cuda_fused;

/* The kernel of a buffer slot: of all ranks of the process. */
typedef struct peal_cuda_fused_kernel {
    peal_cuda_fused *rank; /* by rank */
    peal_fused *parameter; /* by rank; of the launch, as the device has it, with `more` behind it */
    peal_fused_span *more; /* spans behind the first, if there is one rank */
    int more_count;        /* as they were launched last */
    int64_t steps;         /* recorded, where they are marked; then those of a turn */
    bool is_wide;          /* some list is (fused_launch.h) */
    int turns;             /* of the list (turns.c); 1: its numbers stay as they are */
    double saved;          /* share of a step's time, by the fast section, as predicted */
    const char *note;      /* what that has, or why there are no deep rounds */
    int shapes;
    bool is_never_staged;          /* shapes have no shared memory */
    const struct peal_cuda_sm *sm; /* NULL: not known */
    int stage_bytes;               /* dynamic shared memory, for staging */
    CUfunction function;
    unsigned blocks; /* of all ranks */
} peal_cuda_fused_kernel;

/* engine.c */
extern const struct peal_cuda_engine peal_cuda_fused_engine;

/* Records a launch that emission makes. group: NULL for counting steps and for the begin of a loop.
 */
void peal_cuda_fused_add(peal_cuda_rank *rank, CUfunction function, unsigned blocks,
                         const peal_launch *launch, const peal_cuda_group *group);
/* Called before, and after, the work items of a slot are recorded. */
void peal_cuda_fused_begin(peal_cuda_plan *plan, int slot);
peal_status peal_cuda_fused_build(peal_cuda_plan *plan, int slot);
/* Enqueues the kernel without work items; for dispatchers that have parts. */
CUresult peal_cuda_fused_launch_nothing(peal_cuda_plan *plan, int slot);
/* Most rounds that peal_cuda_fused_start may be given. */
int64_t peal_cuda_fused_most_rounds(const peal_cuda_plan *plan);
/* Enqueues so many rounds of the slot's work items on the origin stream. */
CUresult peal_cuda_fused_start(peal_cuda_plan *plan, int slot, int64_t rounds);
void peal_cuda_fused_destroy(peal_cuda_plan *plan);
/* The first work item of a step that is being recorded. */
void peal_cuda_fused_mark_step(peal_cuda_rank *rank, int64_t step);
/* What is recorded between them is a section of its own. The number of it; -1: it does not fit, and
 * nothing of it is kept. */
void peal_cuda_fused_begin_section(peal_cuda_plan *plan);
int peal_cuda_fused_end_section(peal_cuda_plan *plan);
/* joined.c: the steps are recorded once more between the two calls, behind the plain ones. With one
 * rank. False: it is worth while, but there is no room for them. */
void peal_cuda_fused_begin_joined(peal_cuda_plan *plan);
bool peal_cuda_fused_end_joined(peal_cuda_plan *plan);
/* In front of a step that a launch may begin or end with. */
void peal_cuda_fused_mark_joined(const peal_cuda_rank *rank, int64_t step);
/* When a launch has become that work item. */
void peal_cuda_fused_note_joined(const peal_cuda_fused *fused, const peal_cuda_group *group,
                                 int item);
/* Makes them the fast section. items: how many they are. */
void peal_cuda_fused_take_joined(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel,
                                 int items);
/* Enqueues parts (lower/engine.h); with several ranks there is one. */
CUresult peal_cuda_fused_start_parts(peal_cuda_plan *plan, int slot, const peal_cuda_part *part,
                                     int count);
/* The step from + i * period of the recording from which `steps` steps have the most deep rounds.
 */
int64_t peal_cuda_fused_choose_from(const peal_cuda_plan *plan, int slot, int64_t from,
                                    int64_t period, int64_t steps);

/* record.c, for dispatchers that record work items of their own: the next one, whose touches are to
 * be added; and when they have been. */
peal_cuda_work_item *peal_cuda_fused_next_item(const peal_cuda_rank *rank);
void peal_cuda_fused_keep_touches(peal_cuda_plan *plan, peal_cuda_work_item *item);

/* launch.c, for dispatchers. The rank's blocks. */
unsigned peal_cuda_fused_blocks(const peal_cuda_fused *fused);
/* So many rounds of so many work items fit into one launch: epochs wrap. */
int64_t peal_cuda_fused_rounds_of_epochs(const peal_cuda_plan *plan, int items);
/* One launch; and the epoch at which the next one begins, after so many rounds. */
CUresult peal_cuda_fused_launch(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                                int64_t rounds);
void peal_cuda_fused_advance(const peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                             int64_t rounds);
/* All rounds by one launch. */
CUresult peal_cuda_fused_start_once(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                                    int64_t rounds);
/* Blocks of the kernel that an SM holds; 0: none. */
int peal_cuda_fused_resident(const peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel);

/* reduction_ring.c: called before it is known how many steps a round has. */
peal_status peal_cuda_reduction_ring_create(peal_cuda_plan *plan);
/* Returns whether there was any. */
bool peal_cuda_reduction_ring_free(peal_cuda_plan *plan);
/* Whether a group is a FOLD whose result goes into messages only. */
bool peal_cuda_fused_sends_fold(const peal_cuda_rank *rank, const peal_cuda_group *group);

/* turns.c: keeps the work item that was recorded last and lies behind the list; and makes the list
 * one of turns, where it is too long, before the work items get their shapes. */
void peal_cuda_fused_keep_later(peal_cuda_plan *plan, peal_cuda_fused *fused);
void peal_cuda_fused_find_turns(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel);

/* upload.c: the parts of a launch that it uses, which work items are packed of. */
enum { PEAL_CUDA_PACKED_PARTS = 7 };
typedef struct peal_cuda_packed {
    size_t from, bytes; /* where it begins in peal_launch; how much of it is used */
} peal_cuda_packed;
void peal_cuda_fused_parts_of(const peal_launch *launch,
                              peal_cuda_packed out[PEAL_CUDA_PACKED_PARTS]);

/* footprint.c */
int peal_cuda_footprint_spaces(const peal_cuda_rank *rank);
/* served: by op, whether it was recorded as a part of a work item that is done aside. */
void peal_cuda_footprint_note(peal_cuda_rank *rank, peal_cuda_work_item *item,
                              const peal_cuda_group *group, const bool *served);
/* The same for a work item that only waits. */
void peal_cuda_footprint_note_waits(const peal_cuda_rank *rank, peal_cuda_work_item *item);

/* shapes.c: gives work items their shapes. Returns the shapes' text, in the arena. */
const char *peal_cuda_fused_shape(peal_cuda_fused_kernel *kernel, int rank_count,
                                  const peal_device *device, peal_arena *arena);

/* shapes.c: whether the compiler may know the work item's shape, and whether two have the same. */
bool peal_cuda_fused_can_shape(const peal_cuda_work_item *item);
bool peal_cuda_fused_is_same_shape(const peal_cuda_work_item *a, const peal_cuda_work_item *b);

/* deep.c: appends a section with deep rounds, where there are such steps and options.deep asks for
 * them, or says nothing and they are predicted to gain. */
void peal_cuda_deep_find(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel);
/* deep_section.c: leaves the recorded work items alone. */
void peal_cuda_deep_give_up(peal_cuda_fused *fused);
/* Prints what device/deep.h is told of a round's box. */
void peal_cuda_deep_print(const peal_cuda_work_item *item, FILE *out);

/* deep_choice.c: the deepest round of at most options.deep steps whose windows have room or, where
 * that says nothing, the one that is predicted to be the fastest, for `length` steps like `item`
 * and so many blocks that run tiles. NULL: there is none, or plain steps are as fast. */
const peal_cuda_deep *peal_cuda_deep_choose(const peal_cuda_plan *plan,
                                            const peal_cuda_work_item *item,
                                            const peal_cuda_deep *found, int length, int workers);
/* The share of the time of `length` steps that rounds save, as predicted. */
double peal_cuda_deep_saves(const peal_cuda_plan *plan, const peal_cuda_work_item *item,
                            const peal_cuda_deep *deep, int length);

/* partition.c: chooses which work items are cyclic, for a kernel with so many blocks. */
void peal_cuda_partition_cyclic(peal_cuda_fused *fused, unsigned blocks);
/* Chooses which of so many blocks run the work items of one block; returns how many do. */
int peal_cuda_partition_serve(peal_cuda_fused *fused, unsigned blocks);
/* How many blocks of a launch send, if these come first and others follow; else 0. */
unsigned peal_cuda_partition_first_blocks(const peal_launch *launch, unsigned blocks);
peal_fused_partition peal_cuda_partition(const peal_cuda_fused *fused,
                                         const peal_cuda_work_item *item, unsigned block);

/* partition_classes.c: gives work items their kinds. */
void peal_cuda_fused_find_kinds(peal_cuda_fused *fused);
/* The same, and whether the kernel has room for so many of them, and of work items. */
bool peal_cuda_fused_has_room(peal_cuda_fused *fused);

/* block_deps.c: partitions by kind and block, what they wait for, and what they add to flags. */
typedef struct peal_cuda_block_deps {
    peal_fused_partition *partition;
    peal_fused_dependency *after;
    peal_fused_add *add;
    size_t after_count, add_count;
} peal_cuda_block_deps;
/* In the arena. The work items' kinds have been found. */
void peal_cuda_block_deps_build(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                                peal_cuda_block_deps *out);

/* The list of tickets, for dispatchers that have one. */
typedef struct peal_cuda_tickets {
    peal_fused_ticket *list;
    size_t count;
    unsigned short *first; /* by launch and worker: the first work item in which it has work */
} peal_cuda_tickets;

/* upload.c: brings the lists of a rank to device memory, and fills its parameter of the kernel. */
peal_status peal_cuda_fused_upload(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                                   const peal_cuda_block_deps *deps,
                                   const peal_cuda_tickets *tickets, peal_fused *parameter);

#endif
