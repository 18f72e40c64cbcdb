/* A CUDA program with its own time loop, its own stream and its own memory. peal does one thing for
 * it: the halo exchange, on that stream.
 *
 * Waves travel over a grid that is periodic in x and y and cut into stripes of rows, one a process.
 * How fast each wave turns is known exactly, so every process can tell in the end whether its rows
 * are right. Four times in the run the program has CUB add up the squares of its rows, on the same
 * stream, between its own kernels and peal's.
 *
 *     waves [--columns N] [--rows N] [--steps N] [--processes N] [--memory mine|peal|managed|pool]
 */
#include "job.cuh"

#include <cub/device/device_reduce.cuh>
#include <peal/exchange.h>

#include <math.h>

static const double pi = 3.14159265358979323846;
static const double speed2 = 0.25; /* (speed * time step / grid spacing) squared */
enum { NORMS = 4 };

/* This process's rows first .. end - 1 of two arrays, with one halo row more on each side: u[now]
 * is the present, the other one the past, which becomes the future. */
struct stripe {
    int nx, ny, first, end, steps;
    int pitch = 0; /* points from one row to the next */
    double *u[2] = {nullptr, nullptr};
    peal_exchange *exchange[2] = {nullptr, nullptr};
    int now = 0;
    cudaStream_t stream = nullptr;
    void *scratch = nullptr;
    size_t scratch_bytes = 0;
    double *norm = nullptr; /* of NORMS moments */
    const char *memory;     /* whose */
};

struct square {
    __host__ __device__ double operator()(double value) const
    {
        return value * value;
    }
};

/* Two waves that cross; each moves as cos(a x + b y - turn * step). */
static double wave_at(const stripe &s, int x, int y, int step)
{
    double sum = 0;
    for (int k = 1; k <= 2; k++) {
        double a = 2.0 * pi * k / s.nx, b = 2.0 * pi * (3 - 2 * k) / s.ny;
        double turn = acos(1.0 - speed2 * (2.0 - cos(a) - cos(b)));
        sum += cos(a * x + b * y - turn * step);
    }
    return sum;
}

/* The future of rows [from, to), counted with the halo row as 0: twice the present, less the past,
 * and what the neighbours pull. */
__global__ void advance(const double *u, double *v, int nx, int pitch, int from, int to)
{
    int x = (int)(blockIdx.x * blockDim.x + threadIdx.x), y = from + (int)blockIdx.y;
    if (x >= nx || y >= to)
        return;
    const double *row = u + (int64_t)y * pitch;
    double left = row[x > 0 ? x - 1 : nx - 1], right = row[x < nx - 1 ? x + 1 : 0];
    double pull = left + right + row[x - pitch] + row[x + pitch] - 4.0 * row[x];
    int64_t at = (int64_t)y * pitch + x;
    v[at] = 2.0 * row[x] - v[at] + speed2 * pull;
}

static void launch(const stripe &s, int from, int to)
{
    if (to > from)
        advance<<<dim3((unsigned)(s.nx + 255) / 256, (unsigned)(to - from)), 256, 0, s.stream>>>(
            s.u[s.now], s.u[1 - s.now], s.nx, s.pitch, from, to);
}

static double *first_row(const stripe &s, int which)
{
    return s.u[which] + s.pitch;
}

/* CUB's sum of the squares of the present, on the stream. What pads rows is 0. */
static peal_status add_up(stripe &s, int moment)
{
    int count = s.pitch * (s.end - s.first);
    CUDA(cub::DeviceReduce::TransformReduce(s.scratch, s.scratch_bytes, first_row(s, s.now),
                                            s.norm + moment, count, cuda::std::plus<>{}, square{},
                                            0.0, s.stream));
    return PEAL_STATUS_OK;
}

/* The time loop. The host never waits: it puts work onto the stream and goes on. Inner rows don't
 * need the halo: they are advanced while the messages travel. */
