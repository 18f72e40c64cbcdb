/* What a graph computes alike on any number of ranks: known from the graph alone.
 *
 * Fields are: they have their points, whoever owns them. A buffer is every rank's own, unless all
 * ranks get the same into it: an allreduce over all of them, `set` and tasks of one point from what
 * is alike, files without {rank}. A sum of reals over ranks, or over a task's tiles, is rounded as
 * the points are cut; so is what is computed from it. */
#ifndef PEAL_RUNTIME_VERIFY_LIKENESS_H
#define PEAL_RUNTIME_VERIFY_LIKENESS_H

#include <peal/plugin/graph.h>

typedef enum peal_alike {
    PEAL_SAME_BITS,
    PEAL_SAME_BUT_ROUNDING,
    PEAL_OWN_OF_RANK /* nothing can be said */
} peal_alike;

/* A column of `print`, and what a comparison has found in it. */
typedef struct peal_alike_column {
    const char *name;
    peal_alike alike;
    peal_type type;             /* the least exact of what it is computed from: F32 or F64 */
    double largest, difference; /* of values, and between them: SAME_BUT_ROUNDING */
    int64_t step;               /* of the largest difference; its values: */
    double run, serial;
} peal_alike_column;

typedef struct peal_likeness {
    peal_alike *array;     /* by array */
    peal_alike *statement; /* by statement: the file of a `save` */
    peal_alike_column *column;
    int column_count;
} peal_likeness;

/* NULL: no memory. */
peal_likeness *peal_likeness_create(const peal_graph_data *graph);
void peal_likeness_destroy(peal_likeness *likeness);
/* NULL: the graph prints no such column. */
peal_alike_column *peal_likeness_column(const peal_likeness *likeness, const char *name);

#endif
