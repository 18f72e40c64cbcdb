/* The processes of peal's own GPU benchmarks: one a GPU, forked before anybody has seen a GPU, with
 * a barrier, maxima and an allgather in shared memory, and a session among them.
 *
 * A case that is asked for (serve.h) is a list of numbered jobs that all ranks do in order. If a
 * rank fails or nothing moves for a while, all are ended and new ones go on behind the job that
 * failed, which is left out from then on: one way that hangs costs one row, not the others. */
#ifndef PEAL_BENCH_GPU_RANKS_H
#define PEAL_BENCH_GPU_RANKS_H

#include "serve.h"

#include <peal/peal.h>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { RANKS_MAX = 8, RANKS_BLOB = 1 << 16, RANKS_FAILURES = 8, RANKS_HANG = 3 };

/* What a rank is doing. Compilers make no progress that can be seen, and on a machine that has just
 * started they read their libraries from a slow disk: one plan's kernels took 16 s there. */
typedef enum ranks_phase { RANKS_BETWEEN, RANKS_COMPILES, RANKS_STEPS } ranks_phase;

enum { RANKS_COMPILE_PATIENCE = 8 /* times as long */, RANKS_BUSY_S = 1 };

/* Seconds without progress until all are ended: PEAL_BENCH_PATIENCE_S, 16 by default; peal's own
 * waits end after half of it, with more to say. */
static inline double ranks_patience_s(void)
{
    const char *text = getenv("PEAL_BENCH_PATIENCE_S");
    const double seconds = text ? atof(text) : 16;
    return seconds > 0 ? seconds : 16;
}

typedef struct ranks_shared {
    pthread_barrier_t barrier;
    double value[RANKS_MAX];
    unsigned char blob[RANKS_MAX][RANKS_BLOB];
    char line[SERVE_LINE]; /* the case that is under way; empty: none */
    int at;                /* cases of the command line that were begun */
    _Atomic int job;       /* of the case, that is under way */
    _Atomic int idle;      /* everybody waits for a case */
    _Atomic long beat;     /* grows as long as something moves */
    _Atomic int phase[RANKS_MAX];
    char what[SERVE_NAME]; /* the job, for messages */
    char failed[4096];     /* "case|variant;...": jobs that are left out */
    _Atomic int told;      /* somebody has said why it failed */
    char why[320];
} ranks_shared;

typedef struct ranks {
    int rank, size;
    ranks_shared *shared;
    peal_session *session;
    bool host; /* PEAL_BENCH_BACKEND=host: to try the programs without a GPU */
} ranks;

typedef struct ranks_work {
    char *const *cases; /* of the command line, or none: from stdin */
    bool (*takes)(int count, char **word, int gpus, void *user); /* whether it is a case */
    int (*open)(ranks *r, int count, char **word, void *user);   /* a case's jobs; 0: no case */
    void (*run)(ranks *r, int job, void *user);                  /* of the case opened last */
    void (*close)(void *user);                                   /* all cases */
    void *user;
} ranks_work;

static inline void ranks_beat(const ranks *r)
{
    r->shared->beat++;
}

static inline void ranks_enter(const ranks *r, ranks_phase phase)
{
    r->shared->phase[r->rank] = (int)phase;
    ranks_beat(r);
}

static inline void ranks_barrier(const ranks *r)
{
    pthread_barrier_wait(&r->shared->barrier);
}

static inline double ranks_max(const ranks *r, double value)
{
    r->shared->value[r->rank] = value;
    ranks_barrier(r);
    for (int i = 0; i < r->size; i++) {
        value = r->shared->value[i] > value ? r->shared->value[i] : value;
    }
    ranks_barrier(r);
    return value;
}

static inline int ranks_allgather(void *user, const void *mine, size_t bytes, void *all)
{
    const ranks *r = user;
    for (size_t done = 0; done < bytes;) {
        const size_t part = bytes - done < RANKS_BLOB ? bytes - done : RANKS_BLOB;
        memcpy(r->shared->blob[r->rank], (const char *)mine + done, part);
        ranks_barrier(r);
        for (int i = 0; i < r->size; i++) {
            memcpy((char *)all + (size_t)i * bytes + done, r->shared->blob[i], part);
        }
        ranks_barrier(r);
        done += part;
    }
    return 0;
}

/* Keeps the session's first error, or what another process has said of the end, or the status, as
 * text that JSON takes as it is. */
