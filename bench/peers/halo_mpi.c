/* The halo exchange of bench/README.md on MPI: 2 ranks split along x, doubles, ghost 1, periodic.
 *
 * Every way to pack (halo_box.h; `datatype` leaves it to MPI) is combined with every way to send:
 * non-blocking, persistent, neighbour collectives and persistent neighbour collectives. Each is
 * verified cell by cell, then timed; variants take turns batch by batch.
 *
 * usage: halo_mpi N FIELDS [N FIELDS ...] */
#include "halo_box.h"

#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define PEER "openmpi"
#else
#define PEER "mpich"
#endif

typedef struct halo_job {
    halo_box box;
    int peer;
    MPI_Comm graph; /* one neighbour: the peer */
    MPI_Datatype type_out, type_in;
    void *out, *in;
    int count;
    MPI_Request request[2];
} halo_job;

typedef struct halo_style {
    const char *name;
    bool images_first; /* the peer's cells need my own images */
    bool in_place;     /* MPI packs */
    bool faces;        /* n * n cells a face, not (n + 2)^2 */
    void (*pack)(halo_box *box);
    void (*unpack)(halo_box *box);
} halo_style;

typedef struct halo_transport {
    const char *name;
    void (*open)(halo_job *job);
    void (*begin)(halo_job *job);
    void (*finish)(halo_job *job);
    void (*close)(halo_job *job);
} halo_transport;

static void no_pack(halo_box *box)
{
    (void)box;
}

static const halo_style styles[] = {
    {"regions", false, false, false, regions_pack, regions_unpack},
    {"planes", true, false, false, planes_pack, planes_unpack},
    {"wrapped", false, false, true, wrapped_pack, wrapped_unpack},
    {"datatype", true, true, false, no_pack, no_pack},
};

static void no_job(halo_job *job)
{
    (void)job;
}

static void nonblocking_begin(halo_job *job)
{
    MPI_Irecv(job->in, job->count, job->type_in, job->peer, 0, MPI_COMM_WORLD, &job->request[0]);
    MPI_Isend(job->out, job->count, job->type_out, job->peer, 0, MPI_COMM_WORLD, &job->request[1]);
}

static void both_finish(halo_job *job)
{
    MPI_Waitall(2, job->request, MPI_STATUSES_IGNORE);
}

static void persistent_open(halo_job *job)
{
    MPI_Recv_init(job->in, job->count, job->type_in, job->peer, 0, MPI_COMM_WORLD,
                  &job->request[0]);
    MPI_Send_init(job->out, job->count, job->type_out, job->peer, 0, MPI_COMM_WORLD,
                  &job->request[1]);
}

static void persistent_begin(halo_job *job)
{
    MPI_Startall(2, job->request);
}

static void persistent_close(halo_job *job)
{
    MPI_Request_free(&job->request[0]);
    MPI_Request_free(&job->request[1]);
}

/* Packed messages go by alltoallv, datatypes by alltoallw. */
static void neighbor_begin(halo_job *job)
{
    static const int zero = 0;
    static const MPI_Aint zero_bytes = 0;
    if (job->type_out == MPI_DOUBLE) {
        MPI_Neighbor_alltoallv(job->out, &job->count, &zero, MPI_DOUBLE, job->in, &job->count,
                               &zero, MPI_DOUBLE, job->graph);
    } else {
        MPI_Neighbor_alltoallw(job->out, &job->count, &zero_bytes, &job->type_out, job->in,
                               &job->count, &zero_bytes, &job->type_in, job->graph);
    }
}

static void ineighbor_begin(halo_job *job)
{
    static const int zero = 0;
    static const MPI_Aint zero_bytes = 0;
    if (job->type_out == MPI_DOUBLE) {
        MPI_Ineighbor_alltoallv(job->out, &job->count, &zero, MPI_DOUBLE, job->in, &job->count,
                                &zero, MPI_DOUBLE, job->graph, &job->request[0]);
    } else {
        MPI_Ineighbor_alltoallw(job->out, &job->count, &zero_bytes, &job->type_out, job->in,
                                &job->count, &zero_bytes, &job->type_in, job->graph,
                                &job->request[0]);
    }
}

static void one_finish(halo_job *job)
{
    MPI_Wait(&job->request[0], MPI_STATUS_IGNORE);
}

#if MPI_VERSION >= 4
#define NEIGHBOR_INIT(name) MPI_Neighbor_##name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define NEIGHBOR_INIT(name) MPIX_Neighbor_##name##_init
#endif

#ifdef NEIGHBOR_INIT
static void neighbor_init_open(halo_job *job)
{
    static const int zero = 0;
    static const MPI_Aint zero_bytes = 0;
    if (job->type_out == MPI_DOUBLE) {
        NEIGHBOR_INIT(alltoallv)
        (job->out, &job->count, &zero, MPI_DOUBLE, job->in, &job->count, &zero, MPI_DOUBLE,
         job->graph, MPI_INFO_NULL, &job->request[0]);
    } else {
        NEIGHBOR_INIT(alltoallw)
        (job->out, &job->count, &zero_bytes, &job->type_out, job->in, &job->count, &zero_bytes,
         &job->type_in, job->graph, MPI_INFO_NULL, &job->request[0]);
    }
}

static void one_start(halo_job *job)
{
    MPI_Start(&job->request[0]);
}

static void one_close(halo_job *job)
{
    MPI_Request_free(&job->request[0]);
}
#endif

