/* What both programs share: a part of a grid that is periodic along x, in two arrays with a halo of
 * one point, and its update, which looks at all eight neighbours of a point. */
#ifndef PART_H
#define PART_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct part {
    int nx, ny, steps;  /* of the whole grid */
    int x0, x1, y0, y1; /* the points that this process owns */
    int width, height;  /* of the arrays, halo included */
    double *u[2];       /* the present, and the future, in turn */
    long long bytes;    /* of each */
} part;

static inline int part_number(int argc, char **argv, int which, int otherwise)
{
    return argc > which ? atoi(argv[which]) : otherwise;
}

/* at, dims: this process's place among the processes. */
static inline part part_create(int argc, char **argv, const int at[2], const int dims[2])
{
    part p;
    p.nx = part_number(argc, argv, 1, 400);
    p.ny = part_number(argc, argv, 2, 300);
    p.steps = part_number(argc, argv, 3, 500);
    p.x0 = (int)((int64_t)p.nx * at[0] / dims[0]);
    p.x1 = (int)((int64_t)p.nx * (at[0] + 1) / dims[0]);
    p.y0 = (int)((int64_t)p.ny * at[1] / dims[1]);
    p.y1 = (int)((int64_t)p.ny * (at[1] + 1) / dims[1]);
    p.width = p.x1 - p.x0 + 2;
    p.height = p.y1 - p.y0 + 2;
    p.bytes = (long long)p.width * p.height * (long long)sizeof(double);
    for (int i = 0; i < 2; i++) {
        p.u[i] = (double *)calloc((size_t)(p.bytes / (long long)sizeof(double)), sizeof(double));
        for (int y = p.y0; y < p.y1; y++)
            for (int x = p.x0; x < p.x1; x++)
                p.u[i][(y - p.y0 + 1) * p.width + x - p.x0 + 1] = (x * 7 + y * 13) % 64;
    }
    return p;
}

/* Points [x0, x1) x [y0, y1) of the part, counted from its first own one. */
static inline void advance(part *p, int now, int x0, int x1, int y0, int y1)
{
    for (int y = y0; y < y1; y++) {
        const double *u = p->u[now] + (y + 1) * p->width + 1;
        const double *below = u - p->width, *above = u + p->width;
        double *v = p->u[!now] + (y + 1) * p->width + 1;
        for (int x = x0; x < x1; x++)
            v[x] = 0.5 * u[x] + 0.1 * (u[x - 1] + u[x + 1] + below[x] + above[x]) +
                   0.025 * (below[x - 1] + below[x + 1] + above[x - 1] + above[x + 1]);
    }
}

/* Points that need no halo, and the others. */
static inline void interior(part *p, int now)
{
    advance(p, now, 1, p->x1 - p->x0 - 1, 1, p->y1 - p->y0 - 1);
}

static inline void border(part *p, int now)
{
    int nx = p->x1 - p->x0, ny = p->y1 - p->y0;
    advance(p, now, 0, nx, 0, 1);
    advance(p, now, 0, nx, ny > 1 ? ny - 1 : ny, ny);
    advance(p, now, 0, 1, 1, ny - 1);
    advance(p, now, nx > 1 ? nx - 1 : nx, nx, 1, ny - 1);
}

/* Prints a sum over the bits of all points, which no cut changes, and what a step took. */
static inline void report(const part *p, int now, double seconds, MPI_Comm comm)
{
    uint64_t sum = 0, all = 0;
    double longest = 0;
    int rank;
    for (int y = p->y0; y < p->y1; y++)
        for (int x = p->x0; x < p->x1; x++) {
            uint64_t bits;
            memcpy(&bits, &p->u[now][(y - p->y0 + 1) * p->width + x - p->x0 + 1], sizeof(bits));
            sum += (bits ^ ((uint64_t)y * (uint64_t)p->nx + (uint64_t)x)) *
                   UINT64_C(0x9e3779b97f4a7c15);
        }
    MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, comm);
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        printf("%d x %d points, %d steps: digest %016llx\n%.2f us a step\n", p->nx, p->ny, p->steps,
               (unsigned long long)all, 1e6 * longest / p->steps);
    free(p->u[0]);
    free(p->u[1]);
}

#endif
