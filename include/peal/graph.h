/* The graph builder: a spec, made by calls, or read (peal_graph_read_spec).
 *
 * Keys of the language are members of descriptors, statements are calls in program order,
 * expressions are texts in the language of the spec ("nx - 2", "[0, 1]", "step % 100 == 0"). All
 * ranks build the same graph; what differs by rank is an expression. docs/spec-reference.md says
 * what each key means; a member's comment says only what is particular to C.
 *
 *     peal_graph *g;
 *     peal_graph_create("jacobi", &g);
 *     peal_graph_add_param(g, .name = "nx", .value = "4096");
 *     peal_graph_add_field(g, .name = "a", .type = "f32", .size = "[nx, nx]", .halo = "1");
 *     peal_graph_add_field(g, .name = "an", .like = "a");
 *     peal_graph_begin(g, PEAL_STEP);
 *     peal_graph_add_exchange(g, .exchange = {{.name = "a"}});
 *     peal_graph_add_task(g, .name = "relax", .box = {.name = "a", .grow = "-1"},
 *                         .read = {{.name = "a", .star = "1"}}, .write = {{.name = "an"}});
 *     peal_graph_add_swap(g, .swap = {"a", "an"});
 *     peal_graph_end(g);
 *
 * Texts are copied; none is used after the call that takes it. Mistakes are kept inside the graph
 * and reported all at once, with the file and line of the call, when the graph is compiled. A graph
 * belongs to one thread at a time.
 *
 * In C the macros fill a descriptor with its size, __FILE__ and __LINE__. In C++17 a descriptor is
 * filled member by member and given to the function whose name ends in _desc:
 *
 *     peal_field_desc field = {};
 *     field.size_bytes = sizeof(field);
 *     field.source = PEAL_HERE;
 *     field.name = "a";
 *     peal_graph_add_field_desc(g, &field);
 *
 * Members that a descriptor does not name are NULL, 0 or false: the key is absent. size_bytes tells
 * the library how much of the descriptor the caller knows, so that members can be added later. */
#ifndef PEAL_GRAPH_H
#define PEAL_GRAPH_H

#include <peal/call.h>
#include <peal/enqueue.h>
#include <peal/status.h>
#include <peal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A graph under construction. */
typedef struct peal_graph peal_graph;
typedef struct peal_session peal_session;

enum {
    PEAL_GRAPH_AFTER = 8,    /* most names in `after` */
    PEAL_GRAPH_PRINT = 16,   /* most columns of a print */
    PEAL_GRAPH_EXCHANGE = 16 /* most fields of an exchange */
};

/* The three bodies of a graph. */
typedef enum peal_graph_section { PEAL_SETUP, PEAL_STEP, PEAL_FINISH } peal_graph_section;

/* ---- Parts of descriptors ------------------------------------------------------------------- */

/* Which points a task visits or a message carries (`box:`, and what `send` and `recv` name). At
 * most one of grow, rim, box, border, halo, ghost, count. name NULL with box: a box of this rank's
 * own. */
typedef struct peal_points_desc {
    const char *name;   /* field or buffer */
    const char *grow;   /* amount: "1", "[0, [1, 2]]" */
    const char *rim;    /* amount */
    const char *box;    /* ranges: "[[0, nx], [0, 1]]" */
    const char *border; /* direction: "[0, -1]" */
    const char *halo;   /* direction */
    const char *ghost;  /* direction; of a task */
    const char *part;   /* "interior", "boundary", or an amount */
    const char *count;  /* of a task, with max: the first so many of max points, at run time */
    const char *max;
    peal_source source; /* of this part; {0}: the descriptor's */
} peal_points_desc;

/* What one tile of a task reads or writes of an array; also what of a field an exchange brings. At
 * most one of grow, star, box, per_tile, whole, tile, inside. */
typedef struct peal_access_desc {
    const char *name;
    const char *grow;     /* amount */
    const char *star;     /* amount */
    const char *box;      /* ranges */
    const char *per_tile; /* elements a tile */
    bool whole;
    bool tile;
    bool inside;   /* beside the ghost box that the task visits: the domain's points there */
    bool stale_ok; /* of read and update: halo points may be older than their owners' (E148) */
    peal_source source;
} peal_access_desc;

/* A reduction of buffer `name`; combine is "sum", "min" or "max". */
typedef struct peal_reduce_desc {
    const char *name;
    const char *combine;
    peal_source source;
} peal_reduce_desc;

