/* The problem of the GPU Jacobi benchmark: the mesh of samples/jacobi2d, rows split over the ranks,
 * a row of halo above and below. The same body for all peers: float4, each thread marches down its
 * columns with three rows in registers; blocks and bands are tuned for each size. A rank's border
 * rows may also be stored where a neighbour (or, on one GPU, the rank itself) has its halo.
 *
 * Arithmetic is that of bench/bodies/jacobi.h, compiled without contraction: digests agree. */
#ifndef PEAL_BENCH_GPU_JACOBI_CUH
#define PEAL_BENCH_GPU_JACOBI_CUH

#include "team.cuh"

enum { JACOBI_CHUNK = 20, JACOBI_VERIFIED = 100 }; /* steps; even: arrays alternate */

typedef struct jacobi_part {
    long n, first, rows; /* mesh rows [first, first + rows) are this rank's */
    float *a[2];         /* rows + 2 rows of n; step s reads a[s % 2] */
    double *sum;         /* by step of a chunk: the squared change */
} jacobi_part;

/* How a sweep is cut: blocks of tx quads of columns and ty bands. */
typedef struct jacobi_shape {
    int tx, ty, band;
} jacobi_shape;

/* Rows of a sweep: `bands` bands of `band` rows, `step` rows from one to the next, to `end`. */
typedef struct jacobi_sweep {
    const float *a;
    float *an;
    long n;
    int begin, end, band, step, bands, last; /* last: the rank's last row */
    float *above, *below; /* copies of row 1 and of row `last` go there; or NULL */
    double *sum;          /* NULL: no norm */
} jacobi_sweep;

static inline void jacobi_split(jacobi_part *p, long n, int ranks, int rank)
{
    const long rows = (n - 2) / ranks, more = (n - 2) % ranks;
    p->n = n;
    p->first = 1 + rank * rows + (rank < more ? rank : more);
    p->rows = rows + (rank < more);
}

static __device__ inline float jacobi_mean(float left, float right, float up, float down)
{
    return 0.25f * (left + right + up + down);
}

static __device__ inline double jacobi_square(float v, float old)
{
    const float d = v - old;
    return (double)d * d;
}

/* Adds up over the block, then to *sum. */
static __device__ inline void jacobi_add(double value, double *sum)
{
    __shared__ double part[32];
    const int thread = threadIdx.y * blockDim.x + threadIdx.x;
    const int warps = (blockDim.x * blockDim.y + 31) / 32;
    for (int lane = 16; lane > 0; lane /= 2) {
        value += __shfl_down_sync(~0u, value, lane);
    }
    if (thread % 32 == 0) {
        part[thread / 32] = value;
    }
    __syncthreads();
    if (thread < 32) {
        value = thread < warps ? part[thread] : 0;
        for (int lane = 16; lane > 0; lane /= 2) {
            value += __shfl_down_sync(~0u, value, lane);
        }
        if (thread == 0) {
            atomicAdd(sum, value);
        }
    }
}

/* One row of four columns; quads at the ends keep the walls. All lanes of a warp take part. */
static __device__ inline float4 jacobi_quad(const float *row, long quads, long quad, float4 up,
                                            float4 mid, float4 down)
{
    float left = __shfl_up_sync(~0u, mid.w, 1), right = __shfl_down_sync(~0u, mid.x, 1);
    if (threadIdx.x % 32 == 0 && quad > 0) {
        left = row[quad * 4 - 1];
    }
    if (threadIdx.x % 32 == 31 && quad + 1 < quads) {
        right = row[quad * 4 + 4];
    }
    float4 v;
    v.x = quad == 0 ? mid.x : jacobi_mean(left, mid.y, up.x, down.x);
    v.y = jacobi_mean(mid.x, mid.z, up.y, down.y);
    v.z = jacobi_mean(mid.y, mid.w, up.z, down.z);
    v.w = quad + 1 == quads ? mid.w : jacobi_mean(mid.z, right, up.w, down.w);
    return v;
}

