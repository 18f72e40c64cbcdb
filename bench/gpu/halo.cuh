/* The problem of the GPU halo benchmark: a periodic field of doubles, cut over a grid of GPUs, with
 * a halo; the pieces that go to each neighbour (all directions, corners too), kernels that fill,
 * pack, unpack and check, and the interior task, which spins for a while.
 *
 * A ring is a field of one axis whose halo is as wide as half of a part; a box has halo 1 in three
 * axes. Pieces to one rank make one message; pieces to oneself are copied by the packing kernel. A
 * ring's exchange alone sends its faces from where they lie to where they belong: nothing packs. */
#ifndef PEAL_BENCH_GPU_HALO_CUH
#define PEAL_BENCH_GPU_HALO_CUH

#include "team.cuh"

enum { HALO_PIECES = 26, HALO_ALIGN = 32, HALO_THREADS = 256, HALO_SPIN_BLOCKS = 64 };

typedef struct halo_problem {
    long n[3];     /* points of a rank, by axis; x lies closest in memory */
    long ghost[3]; /* halo on either side */
    int ranks[3];
    double interior_us;
    bool alone; /* the exchange without packing and unpacking */
    char name[48];
} halo_problem;

/* Copies of boxes: begin and strides on either side, extents. */
typedef struct halo_piece {
    long from, from_y, from_z, to, to_y, to_z;
    int extent[3];
    int local; /* `to` is in the field, not in the packed buffer */
    int peer;
} halo_piece;

typedef struct halo_pieces {
    halo_piece piece[HALO_PIECES];
    int count;
    long largest; /* points */
} halo_pieces;

typedef struct halo_message {
    int peer;
    long first, points; /* of the packed buffer, the same on both sides */
} halo_message;

/* What one rank sends or receives. */
typedef struct halo_side {
    halo_pieces pieces;
    halo_message message[GPU_MAX];
    int message_count;
    long points; /* of the packed buffer */
} halo_side;

typedef struct halo_rank {
    halo_problem problem;
    int rank;
    halo_side out, in;
    long field_points;
    double *field;
    bool advances; /* own points change after every round: for checks */
} halo_rank;

static inline long halo_stride(const halo_problem *p, int axis)
{
    long stride = 1;
    for (int i = 0; i < axis; i++) {
        stride *= p->n[i] + 2 * p->ghost[i];
    }
    return stride;
}

static inline void halo_place(const halo_problem *p, int rank, int at[3])
{
    at[0] = rank % p->ranks[0];
    at[1] = rank / p->ranks[0] % p->ranks[1];
    at[2] = rank / (p->ranks[0] * p->ranks[1]);
}

/* Direction 0 to 26 (13: none) as steps of -1, 0, 1. */
static inline void halo_steps(int direction, int step[3])
{
    step[0] = direction % 3 - 1;
    step[1] = direction / 3 % 3 - 1;
    step[2] = direction / 9 - 1;
}

/* The rank in a direction, or -1: no halo there. */
static inline int halo_neighbour(const halo_problem *p, int rank, int direction)
{
    int at[3], step[3], to[3];
    halo_place(p, rank, at);
    halo_steps(direction, step);
    for (int i = 0; i < 3; i++) {
        if (step[i] != 0 && p->ghost[i] == 0) {
            return -1;
        }
        to[i] = (at[i] + step[i] + p->ranks[i]) % p->ranks[i];
    }
    return direction == 13 ? -1 : to[0] + p->ranks[0] * (to[1] + p->ranks[1] * to[2]);
}

/* Extents of the piece in a direction, where it begins in the sender's and the receiver's field. */
static inline void halo_corners(const halo_problem *p, int direction, int extent[3], long *from,
                                long *to)
{
    int step[3];
    *from = *to = 0;
    halo_steps(direction, step);
    for (int i = 0; i < 3; i++) {
        const long n = p->n[i], g = p->ghost[i], stride = halo_stride(p, i);
        extent[i] = (int)(step[i] ? g : n);
        *from += stride * (step[i] > 0 ? n : g);
        *to += stride * (step[i] > 0 ? 0 : step[i] < 0 ? g + n : g);
    }
}

/* Adds the piece of a direction: packing on the sender's side, unpacking on the receiver's. */
static inline void halo_add(const halo_problem *p, halo_side *side, int direction, bool sends,
                            int peer, bool local)
{
    halo_piece *piece = &side->pieces.piece[side->pieces.count++];
    long from, to, sy = halo_stride(p, 1), sz = halo_stride(p, 2);
    int *e = piece->extent;
    halo_corners(p, direction, e, &from, &to);
    const long points = (long)e[0] * e[1] * e[2], py = e[0], pz = (long)e[0] * e[1];
    piece->local = local;
    piece->peer = peer;
    piece->from = sends ? from : side->points;
    piece->from_y = sends ? sy : py;
    piece->from_z = sends ? sz : pz;
    piece->to = sends && !local ? side->points : to;
    piece->to_y = sends && !local ? py : sy;
    piece->to_z = sends && !local ? pz : sz;
    side->points += local ? 0 : points;
    side->pieces.largest = points > side->pieces.largest ? points : side->pieces.largest;
}

