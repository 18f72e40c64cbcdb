/* How a peer of the GPU Jacobi benchmark is measured: a size is opened (memory, tuned blocks, what
 * is right) when it is asked for the first time, each setting is checked on streams and in a graph,
 * and from then on only timed. */
#ifndef PEAL_BENCH_GPU_JACOBI_MEASURE_CUH
#define PEAL_BENCH_GPU_JACOBI_MEASURE_CUH

#include "jacobi.cuh"

enum { JACOBI_SETTINGS = 8, JACOBI_CASES = 16, JACOBI_WAYS = 2 * JACOBI_SETTINGS };

/* What the state of a size begins with. Ways: setting by setting, on streams and in a graph. */
typedef struct jacobi_stage {
    jacobi_part p;
    jacobi_shape shape[2]; /* without and with norm */
    cudaStream_t stream;
    cudaGraphExec_t graph[JACOBI_SETTINGS];
} jacobi_stage;

typedef struct jacobi_setting {
    const char *name;
    bool norm;
    bool second; /* the other way of two that a peer has for a step */
    bool apart;  /* sums beside the next steps */
} jacobi_setting;

typedef struct jacobi_peer {
    const char *name;
    const jacobi_setting *setting;
    int setting_count;
    void *user;
    /* Memory and streams; `p` is split already. */
    jacobi_stage *(*open)(const team *t, const jacobi_part *p, void *user);
    void (*chunk)(jacobi_stage *stage, const jacobi_setting *setting); /* of steps, from a[0] */
} jacobi_peer;

typedef struct jacobi_row {
    bool open, left_out, verified;
    uint64_t digest;
    long length; /* of a batch, in steps */
} jacobi_row;

typedef struct jacobi_case {
    long n;
    jacobi_stage *stage;
    jacobi_truth truth;
    jacobi_row row[JACOBI_WAYS];
} jacobi_case;

/* Of one rank. */
typedef struct jacobi_server {
    const jacobi_peer *peer;
    int case_count;
    jacobi_case test[JACOBI_CASES];
} jacobi_server;

typedef struct jacobi_run {
    const jacobi_peer *peer;
    jacobi_stage *stage;
    int way;
} jacobi_run;

static inline long jacobi_enqueue(void *state, long steps)
{
    const jacobi_run *run = (const jacobi_run *)state;
    const long chunks = (steps + JACOBI_CHUNK - 1) / JACOBI_CHUNK;
    for (long i = 0; i < chunks; i++) {
        if (run->way % 2) {
            GPU(cudaGraphLaunch(run->stage->graph[run->way / 2], run->stage->stream));
        } else {
            run->peer->chunk(run->stage, &run->peer->setting[run->way / 2]);
        }
    }
    return chunks * JACOBI_CHUNK;
}

static inline void jacobi_finish(void *state)
{
    GPU(cudaStreamSynchronize(((const jacobi_run *)state)->stage->stream));
}

static inline void jacobi_record(jacobi_run *run)
{
    cudaGraph_t graph;
    jacobi_stage *stage = run->stage;
    GPU(cudaStreamBeginCapture(stage->stream, cudaStreamCaptureModeThreadLocal));
    run->peer->chunk(stage, &run->peer->setting[run->way / 2]);
    GPU(cudaStreamEndCapture(stage->stream, &graph));
    GPU(cudaGraphInstantiate(&stage->graph[run->way / 2], graph, 0));
    GPU(cudaGraphDestroy(graph));
}

/* Runs the first steps and compares digest and norms with the truth. */
static inline bool jacobi_verify(const team *t, jacobi_run *run, const jacobi_truth *truth,
                                 uint64_t *digest)
{
    const jacobi_part *p = &run->stage->p;
    const bool with_norm = run->peer->setting[run->way / 2].norm;
    double known[2], norm[2];
    jacobi_start(p);
    team_barrier(t);
    jacobi_enqueue(run, JACOBI_CHUNK);
    jacobi_finish(run);
    norm[0] = with_norm ? jacobi_norm(p) : 0;
    jacobi_enqueue(run, JACOBI_VERIFIED - JACOBI_CHUNK);
    jacobi_finish(run);
    team_barrier(t);
    *digest = team_sum(t, jacobi_digest(p, p->a[0]));
    jacobi_enqueue(run, JACOBI_CHUNK);
    jacobi_finish(run);
    norm[1] = with_norm ? jacobi_norm(p) : 0;
    team_barrier(t);
    jacobi_known(p->n, known);
    const bool norms = !with_norm || (jacobi_close(norm[0], truth->norm_0) &&
                                      jacobi_close(norm[1], truth->norm_100));
    const bool table = known[0] == 0 || (jacobi_close(truth->norm_0, known[0]) &&
                                         jacobi_close(truth->norm_100, known[1]));
    return *digest == truth->digest && norms && table;
}

