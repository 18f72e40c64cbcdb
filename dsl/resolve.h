/* The steps of peal_graph_resolve, in order. Each reports what it finds and goes on. */
#ifndef PEAL_DSL_RESOLVE_H
#define PEAL_DSL_RESOLVE_H

#include "base/meaning.h"
#include "dsl/parser.h"

/* Params with their ranges and overrides. */
void peal_resolve_params(peal_parser *parser);
/* Declarations of arrays, what they are like and how many members each has. Gives how many arrays
 * there are. */
int peal_resolve_families(peal_parser *parser);
/* The constant ends of `in`. False after a diagnostic. */
bool peal_resolve_range(peal_parser *parser, const char *text, peal_source source, int64_t *low,
                        int64_t *end);
/* False: a statement of a copy cannot be done there, by what is known before the run. A condition
 * that holds for good becomes none. */
bool peal_is_in_copy(const peal_parser *parser, const peal_expr **when);
/* A file's name with {l} replaced where l is a counter of `for`; others are left. */
const char *peal_file_in_copy(const peal_parser *parser, const char *text);
/* A statement's name with the values of the outermost counters of `for`: "relax(2,1)". */
const char *peal_name_in_copy(const peal_parser *parser, const char *name, int counters);
/* "relax(l - 1)" with the values that are meant, another text as it is; NULL after a diagnostic. */
const char *peal_name_with_values(peal_parser *parser, const char *text, peal_source source);
/* Whether a loop or `for` may count by this name. False after a diagnostic. */
bool peal_counter_is_free(peal_parser *parser, const char *name, peal_source source);
/* The number of the declaration whose name the text begins with, and the name's length; -1: none.
 */
int peal_find_declaration(peal_parser *parser, const char *text, size_t *length);
/* What a name in a list means: one array, or of u(*) each member, in order. None after a
 * diagnostic. */
typedef struct peal_members {
    const peal_family *family; /* NULL: `name` alone */
    const char *name;
    peal_source source; /* for what is said of them */
    int count;
} peal_members;
peal_members peal_members_of(peal_parser *parser, const char *name, peal_source source);
const char *peal_member_name(const peal_parser *parser, const peal_members *members, int index);
/* Fields and buffers; then the topology. */
void peal_resolve_arrays(peal_parser *parser);
void peal_resolve_topology(peal_parser *parser);
/* Bodies, loops and statements; ids and names. */
void peal_resolve_statements(peal_parser *parser);
/* Which buffers are constant; lists of ranks and offsets must be. */
void peal_resolve_constants(peal_parser *parser);
/* What must be equal on all ranks is. */
void peal_check_uniform(peal_parser *parser);
/* The hash of all that has meaning. */
uint64_t peal_hash_graph(const peal_graph_data *data);
/* peal_graph_data's `constant`. */
peal_status peal_constant_contents(const peal_graph_data *data, int array, int rank, int ranks,
                                   bool keep, peal_constant *out);

/* The number of the field or buffer `name`, -1 after a diagnostic. what: "box", "read", ... */
int peal_resolve_array_name(peal_parser *parser, const char *name, peal_source source,
                            const char *what);
/* A buffer of one element, which has a value in expressions. */
bool peal_is_one_element(const peal_parser *parser, const peal_array *array);
/* Points of a box (of a task or buffer) or of a message. A task's box, for which `allow` has
 * PEAL_ALLOW_ELEMENTS, may be counted at run time. */
bool peal_resolve_points(peal_parser *parser, const peal_points_desc *desc, peal_source source,
                         unsigned allow, bool message, peal_points *out);
/* Whether a task visits the same points of the same tiles on every rank: once, or those of a field
 * that every rank has. */
bool peal_visits_the_same(const peal_parser *parser, const peal_task_statement *task);
/* Statements of each kind (resolve_task.c, resolve_message.c, resolve_simple.c). */
void peal_resolve_task(peal_parser *parser, const peal_task_desc *desc, peal_statement *out);
void peal_resolve_exchange(peal_parser *parser, const peal_exchange_desc *desc,
                           peal_statement *out);
void peal_resolve_copy(peal_parser *parser, const peal_copy_desc *desc, peal_statement *out);
void peal_resolve_message(peal_parser *parser, const peal_message_desc *desc, peal_statement *out);
void peal_resolve_rank_reduce(peal_parser *parser, const peal_rank_reduce_desc *desc, bool everyone,
                              peal_statement *out);
void peal_resolve_swap(peal_parser *parser, const peal_swap_desc *desc, peal_statement *out);
void peal_resolve_set(peal_parser *parser, const peal_set_desc *desc, peal_statement *out);
void peal_resolve_print(peal_parser *parser, const peal_print_row_desc *desc, peal_statement *out);
void peal_resolve_file(peal_parser *parser, const peal_file_desc *desc, peal_statement *out);
/* A text with {rank} and such: its names must be known. */
void peal_check_template(peal_parser *parser, const char *text, peal_source source);
/* reduce: of a task (one element) or over ranks. Returns how many. */
int peal_resolve_reductions(peal_parser *parser, const peal_reduce_desc *desc, peal_source source,
                            bool of_task, peal_reduction *out);

/* Calls visit(user, statement) for every statement of a body, nested ones too, in order. */
void peal_body_walk(const peal_body *body, void (*visit)(void *user, const peal_statement *),
                    void *user);

/* One word of several: its index, or -1 after a diagnostic with the nearest. */
int peal_parse_word(peal_parser *parser, const char *word, peal_source source, const char *what,
                    const char *const *words, size_t count);

#endif
