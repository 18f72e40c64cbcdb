/* Rows about dependences between tiles within a GPU: a chain of empty tiles, and levels of them of
 * which each needs its neighbours of the level before; by words in the L2 cache, a hop each, and as
 * nodes of graphs. (A grid barrier a level is a row of rows_launches.cu, as is a chain of nodes.)
 */
#include "../../backends/cuda/codegen/device/memory.h"
#include "primitives.cuh"

enum { WIDTH = 132, TILE_THREADS = 256, APART = 32 }; /* words between two that are polled */

/* Words only grow, from row to row: what they hold when the next launch begins. */
static unsigned *words;
static unsigned chain_begin, level_begin;

static void open_words(void)
{
    if (!words) {
        GPU(cudaMalloc(&words, 2 * WIDTH * APART * sizeof(unsigned)));
    }
    GPU(cudaMemset(words, 0, 2 * WIDTH * APART * sizeof(unsigned)));
    GPU(cudaDeviceSynchronize());
    chain_begin = level_begin = 0;
}

static __device__ void await_word(const unsigned *word, unsigned value)
{
    while ((int)(peal_ld_acquire_gpu_(word) - value) < 0) {
    }
}

/* Tile i is block i % blocks's and waits for tile i - 1. */
__global__ void tile_chain(unsigned *word, unsigned begin, int count)
{
    const unsigned *before = word + (blockIdx.x + gridDim.x - 1) % gridDim.x * APART;
    for (int i = blockIdx.x; i < count; i += gridDim.x) {
        if (threadIdx.x == 0) {
            await_word(before, begin + i);
        }
        __syncthreads(); /* in front of the tile, and behind it */
        __syncthreads();
        if (threadIdx.x == 0) {
            peal_st_release_gpu_(word + blockIdx.x * APART, begin + i + 1);
        }
    }
}

/* Tile i of a level is block i's, and waits for those beside it. */
__global__ void tile_levels(unsigned *word, unsigned begin, int count)
{
    const unsigned left = blockIdx.x > 0 ? blockIdx.x - 1 : blockIdx.x;
    const unsigned right = blockIdx.x + 1 < gridDim.x ? blockIdx.x + 1 : blockIdx.x;
    for (int level = 0; level < count; level++) {
        if (threadIdx.x < 2) {
            await_word(word + (threadIdx.x ? right : left) * APART, begin + level);
        }
        __syncthreads();
        __syncthreads();
        if (threadIdx.x == 0) {
            peal_st_release_gpu_(word + blockIdx.x * APART, begin + level + 1);
        }
    }
}

/* r->a: blocks, all resident; r->b: threads of a block. */
static void enqueue_words(const row *r, const void *kernel, unsigned *word, unsigned *begin,
                          int count, cudaStream_t stream)
{
    void *parameter[] = {&word, begin, &count};
    GPU(cudaLaunchCooperativeKernel(kernel, dim3((unsigned)r->a), dim3((unsigned)r->b), parameter,
                                    0, stream));
    *begin += (unsigned)count;
}

static void enqueue_chain(const void *argument, int count, cudaStream_t stream)
{
    const row *r = (const row *)argument;
    /* Whole turns, so that the last tile is the last block's. */
    enqueue_words(r, (const void *)tile_chain, words, &chain_begin, count * (int)r->a, stream);
}

static double chain(const row *r)
{
    const int turns = 40000 / (int)r->a;
    open_words();
    return gpu_stream_slope(0, enqueue_chain, r, turns / 10, turns) / (double)r->a;
}

static void enqueue_levels(const void *argument, int count, cudaStream_t stream)
{
    enqueue_words((const row *)argument, (const void *)tile_levels, words + WIDTH * APART,
                  &level_begin, count, stream);
}

static double levels(const row *r)
{
    open_words();
    return gpu_stream_slope(0, enqueue_levels, r, 1000, 21000);
}

/* ---- graphs ---- */

__global__ void empty_tile(void)
{
}

static void enqueue_level_nodes(const void *argument, int count, cudaStream_t stream)
{
    const row *r = (const row *)argument;
    for (int i = 0; i < count; i++) {
        empty_tile<<<(unsigned)r->a, (unsigned)r->b, 0, stream>>>();
    }
    GPU(cudaGetLastError());
}

static double level_nodes(const row *r)
{
    return gpu_graph_slope(0, enqueue_level_nodes, r, 100, 600);
}

/* A node a tile: WIDTH nodes a level, each behind up to three of the level before. */
static cudaGraphExec_t make_tile_nodes(int count)
{
    static cudaGraphNode_t node[2][WIDTH];
    cudaKernelNodeParams params = {};
    cudaGraphExec_t replay;
    cudaGraph_t graph;
    void *none[1] = {NULL};
    params.func = (void *)empty_tile;
    params.gridDim = dim3(1, 1, 1);
    params.blockDim = dim3(TILE_THREADS, 1, 1);
    params.kernelParams = none;
    GPU(cudaGraphCreate(&graph, 0));
    for (int level = 0; level < count; level++) {
        for (int i = 0; i < WIDTH; i++) {
            const int first = i > 0 ? i - 1 : 0, last = i + 1 < WIDTH ? i + 1 : i;
            GPU(cudaGraphAddKernelNode(&node[level % 2][i], graph, &node[1 - level % 2][first],
                                       level > 0 ? (size_t)(last - first + 1) : 0, &params));
        }
    }
    GPU(cudaGraphInstantiate(&replay, graph, 0));
    GPU(cudaGraphDestroy(graph));
    return replay;
}

static double replay_us(cudaGraphExec_t replay)
{
    enum { TIMES = 5 };
    double us[TIMES];
    float ms;
    for (int i = 0; i < TIMES; i++) {
        GPU(cudaEventRecord(device[0].begin, device[0].stream[0]));
        GPU(cudaGraphLaunch(replay, device[0].stream[0]));
        GPU(cudaEventRecord(device[0].end, device[0].stream[0]));
        GPU(cudaEventSynchronize(device[0].end));
        GPU(cudaEventElapsedTime(&ms, device[0].begin, device[0].end));
        us[i] = ms * 1e3;
    }
    GPU(cudaGraphExecDestroy(replay));
    return gpu_median(us, TIMES);
}

static double tile_nodes(const row *r)
{
    enum { LOW = 4, HIGH = 12 };
    (void)r;
    return (replay_us(make_tile_nodes(HIGH)) - replay_us(make_tile_nodes(LOW))) / (HIGH - LOW);
}

static void tile_row(row_measure *measure, const char *name, long blocks, long threads)
{
    row *r = row_add(1, "us", measure, 0, "%s", name);
    r->a = blocks;
    r->b = threads;
}

void rows_add_tiles(void)
{
    tile_row(chain, "tiles: a hop of a chain, 132 blocks of 1 thread, L2 words", WIDTH, 1);
    tile_row(chain, "tiles: a hop of a chain, 132 blocks of 256, L2 words", WIDTH, TILE_THREADS);
    tile_row(chain, "tiles: a hop of a chain, 2 blocks of 256, L2 words", 2, TILE_THREADS);
    tile_row(levels, "tiles: a level of 132 with neighbours, L2 words", WIDTH, TILE_THREADS);
    tile_row(level_nodes, "tiles: a level of 132, one graph node", WIDTH, TILE_THREADS);
    tile_row(tile_nodes, "tiles: a level of 132, a graph node a tile", WIDTH, TILE_THREADS);
}
