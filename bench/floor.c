/* The floor of this machine, measured beside every benchmark: what a clock read costs, how long a
 * cache line takes from one core to the other (half a ping-pong), and what memory delivers to one
 * and to two threads, and how much slower a core computes while the other does too. Line time and
 * slow-down tell the placement: cores of one die were seen 25 to 60 ns apart, cores of two dies
 * some 275 ns; two threads of one core slow each other down. */
#include "measure.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PING_PONGS = 2000, PARTS = 10, STREAM_BYTES = 128 << 20 };

typedef struct line {
    _Alignas(128) _Atomic long ping;
    _Alignas(128) _Atomic long pong;
} line;

typedef struct stream_part {
    double *from, *to;
    long count;
    int core;
} stream_part;

static line shared;

static void *answer(void *unused)
{
    bench_pin(1);
    for (long i = 1; i <= (long)PARTS * PING_PONGS; i++) {
        while (atomic_load_explicit(&shared.ping, memory_order_acquire) != i) {
        }
        atomic_store_explicit(&shared.pong, i, memory_order_release);
    }
    return unused;
}

/* The best of some parts, so that a part in which a thread lost its core does not count. */
static double line_one_way_ns(void)
{
    pthread_t thread;
    double best = 0;
    bench_pin(0);
    if (pthread_create(&thread, NULL, answer, NULL) != 0) {
        return 0;
    }
    for (int part = 0; part < PARTS; part++) {
        double start = bench_now_ns();
        for (long i = 1; i <= PING_PONGS; i++) {
            long value = part * PING_PONGS + i;
            atomic_store_explicit(&shared.ping, value, memory_order_release);
            while (atomic_load_explicit(&shared.pong, memory_order_acquire) != value) {
            }
        }
        double ns = (bench_now_ns() - start) / (2.0 * PING_PONGS);
        best = part == 0 || ns < best ? ns : best;
    }
    pthread_join(thread, NULL);
    return best;
}

static void *stream_copy(void *argument)
{
    stream_part *part = argument;
    bench_pin(part->core);
    for (int pass = 0; pass < 4; pass++) {
        for (long i = 0; i < part->count; i++) {
            part->to[i] = part->from[i] + 1.0;
        }
    }
    return NULL;
}

/* Gigabytes a second, read and written, of a copy that no cache holds. */
static double bandwidth(double *memory, int threads)
{
    pthread_t thread[2];
    stream_part part[2];
    long half = STREAM_BYTES / (long)sizeof(double) / 2, each = half / threads;
    double start = bench_now_ns();
    for (int i = 0; i < threads; i++) {
        part[i] = (stream_part){memory + i * each, memory + half + i * each, each, i};
        pthread_create(&thread[i], NULL, stream_copy, &part[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    return 4.0 * 2 * (double)half * sizeof(double) / (bench_now_ns() - start);
}

static double timer_ns(void)
{
    double start = bench_now_ns(), last = start;
    for (int i = 0; i < 100000; i++) {
        last = bench_now_ns();
    }
    return (last - start) / 100000;
}

/* Eight independent chains of multiplications: enough to fill a core's pipes. */
static void *compute(void *core)
{
    static _Atomic uint64_t sink;
    uint64_t x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, sum = 0;
    bench_pin(*(const int *)core);
    for (int i = 0; i < 4000000; i++) {
        for (int k = 0; k < 8; k++) {
            x[k] = x[k] * 0x9e3779b97f4a7c15u + (uint64_t)i;
        }
    }
    for (int k = 0; k < 8; k++) {
        sum ^= x[k];
    }
    atomic_fetch_xor(&sink, sum);
    return NULL;
}

static double compute_ns(int threads)
{
    pthread_t thread[2];
    int core[2] = {0, 1};
    double start = bench_now_ns();
    for (int i = 0; i < threads; i++) {
        pthread_create(&thread[i], NULL, compute, &core[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    return bench_now_ns() - start;
}

static const char *placement_name(int cores, double line_ns, double slowdown)
{
    if (cores < 2) {
        return "one core";
    }
    if (line_ns >= 150) {
        return "two dies";
    }
    return slowdown > 1.5 ? "same die, perhaps one core or a busy machine" : "same die";
}

int main(void)
{
    cpu_set_t allowed;
    int cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    bench_pin(0);
    double *memory = malloc(STREAM_BYTES);
    if (!memory) {
        return 1;
    }
    memset(memory, 1, STREAM_BYTES);
    double two = cores > 1 ? bandwidth(memory, 2) : 0;
    double one = bandwidth(memory, 1);
    double line_ns = cores > 1 ? line_one_way_ns() : 0;
    double alone = compute_ns(1), both = compute_ns(cores > 1 ? 2 : 1);
    for (int i = 0; i < 2; i++) {
        double one_ns = compute_ns(1), two_ns = compute_ns(cores > 1 ? 2 : 1);
        alone = one_ns < alone ? one_ns : alone;
        both = two_ns < both ? two_ns : both;
    }
    double slowdown = both / alone;
    printf("{\"bench\": \"floor\", \"line_ns\": %.1f, \"timer_ns\": %.1f, \"copy_gbs_1\": %.1f, "
           "\"copy_gbs_2\": %.1f, \"slowdown_2\": %.2f, \"cores\": %d, \"placement\": \"%s\"}\n",
           line_ns, timer_ns(), one, two, slowdown, cores,
           placement_name(cores, line_ns, slowdown));
    free(memory);
    return 0;
}
