/* Some ranks, one GPU each, as threads of one process or as processes, with a barrier and sums and
 * maxima over the ranks through shared memory; how they are asked for cases, and how batches are
 * timed: the scaffold of the GPU peers. */
#ifndef PEAL_BENCH_GPU_TEAM_CUH
#define PEAL_BENCH_GPU_TEAM_CUH

#include "gpu.cuh"
#include "serve.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct team_shared {
    pthread_barrier_t barrier;
    double value[GPU_MAX];
    uint64_t word[GPU_MAX];
    char id[1024];         /* what a library hands from rank 0 to the others */
    char line[SERVE_LINE]; /* the case that is asked for */
} team_shared;

typedef struct team {
    int rank, size;
    team_shared *shared;
    void (*work)(struct team *team, void *argument);
    void *argument;
} team;

static inline void team_barrier(const team *t)
{
    pthread_barrier_wait(&t->shared->barrier);
}

static inline double team_max(const team *t, double value)
{
    t->shared->value[t->rank] = value;
    team_barrier(t);
    for (int i = 0; i < t->size; i++) {
        value = fmax(value, t->shared->value[i]);
    }
    team_barrier(t);
    return value;
}

static inline uint64_t team_sum(const team *t, uint64_t word)
{
    uint64_t sum = 0;
    t->shared->word[t->rank] = word;
    team_barrier(t);
    for (int i = 0; i < t->size; i++) {
        sum += t->shared->word[i];
    }
    team_barrier(t);
    return sum;
}

/* Not bound to a core: threads that a library makes would inherit it. */
static inline void *team_member(void *argument)
{
    team *t = (team *)argument;
    GPU(cudaSetDevice(t->rank));
    t->work(t, t->argument);
    return NULL;
}

static inline int team_threads(team *member, int size)
{
    pthread_t thread[GPU_MAX];
    for (int i = 0; i < size; i++) {
        if (pthread_create(&thread[i], NULL, team_member, &member[i]) != 0) {
            return GPU_EXIT;
        }
    }
    for (int i = 0; i < size; i++) {
        pthread_join(thread[i], NULL);
    }
    return 0;
}

/* The first that fails takes the others with it: they would wait for it for ever. */
static inline int team_processes(team *member, int size)
{
    pid_t child[GPU_MAX];
    int status, result = 0;
    for (int i = 0; i < size; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            team_member(&member[i]);
            fflush(NULL);
            _exit(0);
        }
    }
    for (int ended = 0; ended < size; ended++) {
        pid_t one = wait(&status);
        for (int i = 0; i < size; i++) {
            child[i] = child[i] == one ? 0 : child[i];
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            result = WIFEXITED(status) ? WEXITSTATUS(status) : GPU_EXIT;
            for (int i = 0; i < size; i++) {
                if (child[i] > 0) {
                    kill(child[i], SIGKILL);
                }
            }
        }
    }
    return result;
}

/* Runs `work` on every rank. Processes are made before this one has seen a GPU. */
static inline int team_run(int size, bool processes, void (*work)(team *, void *), void *argument)
{
    team member[GPU_MAX];
    pthread_barrierattr_t attribute;
    void *shared =
        mmap(NULL, sizeof(team_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || size < 1 || size > GPU_MAX) {
        fprintf(stderr, "no memory for %d ranks\n", size);
        return GPU_EXIT;
    }
    pthread_barrierattr_init(&attribute);
    pthread_barrierattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&((team_shared *)shared)->barrier, &attribute, (unsigned)size);
    for (int i = 0; i < size; i++) {
        member[i] = {i, size, (team_shared *)shared, work, argument};
    }
    return processes ? team_processes(member, size) : team_threads(member, size);
}

/* What team_time repeats: `enqueue` puts at least so many repetitions onto the GPU and tells how
 * many, `finish` waits for them. */
typedef struct team_work {
    void *state;
    long (*enqueue)(void *state, long repetitions);
    void (*finish)(void *state);
} team_work;

/* Nanoseconds of a repetition, and those in which the host enqueued it. */
static inline double team_batch(const team *t, const team_work *work, long repetitions, double *cpu)
{
    team_barrier(t);
    const double start = bench_now_ns();
    const double done = (double)work->enqueue(work->state, repetitions);
    const double enqueued = bench_now_ns();
    work->finish(work->state);
    const double ns = team_max(t, (bench_now_ns() - start) / done);
    *cpu = team_max(t, (enqueued - start) / done);
    return ns;
}

/* Times some batches into result->ns, after a short one; returns what the host enqueued in. *length
 * is how long a batch is, 0 at first; it follows what is measured. */
static inline double team_time(const team *t, const team_work *work, long *length,
                               bench_result *result)
{
    double cpu[SERVE_BATCHES];
    const double budget = serve_budget_ns();
    if (*length == 0) {
        *length = bench_repetitions(team_batch(t, work, 20, cpu), budget / 4);
        *length = bench_repetitions(team_batch(t, work, *length, cpu), budget);
    }
    team_batch(t, work, *length / 8 + 1, cpu);
    for (int batch = 0; batch < SERVE_BATCHES; batch++) {
        result->ns[batch] = team_batch(t, work, *length, &cpu[batch]);
        result->batch_count = batch + 1;
    }
    *length = bench_repetitions(bench_median(result->ns, SERVE_BATCHES), budget);
    return bench_median(cpu, SERVE_BATCHES);
}

/* Does the cases that rank 0 is asked for, until there is none. `answer` returns false for words
 * that are no case. */
static inline void team_serve(const team *t, char *const *cases,
                              bool (*answer)(const team *t, int count, char **word, void *user),
                              void *user)
{
    for (int at = 0;;) {
        char line[SERVE_LINE], *word[SERVE_WORDS];
        if (t->rank == 0) {
            serve_next(cases, &at, t->shared->line);
        }
        team_barrier(t);
        memcpy(line, t->shared->line, sizeof(line));
        const int count = serve_split(line, word);
        if (count == 0) {
            return;
        }
        if (!answer(t, count, word, user)) {
            fprintf(stderr, "not a case: %s\n", t->shared->line);
            fflush(NULL);
            _exit(2);
        }
        team_barrier(t);
        if (t->rank == 0) {
            serve_done();
        }
    }
}

#endif
