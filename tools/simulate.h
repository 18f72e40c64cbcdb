/* What the files of `peal simulate` share. */
#ifndef PEAL_TOOLS_SIMULATE_H
#define PEAL_TOOLS_SIMULATE_H

#include "tools/job.h"
#include "tools/output.h"

#include "backends/sim/sim.h"

/* What one mode takes on one number of ranks. */
typedef struct simulated_point {
    peal_mode mode;
    int ranks;
    int dims[PEAL_RANK_AXES];
    int schedule_count; /* that differ */
    size_t compiled_bytes;
    sim_result sent;    /* with its messages, with path */
    double free_step_s; /* the same schedule with free messages */
    /* texts of the path's pieces, summed up, the longest first */
    struct path_share *share;
    int share_count;
    struct path_stop *stop; /* the path through the last step, first to last */
    int stop_count;
} simulated_point;

typedef struct path_share {
    char what[256];
    double seconds;
    int64_t count;
} path_share;

typedef struct path_stop {
    int rank, to; /* to: -1, or what is under way to that rank */
    char what[256];
    double begin_s, end_s; /* since the step's first */
} path_stop;

typedef struct simulation {
    const peal_options *options;
    const peal_graph_data *graph;
    peal_machine_times times;
    simulated_point *point;
    int point_count;
} simulation;

/* Sums up the path of a point, whose schedules are by number and whose ranks have numbers. */
void simulate_tell_path(simulated_point *point, const peal_schedule *const *schedule,
                        const int *number);
void simulate_print_text(const simulation *simulation);
void simulate_print_json(const simulation *simulation);
/* Curves over ranks as SVG. */
peal_status simulate_draw(const simulation *simulation, const char *path,
                          peal_diagnostics *diagnostics);

#endif
