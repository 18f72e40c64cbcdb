/* Random valid graphs for property tests: the same seed gives the same graph. Tasks are host
 * functions, so no compiler is needed; what they compute depends on every element of their
 * footprints. */
#ifndef PEAL_TESTS_RANDOM_GRAPH_H
#define PEAL_TESTS_RANDOM_GRAPH_H

#include <peal/graph.h>

#include <stdbool.h>

typedef struct random_graph random_graph;

/* Never fails (aborts without memory). */
random_graph *random_graph_create(uint64_t seed);
/* The same with kernels in place of host functions, in a file of their own in folder (used until
 * the graph is destroyed): it runs on every backend. */
random_graph *random_graph_create_in(uint64_t seed, const char *folder);
void random_graph_destroy(random_graph *graph);

peal_graph *random_graph_builder(random_graph *graph);
int random_graph_ranks(const random_graph *graph);
int random_graph_steps(const random_graph *graph);
/* The graph as text, to look at when a seed fails. */
const char *random_graph_text(const random_graph *graph);

/* Without reductions and elements a tile, whose values depend on how a backend cuts tiles: with
 * kernels such a graph gives equal bits on all backends. */
bool random_graph_is_exact(const random_graph *graph);

/* What of the language the graph uses: bit i is random_feature_names[i]. */
uint64_t random_graph_features(const random_graph *graph);
extern const char *const random_feature_names[];
extern const int random_feature_count;

/* A small generator with a defined sequence (splitmix64). */
uint64_t random_next(uint64_t *state);
int random_below(uint64_t *state, int limit);

#endif
