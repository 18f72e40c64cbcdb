/* What the files of `peal bench` share. */
#ifndef PEAL_TOOLS_BENCH_H
#define PEAL_TOOLS_BENCH_H

#include "tools/options.h"

#include <peal/plugin/times.h>

#include <stdio.h>

typedef struct bench_origin {
    const peal_options *options;
    const char *device; /* what the GPU is; "": none */
    int rounds;         /* 0: times are those of another file */
} bench_origin;

/* A machine file, with date, host and command in its comment. */
void bench_print_machine(FILE *out, const peal_machine_times *times, const bench_origin *origin);

#endif
