/* The graph under construction, as dsl/ sees it: what was added, unresolved, and where its texts
 * came from. */
#ifndef PEAL_DSL_BUILDER_H
#define PEAL_DSL_BUILDER_H

#include "base/arena.h"
#include "base/diagnostic.h"
#include "dsl/dsl.h"
#include "dsl/keys.h"

enum { PEAL_LOOP_DEPTH = 8 /* most nested loops, the outermost included */ };

/* A statement as it was added. Those of a body are a list; a loop has a body of its own. */
typedef struct raw_statement raw_statement;

typedef struct raw_body {
    raw_statement *first, *last;
    int count;
    peal_source source;
} raw_body;

struct raw_statement {
    raw_statement *next;
    raw_statement *parent; /* the loop around it; NULL: none */
    peal_statement_kind kind;
    bool everyone; /* REDUCE: allreduce */
    peal_source source;
    const char *name, *when;
    const char *after[PEAL_GRAPH_AFTER];
    const void *desc; /* peal_*_desc of the kind */
    bool is_copy;     /* EXCHANGE: desc is a peal_copy_desc */
    bool copies;      /* a `for`, not a loop: desc is a peal_for_desc, and kind REPEAT */
    raw_body body;    /* of these two */
};

/* A field or a buffer as it was added. */
typedef struct raw_array {
    peal_array_kind kind;
    const peal_field_desc *field;
    const peal_buffer_desc *buffer;
} raw_array;

typedef struct raw_text {
    const char *text;
    peal_source source;
} raw_text;

/* A piece of text that a reader lends: the bytes from start on stand at source in its file. */
typedef struct text_piece {
    const char *start;
    peal_source source;
} text_piece;

#define PEAL_LIST(type)                                                                            \
    struct {                                                                                       \
        type *item;                                                                                \
        int count, capacity;                                                                       \
    }

typedef PEAL_LIST(raw_text) raw_texts;

/* Contents of a constant array on a rank that `constant` has handed out. */
enum { BRIEF_CONSTANTS = 3 };

typedef struct constant_entry {
    int array, rank, ranks;
    peal_constant value;
    struct constant_entry *next;
} constant_entry;

struct peal_graph {
    int users; /* the application, and plans */
    peal_arena *arena;
    peal_diagnostics *mistakes; /* found while building; handed over by resolve */
    const char *name, *file, *folder;
    PEAL_LIST(const peal_param_desc *) params;
    PEAL_LIST(const peal_param_desc *) defines;
    PEAL_LIST(raw_array) arrays;
    raw_texts overrides, kernels, require;
    const peal_topology_desc *topology;
    const peal_loop_desc *loop;
    bool has_steps; /* as many as `steps`, whatever `repeat` says */
    int64_t steps;
    bool fma;
    bool is_alone; /* nobody but its statements reads what it computes */
    raw_body section[3];
    bool begun[3];
    int open_section;         /* -1: none */
    raw_statement *open_loop; /* innermost */
    int open_depth;
    int statement_count;
    bool out_of_memory;
    /* texts lent by a reader: one buffer, pieces in increasing order */
    const char *pool_start, *pool_end;
    PEAL_LIST(text_piece) pieces;
    const char *last_at; /* the last place that was asked for */
    peal_source last_place;
    /* after resolve */
    bool resolved;
    peal_status status;
    peal_graph_data *data;
    peal_diagnostics *report_to;
    constant_entry **constants; /* buckets of a hash table by array and rank */
    size_t constant_buckets, constant_count;
    const constant_entry *last_constant;   /* asked for: the same is often asked for again */
    constant_entry brief[BRIEF_CONSTANTS]; /* those that are not kept; their memory is used again */
    size_t brief_bytes[BRIEF_CONSTANTS];
    int brief_next;
};

/* Where the guard of the graph's arena goes on: what is built is not whole. Gives -1. */
int peal_graph_out_of_memory(peal_graph *graph);
/* Says so. */
peal_status peal_graph_no_memory(const peal_graph *graph, peal_diagnostics *diagnostics);

/* Makes room for one more item of a list in the arena (old room is left behind). */
void peal_list_grow(peal_arena *arena, void **item, int count, int *capacity, size_t size);
#define PEAL_LIST_ADD(arena, list, value)                                                          \
    do {                                                                                           \
        void *list_item_ = (list)->item;                                                           \
        peal_list_grow((arena), &list_item_, (list)->count, &(list)->capacity,                     \
                       sizeof(*(list)->item));                                                     \
        (list)->item = list_item_;                                                                 \
        (list)->item[(list)->count++] = (value);                                                   \
    } while (0)

/* Texts within [start, end) are not copied by the builder; peal_graph_add_piece says where they
 * come from. The memory belongs to the graph's arena. */
void peal_graph_lend_texts(peal_graph *graph, const char *start, const char *end);
void peal_graph_add_piece(peal_graph *graph, const char *start, peal_source source);

/* Where the byte `at` stands: in a lent piece; otherwise `fallback`. */
peal_source peal_graph_place(peal_graph *graph, const char *at, peal_source fallback);

/* Nothing can be added any more, which is told; or it is no graph. */
bool peal_graph_is_closed(peal_graph *graph, peal_source source);
/* The source with a copy of its file's name. */
peal_source peal_graph_keep_source(peal_graph *graph, peal_source source);

/* A copy of text that lives as long as the graph; NULL stays NULL. */
const char *peal_graph_keep_text(peal_graph *graph, const char *text);

/* A copy of a descriptor, with its texts, of the struct that the context's keys fill; NULL if the
 * caller doesn't say how much of it he knows. */
void *peal_desc_copy(peal_graph *graph, peal_context_id id, const void *desc);

/* Adds a statement with its descriptor; what peal_graph_add_*_desc give. */
int peal_graph_add_statement(peal_graph *graph, peal_context_id id, const void *desc);

#endif