/* The sweep of a thread. Loads are plain: a peer may have stored the halo in this launch. */
template <bool NORM> static __device__ inline void jacobi_march(const jacobi_sweep &s)
{
    const long quads = s.n / 4, quad = (long)blockIdx.x * blockDim.x + threadIdx.x;
    const int band = blockIdx.y * blockDim.y + threadIdx.y;
    const int first = s.begin + band * s.step;
    const int end = band >= s.bands ? 0 : first + s.band < s.end ? first + s.band : s.end;
    double sum = 0;
    if (first < end) {
        const float4 *a = (const float4 *)s.a + quad;
        float4 up = a[(first - 1) * quads], mid = a[first * quads], down = a[(first + 1) * quads];
        float4 next = first + 1 < end ? a[(first + 2) * quads] : down;
        for (int row = first; row < end; row++) { /* loads run two rows ahead of their use */
            const float4 far = row + 2 < end ? a[(row + 3) * quads] : next;
            const float4 v = jacobi_quad(s.a + row * s.n, quads, quad, up, mid, down);
            ((float4 *)s.an)[row * quads + quad] = v;
            if (row == 1 && s.above) {
                ((float4 *)s.above)[quad] = v;
            }
            if (row == s.last && s.below) {
                ((float4 *)s.below)[quad] = v;
            }
            if (NORM) {
                sum += jacobi_square(v.x, mid.x) + jacobi_square(v.y, mid.y) +
                       jacobi_square(v.z, mid.z) + jacobi_square(v.w, mid.w);
            }
            up = mid;
            mid = down;
            down = next;
            next = far;
        }
    }
    if (NORM) {
        jacobi_add(sum, s.sum);
    }
}

template <bool NORM> static __global__ void jacobi_relax_kernel(jacobi_sweep s)
{
    jacobi_march<NORM>(s);
}

static inline dim3 jacobi_block(const jacobi_shape *shape)
{
    return dim3((unsigned)shape->tx, (unsigned)shape->ty);
}

static inline dim3 jacobi_grid(const jacobi_sweep *s, const jacobi_shape *shape)
{
    return dim3((unsigned)(s->n / 4 / shape->tx),
                (unsigned)((s->bands + shape->ty - 1) / shape->ty));
}

/* Rows [begin, end) of the step from a[from]; sum or NULL; copies of border rows or NULL. */
static inline jacobi_sweep jacobi_rows(const jacobi_part *p, const jacobi_shape *shape, int from,
                                       long begin, long end, double *sum)
{
    const int bands = (int)((end - begin + shape->band - 1) / shape->band);
    return {p->a[from],  p->a[1 - from], p->n,         (int)begin, (int)end, shape->band,
            shape->band, bands,          (int)p->rows, NULL,       NULL,     sum};
}

static inline void jacobi_relax(const jacobi_sweep *s, const jacobi_shape *shape,
                                cudaStream_t stream)
{
    if (s->sum) {
        jacobi_relax_kernel<true><<<jacobi_grid(s, shape), jacobi_block(shape), 0, stream>>>(*s);
    } else {
        jacobi_relax_kernel<false><<<jacobi_grid(s, shape), jacobi_block(shape), 0, stream>>>(*s);
    }
    GPU(cudaGetLastError());
}

/* The first and the last row alone. */
static inline void jacobi_relax_border(const jacobi_part *p, int from, double *sum,
                                       cudaStream_t stream)
{
    const jacobi_shape shape = {p->n / 4 < 128 ? (int)(p->n / 4) : 128, 1, 1};
    jacobi_sweep s = jacobi_rows(p, &shape, from, 1, p->rows + 1, sum);
    s.step = p->rows > 1 ? (int)p->rows - 1 : 1;
    s.bands = p->rows > 1 ? 2 : 1;
    jacobi_relax(&s, &shape, stream);
}

