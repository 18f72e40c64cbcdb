/* The GPU Jacobi benchmark with peal, one process a GPU: the mesh of samples/jacobi2d, rows split
 * over the GPUs, without norm and with a norm every step; its own body and one that marches down
 * columns, in several modes and lowerings. Digests are checked against the CPU and equal those of
 * the peers. Plans are made when a size is asked for the first time, and kept.
 *
 * usage: peal_gpu_jacobi GPUS [N...] */
#include "gpu/truth.h"
#include "gpu/ways.h"

enum { CASES = 16, FULL_WAYS = 2 };

/* A body and its tile; sizes for which it is worth a try. */
typedef struct body {
    const char *name, *kernel, *kernel_norm;
    const char *tile; /* NULL: peal chooses */
    long from, to;
} body;

static const body bodies[] = {
    {"relax", "relax", "relax_norm", NULL, 0, LONG_MAX},
    {"march 4", "march", "march_norm", "[256, 4]", 0, 1024},
    {"march 16", "march", "march_norm", "[256, 16]", 1024, 4096},
    {"march 64", "march", "march_norm", "[256, 64]", 4096, LONG_MAX},
};

enum { BODIES = sizeof(bodies) / sizeof(bodies[0]) };

typedef struct job {
    const truth *truth;
    const body *body;
    const way *way;
    bool norm;
    way_kept kept;
} job;

/* A size and its jobs. */
typedef struct opened {
    truth truth; /* on rank 0; else the size only */
    job job[WAYS * BODIES * 2];
    int job_count;
} opened;

typedef struct server {
    opened *known[CASES], *now;
    int known_count;
} server;

static void add_step(peal_graph *g, const job *j)
{
    peal_task_desc relax = {.size_bytes = sizeof(relax),
                            .source = PEAL_HERE,
                            .name = "relax",
                            .kernel = j->norm ? j->body->kernel_norm : j->body->kernel,
                            .box = {.name = "a", .grow = "[-1, 0]"},
                            .tile = j->body->tile,
                            .read = {{.name = "a", .star = "1"}},
                            .write = {{.name = "an"}}};
    if (j->norm) {
        relax.reduce[0] = (peal_reduce_desc){.name = "d2", .combine = "sum"};
    }
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task_desc(g, &relax);
    peal_graph_add_exchange(g, .exchange = {{.name = "an"}});
    if (j->norm) {
        peal_graph_add_allreduce(g, .reduce = {{.name = "d2", .combine = "sum"}});
    }
    peal_graph_add_swap(g, .swap = {"a", "an"});
    peal_graph_end(g);
}

/* Prints the digest of what is there at the end, and the norm of the last step. */
static void add_finish(peal_graph *g, const job *j, const char *n)
{
    peal_graph_begin(g, PEAL_FINISH);
    peal_graph_add_task(g, .name = "digest", .box = {.name = "a"}, .read = {{.name = "a"}},
                        .reduce = {{.name = "low", .combine = "sum"},
                                   {.name = "high", .combine = "sum"}},
                        .args = {n});
    peal_graph_add_allreduce(g, .reduce = {{.name = "low", .combine = "sum"},
                                           {.name = "high", .combine = "sum"}});
    peal_graph_add_print(g, .print = {{.name = "low", .value = "low"},
                                      {.name = "high", .value = "high"},
                                      {.name = "norm", .value = j->norm ? "sqrt(d2)" : "0.0"}});
    peal_graph_end(g);
}

