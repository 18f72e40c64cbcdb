/* The schedule: everything one rank does in a plan, as plain data. Made by scheduler/, executed by
 * backends/.
 *
 * A schedule is three sections (setup, one iteration of the outermost loop, finish) of ops in the
 * *walk order*: a linear extension of the sequential dependences. LOOP and IF ops open a region
 * that their END closes. Every worker or lane walks the same list, skips what is not its own and
 * keeps its own counters, so the state of a walk (loop counters, how often each op was passed,
 * which storage each array names after swaps) is never shared.
 *
 * Dependences. Op B with dependence on op A: a tile of B may run once the tiles of A that `range`
 * maps it to have finished their latest instance that the walk has passed before B (`lag` 0) or the
 * one before that (`lag` 1). An instance that the walk has not passed yet does not count, so first
 * iterations need no special case. An executor may wait for more than that, never for less.
 *
 * Messages. A channel is one end of a message statement with one peer. Message m of a channel
 * (counted from 1 by the walk) has flag value peal_flag_value(channel, m); WAIT is the cyclic >= of
 * 64-bit words. Flags lie in the receiver's segment, credits in the sender's: a WRITE of either is
 * a store of the release kind, a WAIT a load of the acquire kind. A sender with `credit_offset >=
 * 0` waits before message m for the credit of m - slots.
 *
 * Everything lies in the schedule's arena. Indexes refer to the tables of peal_schedule. */
#ifndef PEAL_PLUGIN_SCHEDULE_H
#define PEAL_PLUGIN_SCHEDULE_H

#include <peal/plugin/graph.h>
#include <peal/plugin/machine.h>

/* Where the elements of one array of one rank lie. Element p of `stored` is at
 * offset + sum((p[k] - stored.lo[k]) * stride[k]) * bytes of the type. */
typedef struct peal_layout {
    peal_box part;             /* my part, without ghost points; buffers: all */
    peal_box own;              /* part and the ghost points that belong to me */
    peal_box stored;           /* own and halo */
    int64_t stride[PEAL_AXES]; /* elements; stride[0] is 1 */
    int64_t bytes;             /* of stored */
    int64_t offset;            /* in the rank's segment; -1: the caller lends the memory */
} peal_layout;

/* An array of the graph, or a hidden one that a pass has added (partials, gathered contributions).
 * The first graph->array_count are those of the graph, with the same index. */
typedef struct peal_schedule_array {
    const char *name;
    peal_type type;
    peal_layout layout;
    int swap_group; /* arrays that swaps may permute share a number >= 0; -1: never swapped */
    bool hidden;
    bool has_components;  /* kernels address it by PEAL_C, not by PEAL_AT */
    bool defined;         /* its own points are defined after a run: compared by --verify */
    const void *constant; /* initial contents, layout.bytes of them; NULL: zero */
    void *lent;           /* the caller's memory, when layout.offset is -1 */
} peal_schedule_array;

/* One box of a task, cut into tiles. Tile (i0, i1, ...) has number first + i0 + count[0] * (i1 +
 * count[1] * ...) and covers box.lo + i * extent up to box.lo + (i + 1) * extent, cut at box.hi. */
typedef struct peal_tiling {
    peal_box box;
    int64_t extent[PEAL_AXES];
    int64_t count[PEAL_AXES];
    int64_t first;
} peal_tiling;

/* What a tile [lo, hi) of the box touches along one axis of an array: [floor(lo * num / den) + low,
 * ceil(hi * num / den) + high), or, if fixed, [low, high). */
typedef struct peal_reach_axis {
    bool fixed;
    int32_t num, den;
    int64_t low, high;
} peal_reach_axis;

typedef struct peal_reach {
    peal_reach_axis axis[PEAL_AXES];
} peal_reach;

typedef struct peal_task_access {
    int array;
    peal_access_mode mode;
    int reach_count; /* the union of these is touched; star has one an axis */
    const peal_reach *reach;
    int64_t per_tile;    /* > 0: elements [k * per_tile, (k + 1) * per_tile) for tile k; the view is
                            shifted */
    bool stale_is_meant; /* the spec says so of halo points that it reads */
} peal_task_access;

