/* The one table of the language's keys. A row says what a key is called, what its value looks like,
 * what it means, and which member of which struct it fills. The reader accepts and reads by it, the
 * builder copies by it, the schema and the reference page are printed from it.
 *
 * A new type is a line each in the tables of keys.c (its name, definition and size),
 * reader_kinds.c (its reader) and, if it holds texts, copy.c (its keeper). */
#ifndef PEAL_DSL_KEYS_H
#define PEAL_DSL_KEYS_H

#include "dsl/dsl.h"

#include <stdbool.h>
#include <stddef.h>

/* What the value of a key looks like. */
typedef enum peal_key_type {
    PEAL_KEY_VERSION,      /* 1 */
    PEAL_KEY_COUNT,        /* a whole number, 1 to `most` */
    PEAL_KEY_BYTES,        /* the same, of 64 bits */
    PEAL_KEY_SECONDS,      /* a number, at least 0 */
    PEAL_KEY_RATE,         /* a number, 1 to `most` */
    PEAL_KEY_TEXT,         /* a text */
    PEAL_KEY_KERNEL_FILES, /* a text, or a list of texts: for the builder's */
    PEAL_KEY_REQUIREMENTS,
    PEAL_KEY_NAME,       /* a name */
    PEAL_KEY_NAMES,      /* a name, or a list of names */
    PEAL_KEY_PAIR,       /* a list of two names */
    PEAL_KEY_BOOLEAN,    /* true or false */
    PEAL_KEY_BOOLEANS,   /* by axis */
    PEAL_KEY_WORD,       /* one of `words`: as a text, */
    PEAL_KEY_CONSENT,    /* as true (it is the only one), */
    PEAL_KEY_SHARE,      /* as a peal_link_share */
    PEAL_KEY_LITERAL,    /* number, boolean or text */
    PEAL_KEY_EXPRESSION, /* an expression */
    PEAL_KEY_CONDITION,  /* an expression that is true or false */
    PEAL_KEY_AXES,       /* expressions by axis; `words` may stand for one */
    PEAL_KEY_LIST,       /* an expression or a list of them: as one text, */
    PEAL_KEY_ARGUMENTS,  /* as a text each */
    PEAL_KEY_AMOUNT,     /* an amount */
    PEAL_KEY_RANGES,     /* [[first, end], ...] */
    PEAL_KEY_CUTS,       /* [[0, ..., size], auto, ...] */
    PEAL_KEY_DIRECTION,  /* [0, -1] */
    PEAL_KEY_PART,       /* interior, boundary or an amount */
    PEAL_KEY_PEERS,      /* direction, rank, list, all, {along: x} */
    PEAL_KEY_PARAMS,     /* maps of declarations: */
    PEAL_KEY_DEFINES,
    PEAL_KEY_TOPOLOGY,
    PEAL_KEY_FIELDS,
    PEAL_KEY_BUFFERS,
    PEAL_KEY_STATEMENTS, /* a body */
    PEAL_KEY_POINTS,     /* a box */
    PEAL_KEY_MESSAGE,    /* what is sent or received */
    PEAL_KEY_ACCESSES,   /* read, update, write */
    PEAL_KEY_EXCHANGE,   /* fields of an exchange */
    PEAL_KEY_REDUCTIONS, /* {d2: sum} */
    PEAL_KEY_PRINT,      /* {norm: expression} */
    PEAL_KEY_MODES,      /* of machine files: maps of times by mode, task, link */
    PEAL_KEY_KERNELS,
    PEAL_KEY_LINKS,
    PEAL_KEY_TYPE_COUNT
} peal_key_type;

/* What is common to the keys of a type. */
typedef struct peal_key_kind {
    const char *name; /* "an expression", "a list of two names": for messages, the reference */
    const char *definition; /* the schema's: its name, or JSON; NULL: the row's words */
    size_t bytes;           /* of what one value fills; 0: nothing, or by another's member */
} peal_key_kind;

