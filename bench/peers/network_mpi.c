/* The peer of bench/network.py on MPI: COUNT messages of BYTES there, then as many back, each
 * received before it is answered. `network_mpi BYTES COUNT ROUNDS` under mpirun -n 2 prints
 * nanoseconds one way, the median of rounds. */
#include "../measure.h"

#include <mpi.h>

enum { MOST = 64 };

static void fill(unsigned char *data, int bytes, int round)
{
    for (int i = 0; i < bytes; i += 509)
        data[i] = (unsigned char)(round + i / 509);
}

static int is_filled(const unsigned char *data, int bytes, int round)
{
    for (int i = 0; i < bytes; i += 509)
        if (data[i] != (unsigned char)(round + i / 509))
            return 0;
    return 1;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static unsigned char *out[MOST], *in[MOST];
static MPI_Request request[2 * MOST];

static void send_all(int bytes, int count, int other, int round)
{
    for (int k = 0; k < count; k++) {
        fill(out[k], bytes, round + k);
        MPI_Isend(out[k], bytes, MPI_BYTE, other, k, MPI_COMM_WORLD, &request[MOST + k]);
    }
    MPI_Waitall(count, request + MOST, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int bytes = atoi(argv[1]), count = atoi(argv[2]), rounds = atoi(argv[3]), other = 1 - rank;
    double *ns = calloc((size_t)rounds, sizeof(*ns));
    for (int k = 0; k < count; k++) {
        out[k] = calloc(1, (size_t)bytes);
        in[k] = calloc(1, (size_t)bytes);
    }
    bench_pin(rank);
    for (int i = -rounds / 10; i < rounds; i++) {
        for (int k = 0; k < count; k++)
            MPI_Irecv(in[k], bytes, MPI_BYTE, other, k, MPI_COMM_WORLD, &request[k]);
        double begin = bench_now_ns();
        if (rank == 0)
            send_all(bytes, count, other, i);
        MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
        if (rank == 1)
            send_all(bytes, count, other, i);
        if (i >= 0)
            ns[i] = (bench_now_ns() - begin) / 2;
        for (int k = 0; k < count; k++)
            wrong += !is_filled(in[k], bytes, i + k);
    }
    qsort(ns, (size_t)rounds, sizeof(*ns), by_value);
    if (rank == 0)
        printf("%.1f\n", ns[rounds / 2]);
    for (int k = 0; k < count; k++) {
        free(out[k]);
        free(in[k]);
    }
    free(ns);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
