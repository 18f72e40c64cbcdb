/* What the halo peers with a thread or a process a GPU share: the streams of a rank, a round (the
 * exchange beside the interior), and its graph. */
#ifndef PEAL_BENCH_GPU_HALO_RANK_CUH
#define PEAL_BENCH_GPU_HALO_RANK_CUH

#include "../gpu/halo_measure.cuh"

/* Made once, for all cases. */
typedef struct halo_streams {
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
} halo_streams;

/* What the state of a case begins with. */
typedef struct halo_one {
    halo_stage stage;
    halo_rank r;
    halo_streams on;
} halo_one;

static inline halo_streams halo_open_streams(void)
{
    halo_streams on;
    GPU(cudaStreamCreateWithFlags(&on.stream, cudaStreamNonBlocking));
    GPU(cudaStreamCreateWithFlags(&on.side, cudaStreamNonBlocking));
    GPU(cudaEventCreateWithFlags(&on.fork, cudaEventDisableTiming));
    GPU(cudaEventCreateWithFlags(&on.join, cudaEventDisableTiming));
    return on;
}

static inline void halo_one_open(halo_one *one, const halo_problem *problem, int rank,
                                 const halo_streams *on)
{
    one->on = *on;
    one->stage.stream = on->stream;
    halo_plan(&one->r, problem, rank);
}

/* Before and after the exchange of a round. */
static inline void halo_one_begin(halo_one *one)
{
    if (one->r.problem.interior_us > 0) {
        GPU(cudaEventRecord(one->on.fork, one->on.stream));
        GPU(cudaStreamWaitEvent(one->on.side, one->on.fork, 0));
        halo_interior(&one->r.problem, one->on.side);
    }
}

static inline void halo_one_end(halo_one *one)
{
    halo_advance(&one->r, one->on.stream);
    if (one->r.problem.interior_us > 0) {
        GPU(cudaEventRecord(one->on.join, one->on.side));
        GPU(cudaStreamWaitEvent(one->on.stream, one->on.join, 0));
    }
}

static inline cudaGraphExec_t halo_one_record(halo_stage *stage, int way,
                                              void (*round)(halo_stage *stage, int way))
{
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    GPU(cudaStreamBeginCapture(stage->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < HALO_ROUNDS; i++) {
        round(stage, way);
    }
    GPU(cudaStreamEndCapture(stage->stream, &graph));
    GPU(cudaGraphInstantiate(&replay, graph, 0));
    GPU(cudaGraphDestroy(graph));
    return replay;
}

static inline void halo_one_advance(halo_stage *stage, bool advances)
{
    ((halo_one *)stage)->r.advances = advances;
}

static inline void halo_one_finish(halo_stage *stage)
{
    GPU(cudaStreamSynchronize(stage->stream));
}

static inline void halo_one_fill(halo_stage *stage, uint64_t salt)
{
    halo_start(&((halo_one *)stage)->r, salt);
}

static inline uint64_t halo_one_wrong(halo_stage *stage, uint64_t salt, long rounds)
{
    return halo_wrong(&((halo_one *)stage)->r, salt, rounds);
}

#endif
