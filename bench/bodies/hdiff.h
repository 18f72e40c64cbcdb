/* The problem of the GPU benchmark of horizontal diffusion (samples/hdiff), the same for peal and
 * its peers: how ranks share a periodic patch, start values, digests, and what a few levels hold
 * after some steps by plain loops. Levels have nothing to do with each other: those few stand for
 * all, and digests over all levels are compared among the programs.
 *
 * In C and CUDA C++; HDIFF_BOTH: for functions that a GPU calls, too. */
#ifndef PEAL_BENCH_BODIES_HDIFF_H
#define PEAL_BENCH_BODIES_HDIFF_H

#include "../measure.h"

#include <pthread.h>
#include <unistd.h>

#ifdef __CUDACC__
#define HDIFF_BOTH __host__ __device__
#else
#define HDIFF_BOTH
#endif

enum { HDIFF_LEVELS = 64, HDIFF_STEPS = 20, HDIFF_CHECKED = 3, HDIFF_THREADS = 16 };

#define HDIFF_COEFF 0.025

/* n x n points a rank, Rx x Ry ranks; x first. */
typedef struct hdiff_patch {
    long n, rx, ry;
} hdiff_patch;

/* As square as can be, and no cut along x, where faces are not contiguous, before there is one
 * along y. */
static inline hdiff_patch hdiff_split(long n, int ranks)
{
    long rx = 1;
    for (long k = 1; k * k <= ranks; k++) {
        rx = ranks % k == 0 ? k : rx;
    }
    const hdiff_patch patch = {n, rx, ranks / rx};
    return patch;
}

/* Whole numbers of 1/32, so that sums of a few have no rounding: differences show only where two
 * programs differ in what they do. */
static HDIFF_BOTH inline double hdiff_start(long x, long y, long z)
{
    const long hill = (x * 5 + y * 3) % 512, noise = (x * 37 + y * 101 + z * 53 + x * y) % 64;
    return 0.25 * (double)(hill < 256 ? hill : 512 - hill) + 0.03125 * (double)noise;
}

/* Levels that are computed by plain loops. */
static HDIFF_BOTH inline int hdiff_is_checked(long z)
{
    return z == 0 || z == 21 || z == HDIFF_LEVELS - 1;
}