static inline void ranks_tell(const ranks *r, peal_status status, const char *what)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream || r->shared->told++ > 0) {
        return;
    }
    peal_session_print_diagnostics(r->session, stream, 0);
    fclose(stream);
    const char *cause = strstr(text, "error: ");
    cause = cause ? cause : strstr(text, "ended the job: ");
    snprintf(r->shared->why, sizeof(r->shared->why), "rank %d, %s: %s: %.*s", r->rank, what,
             peal_status_name(status), cause ? (int)strcspn(cause, "\n") : 0, cause ? cause : "");
    for (char *c = r->shared->why; *c; c++) {
        *c = *c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? '\'' : *c;
    }
    free(text);
}

/* Ends this process, and so all of them, with what the session has to say unless status is fine. */
static inline void ranks_require(const ranks *r, peal_status status, const char *what)
{
    if (status != PEAL_STATUS_OK) {
        ranks_tell(r, status, what);
        peal_session_print_diagnostics(r->session, stderr, 3);
        fprintf(stderr, "rank %d: %s: %s\n", r->rank, what, peal_status_name(status));
        fflush(NULL);
        _exit(status);
    }
}

/* The next case, or what is left of one that was under way. False: there is none. */
static inline bool ranks_case(ranks *r, const ranks_work *work)
{
    ranks_shared *shared = r->shared;
    char line[SERVE_LINE], *word[SERVE_WORDS];
    ranks_barrier(r);
    if (r->rank == 0 && shared->line[0] == '\0') {
        shared->idle = 1;
        shared->job = 0;
        serve_next(work->cases, &shared->at, shared->line);
        shared->beat++;
        shared->idle = 0;
    }
    ranks_barrier(r);
    memcpy(line, shared->line, sizeof(line));
    const int count = serve_split(line, word);
    if (count == 0) {
        return false;
    }
    const int jobs = work->open(r, count, word, work->user);
    if (jobs == 0) {
        fprintf(stderr, "not a case: %s\n", shared->line);
        _exit(PEAL_STATUS_USAGE);
    }
    for (int job = shared->job; job < jobs; job++) {
        ranks_barrier(r);
        if (r->rank == 0) {
            shared->job = job;
        }
        ranks_beat(r);
        work->run(r, job, work->user);
    }
    ranks_barrier(r);
    if (r->rank == 0) {
        shared->line[0] = shared->what[0] = '\0';
        serve_done();
    }
    return true;
}

static inline void ranks_member(ranks *r, const ranks_work *work)
{
    const peal_bootstrap_callbacks bootstrap = {.size_bytes = sizeof(bootstrap),
                                                .process = r->rank,
                                                .processes = r->size,
                                                .allgather = ranks_allgather,
                                                .user = r};
    const peal_session_desc desc = {.size_bytes = sizeof(desc),
                                    .bootstrap = &bootstrap,
                                    .deadline_s = 0.5 * ranks_patience_s(),
                                    .log_level = PEAL_LOG_ERROR,
                                    .log = stderr};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (peal_session_create(&desc, &r->session) != PEAL_STATUS_OK) {
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    while (ranks_case(r, work)) {
    }
    work->close(work->user);
    ranks_barrier(r);
    peal_session_destroy(r->session);
    _exit(0);
}

/* How long nothing may move now. */
static inline double ranks_limit_s(const ranks_shared *shared, int size)
{
    for (int i = 0; i < size; i++) {
        if (shared->phase[i] == RANKS_COMPILES) {
            return RANKS_COMPILE_PATIENCE * ranks_patience_s();
        }
    }
    return ranks_patience_s();
}

/* Nothing has moved for so long: what each rank is doing is why. */
static inline void ranks_stuck(ranks_shared *shared, int size, double seconds)
{
    static const char *const doing[] = {"waits for the others", "compiles a plan", "runs steps"};
    int length = snprintf(shared->why, sizeof(shared->why), "nothing moved for %.0f s", seconds);
    for (int i = 0; i < size && length < (int)sizeof(shared->why); i++) {
        length += snprintf(shared->why + length, sizeof(shared->why) - (size_t)length,
                           "%s rank %d %s", i == 0 ? ":" : ",", i, doing[shared->phase[i]]);
    }
    fprintf(stderr, "%s\n", shared->why);
}

/* Says to who reads the rows that a compiler is at work. */
static inline void ranks_tell_busy(const ranks_shared *shared, double *told_ns)
{
    if (bench_now_ns() - *told_ns > RANKS_BUSY_S * 1e9) {
        *told_ns = bench_now_ns();
        printf("{\"compiling\": \"%s\"}\n", shared->what);
        fflush(stdout);
    }
}

/* Waits for the children; whoever fails, or stands still, takes all with it. 0, or what the first
 * that failed returned. */
static inline int ranks_watch(pid_t *child, int size, ranks_shared *shared)
{
    long beat = -1;
    double since = 0, told_ns = bench_now_ns();
    int left = size, result = 0;
    while (left > 0) {
        int status;
        const pid_t one = waitpid(-1, &status, WNOHANG);
        if (one == 0) {
            const struct timespec nap = {0, shared->idle ? 20000000 : 2000000};
            nanosleep(&nap, NULL);
        }
        if (shared->beat != beat || shared->idle) {
            beat = shared->beat;
            since = bench_now_ns();
        }
        const double limit_s = ranks_limit_s(shared, size);
        bool failed = one == 0 && bench_now_ns() - since > limit_s * 1e9;
        if (failed && result == 0) {
            ranks_stuck(shared, size, limit_s);
            result = (int)PEAL_STATUS_DEADLINE;
        } else if (limit_s > ranks_patience_s()) {
            ranks_tell_busy(shared, &told_ns);
        }
        for (int i = 0; i < size && one > 0; i++) {
            child[i] = child[i] == one ? 0 : child[i];
        }
        left -= one > 0;
        if (one > 0 && status != 0) {
            failed = true;
            result = result              ? result
                     : WIFEXITED(status) ? WEXITSTATUS(status)
                                         : PEAL_STATUS_INTERNAL;
        }
        for (int i = 0; i < size && failed; i++) {
            if (child[i] > 0) {
                kill(child[i], SIGKILL);
            }
        }
        if (failed && one == 0) {
            since = bench_now_ns();
        }
    }
    return result;
}

static inline int ranks_start(ranks_shared *shared, int size, const ranks_work *work)
{
    const char *backend = getenv("PEAL_BENCH_BACKEND");
    pthread_barrierattr_t attribute;
    pid_t child[RANKS_MAX] = {0};
    pthread_barrierattr_init(&attribute);
    pthread_barrierattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attribute, (unsigned)size);
    fflush(NULL);
    for (int i = 0; i < size; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            ranks r = {.rank = i, .size = size, .shared = shared};
            r.host = backend && !strcmp(backend, "host");
            ranks_member(&r, work);
        }
        if (child[i] < 0) {
            fprintf(stderr, "cannot fork\n");
            exit(PEAL_STATUS_ENVIRONMENT); /* children die with their parent */
        }
    }
    return ranks_watch(child, size, shared);
}

