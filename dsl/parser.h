/* Texts of the builder to expressions, lists, amounts, ranges, directions. */
#ifndef PEAL_DSL_PARSER_H
#define PEAL_DSL_PARSER_H

#include "dsl/builder.h"

/* What names may stand for in a text; params, `ranks` and literals always may. */
enum {
    PEAL_ALLOW_RANK = 1,      /* rank, rx ry rz, u.nx, u.x0, b.count */
    PEAL_ALLOW_DIMS = 2,      /* Rx Ry Rz */
    PEAL_ALLOW_COUNTERS = 4,  /* loop counters that are in scope */
    PEAL_ALLOW_ELEMENTS = 8,  /* run-time values of buffers */
    PEAL_ALLOW_TEXT_RANK = 16 /* rank alone: contents of constant buffers */
};
#define PEAL_ALLOW_UNIFORM (PEAL_ALLOW_DIMS)
#define PEAL_ALLOW_STATIC  (PEAL_ALLOW_RANK | PEAL_ALLOW_DIMS | PEAL_ALLOW_COUNTERS)
#define PEAL_ALLOW_ALL     (PEAL_ALLOW_STATIC | PEAL_ALLOW_ELEMENTS)

enum {
    PEAL_EXPRESSION_BYTES = 4096, /* longest expression */
    PEAL_EXPRESSION_DEPTH = 64,   /* most parentheses, calls, signs inside each other */
    PEAL_LIST_DEPTH = 4
};

/* What a name stands for. */
typedef enum peal_name_kind { PEAL_NAME_NONE, PEAL_NAME_PARAM, PEAL_NAME_ARRAY } peal_name_kind;

/* A table of names: open addressing. */
typedef struct peal_name_table {
    struct peal_name_slot {
        const char *name;
        peal_name_kind kind;
        int index;
    } * slot;
    size_t size, used;
} peal_name_table;

/* Adds name; false if it is there already (*slot is it then). */
bool peal_name_add(peal_arena *arena, peal_name_table *table, const char *name, peal_name_kind kind,
                   int index, struct peal_name_slot *slot);
bool peal_name_find(const peal_name_table *table, const char *name, struct peal_name_slot *slot);

/* A counter of `for` in the copy that is resolved, and its value there. */
typedef struct peal_bound {
    const char *name;
    int64_t value;
} peal_bound;

enum { PEAL_FAMILY_BOUNDS = 4, PEAL_BOUNDS = PEAL_LOOP_DEPTH + PEAL_FAMILY_BOUNDS + 1 };

/* A declaration of fields or buffers: one array, or a family. */
typedef struct peal_family {
    const char *name;
    const char *counter; /* NULL: one array, which has no index */
    int64_t low;         /* the first index */
    int first, count;    /* its arrays */
    peal_field_desc field;
    peal_bound bound[PEAL_FAMILY_BOUNDS]; /* by `like: u(2)`: what its texts name */
    int bound_count;
    enum {
        PEAL_FAMILY_NEW,
        PEAL_FAMILY_MERGING,
        PEAL_FAMILY_MERGED,
        PEAL_FAMILY_BROKEN
    } state; /* of `field`: with what it is like */
} peal_family;

/* What a parser knows while the graph is resolved. */
typedef struct peal_parser {
    peal_graph *graph;
    peal_graph_data *data;
    peal_array *arrays; /* data->arrays, still open; [0, array_ready) are finished */
    int array_ready;
    peal_family *family; /* by declaration, in the order of the builder's calls */
    int family_count;
    peal_name_table names; /* of arrays: numbers of declarations */
    peal_bound bound[PEAL_BOUNDS];
    int bound_count;
    const char *counter[PEAL_LOOP_DEPTH]; /* by depth; NULL: no name */
    int counter_count;
    const char *counter_reason; /* why `step` is not known here; NULL: it is */
    unsigned allow;
    bool lacks_kernels;  /* has been told */
    const char *also[2]; /* words that would do in the place of the expression */
    peal_diagnostics *diagnostics;
    int failures; /* diagnostics that were reported */
} peal_parser;

/* Reports and counts. at: a byte of a text that stands at source or in a lent piece. */
void peal_parser_report(peal_parser *parser, peal_code code, const char *at, peal_source source,
                        const char *hint, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* "did you mean `x`?", in the arena; NULL if nothing is near. */
const char *peal_parser_hint(peal_parser *parser, const char *word, const char *const *candidates,
                             size_t count);

/* True for a letter or _ followed by letters, digits, _; at most 63 bytes. */
bool peal_is_name(const char *text);
/* True for names that the language has taken: rank, step, min, true, all, auto, ... */
bool peal_is_reserved(const char *name);

/* What the spec defines by this name, wherever; NULL: nothing. */
const peal_param_desc *peal_define_named(const peal_parser *parser, const char *name);

/* One expression, the whole text; `allow` says what names may be used. text NULL gives NULL. NULL
 * after a diagnostic. */
const peal_expr *peal_parse_expression(peal_parser *parser, const char *text, peal_source source,
                                       unsigned allow);

/* An item of a list: an expression, or a list. */
typedef struct peal_item peal_item;
struct peal_item {
    const peal_expr *expr; /* NULL: a list, or a word */
    const char *word;      /* "auto" where that is allowed */
    const peal_item *item;
    int count;
    bool is_list;
    peal_source source;
};

/* "[a, [b, c]]" or one expression. word: a name that is kept as a word (NULL: none). NULL after a
 * diagnostic. */
const peal_item *peal_parse_list(peal_parser *parser, const char *text, peal_source source,
                                 unsigned allow, const char *word);

/* An amount for an array of axis_count axes: a number, or a list of numbers or [low, high]. False
 * after a diagnostic. text NULL: not given. */
bool peal_parse_amount(peal_parser *parser, const char *text, peal_source source, unsigned allow,
                       int axis_count, peal_amount *out);
/* "[[x0, x1], [y0, y1]]" */
bool peal_parse_ranges(peal_parser *parser, const char *text, peal_source source, unsigned allow,
                       int axis_count, peal_ranges *out);
/* "[0, -1]" */
bool peal_parse_direction(peal_parser *parser, const char *text, peal_source source, unsigned allow,
                          peal_direction *out);
/* A number for every axis, or a list of numbers: at most axis_count into out[]; returns how many
 * stood there (axis_count for a number), -1 after a diagnostic. NULL items of `word`. */
int peal_parse_axes(peal_parser *parser, const char *text, peal_source source, unsigned allow,
                    int axis_count, const char *word, const char *what, const peal_expr **out);

/* The expression must be an integer (number, boolean) by what is known now. */
bool peal_require_integer(peal_parser *parser, const peal_expr *expr, const char *what);
bool peal_require_number(peal_parser *parser, const peal_expr *expr, const char *what);
bool peal_require_boolean(peal_parser *parser, const peal_expr *expr, const char *what);

/* The value of an expression of params and literals alone; false if it depends on more or fails. */
bool peal_constant_value(const peal_parser *parser, const peal_expr *expr, peal_value *out);

/* A literal as `params` take it: integer, real, boolean, else text. */
peal_value peal_parse_literal(const char *text);

#endif