/* `none` sends nothing: what packing, unpacking and the own images alone cost. */
static const halo_transport transports[] = {
    {"none", no_job, no_job, no_job, no_job},
    {"nonblocking", no_job, nonblocking_begin, both_finish, no_job},
    {"persistent", persistent_open, persistent_begin, both_finish, persistent_close},
    {"neighbor", no_job, neighbor_begin, no_job, no_job},
    {"ineighbor", no_job, ineighbor_begin, one_finish, no_job},
#ifdef NEIGHBOR_INIT
    {"neighbor-persistent", neighbor_init_open, one_start, one_finish, one_close},
#endif
};

enum {
    STYLES = sizeof(styles) / sizeof(styles[0]),
    TRANSPORTS = sizeof(transports) / sizeof(transports[0])
};

static void exchange(halo_job *job, const halo_style *style, const halo_transport *transport)
{
    if (style->images_first) {
        own_images(&job->box);
    }
    style->pack(&job->box);
    transport->begin(job);
    if (!style->images_first) {
        own_images(&job->box);
    }
    transport->finish(job);
    style->unpack(&job->box);
}

/* The x planes of all fields as one type: at x = first, then at x = second. */
static MPI_Datatype plane_pair(const halo_box *box, int first, int second)
{
    const int m = box->n + 2, length[2] = {1, 1};
    const int sizes[4] = {box->fields, m, m, m}, part[4] = {box->fields, m, m, 1};
    const int start[2][4] = {{0, 0, 0, first}, {0, 0, 0, second}};
    const MPI_Aint offset[2] = {0, 0};
    MPI_Datatype plane[2], pair;
    for (int i = 0; i < 2; i++) {
        MPI_Type_create_subarray(4, sizes, part, start[i], MPI_ORDER_C, MPI_DOUBLE, &plane[i]);
    }
    MPI_Type_create_struct(2, length, offset, plane, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_free(&plane[0]);
    MPI_Type_free(&plane[1]);
    return pair;
}

static void open_variant(halo_job *job, const halo_style *style, const halo_transport *transport)
{
    halo_box *box = &job->box;
    if (style->in_place) {
        job->type_out = plane_pair(box, 1, box->n);
        job->type_in = plane_pair(box, box->n + 1, 0);
        job->count = 1;
        job->out = job->in = box->u;
    } else {
        int face = style->faces ? box->n * box->n : (int)box->plane;
        job->type_out = job->type_in = MPI_DOUBLE;
        job->count = 2 * box->fields * face;
        job->out = box->out;
        job->in = box->in;
    }
    transport->open(job);
}

static void close_variant(halo_job *job, const halo_style *style, const halo_transport *transport)
{
    transport->close(job);
    if (style->in_place) {
        MPI_Type_free(&job->type_out);
        MPI_Type_free(&job->type_in);
    }
}

static bool verify(halo_job *job, const halo_style *style, const halo_transport *transport)
{
    halo_fill(&job->box);
    exchange(job, style, transport);
    int good = halo_check(&job->box);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return good;
}

/* Nanoseconds of one exchange, of the slower rank. */
static double time_batch(halo_job *job, const halo_style *style, const halo_transport *transport,
                         long count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now_ns();
    for (long i = 0; i < count; i++) {
        exchange(job, style, transport);
    }
    double ns = (bench_now_ns() - start) / (double)count;
    MPI_Allreduce(MPI_IN_PLACE, &ns, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return ns;
}

static void run_case(halo_job *job)
{
    static bench_result result[STYLES][TRANSPORTS];
    static char variant[STYLES][TRANSPORTS][48];
    char test[32];
    snprintf(test, sizeof(test), "%dx%d", job->box.n, job->box.fields);
    for (int batch = -1; batch < BENCH_BATCHES; batch++) {
        for (int i = 0; i < STYLES * TRANSPORTS; i++) {
            int s = i / TRANSPORTS, t = i % TRANSPORTS;
            const halo_style *style = &styles[s];
            const halo_transport *transport = &transports[t];
            if (t == 0 && style->in_place) {
                continue;
            }
            bench_result *r = &result[s][t];
            open_variant(job, style, transport);
            if (batch < 0) {
                snprintf(variant[s][t], sizeof(variant[s][t]), "%s-%s", transport->name,
                         style->name);
                *r = (bench_result){"halo", test, PEER, variant[s][t], t ? "peer" : "floor", 0,
                                    {0},    true, 0};
                r->verified = t == 0 || verify(job, style, transport);
            } else {
                double ns = time_batch(job, style, transport, 10);
                r->ns[batch] =
                    time_batch(job, style, transport, bench_repetitions(ns, bench_budget_ns()));
                r->batch_count = batch + 1;
            }
            close_variant(job, style, transport);
        }
    }
    for (int i = 0; i < STYLES * TRANSPORTS && job->box.rank == 0; i++) {
        const bench_result *r = &result[i / TRANSPORTS][i % TRANSPORTS];
        if (r->batch_count > 0) {
            bench_print(r);
        }
    }
}

int main(int argc, char **argv)
{
    halo_job job = {.peer = 0};
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2 || argc < 3 || argc % 2 == 0) {
        fprintf(stderr, "usage: mpirun -n 2 %s N FIELDS [N FIELDS ...]\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bench_pin(rank);
    job.peer = 1 - rank;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &job.peer, MPI_UNWEIGHTED, 1, &job.peer,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &job.graph);
    for (int i = 1; i < argc; i += 2) {
        if (!halo_create(&job.box, rank, atoi(argv[i]), atoi(argv[i + 1]))) {
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
        run_case(&job);
        halo_destroy(&job.box);
    }
    MPI_Comm_free(&job.graph);
    MPI_Finalize();
    return 0;
}
