/* Broken specs and the one message that each must get. */
#ifndef PEAL_TESTS_DSL_CASES_H
#define PEAL_TESTS_DSL_CASES_H

#include "base/diagnostic.h"

typedef struct spec_case {
    const char *text;
    peal_code code;
    int line, column;
    const char *hint;     /* part of the hint; NULL: not looked at */
    const char *override; /* one --set; NULL: none */
} spec_case;

extern const spec_case spec_cases[];
extern const int spec_case_count;

#endif