/* Of a point of the patch, whose number is x + nx (y + ny z). */
static HDIFF_BOTH inline uint64_t hdiff_hash(uint64_t number, uint64_t bits)
{
    uint64_t h = number * 0x9e3779b97f4a7c15u ^ bits;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

/* Digests over all levels and over those that are checked: sums of halves of hashes, and so the
 * same for every split; two halves in one word. */
typedef struct hdiff_sums {
    uint64_t low, high, checked_low, checked_high;
} hdiff_sums;

static inline uint64_t hdiff_word(uint64_t low, uint64_t high)
{
    return low + (high << 32);
}

/* ---- what is right, by the CPU ---- */

/* Rows [first, end) of one level, done by one of its threads. */
typedef struct hdiff_share {
    const struct hdiff_level *level;
    long first, end;
    uint64_t low, high;
} hdiff_share;

typedef struct hdiff_level {
    long nx, ny, z;
    double *in, *out, *lap, *flx, *fly;
    pthread_barrier_t *barrier;
} hdiff_level;

static inline double hdiff_flux(double flow, double slope)
{
    return flow * slope > 0.0 ? 0.0 : flow;
}

static inline void hdiff_laplacian_row(const hdiff_level *l, long y)
{
    const long nx = l->nx;
    const double *row = l->in + y * nx, *below = l->in + (y + l->ny - 1) % l->ny * nx;
    const double *above = l->in + (y + 1) % l->ny * nx;
    for (long x = 0; x < nx; x++) {
        const double west = row[x > 0 ? x - 1 : nx - 1], east = row[x + 1 < nx ? x + 1 : 0];
        l->lap[y * nx + x] = -4.0 * row[x] + (west + east + below[x] + above[x]);
    }
}

static inline void hdiff_flux_row(const hdiff_level *l, long y)
{
    const long nx = l->nx, here = y * nx, there = (y + 1) % l->ny * nx;
    for (long x = 0; x < nx; x++) {
        const long at = here + x, east = here + (x + 1 < nx ? x + 1 : 0), north = there + x;
        l->flx[at] = hdiff_flux(l->lap[east] - l->lap[at], l->in[east] - l->in[at]);
        l->fly[at] = hdiff_flux(l->lap[north] - l->lap[at], l->in[north] - l->in[at]);
    }
}

static inline void hdiff_out_row(const hdiff_level *l, long y)
{
    const long nx = l->nx, here = y * nx, below = (y + l->ny - 1) % l->ny * nx;
    for (long x = 0; x < nx; x++) {
        const long at = here + x, west = here + (x > 0 ? x - 1 : nx - 1);
        const double gain = l->flx[at] - l->flx[west] + (l->fly[at] - l->fly[below + x]);
        l->out[at] = l->in[at] - HDIFF_COEFF * gain;
    }
}

static inline void *hdiff_rows(void *user)
{
    static void (*const row[])(const hdiff_level *, long) = {hdiff_laplacian_row, hdiff_flux_row,
                                                             hdiff_out_row};
    hdiff_share *share = (hdiff_share *)user;
    hdiff_level mine = *share->level;
    for (int stage = 0; stage < 3 * HDIFF_STEPS; stage++) {
        for (long y = share->first; y < share->end; y++) {
            row[stage % 3](&mine, y);
        }
        pthread_barrier_wait(mine.barrier);
        if (stage % 3 == 2) {
            double *other = mine.in;
            mine.in = mine.out;
            mine.out = other;
        }
    }
    for (long y = share->first; y < share->end; y++) {
        for (long x = 0; x < mine.nx; x++) {
            const uint64_t number = (uint64_t)(x + mine.nx * (y + mine.ny * mine.z));
            const uint64_t h = hdiff_hash(number, bench_bits_f64(mine.in[y * mine.nx + x]));
            share->low += h & 0xffffffffu;
            share->high += h >> 32;
        }
    }
    return NULL;
}

/* All threads or none: they wait for each other. */
static inline int hdiff_run_level(hdiff_level *l, hdiff_sums *sums)
{
    hdiff_share share[HDIFF_THREADS];
    pthread_t thread[HDIFF_THREADS];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const long limit = HDIFF_THREADS, most = cores < 1 ? 1 : cores > limit ? limit : cores;
    const int count = (int)(most < l->ny ? most : l->ny);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    l->barrier = &barrier;
    for (int i = 0; i < count; i++) {
        const hdiff_share one = {l, l->ny * i / count, l->ny * (i + 1) / count, 0, 0};
        share[i] = one;
        if (i > 0 && pthread_create(&thread[i], NULL, hdiff_rows, &share[i]) != 0) {
            return 0;
        }
    }
    hdiff_rows(&share[0]);
    for (int i = 0; i < count; i++) {
        if (i > 0) {
            pthread_join(thread[i], NULL);
        }
        sums->checked_low += share[i].low;
        sums->checked_high += share[i].high;
    }
    pthread_barrier_destroy(&barrier);
    return 1;
}

/* Fills the checked part after HDIFF_STEPS steps; 0: no memory. */
static inline int hdiff_truth(const hdiff_patch *patch, hdiff_sums *sums)
{
    const long nx = patch->n * patch->rx, ny = patch->n * patch->ry, points = nx * ny;
    double *memory = (double *)malloc(5 * (size_t)points * sizeof(double));
    int good = memory != NULL;
    for (long z = 0; good && z < HDIFF_LEVELS; z++) {
        hdiff_level level;
        if (!hdiff_is_checked(z)) {
            continue;
        }
        memset(&level, 0, sizeof(level));
        level.nx = nx;
        level.ny = ny;
        level.z = z;
        level.in = memory;
        level.out = memory + points;
        level.lap = memory + 2 * points;
        level.flx = memory + 3 * points;
        level.fly = memory + 4 * points;
        for (long i = 0; i < points; i++) {
            level.in[i] = hdiff_start(i % nx, i / nx, z);
        }
        good = hdiff_run_level(&level, sums);
    }
    free(memory);
    return good;
}

#endif
