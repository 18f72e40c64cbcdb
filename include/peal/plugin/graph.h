/* The graph: what every rank does, as plain data, names resolved, nothing evaluated for a rank yet.
 *
 * Made by dsl/ (YAML reader and C builder), read by scheduler/. Everything lies in the graph's
 * arena and is immutable once `dsl` has handed it over. Indexes refer to the tables of peal_graph.
 * SPEC gives the meaning. */
#ifndef PEAL_PLUGIN_GRAPH_H
#define PEAL_PLUGIN_GRAPH_H

#include <peal/call.h>
#include <peal/enqueue.h>
#include <peal/status.h>
#include <peal/types.h>
#include <peal/value.h>

typedef enum peal_expr_kind {
    PEAL_EXPR_CONSTANT,   /* value */
    PEAL_EXPR_PARAM,      /* graph->params[index].value */
    PEAL_EXPR_RANK,       /* rank */
    PEAL_EXPR_RANKS,      /* ranks */
    PEAL_EXPR_RANK_AXIS,  /* rx ry rz: axis */
    PEAL_EXPR_RANKS_AXIS, /* Rx Ry Rz: axis */
    PEAL_EXPR_COUNTER, /* loop counter: index = depth of the loop, 0 for the outermost (`step`) */
    PEAL_EXPR_EXTENT,  /* u.nx: array index, axis: extent of my part */
    PEAL_EXPR_ORIGIN,  /* u.x0: array index, axis: first coordinate of my part */
    PEAL_EXPR_COUNT,   /* b.count: array index */
    PEAL_EXPR_ELEMENT, /* run-time: value of a buffer of one element: array index */
    PEAL_EXPR_OPERATOR /* op with operand[] */
} peal_expr_kind;

typedef enum peal_operator {
    PEAL_OPERATOR_NEGATE,
    PEAL_OPERATOR_NOT,
    PEAL_OPERATOR_ADD,
    PEAL_OPERATOR_SUBTRACT,
    PEAL_OPERATOR_MULTIPLY,
    PEAL_OPERATOR_DIVIDE,
    PEAL_OPERATOR_MODULO,
    PEAL_OPERATOR_EQUAL,
    PEAL_OPERATOR_UNEQUAL,
    PEAL_OPERATOR_LESS,
    PEAL_OPERATOR_LESS_EQUAL,
    PEAL_OPERATOR_GREATER,
    PEAL_OPERATOR_GREATER_EQUAL,
    PEAL_OPERATOR_AND,
    PEAL_OPERATOR_OR,
    PEAL_OPERATOR_MINIMUM,
    PEAL_OPERATOR_MAXIMUM,
    PEAL_OPERATOR_ABSOLUTE,
    PEAL_OPERATOR_SQRT,
    PEAL_OPERATOR_FLOOR,
    PEAL_OPERATOR_CEIL,
    PEAL_OPERATOR_CHOICE, /* operand 1 if operand 0 holds, else operand 2 */
    /* of values that are known before the run; all but the first two give reals */
    PEAL_OPERATOR_POWER,
    PEAL_OPERATOR_LOG2,
    PEAL_OPERATOR_SIN,
    PEAL_OPERATOR_COS,
    PEAL_OPERATOR_TAN,
    PEAL_OPERATOR_EXP,
    PEAL_OPERATOR_LOG,
    PEAL_OPERATOR_TANH
} peal_operator;

enum { PEAL_EXPR_OPERANDS = 16 /* most operands of an operator */ };

/* An expression. Integers are 64-bit, overflow is an error, `/` rounds down, `%` is never negative.
 */
typedef struct peal_expr peal_expr;
struct peal_expr {
    peal_expr_kind kind;
    peal_operator op;
    int index;
    int axis;
    int operand_count;
    peal_value value;
    const peal_expr *const *operand;
    const char *text; /* as written, of the whole expression; NULL in inner nodes */
    peal_source source;
};

/* An amount: how far on each end of each axis. NULL is 0. */
typedef struct peal_amount {
    bool given;
    const peal_expr *low[PEAL_AXES];
    const peal_expr *high[PEAL_AXES];
    peal_source source;
} peal_amount;