/* A column of a print. */
typedef struct peal_print_desc {
    const char *name;
    const char *value;
    peal_source source;
} peal_print_desc;

/* ---- Descriptors ---------------------------------------------------------------------------- */

typedef struct peal_param_desc {
    size_t size_bytes;
    peal_source source;
    const char *name;
    const char *value; /* "8", "0.5", "true"; what is none of these is a text */
    bool text;         /* value is a text whatever it looks like */
    const char *min;
    const char *max;
} peal_param_desc;

typedef struct peal_topology_desc {
    size_t size_bytes;
    peal_source source;
    const char *dims;     /* "[2, auto]" or "auto" */
    const char *periodic; /* "[true, false]" or "true" */
    const char *cuts;     /* "[[0, 100, 512], auto]" */
} peal_topology_desc;

typedef struct peal_field_desc {
    size_t size_bytes;
    peal_source source;
    const char *name;
    const char *like;
    const char *type; /* "f64" if NULL; f32 i32 i64 u8 */
    const char *size; /* "[nx, ny]" */
    const char *halo; /* amount */
    const char *align;
    const char *stagger;
    const char *coarsen;
    const char *replicated; /* "true": every rank has all points, equal on all of them */
    const char *for_; /* "l": a family of fields u(0), u(1), ..., in whose texts l has its value */
    const char *in;   /* "[0, 3]": of l, the end excluded */
    void *data; /* memory lent for this rank's stored points (own and halo), dense, x fastest; it
             must stay valid until the plan is destroyed. NULL: peal allocates */
    const char *components; /* "9": values at each point, 1 to 65535, in planes; at most 3 axes */
} peal_field_desc;

typedef struct peal_buffer_desc {
    size_t size_bytes;
    peal_source source;
    const char *name;
    const char *type;
    const char *count;
    peal_points_desc box;
    const char *file;   /* constant contents: "peers-{rank}.npy" */
    const char *values; /* constant contents: "[1, 2, rank]" */
    bool keep;
    const char *for_; /* as of a field */
    const char *in;
    void *data; /* as of a field */
} peal_buffer_desc;

typedef struct peal_task_desc {
    size_t size_bytes;
    peal_source source;
    const char *name;       /* of the task; of the kernel too, unless another function is given */
    const char *kernel;     /* name of a PEAL_KERNEL */
    peal_function function; /* a host function instead of a kernel */
    void *user;             /* given to function in every call */
    peal_points_desc box;
    const char *tile; /* "[64, 16]" or "whole" */
    peal_access_desc read[PEAL_CALL_VIEWS];
    peal_access_desc update[PEAL_CALL_VIEWS];
    peal_access_desc write[PEAL_CALL_VIEWS];
    peal_reduce_desc reduce[PEAL_CALL_PARTIALS];
    const char *args[PEAL_CALL_ARGUMENTS];
    bool independent;
    const char *label; /* the statement's name for `after`, if another than the task's */
    const char *when;
    const char *after[PEAL_GRAPH_AFTER];
    /* On GPUs, instead of a kernel; arguments must not read buffers. See <peal/call.h> and
     * <peal/enqueue.h>. */
    void *cuda_function; /* a CUfunction that takes a peal_device_call by value; of a kernel
                            of the runtime API: cudaGetFuncBySymbol */
    int cuda_threads;    /* of its blocks; 0: 256 */
    peal_enqueue_function enqueue; /* a host function that puts work onto a stream */
} peal_task_desc;

typedef struct peal_exchange_desc {
    size_t size_bytes;
    peal_source source;
    peal_access_desc exchange[PEAL_GRAPH_EXCHANGE]; /* only grow and star */
    const char *name;
    const char *when;
    const char *after[PEAL_GRAPH_AFTER];
} peal_exchange_desc;

/* Of send and recv: send has `send` and `to`, recv has `recv` and `from`. */
typedef struct peal_message_desc {
    size_t size_bytes;
    peal_source source;
    peal_points_desc send;
    peal_points_desc recv;
    const char *to;    /* direction "[0, -1]", rank "(rank + 1) % ranks", name of a constant list of
                          ranks, "all" */
    const char *from;  /* the same */
    const char *along; /* instead of to or from: all ranks of my row along "x", "y" or "z" */
    const char *ranks; /* instead of to or from: these ranks, "[0, 1]", or a constant list's name */
    const char *tag;
    const char *offsets; /* name of a constant list, or a number */
    const char *count;   /* name of a buffer: elements at run time, of each peer's block */
    const char *name;
    const char *when;
    const char *after[PEAL_GRAPH_AFTER];
} peal_message_desc;

