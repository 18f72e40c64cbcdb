/* The rows of the table that gpu_primitives prints. Each file of rows adds its own; the main
 * program measures all rows once a round, and prints medians over the rounds. */
#ifndef PEAL_BENCH_GPU_PRIMITIVES_CUH
#define PEAL_BENCH_GPU_PRIMITIVES_CUH

#include "gpu.cuh"

enum { ROW_ROUNDS = 64 };

typedef struct row row;
/* One value in the row's unit, or NAN: not to be had here. */
typedef double row_measure(const row *r);

struct row {
    char name[72];
    const char *unit; /* "us" or "GB/s" */
    int gpus;         /* needed */
    row_measure *measure;
    long a, b, c;    /* what the measure likes: sizes, counts, ways */
    double expected; /* what was seen on this model before, or 0 */
    double value[ROW_ROUNDS];
    int value_count;
    bool failed; /* not tried again */
};

/* Adds a row; the name may have a %s for `word`. */
row *row_add(int gpus, const char *unit, row_measure *measure, double expected, const char *format,
             ...) __attribute__((format(printf, 5, 6)));

void rows_add_flags(void);
void rows_add_launches(void);
void rows_add_copies(void);
void rows_add_puts(void);
void rows_add_tiles(void);

/* Runs the checks of what can release waiting streams, each in a child process with a deadline.
 * Results are printed as lines, and as JSON objects to `json` unless it is NULL. */
void rescue_run(FILE *json, int gpus);
/* What a child process does; returns its exit status. */
int rescue_child(int argc, char **argv);

#endif
