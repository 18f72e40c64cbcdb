/* What peal's own GPU benchmarks are alike in: a case is opened when it is asked for the first time
 * and kept with its jobs, the variants that are measured; a job's plan is made when it is first
 * run. A program says what cases and jobs there are, and what graphs they run. */
#ifndef PEAL_BENCH_GPU_PROGRAM_H
#define PEAL_BENCH_GPU_PROGRAM_H

#include "ways.h"

enum { PROGRAM_CASES = 64, PROGRAM_JOBS = 192 };

struct program_case;

/* A variant of a case; what the members in the middle mean is the program's. */
typedef struct program_job {
    const struct program_case *of;
    const way *way;
    int body;
    bool norm, floor; /* floor: shown, not compared */
    way_kept kept;
} program_job;

typedef struct program_case {
    char line[SERVE_LINE]; /* as it was asked for */
    void *data;
    program_job job[PROGRAM_JOBS];
    int job_count;
} program_case;

typedef struct program_names {
    char test[48], variant[64];
} program_names;

typedef struct program {
    const char *bench, *example;
    size_t data_bytes; /* of a case: zeroed, then filled by */
    bool (*parse)(int count, char **word, int gpus, void *data);
    /* All ranks: what is right, and the jobs (program_add). */
    void (*open)(const ranks *r, program_case *c);
    /* A job's names; and whether it is wanted. */
    bool (*names)(const ranks *r, const program_job *j, program_names *out);
    /* checked: for the check; NULL: it runs the same graph. */
    peal_graph *(*graph)(const program_job *j, bool checked);
    /* All ranks: whether the result is right, on rank 0; may set the digest. */
    bool (*check)(const ranks *r, program_job *j);
    program_case *known[PROGRAM_CASES], *now;
    int known_count;
} program;

static inline void program_add(program_case *c, program_job job)
{
    job.of = c;
    if (c->job_count == PROGRAM_JOBS) {
        fprintf(stderr, "more than %d jobs\n", PROGRAM_JOBS);
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    c->job[c->job_count++] = job;
}

static inline void program_compile(const program *p, const ranks *r, const program_job *j)
{
    peal_graph *checked = p->graph(j, true);
    ways_compile(r, p->graph(j, false), j->way);
    if (checked) {
        ways_compile(r, checked, j->way);
    }
}

static inline void program_run(ranks *r, int index, void *user)
{
    const program *p = user;
    program_job *j = &p->now->job[index];
    program_names names;
    if (!p->names(r, j, &names)) {
        return;
    }
    if (ways_only_compiles()) {
        program_compile(p, r, j);
        return;
    }
    if (ways_begin(r, &j->kept, names.test, names.variant)) {
        j->kept.verified = p->check(r, j);
    }
    if (j->kept.left_out) {
        return;
    }
    if (!j->kept.plan) {
        j->kept.graph = p->graph(j, false);
        j->kept.plan = ways_plan(r, j->kept.graph, j->way, NULL);
    }
    bench_result result = {.bench = p->bench,
                           .test = names.test,
                           .peer = "peal",
                           .variant = names.variant,
                           .kind = j->floor ? "floor" : "peal",
                           .verified = j->kept.verified,
                           .digest = j->kept.digest};
    const double cpu_ns = ways_time(r, j->way, &j->kept, &result);
    if (r->rank == 0) {
        serve_print(&result, cpu_ns, "");
    }
    ways_let_go(r, &j->kept);
}

static inline void program_forget(program_case *c)
{
    for (int i = 0; c && i < c->job_count; i++) {
        ways_forget(&c->job[i].kept);
    }
    if (c) {
        free(c->data);
    }
    free(c);
}

/* NULL: there is no such case, or no room. */
static inline program_case *program_find(program *p, const ranks *r, int count, char **word)
{
    program_case *c = calloc(1, sizeof(*c));
    if (c) {
        c->data = calloc(1, p->data_bytes);
    }
    if (!c || !c->data || !p->parse(count, word, r->size, c->data)) {
        program_forget(c);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(c->line);
        snprintf(c->line + length, sizeof(c->line) - length, "%s ", word[i]);
    }
    for (int i = 0; i < p->known_count; i++) {
        if (!strcmp(p->known[i]->line, c->line)) {
            program_forget(c);
            return p->known[i];
        }
    }
    if (p->known_count == PROGRAM_CASES) {
        program_forget(c);
        return NULL;
    }
    p->open(r, c);
    return p->known[p->known_count++] = c;
}

static inline int program_open(ranks *r, int count, char **word, void *user)
{
    program *p = user;
    program_case *c = program_find(p, r, count, word);
    p->now = c;
    return c ? c->job_count : 0;
}

static inline void program_close(void *user)
{
    program *p = user;
    for (int i = 0; i < p->known_count; i++) {
        program_forget(p->known[i]);
    }
    p->known_count = 0;
}

static inline bool program_takes(int count, char **word, int gpus, void *user)
{
    const program *p = user;
    void *data = calloc(1, p->data_bytes);
    const bool taken = data && p->parse(count, word, gpus, data);
    free(data);
    return taken;
}

static inline int program_main(int argc, char **argv, program *p)
{
    const ranks_work work = {argv + 2, program_takes, program_open, program_run, program_close, p};
    return ranks_main(argc, argv, p->example, &work);
}

#endif
