/* Rows about copies: to the peer by size and way, faces whose points lie apart, packing, and what
 * one GPU's own memory delivers. */
#include "primitives.cuh"

enum { ENGINE_STREAM, ENGINE_GRAPH, KERNEL_PUSH, KERNEL_PULL };
/* Which face of a box of n^3 doubles: x: every point apart; y: rows of n points apart. z is one
 * piece and needs no row. */
enum { FACE_X, FACE_Y };
enum { STRIDED_ENGINE, STRIDED_KERNEL, PACK_LOCAL, UNPACK_LOCAL };

/* 16 bytes a thread and turn; what is left over in bytes of 8. */
__global__ void copy_wide(char *to, const char *from, long bytes)
{
    const long thread = (long)blockIdx.x * blockDim.x + threadIdx.x;
    const long threads = (long)gridDim.x * blockDim.x, wide = bytes / 16;
    for (long i = thread; i < wide; i += threads) {
        ((int4 *)to)[i] = ((const int4 *)from)[i];
    }
    if (thread == 0 && bytes % 16 != 0) {
        ((double *)to)[wide * 2] = ((const double *)from)[wide * 2];
    }
}

/* `runs` runs of `points` doubles, `apart` doubles from run to run on either side. */
__global__ void copy_runs(double *to, long to_apart, const double *from, long from_apart,
                          long points, long runs)
{
    const long thread = (long)blockIdx.x * blockDim.x + threadIdx.x;
    const long threads = (long)gridDim.x * blockDim.x;
    for (long i = thread; i < points * runs; i += threads) {
        long run = i / points, point = i - run * points;
        to[run * to_apart + point] = from[run * from_apart + point];
    }
}

/* As many blocks as the size can use, at most a few on every SM. */
static unsigned blocks_for(long elements)
{
    long blocks = (elements + 255) / 256;
    return (unsigned)(blocks < 1 ? 1 : blocks > 132 * 4 ? 132 * 4 : blocks);
}

/* r->a: bytes; r->b: way; r->c: the GPU that is copied to. */
static void enqueue_copies(const void *argument, int count, cudaStream_t stream)
{
    const row *r = (const row *)argument;
    char *to = device[r->c].memory, *from = device[0].memory + GPU_MEMORY / 2;
    if (r->b == KERNEL_PULL) { /* runs on GPU 0 and reads the other's memory */
        to = device[0].memory;
        from = device[r->c].memory + GPU_MEMORY / 2;
    }
    for (int i = 0; i < count; i++) {
        if (r->b == ENGINE_STREAM || r->b == ENGINE_GRAPH) {
            GPU(cudaMemcpyAsync(to, from, (size_t)r->a, cudaMemcpyDefault, stream));
        } else {
            copy_wide<<<blocks_for(r->a / 16), 256, 0, stream>>>(to, from, r->a);
        }
    }
    GPU(cudaGetLastError());
}

/* The copy of large pieces takes long: fewer of them make a batch. */
static double copy_us(const row *r)
{
    int high = r->a >= 16 << 20 ? 6 : r->a >= 1 << 20 ? 22 : 102;
    return r->b == ENGINE_STREAM ? gpu_stream_slope(0, enqueue_copies, r, 2, high)
                                 : gpu_graph_slope(0, enqueue_copies, r, 2, high);
}

static double copy_rate(const row *r)
{
    return (double)r->a * 1e-3 / copy_us(r);
}

/* Bytes read and bytes written. */
static double local_rate(const row *r)
{
    return 2 * copy_rate(r);
}

/* r->a: points a side; r->b: way; r->c: face. The faces of two boxes of n^3 doubles: from the last
 * plane of mine into the first of the peer's. */
