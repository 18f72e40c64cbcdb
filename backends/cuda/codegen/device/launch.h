/* What a kernel that peal generates is launched with: shared by the host's C and the device's C++,
 * so it names no header of either.
 *
 * A *launch* is what one grid does. Its blocks wait for the words that their box needs, run tiles
 * of a task (or copy pieces), and then send. Either each block sends its own part, and the flag is
 * a sum of parts; or the last block of the sending boxes to arrive copies the pieces of messages
 * and stores the flags. So WAIT, LAUNCH, COPY and WRITE that follow each other on a lane can be one
 * node. Addresses are 64-bit integers; 0: none. */
#ifndef PEAL_CUDA_DEVICE_LAUNCH_H
#define PEAL_CUDA_DEVICE_LAUNCH_H

enum {
    PEAL_LAUNCH_VIEWS = 16,
    PEAL_LAUNCH_PARTIALS = 8,
    PEAL_LAUNCH_FOLDED = 8192, /* partials that the last block of a task folds, at most */
    PEAL_LAUNCH_ROWS = 16,     /* contributions of a piggybacked reduction, at most */
    PEAL_LAUNCH_ARGUMENTS = 16,
    PEAL_LAUNCH_ELEMENTS = 16,
    PEAL_LAUNCH_COUNTERS = 6,
    PEAL_LAUNCH_BOXES = 6,
    PEAL_LAUNCH_WAITS = 28,
    PEAL_LAUNCH_WRITES = 28,
    PEAL_LAUNCH_REMOTE_STORES = 28,
    PEAL_LAUNCH_LISTS = 28,
    PEAL_LAUNCH_BASES = 60
};

/* Kinds of whole tiles (loops.h): of two axes, of three, and *flat* ones of three, which tasks have
 * that read nothing beside a point along z. Their extents, and how many neighbouring columns a
 * thread has in tiles of two axes and in flat ones. In a *deep* one (deep.h) a thread has one
 * point, and threads may have the same. */
enum { PEAL_WHOLE_2 = 2, PEAL_WHOLE_3 = 3, PEAL_WHOLE_FLAT = 4, PEAL_WHOLE_DEEP = 5 };
enum {
    PEAL_WHOLE_2_X = 128,
    PEAL_WHOLE_2_Y = 16,
    PEAL_WHOLE_3_X = 64,
    PEAL_WHOLE_3_Y = 4,
    PEAL_WHOLE_3_Z = 8,
    PEAL_WHOLE_FLAT_X = 64,
    PEAL_WHOLE_FLAT_Y = 8,
    PEAL_WHOLE_FLAT_Z = 2,
    PEAL_WHOLE_COLUMNS = 2
};

/* Pairs are two neighbouring elements that one access can take. Aligned: in all rows of all fields,
 * whole tiles begin with the first element of a pair; odd: with the second one. */
enum { PEAL_UNALIGNED, PEAL_ALIGNED, PEAL_ALIGNED_ODD };

/* A box of points, cut into device tiles: block `first + i0 + count[0] * (i1 + ...)` runs the tile
 * [lo + i * extent, ...), cut at hi. Where device tiles are tiles of the schedule, the number of
 * one is tile + sum(i[k] * tile_step[k]). The first tiles along x are narrower by `lead` points
 * (less than an extent), so that the others begin aligned. */
typedef struct peal_launch_box {
    int lo[4], hi[4], extent[4];
    unsigned count[4];
    unsigned first, blocks; /* [first, first + blocks) of the grid */
    unsigned bit;           /* 1 << its index */
    unsigned waits;         /* bit i: needs wait[i] */
    unsigned sends;         /* its blocks have a part in messages or images: see below; 0: none */
    long long tile;
    unsigned tile_step[4];
    int lead;
    int steps; /* of a round (deep.h) */
} peal_launch_box;

/* What blocks of a box have to send: a part of a message, or only copies within the rank's own
 * memory, for which no flag waits. */