/* Of reduce and allreduce over ranks: reduce has `to`. */
typedef struct peal_rank_reduce_desc {
    size_t size_bytes;
    peal_source source;
    peal_reduce_desc reduce[PEAL_CALL_PARTIALS];
    const char *to;
    const char *along;
    const char *name;
    const char *when;
    const char *after[PEAL_GRAPH_AFTER];
} peal_rank_reduce_desc;

typedef struct peal_swap_desc {
    size_t size_bytes;
    peal_source source;
    const char *swap[2];
    const char *name;
    const char *when;
    const char *after[PEAL_GRAPH_AFTER];
} peal_swap_desc;

typedef struct peal_set_desc {
    size_t size_bytes;
    peal_source source;
    const char *set; /* a buffer of one element */
    const char *value;
    const char *name;
    const char *when;
    const char *after[PEAL_GRAPH_AFTER];
} peal_set_desc;

typedef struct peal_print_row_desc {
    size_t size_bytes;
    peal_source source;
    peal_print_desc print[PEAL_GRAPH_PRINT];
    const char *name;
    const char *when;
    const char *after[PEAL_GRAPH_AFTER];
} peal_print_row_desc;

/* Of load and save. */
typedef struct peal_file_desc {
    size_t size_bytes;
    peal_source source;
    const char *load; /* load: the field or buffer */
    const char *save; /* save: the field or buffer */
    const char *file;
    const char *name;
    const char *when;
    const char *after[PEAL_GRAPH_AFTER];
} peal_file_desc;

/* A loop: the outermost one, or one among statements (`as`, name, when, after are for these). */
typedef struct peal_loop_desc {
    size_t size_bytes;
    peal_source source;
    const char *repeat;
    const char *as; /* name of the counter */
    const char *until;
    const char *every;
    const char *lag;
    const char *name;
    const char *when;
    const char *after[PEAL_GRAPH_AFTER];
} peal_loop_desc;

/* Brings fields from one cut to another. */
typedef struct peal_copy_desc {
    size_t size_bytes;
    peal_source source;
    const char *copy[PEAL_GRAPH_EXCHANGE]; /* fields, */
    const char *into[PEAL_GRAPH_EXCHANGE]; /* and who gets their values, one for each */
    const char *name;
    const char *when;
    const char *after[PEAL_GRAPH_AFTER];
} peal_copy_desc;

/* Copies of statements, one for each value of a counter, made before the run. */
typedef struct peal_for_desc {
    size_t size_bytes;
    peal_source source;
    const char *for_; /* "l": the counter, a constant in each copy */
    const char *in;   /* "[0, 3]": its values, the end excluded */
    bool down;        /* from the last value to the first */
} peal_for_desc;

/* ---- The graph ------------------------------------------------------------------------------ */

/* Makes an empty graph in *graph. name appears in output; NULL: "graph". PEAL_STATUS_ENVIRONMENT if
 * there is no memory. */
peal_status peal_graph_create(const char *name, peal_graph **graph);

/* Frees the graph, once the plans compiled from it have been destroyed, too. NULL is fine. */
void peal_graph_destroy(peal_graph *graph);

/* Relative names of kernels and data files start in folder (default "."). */
void peal_graph_set_folder(peal_graph *graph, const char *folder);

/* Gives a param another value than its default: assignment is "n=512" as in `--set`. May be called
 * before or after the param is added; the last one counts. */
void peal_graph_override(peal_graph *graph, const char *assignment);

/* Adds a C file with kernels, relative to the folder. source: PEAL_HERE. */
void peal_graph_add_kernels(peal_graph *graph, const char *file, peal_source source);

/* Names a mode or transport without which the run is refused. */
void peal_graph_add_require(peal_graph *graph, const char *what, peal_source source);

/* `fma: true`: kernels may be compiled with contraction of a * b + c, which gives up equal bits. */
void peal_graph_set_fma(peal_graph *graph, bool fma);

/* A spec in YAML or JSON. */
typedef struct peal_spec_desc {
    size_t size_bytes; /* sizeof(peal_spec_desc) */
    const char *path;  /* its file; NULL: `text` is the spec */
    const char *text;
    const char *name;   /* what stands for a file in messages about `text`; NULL: "spec" */
    const char *folder; /* where relative names of files begin; NULL: the spec's folder, of a text
                           the current one */
    const char *const *set; /* params: "n=512"; set_count of them */
    int set_count;
} peal_spec_desc;

