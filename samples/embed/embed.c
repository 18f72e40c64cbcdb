/* peal inside an application: the graph is built in C, the work is done by functions of this
 * program, and the program goes on computing while the plan runs.
 *
 * The plan lets heat spread over a plate whose walls are kept at 0. It starts from a few waves; of
 * each it is known exactly how a step dampens it. While the plan runs, this thread adds up these
 * waves for the last step, and compares the two in the end.
 *
 *     embed [RANKS [MODE]]                RANKS: one a process by default; MODE: auto
 *     mpirun -n 4 embed */
#include <peal/graph.h>
#include <peal/plan.h>
#include <peal/session.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 240, WAVES = 5, STEPS = 2000 };

static const double rate = 0.2;

/* waves.shape[k][i]: wave k + 1 along an axis. The plate holds the product of all pairs. */
typedef struct waves {
    double shape[WAVES][POINTS];
    double damping[WAVES][WAVES]; /* what a step leaves of a pair */
} waves;

static void waves_init(waves *w)
{
    const double pi = 3.14159265358979323846;
    double loss[WAVES];
    for (int k = 0; k < WAVES; k++) {
        double angle = (k + 1) * pi / (POINTS + 1);
        loss[k] = 4.0 * rate * sin(0.5 * angle) * sin(0.5 * angle);
        for (int i = 0; i < POINTS; i++)
            w->shape[k][i] = sin(angle * (i + 1));
    }
    for (int p = 0; p < WAVES; p++)
        for (int q = 0; q < WAVES; q++)
            w->damping[p][q] = 1.0 - loss[p] - loss[q];
}

/* The plate at (x, y) after so many steps, known from the waves alone. */
static double waves_at(const waves *w, int64_t x, int64_t y, int steps)
{
    double sum = 0;
    for (int p = 0; p < WAVES; p++)
        for (int q = 0; q < WAVES; q++)
            sum += w->shape[p][x] * w->shape[q][y] * pow(w->damping[p][q], steps);
    return sum;
}

/* Task: u gets the waves at step 0. The views come in the order of read, update, write. */
static void start(const peal_call *call)
{
    const waves *w = call->user;
    const peal_tile *tile = &call->tile;
    for (int y = tile->lo[1]; y < tile->hi[1]; y++) {
        double *u = (double *)call->view[0].base + y * call->view[0].stride[1];
        for (int x = tile->lo[0]; x < tile->hi[0]; x++)
            u[x] = waves_at(w, x, y, 0);
    }
}

/* Task: v becomes u, one step later. Coordinates are global, on every rank. */
static void spread(const peal_call *call)
{
    const peal_tile *tile = &call->tile;
    int64_t next = call->view[0].stride[1];
    double share = call->argument[0].real;
    for (int y = tile->lo[1]; y < tile->hi[1]; y++) {
        const double *u = (const double *)call->view[0].base + y * next;
        double *v = (double *)call->view[1].base + y * call->view[1].stride[1];
        for (int x = tile->lo[0]; x < tile->hi[0]; x++)
            v[x] = u[x] + share * (u[x - 1] + u[x + 1] + u[x - next] + u[x + next] - 4.0 * u[x]);
    }
}

static peal_status build(peal_graph **graph, waves *w)
{
    peal_status status = peal_graph_create("embed", graph);
    if (status != PEAL_STATUS_OK)
        return status;
    peal_graph *g = *graph;
    peal_graph_add_field(g, .name = "u", .size = "[240, 240]", .halo = "1");
    peal_graph_add_field(g, .name = "v", .like = "u");
    peal_graph_set_loop(g, .repeat = "2000");

    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_add_task(g, .name = "start", .function = start, .user = w, .box = {.name = "u"},
                        .write = {{.name = "u"}});
    peal_graph_end(g);

    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_exchange(g, .exchange = {{.name = "u", .star = "1"}});
    peal_graph_add_task(g, .name = "spread", .function = spread, .box = {.name = "u"},
                        .read = {{.name = "u", .star = "1"}}, .write = {{.name = "v"}},
                        .args = {"0.2"});
    peal_graph_add_swap(g, .swap = {"u", "v"});
    peal_graph_end(g);
    return PEAL_STATUS_OK; /* what is wrong with the graph, peal_graph_compile says */
}

