/* Classes of ranks: which look alike, and who stands for them. */
#ifndef PEAL_SCHEDULER_CLASSES_RANK_CLASSES_H
#define PEAL_SCHEDULER_CLASSES_RANK_CLASSES_H

#include "scheduler/view/compilation.h"

enum { MOST_POSITION_CLASSES = 64 };

typedef struct rank_classes {
    /* by axis: classes of positions, the class of each position, the first position of each class
     */
    int count[PEAL_RANK_AXES];
    unsigned char *of[PEAL_RANK_AXES];
    int first[PEAL_RANK_AXES][MOST_POSITION_CLASSES];
    /* by axis: positions that stand for all with neighbours of the same classes */
    int around_count[PEAL_RANK_AXES];
    int around[PEAL_RANK_AXES][MOST_POSITION_CLASSES];
} rank_classes;

/* False: something tells ranks apart that is no matter of classes; each has to be looked at.
 * Without `messages`, ranks of a class may differ in their message ends. */
bool find_classes(const common_input *c, const pass_context *pass, bool messages,
                  rank_classes *out);
int class_count(const rank_classes *classes);
/* Classes are numbered from 0. */
int class_of(const common_input *c, const rank_classes *classes, int rank);
/* The first rank of a class. Two ranks of a class have the same geometry, tasks and message ends,
 * but for where they are. */
int class_rank(const common_input *c, const rank_classes *classes, int class);
/* The first rank of a neighbourhood, numbered alike: of two such ranks, neighbours in the same
 * direction are of the same class. */
int neighbourhood_rank(const common_input *c, const rank_classes *classes, int number);

/* rank_equivalence.c: peal_compilation_alike, where ranks can be told apart by their classes; else
 * false. */
bool find_alike_ranks(peal_compilation *c, int *like);

#endif
