/* The same program with MPI alone: persistent messages of derived types, to and from eight
 * neighbours, of each of the two arrays. */
#include "part.h"

/* halo: begin */
enum { NEIGHBOURS = 8 };

typedef struct halo {
    MPI_Datatype type[2 * NEIGHBOURS];
    MPI_Request request[2][2 * NEIGHBOURS]; /* by array: receives, then sends */
} halo;

/* Where the points of a direction begin along an axis: owned ones, or those of the halo. */
static int first_of(int direction, int points, int of_halo)
{
    return direction < 0 ? !of_halo : direction > 0 ? points + of_halo : 1;
}

static void halo_create(halo *h, const part *p, MPI_Comm cart, const int at[2], const int dims[2])
{
    int whole[2] = {p->height, p->width}, count = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            if (!dx && !dy)
                continue;
            int there[2] = {at[0] + dx, at[1] + dy}, rank = MPI_PROC_NULL;
            if (there[1] >= 0 && there[1] < dims[1]) /* x is periodic: MPI_Cart_rank wraps it */
                MPI_Cart_rank(cart, there, &rank);
            int size[2] = {dy ? 1 : p->height - 2, dx ? 1 : p->width - 2};
            for (int sends = 0; sends < 2; sends++) {
                int first[2] = {first_of(dy, p->height - 2, !sends),
                                first_of(dx, p->width - 2, !sends)};
                MPI_Datatype *type = &h->type[count + sends * NEIGHBOURS];
                MPI_Type_create_subarray(2, whole, size, first, MPI_ORDER_C, MPI_DOUBLE, type);
                MPI_Type_commit(type);
                int way = sends ? (dy + 1) * 3 + dx + 1 : (1 - dy) * 3 + 1 - dx;
                for (int i = 0; i < 2; i++) {
                    MPI_Request *request = &h->request[i][count + sends * NEIGHBOURS];
                    if (sends)
                        MPI_Send_init(p->u[i], 1, *type, rank, way, cart, request);
                    else
                        MPI_Recv_init(p->u[i], 1, *type, rank, way, cart, request);
                }
            }
            count++;
        }
}

static void halo_destroy(halo *h)
{
    for (int i = 0; i < 2 * NEIGHBOURS; i++) {
        MPI_Type_free(&h->type[i]);
        MPI_Request_free(&h->request[0][i]);
        MPI_Request_free(&h->request[1][i]);
    }
}
/* halo: end */

int main(int argc, char **argv)
{
    int size, rank, now = 0, at[2], dims[2] = {0, 0};
    const int periods[2] = {1, 0};
    MPI_Comm cart;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    MPI_Comm_rank(cart, &rank);
    MPI_Cart_coords(cart, rank, 2, at);
    part p = part_create(argc, argv, at, dims);

    halo h;                              /* halo */
    halo_create(&h, &p, cart, at, dims); /* halo */
    double begin = MPI_Wtime();
    for (int step = 0; step < p.steps; step++, now = !now) {
        MPI_Startall(2 * NEIGHBOURS, h.request[now]); /* halo */
        interior(&p, now);
        MPI_Waitall(2 * NEIGHBOURS, h.request[now], MPI_STATUSES_IGNORE); /* halo */
        border(&p, now);
    }
    double seconds = MPI_Wtime() - begin;
    halo_destroy(&h); /* halo */

    report(&p, now, seconds, cart);
    MPI_Finalize();
    return 0;
}
