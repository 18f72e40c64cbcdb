/* The part of `peal explain SPEC` that predicts: what a step takes in each mode, and why. */
#ifndef PEAL_TOOLS_EXPLAIN_MODES_H
#define PEAL_TOOLS_EXPLAIN_MODES_H

#include "runtime/select/predict.h"
#include "tools/mode_lines.h"
#include "tools/output.h"

typedef struct mode_predictions {
    const char *machine; /* the file; NULL: none has times for this, nothing is predicted */
    bool accelerator; /* else cores do what a CPU and a device would: the conditions say nothing */
    bool known[PEAL_MODE_COUNT];
    peal_prediction mode[PEAL_MODE_COUNT];
    peal_mode fastest; /* PEAL_MODE_COUNT: none */
} mode_predictions;

/* Predicts every mode that can run the graph and that the file has times for. */
peal_status predict_modes(const peal_options *options, const peal_backend_ops *backend,
                          const peal_graph_data *graph, const peal_machine *machine,
                          const peal_machine_times *times, const mode_line line[PEAL_MODE_COUNT],
                          peal_diagnostics *diagnostics, mode_predictions *out);
void predictions_print(const mode_predictions *predictions);
/* "machine", "fastest" and "predictions" of the object. */
void predictions_add_json(const mode_predictions *predictions, json_t *object);

#endif
