/* The one table of the language's keys: what the reader accepts, what the schema and the reference
 * page say. */
#ifndef PEAL_DSL_KEYS_H
#define PEAL_DSL_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/* What the value of a key looks like. */
typedef enum peal_key_type {
    PEAL_KEY_VERSION,    /* 1 */
    PEAL_KEY_COUNT,      /* a whole number, at least 1 */
    PEAL_KEY_SECONDS,    /* a number, at least 0 */
    PEAL_KEY_RATE,       /* a number, at least 1 */
    PEAL_KEY_TEXT,       /* a text */
    PEAL_KEY_TEXTS,      /* a text, or a list of texts */
    PEAL_KEY_NAME,       /* a name */
    PEAL_KEY_NAMES,      /* a name, or a list of names */
    PEAL_KEY_PAIR,       /* a list of two names */
    PEAL_KEY_BOOLEAN,    /* true or false */
    PEAL_KEY_BOOLEANS,   /* by axis */
    PEAL_KEY_WORD,       /* one of `words` */
    PEAL_KEY_LITERAL,    /* number, boolean or text */
    PEAL_KEY_EXPRESSION, /* an expression */
    PEAL_KEY_CONDITION,  /* an expression that is true or false */
    PEAL_KEY_AXES,       /* expressions by axis; `words` may stand for one */
    PEAL_KEY_LIST,       /* an expression or a list of them */
    PEAL_KEY_AMOUNT,     /* an amount */
    PEAL_KEY_RANGES,     /* [[first, end], ...] */
    PEAL_KEY_DIRECTION,  /* [0, -1] */
    PEAL_KEY_PART,       /* interior, boundary or an amount */
    PEAL_KEY_PEERS,      /* direction, rank, list, all, {along: x} */
    PEAL_KEY_PARAMS,     /* maps of declarations: */
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

typedef struct peal_key {
    const char *name;
    peal_key_type type;
    bool required;
    const char *words; /* WORD, AXES: words apart by spaces; NULL: none */
    const char *doc;
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
} peal_context;

const peal_context *peal_context_at(peal_context_id id);
/* The key of that name, or NULL. */
const peal_key *peal_context_find(const peal_context *context, const char *name);
/* "an expression", "a list of two names": for messages and the reference. */
const char *peal_key_type_name(peal_key_type type);
/* True for keys that later versions will use ("reverse", "host"): nobody may take them now. */
bool peal_key_is_reserved(const char *name);

#endif
