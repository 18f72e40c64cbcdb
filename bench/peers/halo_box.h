/* The arrays of the MPI halo benchmark and three ways to pack their halos, all by public knowledge
 * of how MPI programs do it. Two ranks along x, periodic: the neighbour on both sides is the other
 * rank, and along y and z a rank is its own neighbour.
 *
 *   regions  26 regions, 18 of them to the peer, as a general program does
 *   planes   first the own images along y and z, then two whole planes: fewer, larger loops
 *   wrapped  two bare faces; the receiver repeats their rims along y and z: the fewest bytes */
#ifndef PEAL_BENCH_HALO_BOX_H
#define PEAL_BENCH_HALO_BOX_H

#include "../measure.h"

#include <stddef.h>

typedef struct halo_box {
    int rank;
    int n;      /* owned points along each axis */
    int fields; /* arrays of (n + 2)^3 doubles, one after the other, x contiguous */
    ptrdiff_t pitch, plane, volume;
    double *u;
    double *out, *in; /* message buffers */
} halo_box;

typedef struct halo_region {
    int lo[3], hi[3];
} halo_region;

/* Cells that the neighbour in direction d needs of me. */
static inline halo_region halo_border(const halo_box *box, const int d[3])
{
    halo_region r;
    for (int k = 0; k < 3; k++) {
        r.lo[k] = d[k] > 0 ? box->n : 1;
        r.hi[k] = d[k] < 0 ? 2 : box->n + 1;
    }
    return r;
}

/* Halo cells that the neighbour in direction d owns. */
static inline halo_region halo_ghost(const halo_box *box, const int d[3])
{
    halo_region r;
    for (int k = 0; k < 3; k++) {
        r.lo[k] = d[k] < 0 ? 0 : d[k] > 0 ? box->n + 1 : 1;
        r.hi[k] = d[k] < 0 ? 1 : d[k] > 0 ? box->n + 2 : box->n + 1;
    }
    return r;
}

static inline double *halo_pack(const halo_box *box, const double *u, halo_region r, double *out)
{
    for (int z = r.lo[2]; z < r.hi[2]; z++) {
        const double *row = u + z * box->plane + r.lo[1] * box->pitch + r.lo[0];
        if (r.hi[0] - r.lo[0] == 1) {
            for (int y = r.lo[1]; y < r.hi[1]; y++, row += box->pitch) {
                *out++ = *row;
            }
            continue;
        }
        for (int y = r.lo[1]; y < r.hi[1]; y++, row += box->pitch) {
            for (int x = 0; x < r.hi[0] - r.lo[0]; x++) {
                *out++ = row[x];
            }
        }
    }
    return out;
}

static inline const double *halo_unpack(const halo_box *box, double *u, halo_region r,
                                        const double *in)
{
    for (int z = r.lo[2]; z < r.hi[2]; z++) {
        double *row = u + z * box->plane + r.lo[1] * box->pitch + r.lo[0];
        if (r.hi[0] - r.lo[0] == 1) {
            for (int y = r.lo[1]; y < r.hi[1]; y++, row += box->pitch) {
                *row = *in++;
            }
            continue;
        }
        for (int y = r.lo[1]; y < r.hi[1]; y++, row += box->pitch) {
            for (int x = 0; x < r.hi[0] - r.lo[0]; x++) {
                row[x] = *in++;
            }
        }
    }
    return in;
}

/* The 18 regions with x in {-1, 1}; the receiver takes them in the sender's order. */
static inline void regions_pack(halo_box *box)
{
    double *out = box->out;
    for (int f = 0; f < box->fields; f++) {
        for (int i = 0; i < 18; i++) {
            const int d[3] = {i % 2 ? 1 : -1, i / 2 % 3 - 1, i / 6 - 1};
            out = halo_pack(box, box->u + f * box->volume, halo_border(box, d), out);
        }
    }
}

static inline void regions_unpack(halo_box *box)
{
    const double *in = box->in;
    for (int f = 0; f < box->fields; f++) {
        for (int i = 0; i < 18; i++) {
            const int d[3] = {i % 2 ? -1 : 1, 1 - i / 2 % 3, 1 - i / 6};
            in = halo_unpack(box, box->u + f * box->volume, halo_ghost(box, d), in);
        }
    }
}

/* Own images along y, then whole planes along z: the eight regions with x = 0. The slabs take stale
 * cells at both ends of x along, which every unpack below overwrites afterwards. */
static inline void own_images(halo_box *box)
{
    const int n = box->n;
    const size_t row = (size_t)n * sizeof(double);
    for (int f = 0; f < box->fields; f++) {
        double *u = box->u + f * box->volume + 1;
        for (int z = 1; z <= n; z++) {
            double *plane = u + z * box->plane;
            memcpy(plane, plane + n * box->pitch, row);
            memcpy(plane + (n + 1) * box->pitch, plane + box->pitch, row);
        }
        size_t slab = (size_t)((n + 1) * box->pitch + n) * sizeof(double);
        memcpy(u, u + n * box->plane, slab);
        memcpy(u + (n + 1) * box->plane, u + box->plane, slab);
    }
}