static peal_status run(stripe &s)
{
    int rows = s.end - s.first;
    for (int step = 0; step < s.steps; step++) {
        PEAL(peal_exchange_start(s.exchange[s.now], 0, s.stream));
        launch(s, 2, rows);
        PEAL(peal_exchange_wait(s.exchange[s.now]));
        launch(s, 1, 2);
        if (rows > 1)
            launch(s, rows, rows + 1);
        s.now = 1 - s.now;
        if ((step + 1) % (s.steps / NORMS) == 0 && (step + 1) / (s.steps / NORMS) <= NORMS)
            PEAL(add_up(s, (step + 1) / (s.steps / NORMS) - 1));
    }
    CUDA(cudaGetLastError());
    CUDA(cudaStreamSynchronize(s.stream));
    return PEAL_STATUS_OK;
}

static peal_status allocate(stripe &s, int which, size_t bytes)
{
    void **out = (void **)&s.u[which];
    if (!strcmp(s.memory, "mine"))
        CUDA(cudaMalloc(out, bytes));
    else if (!strcmp(s.memory, "managed"))
        CUDA(cudaMallocManaged(out, bytes));
    else if (!strcmp(s.memory, "pool"))
        CUDA(cudaMallocAsync(out, bytes, s.stream));
    CUDA(cudaStreamSynchronize(s.stream));
    return PEAL_STATUS_OK;
}

static peal_status connect(stripe &s, const job &j, int which)
{
    peal_halo_desc desc = {};
    desc.size_bytes = sizeof(desc);
    desc.source = PEAL_HERE;
    desc.axis_count = 2;
    desc.lo[1] = s.first; /* what of the whole grid is mine */
    desc.hi[0] = s.nx;
    desc.hi[1] = s.end;
    desc.periodic[0] = desc.periodic[1] = true;
    desc.field[0].type = PEAL_F64;
    desc.field[0].width[1][0] = desc.field[0].width[1][1] = 1;
    desc.field[0].data[0] =
        s.u[which]; /* nullptr: peal allocates, where neighbours can store directly */
    desc.backend = "cuda";
    PEAL(peal_exchange_create_desc(j.session, &desc, &s.exchange[which]));
    peal_exchange_array array;
    PEAL(peal_exchange_view(s.exchange[which], 0, &array));
    s.u[which] = (double *)array.data;
    s.pitch = (int)array.stride[1]; /* peal pads rows of its own */
    return PEAL_STATUS_OK;
}

/* Memory, exchanges, first contents, and everything else that would otherwise be allocated in the
 * loop. */
static peal_status prepare(stripe &s, const job &j)
{
    int rows = s.ny / j.processes, longer = s.ny % j.processes; /* the first ones have a row more */
    s.first = j.process * rows + (j.process < longer ? j.process : longer);
    s.end = s.first + rows + (j.process < longer);
    size_t bytes = (size_t)(s.end - s.first + 2) * (size_t)s.nx * sizeof(double);
    CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc(&s.norm, NORMS * sizeof(double)));
    for (int which = 0; which < 2; which++) {
        PEAL(allocate(s, which, bytes));
        PEAL(connect(s, j, which));
        size_t points = (size_t)(s.end - s.first + 2) * (size_t)s.pitch;
        double *host = (double *)calloc(points, sizeof(double));
        for (int y = s.first; y < s.end; y++) /* u[0]: step 0, u[1]: the step before */
            for (int x = 0; x < s.nx; x++)
                host[(size_t)(y - s.first + 1) * (size_t)s.pitch + (size_t)x] =
                    wave_at(s, x, y, -which);
        CUDA(cudaMemcpy(s.u[which], host, points * sizeof(double), cudaMemcpyHostToDevice));
        free(host);
    }
    PEAL(add_up(s, 0)); /* says how much scratch memory it wants */
    CUDA(cudaMalloc(&s.scratch, s.scratch_bytes));
    PEAL(add_up(s, 0)); /* loads its kernels */
    CUDA(cudaStreamSynchronize(s.stream));
    return PEAL_STATUS_OK;
}

