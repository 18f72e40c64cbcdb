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
    const char *statements; /* which there are, in words, once a message has needed it */
    bool trapped; /* YAML has cut a value, or names are missing: later messages would mislead */
} peal_reader;

void peal_reader_report(peal_reader *reader, peal_code code, peal_source place, const char *hint,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Every key of map is one of the context; those required are there (false: not all of them). */
bool peal_reader_check_keys(peal_reader *reader, const peal_node *map, peal_context_id id);
/* Reads the keys that map has into *out, the struct that the context's rows fill. */
void peal_reader_fill(peal_reader *reader, const peal_node *map, peal_context_id id, void *out);
/* Both. */
bool peal_reader_keys(peal_reader *reader, const peal_node *map, peal_context_id id, void *out);

/* The texts of a node, for the builder; NULL after a diagnostic. */
const char *peal_reader_text(peal_reader *reader, peal_node *node); /* any scalar */
const char *peal_reader_list(peal_reader *reader, peal_node *node); /* a scalar or nested lists */
/* The number of a word among names; -1 after a diagnostic that it is no `what`. */
int peal_reader_word(peal_reader *reader, const peal_node *word, const char *const *names,
                     int count, const char *what);

/* A name of a map's pair as text. */
const char *peal_reader_key(peal_reader *reader, const peal_pair *pair);

/* A body: a list of statements, or one of them. */
void peal_reader_body(peal_reader *reader, const peal_node *node);

/* Reads a key's value into its member of *out, or hands it to the builder. */
typedef void peal_key_reader(peal_reader *reader, const peal_key *key, peal_node *node, void *out);

/* Parts of statements (reader_parts.c). */
peal_key_reader peal_reader_points, peal_reader_accesses, peal_reader_reductions,
    peal_reader_columns, peal_reader_peers;
/* Sections of a spec (reader.c). */
peal_key_reader peal_reader_params, peal_reader_defines, peal_reader_topology, peal_reader_fields,
    peal_reader_buffers, peal_reader_kernel_files, peal_reader_requirements;

#endif
