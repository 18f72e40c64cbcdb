/* The Jacobi benchmark on MPI: the problem of NVIDIA's multi-GPU samples, rows split over the
 * ranks, no norm but at the end. Variants: whole step then exchange, or border rows first and the
 * interior while messages travel (overlap); non-blocking, persistent, neighbour collectives; two
 * rows as two messages, or (two ranks: both neighbours are one) packed into one.
 *
 * usage: jacobi_mpi N [N ...] */
#include "../bodies/mesh.h"

#include <mpi.h>
#ifdef OPEN_MPI
#define PEER "openmpi"
#else
#define PEER "mpich"
#endif

typedef struct jacobi {
    mesh m;
    int rank, up, down;
    float *a[2]; /* step s reads a[s % 2] and writes the other */
    float *out, *in;
    int width; /* floats a row on the wire: all but the walls */
    MPI_Comm graph;
    MPI_Request request[2][4]; /* by the array that is exchanged */
} jacobi;

typedef struct jacobi_way {
    const char *name;
    bool overlap;
    void (*open)(jacobi *job);
    void (*begin)(jacobi *job, int target);
    void (*finish)(jacobi *job, int target);
    void (*close)(jacobi *job);
} jacobi_way;

static void nothing(jacobi *job)
{
    (void)job;
}

static void nothing_to_finish(jacobi *job, int target)
{
    (void)job;
    (void)target;
}

/* Row k of an array without its wall; 0 and rows + 1 are the halo. */
static float *row(const jacobi *job, int target, long k)
{
    return job->a[target] + k * job->m.n + 1;
}

