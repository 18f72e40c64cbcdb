/* The halo exchange of bench/README.md with peal: 2 processes split along x, doubles, ghost 1,
 * periodic. Variants: the exchange alone, on peal's memory and on the caller's; and a plan of one
 * exchange and an empty task that reads the halo, in every mode. Verified cell by cell.
 *
 * usage: peal_halo N FIELDS [N FIELDS ...], two processes under a launcher */
#include "peal_bench.h"

enum { FIELDS = 8 };

static const char *const names[FIELDS] = {"u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7"};

typedef struct halo_case {
    int n, fields;
    char test[32];
    long repetitions;
} halo_case;

/* The value of a field's owned points; coordinates beyond the ends are images. */
static double value(const halo_case *c, int field, int64_t x, int64_t y, int64_t z)
{
    int64_t n = c->n;
    x = (x + 2 * n) % (2 * n);
    y = (y + n) % n;
    z = (z + n) % n;
    return field * 1e9 + (double)((z * n + y) * 2 * n + x + 1);
}

/* Fills (halo: -1) or checks all stored points of a field, given in its local coordinates. */
static bool visit(const halo_case *c, int field, const peal_exchange_array *array, bool fill)
{
    double *u = array->data;
    for (int64_t z = 0; z < c->n + 2; z++) {
        for (int64_t y = 0; y < c->n + 2; y++) {
            for (int64_t x = 0; x < c->n + 2; x++) {
                double *at = u + x + y * array->stride[1] + z * array->stride[2];
                double right = value(c, field, array->lo[0] + x - 1, y - 1, z - 1);
                bool own = x >= 1 && x <= c->n && y >= 1 && y <= c->n && z >= 1 && z <= c->n;
                if (fill) {
                    *at = own ? right : -1;
                } else if (*at != right) {
                    return false;
                }
            }
        }
    }
    return true;
}

static void exchange_once(peal_session *session, peal_exchange *exchange)
{
    bench_require(session, peal_exchange_start(exchange, 0, NULL), "start");
    bench_require(session, peal_exchange_wait(exchange), "wait");
}

static bool verify_exchange(peal_session *session, const halo_case *c, peal_exchange *exchange)
{
    bool good = true;
    for (int pass = 0; pass < 2; pass++) {
        for (int f = 0; f < c->fields; f++) {
            peal_exchange_array array;
            bench_require(session, peal_exchange_view(exchange, f, &array), "view");
            good = visit(c, f, &array, pass == 0) && good;
        }
        if (pass == 0) {
            exchange_once(session, exchange);
        }
    }
    return good;
}

/* The exchange without a graph. lent: the arrays are the caller's. */
static void run_exchange(peal_session *session, const halo_case *c, bool lent)
{
    size_t bytes = (size_t)(c->n + 2) * (size_t)(c->n + 2) * (size_t)(c->n + 2) * sizeof(double);
    peal_halo_desc desc = {
        .size_bytes = sizeof(desc),
        .source = PEAL_HERE,
        .axis_count = 3,
        .lo = {peal_session_process(session) * c->n, 0, 0},
        .hi = {(peal_session_process(session) + 1) * c->n, c->n, c->n},
        .periodic = {true, true, true},
    };
    for (int f = 0; f < c->fields; f++) {
        desc.field[f] = (peal_halo_field){PEAL_F64, .width = {{1, 1}, {1, 1}, {1, 1}}};
        desc.field[f].data[0] = lent ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    }
    peal_exchange *exchange;
    bench_require(session, peal_exchange_create_desc(session, &desc, &exchange), "create");
    bench_result r = {"halo", c->test, "peal", lent ? "exchange-lent" : "exchange", "peal", 0,
                      {0},    true,    0};
    r.verified = verify_exchange(session, c, exchange);
    for (int batch = -1; batch < BENCH_BATCHES; batch++) {
        double start = bench_now_ns();
        for (long i = 0; i < c->repetitions; i++) {
            exchange_once(session, exchange);
        }
        if (batch >= 0) {
            r.ns[r.batch_count++] = (bench_now_ns() - start) / (double)c->repetitions;
        }
    }
    r.verified = verify_exchange(session, c, exchange) && r.verified;
    bench_print(&r);
    bench_require(session, peal_exchange_destroy(exchange), "destroy");
    for (int f = 0; f < c->fields; f++) {
        free(desc.field[f].data[0]);
    }
}

typedef struct reader {
    const halo_case *test;
    bool check;
    bool wrong;
} reader;