/* Whether this process's rows, and the four sums, are what they should be. */
static peal_status compare(const stripe &s, bool *right)
{
    size_t count = (size_t)s.pitch * (size_t)(s.end - s.first);
    double *host = (double *)malloc(count * sizeof(double)), norm[NORMS], worst = 0, off = 0;
    CUDA(cudaMemcpy(host, first_row(s, s.now), count * sizeof(double), cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(norm, s.norm, sizeof(norm), cudaMemcpyDeviceToHost));
    for (int m = 0; m < NORMS; m++) {
        double sum = 0;
        for (int y = s.first; y < s.end; y++)
            for (int x = 0; x < s.nx; x++) {
                double wave = wave_at(s, x, y, (m + 1) * (s.steps / NORMS));
                sum += wave * wave;
            }
        off = fmax(off, fabs(norm[m] - sum) / sum);
    }
    for (int y = s.first; y < s.end; y++)
        for (int x = 0; x < s.nx; x++)
            worst = fmax(worst, fabs(host[(size_t)(y - s.first) * (size_t)s.pitch + (size_t)x] -
                                     wave_at(s, x, y, s.steps)));
    free(host);
    *right = worst < 1e-8 && off < 1e-8;
    return PEAL_STATUS_OK;
}

static peal_status report(const stripe &s, const job &j)
{
    bool right = false;
    PEAL(compare(s, &right));
    if (j.process == 0)
        printf("%d x %d points, %d steps, processes: %d\n", s.nx, s.ny, s.steps, j.processes);
    printf("process %d of %d: rows %d to %d and their sums %s\n", j.process, j.processes, s.first,
           s.end - 1, right ? "are where the waves should be" : "are wrong");
    fflush(stdout);
    return right ? PEAL_STATUS_OK : PEAL_STATUS_WRONG_RESULT;
}

static peal_status release(stripe &s)
{
    bool mine = !strcmp(s.memory, "mine") || !strcmp(s.memory, "managed");
    peal_status status = PEAL_STATUS_OK;
    for (int which = 0; which < 2; which++) { /* destroy agrees that all exchanges were done */
        peal_status outcome = peal_exchange_destroy(s.exchange[which]);
        status = status == PEAL_STATUS_OK ? outcome : status;
        if (mine)
            cudaFree(s.u[which]);
        else if (!strcmp(s.memory, "pool"))
            cudaFreeAsync(s.u[which], s.stream);
    }
    cudaFree(s.scratch);
    cudaFree(s.norm);
    if (s.stream)
        cudaStreamDestroy(s.stream);
    return status;
}

int main(int argc, char **argv)
{
    job j;
    stripe s;
    s.nx = atoi(job_option(argc, argv, "--columns", "500"));
    s.ny = atoi(job_option(argc, argv, "--rows", "300"));
    s.steps = atoi(job_option(argc, argv, "--steps", "1000"));
    s.memory = job_option(argc, argv, "--memory", "mine");
    int processes = atoi(job_option(argc, argv, "--processes", "0"));
    if (s.nx < 1 || s.ny < 1 || s.steps < NORMS) {
        fprintf(stderr, "usage: waves [--columns N] [--rows N] [--steps N] [--processes N] "
                        "[--memory mine|peal|managed|pool]\n");
        return PEAL_STATUS_USAGE;
    }
    if (processes > 0)
        job_fork(&j, processes);
    peal_status status = job_join(&j);
    if (status == PEAL_STATUS_OK)
        status = prepare(s, j);
    if (status == PEAL_STATUS_OK)
        status = run(s);
    if (status == PEAL_STATUS_OK)
        status = report(s, j);
    peal_status outcome = release(s);
    status = status == PEAL_STATUS_OK ? outcome : status;
    if (status != PEAL_STATUS_OK && j.session)
        peal_session_print_diagnostics(j.session, stderr, 0);
    if (status != PEAL_STATUS_OK)
        fprintf(stderr, "waves: %s\n", peal_status_name(status));
    peal_session_destroy(j.session);
    return (int)status;
}