static void enqueue_faces(const void *argument, int count, cudaStream_t stream)
{
    const row *r = (const row *)argument;
    const long n = r->a, points = r->c == FACE_X ? 1 : n, runs = r->c == FACE_X ? n * n : n;
    const long apart = r->c == FACE_X ? n : n * n;
    double *mine = (double *)device[0].memory + (apart - points);
    double *peers = r->b == STRIDED_ENGINE || r->b == STRIDED_KERNEL
                        ? (double *)device[1].memory
                        : (double *)(device[0].memory + GPU_MEMORY / 2);
    const long other = r->b == PACK_LOCAL || r->b == UNPACK_LOCAL ? points : apart;
    for (int i = 0; i < count; i++) {
        if (r->b == STRIDED_ENGINE) {
            GPU(cudaMemcpy2DAsync(peers, (size_t)apart * 8, mine, (size_t)apart * 8,
                                  (size_t)points * 8, (size_t)runs, cudaMemcpyDefault, stream));
        } else if (r->b == UNPACK_LOCAL) {
            copy_runs<<<blocks_for(points * runs), 256, 0, stream>>>(mine, apart, peers, other,
                                                                     points, runs);
        } else {
            copy_runs<<<blocks_for(points * runs), 256, 0, stream>>>(peers, other, mine, apart,
                                                                     points, runs);
        }
    }
    GPU(cudaGetLastError());
}

static double face_us(const row *r)
{
    return gpu_graph_slope(0, enqueue_faces, r, 2, r->b == STRIDED_ENGINE && r->a > 128 ? 12 : 52);
}

static const char *size_name(long bytes)
{
    static char text[32];
    if (bytes >= 1 << 20) {
        snprintf(text, sizeof(text), "%ld MiB", bytes >> 20);
    } else if (bytes >= 1 << 10) {
        snprintf(text, sizeof(text), "%ld KiB", bytes >> 10);
    } else {
        snprintf(text, sizeof(text), "%ld B", bytes);
    }
    return text;
}

static void add_peer_copies(void)
{
    static const long sizes[] = {8,      64,      512,     4096,     32768,   65536,
                                 262144, 1 << 20, 2 << 20, 16 << 20, 64 << 20};
    static const char *const ways[] = {"engine, stream", "engine, graph node",
                                       "kernel stores to peer, graph",
                                       "kernel loads from peer, graph"};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (int way = 0; way < 4; way++) {
            const bool large = sizes[s] >= 1 << 20;
            const double seen = sizes[s] == 4096 && way == 0       ? 2.2
                                : sizes[s] == 64 << 20 && way == 0 ? 381
                                                                   : 0;
            row *r = row_add(2, large ? "GB/s" : "us", large ? copy_rate : copy_us, seen,
                             "peer copy, %s, %s", size_name(sizes[s]), ways[way]);
            r->a = sizes[s];
            r->b = way;
            r->c = 1;
        }
    }
}

static void add_faces(void)
{
    static const char *const faces[] = {"x", "y"};
    static const char *const ways[] = {"to peer, 2-D engine", "to peer, kernel", "pack, local",
                                       "unpack, local"};
    for (long n = 32; n <= 256; n *= 2) {
        for (int face = 0; face < 2; face++) {
            for (int way = 0; way < 4; way++) {
                row *r = row_add(way < 2 ? 2 : 1, "us", face_us, 0, "%s face of %ld^3 doubles, %s",
                                 faces[face], n, ways[way]);
                r->a = n;
                r->b = way;
                r->c = face;
            }
        }
    }
}

static void add_local_copies(void)
{
    static const char *const ways[] = {"engine, stream", "engine, graph node", "kernel, graph"};
    for (long bytes = 4096; bytes <= 128 << 20; bytes *= 32) {
        for (int way = 0; way < 3; way++) {
            const bool large = bytes >= 1 << 20;
            row *r = row_add(1, large ? "GB/s" : "us", large ? local_rate : copy_us,
                             bytes == 128 << 20 && way == 0 ? 4300 : 0, "local copy, %s, %s",
                             size_name(bytes), ways[way]);
            r->a = bytes;
            r->b = way;
        }
    }
}

void rows_add_copies(void)
{
    add_peer_copies();
    add_faces();
    add_local_copies();
}