/* One way of a size: checked the first time, then timed; rank 0 prints. */
static inline void jacobi_measure(const team *t, const jacobi_peer *peer, jacobi_case *c, int way)
{
    char test[48], name[64];
    const jacobi_setting *setting = &peer->setting[way / 2];
    jacobi_row *row = &c->row[way];
    jacobi_run run = {peer, c->stage, way};
    const team_work work = {&run, jacobi_enqueue, jacobi_finish};
    snprintf(test, sizeof(test), "%ld/%d%s", c->n, t->size, setting->norm ? "/norm" : "");
    snprintf(name, sizeof(name), "%s, %s", setting->name, way % 2 ? "graph" : "streams");
    bench_result result = {"gpu_jacobi", test, peer->name, name, "peer", 0, {0}, true, 0};
    if (!row->open) {
        row->left_out = serve_skips(test, name);
        row->open = row->verified = true;
        if (!row->left_out) {
            if (t->rank == 0) {
                serve_trying(test, name);
            }
            team_barrier(t);
            if (way % 2) {
                jacobi_record(&run);
            }
            row->verified = jacobi_verify(t, &run, &c->truth, &row->digest);
        }
    }
    if (row->left_out) {
        return;
    }
    result.verified = row->verified;
    result.digest = row->digest;
    const double cpu_ns = team_time(t, &work, &row->length, &result);
    if (t->rank == 0) {
        serve_print(&result, cpu_ns, "");
    }
}

/* What is right, computed by rank 0, at all. */
static inline jacobi_truth jacobi_agree(const team *t, long n)
{
    jacobi_truth truth = {0, 0, 0};
    if (t->rank == 0) {
        truth = jacobi_reference(n);
    }
    truth.digest = team_sum(t, truth.digest);
    truth.norm_0 = team_max(t, truth.norm_0);
    truth.norm_100 = team_max(t, truth.norm_100);
    return truth;
}

static inline jacobi_case *jacobi_find(const team *t, jacobi_server *server, long n)
{
    for (int i = 0; i < server->case_count; i++) {
        if (server->test[i].n == n) {
            return &server->test[i];
        }
    }
    if (server->case_count == JACOBI_CASES) {
        return NULL;
    }
    char test[48];
    jacobi_part p = {};
    jacobi_case *c = &server->test[server->case_count++];
    snprintf(test, sizeof(test), "%ld/%d", n, t->size);
    if (t->rank == 0) {
        serve_trying(test, "its memory");
    }
    c->n = n;
    c->truth = jacobi_agree(t, n);
    jacobi_split(&p, n, t->size, t->rank);
    c->stage = server->peer->open(t, &p, server->peer->user);
    jacobi_start(&c->stage->p);
    for (int norm = 0; norm < 2; norm++) {
        c->stage->shape[norm] = jacobi_tune(&c->stage->p, norm == 1, c->stage->stream);
    }
    team_barrier(t);
    return c;
}

static inline bool jacobi_answer(const team *t, int count, char **word, void *user)
{
    jacobi_server *server = (jacobi_server *)user;
    const long n = atol(word[0]);
    if (count != 1 || n < 256 || (n & (n - 1)) != 0) {
        return false;
    }
    jacobi_case *c = jacobi_find(t, server, n);
    for (int way = 0; c && way < 2 * server->peer->setting_count; way++) {
        jacobi_measure(t, server->peer, c, way);
    }
    return c != NULL;
}

/* Does what is asked for until there is nothing more. */
static inline void jacobi_serve(const team *t, const jacobi_peer *peer, char *const *cases)
{
    jacobi_server *server = (jacobi_server *)calloc(1, sizeof(*server));
    if (!server) {
        _Exit(GPU_EXIT);
    }
    server->peer = peer;
    team_serve(t, cases, jacobi_answer, server);
    free(server);
}

#endif
