/* A halo exchange in an MPI program, for mpi_test.py: mpi_program
 * right|reversed|bytes|part|quiet|graph|plan. Each point holds its number in the whole grid, which
 * halo points are compared with. */
#include <peal/mpi.h>
#include <peal/peal.h>

#include <stdlib.h>

enum { NX = 13, NY = 11, WIDTH = 2, ROUNDS = 5 };

typedef struct part {
    int first[2], extent[2], pitch;
    double *u;
} part;

static void cut(int n, int parts, int at, int *first, int *extent)
{
    *first = at * n / parts;
    *extent = (at + 1) * n / parts - *first;
}

static double *point(const part *p, int x, int y)
{
    return p->u + (y + WIDTH) * p->pitch + x + WIDTH;
}

static double value(const part *p, int x, int y, int round)
{
    int gx = (p->first[0] + x + NX) % NX, gy = (p->first[1] + y + NY) % NY;
    return gx + 100.0 * gy + 1e4 * round;
}

static int wrong_points(const part *p, int round)
{
    int wrong = 0;
    for (int y = -WIDTH; y < p->extent[1] + WIDTH; y++)
        for (int x = -WIDTH; x < p->extent[0] + WIDTH; x++)
            wrong += *point(p, x, y) != value(p, x, y, round);
    return wrong;
}

/* A plan of one step that is waited for and was not started; or no field at all. */
static void run_plan(peal_session *session, bool is_right)
{
    peal_graph *graph;
    peal_plan *plan = NULL;
    peal_graph_create("plan", &graph);
    if (is_right)
        peal_graph_add_field(graph, .name = "a", .size = "[64]", .halo = "1");
    peal_graph_begin(graph, PEAL_STEP);
    peal_graph_add_exchange(graph, .exchange = {{.name = "a"}}); /* graph */
    peal_graph_end(graph);
    peal_graph_compile(graph, session, NULL, &plan);
    peal_plan_wait(plan);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "right";
    int rank, size, dims[2] = {0, 0}, at[2], periods[2] = {1, 1}, wrong = 0, all = 0;
    MPI_Comm comm = MPI_COMM_WORLD, cart;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(what, "reversed"))
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(comm, 2, dims, periods, 0, &cart); /* its last axis counts first */
    MPI_Cart_coords(cart, rank, 2, at);
    part p;
    cut(NX, dims[0], at[0], &p.first[0], &p.extent[0]);
    cut(NY, dims[1], at[1], &p.first[1], &p.extent[1]);
    p.pitch = p.extent[0] + 2 * WIDTH;
    int64_t bytes = (int64_t)p.pitch * (p.extent[1] + 2 * WIDTH) * (int64_t)sizeof(double);
    p.u = calloc(1, (size_t)bytes);

    peal_session *session = peal_session_from_mpi(cart);
    if (!strcmp(what, "graph") || !strcmp(what, "plan"))
        run_plan(session, !strcmp(what, "plan"));
    peal_exchange *exchange;
    bytes -= !strcmp(what, "bytes") && rank == 1 ? 8 : 0;
    p.first[0] += !strcmp(what, "part") && rank == size - 1;
    peal_exchange_create(session, &exchange, .axis_count = 2, /* here */
                         .lo = {p.first[0], p.first[1]}, .periodic = {true, true},
                         .hi = {p.first[0] + p.extent[0], p.first[1] + p.extent[1]},
                         .field = {{PEAL_F64, .data = {p.u}, .bytes = bytes,
                                    .width = {{WIDTH, WIDTH}, {WIDTH, WIDTH}}}});
    for (int round = 0; round < ROUNDS; round++) {
        for (int y = 0; y < p.extent[1]; y++)
            for (int x = 0; x < p.extent[0]; x++)
                *point(&p, x, y) = value(&p, x, y, round);
        if (!strcmp(what, "quiet") && rank == 2 && round == 1)
            peal_exchange_wait(exchange); /* without a start */
        peal_exchange_start(exchange, 0, NULL);
        peal_exchange_wait(exchange);
        wrong += wrong_points(&p, round);
    }
    peal_exchange_destroy(exchange);
    peal_session_destroy(session);
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, comm);
    if (rank == 0)
        printf("%d processes, %d wrong points\n", size, all);
    free(p.u);
    MPI_Finalize();
    return 0;
}
