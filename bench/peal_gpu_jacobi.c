/* The GPU Jacobi benchmark with peal, one process a GPU: the mesh of samples/jacobi2d, rows split
 * over the GPUs, without norm and with a norm every step; its own body and one that marches down
 * columns, in several modes and lowerings. Digests are checked against the CPU and equal those of
 * the peers. Plans are made when a size is asked for the first time, and kept.
 *
 * usage: peal_gpu_jacobi GPUS [N...] */
#include "gpu/program.h"
#include "gpu/truth.h"

enum { FULL_WAYS = 2 };

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

/* On rank 0; else the size only. */
static const truth *truth_of(const program_job *j)
{
    return j->of->data;
}

static void add_step(peal_graph *g, const program_job *j)
{
    const body *with = &bodies[j->body];
    peal_task_desc relax = {.size_bytes = sizeof(relax),
                            .source = PEAL_HERE,
                            .name = "relax",
                            .kernel = j->norm ? with->kernel_norm : with->kernel,
                            .box = {.name = "a", .grow = "[-1, 0]"},
                            .tile = with->tile,
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
static void add_finish(peal_graph *g, const program_job *j, const char *n)
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
static peal_graph *make_graph(const program_job *j, bool checked)
{
    const long columns = truth_of(j)->n;
    char size[64], n[24];
    peal_graph *g;
    if (checked) {
        return NULL;
    }
    if (peal_graph_create("gpu_jacobi", &g) != PEAL_STATUS_OK) {
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    snprintf(n, sizeof(n), "%ld", columns);
    snprintf(size, sizeof(size), "[%ld, %ld]", columns, columns - 2);
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
static bool check(const ranks *r, program_job *j)
{
    const truth *right = truth_of(j);
    way_row row = {0};
    peal_graph *graph = make_graph(j, false);
    ways_run(r, graph, j->way, TRUTH_STEPS, &row);
    peal_graph_destroy(graph);
    j->kept.digest = (uint64_t)row.integer[0] + ((uint64_t)row.integer[1] << 32);
    return row.count == 3 && j->kept.digest == right->digest && right->known &&
           (!j->norm || truth_close(row.real[2], right->norm));
}

/* The sample's body in all ways, the others where they are named. */
static bool names(const ranks *r, const program_job *j, program_names *out)
{
    const long n = truth_of(j)->n;
    snprintf(out->test, sizeof(out->test), "%ld/%d%s", n, r->size, j->norm ? "/norm" : "");
    snprintf(out->variant, sizeof(out->variant), "%s, %s", bodies[j->body].name, j->way->name);
    return ways_wants(j->body == 0 ? j->way->when : WAY_NAMED, n == 1024, out->variant);
}

static bool parse_size(int count, char **word, int gpus, void *data)
{
    const long n = count == 1 ? atol(word[0]) : 0;
    ((truth *)data)->n = n;
    return n >= gpus + 2 && n <= 32768;
}

/* The body of the sample in all ways, the others in the first ones. */
static void open_size(const ranks *r, program_case *c)
{
    truth *right = c->data;
    const long n = right->n;
    if (r->rank == 0 && !ways_only_compiles() && !truth_compute(n, right)) {
        fprintf(stderr, "no memory for a reference of %ld columns\n", n);
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    for (int norm = 0; norm < 2; norm++) {
        for (int b = 0; b < BODIES; b++) {
            for (int w = 0; w < (b == 0 ? (int)WAYS : FULL_WAYS); w++) {
                if (n >= bodies[b].from && n <= bodies[b].to) {
                    program_add(c, (program_job){.body = b, .way = &ways[w], .norm = norm == 1});
                }
            }
        }
    }
}

int main(int argc, char **argv)
{
    static program jacobi = {.bench = "gpu_jacobi",
                             .example = "2 1024 4096",
                             .data_bytes = sizeof(truth),
                             .parse = parse_size,
                             .open = open_size,
                             .names = names,
                             .graph = make_graph,
                             .check = check};
    return program_main(argc, argv, &jacobi);
}