enum { PEAL_SENDS_COUNTED = 1, PEAL_SENDS_IMAGES = 2 };

typedef struct peal_launch_wait {
    unsigned long long word, value; /* cyclic >= */
    int op;                         /* of the schedule, for the report of a wait that failed */
    int reserved;
} peal_launch_wait;

/* A flag. Either one block stores it when all are done. Or it is a sum, to which each block of
 * `boxes` adds `part`, and block `first` adds `rest` as well, so that it has its value when the
 * last block has added. part 0: there is one block, which stores the value. */
typedef struct peal_launch_write {
    unsigned long long word, value;
    unsigned long long part, rest;
    unsigned boxes, first;
} peal_launch_write;

/* A box of points that are also stored into a message. Each block of `boxes` copies the points of
 * its tile; tiles at the rim also copy the points outside of `inner`, which no tile has. Point (x,
 * y, z) goes to target + x * bytes + y * step[0] + z * step[1]. */
typedef struct peal_launch_remote_store {
    unsigned long long target;
    long long step[2];
    int lo[3], hi[3], inner_lo[3], inner_hi[3];
    unsigned boxes;
    unsigned short view, bytes;
} peal_launch_remote_store;

/* A strided box to copy, in device memory. Unit e of run (i0, i1, i2) lies at base[source] +
 * source_offset + e * unit + sum(i[k] * source_step[k]). Pieces of one list are numbered through:
 * piece p has units [begin, begin + units), less than 2^31 of them. A counted piece is one run,
 * whose units are elements; its steps say how many of them are copied (PEAL_COUNT_...). */
typedef struct peal_device_piece {
    int source, target; /* index into launch.base, from the list's `base` on */
    int unit;           /* 1, 2, 4, 8 or 16 bytes: alignment and length allow it */
    unsigned run;       /* units of a contiguous run on both sides */
    unsigned count[3];  /* runs along up to three outer axes */
    unsigned counted;   /* bytes of the integer that says how many; 0: all are copied */
    long long source_offset, target_offset;
    long long source_step[3], target_step[3]; /* bytes */
    long long begin, units;
} peal_device_piece;

/* The steps of a counted piece. In source_step: the offset of the integer from
 * base[target_step[PEAL_COUNT_BASE]]; units that pieces before have of the same block; units of the
 * block at most. In target_step: that base, and the op of the schedule. */
enum { PEAL_COUNT_OFFSET, PEAL_COUNT_BEFORE, PEAL_COUNT_MOST };
enum { PEAL_COUNT_BASE, PEAL_COUNT_OP };

/* The pieces of one COPY: peal_device_piece[count] at `piece`. Lists of one launch are numbered
 * through: list l ends at unit `end` of the launch. */
typedef struct peal_launch_list {
    unsigned long long piece;
    long long end; /* units of the lists before and of this one */
    int count, base;
} peal_launch_list;

/* A FOLD that the last block of the launch does: `count` partials, from partial[] on, to
 * view[view]. count 0: none. Messages with results belong to the box `fold_bit`, which has no
 * blocks; their flags are stored when all results are there. */
typedef struct peal_launch_fold {
    int count, view;
} peal_launch_fold;

/* A COMBINE that one more block of the launch does, the one of box `bit` (0: none): `rows`
 * contributions of `width` elements each, combined as the task's reduction `reduction` says. */
typedef struct peal_launch_piggyback {
    unsigned long long result, row[PEAL_LAUNCH_ROWS];
    int rows, width;
    int reduction;
    unsigned bit;
} peal_launch_piggyback;

/* What the device reports: a wait that ran out of time; an expression without a value; a count
 * `seen` that is not in [0, expected]; a value `seen` that the type of SET's buffer cannot hold. */
enum {
    PEAL_FAILED_WAIT = 1,
    PEAL_FAILED_EXPRESSION = 2,
    PEAL_FAILED_COUNT = 3,
    PEAL_FAILED_VALUE = 4
};

