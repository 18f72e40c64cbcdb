/* What the Jacobi mesh holds after so many steps, computed by the CPU. In s steps the walls are
 * felt s columns away, and the columns in the middle stay at zero: a mesh without most of these has
 * the same bits elsewhere, and even large meshes take a moment. */
#ifndef PEAL_BENCH_GPU_TRUTH_H
#define PEAL_BENCH_GPU_TRUTH_H

#include "../bodies/mesh.h"

#include <pthread.h>
#include <unistd.h>

enum { TRUTH_STEPS = 100, TRUTH_HALF = TRUTH_STEPS + 4, TRUTH_THREADS = 32 };

typedef struct truth {
    long n;
    uint64_t digest; /* after TRUTH_STEPS */
    double norm;     /* of the last of them */
    bool known;      /* norms are those that NVIDIA's samples print, where they print any */
} truth;

typedef struct truth_mesh {
    long n, columns; /* n rows, of which the first and the last repeat others */
    float *a, *an;
} truth_mesh;

typedef struct truth_part {
    const truth_mesh *mesh;
    long first, end; /* mesh rows */
    uint64_t digest;
} truth_part;

static inline void *truth_hash(void *user)
{
    truth_part *part = (truth_part *)user;
    const truth_mesh *m = part->mesh;
    const long half = m->columns / 2, gap = m->n - m->columns;
    uint64_t sum = 0;
    for (long row = part->first; row < part->end; row++) {
        const float *a = m->a + row * m->columns;
        const uint64_t number = (uint64_t)((row - 1) * m->n);
        for (long x = 0; x < half; x++) {
            sum += bench_hash(number + (uint64_t)x, bench_bits_f32(a[x]));
        }
        for (long x = half; x < half + gap; x++) {
            sum += bench_hash(number + (uint64_t)x, 0);
        }
        for (long x = half; x < m->columns; x++) {
            sum += bench_hash(number + (uint64_t)(x + gap), bench_bits_f32(a[x]));
        }
    }
    part->digest = sum;
    return NULL;
}

/* As mesh_digest over all rows. */
static inline uint64_t truth_digest(const truth_mesh *m)
{
    truth_part part[TRUTH_THREADS];
    pthread_t thread[TRUTH_THREADS];
    bool started[TRUTH_THREADS] = {false};
    const long cores = sysconf(_SC_NPROCESSORS_ONLN), rows = m->n - 2;
    const int threads = cores < 1 ? 1 : cores > TRUTH_THREADS ? TRUTH_THREADS : (int)cores;
    uint64_t sum = 0;
    for (int i = 0; i < threads; i++) {
        part[i] = (truth_part){m, 1 + rows * i / threads, 1 + rows * (i + 1) / threads, 0};
        started[i] = pthread_create(&thread[i], NULL, truth_hash, &part[i]) == 0;
    }
    for (int i = 0; i < threads; i++) {
        if (started[i]) {
            pthread_join(thread[i], NULL);
        } else {
            truth_hash(&part[i]);
        }
        sum += part[i].digest;
    }
    return sum;
}

static inline void truth_repeat_rows(const truth_mesh *m, float *a)
{
    const size_t bytes = (size_t)(m->columns - 2) * sizeof(float);
    memcpy(a + 1, a + (m->n - 2) * m->columns + 1, bytes);
    memcpy(a + (m->n - 1) * m->columns + 1, a + m->columns + 1, bytes);
}

/* One step; its norm. */
static inline double truth_step(truth_mesh *m)
{
    double sum = 0;
    jacobi_relax(m->a, m->an, m->columns, 1, m->columns - 1, 1, m->n - 1);
    for (long y = 1; y < m->n - 1; y++) {
        for (long x = 1; x < m->columns - 1; x++) {
            const float d = m->an[y * m->columns + x] - m->a[y * m->columns + x];
            sum += (double)d * d;
        }
    }
    truth_repeat_rows(m, m->an);
    float *other = m->a;
    m->a = m->an;
    m->an = other;
    return sqrt(sum);
}

static inline bool truth_close(double norm, double right)
{
    return fabs(norm - right) <= 1e-5 * right;
}

/* False: no memory. */
static inline bool truth_compute(long n, truth *out)
{
    truth_mesh m = {.n = n, .columns = n < 2 * TRUTH_HALF ? n : 2 * TRUTH_HALF};
    const size_t bytes = (size_t)n * (size_t)m.columns;
    const double first = n == 256 ? 3.992180 : n == 1024 ? 7.996092 : n == 4096 ? 15.998047 : 0;
    const double last = n == 256 ? 0.110318 : n == 1024 ? 0.224180 : n == 4096 ? 0.448925 : 0;
    float *a = (float *)calloc(bytes, sizeof(float)), *an = (float *)calloc(bytes, sizeof(float));
    double norm = 0;
    if (!a || !an) {
        free(a);
        free(an);
        return false;
    }
    *out = (truth){.n = n, .known = true};
    for (long y = 0; y < n; y++) {
        a[y * m.columns] = a[(y + 1) * m.columns - 1] = an[y * m.columns] =
            an[(y + 1) * m.columns - 1] = mesh_wall(n, y);
    }
    m.a = a;
    m.an = an;
    for (int step = 0; step <= TRUTH_STEPS; step++) {
        if (step == TRUTH_STEPS) {
            out->digest = truth_digest(&m);
            out->norm = norm;
        }
        norm = truth_step(&m);
        if (step == 0 && first > 0) {
            out->known = truth_close(norm, first);
        }
    }
    out->known = out->known && (last == 0 || truth_close(norm, last));
    free(a);
    free(an);
    return true;
}

#endif
