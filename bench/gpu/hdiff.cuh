/* The problem of the GPU benchmark of horizontal diffusion for peers: arrays, one kernel a stage of
 * a step, the same arithmetic as in samples/hdiff, compiled without contraction. A kernel stores
 * the faces that somebody else needs a second time while it has them at hand: into a buffer for a
 * message, or, where an axis is not cut, into its own halo. So nothing is packed by itself.
 *
 * Sides are 0 west (x = 0), 1 east, 2 south (y = 0), 3 north. What leaves by side 0 arrives in the
 * halo at side 1 of whoever gets it. */
#ifndef PEAL_BENCH_GPU_HDIFF_CUH
#define PEAL_BENCH_GPU_HDIFF_CUH

#include "../bodies/hdiff.h"
#include "team.cuh"

enum { HDIFF_SIDES = 4, HDIFF_PAD = 16 /* doubles: rows begin at a cache line */ };

typedef enum hdiff_stage { HDIFF_LAP, HDIFF_FLX, HDIFF_FLY, HDIFF_FLUXES, HDIFF_OUT } hdiff_stage;

/* Arrays point at the part's first point, with a halo of one around in x and y. */
typedef struct hdiff_part {
    hdiff_patch patch;
    long x0, y0, pitch, plane;
    int n;
    double *in[2], *lap, *flx, *fly; /* step s reads in[s % 2] */
} hdiff_part;

/* Where a point of a face goes: to[i * along + z * level]; NULL: nowhere. */
typedef struct hdiff_face {
    double *to;
    long along, level;
} hdiff_face;

typedef struct hdiff_faces {
    hdiff_face side[HDIFF_SIDES];
} hdiff_faces;

/* How a kernel is cut: blocks of tx by ty points, each thread with so many levels. */
typedef struct hdiff_shape {
    int tx, ty, levels;
} hdiff_shape;

/* What a kernel reads and writes, by stage: lap: in -> to; flx, fly, both: in, a = lap -> to (and
 * other: fly); out: in, a = flx, b = fly -> to. */
typedef struct hdiff_call {
    const double *in, *a, *b;
    double *to, *other;
    long pitch, plane;
    int n;
} hdiff_call;

static __device__ inline double hdiff_limit(double flow, double slope)
{
    return flow * slope > 0.0 ? 0.0 : flow;
}

/* The value of a point; of both fluxes, that along x in [0] and that along y in [1]. */
template <int STAGE>
static __device__ inline void
hdiff_point(const double *__restrict__ in, const double *__restrict__ a,
            const double *__restrict__ b, long at, long pitch, double value[2])
{
    if (STAGE == HDIFF_LAP) {
        value[0] = -4.0 * in[at] + (in[at - 1] + in[at + 1] + in[at - pitch] + in[at + pitch]);
    }
    if (STAGE == HDIFF_FLX || STAGE == HDIFF_FLUXES) {
        value[0] = hdiff_limit(a[at + 1] - a[at], in[at + 1] - in[at]);
    }
    if (STAGE == HDIFF_FLY || STAGE == HDIFF_FLUXES) {
        value[STAGE == HDIFF_FLUXES] = hdiff_limit(a[at + pitch] - a[at], in[at + pitch] - in[at]);
    }
    if (STAGE == HDIFF_OUT) {
        const double gain = a[at] - a[at - 1] + (b[at] - b[at - pitch]);
        value[0] = in[at] - HDIFF_COEFF * gain;
    }
}

template <int STAGE> static __device__ inline double hdiff_of_side(const double value[2], int side)
{
    return value[STAGE == HDIFF_FLUXES && side >= 2];
}

/* All points of the part, and its faces once more. */
template <int STAGE>
static __global__ void hdiff_whole(const double *__restrict__ in, const double *__restrict__ a,
                                   const double *__restrict__ b, double *__restrict__ to,
                                   double *__restrict__ other, const hdiff_call c,
                                   const hdiff_faces faces, int levels)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= c.n || y >= c.n) {
        return;
    }
    const bool is_at[HDIFF_SIDES] = {x == 0, x == c.n - 1, y == 0, y == c.n - 1};
    const bool rim = is_at[0] || is_at[1] || is_at[2] || is_at[3];
#pragma unroll 4
    for (int i = 0; i < levels; i++) {
        const long z = (long)blockIdx.z * levels + i, at = z * c.plane + y * c.pitch + x;
        double value[2];
        hdiff_point<STAGE>(in, a, b, at, c.pitch, value);
        to[at] = value[0];
        if (STAGE == HDIFF_FLUXES) {
            other[at] = value[1];
        }
        if (rim) {
            for (int side = 0; side < HDIFF_SIDES; side++) {
                const hdiff_face face = faces.side[side];
                if (is_at[side] && face.to) {
                    face.to[(side < 2 ? y : x) * face.along + z * face.level] =
                        hdiff_of_side<STAGE>(value, side);
                }
            }
        }
    }
}

