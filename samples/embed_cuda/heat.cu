/* A CUDA program that gives peal a whole plan: its own kernel and a call of CUB are tasks of the
 * graph, its own memory holds the plate, and its own stream goes before and after each start.
 *
 * Heat spreads over a plate whose walls are kept at 0. It starts from a few waves; of each it is
 * known exactly how a step dampens it. Before each of four starts the program's stream doubles the
 * plate; after each, without the host waiting, it takes a copy of what the plan has left.
 *
 *     heat [--mode stream|graph|sync|auto] [--processes N] */
#include "job.cuh"

#include <cub/device/device_reduce.cuh>
#include <peal/graph.h>
#include <peal/plan.h>
#include <thrust/iterator/counting_iterator.h>

#include <math.h>

enum { POINTS = 240, WAVES = 3, STARTS = 4, STEPS = 128 };
static const double rate = 0.2;

struct plate {
    int first, end;         /* rows of this process */
    double *u[2] = {};      /* lent to peal: own rows and a halo of one point all around */
    double *copy = nullptr; /* STARTS times u */
    cudaStream_t stream = nullptr;
    void *scratch = nullptr; /* CUB's */
    size_t scratch_bytes = 0;
};

static size_t stored(const plate &p)
{
    return (size_t)(p.end - p.first + 2) * (POINTS + 2);
}

/* The plate at (x, y) after so many steps, known from the waves alone. */
static double waves_at(int x, int y, int steps)
{
    const double pi = 3.14159265358979323846;
    double sum = 0;
    for (int p = 1; p <= WAVES; p++)
        for (int q = 1; q <= WAVES; q++) {
            double a = p * pi / (POINTS + 1), b = q * pi / (POINTS + 1);
            double loss = 4.0 * rate * (sin(0.5 * a) * sin(0.5 * a) + sin(0.5 * b) * sin(0.5 * b));
            sum += sin(a * (x + 1)) * sin(b * (y + 1)) * pow(1.0 - loss, steps);
        }
    return sum;
}

/* Task: v becomes u, one step later. Any grid does all of the tile. */
__global__ void spread(peal_device_call call)
{
    const int *lo = call.tile.lo, *hi = call.tile.hi;
    int64_t width = hi[0] - lo[0], points = width * (hi[1] - lo[1]);
    int64_t next = call.view[0].stride[1];
    double share = call.argument[0].real;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < points;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t x = lo[0] + i % width, y = lo[1] + i / width;
        const double *u = (const double *)call.view[0].base + x + y * next;
        double *v = (double *)call.view[1].base + x + y * call.view[1].stride[1];
        *v = *u + share * (u[-1] + u[1] + u[-next] + u[next] - 4.0 * *u);
    }
}

/* The program's own kernel, outside the plan. */
__global__ void twice(double *u, size_t count)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count)
        u[i] *= 2.0;
}

/* The square of point i of a tile. */
struct square_at {
    const double *base;
    int64_t stride, width, x0, y0;
    __host__ __device__ double operator()(int64_t i) const
    {
        double value = base[x0 + i % width + (y0 + i / width) * stride];
        return value * value;
    }
};

/* Task: CUB adds up the squares of the tile. It puts its kernels onto the stream it is given. */
static peal_status add_up(void *stream, const peal_call *call)
{
    const plate *p = (const plate *)call->user;
    const peal_tile *tile = &call->tile;
    const peal_view *u = &call->view[0];
    square_at square = {(const double *)u->base, u->stride[1], tile->hi[0] - tile->lo[0],
                        tile->lo[0], tile->lo[1]};
    int count = (tile->hi[0] - tile->lo[0]) * (tile->hi[1] - tile->lo[1]);
    size_t bytes = p->scratch_bytes;
    CUDA(
        cub::DeviceReduce::TransformReduce(p->scratch, bytes, thrust::counting_iterator<int64_t>(0),
                                           (double *)call->view[1].base, count, cuda::std::plus<>{},
                                           square, 0.0, (cudaStream_t)stream));
    return PEAL_STATUS_OK;
}

static void declare_arrays(peal_graph *g, const plate &p)
{
    peal_topology_desc topology = {};
    topology.size_bytes = sizeof(topology);
    topology.source = PEAL_HERE;
    topology.dims = "[1, auto]";
    peal_graph_set_topology_desc(g, &topology);
    for (int k = 0; k < 2; k++) {
        peal_field_desc field = {};
        field.size_bytes = sizeof(field);
        field.source = PEAL_HERE;
        field.name = k ? "v" : "u";
        field.size = "[240, 240]";
        field.halo = "1";
        field.data = p.u[k];
        peal_graph_add_field_desc(g, &field);
    }
    peal_buffer_desc sum = {};
    sum.size_bytes = sizeof(sum);
    sum.source = PEAL_HERE;
    sum.name = "sum";
    sum.keep = true;
    peal_graph_add_buffer_desc(g, &sum);
}

