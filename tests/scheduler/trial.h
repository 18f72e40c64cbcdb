/* A random field on a random topology, for tests of the geometry. */
#ifndef PEAL_TESTS_SCHEDULER_TRIAL_H
#define PEAL_TESTS_SCHEDULER_TRIAL_H

#include "dsl/dsl.h"
#include "scheduler/geometry/geometry.h"
#include "tests/scheduler/brute.h"

/* A random field, and the graph that declares it. */
typedef struct trial {
    uint64_t seed, state;
    brute_field f;
    int64_t end[PEAL_AXES][8]; /* of f */
    int ranks;
    peal_graph *graph;
    peal_diagnostics *diagnostics;
    peal_compilation *c;
    char about[1000];
} trial;

/* The field "u" of a seed; automatic: with `auto` for all dims. */
void trial_begin(trial *t, uint64_t seed, bool automatic);
/* Compiles what has been added since; false: refused. */
bool trial_compile(trial *t);
void trial_end(trial *t);

int trial_below(trial *t, int limit);
/* "[1, 2]" and "[[1, 2], [3, 4]]" with a value an axis. */
const char *trial_list(const trial *t, const int64_t *value, char *text);
const char *trial_amounts(const trial *t, int64_t (*value)[2], char *text);

/* Where a rank is in the grid of ranks. */
void trial_position(const trial *t, int rank, int position[PEAL_AXES]);
/* All points around the field: a little more than any rank stores. */
void trial_range(const trial *t, int64_t low[PEAL_AXES], int64_t high[PEAL_AXES]);
bool trial_holds(const peal_box *box, const int64_t p[PEAL_AXES]);

#define EXPECT(t, condition, ...)                                                                  \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            char expect_text[400];                                                                 \
            snprintf(expect_text, sizeof(expect_text), __VA_ARGS__);                               \
            peal_diagnostics_print((t)->diagnostics, stderr, 5);                                   \
            fail_msg("%s\n%s", (t)->about, expect_text);                                           \
        }                                                                                          \
    while (0)

#endif
