/* What the persistent kernel of mode fused is launched with. The host's C and the device's C++
 * share this file, so it includes no header of either.
 *
 * Each rank has a list of *work items*, each of them a launch that could be a grid of its own
 * (launch.h). Some of the kernel's blocks belong to the rank, numbered from 0; they run the list
 * round after round. A *partition* is the part of a work item that one block runs: some blocks of
 * that grid, and the list of the rank's blocks that have to be through with all older work items
 * before. A block's *epoch*, a word in device memory, counts the work items that it is through
 * with. Where only some older work items of another block matter, the partition says by how many
 * that block may be *behind*.
 *
 * With tickets (ticket_walker.h) partitions belong to *workers*, of which there may be more than
 * blocks: each block takes one partition after the other from a list, whichever worker's it is. */
#ifndef PEAL_CUDA_DEVICE_FUSED_LAUNCH_H
#define PEAL_CUDA_DEVICE_FUSED_LAUNCH_H

enum {
    PEAL_FUSED_THREADS = 256,
    PEAL_FUSED_BLOCKS = 3,   /* blocks that fit on an SM, if there is work for so many */
    PEAL_FUSED_ITEMS = 2048, /* of a list, and the kinds of them that there may be; */
    PEAL_FUSED_ITEM_KINDS = 256,
    PEAL_FUSED_WIDE_ITEMS = 4096, /* the same of a wide list, of which a block keeps more */
    PEAL_FUSED_WIDE_KINDS = 1024,
    PEAL_FUSED_TURNS_MOST = 64,       /* of a list of work items, until its numbers come round */
    PEAL_FUSED_DEPENDENCY_LIST = 254, /* blocks that a partition can name, beside a range */
    PEAL_FUSED_KINDS = 32,            /* kinds whose partitions a block keeps in shared memory, */
    PEAL_FUSED_DEPENDENCIES = 768,    /* with so many dependencies, */
    PEAL_FUSED_ADDS = 32,             /* and so many additions to flags */
    PEAL_FUSED_RANKS_MOST = 26,       /* ranks of a kernel: its parameters are 4 KiB at most */
    PEAL_FUSED_SHAPES = 1 << 16,      /* function numbers from here on are those of shapes */
    PEAL_FUSED_SPANS = 96,            /* of a launch with one rank; with several each has one */
    PEAL_FUSED_COUNTERS = 8, /* of a work item: blocks that have arrived, then by box tiles taken */
    PEAL_TICKET_BEGIN = 0xffff /* a ticket with this in the place of its worker begins a round */
};

/* Which function runs a work item, of which kind it is, and how many blocks its grid would have.
 * alone: it has one block, and no other block adds to its flags, so the dispatcher waits and adds
 * for it. back: partitions are run from their end. */
typedef struct peal_fused_head {
    unsigned function, kind, blocks;
    unsigned short alone, back;
} peal_fused_head;

/* `count` blocks first, first + stride, ... of a work item. waits: bits, which of the work item's
 * waits they need. after: where their dependencies begin, beside which they depend on a range of
 * neighbours. adds: what all of them together add to flags, where the dispatcher adds. *_kept: used
 * by the device alone. */
typedef struct peal_fused_partition {
    unsigned first, count, stride, waits;
    unsigned after, adds;
    unsigned short after_count, add_count;
    unsigned short after_kept, adds_kept;
    unsigned short range_first, range_count, range_behind, reserved;
} peal_fused_partition;

/* What lies behind each launch of a bundle (bundle.h): the partition is of all its blocks.
 * next_whole: the function of the next one reads more of its launch than shapes do. */
typedef struct peal_bundle_rest {
    peal_fused_head head;
    peal_fused_partition partition;
    unsigned long long next_whole, unused; /* items are copied by 16 bytes */
} peal_bundle_rest;

/* A block or worker that a partition waits for, and by how many work items it may be behind. */
typedef struct peal_fused_dependency {
    unsigned short block, behind;
} peal_fused_dependency;

typedef struct peal_fused_add {
    unsigned long long word, value;
} peal_fused_add;

/* A partition that has work: its work item, that one's kind, and its worker. next: the next work
 * item, counted from the begin of this round, in which that worker has work; it is through with all
 * before. */
typedef struct peal_fused_ticket {
    unsigned short item, kind, worker, next;
} peal_fused_ticket;

/* Words that all blocks of a rank count in. Between launches all but `begun` are 0. */
typedef struct peal_fused_words {
    unsigned long long taken; /* how many tickets of the launch have been taken */
    unsigned begun; /* of the latest round that has begun: epoch of its first work item, + 1 */
    unsigned over;  /* 1: the run has ended before that round */
    unsigned left;  /* blocks that have ended */
} peal_fused_words;

/* Each round of a launch has `count` tickets, whose work items begin with `item`. */
typedef struct peal_fused_tickets {
    unsigned long long list;  /* peal_fused_ticket; the first begins the round */
    unsigned long long first; /* unsigned short, by worker: `next` in front of the round */
    unsigned long long words; /* peal_fused_words */
    unsigned count, item, workers, rounds;
} peal_fused_tickets;

/* Without tickets: `items` work items (0: there is no such span) of the section [begin, end) of the
 * list, from `first` on; behind the section's last one its first one comes again, as a new round.
 * asks: the host is asked whether the run is over when a round of it begins. turn: of the first
 * one. Each round is a turn, of as many as the kernel is compiled for (peal_fused_grown_). */
typedef struct peal_fused_span {
    unsigned items;
    unsigned short first, begin, end;
    unsigned char asks, turn;
} peal_fused_span;

/* In turn t, t times its growth is added to a word of a packed launch. The growth is a multiple
 * of 4. What is set of its last two bits, if anything, says that t comes round sooner: after 2, 4
 * or 8 turns, as where numbers choose one of so many buffers. */
enum { PEAL_FUSED_GROWTH_ROUNDS = 3 };

/* What one rank gives the kernel, whose parameter is an array of these. */
typedef struct peal_fused {
    unsigned long long heads;      /* peal_fused_head, by work item */
    unsigned long long items;      /* packed launches, item_words apart; behind them, if there are
                                      several turns, in the same way: the growth of each word */
    unsigned long long partitions; /* peal_fused_partition, by kind, then by block or worker */
    unsigned long long after;      /* peal_fused_dependency */
    unsigned long long adds;       /* peal_fused_add */
    unsigned long long
        word_index; /* unsigned short: by word of a packed work item, that of the launch */
    unsigned long long epochs;  /* unsigned, by block or worker, epoch_words apart */
    unsigned long long control; /* peal_device_control */
    unsigned long long stop;    /* a word that ends the run after a round if it is not 0; 0: none */
    peal_fused_span span;       /* the first of the launch */
    unsigned item_words, item_count, kind_count;
    unsigned epoch_words;
    unsigned first; /* epoch of all blocks at the begin; wraps, so no launch has 2^30 work items */
    unsigned begin, grid; /* the rank's blocks: begin, begin + 1, ..., `grid` of them */
    peal_fused_tickets tickets;
} peal_fused;

#endif