static peal_status declare_spread(peal_graph *g)
{
    cudaFunction_t function = nullptr;
    CUDA(cudaGetFuncBySymbol(&function, (const void *)spread));
    peal_task_desc task = {};
    task.size_bytes = sizeof(task);
    task.source = PEAL_HERE;
    task.name = "spread";
    task.cuda_function = function;
    task.box.name = "u";
    task.read[0].name = "u";
    task.read[0].star = "1";
    task.write[0].name = "v";
    task.args[0] = "0.2";
    peal_graph_add_task_desc(g, &task);
    return PEAL_STATUS_OK;
}

/* Every 128th step: CUB on each rank, then the sum over the ranks. */
static void declare_sum(peal_graph *g, plate &p)
{
    peal_task_desc task = {};
    task.size_bytes = sizeof(task);
    task.source = PEAL_HERE;
    task.name = "add_up";
    task.enqueue = add_up;
    task.user = &p;
    task.tile = "whole";
    task.box.name = "u";
    task.read[0].name = "u";
    task.write[0].name = "sum";
    task.write[0].whole = true;
    task.when = "step % 128 == 127";
    peal_graph_add_task_desc(g, &task);
    peal_rank_reduce_desc total = {};
    total.size_bytes = sizeof(total);
    total.source = PEAL_HERE;
    total.reduce[0].name = "sum";
    total.reduce[0].combine = "sum";
    total.when = "step % 128 == 127";
    peal_graph_add_allreduce_desc(g, &total);
}

static peal_status build(peal_graph *g, plate &p)
{
    declare_arrays(g, p);
    peal_loop_desc loop = {};
    loop.size_bytes = sizeof(loop);
    loop.source = PEAL_HERE;
    loop.repeat = "512";
    peal_graph_set_loop_desc(g, &loop);
    peal_graph_begin(g, PEAL_STEP);
    peal_exchange_desc exchange = {};
    exchange.size_bytes = sizeof(exchange);
    exchange.source = PEAL_HERE;
    exchange.exchange[0].name = "u";
    exchange.exchange[0].star = "1";
    peal_graph_add_exchange_desc(g, &exchange);
    PEAL(declare_spread(g));
    peal_swap_desc swap = {};
    swap.size_bytes = sizeof(swap);
    swap.source = PEAL_HERE;
    swap.swap[0] = "u";
    swap.swap[1] = "v";
    peal_graph_add_swap_desc(g, &swap);
    declare_sum(g, p);
    peal_graph_end(g);
    return PEAL_STATUS_OK; /* what is wrong with the graph, peal_graph_compile says */
}

/* Memory, first contents, and a first call of everything that would load or allocate later. */
static peal_status prepare(plate &p, const job &j)
{
    int rows = POINTS / j.processes, longer = POINTS % j.processes;
    p.first = j.process * rows + (j.process < longer ? j.process : longer);
    p.end = p.first + rows + (j.process < longer);
    size_t bytes = stored(p) * sizeof(double);
    double *host = (double *)calloc(stored(p), sizeof(double)), *sum = nullptr;
    for (int y = p.first; y < p.end; y++)
        for (int x = 0; x < POINTS; x++)
            host[(size_t)(y - p.first + 1) * (POINTS + 2) + (size_t)x + 1] = waves_at(x, y, 0);
    CUDA(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc(&p.u[0], bytes));
    CUDA(cudaMalloc(&p.u[1], bytes));
    CUDA(cudaMalloc(&p.copy, STARTS * bytes));
    CUDA(cudaMalloc(&sum, sizeof(*sum)));
    CUDA(cudaMemcpy(p.u[0], host, bytes, cudaMemcpyHostToDevice));
    CUDA(cudaMemset(p.u[1], 0, bytes));
    free(host);
    peal_call call = {};
    call.user = &p;
    call.tile.hi[0] = POINTS;
    call.tile.hi[1] = p.end - p.first;
    call.view[0].base = p.u[0];
    call.view[0].stride[1] = POINTS + 2;
    call.view[1].base = sum;
    square_at square = {};
    CUDA(cub::DeviceReduce::TransformReduce(nullptr, p.scratch_bytes,
                                            thrust::counting_iterator<int64_t>(0), sum,
                                            POINTS * POINTS, cuda::std::plus<>{}, square, 0.0,
                                            p.stream));
    CUDA(cudaMalloc(&p.scratch, p.scratch_bytes));
    PEAL(add_up(p.stream, &call));
    twice<<<1, 1, 0, p.stream>>>(p.u[0], 0);
    CUDA(cudaStreamSynchronize(p.stream));
    CUDA(cudaFree(sum));
    return PEAL_STATUS_OK;
}

