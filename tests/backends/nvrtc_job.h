/* What the tests that compile for a GPU share. */
#ifndef PEAL_TESTS_NVRTC_JOB_H
#define PEAL_TESTS_NVRTC_JOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether there is an NVRTC; else says why the test is skipped. */
bool nvrtc_is_here(void);

/* A new folder of its own, and its removal with all that it holds. */
bool scratch_make(char *path, size_t bytes);
void scratch_remove(const char *path);

#endif
