/* The verbs of the command: one file each, one line in the list of main.c. */
#ifndef PEAL_TOOLS_COMMAND_H
#define PEAL_TOOLS_COMMAND_H

#include "tools/options.h"

typedef struct peal_command {
    const char *name;
    unsigned verb;    /* its bit in the masks of the option table */
    const char *help; /* at most 24 lines, with an example */
    peal_status (*run)(const peal_options *options, peal_diagnostics *diagnostics);
} peal_command;

extern const peal_command run_command, check_command, plan_command, doctor_command, schema_command,
    explain_command, version_command, simulate_command, bench_command, tune_command;

#endif