typedef struct peal_task_reduction {
    int array;    /* the buffer of one element that gets the result */
    int partials; /* hidden array: one element a tile */
    peal_combine combine;
} peal_task_reduction;

typedef enum peal_task_kind {
    PEAL_TASK_KERNEL,  /* the user's */
    PEAL_TASK_FOLD,    /* array = fold of partials[0 .. contributions) in the tile tree; one tile */
    PEAL_TASK_COMBINE, /* array[lo .. hi) = fold over contributions rows of gather, in the rank
                          tree; one tile */
    PEAL_TASK_SET,     /* array[0] = value */
    PEAL_TASK_PRINT,   /* a row of the run's table; on rank 0 */
    PEAL_TASK_LOAD,
    PEAL_TASK_SAVE,
    PEAL_TASK_DECIDE /* verdict of a LOOP's until or of an IF's run-time condition: decision slot =
                        value */
} peal_task_kind;

/* A task on this rank. The fold trees: binary, over [0, n) split at the largest power of two below
 * n. */
typedef struct peal_schedule_task {
    peal_task_kind kind;
    const char *name;
    const char *kernel;
    peal_function function;        /* the application's, instead of a kernel: on the host */
    void *cuda_function;           /* on a GPU: launched with the call by value */
    peal_enqueue_function enqueue; /* on a GPU: puts work onto a stream */
    void *user;
    int cuda_threads; /* of a block of cuda_function */
    peal_source source;
    int statement;
    const peal_tiling *tiling;
    int tiling_count;
    int64_t tile_count;
    bool mergeable; /* neighbouring tiles may be run by one call where no partials are wanted: the
                       dependency grain and the loop tile are two numbers */
    const peal_expr *count; /* how many points of the one box [0, m) a run visits: what a tile has
                               beyond is cut off, and a tile without any has the partials of no
                               tiles. Below 0 or above m: PEAL_E_COUNT_OUT_OF_RANGE. NULL: all */
    const peal_task_access *access; /* kernels: read, update, write in listed order */
    int access_count;
    bool has_components; /* of an array that it accesses */
    const peal_task_reduction *reduction;
    int reduction_count;
    const peal_expr
        *needed; /* static condition under which anybody reads the reductions; NULL: always */
    const peal_expr *const *argument;
    bool *argument_is_real;
    int argument_count;
    /* the built-in kinds */
    int array;             /* FOLD, COMBINE, SET, LOAD, SAVE: target */
    int gather;            /* FOLD: partials; COMBINE: row k holds [lo, hi) of contributor k */
    int64_t lo, hi;        /* COMBINE */
    int64_t contributions; /* FOLD, COMBINE */
    bool reported;         /* FOLD, COMBINE: the loop does nothing with the result but print it */
    peal_combine combine;
    const peal_expr *value;      /* SET, DECIDE */
    int decision;                /* DECIDE: decision slot */
    const peal_print_item *item; /* PRINT */
    int item_count;
    const char *file; /* LOAD, SAVE: template */
    int64_t
        file_shape[PEAL_AXES];  /* LOAD, SAVE: the global array, x first (of a buffer: its own) */
    int64_t file_lo[PEAL_AXES]; /* coordinate of the file's first element on each axis */
} peal_schedule_task;

/* A part of a message: a box of an array that goes from sender to receiver. */
typedef struct peal_piece {
    int array;
    int target_array; /* at the receiver; differs for hidden arrays, and where send and recv name
                         other arrays */
    peal_box source;  /* in the sender's coordinates */
    int64_t target[PEAL_AXES];        /* first point in the receiver's coordinates */
    int64_t target_extent[PEAL_AXES]; /* as many points as source has, in the same order (x first);
                                         the same extents unless an explicit send and recv differ in
                                         shape (then staged) */
    bool counted; /* of its elements only as many as the piece before, an integer, says: below 0 or
                     above them all, PEAL_E_COUNT_OUT_OF_RANGE. Neither piece is direct. What a SEND
                     copies beyond does not matter, what lies beyond in an UNPACK's target stays as
                     it is */
    bool direct;  /* stored straight into the receiver's array; else staged */
    int64_t
        staging; /* offset within the message's staging slot: the source's points, dense, x first */
    int64_t bytes;
} peal_piece;

