/* One fault planted in a random graph. */
#ifndef PEAL_TESTS_RANDOM_FAULT_H
#define PEAL_TESTS_RANDOM_FAULT_H

#include "base/diagnostic.h"
#include "tests/property/random_internal.h"

/* The file that planted statements say they stand in. */
#define RANDOM_FAULT_FILE "planted.c"

/* A kind of fault: what must be reported, in which of the planted lines. */
struct random_fault {
    const char *name;
    peal_code code;
    int line[2]; /* 0: none */
    bool (*fits)(const random_graph *g);
    void (*declare)(random_graph *g, bool sound); /* NULL: nothing */
    void (*plant)(random_graph *g, bool sound);
};

extern const random_fault random_faults[];
extern const int random_fault_count;

/* The graph of a seed with a fault, or with its sound twin; NULL: the fault does not fit it. */
random_graph *random_graph_create_planted(uint64_t seed, const random_fault *fault, bool sound);
/* The one rank that a fault is about, if it is about one. */
int random_graph_planted_rank(const random_graph *graph);

#endif