static peal_status run(plate &p, peal_plan *plan)
{
    size_t count = stored(p);
    for (int k = 0; k < STARTS; k++) {
        twice<<<(unsigned)((count + 255) / 256), 256, 0, p.stream>>>(p.u[0], count);
        CUDA(cudaGetLastError());
        peal_start start = {};
        start.size_bytes = sizeof(start);
        start.stream = p.stream; /* after the doubling */
        PEAL(peal_plan_start(plan, STEPS, &start));
        void *done = nullptr;
        PEAL(peal_plan_event(plan, &done));
        CUDA(cudaStreamWaitEvent(p.stream, (cudaEvent_t)done, 0));
        /* After an even number of swaps u is where it was. */
        CUDA(cudaMemcpyAsync(p.copy + (size_t)k * count, p.u[0], count * sizeof(double),
                             cudaMemcpyDeviceToDevice, p.stream));
        PEAL(peal_plan_wait(plan));
    }
    CUDA(cudaStreamSynchronize(p.stream));
    return peal_plan_finish(plan);
}

/* Whether the copies after each start, and the sum over all ranks, are what the waves foretell. */
static peal_status compare(const plate &p, const job &j, const peal_plan *plan, bool *right)
{
    size_t count = stored(p);
    double *host = (double *)malloc(STARTS * count * sizeof(double)), worst = 0, total = 0, sum = 0;
    CUDA(cudaMemcpy(host, p.copy, STARTS * count * sizeof(double), cudaMemcpyDeviceToHost));
    for (int k = 0; k < STARTS; k++)
        for (int y = p.first; y < p.end; y++)
            for (int x = 0; x < POINTS; x++) {
                double wave = pow(2.0, k + 1) * waves_at(x, y, (k + 1) * STEPS);
                size_t at = (size_t)(y - p.first + 1) * (POINTS + 2) + (size_t)x + 1;
                worst = fmax(worst, fabs(host[(size_t)k * count + at] - wave));
            }
    free(host);
    for (int y = 0; y < POINTS; y++)
        for (int x = 0; x < POINTS; x++) {
            double wave = pow(2.0, STARTS) * waves_at(x, y, STARTS * STEPS);
            sum += wave * wave;
        }
    peal_plan_array view;
    PEAL(peal_plan_view(plan, j.process, "sum", &view));
    CUDA(cudaMemcpy(&total, view.view.base, sizeof(total), cudaMemcpyDeviceToHost));
    *right = worst < 1e-9 && fabs(total - sum) < 1e-9 * sum;
    return PEAL_STATUS_OK;
}

static peal_status work(plate &p, const job &j, const char *mode)
{
    peal_graph *graph = nullptr;
    peal_plan *plan = nullptr;
    peal_plan_options options = {};
    bool right = false;
    options.size_bytes = sizeof(options);
    options.mode = mode;
    PEAL(prepare(p, j));
    PEAL(peal_graph_create("heat", &graph));
    peal_status status = build(graph, p);
    if (status == PEAL_STATUS_OK)
        status = peal_graph_compile(graph, j.session, &options, &plan);
    if (status == PEAL_STATUS_OK)
        status = run(p, plan);
    if (status == PEAL_STATUS_OK)
        status = compare(p, j, plan, &right);
    if (status == PEAL_STATUS_OK) {
        if (j.process == 0)
            printf("%d x %d points, %d steps, processes: %d, mode: %s\n", POINTS, POINTS,
                   STARTS * STEPS, j.processes, peal_mode_name(peal_plan_mode(plan)));
        printf("process %d of %d: the plate is %s\n", j.process, j.processes,
               right ? "as the waves foretold" : "wrong");
        fflush(stdout);
        status = right ? PEAL_STATUS_OK : PEAL_STATUS_WRONG_RESULT;
    }
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
    return status;
}

int main(int argc, char **argv)
{
    job j;
    plate p;
    const char *mode = job_option(argc, argv, "--mode", "auto");
    int processes = atoi(job_option(argc, argv, "--processes", "0"));
    if (processes > 0)
        job_fork(&j, processes);
    peal_status status = job_join(&j);
    if (status == PEAL_STATUS_OK)
        status = work(p, j, mode);
    if (status != PEAL_STATUS_OK && j.session)
        peal_session_print_diagnostics(j.session, stderr, 0);
    if (status != PEAL_STATUS_OK)
        fprintf(stderr, "heat: %s\n", peal_status_name(status));
    peal_session_destroy(j.session);
    cudaFree(p.u[0]);
    cudaFree(p.u[1]);
    cudaFree(p.copy);
    cudaFree(p.scratch);
    if (p.stream)
        cudaStreamDestroy(p.stream);
    return (int)status;
}
