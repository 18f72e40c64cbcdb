/* Where the data files of a spec lie: known before it runs, but for what {step} and the like make
 * of a name. */
#ifndef PEAL_BASE_PLACES_H
#define PEAL_BASE_PLACES_H

#include "base/diagnostic.h"

#include <peal/plugin/graph.h>

#include <limits.h>

/* A `load` or `save` whose `when` is not known to be false. */
bool peal_file_may_happen(const peal_graph_data *graph, const peal_statement *s);
/* {rank} stands in the file's name: each rank has one of its own. */
bool peal_file_is_of_rank(const char *name);
/* The path of its file, from the folder of the spec, up to what only a run can tell. True: all of
 * it. An empty path: it is too long, which the run will tell. */
bool peal_file_path(const peal_graph_data *graph, const peal_statement *s, char path[PATH_MAX]);
/* Reports PEAL_E_DATA_FILE_OUTSIDE of every file of a `load`, `save` or constant buffer that is
 * outside the spec's folder, unless that is allowed. */
peal_status peal_places_check(const peal_graph_data *graph, int ranks, bool allow_outside,
                              peal_diagnostics *diagnostics);

#endif
