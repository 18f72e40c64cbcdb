/* The application of bench/peal_exchange.c on MPI: its own time loop, a 7-point stencil on its own
 * arrays, and a halo exchange a step; ranks along x, periodic, N^3 points each. Variants: all
 * halo points or (enough for 7 points) only the faces, non-blocking and persistent, exchange then
 * compute, or the columns that need no neighbour while the message travels (overlap).
 *
 * usage: exchange_mpi N [N ...] */
#include "../bodies/heat.h"
#include "halo_box.h"

#include <mpi.h>
#ifdef OPEN_MPI
#define PEER "openmpi"
#else
#define PEER "mpich"
#endif

enum { VERIFIED_STEPS = 10 };

typedef struct application {
    heat_grid grid;
    halo_box box[2]; /* step s reads box[s % 2] and writes the other; they share message buffers */
    int rank, ranks, left, right;
    int count;    /* of a message: with 2 ranks both faces are one */
    int requests; /* receives, then as many sends */
    MPI_Request request[4];
} application;

typedef struct application_way {
    const char *name;
    bool faces, persistent, overlap;
} application_way;

static const application_way ways[] = {
    {"planes", false, false, false},
    {"planes-overlap", false, false, true},
    {"planes-persistent", false, true, false},
    {"planes-persistent-overlap", false, true, true},
    {"faces", true, false, false},
    {"faces-overlap", true, false, true},
    {"faces-persistent", true, true, false},
    {"faces-persistent-overlap", true, true, true},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* Own images along y and z, without edges. */
static void faces_images(halo_box *box)
{
    const int n = box->n;
    const size_t bytes = (size_t)n * sizeof(double);
    double *u = box->u + 1;
    for (int z = 1; z <= n; z++) {
        double *plane = u + z * box->plane;
        memcpy(plane, plane + n * box->pitch, bytes);
        memcpy(plane + (n + 1) * box->pitch, plane + box->pitch, bytes);
    }
    for (int y = 1; y <= n; y++) {
        double *row = u + y * box->pitch;
        memcpy(row, row + n * box->plane, bytes);
        memcpy(row + (n + 1) * box->plane, row + box->plane, bytes);
    }
}

static void faces_unpack(halo_box *box)
{
    const int n = box->n;
    const double *left = box->in, *right = left + (ptrdiff_t)n * n;
    for (int z = 1; z <= n; z++) {
        double *row = box->u + z * box->plane + box->pitch;
        for (int y = 0; y < n; y++, row += box->pitch) {
            row[n + 1] = *left++;
            row[0] = *right++;
        }
    }
}

static void open_way(application *app, const application_way *way)
{
    const halo_box *box = &app->box[0];
    const int face = way->faces ? box->n * box->n : (int)box->plane;
    app->count = app->ranks == 2 ? 2 * face : face;
    app->requests = app->ranks == 2 ? 2 : 4;
    if (way->persistent && app->ranks == 2) {
        MPI_Recv_init(box->in, app->count, MPI_DOUBLE, app->left, 0, MPI_COMM_WORLD,
                      &app->request[0]);
        MPI_Send_init(box->out, app->count, MPI_DOUBLE, app->left, 0, MPI_COMM_WORLD,
                      &app->request[1]);
    } else if (way->persistent) {
        MPI_Recv_init(box->in, face, MPI_DOUBLE, app->right, 0, MPI_COMM_WORLD, &app->request[0]);
        MPI_Recv_init(box->in + face, face, MPI_DOUBLE, app->left, 1, MPI_COMM_WORLD,
                      &app->request[1]);
        MPI_Send_init(box->out, face, MPI_DOUBLE, app->left, 0, MPI_COMM_WORLD, &app->request[2]);
        MPI_Send_init(box->out + face, face, MPI_DOUBLE, app->right, 1, MPI_COMM_WORLD,
                      &app->request[3]);
    }
}

static void close_way(application *app, const application_way *way)
{
    if (way->persistent) {
        for (int i = 0; i < app->requests; i++) {
            MPI_Request_free(&app->request[i]);
        }
    }
}

/* My first column is the right halo of the rank on the left, my last one the left of the right. */
static void post(application *app, halo_box *box)
{
    const int count = app->count;
    if (app->ranks == 2) {
        MPI_Irecv(box->in, count, MPI_DOUBLE, app->left, 0, MPI_COMM_WORLD, &app->request[0]);
        MPI_Isend(box->out, count, MPI_DOUBLE, app->left, 0, MPI_COMM_WORLD, &app->request[1]);
        return;
    }
    MPI_Irecv(box->in, count, MPI_DOUBLE, app->right, 0, MPI_COMM_WORLD, &app->request[0]);
    MPI_Irecv(box->in + count, count, MPI_DOUBLE, app->left, 1, MPI_COMM_WORLD, &app->request[1]);
    MPI_Isend(box->out, count, MPI_DOUBLE, app->left, 0, MPI_COMM_WORLD, &app->request[2]);
    MPI_Isend(box->out + count, count, MPI_DOUBLE, app->right, 1, MPI_COMM_WORLD, &app->request[3]);
}

static void begin(application *app, const application_way *way, halo_box *box)
{
    if (way->faces) {
        wrapped_pack(box);
    } else {
        own_images(box);
        planes_pack(box);
    }
    if (way->persistent) {
        MPI_Startall(app->requests, app->request);
    } else {
        post(app, box);
    }
    if (way->faces) {
        faces_images(box);
    }
}

static void finish(application *app, const application_way *way, halo_box *box)
{
    MPI_Waitall(app->requests, app->request, MPI_STATUSES_IGNORE);
    if (way->faces) {
        faces_unpack(box);
    } else {
        planes_unpack(box);
    }
}

static void run_steps(application *app, const application_way *way, long count)
{
    const ptrdiff_t n = app->grid.n[0];
    for (long step = 0; step < count; step++) {
        halo_box *box = &app->box[step % 2];
        double *un = app->box[(step + 1) % 2].u;
        begin(app, way, box);
        if (way->overlap) {
            heat_step(&app->grid, box->u, un, 2, n);
        }
        finish(app, way, box);
        if (way->overlap) {
            heat_step(&app->grid, box->u, un, 1, 2);
            heat_step(&app->grid, box->u, un, n, n + 1);
        } else {
            heat_step(&app->grid, box->u, un, 1, n + 1);
        }
    }
}

static uint64_t digest(application *app, const application_way *way)
{
    heat_start(&app->grid, app->box[0].u);
    heat_start(&app->grid, app->box[1].u);
    run_steps(app, way, VERIFIED_STEPS);
    uint64_t sum = heat_digest(&app->grid, app->box[VERIFIED_STEPS % 2].u);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static double time_batch(application *app, const application_way *way, long count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now_ns();
    run_steps(app, way, count);
    double ns = (bench_now_ns() - start) / (double)count;
    MPI_Allreduce(MPI_IN_PLACE, &ns, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return ns;
}

static void run_case(application *app)
{
    static bench_result result[WAYS];
    char test[32];
    int n = (int)app->grid.n[0];
    uint64_t right = heat_reference(n, app->ranks, VERIFIED_STEPS, 0, (long)app->ranks * n);
    snprintf(test, sizeof(test), "%d", n);
    for (int batch = -1; batch < BENCH_BATCHES; batch++) {
        for (int w = 0; w < WAYS; w++) {
            bench_result *r = &result[w];
            open_way(app, &ways[w]);
            if (batch < 0) {
                *r = (bench_result){"exchange", test, PEER, ways[w].name, "peer", 0, {0}, false, 0};
                r->digest = digest(app, &ways[w]);
                r->verified = r->digest == right;
            } else {
                double ns = time_batch(app, &ways[w], 4);
                r->ns[batch] = time_batch(app, &ways[w], bench_repetitions(ns, bench_budget_ns()));
                r->batch_count = batch + 1;
            }
            close_way(app, &ways[w]);
        }
    }
    for (int w = 0; w < WAYS && app->rank == 0; w++) {
        bench_print(&result[w]);
    }
}

int main(int argc, char **argv)
{
    application app = {.count = 0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &app.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &app.ranks);
    if (app.ranks < 2 || argc < 2) {
        fprintf(stderr, "usage: mpirun -n RANKS %s N [N ...], two ranks or more\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bench_pin(app.rank);
    app.left = (app.rank + app.ranks - 1) % app.ranks;
    app.right = (app.rank + 1) % app.ranks;
    for (int i = 1; i < argc; i++) {
        int n = atoi(argv[i]);
        app.grid = heat_dense(n, n, (long)n * app.rank, (long)app.ranks * n);
        if (!halo_create(&app.box[0], app.rank, n, 1) ||
            !halo_create(&app.box[1], app.rank, n, 1)) {
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
        double *second_out = app.box[1].out, *second_in = app.box[1].in;
        app.box[1].out = app.box[0].out;
        app.box[1].in = app.box[0].in;
        run_case(&app);
        app.box[1].out = second_out;
        app.box[1].in = second_in;
        halo_destroy(&app.box[0]);
        halo_destroy(&app.box[1]);
    }
    MPI_Finalize();
    return 0;
}