typedef struct peal_channel {
    bool outgoing;
    int peer;       /* rank */
    int peer_index; /* into peers */
    peal_transport_kind transport;
    int statement;
    bool ahead;       /* incoming: the receive is written before the send */
    const char *edge; /* printed name: "exchange an@14 [0,-1] 1->0" */
    peal_source source;
    const peal_piece *piece;
    int piece_count;
    int staged_count;       /* how many pieces are staged; 0: no unpacking, no staging memory */
    int64_t staging_bytes;  /* of one slot */
    int64_t staging_offset; /* of slot 0, in the receiver's segment */
    int slots;              /* message m uses slot m % slots */
    int64_t flag_offset;    /* in the receiver's segment */
    int64_t credit_offset;  /* in the sender's segment; -1: no credit is needed */
    const char *credit_why; /* it is needed, or not: for people */
    int64_t message_bytes;
    uint64_t quantum; /* 2^64 / P */
} peal_channel;

/* What a schedule prints: "self", "shm", "p2p" with its path. */
const char *peal_channel_transport(const peal_machine *machine, const peal_channel *channel);

/* Flag value of message m (from 1), or of the credit that says message m has been consumed. */
static inline uint64_t peal_flag_value(const peal_channel *channel, uint64_t message)
{
    return message * channel->quantum;
}

/* A rank that this one exchanges messages with, itself included if it does: where its arrays lie.
 */
typedef struct peal_peer {
    int rank;
    int process;
    const peal_layout *layout; /* by array */
    int64_t segment_bytes;
    int64_t mailbox_offset; /* as in its schedule */
} peal_peer;

typedef enum peal_op_kind {
    PEAL_OP_LAUNCH, /* tiles `range` of `task` */
    PEAL_OP_COPY,   /* see peal_copy_kind */
    PEAL_OP_WRITE,  /* flag of `channel` (outgoing), or its credit (incoming) */
    PEAL_OP_WAIT,   /* flag of `channel` (incoming), or its credit (outgoing) */
    PEAL_OP_FENCE,
    PEAL_OP_SWAP, /* exchanges the storages that arrays first and second name, in the walk's state
                   */
    PEAL_OP_LOOP, /* region up to `end`: loops[loop] */
    PEAL_OP_IF,   /* region up to `end`: condition static, or decision slot >= 0 */
    PEAL_OP_END
} peal_op_kind;

typedef enum peal_copy_kind {
    PEAL_COPY_SEND, /* all pieces of `channel`: direct ones into the peer's arrays, others into its
                       staging */
    PEAL_COPY_UNPACK, /* the staged pieces of `channel` into my arrays */
    PEAL_COPY_LOCAL   /* pieces piece_first .. of my own arrays (images of my own points) */
} peal_copy_kind;

/* Scope and agents of a WRITE, WAIT or FENCE. */
typedef enum peal_op_scope { PEAL_SCOPE_BLOCK, PEAL_SCOPE_GPU, PEAL_SCOPE_SYS } peal_op_scope;
typedef enum peal_agent {
    PEAL_AGENT_THREADS,
    PEAL_AGENT_BULK_COPY,
    PEAL_AGENT_COPY_ENGINE,
    PEAL_AGENT_HOST,
    PEAL_AGENT_NIC
} peal_agent;

/* A box of tile indexes of one tiling of a task. */
typedef struct peal_tile_range {
    int tiling;
    int64_t lo[PEAL_AXES], hi[PEAL_AXES];
} peal_tile_range;

