/* Files that a graph both loads and saves, as they were before it ran, so that runs which are
 * compared with each other load the same.
 *
 * `save` puts a new file in the place of the old one: whoever has the old one open can read it. */
#ifndef PEAL_BASE_ORIGINALS_H
#define PEAL_BASE_ORIGINALS_H

#include "base/diagnostic.h"

#include <peal/plugin/graph.h>

#include <stdbool.h>

typedef struct peal_originals peal_originals;

/* *out NULL: there are no such files. PEAL_E_FILE_NOT_COMPARABLE: one cannot be kept open. */
peal_status peal_originals_create(const peal_graph_data *graph, bool allow_outside,
                                  peal_diagnostics *diagnostics, peal_originals **out);
/* The same files for another run. */
peal_status peal_originals_copy(const peal_originals *from, peal_diagnostics *diagnostics,
                                peal_originals **out);
void peal_originals_destroy(peal_originals *originals);
/* Before the first save of a run: what replaces a file from now on has been saved by this run. */
void peal_originals_begin(peal_originals *originals);
/* What is to be read in the place of `path` (links resolved), which the caller closes; -1: what is
 * there. again: the run is repeated elsewhere, so nothing there is its own. 0 or an errno. */
int peal_originals_open(const peal_originals *originals, const char *path, bool again,
                        int *descriptor);

#endif