/* Makes a graph of a spec, for peal_graph_compile or peal_graph_check; what is wrong with it is in
 * the session's messages. Not collective. PEAL_STATUS_SPEC; PEAL_STATUS_USAGE: it cannot be read.
 * *out is set only on success; it is the caller's to destroy. */
peal_status peal_graph_read_spec(peal_session *session, const peal_spec_desc *desc,
                                 peal_graph **out);

/* Lends memory for a field that a spec has declared, as .data of peal_field_desc does. Returns the
 * field's number; -1: no graph, a resolved one, or no such field. */
int peal_graph_lend(peal_graph *graph, const char *field, void *data);

/* Proves a graph sound over so many ranks, as peal_graph_compile does first, and makes nothing:
 * kernels are not compiled, no mode is chosen. Not collective.
 * Nothing can be added to the graph afterwards. PEAL_STATUS_SPEC: it is not sound. */
peal_status peal_graph_check(peal_graph *graph, peal_session *session, int ranks);

/* What follows: each takes the graph and a descriptor, which it copies. They return the handle of
 * what was added, 0 or more: of a param or define its number, of a field or buffer its number among
 * fields and buffers (peal_plan_view takes it), of a statement its number in the order of calls. A
 * descriptor that makes no sense gets a handle, too, and a diagnostic later. -1: no graph, or a
 * descriptor whose size_bytes is not set. */
int peal_graph_add_param_desc(peal_graph *graph, const peal_param_desc *desc);
/* A constant: value is an expression of params and of defines added before it, whatever `text`
 * says. peal_graph_override cannot set it. */
int peal_graph_add_define_desc(peal_graph *graph, const peal_param_desc *desc);
int peal_graph_add_field_desc(peal_graph *graph, const peal_field_desc *desc);
int peal_graph_add_buffer_desc(peal_graph *graph, const peal_buffer_desc *desc);

/* At most once. Without: `dims: auto` on every axis of the fields, none periodic. Returns 0. */
int peal_graph_set_topology_desc(peal_graph *graph, const peal_topology_desc *desc);

/* The outermost loop (repeat, until, every, lag), at most once. Without: one step. Returns 0. */
int peal_graph_set_loop_desc(peal_graph *graph, const peal_loop_desc *desc);

/* As many steps as this, 0 or more, whatever `repeat` says: what is checked and run is the graph
 * with that `repeat`, while its hash, and with it tuned answers, stay. Returns 0; -1: no graph,
 * less than 0 steps, or the graph is resolved already. */
int peal_graph_set_steps(peal_graph *graph, int64_t steps);

/* Statements added from here up to peal_graph_end belong to the section; each section is begun at
 * most once. Use the macros peal_graph_begin and peal_graph_end. */
void peal_graph_begin_at(peal_graph *graph, peal_graph_section section, peal_source source);
void peal_graph_end_at(peal_graph *graph, peal_source source);

/* Statements, in program order, between begin and end. */
int peal_graph_add_task_desc(peal_graph *graph, const peal_task_desc *desc);
int peal_graph_add_exchange_desc(peal_graph *graph, const peal_exchange_desc *desc);
int peal_graph_add_send_desc(peal_graph *graph, const peal_message_desc *desc);
int peal_graph_add_recv_desc(peal_graph *graph, const peal_message_desc *desc);
int peal_graph_add_reduce_desc(peal_graph *graph, const peal_rank_reduce_desc *desc);
int peal_graph_add_allreduce_desc(peal_graph *graph, const peal_rank_reduce_desc *desc);
int peal_graph_add_swap_desc(peal_graph *graph, const peal_swap_desc *desc);
int peal_graph_add_set_desc(peal_graph *graph, const peal_set_desc *desc);
int peal_graph_add_print_desc(peal_graph *graph, const peal_print_row_desc *desc);
int peal_graph_add_load_desc(peal_graph *graph, const peal_file_desc *desc);
int peal_graph_add_save_desc(peal_graph *graph, const peal_file_desc *desc);
int peal_graph_add_copy_desc(peal_graph *graph, const peal_copy_desc *desc);

