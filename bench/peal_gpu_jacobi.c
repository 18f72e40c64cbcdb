/* The GPU Jacobi benchmark with peal, one process a GPU: the mesh of samples/jacobi2d, rows split
 * over the GPUs, without norm and with a norm every step; its own body and one that marches down
 * columns, in several modes and lowerings. Digests are checked against the CPU and equal those of
 * the peers.
 *
 * usage: peal_gpu_jacobi GPUS N... */
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
} job;

typedef struct job_list {
    truth truth[CASES];
    job job[CASES * WAYS * BODIES * 2];
    int job_count;
} job_list;

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

static peal_graph *make_graph(const job *j, bool checked)
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
    if (checked) {
        peal_graph_add_buffer(g, .name = "low", .type = "i64");
        peal_graph_add_buffer(g, .name = "high", .type = "i64");
        add_finish(g, j, n);
    }
    return g;
}

/* On rank 0: whether digest and norm are right. */
static bool check(const ranks *r, const job *j, uint64_t *digest)
{
    way_row row = {0};
    peal_graph *graph = make_graph(j, true);
    ways_run(r, graph, j->way, TRUTH_STEPS, &row);
    peal_graph_destroy(graph);
    *digest = (uint64_t)row.integer[0] + ((uint64_t)row.integer[1] << 32);
    return row.count == 3 && *digest == j->truth->digest && j->truth->known &&
           (!j->norm || truth_close(row.real[2], j->truth->norm));
}

static void run_job(ranks *r, int index, void *user)
{
    const job *j = &((const job_list *)user)->job[index];
    char test[48], variant[64];
    snprintf(test, sizeof(test), "%ld/%d%s", j->truth->n, r->size, j->norm ? "/norm" : "");
    snprintf(variant, sizeof(variant), "%s, %s", j->body->name, j->way->name);
    if (!ways_begin(r, ways_wants(j->way, variant), test, variant)) {
        return;
    }
    bench_result result = {"gpu_jacobi", test, "peal", variant, "peal", 0, {0}, true, 0};
    result.verified = check(r, j, &result.digest);
    peal_graph *graph = make_graph(j, false);
    const double cpu_ns = ways_time(r, graph, j->way, &result);
    ways_print(r, &result, cpu_ns);
    peal_graph_destroy(graph);
}

/* The body of the sample in all ways, the others in the first ones. */
static void add_jobs(job_list *list, const truth *t)
{
    for (int norm = 0; norm < 2; norm++) {
        for (int b = 0; b < BODIES; b++) {
            for (int w = 0; w < (b == 0 ? (int)WAYS : FULL_WAYS); w++) {
                if (t->n >= bodies[b].from && t->n <= bodies[b].to) {
                    list->job[list->job_count++] = (job){t, &bodies[b], &ways[w], norm == 1};
                }
            }
        }
    }
}

int main(int argc, char **argv)
{
    static job_list list;
    const int gpus = argc > 1 ? atoi(argv[1]) : 0;
    if (argc < 3 || argc - 2 > CASES || gpus < 1 || gpus > RANKS_MAX) {
        fprintf(stderr, "usage: %s GPUS N..., e.g. 2 1024 4096\n", argv[0]);
        return PEAL_STATUS_USAGE;
    }
    for (int i = 2; i < argc; i++) {
        const long n = atol(argv[i]);
        if (n < gpus + 2 || n > 32768) {
            fprintf(stderr, "not a size: %s\n", argv[i]);
            return PEAL_STATUS_USAGE;
        }
        if (!truth_compute(n, &list.truth[i - 2])) {
            fprintf(stderr, "no memory for a reference of %ld columns\n", n);
            return PEAL_STATUS_ENVIRONMENT;
        }
        add_jobs(&list, &list.truth[i - 2]);
    }
    const ranks_work work = {list.job_count, run_job, &list};
    return ranks_run(gpus, &work);
}