/* Where in a struct; bytes 0: nowhere. */
typedef struct peal_member {
    size_t offset, bytes;
} peal_member;

typedef struct peal_key {
    const char *name;
    peal_key_type type;
    bool required;
    const char *words; /* WORD, AXES: words apart by spaces; NULL: none */
    const char *doc;
    peal_member at; /* the member that it fills, with room for some items where it is an array */
    double most;    /* COUNT, BYTES, RATE */
    int turn;       /* -1, 0, 1: keys are read by turns, those of a turn in the order of rows. The
                       order shows where YAML has cut a value: keys read after it are not reported
                       as missing */
} peal_key;

/* The contexts: places of a spec where keys stand. */
typedef enum peal_context_id {
    PEAL_CONTEXT_MACHINE, /* a file of its own, with parts */
    PEAL_CONTEXT_MODE_TIMES,
    PEAL_CONTEXT_KERNEL_TIMES,
    PEAL_CONTEXT_LINK_TIMES,
    PEAL_CONTEXT_SPEC, /* from here on parts of specs */
    PEAL_CONTEXT_PARAM,
    PEAL_CONTEXT_TOPOLOGY,
    PEAL_CONTEXT_FIELD,
    PEAL_CONTEXT_BUFFER,
    PEAL_CONTEXT_BOX,
    PEAL_CONTEXT_COUNTED,
    PEAL_CONTEXT_ACCESS,
    PEAL_CONTEXT_EXCHANGE_ITEM,
    PEAL_CONTEXT_PIECE,
    PEAL_CONTEXT_PEERS,
    PEAL_CONTEXT_TASK, /* statements from here on, in the order in which they are recognised */
    PEAL_CONTEXT_EXCHANGE,
    PEAL_CONTEXT_SEND,
    PEAL_CONTEXT_RECV,
    PEAL_CONTEXT_ALLREDUCE,
    PEAL_CONTEXT_REDUCE,
    PEAL_CONTEXT_SWAP,
    PEAL_CONTEXT_SET,
    PEAL_CONTEXT_PRINT,
    PEAL_CONTEXT_LOAD,
    PEAL_CONTEXT_SAVE,
    PEAL_CONTEXT_REPEAT,
    PEAL_CONTEXT_COPY,
    PEAL_CONTEXT_FOR,
    PEAL_CONTEXT_COUNT
} peal_context_id;

/* A context. Statements are named by their first key, which tells them apart. */
typedef struct peal_context {
    const char *name;  /* "task", "field", ...: also the schema's definition */
    const char *title; /* "a task" */
    const char *doc;
    const char *example;
    const peal_key *key;
    int key_count;
    size_t bytes;             /* of the struct that its keys fill */
    peal_member named;        /* its member for the name that the map stands under */
    peal_statement_kind kind; /* of statements: what the builder knows them by */
    peal_context_id twin;     /* whose keys fill the same struct; MACHINE: none */
} peal_context;

/* What the keys of a spec fill that belong to none of its parts. */
typedef struct peal_spec {
    const char *name;
    bool fma;
    peal_loop_desc loop;
} peal_spec;

/* What the keys of a machine file fill. */
typedef struct peal_machine_file {
    peal_machine machine;
    peal_machine_times times;
} peal_machine_file;

const peal_context *peal_context_at(peal_context_id id);
/* The key of that name, or NULL. */
const peal_key *peal_context_find(const peal_context *context, const char *name);
const peal_key_kind *peal_key_kind_of(const peal_key *key);
/* The key's member of desc, which may be changed if desc may. */
void *peal_key_member(const peal_key *key, const void *desc);
/* How many items the member has room for. */
int peal_key_room(const peal_key *key);
/* Descriptors of the builder begin with size_bytes and source. */
peal_source *peal_desc_source(const void *desc);
/* True for keys that later versions will use ("reverse", "host"): nobody may take them now. */
bool peal_key_is_reserved(const char *name);

#endif
