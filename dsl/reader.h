/* What the parts of the YAML reader share: nodes of the document become texts with places, and
 * descriptors of the builder. */
#ifndef PEAL_DSL_READER_H
#define PEAL_DSL_READER_H

#include "dsl/builder.h"
#include "dsl/document.h"
#include "dsl/keys.h"

typedef struct peal_reader {
    peal_graph *graph;
    peal_arena *arena;
    peal_diagnostics *diagnostics;
    char *pool, *pool_end; /* texts for the builder: next free byte, end */
    int failures;
    bool trapped; /* YAML has cut a value, or names are missing: later messages would mislead */
} peal_reader;

void peal_reader_report(peal_reader *reader, peal_code code, peal_source place, const char *hint,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Every key of map is one of the context; those required are there (false: not all of them). */
bool peal_reader_check_keys(peal_reader *reader, const peal_node *map, peal_context_id context);

/* The texts of a node, for the builder; NULL after a diagnostic or if node is NULL. */
const char *peal_reader_text(peal_reader *reader, peal_node *node); /* any scalar */
const char *peal_reader_list(peal_reader *reader, peal_node *node); /* a scalar or nested lists */
bool peal_reader_boolean(peal_reader *reader, peal_node *node);     /* true, false */
/* Texts of a scalar or a list of scalars: at most `most` into out; how many. */
int peal_reader_texts(peal_reader *reader, peal_node *node, const char **out, int most);

/* A name of a map's pair as text. */
const char *peal_reader_key(peal_reader *reader, const peal_pair *pair);

/* A body: a list of statements, or one of them. */
void peal_reader_body(peal_reader *reader, const peal_node *node);

/* A box or what a message carries. */
void peal_reader_points(peal_reader *reader, peal_node *node, bool message, peal_points_desc *out);

#endif
