/* Which part of many like cases a run of the tests takes: share.py says how. */
#ifndef PEAL_TESTS_SHARE_H
#define PEAL_TESTS_SHARE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t share_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

typedef struct test_share {
    uint64_t every, first; /* 1, 0: all */
} test_share;

/* Each `every`-th case, where nothing else is asked for. */
static inline test_share share_of(uint64_t every)
{
    uint64_t seed = share_number("PEAL_TEST_SEED", 0);

    every = share_number("PEAL_TEST_EVERY", every);
    every = every ? every : 1;
    if (every > 1)
        printf("share: each %lluth from %llu (PEAL_TEST_SEED=%llu; all: PEAL_TEST_EVERY=1)\n",
               (unsigned long long)every, (unsigned long long)(seed % every),
               (unsigned long long)seed);
    return (test_share){every, seed % every};
}

#endif
