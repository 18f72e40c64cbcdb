// The same as with_peal.c, in C++17.
#include "part.h"

#include <peal/exchange.h>
#include <peal/mpi.h>

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

    // halo: begin
    peal_halo_desc desc = {};
    desc.size_bytes = sizeof(desc);
    desc.source = PEAL_HERE;
    desc.axis_count = 2;
    const int lo[] = {p.x0, p.y0}, hi[] = {p.x1, p.y1};
    for (int k = 0; k < 2; k++) {
        desc.lo[k] = lo[k];
        desc.hi[k] = hi[k];
        desc.field[0].width[k][0] = desc.field[0].width[k][1] = 1;
        desc.field[0].data[k] = p.u[k];
    }
    desc.periodic[0] = true;
    desc.field[0].bytes = p.bytes;
    peal_exchange *halo;
    peal_session *session = peal_session_from_mpi(cart);
    peal_exchange_create_desc(session, &desc, &halo);
    // halo: end
    double begin = MPI_Wtime();
    for (int step = 0; step < p.steps; step++, now = !now) {
        peal_exchange_start(halo, now, nullptr); // halo
        interior(&p, now);
        peal_exchange_wait(halo); // halo
        border(&p, now);
    }
    double seconds = MPI_Wtime() - begin;
    peal_exchange_destroy(halo);   // halo
    peal_session_destroy(session); // halo

    report(&p, now, seconds, cart);
    MPI_Finalize();
    return 0;
}