/* The same for checks and for times: kernels are compiled once. */
static peal_graph *make_graph(const job *j)
{
    char size[64], n[24];
    peal_graph *g;
    if (peal_graph_create("gpu_jacobi", &g) != PEAL_STATUS_OK) {
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    snprintf(n, sizeof(n), "%ld", j->truth->n);
    snprintf(size, sizeof(size), "[%ld, %ld]", j->truth->n, j->truth->n - 2);
    peal_graph_set_folder(g, ways_folder());
    peal_graph_add_kernels(g, "gpu_jacobi.c", PEAL_HERE);
    peal_graph_set_topology(g, .dims = "[1, auto]", .periodic = "[false, true]");
    peal_graph_set_loop(g, .repeat = "1000000000");
    peal_graph_add_field(g, .name = "a", .type = "f32", .size = size, .halo = "[0, 1]");
    peal_graph_add_field(g, .name = "an", .like = "a");
    if (j->norm) {
        peal_graph_add_buffer(g, .name = "d2", .keep = true);
    }
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_add_task(g, .name = "walls", .box = {.name = "a", .rim = "[1, 0]"},
                        .write = {{.name = "a"}, {.name = "an"}}, .args = {n});
    peal_graph_add_exchange(g, .exchange = {{.name = "a"}});
    peal_graph_end(g);
    add_step(g, j);
    peal_graph_add_buffer(g, .name = "low", .type = "i64");
    peal_graph_add_buffer(g, .name = "high", .type = "i64");
    add_finish(g, j, n);
    return g;
}

/* On rank 0: whether digest and norm are right. */
static bool check(const ranks *r, const job *j, uint64_t *digest)
{
    way_row row = {0};
    peal_graph *graph = make_graph(j);
    ways_run(r, graph, j->way, TRUTH_STEPS, &row);
    peal_graph_destroy(graph);
    *digest = (uint64_t)row.integer[0] + ((uint64_t)row.integer[1] << 32);
    return row.count == 3 && *digest == j->truth->digest && j->truth->known &&
           (!j->norm || truth_close(row.real[2], j->truth->norm));
}

/* The sample's body in all ways, the others where they are named. */
static bool is_wanted(const job *j, const char *variant)
{
    return ways_wants(j->body == bodies ? j->way->when : WAY_NAMED, j->truth->n == 1024, variant);
}

static void run_job(ranks *r, int index, void *user)
{
    job *j = &((const server *)user)->now->job[index];
    char test[48], variant[64];
    snprintf(test, sizeof(test), "%ld/%d%s", j->truth->n, r->size, j->norm ? "/norm" : "");
    snprintf(variant, sizeof(variant), "%s, %s", j->body->name, j->way->name);
    if (!is_wanted(j, variant)) {
        return;
    }
    if (ways_only_compiles()) {
        ways_compile(r, make_graph(j), j->way);
        return;
    }
    if (ways_begin(r, &j->kept, test, variant)) {
        j->kept.verified = check(r, j, &j->kept.digest);
    }
    if (j->kept.left_out) {
        return;
    }
    if (!j->kept.plan) {
        j->kept.graph = make_graph(j);
        j->kept.plan = ways_plan(r, j->kept.graph, j->way, NULL);
    }
    bench_result result = {"gpu_jacobi", test, "peal", variant, "peal", 0, {0}, true, 0};
    result.verified = j->kept.verified;
    result.digest = j->kept.digest;
    const double cpu_ns = ways_time(r, j->way, &j->kept, &result);
    if (r->rank == 0) {
        serve_print(&result, cpu_ns, "");
    }
    ways_let_go(r, &j->kept);
}

/* The body of the sample in all ways, the others in the first ones. */
static void add_jobs(opened *o)
{
    const long n = o->truth.n;
    for (int norm = 0; norm < 2; norm++) {
        for (int b = 0; b < BODIES; b++) {
            for (int w = 0; w < (b == 0 ? (int)WAYS : FULL_WAYS); w++) {
                if (n >= bodies[b].from && n <= bodies[b].to) {
                    o->job[o->job_count++] = (job){&o->truth, &bodies[b], &ways[w], norm == 1, {0}};
                }
            }
        }
    }
}

static bool parse_size(int count, char **word, int gpus, long *n)
{
    *n = count == 1 ? atol(word[0]) : 0;
    return *n >= gpus + 2 && *n <= 32768;
}

static int open_case(ranks *r, int count, char **word, void *user)
{
    server *all = user;
    long n;
    if (!parse_size(count, word, r->size, &n)) {
        return 0;
    }
    for (int i = 0; i < all->known_count; i++) {
        if (all->known[i]->truth.n == n) {
            all->now = all->known[i];
            return all->now->job_count;
        }
    }
    opened *o = all->known_count < CASES ? calloc(1, sizeof(*o)) : NULL;
    if (!o) {
        return 0;
    }
    o->truth.n = n;
    if (r->rank == 0 && !ways_only_compiles() && !truth_compute(n, &o->truth)) {
        fprintf(stderr, "no memory for a reference of %ld columns\n", n);
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    add_jobs(o);
    all->now = all->known[all->known_count++] = o;
    return o->job_count;
}

static void close_cases(void *user)
{
    server *all = user;
    for (int i = 0; i < all->known_count; i++) {
        for (int k = 0; k < all->known[i]->job_count; k++) {
            ways_forget(&all->known[i]->job[k].kept);
        }
        free(all->known[i]);
    }
}

static bool takes(int count, char **word, int gpus)
{
    long n;
    return parse_size(count, word, gpus, &n);
}

int main(int argc, char **argv)
{
    static server all;
    const ranks_work work = {argv + 2, open_case, run_job, close_cases, &all};
    return ranks_main(argc, argv, "2 1024 4096", takes, &work);
}