/* The faces alone, before and beside the rest: blockIdx.y is the side. */
template <int STAGE>
static __global__ void hdiff_border(const hdiff_call c, const hdiff_faces faces)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, side = blockIdx.y;
    const hdiff_face face = faces.side[side];
    if (i >= c.n * HDIFF_LEVELS || !face.to) {
        return;
    }
    const int along = i % c.n, z = i / c.n, end = side % 2 ? c.n - 1 : 0;
    const int x = side < 2 ? end : along, y = side < 2 ? along : end;
    double value[2];
    hdiff_point<STAGE>(c.in, c.a, c.b, z * c.plane + y * c.pitch + x, c.pitch, value);
    face.to[along * face.along + z * face.level] = hdiff_of_side<STAGE>(value, side);
}

/* Messages of n points a level, into the halo. */
typedef struct hdiff_arrived {
    const double *from[HDIFF_SIDES];
} hdiff_arrived;

static __global__ void hdiff_unpack(const hdiff_arrived arrived, const hdiff_faces halo, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const hdiff_face face = halo.side[blockIdx.y];
    if (i < n * HDIFF_LEVELS && face.to) {
        face.to[i % n * face.along + i / n * face.level] = arrived.from[blockIdx.y][i];
    }
}

static inline hdiff_call hdiff_call_of(const hdiff_part *p, hdiff_stage stage, int from)
{
    hdiff_call c = {p->in[from], p->lap, NULL, NULL, NULL, p->pitch, p->plane, p->n};
    c.to = stage == HDIFF_LAP   ? p->lap
           : stage == HDIFF_FLY ? p->fly
           : stage == HDIFF_OUT ? p->in[1 - from]
                                : p->flx;
    c.other = stage == HDIFF_FLUXES ? p->fly : NULL;
    if (stage == HDIFF_OUT) {
        c.a = p->flx;
        c.b = p->fly;
    }
    return c;
}

/* Whether somebody needs what a stage has at this side. */
static inline bool hdiff_leaves(hdiff_stage stage, int side)
{
    static const bool leaves[][HDIFF_SIDES] = {{true, false, true, false},
                                               {false, true, false, false},
                                               {false, false, false, true},
                                               {false, true, false, true},
                                               {true, true, true, true}};
    return leaves[stage][side];
}

static inline bool hdiff_is_cut(const hdiff_part *p, int side)
{
    return (side < 2 ? p->patch.rx : p->patch.ry) > 1;
}

/* The halo at the other end, where what leaves by this side arrives. */
static inline hdiff_face hdiff_halo(const hdiff_part *p, const hdiff_call *c, int side)
{
    double *array = c->other && side >= 2 ? c->other : c->to;
    const long across = side < 2 ? 1 : p->pitch;
    return {array + (side % 2 ? -1 : p->n) * across, side < 2 ? p->pitch : 1, p->plane};
}

template <int STAGE>
static inline void hdiff_launch(const hdiff_call *c, const hdiff_faces *faces,
                                const hdiff_shape *shape, cudaStream_t stream)
{
    const dim3 block((unsigned)shape->tx, (unsigned)shape->ty);
    const dim3 grid((unsigned)((c->n + shape->tx - 1) / shape->tx),
                    (unsigned)((c->n + shape->ty - 1) / shape->ty),
                    (unsigned)(HDIFF_LEVELS / shape->levels));
    hdiff_whole<STAGE>
        <<<grid, block, 0, stream>>>(c->in, c->a, c->b, c->to, c->other, *c, *faces, shape->levels);
    GPU(cudaGetLastError());
}

static inline dim3 hdiff_face_grid(int n)
{
    return dim3((unsigned)((n * HDIFF_LEVELS + 255) / 256), HDIFF_SIDES);
}

static inline void hdiff_enqueue(const hdiff_call *c, hdiff_stage stage, const hdiff_faces *faces,
                                 const hdiff_shape *shape, cudaStream_t stream)
{
    switch (stage) {
    case HDIFF_LAP:
        hdiff_launch<HDIFF_LAP>(c, faces, shape, stream);
        break;
    case HDIFF_FLX:
        hdiff_launch<HDIFF_FLX>(c, faces, shape, stream);
        break;
    case HDIFF_FLY:
        hdiff_launch<HDIFF_FLY>(c, faces, shape, stream);
        break;
    case HDIFF_FLUXES:
        hdiff_launch<HDIFF_FLUXES>(c, faces, shape, stream);
        break;
    case HDIFF_OUT:
        hdiff_launch<HDIFF_OUT>(c, faces, shape, stream);
        break;
    }
}