/* Does all cases; a line for each job that failed goes to stdout, for the driver. Returns 0 unless
 * the first one cannot even begin or too many fail. */
static inline int ranks_run(int size, const ranks_work *work)
{
    ranks_shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        fprintf(stderr, "no memory for %d ranks\n", size);
        return PEAL_STATUS_ENVIRONMENT;
    }
    for (int failures = 0;;) {
        shared->what[0] = shared->why[0] = '\0';
        shared->told = 0;
        for (int i = 0; i < size; i++) {
            shared->phase[i] = RANKS_BETWEEN;
        }
        const int status = ranks_start(shared, size, work);
        if (status == 0) {
            return 0;
        }
        if (shared->what[0] == '\0') {
            return status; /* no session, or no case */
        }
        printf("{\"failed\": \"%s\", \"why\": \"%s\"}\n", shared->what,
               shared->why[0] ? shared->why : peal_status_name((peal_status)status));
        fflush(stdout);
        failures += status == PEAL_STATUS_DEADLINE ? RANKS_HANG : 1; /* these cost time */
        const size_t length = strlen(shared->failed);
        snprintf(shared->failed + length, sizeof(shared->failed) - length, "%s;", shared->what);
        if (failures >= RANKS_FAILURES) {
            fprintf(stderr, "given up, too many failures, the last one in %s\n", shared->what);
            return status;
        }
        shared->job++;
    }
}

/* A program: the number of GPUs, then perhaps cases, all of which must be taken. */
static inline int ranks_main(int argc, char **argv, const char *example, const ranks_work *work)
{
    const int gpus = argc > 1 ? atoi(argv[1]) : 0;
    if (gpus < 1 || gpus > RANKS_MAX) {
        fprintf(stderr, "usage: %s GPUS [CASE...], e.g. %s\n", argv[0], example);
        return PEAL_STATUS_USAGE;
    }
    for (int i = 2; i < argc; i++) {
        char line[SERVE_LINE], *word[SERVE_WORDS];
        snprintf(line, sizeof(line), "%s", argv[i]);
        if (!work->takes(serve_split(line, word), word, gpus, work->user)) {
            fprintf(stderr, "not a case: %s\n", argv[i]);
            return PEAL_STATUS_USAGE;
        }
    }
    return ranks_run(gpus, work);
}

#endif