/* Ranges of coordinates [low, high) on the first axis_count axes. */
typedef struct peal_ranges {
    int axis_count;
    const peal_expr *low[PEAL_AXES];
    const peal_expr *high[PEAL_AXES];
    peal_source source;
} peal_ranges;

/* A direction, one step of -1, 0 or 1 an axis (missing: NULL is 0). */
typedef struct peal_direction {
    int axis_count;
    const peal_expr *step[PEAL_RANK_AXES];
    peal_source source;
} peal_direction;

/* Which points a task visits or a message carries (SPEC §4). */
typedef enum peal_points_kind {
    PEAL_POINTS_ONE,    /* absent: one point */
    PEAL_POINTS_ALL,    /* all of array */
    PEAL_POINTS_GROW,   /* array grown into its ghost points (or shrunk) by amount */
    PEAL_POINTS_RIM,    /* within amount of array's global ends */
    PEAL_POINTS_RANGES, /* ranges of array's coordinates; array < 0: local box [lo, hi) of this rank
                         */
    PEAL_POINTS_BORDER, /* what the neighbour in direction has in its halo of mine */
    PEAL_POINTS_HALO,   /* my halo points that the neighbour in direction owns */
    PEAL_POINTS_GHOST, /* of my points, those beyond the domain's end in direction; along other axes
                          all, ghost points too */
    PEAL_POINTS_COUNT  /* {count: n, max: m}: 0 .. m-1 here, the first n of them */
} peal_points_kind;

typedef enum peal_part {
    PEAL_PART_ALL,
    PEAL_PART_INTERIOR,
    PEAL_PART_BOUNDARY,
    PEAL_PART_EXTENDED
} peal_part;

typedef struct peal_points {
    peal_points_kind kind;
    int array; /* -1: none */
    peal_amount amount;
    peal_ranges ranges;
    peal_direction direction;
    peal_part part;
    peal_amount part_amount;  /* PEAL_PART_EXTENDED */
    const peal_expr *count;   /* PEAL_POINTS_COUNT */
    const peal_expr *maximum; /* PEAL_POINTS_COUNT */
    peal_source source;
} peal_points;

typedef struct peal_param {
    const char *name;
    peal_value value; /* after overrides */
    peal_source source;
} peal_param;

typedef struct peal_topology {
    bool given;
    int axis_count;
    const peal_expr *dims[PEAL_RANK_AXES]; /* NULL: auto */
    bool periodic[PEAL_RANK_AXES];
    /* By axis: 0 and the end of each part. NULL: parts are equal, but for a unit of `align` */
    const peal_expr *const *cut[PEAL_RANK_AXES];
    int cut_count[PEAL_RANK_AXES];
    peal_source source;
} peal_topology;

typedef enum peal_array_kind { PEAL_ARRAY_FIELD, PEAL_ARRAY_BUFFER } peal_array_kind;

/* Contents of a constant buffer on one rank. */
typedef struct peal_constant {
    int64_t count;
    const void *data; /* count elements of the array's type */
} peal_constant;

/* A field or a buffer. Both share one table and one name space. */
typedef struct peal_array {
    const char *name;
    peal_array_kind kind;
    peal_type type;
    peal_source source;
    /* fields */
    int axis_count;
    const peal_expr *size[PEAL_AXES];
    peal_amount halo;
    const peal_expr *align[PEAL_AXES];   /* NULL: 1 */
    const peal_expr *stagger[PEAL_AXES]; /* NULL: 0 */
    const peal_expr *coarsen[PEAL_AXES]; /* NULL: 1 */
    bool replicated;                     /* not cut: each rank owns all points */
    int components; /* values at each point, in planes: an axis behind the others that is never cut;
                       0: one, without such an axis */
    /* buffers */
    const peal_expr *count;         /* NULL: 1, unless points, file or values */
    peal_points points;             /* kind ONE: no box */
    const char *file;               /* contents of a rank: template with {rank}; NULL: none */
    const peal_expr *const *values; /* contents: value_count expressions */
    int value_count;
    bool keep;
    bool is_constant; /* file or values, and no statement writes it */
    /* embedding: the caller's memory for this rank's stored points (dense, x fastest); NULL: peal's
     * own */
    void *data;
} peal_array;