/* Which tiles of A a tile j of B depends on, along one axis of A's tiling:
 * i from floor((j * step + low) / divisor) to floor((j * step + high) / divisor), cut to [first,
 * last]. j is B's tile index along axis b_axis of its tiling (b_axis < 0: step is 0). */
typedef struct peal_map_axis {
    int b_axis;
    int64_t step, low, high, divisor;
    int64_t first, last;
} peal_map_axis;

typedef struct peal_dependence {
    int op;       /* A */
    int lag;      /* 0 or 1 */
    bool all;     /* every tile of B on every tile of A; the maps are not used */
    int b_tiling; /* applies to tiles of B in this tiling; -1: any */
    int a_tiling;
    peal_map_axis map[PEAL_AXES];
} peal_dependence;

typedef struct peal_op {
    peal_op_kind kind;
    int statement; /* -1: none */
    int event; /* serial: ops of one event are contiguous and share this; sends and receives of an
                  exchange differ */
    int lane; /* stream: the lane; fused and sync: the worker is lane % workers (LAUNCH of one tile,
                 and all else) */
    const char *label;
    peal_source source;
    int end;           /* LOOP, IF: index of the END; END: index of its LOOP or IF */
    int loop;          /* LOOP */
    int task;          /* LAUNCH */
    bool border, rest; /* LAUNCH: tiles that messages meet; the task's others, its next LAUNCH */
    const peal_tile_range *range;
    int range_count;
    int channel; /* COPY, WRITE, WAIT; -1: none */
    bool credit; /* WRITE, WAIT: the channel's credit, not its flag */
    peal_copy_kind copy;
    const peal_piece *piece; /* COPY LOCAL */
    int piece_count;
    peal_op_scope scope;
    peal_agent from, to;        /* WRITE: whose stores it releases; WAIT: who reads after it */
    int first, second;          /* SWAP */
    const peal_expr *condition; /* IF: static condition; NULL: decision */
    int decision;               /* IF: decision slot; -1 */
    const peal_dependence *dependence;
    int dependence_count;
} peal_op;

typedef struct peal_schedule_loop {
    int depth;               /* index of its counter */
    const peal_expr *repeat; /* evaluated with counters at entry */
    bool until;              /* a DECIDE op at its end computes `decision` */
    int decision;
    const peal_expr
        *every; /* NULL: 1. The verdict is evaluated after iteration k when (k + 1) % every == 0 */
    const peal_expr *lag; /* NULL: 0 */
    const char *counter;
} peal_schedule_loop;

typedef struct peal_section {
    int first, end; /* ops [first, end) */
} peal_section;

typedef struct peal_schedule {
    const peal_graph_data *graph;
    const peal_machine *machine;
    peal_mode mode;
    int rank;
    int rank_position[PEAL_RANK_AXES];
    int rank_dims[PEAL_RANK_AXES];
    int workers; /* threads the schedule was made for */
    int lanes;   /* stream: lanes in use */
    const peal_schedule_array *array;
    int array_count;
    const peal_schedule_task *task;
    int task_count;
    const peal_channel *channel;
    int channel_count;
    const peal_peer *peer;
    int peer_count;
    const peal_schedule_loop *loop;
    int loop_count;
    int loop_depth; /* greatest depth + 1: counters a walk keeps */
    int decision_count;
    const peal_op *op;
    int op_count;
    peal_section setup, step, finish; /* step: the body of the outermost loop */
    peal_schedule_loop outer;         /* repeat, until, every, lag of the outermost loop */
    int64_t segment_bytes;            /* arrays, staging, flags and credits of this rank */
    int64_t used_bytes;               /* of these: nobody touches what lies behind them */
    int64_t mailbox_offset;           /* arrays end, the others begin: those of channels by
                                         PEAL_TRANSPORT_SHM are in host memory on a device */
    uint64_t hash; /* of the graph and of what all ranks must agree on; equal on all ranks */
} peal_schedule;

#endif
