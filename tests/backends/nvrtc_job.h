/* What the tests that compile for a GPU share. */
#ifndef PEAL_TESTS_NVRTC_JOB_H
#define PEAL_TESTS_NVRTC_JOB_H

#include <stdbool.h>

/* Whether there is an NVRTC; else says why the test is skipped. */
bool nvrtc_is_here(void);

#endif
