/* How a peer of the GPU halo benchmark is measured: cases are opened when they are asked for the
 * first time, each way is checked for some contents, and from then on only timed. */
#ifndef PEAL_BENCH_GPU_HALO_MEASURE_CUH
#define PEAL_BENCH_GPU_HALO_MEASURE_CUH

#include "halo.cuh"

enum { HALO_SALTS = 3, HALO_WAYS = 8, HALO_CASES = 64 };
enum { HALO_ROUNDS = 20 }; /* of a graph; even: buffers alternate */

/* What the state of a case begins with. */
typedef struct halo_stage {
    cudaStream_t stream; /* where graphs are launched */
    cudaGraphExec_t graph[HALO_WAYS];
} halo_stage;

typedef struct halo_way {
    const char *name;
    bool graph; /* of HALO_ROUNDS rounds; else round by round on streams */
} halo_way;

/* A peer. `way` is an index of its ways. */
typedef struct halo_peer {
    const char *name;
    const halo_way *way;
    int way_count, gpus;
    void *user;
    halo_stage *(*open)(const team *t, const halo_problem *problem, void *user);
    void (*advance)(halo_stage *stage, bool advances); /* what follows, for checks */
    void (*round)(halo_stage *stage, int way);
    cudaGraphExec_t (*record)(halo_stage *stage, int way);
    void (*finish)(halo_stage *stage);
    void (*fill)(halo_stage *stage, uint64_t salt);
    uint64_t (*wrong)(halo_stage *stage, uint64_t salt, long rounds); /* how many points */
} halo_peer;

typedef struct halo_row {
    bool open, left_out, verified;
    long length; /* of a batch */
} halo_row;

typedef struct halo_case {
    halo_problem problem;
    halo_stage *stage;
    halo_row row[HALO_WAYS];
} halo_case;

/* Of one rank. */
typedef struct halo_server {
    const halo_peer *peer;
    int case_count;
    halo_case test[HALO_CASES];
} halo_server;

typedef struct halo_run {
    const halo_peer *peer;
    halo_stage *stage;
    int way;
} halo_run;

static inline long halo_enqueue(void *state, long rounds)
{
    const halo_run *run = (const halo_run *)state;
    const bool graph = run->peer->way[run->way].graph;
    const long count = graph ? (rounds + HALO_ROUNDS - 1) / HALO_ROUNDS : rounds;
    for (long i = 0; i < count; i++) {
        if (graph) {
            GPU(cudaGraphLaunch(run->stage->graph[run->way], run->stage->stream));
        } else {
            run->peer->round(run->stage, run->way);
        }
    }
    return graph ? count * HALO_ROUNDS : count;
}

static inline void halo_finish(void *state)
{
    const halo_run *run = (const halo_run *)state;
    run->peer->finish(run->stage);
}

/* For what follows: with points that change, or without. */
static inline void halo_prepare(const team *t, const halo_run *run, bool advances)
{
    cudaGraphExec_t *graph = &run->stage->graph[run->way];
    run->peer->advance(run->stage, advances);
    team_barrier(t);
    if (run->peer->way[run->way].graph) {
        if (*graph) {
            GPU(cudaGraphExecDestroy(*graph));
        }
        *graph = run->peer->record(run->stage, run->way);
    }
    team_barrier(t);
}

static inline bool halo_verify(const team *t, halo_run *run)
{
    bool right = true;
    halo_prepare(t, run, true);
    for (uint64_t salt = 1; salt <= HALO_SALTS; salt++) {
        run->peer->fill(run->stage, salt);
        team_barrier(t);
        const long done = halo_enqueue(run, (long)salt);
        halo_finish(run);
        team_barrier(t);
        right = team_sum(t, run->peer->wrong(run->stage, salt, done)) == 0 && right;
        team_barrier(t);
    }
    halo_prepare(t, run, false);
    return right;
}

/* One way of a case: checked the first time, then timed; rank 0 prints. */
static inline void halo_measure(const team *t, const halo_peer *peer, halo_case *c, int way)
{
    halo_row *row = &c->row[way];
    halo_run run = {peer, c->stage, way};
    const team_work work = {&run, halo_enqueue, halo_finish};
    bench_result result = {
        "gpu_halo", c->problem.name, peer->name, peer->way[way].name, "peer", 0, {0}, true, 0};
    if (!row->open) {
        row->left_out = serve_skips(c->problem.name, peer->way[way].name);
        if (t->rank == 0 && !row->left_out) {
            serve_trying(c->problem.name, peer->way[way].name);
        }
        row->verified = row->left_out || halo_verify(t, &run);
        row->open = true;
    }
    if (row->left_out) {
        return;
    }
    result.verified = row->verified;
    const double cpu_ns = team_time(t, &work, &row->length, &result);
    if (t->rank == 0) {
        serve_print(&result, cpu_ns, "");
    }
}

static inline halo_case *halo_find(const team *t, halo_server *server, const halo_problem *problem)
{
    for (int i = 0; i < server->case_count; i++) {
        if (!strcmp(server->test[i].problem.name, problem->name)) {
            return &server->test[i];
        }
    }
    if (server->case_count == HALO_CASES) {
        return NULL;
    }
    halo_case *c = &server->test[server->case_count++];
    c->problem = *problem;
    if (t->rank == 0) {
        serve_trying(problem->name, "its memory");
    }
    c->stage = server->peer->open(t, problem, server->peer->user);
    return c;
}

static inline bool halo_answer(const team *t, int count, char **word, void *user)
{
    halo_server *server = (halo_server *)user;
    halo_problem problem;
    if (!halo_parse(count, word, server->peer->gpus, &problem)) {
        return false;
    }
    halo_case *c = halo_find(t, server, &problem);
    for (int way = 0; c && way < server->peer->way_count; way++) {
        halo_measure(t, server->peer, c, way);
    }
    return c != NULL;
}

/* Does what is asked for until there is nothing more. */
static inline void halo_serve(const team *t, const halo_peer *peer, char *const *cases)
{
    halo_server *server = (halo_server *)calloc(1, sizeof(*server));
    if (!server) {
        _Exit(GPU_EXIT);
    }
    server->peer = peer;
    team_serve(t, cases, halo_answer, server);
    free(server);
}

#endif
