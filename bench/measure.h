/* What every benchmark program shares: the clock, one thread per core, medians, and the JSON line
 * that bench/run.py reads. Header-only, so that a peer is one command of its compiler wrapper.
 *
 * A program measures in batches: a batch is so many repetitions that the clock costs nothing, and
 * the median of a few batches is the program's number for this round. */
#ifndef PEAL_BENCH_MEASURE_H
#define PEAL_BENCH_MEASURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BENCH_BATCHES = 5 };

typedef struct bench_result {
    const char *bench;   /* "halo" */
    const char *test;    /* the case: "32x3" */
    const char *peer;    /* "openmpi" */
    const char *variant; /* "persistent-planes" */
    const char *kind;    /* "peer", "peal", or "floor": shown, not compared */
    int batch_count;
    double ns[BENCH_BATCHES]; /* of one repetition */
    bool verified;
    uint64_t digest; /* of the result, equal for all who computed the same; 0: none */
} bench_result;

static inline double bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Binds the calling thread to the index-th of the cores that the process was given, counted modulo
 * their number. Every program of a comparison does this itself, so that all are placed alike. The
 * main thread calls it first: later threads inherit its one core, so the set is kept. */
static inline void bench_pin(int index)
{
    static cpu_set_t allowed;
    static bool known;
    cpu_set_t one;
    if (!known && sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return;
    }
    known = true;
    int skip = index % CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof(one), &one);
            return;
        }
    }
}

static inline int bench_compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline double bench_median(const double *values, int count)
{
    double sorted[BENCH_BATCHES];
    memcpy(sorted, values, (size_t)count * sizeof(double));
    qsort(sorted, (size_t)count, sizeof(double), bench_compare_doubles);
    return count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

/* How many repetitions make a batch of budget_ns when one takes about one_ns. */
static inline long bench_repetitions(double one_ns, double budget_ns)
{
    double count = budget_ns / (one_ns > 1 ? one_ns : 1);
    return count < 1 ? 1 : count > 1e8 ? 100000000 : (long)count;
}

/* Budget of one batch: PEAL_BENCH_BATCH_MS, 5 by default. */
static inline double bench_budget_ns(void)
{
    const char *text = getenv("PEAL_BENCH_BATCH_MS");
    double ms = text ? atof(text) : 5;
    return (ms > 0 ? ms : 5) * 1e6;
}

/* bytes: memory that the measured thing used; negative: not measured. */
static inline void bench_print_bytes(const bench_result *result, double bytes)
{
    printf("{\"bench\": \"%s\", \"case\": \"%s\", \"peer\": \"%s\", \"variant\": \"%s\", "
           "\"kind\": \"%s\", \"ns\": %.3f, \"batches\": [",
           result->bench, result->test, result->peer, result->variant, result->kind,
           bench_median(result->ns, result->batch_count));
    for (int i = 0; i < result->batch_count; i++) {
        printf("%s%.3f", i ? ", " : "", result->ns[i]);
    }
    printf("], ");
    if (bytes >= 0) {
        printf("\"bytes\": %.0f, ", bytes);
    }
    printf("\"digest\": \"%016llx\", \"verified\": %s}\n", (unsigned long long)result->digest,
           result->verified ? "true" : "false");
    fflush(stdout);
}

static inline void bench_print(const bench_result *result)
{
    bench_print_bytes(result, -1);
}

/* Digests of arrays add up over points and ranks: each point gives a hash of its global number and
 * its bits, so that any split of the work gives the same sum. */
static inline uint64_t bench_hash(uint64_t number, uint64_t bits)
{
    uint64_t h = number * 0x9e3779b97f4a7c15u ^ bits;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

static inline uint64_t bench_bits_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline uint64_t bench_bits_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

#endif
