/* Hand-made schedules for the tests of backends: a ring of ranks that smooth a 1-D field, cut into
 * tiles, with an exchange and a swap in every step. */
#ifndef PEAL_TESTS_RING_H
#define PEAL_TESTS_RING_H

#include "base/arena.h"
#include "base/diagnostic.h"

#include <peal/plugin/backend.h>

enum { RING_MOST_RANKS = 4, RING_OPS = 32 };

typedef struct ring_options {
    int ranks, points, tiles; /* points and tiles a rank */
    peal_mode mode;
    int workers, lanes;
    bool direct; /* messages go into the halo; else staged, with a credit for each slot */
    int slots;
    bool norm;     /* reduce: sum of squares of the rank's new points, every step */
    int64_t limit; /* > 0: `hits` counts steps, and `until: hits >= limit` ends the loop */
    int64_t every, lag;
    bool branch; /* with limit: a run-time IF counts in `late` the steps in which hits > 3 */
    int64_t steps;
    const char *folder, *kernel_file; /* not NULL: kernels init and `relax` are in this C file */
    const char *relax;                /* NULL: "relax" */
    const char *cache;
    bool outside;
    peal_backend_hooks hooks;
    int64_t deadline_ns;
    const peal_backend_ops *backend; /* NULL: the host's */
    peal_device *device;             /* which it has opened, and whose memory the host's is */
} ring_options;

typedef struct ring_job {
    ring_options options;
    peal_arena *arena;
    peal_diagnostics *diagnostics;
    peal_graph_data graph;
    peal_machine machine;
    peal_schedule schedule[RING_MOST_RANKS];
    peal_backend_rank rank[RING_MOST_RANKS];
    unsigned char *segment[RING_MOST_RANKS];
    _Atomic int abort_word;
    peal_backend_desc desc;
    peal_backend_plan *plan;
    peal_backend_result result;
} ring_job;

/* The schedule of one rank: arrays, channels, tasks, ops. Called by ring_init. */
void ring_build_rank(ring_job *job, int rank);

/* Builds schedules and memory. Ops can still be changed; then create, start, wait. */
void ring_init(ring_job *job, const ring_options *options);
/* Of rings whose messages are direct: each rank receives before it sends. */
void ring_receive_first(ring_job *job);
peal_status ring_create(ring_job *job);
peal_status ring_run(ring_job *job, bool setup, int64_t steps, bool finish);
/* The point x of the whole field, from the rank that owns it. */
double ring_point(const ring_job *job, int64_t x);
double ring_buffer(const ring_job *job, int rank, int array);
/* What `steps` steps give, computed plainly. */
void ring_expected(const ring_job *job, int64_t steps, double *field);
void ring_close(ring_job *job);

enum { RING_A, RING_AN, RING_NORM, RING_PARTIALS, RING_HITS, RING_LATE, RING_ARRAYS };

/* The op with this label; -1: none. */
int ring_op(const ring_job *job, int rank, const char *label);

#endif
