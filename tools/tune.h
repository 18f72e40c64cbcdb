/* What the files of `peal tune` share. */
#ifndef PEAL_TOOLS_TUNE_H
#define PEAL_TOOLS_TUNE_H

#include "runtime/tune/tune.h"
#include "tools/run.h"

typedef struct tuning {
    peal_tuned tuned;
    bool measured;   /* else it was only asked what the answer depends on */
    char path[4096]; /* of the answer; "": nobody can tell */
    bool kept, forgotten;
    const char *unkept; /* why not, in words; NULL: it is kept, or has been reported */
    char date[24];
} tuning;

void tune_print_text(const peal_run *run, peal_status status);
void tune_print_json(const peal_run *run, peal_status status);
/* The table, as lines that begin with `before`. */
void tune_print_table(const peal_tuned *tuned, const char *before, FILE *out);

#endif