/* Of the stages after which something is sent. */
static inline void hdiff_enqueue_border(const hdiff_call *c, hdiff_stage stage,
                                        const hdiff_faces *faces, cudaStream_t stream)
{
    const dim3 grid = hdiff_face_grid(c->n);
    if (stage == HDIFF_LAP) {
        hdiff_border<HDIFF_LAP><<<grid, 256, 0, stream>>>(*c, *faces);
    } else if (stage == HDIFF_FLUXES) {
        hdiff_border<HDIFF_FLUXES><<<grid, 256, 0, stream>>>(*c, *faces);
    } else {
        hdiff_border<HDIFF_OUT><<<grid, 256, 0, stream>>>(*c, *faces);
    }
    GPU(cudaGetLastError());
}

/* ---- memory, start values, digests ---- */

static inline double *hdiff_array(const hdiff_part *p)
{
    double *memory;
    const size_t bytes = (size_t)(p->plane * HDIFF_LEVELS) * sizeof(double);
    GPU(cudaMalloc((void **)&memory, bytes));
    GPU(cudaMemset(memory, 0, bytes));
    return memory + p->pitch + HDIFF_PAD;
}

static inline hdiff_part hdiff_open(long n, int ranks, int rank)
{
    hdiff_part p = {};
    p.patch = hdiff_split(n, ranks);
    p.n = (int)n;
    p.x0 = rank % p.patch.rx * n;
    p.y0 = rank / p.patch.rx * n;
    p.pitch = n + 2 * HDIFF_PAD;
    p.plane = p.pitch * (n + 2);
    for (double **array : {&p.in[0], &p.in[1], &p.lap, &p.flx, &p.fly}) {
        *array = hdiff_array(&p);
    }
    return p;
}

/* Halo points get what their owners have. */
static __global__ void hdiff_set(const hdiff_part p)
{
    const long nx = p.n * p.patch.rx, ny = p.n * p.patch.ry, wide = p.n + 2;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < wide * wide * HDIFF_LEVELS;
         i += (long)gridDim.x * blockDim.x) {
        const long x = i % wide - 1, y = i / wide % wide - 1, z = i / wide / wide;
        p.in[0][z * p.plane + y * p.pitch + x] =
            hdiff_start((p.x0 + x + nx) % nx, (p.y0 + y + ny) % ny, z);
    }
}

static __global__ void hdiff_digest_kernel(const hdiff_part p, const double *in, hdiff_sums *sums)
{
    const long nx = p.n * p.patch.rx, ny = p.n * p.patch.ry;
    hdiff_sums mine = {0, 0, 0, 0};
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < (long)p.n * p.n * HDIFF_LEVELS;
         i += (long)gridDim.x * blockDim.x) {
        const long x = i % p.n, y = i / p.n % p.n, z = i / p.n / p.n;
        const double value = in[z * p.plane + y * p.pitch + x];
        const uint64_t number = (uint64_t)(p.x0 + x + nx * (p.y0 + y + ny * z));
        const uint64_t h = hdiff_hash(number, (uint64_t)__double_as_longlong(value));
        mine.low += h & 0xffffffffu;
        mine.high += h >> 32;
        mine.checked_low += hdiff_is_checked(z) ? h & 0xffffffffu : 0;
        mine.checked_high += hdiff_is_checked(z) ? h >> 32 : 0;
    }
    atomicAdd((unsigned long long *)&sums->low, mine.low);
    atomicAdd((unsigned long long *)&sums->high, mine.high);
    atomicAdd((unsigned long long *)&sums->checked_low, mine.checked_low);
    atomicAdd((unsigned long long *)&sums->checked_high, mine.checked_high);
}

/* Of this rank's points. */
static inline hdiff_sums hdiff_digest(const hdiff_part *p, const double *in)
{
    hdiff_sums *on_gpu, sums;
    GPU(cudaMalloc((void **)&on_gpu, sizeof(*on_gpu)));
    GPU(cudaMemset(on_gpu, 0, sizeof(*on_gpu)));
    hdiff_digest_kernel<<<528, 256>>>(*p, in, on_gpu);
    GPU(cudaMemcpy(&sums, on_gpu, sizeof(sums), cudaMemcpyDeviceToHost));
    GPU(cudaFree(on_gpu));
    return sums;
}

static inline void hdiff_begin(const hdiff_part *p)
{
    hdiff_set<<<528, 256>>>(*p);
    GPU(cudaGetLastError());
    GPU(cudaDeviceSynchronize());
}

#endif