/* Of a field in memory and in files: its axes, and that of its components. */
static inline int peal_stored_axes(const peal_array *array)
{
    return array->axis_count + (array->components > 0);
}

typedef enum peal_access_mode {
    PEAL_READ_ACCESS,
    PEAL_UPDATE_ACCESS,
    PEAL_WRITE_ACCESS
} peal_access_mode;

/* What one tile touches (SPEC §5). */
typedef enum peal_footprint {
    PEAL_FOOTPRINT_TILE,
    PEAL_FOOTPRINT_GROW,   /* amount, corners included */
    PEAL_FOOTPRINT_STAR,   /* amount, along one axis at a time */
    PEAL_FOOTPRINT_RANGES, /* ranges */
    PEAL_FOOTPRINT_WHOLE,
    PEAL_FOOTPRINT_INSIDE,  /* along axes in which the task's ghost box lies outside, as many points
                               of the domain next to that end; along others the tile's */
    PEAL_FOOTPRINT_PER_TILE /* per_tile elements a tile */
} peal_footprint;

typedef struct peal_access {
    int array;
    peal_access_mode mode;
    peal_footprint footprint;
    peal_amount amount;
    peal_ranges ranges;
    const peal_expr *per_tile;
    bool stale_is_meant; /* halo points that it reads may be older than their owners' */
    peal_source source;
} peal_access;

/* A reduction of a task over its tiles, or of a statement over ranks. */
typedef struct peal_reduction {
    int array;
    peal_combine combine;
    peal_source source;
} peal_reduction;

typedef struct peal_task_statement {
    const char *kernel;     /* name of a PEAL_KERNEL; NULL with function */
    peal_function function; /* embedding: one of these instead of a kernel */
    void *cuda_function;
    peal_enqueue_function enqueue;
    void *user;
    int cuda_threads; /* of a block of cuda_function */
    peal_points box;
    bool tile_given;
    bool tile_whole;
    const peal_expr *tile[PEAL_AXES]; /* NULL: whole axis */
    const peal_access *access;        /* in the order read, update, write */
    int access_count;
    const peal_reduction *reduction;
    int reduction_count;
    const peal_expr *const *argument;
    int argument_count;
    bool independent;
} peal_task_statement;

/* One field of an exchange: all of its halo, or less. */
typedef struct peal_exchange_item {
    int array;
    int into; /* of a copy: the field that gets the values of the points that a rank owns; -1 */
    peal_footprint footprint; /* WHOLE: all of the halo; GROW; STAR */
    peal_amount amount;
    peal_source source;
} peal_exchange_item;

typedef enum peal_peer_kind {
    PEAL_PEER_DIRECTION,
    PEAL_PEER_RANK,  /* rank expression */
    PEAL_PEER_LIST,  /* constant buffer of ranks */
    PEAL_PEER_RANKS, /* rank expressions */
    PEAL_PEER_ALL,
    PEAL_PEER_ALONG /* every rank of my row along axis, me included */
} peal_peer_kind;

typedef struct peal_peers {
    peal_peer_kind kind;
    peal_direction direction;
    const peal_expr *rank;
    const peal_expr *const *ranks; /* PEAL_PEER_RANKS */
    int rank_count;
    int list;
    int axis;
    peal_source source;
} peal_peers;

/* `send` or `recv`. */
typedef struct peal_message_statement {
    peal_points points; /* array and which of its points: ALL (buffers too), RANGES, BORDER, HALO */
    peal_peers peers;
    const peal_expr *tag;    /* NULL: 0 */
    int offsets;             /* constant buffer of offsets; -1: none */
    const peal_expr *offset; /* a number m: peer k has k*m ..; NULL: none */
    int count;               /* run-time counts: buffer, an element a peer; -1: all of the block */
} peal_message_statement;

