/* What the persistent kernel of mode fused is launched with: shared by the host's C and the
 * device's C++, so it names no header of either.
 *
 * Each rank has a list of *work items*, each a launch as a grid of its own would be (launch.h), and
 * some of the kernel's blocks, numbered from 0 within the rank, which walk the list round after
 * round. Of each work item a block has a *partition*: a contiguous part of that grid's blocks, and
 * the blocks of the rank that must have done all work items before. A block's *epoch*, a word in
 * device memory, counts the work items that it is through with. A partition that needs older work
 * items only of another block says how far that one may be *behind*.
 *
 * With tickets (tickets.h) partitions are those of *workers*, which may be more than the rank has
 * blocks: a block takes one partition after the other, whoever's it is, in the order of a list. */
#ifndef PEAL_CUDA_DEVICE_FUSED_LAUNCH_H
#define PEAL_CUDA_DEVICE_FUSED_LAUNCH_H

enum {
    PEAL_FUSED_THREADS = 256,
    PEAL_FUSED_BLOCKS = 3,            /* on an SM, at least */
    PEAL_FUSED_ITEMS = 2048,          /* of a round */
    PEAL_FUSED_DEPENDENCY_LIST = 254, /* blocks that a partition can name, beside a range */
    PEAL_FUSED_KINDS = 32,            /* whose partitions a block keeps at hand, */
    PEAL_FUSED_DEPENDENCIES = 768,    /* with so many names of blocks, */
    PEAL_FUSED_ADDS = 32,             /* and so many additions to flags */
    PEAL_FUSED_RANKS_MOST = 26,       /* whose parameters fit: a kernel's are 4 KiB at most */
    PEAL_FUSED_SHAPES = 1 << 16, /* functions from here on are those of launches of known shape */
    PEAL_FUSED_COUNTERS = 8,     /* of a work item: blocks that have arrived, tiles taken by box */
    PEAL_TICKET_BEGIN = 0xffff   /* in the place of a worker: the ticket that begins a round */
};

/* Which function runs a work item, of which kind it is, and how many blocks its grid would have.
 * alone: it has one, and no other block adds to its flags: the dispatcher waits for it, and adds.
 * back: partitions are run from their end. */
typedef struct peal_fused_head {
    unsigned function, kind, blocks;
    unsigned short alone, back;
} peal_fused_head;

/* Blocks first, first + stride, ... of the work item, `count` of them, which of the work item's
 * waits they have, where the names are of the blocks that they wait for, neighbouring ones that
 * they wait for beside these, and what they add to flags, all together, if the work item's shape is
 * known or it is alone. kept: used on the device. */
typedef struct peal_fused_partition {
    unsigned first, count, stride, waits;
    unsigned after, adds;
    unsigned short after_count, add_count;
    unsigned short after_kept, adds_kept;
    unsigned short range_first, range_count, range_behind, reserved;
} peal_fused_partition;

/* A block, or worker, that a partition waits for, and how many work items it may be behind. */
typedef struct peal_fused_dependency {
    unsigned short block, behind;
} peal_fused_dependency;

typedef struct peal_fused_add {
    unsigned long long word, value;
} peal_fused_add;

/* A partition that has work: a work item's, and its kind; whose; and the number, from the round's
 * first work item on, of the next one in which that worker has work: it is through with all before.
 */
typedef struct peal_fused_ticket {
    unsigned short item, kind, worker, next;
} peal_fused_ticket;

/* What all blocks of a rank count in. Between launches all are 0 but `begun`. */
typedef struct peal_fused_words {
    unsigned long long taken; /* tickets of the launch */
    unsigned begun; /* epoch of the first work item of the latest round that has begun, + 1 */
    unsigned over;  /* the run has ended before that round */
    unsigned left;  /* blocks that have come to their end */
} peal_fused_words;

/* A launch's rounds: each has `count` tickets, from work item number `work item` on. */
typedef struct peal_fused_tickets {
    unsigned long long list;  /* peal_fused_ticket; the first begins the round */
    unsigned long long first; /* unsigned short, by worker: `next` in front of the round */
    unsigned long long words; /* peal_fused_words */
    unsigned count, item, workers, reserved;
} peal_fused_tickets;

/* Of one rank; the kernel's parameter is an array of them. */
typedef struct peal_fused {
    unsigned long long heads;      /* peal_fused_head, by work item */
    unsigned long long items;      /* packed launches, record_words apart */
    unsigned long long partitions; /* peal_fused_partition, by kind, then by block or worker */
    unsigned long long after;      /* peal_fused_dependency */
    unsigned long long adds;       /* peal_fused_add */
    unsigned long long
        word_index; /* unsigned short: by word of a packed work item, that of the launch */
    unsigned long long epochs;  /* unsigned, by block or worker, epoch_words apart */
    unsigned long long control; /* peal_device_control */
    unsigned long long stop;    /* device word: non-zero ends the run after a round; 0: none */
    long long rounds;
    unsigned item_words, item_count, kind_count;
    unsigned epoch_words;
    unsigned first; /* epoch of all blocks at the begin; cyclic, so no launch has 2^30 work items */
    unsigned begin, grid; /* the rank's blocks: begin, begin + 1, ..., `grid` of them */
    peal_fused_tickets tickets;
} peal_fused;

#endif