static void rows_begin(jacobi *job, int target)
{
    MPI_Request *r = job->request[target];
    MPI_Irecv(row(job, target, 0), job->width, MPI_FLOAT, job->up, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(row(job, target, job->m.rows + 1), job->width, MPI_FLOAT, job->down, 0,
              MPI_COMM_WORLD, &r[1]);
    MPI_Isend(row(job, target, 1), job->width, MPI_FLOAT, job->up, 0, MPI_COMM_WORLD, &r[2]);
    MPI_Isend(row(job, target, job->m.rows), job->width, MPI_FLOAT, job->down, 1, MPI_COMM_WORLD,
              &r[3]);
}

static void rows_finish(jacobi *job, int target)
{
    MPI_Waitall(4, job->request[target], MPI_STATUSES_IGNORE);
}

static void rows_open(jacobi *job)
{
    for (int target = 0; target < 2; target++) {
        MPI_Request *r = job->request[target];
        MPI_Recv_init(row(job, target, 0), job->width, MPI_FLOAT, job->up, 1, MPI_COMM_WORLD,
                      &r[0]);
        MPI_Recv_init(row(job, target, job->m.rows + 1), job->width, MPI_FLOAT, job->down, 0,
                      MPI_COMM_WORLD, &r[1]);
        MPI_Send_init(row(job, target, 1), job->width, MPI_FLOAT, job->up, 0, MPI_COMM_WORLD,
                      &r[2]);
        MPI_Send_init(row(job, target, job->m.rows), job->width, MPI_FLOAT, job->down, 1,
                      MPI_COMM_WORLD, &r[3]);
    }
}

static void rows_start(jacobi *job, int target)
{
    MPI_Startall(4, job->request[target]);
}

static void rows_close(jacobi *job)
{
    for (int i = 0; i < 8; i++) {
        MPI_Request_free(&job->request[i / 4][i % 4]);
    }
}

static void pack(jacobi *job, int target)
{
    size_t bytes = (size_t)job->width * sizeof(float);
    memcpy(job->out, row(job, target, 1), bytes);
    memcpy(job->out + job->width, row(job, target, job->m.rows), bytes);
}

/* The peer's first row comes below my last, its last above my first. */
static void unpack(jacobi *job, int target)
{
    size_t bytes = (size_t)job->width * sizeof(float);
    memcpy(row(job, target, job->m.rows + 1), job->in, bytes);
    memcpy(row(job, target, 0), job->in + job->width, bytes);
}

static void packed_begin(jacobi *job, int target)
{
    MPI_Irecv(job->in, 2 * job->width, MPI_FLOAT, job->up, 0, MPI_COMM_WORLD, &job->request[0][0]);
    pack(job, target);
    MPI_Isend(job->out, 2 * job->width, MPI_FLOAT, job->up, 0, MPI_COMM_WORLD, &job->request[0][1]);
}

static void packed_finish(jacobi *job, int target)
{
    MPI_Waitall(2, job->request[0], MPI_STATUSES_IGNORE);
    unpack(job, target);
}

static void packed_open(jacobi *job)
{
    MPI_Recv_init(job->in, 2 * job->width, MPI_FLOAT, job->up, 0, MPI_COMM_WORLD,
                  &job->request[0][0]);
    MPI_Send_init(job->out, 2 * job->width, MPI_FLOAT, job->up, 0, MPI_COMM_WORLD,
                  &job->request[0][1]);
}

static void packed_start(jacobi *job, int target)
{
    pack(job, target);
    MPI_Startall(2, job->request[0]);
}

static void packed_close(jacobi *job)
{
    MPI_Request_free(&job->request[0][0]);
    MPI_Request_free(&job->request[0][1]);
}

/* Two edges to one rank match in their order: up then down is sent, below then above received. */
static void neighbor_arguments(const jacobi *job, int counts[2], int out[2], int in[2])
{
    int n = (int)job->m.n, rows = (int)job->m.rows;
    counts[0] = counts[1] = job->width;
    out[0] = n + 1;
    out[1] = rows * n + 1;
    in[0] = (rows + 1) * n + 1;
    in[1] = 1;
}

static void neighbor_begin(jacobi *job, int target)
{
    int counts[2], out[2], in[2];
    neighbor_arguments(job, counts, out, in);
    MPI_Neighbor_alltoallv(job->a[target], counts, out, MPI_FLOAT, job->a[target], counts, in,
                           MPI_FLOAT, job->graph);
}

/* The arguments must live until finish; they are the same for every step. */
static void ineighbor_begin(jacobi *job, int target)
{
    static int counts[2], out[2], in[2];
    neighbor_arguments(job, counts, out, in);
    MPI_Ineighbor_alltoallv(job->a[target], counts, out, MPI_FLOAT, job->a[target], counts, in,
                            MPI_FLOAT, job->graph, &job->request[target][0]);
}

static void ineighbor_finish(jacobi *job, int target)
{
    MPI_Wait(&job->request[target][0], MPI_STATUS_IGNORE);
}

static const jacobi_way ways[] = {
    {"nonblocking", false, nothing, rows_begin, rows_finish, nothing},
    {"nonblocking-overlap", true, nothing, rows_begin, rows_finish, nothing},
    {"persistent", false, rows_open, rows_start, rows_finish, rows_close},
    {"persistent-overlap", true, rows_open, rows_start, rows_finish, rows_close},
    {"packed", false, nothing, packed_begin, packed_finish, nothing},
    {"packed-overlap", true, nothing, packed_begin, packed_finish, nothing},
    {"packed-persistent", false, packed_open, packed_start, packed_finish, packed_close},
    {"packed-persistent-overlap", true, packed_open, packed_start, packed_finish, packed_close},
    {"neighbor", false, nothing, neighbor_begin, nothing_to_finish, nothing},
    {"ineighbor-overlap", true, nothing, ineighbor_begin, ineighbor_finish, nothing},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static void run_steps(jacobi *job, const jacobi_way *way, long first, long count)
{
    const long n = job->m.n, rows = job->m.rows;
    for (long step = first; step < first + count; step++) {
        const float *a = job->a[step % 2];
        int target = (int)((step + 1) % 2);
        float *an = job->a[target];
        if (!way->overlap) {
            jacobi_relax(a, an, n, 1, n - 1, 1, rows + 1);
            way->begin(job, target);
            way->finish(job, target);
            continue;
        }
        jacobi_relax(a, an, n, 1, n - 1, 1, 2);
        jacobi_relax(a, an, n, 1, n - 1, rows, rows + 1);
        way->begin(job, target);
        jacobi_relax(a, an, n, 1, n - 1, 2, rows);
        way->finish(job, target);
    }
}

/* Start values, the halo rows included. */
static void start(jacobi *job, const jacobi_way *way)
{
    mesh_start(&job->m, job->a[0]);
    mesh_start(&job->m, job->a[1]);
    way->begin(job, 0);
    way->finish(job, 0);
}

/* Digest of the whole mesh after the steps that are verified. */
static uint64_t digest(jacobi *job, const jacobi_way *way)
{
    int steps = mesh_verified_steps(job->m.n);
    start(job, way);
    run_steps(job, way, 0, steps);
    uint64_t sum = mesh_digest(&job->m, job->a[steps % 2]);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static double time_batch(jacobi *job, const jacobi_way *way, long count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = bench_now_ns();
    run_steps(job, way, 0, count);
    double ns = (bench_now_ns() - begin) / (double)count;
    MPI_Allreduce(MPI_IN_PLACE, &ns, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return ns;
}

static void run_case(jacobi *job)
{
    static bench_result result[WAYS];
    char test[32];
    uint64_t right = 0;
    snprintf(test, sizeof(test), "%ld", job->m.n);
    for (int batch = -1; batch < BENCH_BATCHES; batch++) {
        for (int w = 0; w < WAYS; w++) {
            bench_result *r = &result[w];
            ways[w].open(job);
            if (batch < 0) {
                *r = (bench_result){"jacobi", test, PEER, ways[w].name, "peer", 0, {0}, true, 0};
                r->digest = digest(job, &ways[w]);
                if (w == 0 && job->rank == 0) {
                    const mesh all = {job->m.n, 1, job->m.n - 2};
                    r->verified = mesh_verified(&all, r->digest);
                    right = r->digest;
                }
                r->verified = r->verified && (job->rank > 0 || r->digest == right);
            } else {
                double ns = time_batch(job, &ways[w], 2);
                r->ns[batch] =
                    time_batch(job, &ways[w], 1 + bench_repetitions(ns, bench_budget_ns()));
                r->batch_count = batch + 1;
            }
            ways[w].close(job);
        }
    }
    for (int w = 0; w < WAYS && job->rank == 0; w++) {
        bench_print(&result[w]);
    }
}

/* This rank's rows: the first ranks have one more if they don't divide evenly. */
static bool create(jacobi *job, int ranks, long n)
{
    long rows = (n - 2) / ranks, more = (n - 2) % ranks;
    job->m = (mesh){n, 1 + job->rank * rows + (job->rank < more ? job->rank : more),
                    rows + (job->rank < more)};
    job->width = (int)n - 2;
    size_t bytes = (size_t)(job->m.rows + 2) * (size_t)n * sizeof(float);
    job->a[0] = malloc(bytes);
    job->a[1] = malloc(bytes);
    job->out = malloc((size_t)n * 2 * sizeof(float));
    job->in = malloc((size_t)n * 2 * sizeof(float));
    return job->a[0] && job->a[1] && job->out && job->in;
}

static void destroy(jacobi *job)
{
    free(job->a[0]);
    free(job->a[1]);
    free(job->out);
    free(job->in);
}

int main(int argc, char **argv)
{
    jacobi job = {.rank = 0};
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2 || argc < 2) {
        fprintf(stderr, "usage: mpirun -n 2 %s N [N ...]\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bench_pin(job.rank);
    job.up = job.down = 1 - job.rank;
    int neighbor[2] = {job.up, job.down}, weight[2] = {1, 1};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, neighbor, weight, 2, neighbor, weight,
                                   MPI_INFO_NULL, 0, &job.graph);
    for (int i = 1; i < argc; i++) {
        if (!create(&job, ranks, atol(argv[i]))) {
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
        run_case(&job);
        destroy(&job);
    }
    MPI_Comm_free(&job.graph);
    MPI_Finalize();
    return 0;
}