/* Statements from here up to peal_graph_end_repeat are the loop's body. */
int peal_graph_begin_repeat_desc(peal_graph *graph, const peal_loop_desc *desc);
void peal_graph_end_repeat_at(peal_graph *graph, peal_source source);

/* Statements from here up to peal_graph_end_for are copied. */
int peal_graph_begin_for_desc(peal_graph *graph, const peal_for_desc *desc);
void peal_graph_end_for_at(peal_graph *graph, peal_source source);

#define peal_graph_begin(graph, section) peal_graph_begin_at((graph), (section), PEAL_HERE)
#define peal_graph_end(graph)            peal_graph_end_at((graph), PEAL_HERE)
#define peal_graph_end_repeat(graph)     peal_graph_end_repeat_at((graph), PEAL_HERE)
#define peal_graph_end_for(graph)        peal_graph_end_for_at((graph), PEAL_HERE)

#ifndef __cplusplus
#define peal_graph_add_param(graph, ...)                                                           \
    peal_graph_add_param_desc((graph), PEAL_DESC(peal_param_desc, __VA_ARGS__))
#define peal_graph_add_define(graph, ...)                                                          \
    peal_graph_add_define_desc((graph), PEAL_DESC(peal_param_desc, __VA_ARGS__))
#define peal_graph_add_field(graph, ...)                                                           \
    peal_graph_add_field_desc((graph), PEAL_DESC(peal_field_desc, __VA_ARGS__))
#define peal_graph_add_buffer(graph, ...)                                                          \
    peal_graph_add_buffer_desc((graph), PEAL_DESC(peal_buffer_desc, __VA_ARGS__))
#define peal_graph_set_topology(graph, ...)                                                        \
    peal_graph_set_topology_desc((graph), PEAL_DESC(peal_topology_desc, __VA_ARGS__))
#define peal_graph_set_loop(graph, ...)                                                            \
    peal_graph_set_loop_desc((graph), PEAL_DESC(peal_loop_desc, __VA_ARGS__))
#define peal_graph_add_task(graph, ...)                                                            \
    peal_graph_add_task_desc((graph), PEAL_DESC(peal_task_desc, __VA_ARGS__))
#define peal_graph_add_exchange(graph, ...)                                                        \
    peal_graph_add_exchange_desc((graph), PEAL_DESC(peal_exchange_desc, __VA_ARGS__))
#define peal_graph_add_send(graph, ...)                                                            \
    peal_graph_add_send_desc((graph), PEAL_DESC(peal_message_desc, __VA_ARGS__))
#define peal_graph_add_recv(graph, ...)                                                            \
    peal_graph_add_recv_desc((graph), PEAL_DESC(peal_message_desc, __VA_ARGS__))
#define peal_graph_add_reduce(graph, ...)                                                          \
    peal_graph_add_reduce_desc((graph), PEAL_DESC(peal_rank_reduce_desc, __VA_ARGS__))
#define peal_graph_add_allreduce(graph, ...)                                                       \
    peal_graph_add_allreduce_desc((graph), PEAL_DESC(peal_rank_reduce_desc, __VA_ARGS__))
#define peal_graph_add_swap(graph, ...)                                                            \
    peal_graph_add_swap_desc((graph), PEAL_DESC(peal_swap_desc, __VA_ARGS__))
#define peal_graph_add_set(graph, ...)                                                             \
    peal_graph_add_set_desc((graph), PEAL_DESC(peal_set_desc, __VA_ARGS__))
#define peal_graph_add_print(graph, ...)                                                           \
    peal_graph_add_print_desc((graph), PEAL_DESC(peal_print_row_desc, __VA_ARGS__))
#define peal_graph_add_load(graph, ...)                                                            \
    peal_graph_add_load_desc((graph), PEAL_DESC(peal_file_desc, __VA_ARGS__))
#define peal_graph_add_save(graph, ...)                                                            \
    peal_graph_add_save_desc((graph), PEAL_DESC(peal_file_desc, __VA_ARGS__))
#define peal_graph_add_copy(graph, ...)                                                            \
    peal_graph_add_copy_desc((graph), PEAL_DESC(peal_copy_desc, __VA_ARGS__))
#define peal_graph_begin_for(graph, ...)                                                           \
    peal_graph_begin_for_desc((graph), PEAL_DESC(peal_for_desc, __VA_ARGS__))
#define peal_graph_begin_repeat(graph, ...)                                                        \
    peal_graph_begin_repeat_desc((graph), PEAL_DESC(peal_loop_desc, __VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
