/* Specs that read well but cannot be scheduled, and the one place that each must be refused at. */
#ifndef PEAL_TESTS_SCHEDULER_CASES_H
#define PEAL_TESTS_SCHEDULER_CASES_H

#include "base/diagnostic.h"

typedef struct graph_case {
    const char *text;
    int ranks;
    peal_code code;
    int line, column;
    const char *message; /* part of it; NULL: not looked at */
} graph_case;

extern const graph_case graph_cases[];
extern const int graph_case_count;

/* Specs at the edge of what is allowed, which must pass. */
typedef struct valid_case {
    const char *what;
    const char *text;
    int ranks;
} valid_case;

extern const valid_case valid_cases[];
extern const int valid_case_count;

#endif