/* `allreduce` and `reduce` over ranks. */
typedef struct peal_rank_reduction {
    const peal_reduction *item;
    int item_count;
    const peal_expr *root; /* NULL: everyone gets the result */
    int along;             /* axis, or -1: all ranks */
} peal_rank_reduction;

typedef struct peal_print_item {
    const char *name;
    const peal_expr *value;
} peal_print_item;

typedef struct peal_statement peal_statement;

typedef struct peal_body {
    const peal_statement *const *statement;
    int count;
} peal_body;

/* A loop: `repeat` at most, `until` ends it after an iteration. */
typedef struct peal_loop {
    const char *counter;     /* name of the counter; "step" for the outermost */
    int depth;               /* 0 for the outermost: the index of COUNTER expressions */
    const peal_expr *repeat; /* NULL: 1 */
    const peal_expr *until;  /* NULL: never */
    const peal_expr *every;  /* NULL: 1 */
    const peal_expr *lag;    /* NULL: 0 */
    peal_body body;
} peal_loop;

typedef enum peal_statement_kind {
    PEAL_STATEMENT_TASK,
    PEAL_STATEMENT_EXCHANGE,
    PEAL_STATEMENT_SEND,
    PEAL_STATEMENT_RECV,
    PEAL_STATEMENT_REDUCE, /* reduce and allreduce over ranks */
    PEAL_STATEMENT_SWAP,
    PEAL_STATEMENT_SET,
    PEAL_STATEMENT_PRINT,
    PEAL_STATEMENT_LOAD,
    PEAL_STATEMENT_SAVE,
    PEAL_STATEMENT_REPEAT
} peal_statement_kind;

struct peal_statement {
    peal_statement_kind kind;
    int id;           /* number in program order over setup, step, finish; nested ones count too */
    const char *name; /* given or made up ("relax", "exchange an"), never NULL */
    peal_source source;
    const peal_expr *when; /* NULL: always */
    const int *after;      /* ids of statements that must be complete before this one starts */
    int after_count;
    union {
        peal_task_statement task;
        struct {
            const peal_exchange_item *item;
            int item_count;
        } exchange;
        peal_message_statement message; /* SEND, RECV */
        peal_rank_reduction reduce;
        struct {
            int first, second; /* arrays */
        } swap;
        struct {
            int array;
            const peal_expr *value;
        } set;
        struct {
            const peal_print_item *item;
            int item_count;
        } print;
        struct {
            int array;
            const char *file; /* template: {rank}, {step}, loop counters */
        } file;               /* LOAD, SAVE */
        peal_loop loop;       /* REPEAT */
    } u;
};

/* Whether a statement of kind EXCHANGE copies fields into others. */
static inline bool peal_is_copy(const peal_statement *statement)
{
    return statement->kind == PEAL_STATEMENT_EXCHANGE && statement->u.exchange.item_count > 0 &&
           statement->u.exchange.item[0].into >= 0;
}

typedef struct peal_graph_data {
    const char *name;
    const char *file;   /* the spec, for diagnostics; NULL for graphs made in C */
    const char *folder; /* relative file names start here; "." if unknown */
    const peal_param *params;
    int param_count;
    peal_topology topology;
    const peal_array *arrays;
    int array_count;
    const char *const *kernels; /* C files, relative to folder */
    int kernel_count;
    peal_source kernels_source;
    bool fma;
    bool is_alone; /* the command runs it: nobody but its statements reads what it computes */
    const char *const *require; /* modes or transports without which the run is refused */
    int require_count;
    peal_body setup;
    peal_loop step; /* the outermost loop; depth 0, counter "step" */
    peal_body finish;
    int statement_count; /* ids are below this */
    uint64_t hash;       /* of everything above that has meaning; equal graphs have equal hashes */
    /* Contents of a constant array (file or values) on a rank, kept until the graph is destroyed,
     * or at least until two other ones have been asked for: where all ranks' are looked at.
     * PEAL_STATUS_SPEC after a diagnostic when the file is missing or wrong. */
    peal_status (*constant)(const struct peal_graph_data *graph, int array, int rank, int ranks,
                            bool keep, peal_constant *out);
    void *owner; /* dsl's own */
} peal_graph_data;

#endif
