/* Puts with a signal inside kernels by NVSHMEM, two PEs that answer each other: the counterpart of
 * the rows "put with signal" of gpu_primitives. Each block puts its part with a signal of its own,
 * and waits for that of the peer's: by one block, or one for every 4 KiB.
 *
 * usage: gpu_put_nvshmem [ROUNDS]; a line of JSON a row, as gpu_primitives --json. */
#include "gpu_nvshmem.cuh"

enum { PUT_THREADS = 256, PUT_BLOCKS = 64, PUT_BYTES = 4096, MOST_BYTES = 1 << 20, ROUNDS = 64 };

typedef struct put_side {
    char *from, *in;    /* symmetric */
    uint64_t *signal;   /* symmetric, by block */
    uint64_t *ns;       /* of this GPU */
    uint64_t begin;     /* signals before the first turn */
    long bytes, share;  /* share: of a block */
    int turns, skipped; /* skipped: not timed */
    int peer;
} put_side;

static __device__ void put(const put_side &s, uint64_t turn)
{
    const long at = blockIdx.x * s.share, left = s.bytes - at;
    nvshmemx_putmem_signal_nbi_block(s.in + at, s.from + at,
                                     (size_t)(left < s.share ? left : s.share),
                                     s.signal + blockIdx.x, s.begin + turn, NVSHMEM_SIGNAL_SET,
                                     s.peer);
}

static __global__ void puts_in_turn(put_side s)
{
    const bool leads = s.peer == 1;
    uint64_t start = 0;
    for (int turn = 1; turn <= s.turns; turn++) {
        if (turn == s.skipped) {
            start = global_ns();
        }
        if (leads) {
            put(s, turn);
        }
        if (threadIdx.x == 0) {
            nvshmem_signal_wait_until(s.signal + blockIdx.x, NVSHMEM_CMP_GE, s.begin + turn);
        }
        __syncthreads();
        if (!leads) {
            put(s, turn);
        }
    }
    nvshmem_quiet();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *s.ns = global_ns() - start;
    }
}

typedef struct buffers {
    put_side side; /* what all rows have in common */
    char *check;   /* MOST_BYTES, of the host */
} buffers;

/* One way, in microseconds. */
static double measure(buffers *b, long bytes, unsigned grid)
{
    put_side *s = &b->side;
    uint64_t ns;
    s->bytes = bytes;
    s->share = (bytes / grid + 15) / 16 * 16;
    s->turns = bytes > 65536 ? 600 : 3000;
    s->skipped = s->turns / 4;
    GPU(cudaMemset(s->in, 0, MOST_BYTES));
    GPU(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    puts_in_turn<<<grid, PUT_THREADS>>>(*s);
    GPU(cudaGetLastError());
    GPU(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    s->begin += (uint64_t)s->turns;
    GPU(cudaMemcpy(&ns, s->ns, sizeof(ns), cudaMemcpyDeviceToHost));
    GPU(cudaMemcpy(b->check, s->in, (size_t)bytes, cudaMemcpyDeviceToHost));
    for (long i = 0; i < bytes; i++) {
        if (b->check[i] != (char)(i * 7 + s->peer)) {
            fprintf(stderr, "byte %ld of %ld is wrong on rank %d\n", i, bytes, 1 - s->peer);
            _exit(GPU_EXIT);
        }
    }
    return (double)ns * 1e-3 / (2.0 * (s->turns - s->skipped + 1));
}

static void print_row(buffers *b, const team *t, long bytes, unsigned grid, int rounds)
{
    double us[ROUNDS];
    for (int i = 0; i < rounds; i++) {
        us[i] = measure(b, bytes, grid);
    }
    double median = gpu_median(us, rounds); /* sorts */
    if (t->rank == 0) {
        printf("{\"row\": \"put with signal, %ld bytes, NVSHMEM, %u block%s\", \"unit\": \"us\", "
               "\"median\": %.4f, \"min\": %.4f, \"max\": %.4f, \"rounds\": %d}\n",
               bytes, grid, grid > 1 ? "s" : "", median, us[0], us[rounds - 1], rounds);
        fflush(stdout);
    }
}

static void work(team *t, void *argument)
{
    static const long sizes[] = {8, 64, 512, 4096, 32768, 262144, MOST_BYTES};
    const int rounds = *(const int *)argument;
    buffers b = {};
    nvshmem_join(t);
    b.side.from = (char *)nvshmem_zeroed(MOST_BYTES);
    b.side.in = (char *)nvshmem_zeroed(MOST_BYTES);
    b.side.signal = (uint64_t *)nvshmem_zeroed(PUT_BLOCKS * sizeof(uint64_t));
    b.side.peer = 1 - t->rank;
    b.check = (char *)malloc(MOST_BYTES);
    if (!b.check) {
        _exit(GPU_EXIT);
    }
    GPU(cudaMalloc((void **)&b.side.ns, sizeof(uint64_t)));
    for (long i = 0; i < MOST_BYTES; i++) {
        b.check[i] = (char)(i * 7 + t->rank);
    }
    GPU(cudaMemcpy(b.side.from, b.check, MOST_BYTES, cudaMemcpyHostToDevice));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const long blocks = (sizes[i] + PUT_BYTES - 1) / PUT_BYTES;
        print_row(&b, t, sizes[i], 1, rounds);
        if (blocks > 1) {
            print_row(&b, t, sizes[i],
                      blocks < PUT_BLOCKS ? (unsigned)blocks : (unsigned)PUT_BLOCKS, rounds);
        }
    }
    nvshmem_barrier_all();
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    if (rounds < 1 || rounds > ROUNDS) {
        fprintf(stderr, "usage: %s [ROUNDS], 1 to %d\n", argv[0], ROUNDS);
        return 2;
    }
    nvshmem_environment("64M");
    return team_run(2, true, work, &rounds);
}
