/* What the files that make random graphs share. */
#ifndef PEAL_TESTS_RANDOM_INTERNAL_H
#define PEAL_TESTS_RANDOM_INTERNAL_H

#include "tests/property/random_graph.h"

enum { FIELDS = 6, TASKS = 60, TEXT = 32768, READS = 3, TILES = 2000 };

/* What a graph may use of the language. */
typedef enum feature {
    F_SWAP,
    F_PERIODIC,
    F_CUTS,
    F_RUNTIME_WHEN,
    F_UNTIL,
    F_NESTED,
    F_INNER_UNTIL,
    F_PART,
    F_PART_AMOUNT,
    F_GROW_BOX,
    F_RIM,
    F_RANGES,
    F_BORDER_BOX,
    F_GHOST_BOX,
    F_ONE_SIDED,
    F_STAGGER,
    F_COARSE,
    F_FINE_TO_COARSE,
    F_COARSE_TO_FINE,
    F_WHOLE_TILE,
    F_PER_TILE,
    F_INDEPENDENT,
    F_AFTER,
    F_TYPES_MIXED,
    F_FIELD_MESSAGE,
    F_BOX_BUFFER,
    F_LIST,
    F_ALONG,
    F_ALL,
    F_REDUCE_ROOT,
    F_VECTOR,
    F_TWO_SHOTS,
    F_COUNTED_BOX,
    F_COUNTED_MESSAGE,
    F_TURNS,
    F_SWEEP,
    F_COMPONENTS,
    FEATURES
} feature;

/* Which elements of a view belong to point p of the tile. */
typedef enum view_kind {
    VIEW_POINTS, /* p, 2 p and 2 p + 1, or p / 2, by scale */
    VIEW_WHOLE,  /* the first two elements */
    VIEW_TILE    /* one element a tile */
} view_kind;

/* What a task's function has to know of its views. */
typedef struct mix_view {
    peal_type type;
    view_kind kind;
    int components;         /* of its field; 0: none */
    int scale;              /* 1; 2: finer than the box; -2: coarser */
    int grow[PEAL_AXES][2]; /* how far it reads around a point */
    bool star;
} mix_view;

typedef struct mix_task {
    int axis_count;
    int read_count, update_count, write_count, argument_count;
    mix_view view[PEAL_CALL_VIEWS];
    double salt;
    bool reduces, red_black;
    bool vector; /* its views are buffers without a box */
} mix_task;

typedef struct random_field {
    char name[8];
    peal_type type;
    int halo[PEAL_AXES][2];
    int coarse; /* 1 or 2 */
    int stagger[PEAL_AXES];
    int components; /* 0, 2 or 3 */
    int twin;       /* field it may be swapped with; -1 */
} random_field;

/* A fault in the making (random_fault.c); random numbers are its own, so that a seed's graph stays
 * what it is. */
typedef struct random_fault random_fault;
typedef struct random_plant {
    const random_fault *fault; /* NULL: none */
    bool sound, done;
    uint64_t state;
    int rank, axis;
    char up[48], down[48]; /* whom planted messages go to and come from */
    int before;            /* the rank that sends to `rank` */
    bool plain;            /* no lists of ranks anywhere: ranks can be told apart by place alone */
    const char *when;
} random_plant;

struct random_graph {
    uint64_t state, features, sweep_state;
    peal_graph *graph;
    const char *folder; /* tasks are kernels of a file there; NULL: functions of the host */
    int axis_count, ranks, steps;
    int dims[3], size[3];
    bool periodic[3];
    bool coarsens; /* all cuts are at even points */
    random_field field[FIELDS];
    int field_count;
    mix_task task[TASKS];
    int task_count, tag_count, sweep_tags, depth;
    int vector_count;       /* elements of v and w */
    int box_axis, box_side; /* direction of the buffers with a box; -1: none */
    bool scalar_known;      /* s holds the same value on all ranks */
    bool in_setup;
    char last_label[16]; /* of the statement before, in the same body; empty: none */
    char text[TEXT];
    size_t used;
    random_plant plant;
};

/* random_graph.c */
bool random_chance(random_graph *g, int percent);
void random_say(random_graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *random_per_axis(const random_graph *g, const int value[3], char *text);
const char *random_per_side(const random_graph *g, int value[PEAL_AXES][2], char *text);
void random_use(random_graph *g, feature f);

/* random_mix.c: the function of every task */
void random_mix(const peal_call *call);

/* random_kernel.c: what a task runs: random_mix, or a kernel that computes the same but for its
 * partial results (of a tile's threads) and elements a tile. */
enum { KERNEL_NAME = 16 };
peal_function random_function(const random_graph *g);
const char *random_kernel_name(const random_graph *g, const mix_task *t, char text[KERNEL_NAME]);
/* Writes the kernels of all tasks and adds the file to the graph. */
void random_write_kernels(random_graph *g, uint64_t seed);

/* random_fault.c */
/* False: the fault does not fit the graph's ranks. */
bool random_plant_choose(random_graph *g, uint64_t seed, const random_fault *fault, bool sound);
void random_plant_declare(random_graph *g);
/* Perhaps here; certainly, if this is the last place. */
void random_plant_somewhere(random_graph *g, bool last);

/* random_task.c */
mix_task *random_new_task(random_graph *g); /* NULL: there are enough */
void random_add_task(random_graph *g, const char *when);
void random_add_red_black(random_graph *g, const char *when);
void random_add_start(random_graph *g, const random_field *f);

/* random_message.c */
void random_add_exchange(random_graph *g, const char *when);
void random_add_field_message(random_graph *g, const char *when);
void random_add_sweep(random_graph *g);
void random_add_packed_message(random_graph *g, const char *when);
void random_add_vector_message(random_graph *g, const char *when);
void random_add_vector_task(random_graph *g, const char *when);
void random_add_vector_reduction(random_graph *g, const char *when);
void random_add_scalar(random_graph *g);
void random_add_buffers(random_graph *g);

#endif
