/* An application with its own time loop that uses peal for its halo exchange alone (as
 * samples/exchange, in three dimensions): bodies/heat.h on processes along x, periodic. Variants:
 * the arrays are the application's own (lent) or come from peal; exchange then compute, or the
 * columns that need no neighbour while the exchange is under way (overlap).
 *
 * usage: peal_exchange N [N ...], two or more processes under a launcher */
#include "bodies/heat.h"
#include "peal_bench.h"

enum { VERIFIED_STEPS = 10 };

typedef struct application {
    heat_grid grid;
    double *u[2]; /* step s reads u[s % 2] and writes the other */
    double *lent[2];
    peal_exchange *exchange[2];
} application;

static void create(peal_session *session, application *app, int n, bool lent)
{
    int rank = peal_session_process(session), ranks = peal_session_processes(session);
    app->grid = heat_dense(n, n, (long)n * rank, (long)ranks * n);
    size_t bytes = (heat_points(&app->grid) * sizeof(double) + 63) / 64 * 64;
    for (int i = 0; i < 2; i++) {
        app->lent[i] = lent ? aligned_alloc(64, bytes) : NULL;
        peal_exchange_array array;
        peal_status status = peal_exchange_create(
            session, &app->exchange[i], .axis_count = 3, .lo = {(int64_t)rank * n, 0, 0},
            .hi = {(int64_t)(rank + 1) * n, n, n}, .periodic = {true, true, true},
            .field = {{PEAL_F64, .data = {app->lent[i]}, .width = {{1, 1}, {1, 1}, {1, 1}}}});
        bench_require(session, status, "create");
        bench_require(session, peal_exchange_view(app->exchange[i], 0, &array), "view");
        app->u[i] = array.data;
        app->grid.pitch = array.stride[1];
        app->grid.plane = array.stride[2];
    }
}

static void destroy(peal_session *session, application *app)
{
    for (int i = 0; i < 2; i++) {
        bench_require(session, peal_exchange_destroy(app->exchange[i]), "destroy");
        free(app->lent[i]);
    }
}

static void run_steps(peal_session *session, application *app, bool overlap, long count)
{
    const ptrdiff_t n = app->grid.n[0];
    for (long step = 0; step < count; step++) {
        const double *u = app->u[step % 2];
        double *un = app->u[(step + 1) % 2];
        peal_exchange *exchange = app->exchange[step % 2];
        peal_status status = peal_exchange_start(exchange, 0, NULL);
        if (overlap) {
            /* Columns next to y and z images need the exchange too: only the inner box is free. */
            heat_inner(&app->grid, u, un);
        }
        if (status == PEAL_STATUS_OK) {
            status = peal_exchange_wait(exchange);
        }
        if (status != PEAL_STATUS_OK) {
            bench_require(session, status, "exchange");
        }
        if (overlap) {
            heat_shell(&app->grid, u, un);
        } else {
            heat_step(&app->grid, u, un, 1, n + 1);
        }
    }
}

static void run_case(peal_session *session, int n, bool lent, bool overlap)
{
    char test[32], variant[32];
    application app;
    create(session, &app, n, lent);
    snprintf(test, sizeof(test), "%d", n);
    snprintf(variant, sizeof(variant), "%s%s", lent ? "lent" : "own", overlap ? "-overlap" : "");
    bench_result r = {"exchange", test, "peal", variant, "peal", 0, {0}, false, 0};
    heat_start(&app.grid, app.u[0]);
    heat_start(&app.grid, app.u[1]);
    run_steps(session, &app, overlap, VERIFIED_STEPS);
    r.digest = heat_digest(&app.grid, app.u[VERIFIED_STEPS % 2]);
    r.verified = r.digest == heat_reference(n, peal_session_processes(session), VERIFIED_STEPS,
                                            app.grid.first_x, n);
    long count = bench_repetitions(400 + 0.8 * n * n * n, bench_budget_ns());
    run_steps(session, &app, overlap, count);
    for (int batch = 0; batch < BENCH_BATCHES; batch++) {
        double start = bench_now_ns();
        run_steps(session, &app, overlap, count);
        r.ns[r.batch_count++] = (bench_now_ns() - start) / (double)count;
    }
    bench_print(&r);
    destroy(session, &app);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s N [N ...]\n", argv[0]);
        return PEAL_STATUS_USAGE;
    }
    peal_session *session = bench_open();
    if (peal_session_processes(session) < 2) {
        fprintf(stderr, "%s needs two processes or more\n", argv[0]);
        return PEAL_STATUS_USAGE;
    }
    for (int i = 1; i < argc; i++) {
        for (int k = 0; k < 4; k++) {
            run_case(session, atoi(argv[i]), k % 2, k / 2);
        }
    }
    peal_session_destroy(session);
    return 0;
}