enum { PEAL_CLAIMED = 1, PEAL_LET_GO = 2 };

/* In mapped host memory, one for each rank: how a run ends early, and what the host reads while it
 * runs. */
typedef struct peal_device_control {
    unsigned abort;  /* written by the host: every wait gives up, nobody writes a flag any more */
    unsigned failed; /* written by the device, once: kind to seen are valid */
    int kind;        /* PEAL_FAILED_... */
    int op;          /* of the schedule */
    int wait;
    unsigned claimed; /* PEAL_CLAIMED: by the thread of the device that fills them; PEAL_LET_GO: by
                         the host, once no stream that goes on can do harm */
    long long step;
    unsigned long long expected, seen;
    unsigned long long steps_done; /* iterations of the outermost loop that have finished */
    unsigned long long wait_begun, wait_ended; /* embedded: waits by memory operation (embed.c) */
} peal_device_control;

/* A value of a row that PRINT stores: kind as peal_value_kind; texts are the host's. */
typedef struct peal_device_item {
    int kind, reserved;
    union {
        long long integer; /* booleans too */
        double real;
    } value;
} peal_device_item;

typedef struct peal_launch {
    unsigned long long control; /* peal_device_control */
    unsigned long long stop;    /* device word; non-zero: this launch does nothing; 0: none */
    unsigned long long skip;   /* device word; non-zero: this launch does nothing but wait and store
                                  its flags; 0: none */
    unsigned long long step;   /* device word: value of counter[0] at the start of this graph; 0:
                                  counter[0] is absolute */
    unsigned long long budget; /* ns that a wait may take; 0: any */
    unsigned long long arrived; /* device words, 0 between launches: blocks of sending boxes; at
                                   word 2, of a launch that folds: all */
    long long units;            /* of all lists */
    int list_count;
    int box_count, wait_count, write_count, remote_store_count;
    int adds;             /* flags are sums; else the last block of the senders stores them */
    unsigned senders;     /* blocks that are counted before flags are stored (and, in tasks, before
                             pieces are copied) */
    unsigned evaluate;    /* bit i: argument i is computed on the device from elements and counters;
                             bit PEAL_LAUNCH_ARGUMENTS: the count of the task's points, too */
    int op;               /* first op of the schedule in this launch, for reports */
    int aligned;          /* PEAL_ALIGNED or _ODD: tiles that can be are run as whole ones, in
                             communication-free kernels and in mode fused */
    long long tile_count; /* of the task */
    long long counter[PEAL_LAUNCH_COUNTERS];
    unsigned long long view[PEAL_LAUNCH_VIEWS];       /* address of the point with coordinates 0 */
    long long stride[PEAL_LAUNCH_VIEWS][3];           /* elements, along y, z and the fourth axis */
    long long shift[PEAL_LAUNCH_VIEWS];               /* per_tile elements; 0 */
    unsigned long long partial[PEAL_LAUNCH_PARTIALS]; /* of tile 0; 0: nobody reads it */
    unsigned fold_bit, fold_waits; /* box of the folds' messages, and its waits; 0: no fold */
    peal_launch_fold fold[PEAL_LAUNCH_PARTIALS];
    peal_launch_piggyback piggyback;
    union {
        long long integer;
        double real;
    } argument[PEAL_LAUNCH_ARGUMENTS];
    unsigned long long
        element[PEAL_LAUNCH_ELEMENTS];          /* addresses of scalars that expressions use */
    unsigned long long base[PEAL_LAUNCH_BASES]; /* of pieces */
    peal_launch_list list[PEAL_LAUNCH_LISTS];
    peal_launch_box box[PEAL_LAUNCH_BOXES];
    peal_launch_wait wait[PEAL_LAUNCH_WAITS];
    peal_launch_write write[PEAL_LAUNCH_WRITES];
    peal_launch_remote_store remote_store[PEAL_LAUNCH_REMOTE_STORES];
} peal_launch;

#endif