/* Microseconds of a chunk of sweeps of this shape; not looked at closely if far beyond the best. */
static inline double jacobi_time_shape(const jacobi_part *p, const jacobi_shape *shape, bool norm,
                                       double best_us, cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    double best = INFINITY;
    GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int step = 0; step < JACOBI_CHUNK; step++) {
        jacobi_sweep s = jacobi_rows(p, shape, step % 2, 1, p->rows + 1, norm ? p->sum : NULL);
        jacobi_relax(&s, shape, stream);
    }
    GPU(cudaStreamEndCapture(stream, &graph));
    GPU(cudaGraphInstantiate(&replay, graph, 0));
    GPU(cudaGraphUpload(replay, stream));
    for (int i = 0; i < 4 && (i == 0 || best < 1.3 * best_us + 50); i++) {
        GPU(cudaStreamSynchronize(stream));
        const double start = gpu_now_us();
        GPU(cudaGraphLaunch(replay, stream));
        GPU(cudaStreamSynchronize(stream));
        best = fmin(best, gpu_now_us() - start);
    }
    GPU(cudaGraphExecDestroy(replay));
    GPU(cudaGraphDestroy(graph));
    return best;
}

/* The fastest shape for this part's rows, by trial. */
static inline jacobi_shape jacobi_tune(const jacobi_part *p, bool norm, cudaStream_t stream)
{
    static const int blocks[][2] = {{32, 1},  {32, 4},  {32, 8},  {64, 1},  {64, 4}, {64, 8},
                                    {64, 16}, {128, 2}, {128, 8}, {256, 1}, {256, 4}};
    jacobi_shape best = {32, 1, 1};
    double best_us = INFINITY;
    for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
        for (int band = 1; band <= 64 && band <= p->rows; band *= 2) {
            const jacobi_shape shape = {blocks[b][0], blocks[b][1], band};
            if (p->n / 4 % shape.tx != 0) {
                continue;
            }
            const double us = jacobi_time_shape(p, &shape, norm, best_us, stream);
            best = us < best_us ? shape : best;
            best_us = fmin(best_us, us);
        }
    }
    return best;
}

static __global__ void jacobi_set(float *a, long n, long rows, const float *wall)
{
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < n * (rows + 2);
         i += (long)gridDim.x * blockDim.x) {
        const long x = i % n;
        a[i] = x == 0 || x == n - 1 ? wall[i / n] : 0.0f;
    }
}

/* Start values of both arrays, halo rows included. */
static inline void jacobi_start(const jacobi_part *p)
{
    const size_t count = (size_t)p->rows + 2;
    float *wall = (float *)malloc(count * sizeof(float)), *on_gpu;
    if (!wall) {
        _Exit(GPU_EXIT);
    }
    for (size_t y = 0; y < count; y++) { /* mesh row 0 repeats row n - 2, row n - 1 repeats row 1 */
        long row = p->first - 1 + (long)y;
        wall[y] = (float)sin(2.0 * 3.14159265358979323846 * (double)row / (double)(p->n - 1));
    }
    GPU(cudaMalloc((void **)&on_gpu, count * sizeof(float)));
    GPU(cudaMemcpy(on_gpu, wall, count * sizeof(float), cudaMemcpyHostToDevice));
    for (int i = 0; i < 2; i++) {
        jacobi_set<<<528, 256>>>(p->a[i], p->n, p->rows, on_gpu);
    }
    GPU(cudaDeviceSynchronize());
    GPU(cudaFree(on_gpu));
    free(wall);
}

static __global__ void jacobi_digest_kernel(const float *a, long n, long first, long rows,
                                            unsigned long long *digest)
{
    unsigned long long sum = 0;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < n * rows;
         i += (long)gridDim.x * blockDim.x) {
        uint64_t h = (uint64_t)((first - 1) * n + i) * 0x9e3779b97f4a7c15u ^
                     (uint64_t)__float_as_uint(a[n + i]);
        h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
        h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
        sum += h ^ (h >> 32);
    }
    atomicAdd(digest, sum);
}

