/* A YAML document as a tree with places: what the reader works on. Limits are enforced while it is
 * made. */
#ifndef PEAL_DSL_DOCUMENT_H
#define PEAL_DSL_DOCUMENT_H

#include "base/arena.h"
#include "base/diagnostic.h"

#include <stdbool.h>
#include <stdio.h>

enum { PEAL_DOCUMENT_BYTES = 1 << 20, PEAL_DOCUMENT_DEPTH = 32, PEAL_DOCUMENT_NODES = 100000 };

typedef enum peal_node_kind { PEAL_NODE_SCALAR, PEAL_NODE_LIST, PEAL_NODE_MAP } peal_node_kind;

typedef struct peal_node peal_node;

typedef struct peal_pair {
    peal_node *key; /* a scalar */
    peal_node *value;
} peal_pair;

struct peal_node {
    peal_node_kind kind;
    bool quoted;      /* a scalar in quotes, or a block scalar: always a text */
    bool exact;       /* text's bytes stand in the file as they are, from `at` on */
    bool trapped;     /* reported already: to be left alone */
    const char *text; /* scalars: with a NUL; decoded unless exact */
    const char *lent; /* the reader's: the copy that the builder got */
    peal_source at;   /* of the node; of a quoted scalar: of the text within the quotes */
    int count;
    peal_node **item; /* LIST */
    peal_pair *pair;  /* MAP */
};

/* Reads one document. file names it in messages. Everything lies in the arena. */
peal_status peal_document_parse(const char *file, const char *bytes, size_t count,
                                peal_arena *arena, peal_diagnostics *diagnostics, peal_node **out,
                                int *node_count);

/* Reads a whole file ("-": standard input) into the arena; at most PEAL_DOCUMENT_BYTES. */
peal_status peal_document_load(const char *path, peal_arena *arena, peal_diagnostics *diagnostics,
                               const char **bytes, size_t *count);

/* PEAL_E_COMPILE_OUT_OF_MEMORY, where the guard of an arena goes on. */
peal_status peal_document_no_memory(const char *file, const peal_arena *arena,
                                    peal_diagnostics *diagnostics);

/* Checks that come before libyaml: size, encoding, NUL, brackets nested too deep. Skips a byte
 * order mark. */
peal_status peal_document_scan(const char *file, const char **bytes, size_t *count,
                               peal_diagnostics *diagnostics);

/* The value of a map's key, NULL if it isn't there. */
peal_node *peal_node_find(const peal_node *map, const char *key);

#endif