static void fill(const peal_call *call)
{
    const reader *job = call->user;
    const peal_tile *t = &call->tile;
    for (int f = 0; f < call->view_count; f++) {
        const peal_view *v = &call->view[f];
        for (int64_t z = t->lo[2]; z < t->hi[2]; z++) {
            for (int64_t y = t->lo[1]; y < t->hi[1]; y++) {
                for (int64_t x = t->lo[0]; x < t->hi[0]; x++) {
                    ((double *)v->base)[x + y * v->stride[1] + z * v->stride[2]] =
                        value(job->test, f, x, y, z);
                }
            }
        }
    }
}

/* Reads the halo when it is asked to check; else it is empty. */
static void look(const peal_call *call)
{
    reader *job = call->user;
    const peal_tile *t = &call->tile;
    for (int f = 0; job->check && f < call->view_count; f++) {
        const peal_view *v = &call->view[f];
        for (int64_t z = t->lo[2] - 1; z <= t->hi[2]; z++) {
            for (int64_t y = t->lo[1] - 1; y <= t->hi[1]; y++) {
                for (int64_t x = t->lo[0] - 1; x <= t->hi[0]; x++) {
                    double is = ((double *)v->base)[x + y * v->stride[1] + z * v->stride[2]];
                    job->wrong = job->wrong || is != value(job->test, f, x, y, z);
                }
            }
        }
    }
}

/* `touch` says that it changes the fields, so that every step has something to send. */
static void touch(const peal_call *call)
{
    (void)call;
}

static peal_graph *make_graph(const halo_case *c, reader *job)
{
    char size[64];
    peal_graph *g;
    if (peal_graph_create("halo", &g) != PEAL_STATUS_OK) {
        exit(PEAL_STATUS_ENVIRONMENT);
    }
    snprintf(size, sizeof(size), "[%d, %d, %d]", 2 * c->n, c->n, c->n);
    peal_graph_set_topology(g, .dims = "[2, 1, 1]", .periodic = "[true, true, true]");
    peal_graph_set_loop(g, .repeat = "1000000000");
    peal_task_desc filling = BENCH_TASK("fill", fill, job),
                   touching = BENCH_TASK("touch", touch, job),
                   looking = BENCH_TASK("look", look, job);
    peal_exchange_desc exchange = {.size_bytes = sizeof(exchange), .source = PEAL_HERE};
    for (int f = 0; f < c->fields; f++) {
        peal_graph_add_field(g, .name = names[f], .size = size, .halo = "1");
        filling.box.name = touching.box.name = looking.box.name = names[0];
        filling.write[f].name = touching.update[f].name = looking.read[f].name = names[f];
        looking.read[f].grow = "1";
        exchange.exchange[f].name = names[f];
    }
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_add_task_desc(g, &filling);
    peal_graph_end(g);
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task_desc(g, &touching);
    peal_graph_add_exchange_desc(g, &exchange);
    peal_graph_add_task_desc(g, &looking);
    peal_graph_end(g);
    return g;
}

static void run_plan(peal_session *session, const halo_case *c, const char *mode)
{
    char variant[32];
    reader job = {c, true, false};
    peal_graph *graph = make_graph(c, &job);
    peal_plan *plan = bench_plan(session, graph, mode, 1);
    if (plan) {
        snprintf(variant, sizeof(variant), "plan-%s", mode);
        bench_result r = {"halo", c->test, "peal", variant, "peal", 0, {0}, true, 0};
        bench_steps(session, plan, 3);
        job.check = false;
        bench_steps(session, plan, c->repetitions);
        for (int batch = 0; batch < BENCH_BATCHES; batch++) {
            r.ns[r.batch_count++] = bench_steps(session, plan, c->repetitions);
        }
        job.check = true;
        bench_steps(session, plan, 3);
        r.verified = !job.wrong;
        bench_print(&r);
        bench_close_plan(session, plan);
    }
    peal_graph_destroy(graph);
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc % 2 == 0) {
        fprintf(stderr, "usage: %s N FIELDS [N FIELDS ...]\n", argv[0]);
        return PEAL_STATUS_USAGE;
    }
    peal_session *session = bench_open();
    if (peal_session_processes(session) != 2) {
        fprintf(stderr, "%s needs two processes\n", argv[0]);
        return PEAL_STATUS_USAGE;
    }
    for (int i = 1; i < argc; i += 2) {
        halo_case c = {.n = atoi(argv[i]), .fields = atoi(argv[i + 1])};
        if (c.n < 1 || c.fields < 1 || c.fields > FIELDS) {
            return PEAL_STATUS_USAGE;
        }
        snprintf(c.test, sizeof(c.test), "%dx%d", c.n, c.fields);
        c.repetitions = bench_repetitions(400 + 9.0 * c.fields * c.n * c.n, bench_budget_ns());
        run_exchange(session, &c, false);
        run_exchange(session, &c, true);
        for (int mode = 0; mode < BENCH_MODES; mode++) {
            run_plan(session, &c, bench_modes[mode]);
        }
    }
    peal_session_destroy(session);
    return 0;
}
