/* Two processes send a ball there and back, by peal's transfers. A kernel touches it at each end,
 * so that both know in the end whether it has made all its way.
 *
 *     pingpong --processes 2 [--shape stream|mpi] [--bytes 8] [--rounds 2000] [--transport mlx5]
 *              [--lower network=word]
 *
 * stream: messages and kernels are put onto a stream, all of them, and the host waits once. mpi:
 * what a program does whose library sends from the host: it waits for the stream before each send
 * and after each receive, and copies through host memory. */
#include "job.cuh"

#include <peal/transfer.h>

#include <chrono>
#include <sys/resource.h>

static __global__ void touch(unsigned char *ball, size_t bytes)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < bytes)
        ball[i]++;
}

struct game {
    int process = 0;
    size_t bytes = 8;
    bool by_host = false;
    unsigned char *ball = nullptr, *host = nullptr; /* the GPU's, and what mpi sends from */
    cudaStream_t stream = nullptr;
    cudaEvent_t end = nullptr;
    peal_transfer *there = nullptr, *back = nullptr;
};

static peal_status create(game &g, const job &j, const char *transport, const char *lowering)
{
    for (int way = 0; way < 2; way++) {
        peal_transfer_desc desc = {};
        desc.size_bytes = sizeof(desc);
        desc.source = PEAL_HERE;
        desc.from = way;
        desc.to = 1 - way;
        desc.data = g.by_host ? g.host : g.ball;
        desc.bytes = (int64_t)g.bytes;
        desc.transport = transport;
        desc.lowering = g.by_host ? nullptr : lowering;
        PEAL(peal_transfer_create_desc(j.session, &desc, way ? &g.back : &g.there));
    }
    return PEAL_STATUS_OK;
}

static void hit(const game &g)
{
    touch<<<(unsigned)((g.bytes + 255) / 256), 256, 0, g.stream>>>(g.ball, g.bytes);
}

/* ---- the ping-pong ---- */

static peal_status send(const game &g, peal_transfer *transfer)
{
    if (!g.by_host)
        return peal_transfer_start(transfer, g.stream);
    CUDA(cudaMemcpyAsync(g.host, g.ball, g.bytes, cudaMemcpyDeviceToHost, g.stream));
    CUDA(cudaStreamSynchronize(g.stream));
    return peal_transfer_start(transfer, nullptr);
}

static peal_status receive(const game &g, peal_transfer *transfer)
{
    if (!g.by_host)
        return peal_transfer_wait(transfer, g.stream);
    PEAL(peal_transfer_wait(transfer, nullptr));
    CUDA(cudaMemcpyAsync(g.ball, g.host, g.bytes, cudaMemcpyHostToDevice, g.stream));
    return PEAL_STATUS_OK;
}

static peal_status play(const game &g, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        if (g.process == 0) {
            hit(g);
            PEAL(send(g, g.there));
            PEAL(receive(g, g.back));
        } else {
            PEAL(receive(g, g.there));
            hit(g);
            PEAL(send(g, g.back));
        }
    }
    CUDA(cudaEventRecord(g.end, g.stream)); /* of the kind that a thread sleeps for */
    CUDA(cudaEventSynchronize(g.end));
    return PEAL_STATUS_OK;
}

/* ---- around it ---- */

static double cpu_seconds()
{
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Whether the ball was hit so often; it begins with zeros. */
static peal_status look(const game &g, int hits, bool *right)
{
    CUDA(cudaMemcpy(g.host, g.ball, g.bytes, cudaMemcpyDeviceToHost));
    *right = true;
    for (size_t i = 0; i < g.bytes; i++)
        *right = *right && g.host[i] == (unsigned char)hits;
    return PEAL_STATUS_OK;
}

static peal_status run(job &j, int argc, char **argv)
{
    const int warm = 20, rounds = atoi(job_option(argc, argv, "--rounds", "2000"));
    game g;
    g.bytes = (size_t)atoll(job_option(argc, argv, "--bytes", "8"));
    g.by_host = !strcmp(job_option(argc, argv, "--shape", "stream"), "mpi");
    PEAL(job_join(&j));
    g.process = j.process;
    if (j.processes != 2) {
        fprintf(stderr, "two processes play: mpirun -n 2, or --processes 2\n");
        return PEAL_STATUS_USAGE;
    }
    CUDA(cudaStreamCreateWithFlags(&g.stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&g.end, cudaEventBlockingSync | cudaEventDisableTiming));
    CUDA(cudaMalloc(&g.ball, g.bytes));
    CUDA(cudaMallocHost(&g.host, g.bytes));
    CUDA(cudaMemset(g.ball, 0, g.bytes));
    CUDA(cudaDeviceSynchronize());
    PEAL(create(g, j, job_option(argc, argv, "--transport", nullptr),
                job_option(argc, argv, "--lower", nullptr)));
    PEAL(play(g, warm)); /* loads the kernel, too */
    double cpu = cpu_seconds();
    auto begin = std::chrono::steady_clock::now();
    PEAL(play(g, rounds));
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    cpu = cpu_seconds() - cpu;
    char line[300];
    bool right = false;
    peal_transfer_describe(g.there, line, sizeof(line));
    PEAL(look(g, 2 * (warm + rounds), &right));
    PEAL(peal_transfer_destroy(g.there));
    PEAL(peal_transfer_destroy(g.back));
    if (g.process == 0)
        printf("%s\n", line);
    printf("process %d: %.2f us one way, %.2f us of its CPU: the ball is %s\n", g.process,
           1e6 * took.count() / rounds / 2, 1e6 * cpu / rounds / 2,
           right ? "as it must be" : "wrong");
    peal_session_destroy(j.session);
    return right ? PEAL_STATUS_OK : PEAL_STATUS_WRONG_RESULT;
}

int main(int argc, char **argv)
{
    job j;
    int processes = atoi(job_option(argc, argv, "--processes", "0"));
    if (processes > 0)
        job_fork(&j, processes);
    peal_status status = run(j, argc, argv);
    if (status != PEAL_STATUS_OK)
        fprintf(stderr, "process %d: %s\n", j.process, peal_status_name(status));
    return (int)status;
}