/* One message a pair of ranks, its pieces in the order of directions; peers in the order of ranks.
 */
static inline void halo_plan_side(const halo_problem *p, int rank, bool sends, halo_side *side)
{
    const int ranks = p->ranks[0] * p->ranks[1] * p->ranks[2];
    memset(side, 0, sizeof(*side));
    for (int peer = 0; peer < ranks; peer++) {
        const int source = sends ? rank : peer, target = sends ? peer : rank;
        const long first = side->points;
        for (int direction = 0; direction < 27; direction++) {
            if (halo_neighbour(p, source, direction) == target && (sends || peer != rank)) {
                halo_add(p, side, direction, sends, peer, peer == rank);
            }
        }
        if (side->points > first) {
            side->message[side->message_count++] = {peer, first, side->points - first};
            side->points = (side->points + HALO_ALIGN - 1) / HALO_ALIGN * HALO_ALIGN;
        }
    }
}

static inline void halo_plan(halo_rank *r, const halo_problem *problem, int rank)
{
    r->problem = *problem;
    r->rank = rank;
    halo_plan_side(problem, rank, true, &r->out);
    halo_plan_side(problem, rank, false, &r->in);
    r->field_points = halo_stride(problem, 2) * (problem->n[2] + 2 * problem->ghost[2]);
}

static inline long halo_points(const halo_piece *piece)
{
    return (long)piece->extent[0] * piece->extent[1] * piece->extent[2];
}

/* Where a piece that `rank` sends lands in its receiver's field: both list the pieces between them
 * in the same order. *turn: which of them it is. */
static inline long halo_landing(const halo_rank *r, int piece, int *turn)
{
    halo_side in;
    const int peer = r->out.pieces.piece[piece].peer;
    int before = 0;
    for (int k = 0; k < piece; k++) {
        before += r->out.pieces.piece[k].peer == peer;
    }
    *turn = before;
    halo_plan_side(&r->problem, peer, false, &in);
    for (int k = 0; k < in.pieces.count; k++) {
        if (in.pieces.piece[k].peer == r->rank && before-- == 0) {
            return in.pieces.piece[k].to;
        }
    }
    return -1;
}

/* Case words: "ring BYTES INTERIOR_US", "ring BYTES alone" or "box POINTS". */
static inline bool halo_parse(int count, char **word, int gpus, halo_problem *p)
{
    memset(p, 0, sizeof(*p));
    if (count == 3 && !strcmp(word[0], "ring")) {
        const long face = atol(word[1]) / (long)sizeof(double);
        const bool alone = !strcmp(word[2], "alone");
        *p = {{2 * face, 1, 1}, {face, 0, 0}, {gpus, 1, 1}, alone ? 0 : atof(word[2]), alone, ""};
        snprintf(p->name, sizeof(p->name), "ring%d/%s/%s", gpus, word[1], word[2]);
        return face > 0 && (gpus > 1 || !alone);
    }
    if (count == 2 && !strcmp(word[0], "box")) {
        const long n = atol(word[1]);
        *p = {{n, n, n}, {1, 1, 1}, {gpus > 1 ? 2 : 1, gpus > 2 ? 2 : 1, gpus > 4 ? 2 : 1},
              0,         false,     ""};
        snprintf(p->name, sizeof(p->name), "box%d/%s", gpus, word[1]);
        return n > 0;
    }
    return false;
}

/* A grid's share of a piece; blockIdx.x and threadIdx.x are those of the piece. */
static __device__ inline void halo_copy_piece(const halo_piece &p, double *to, const double *from)
{
    const long points = (long)p.extent[0] * p.extent[1] * p.extent[2];
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < points;
         i += (long)gridDim.x * blockDim.x) {
        const unsigned row = (unsigned)(i / p.extent[0]),
                       x = (unsigned)(i - (long)row * p.extent[0]);
        const unsigned z = row / (unsigned)p.extent[1], y = row - z * (unsigned)p.extent[1];
        to[p.to + x + y * p.to_y + z * p.to_z] = from[p.from + x + y * p.from_y + z * p.from_z];
    }
}

/* blockIdx.y is the piece. */
static __global__ void halo_copy(halo_pieces pieces, double *to, double *field, const double *from)
{
    const halo_piece &p = pieces.piece[blockIdx.y];
    halo_copy_piece(p, p.local ? field : to, from);
}

