/* How terms are kept; for meaning*.c alone. */
#ifndef PEAL_BASE_MEANING_TERMS_H
#define PEAL_BASE_MEANING_TERMS_H

#include "base/meaning.h"

typedef enum term_shape {
    TERM_CONSTANT, /* integer (booleans: 0 or 1), real's bits, or a text's number */
    TERM_VARIABLE, /* number in `bits` */
    TERM_OPERATOR, /* op of part[0], part[1] (0: none) */
    TERM_SELECT,   /* part[0] ? part[1] : part[2] */
    TERM_NAMED,    /* an expression's leaf of kind op that is not known here; `bits`: which */
    TERM_STORED    /* part[0] as an element of type op holds it */
} term_shape;

typedef struct term {
    term_shape shape;
    int op;
    peal_value_kind kind;
    peal_term part[3];
    int64_t bits;
    int size; /* in operators and names, written out */
} term;

struct peal_meanings {
    const peal_graph_data *graph;
    peal_arena *arena;
    term *item; /* item[0] is none */
    int count, capacity;
    int *bucket; /* hash table of terms; 0: free */
    int bucket_count;
    const char **text; /* by number */
    int text_count, text_capacity;
    peal_term *domain; /* by variable's number; 0: any value */
    bool *settled;
    int variable_count, domain_capacity, settled_capacity;
};

peal_term term_keep(peal_meanings *m, const term *t);
/* The term with another one in place of one of its parts. */
peal_term term_replace(peal_meanings *m, peal_term in, peal_term old, peal_term by);

static inline bool term_is_constant(const peal_meanings *m, peal_term t)
{
    return m->item[t].shape == TERM_CONSTANT;
}
static inline bool term_is_operator(const peal_meanings *m, peal_term t, peal_operator op)
{
    return m->item[t].shape == TERM_OPERATOR && m->item[t].op == (int)op;
}

#endif
