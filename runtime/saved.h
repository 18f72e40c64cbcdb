/* Files of `save` in a verification: serial's go to a folder of their own. */
#ifndef PEAL_RUNTIME_SAVED_H
#define PEAL_RUNTIME_SAVED_H

#include "base/diagnostic.h"

#include <peal/plugin/graph.h>

/* A new folder (in TMPDIR, else /tmp), malloc'ed; NULL: it cannot be made. */
char *peal_saved_open(void);
/* Removes it with all that is in it. NULL is fine. */
void peal_saved_close(char *folder);
/* The name, malloc'ed, under which serial saves what the run saves as `file`: both with {step} and
 * the like. NULL: no memory. */
char *peal_saved_name(const peal_graph_data *graph, const char *folder, const char *file);
/* PEAL_E360 of the first file there that differs from the run's; *count: how many there are. */
peal_status peal_saved_compare(const peal_graph_data *graph, const char *folder, int *count,
                               peal_diagnostics *diagnostics);

#endif