static inline dim3 halo_grid(const halo_pieces *pieces)
{
    long blocks = (pieces->largest + HALO_THREADS * 2 - 1) / (HALO_THREADS * 2);
    return dim3((unsigned)(blocks > 264 ? 264 : blocks), (unsigned)pieces->count);
}

static inline void halo_pack(const halo_rank *r, double *packed, cudaStream_t stream)
{
    halo_copy<<<halo_grid(&r->out.pieces), HALO_THREADS, 0, stream>>>(r->out.pieces, packed,
                                                                      r->field, r->field);
}

static inline void halo_unpack(const halo_rank *r, const double *packed, cudaStream_t stream)
{
    if (r->in.pieces.count > 0) {
        halo_copy<<<halo_grid(&r->in.pieces), HALO_THREADS, 0, stream>>>(r->in.pieces, r->field,
                                                                         r->field, packed);
    }
}

static __global__ void halo_spin(long long cycles)
{
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

/* The interior task, by the clock that an H200 runs at under load. */
static inline void halo_interior(const halo_problem *p, cudaStream_t stream)
{
    const double mhz = 1980;
    halo_spin<<<HALO_SPIN_BLOCKS, 128, 0, stream>>>((long long)(p->interior_us * mhz));
}

/* What the point of the whole field holds in a run with this salt. */
static __device__ inline double halo_value(uint64_t number, uint64_t salt)
{
    uint64_t h = (number + 1) * 0x9e3779b97f4a7c15u + salt * 0xd6e8feb86659fd93u;
    h ^= h >> 29;
    return (double)(h >> 12);
}

/* The number of a point of a rank's part in the whole field; halo points wrap around. */
static __device__ inline uint64_t halo_number(const halo_problem &p, int rank, long i, bool *own)
{
    const int at[3] = {rank % p.ranks[0], rank / p.ranks[0] % p.ranks[1],
                       rank / (p.ranks[0] * p.ranks[1])};
    uint64_t number = 0, stride = 1;
    *own = true;
    for (int axis = 0; axis < 3; axis++) {
        const long wide = p.n[axis] + 2 * p.ghost[axis], whole = p.n[axis] * p.ranks[axis];
        const long local = i % wide - p.ghost[axis];
        i /= wide;
        *own = *own && local >= 0 && local < p.n[axis];
        number += (uint64_t)((local + at[axis] * p.n[axis] + whole) % whole) * stride;
        stride *= (uint64_t)whole;
    }
    return number;
}

static __global__ void halo_fill(halo_problem p, int rank, double *field, long points,
                                 uint64_t salt)
{
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < points;
         i += (long)gridDim.x * blockDim.x) {
        bool own;
        const uint64_t number = halo_number(p, rank, i, &own);
        field[i] = own ? halo_value(number, salt) : -1;
    }
}

/* Every round of a check sends other values: old ones in the halo are found. */
static __global__ void halo_advance_kernel(halo_problem p, int rank, double *field, long points)
{
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < points;
         i += (long)gridDim.x * blockDim.x) {
        bool own;
        halo_number(p, rank, i, &own);
        field[i] += own ? 1 : 0;
    }
}

static inline void halo_advance(const halo_rank *r, cudaStream_t stream)
{
    if (r->advances) {
        halo_advance_kernel<<<264, 256, 0, stream>>>(r->problem, r->rank, r->field,
                                                     r->field_points);
        GPU(cudaGetLastError());
    }
}

static __global__ void halo_check(halo_problem p, int rank, const double *field, long points,
                                  uint64_t salt, double rounds, unsigned long long *wrong)
{
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < points;
         i += (long)gridDim.x * blockDim.x) {
        bool own;
        const double value = halo_value(halo_number(p, rank, i, &own), salt);
        if (field[i] != value + (own ? rounds : rounds - 1)) {
            atomicAdd(wrong, 1ull);
        }
    }
}

static inline void halo_start(const halo_rank *r, uint64_t salt)
{
    halo_fill<<<264, 256>>>(r->problem, r->rank, r->field, r->field_points, salt);
    GPU(cudaDeviceSynchronize());
}

/* How many points are wrong after so many rounds with advances: the last round sent what the one
 * before it had left. */
static inline uint64_t halo_wrong(const halo_rank *r, uint64_t salt, long rounds)
{
    unsigned long long *counter, wrong;
    GPU(cudaMalloc((void **)&counter, sizeof(*counter)));
    GPU(cudaMemset(counter, 0, sizeof(*counter)));
    halo_check<<<264, 256>>>(r->problem, r->rank, r->field, r->field_points, salt, (double)rounds,
                             counter);
    GPU(cudaMemcpy(&wrong, counter, sizeof(wrong), cudaMemcpyDeviceToHost));
    GPU(cudaFree(counter));
    return wrong;
}

#endif
