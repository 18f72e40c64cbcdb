/* The GPU halo benchmark on NCCL: one message a neighbour in a group of sends and receives, beside
 * the interior task on another stream; on streams, and captured in a graph of some rounds. One
 * thread a GPU.
 *
 * usage: gpu_halo_nccl GPUS [CASE...], a case being "ring BYTES INTERIOR_US" or "box POINTS" */
#include "gpu_halo_rank.cuh"
#include "gpu_nccl.cuh"

typedef struct job {
    halo_one one; /* first */
    ncclComm_t comm;
    double *out, *in;
} job;

typedef struct member {
    halo_streams on;
    ncclComm_t comm;
} member;

typedef struct arguments {
    char **cases;
    ncclUniqueId id;
} arguments;

/* One message a neighbour, of packed pieces. */
static void exchange_packed(job *j)
{
    const halo_rank *r = &j->one.r;
    cudaStream_t stream = j->one.on.stream;
    halo_pack(r, j->out, stream);
    NCCL(ncclGroupStart());
    for (int i = 0; i < r->out.message_count; i++) {
        const halo_message *m = &r->out.message[i];
        NCCL(ncclSend(j->out + m->first, (size_t)m->points, ncclDouble, m->peer, j->comm, stream));
    }
    for (int i = 0; i < r->in.message_count; i++) {
        const halo_message *m = &r->in.message[i];
        NCCL(ncclRecv(j->in + m->first, (size_t)m->points, ncclDouble, m->peer, j->comm, stream));
    }
    NCCL(ncclGroupEnd());
    halo_unpack(r, j->in, stream);
}

/* One message a piece, from field to field; both ranks list them in the same order. */
static void exchange_alone(job *j)
{
    const halo_rank *r = &j->one.r;
    const halo_pieces *out = &r->out.pieces, *in = &r->in.pieces;
    NCCL(ncclGroupStart());
    for (int k = 0; k < out->count; k++) {
        NCCL(ncclSend(r->field + out->piece[k].from, (size_t)halo_points(&out->piece[k]),
                      ncclDouble, out->piece[k].peer, j->comm, j->one.on.stream));
    }
    for (int k = 0; k < in->count; k++) {
        NCCL(ncclRecv(r->field + in->piece[k].to, (size_t)halo_points(&in->piece[k]), ncclDouble,
                      in->piece[k].peer, j->comm, j->one.on.stream));
    }
    NCCL(ncclGroupEnd());
}

static void one_round(halo_stage *stage, int way)
{
    job *j = (job *)stage;
    (void)way;
    halo_one_begin(&j->one);
    if (j->one.r.problem.alone) {
        exchange_alone(j);
    } else {
        exchange_packed(j);
    }
    halo_one_end(&j->one);
}

static cudaGraphExec_t record(halo_stage *stage, int way)
{
    return halo_one_record(stage, way, one_round);
}

static halo_stage *open_case(const team *t, const halo_problem *problem, void *user)
{
    const member *m = (const member *)user;
    job *j = (job *)calloc(1, sizeof(*j));
    void *out, *in;
    if (!j) {
        _Exit(GPU_EXIT);
    }
    halo_one_open(&j->one, problem, t->rank, &m->on);
    j->comm = m->comm;
    GPU(cudaMalloc((void **)&j->one.r.field, (size_t)j->one.r.field_points * sizeof(double)));
    NCCL(ncclMemAlloc(&out, (size_t)j->one.r.out.points * sizeof(double)));
    NCCL(ncclMemAlloc(&in, (size_t)j->one.r.in.points * sizeof(double)));
    j->out = (double *)out;
    j->in = (double *)in;
    one_round(&j->one.stage, 0); /* connections are made by the first exchange, not by a capture */
    one_round(&j->one.stage, 0);
    halo_one_finish(&j->one.stage);
    team_barrier(t);
    return &j->one.stage;
}

static const halo_way ways[] = {{"streams", false}, {"graph", true}};

static void work(team *t, void *argument)
{
    const arguments *a = (const arguments *)argument;
    member m;
    nccl_say_version(t);
    NCCL(ncclCommInitRank(&m.comm, t->size, a->id, t->rank));
    m.on = halo_open_streams();
    const halo_peer peer = {"nccl",
                            ways,
                            sizeof(ways) / sizeof(ways[0]),
                            t->size,
                            &m,
                            open_case,
                            halo_one_advance,
                            one_round,
                            record,
                            halo_one_finish,
                            halo_one_fill,
                            halo_one_wrong};
    halo_serve(t, &peer, a->cases);
    team_barrier(t);
}

int main(int argc, char **argv)
{
    arguments a = {argv + 2, {}};
    if (argc < 2) {
        fprintf(stderr, "usage: %s GPUS [CASE...], e.g. 2 \"ring 4096 20\" \"box 64\"\n", argv[0]);
        return 2;
    }
    setenv("NCCL_NVLS_ENABLE", "0", 1); /* no multicast */
    NCCL(ncclGetUniqueId(&a.id));
    return team_run(atoi(argv[1]), false, work, &a);
}