static inline void planes_pack(halo_box *box)
{
    double *left = box->out;
    for (int f = 0; f < box->fields; f++) {
        const double *u = box->u + f * box->volume;
        double *right = left + box->plane;
        for (ptrdiff_t i = 0; i < box->plane; i++) {
            left[i] = u[i * box->pitch + 1];
            right[i] = u[i * box->pitch + box->n];
        }
        left = right + box->plane;
    }
}

static inline void planes_unpack(halo_box *box)
{
    const double *left = box->in;
    for (int f = 0; f < box->fields; f++) {
        double *u = box->u + f * box->volume;
        const double *right = left + box->plane;
        for (ptrdiff_t i = 0; i < box->plane; i++) {
            u[i * box->pitch + box->n + 1] = left[i];
            u[i * box->pitch] = right[i];
        }
        left = right + box->plane;
    }
}

static inline void wrapped_pack(halo_box *box)
{
    const int n = box->n;
    double *left = box->out;
    for (int f = 0; f < box->fields; f++) {
        double *right = left + (ptrdiff_t)n * n;
        for (int z = 1; z <= n; z++) {
            const double *row = box->u + f * box->volume + z * box->plane + box->pitch;
            for (int y = 0; y < n; y++, row += box->pitch) {
                *left++ = row[1];
                *right++ = row[n];
            }
        }
        left = right;
    }
}

static inline void wrapped_unpack(halo_box *box)
{
    const int n = box->n;
    const double *left = box->in;
    for (int f = 0; f < box->fields; f++) {
        const double *right = left + (ptrdiff_t)n * n;
        for (int z = 0; z <= n + 1; z++) {
            ptrdiff_t from = (ptrdiff_t)(z == 0 ? n - 1 : z == n + 1 ? 0 : z - 1) * n;
            double *row = box->u + f * box->volume + z * box->plane;
            row[n + 1] = left[from + n - 1];
            row[0] = right[from + n - 1];
            row += box->pitch;
            for (int y = 0; y < n; y++, row += box->pitch) {
                row[n + 1] = left[from + y];
                row[0] = right[from + y];
            }
            row[n + 1] = left[from];
            row[0] = right[from];
        }
        left = right + (ptrdiff_t)n * n;
    }
}

/* What field f holds at a global point. */
static inline double halo_value(const halo_box *box, int f, int x, int y, int z)
{
    int n = box->n;
    x = (x + 2 * n) % (2 * n);
    y = (y + n) % n;
    z = (z + n) % n;
    return f * 1e9 + ((double)z * n + y) * 2 * n + x + 1;
}

/* Owned cells get their value, halo cells a value that no cell has. */
static inline void halo_fill(halo_box *box)
{
    const int n = box->n;
    double *u = box->u;
    for (int f = 0; f < box->fields; f++) {
        for (int z = 0; z < n + 2; z++) {
            for (int y = 0; y < n + 2; y++) {
                for (int x = 0; x < n + 2; x++) {
                    bool own = x >= 1 && x <= n && y >= 1 && y <= n && z >= 1 && z <= n;
                    *u++ = own ? halo_value(box, f, box->rank * n + x - 1, y - 1, z - 1) : -1;
                }
            }
        }
    }
}

/* Whether every cell, halo and corners included, holds its owner's value. */
static inline bool halo_check(const halo_box *box)
{
    const int n = box->n;
    const double *u = box->u;
    for (int f = 0; f < box->fields; f++) {
        for (int z = 0; z < n + 2; z++) {
            for (int y = 0; y < n + 2; y++) {
                for (int x = 0; x < n + 2; x++) {
                    if (*u++ != halo_value(box, f, box->rank * n + x - 1, y - 1, z - 1)) {
                        return false;
                    }
                }
            }
        }
    }
    return true;
}

static inline bool halo_create(halo_box *box, int rank, int n, int fields)
{
    *box = (halo_box){.rank = rank, .n = n, .fields = fields, .pitch = n + 2};
    box->plane = box->pitch * (n + 2);
    box->volume = box->plane * (n + 2);
    size_t message = 2 * (size_t)box->plane * (size_t)fields * sizeof(double);
    box->u =
        aligned_alloc(64, ((size_t)box->volume * (size_t)fields * sizeof(double) + 63) / 64 * 64);
    box->out = aligned_alloc(64, (message + 63) / 64 * 64);
    box->in = aligned_alloc(64, (message + 63) / 64 * 64);
    return box->u && box->out && box->in;
}

static inline void halo_destroy(halo_box *box)
{
    free(box->u);
    free(box->out);
    free(box->in);
}

#endif