/* As mesh_digest in bench/bodies/mesh.h. */
static inline uint64_t jacobi_digest(const jacobi_part *p, const float *a)
{
    unsigned long long *on_gpu, digest;
    GPU(cudaMalloc((void **)&on_gpu, sizeof(*on_gpu)));
    GPU(cudaMemset(on_gpu, 0, sizeof(*on_gpu)));
    jacobi_digest_kernel<<<528, 256>>>(a, p->n, p->first, p->rows, on_gpu);
    GPU(cudaMemcpy(&digest, on_gpu, sizeof(digest), cudaMemcpyDeviceToHost));
    GPU(cudaFree(on_gpu));
    return digest;
}

/* The definition, one point a thread, halo rows by index: what the peers are checked against. */
static __global__ void jacobi_plain(const float *a, float *an, long n, double *sum)
{
    const long x = (long)blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y + 1;
    double square = 0;
    if (x < n - 1) {
        const long up = y == 1 ? n - 2 : y - 1, down = y == n - 2 ? 1 : y + 1;
        const float v =
            jacobi_mean(a[y * n + x - 1], a[y * n + x + 1], a[up * n + x], a[down * n + x]);
        an[y * n + x] = v;
        square = jacobi_square(v, a[y * n + x]);
    }
    if (sum) {
        jacobi_add(square, sum);
    }
}

typedef struct jacobi_truth {
    uint64_t digest;
    double norm_0, norm_100;
} jacobi_truth;

/* Digest after 100 steps, norms of steps 0 and 100, on one GPU. */
static inline jacobi_truth jacobi_reference(long n)
{
    jacobi_part p = {n, 1, n - 2, {NULL, NULL}, NULL};
    jacobi_truth truth = {0, 0, 0};
    double sum[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        GPU(cudaMalloc((void **)&p.a[i], (size_t)n * (size_t)n * sizeof(float)));
    }
    GPU(cudaMalloc((void **)&p.sum, sizeof(sum)));
    GPU(cudaMemset(p.sum, 0, sizeof(sum)));
    jacobi_start(&p);
    for (int step = 0; step <= JACOBI_VERIFIED; step++) {
        if (step == JACOBI_VERIFIED) {
            truth.digest = jacobi_digest(&p, p.a[step % 2]);
        }
        double *to = step == 0 ? p.sum : step == JACOBI_VERIFIED ? p.sum + 1 : NULL;
        jacobi_plain<<<dim3((unsigned)((n + 255) / 256), (unsigned)(n - 2)), 256>>>(
            p.a[step % 2], p.a[1 - step % 2], n, to);
        GPU(cudaGetLastError());
    }
    GPU(cudaMemcpy(sum, p.sum, sizeof(sum), cudaMemcpyDeviceToHost));
    truth.norm_0 = sqrt(sum[0]);
    truth.norm_100 = sqrt(sum[1]);
    GPU(cudaFree(p.sum));
    GPU(cudaFree(p.a[1]));
    GPU(cudaFree(p.a[0]));
    return truth;
}

/* Norms as NVIDIA's samples print them for this mesh, or 0. */
static inline void jacobi_known(long n, double norm[2])
{
    norm[0] = n == 256 ? 3.992180 : n == 1024 ? 7.996092 : n == 4096 ? 15.998047 : 0;
    norm[1] = n == 256 ? 0.110318 : n == 1024 ? 0.224180 : n == 4096 ? 0.448925 : 0;
}

static inline bool jacobi_close(double norm, double right)
{
    return fabs(norm - right) <= 1e-5 * right;
}

static inline double jacobi_norm(const jacobi_part *p)
{
    double sum;
    GPU(cudaMemcpy(&sum, p->sum, sizeof(sum), cudaMemcpyDeviceToHost));
    return sqrt(sum);
}

#endif