/* The largest difference between the plan's plate and the expected one, on the ranks of this
 * process. The view is asked for after the run: u and v have been swapped. */
static peal_status compare(const peal_plan *plan, const double *expected, double *largest)
{
    int first, end;
    peal_plan_ranks(plan, &first, &end);
    for (int rank = first; rank < end; rank++) {
        peal_plan_array u;
        peal_status status = peal_plan_view(plan, rank, "u", &u);
        if (status != PEAL_STATUS_OK)
            return status;
        const double *base = u.view.base;
        for (int64_t y = u.part.lo[1]; y < u.part.hi[1]; y++)
            for (int64_t x = u.part.lo[0]; x < u.part.hi[0]; x++)
                *largest =
                    fmax(*largest, fabs(base[x + y * u.view.stride[1]] - expected[x + y * POINTS]));
    }
    return PEAL_STATUS_OK;
}

static peal_status run(peal_plan *plan, const waves *w, double *expected, double *largest)
{
    peal_status status = peal_plan_start(plan, STEPS, NULL);
    if (status != PEAL_STATUS_OK)
        return status;

    for (int y = 0; y < POINTS; y++) /* the plan runs meanwhile */
        for (int x = 0; x < POINTS; x++)
            expected[x + y * POINTS] = waves_at(w, x, y, STEPS);
    fprintf(stderr, "the waves are added up, the plan has done %lld of %d steps\n",
            (long long)peal_plan_progress(plan), STEPS);

    status = peal_plan_wait(plan);
    if (status == PEAL_STATUS_OK)
        status = compare(plan, expected, largest);
    if (status == PEAL_STATUS_OK)
        status = peal_plan_finish(plan);
    return status;
}

int main(int argc, char **argv)
{
    peal_plan_options options = {.size_bytes = sizeof(options)};
    options.ranks = argc > 1 ? atoi(argv[1]) : 0;
    options.mode = argc > 2 ? argv[2] : NULL;
    peal_session *session = NULL;
    peal_graph *graph = NULL;
    peal_plan *plan = NULL;
    double largest = 0;
    waves *w = calloc(1, sizeof(*w));
    double *expected = calloc((size_t)POINTS * POINTS, sizeof(*expected));
    peal_status status = w && expected ? PEAL_STATUS_OK : PEAL_STATUS_ENVIRONMENT;
    if (status == PEAL_STATUS_OK) {
        waves_init(w);
        status = peal_session_create(&(peal_session_desc){.size_bytes = sizeof(peal_session_desc),
                                                          .log_level = PEAL_LOG_ERROR,
                                                          .log = stderr},
                                     &session);
    }
    if (status == PEAL_STATUS_OK)
        status = build(&graph, w);
    if (status == PEAL_STATUS_OK)
        status = peal_graph_compile(graph, session, &options, &plan);
    if (status == PEAL_STATUS_OK)
        status = run(plan, w, expected, &largest);

    if (status != PEAL_STATUS_OK) {
        if (session)
            peal_session_print_diagnostics(session, stderr, 0);
        fprintf(stderr, "embed: %s\n", peal_status_name(status));
    } else {
        if (peal_session_process(session) == 0)
            printf("%d x %d points, %d steps, ranks: %d, mode: %s\n", POINTS, POINTS, STEPS,
                   peal_plan_rank_count(plan), peal_mode_name(peal_plan_mode(plan)));
        printf("process %d of %d: the plate %s\n", peal_session_process(session),
               peal_session_processes(session),
               largest < 1e-11 ? "is as the waves foretold" : "is wrong");
        status = largest < 1e-11 ? PEAL_STATUS_OK : PEAL_STATUS_WRONG_RESULT;
    }
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
    peal_session_destroy(session);
    free(expected);
    free(w);
    return status;
}
