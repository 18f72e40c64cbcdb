/* How ops become launches: chosen when a plan is created (../options.c), for all of its life. */
#ifndef PEAL_CUDA_LOWERING_H
#define PEAL_CUDA_LOWERING_H

#include <stdbool.h>
#include <stdint.h>

/* How WRITE and WAIT are enqueued (as part of a task's kernel, as a kernel of their own, as a
 * memory operation of the stream), and how copies are. */
typedef enum peal_cuda_signal {
    PEAL_CUDA_SIGNAL_FUSED,
    PEAL_CUDA_SIGNAL_KERNEL,
    PEAL_CUDA_SIGNAL_MEMOP
} peal_cuda_signal;
typedef enum peal_cuda_copy { PEAL_CUDA_COPY_KERNEL, PEAL_CUDA_COPY_ENGINE } peal_cuda_copy;
/* How `until` of the outermost loop ends a graph: unrolled steps that do nothing after the end, or
 * a WHILE node. */
typedef enum peal_cuda_until { PEAL_CUDA_UNTIL_UNROLL, PEAL_CUDA_UNTIL_WHILE } peal_cuda_until;
/* Who posts messages to other hosts: a thread, told by a word, or the stream itself; ANY: the
 * stream where it can. */
typedef enum peal_cuda_network {
    PEAL_CUDA_NETWORK_ANY,
    PEAL_CUDA_NETWORK_WORD,
    PEAL_CUDA_NETWORK_DOORBELL
} peal_cuda_network;
/* The most bytes that a block of a task copies for its messages, beside what each block stores of
 * its own points. Larger copies are a kernel of their own. */
enum { PEAL_CUDA_FUSED_COPY_BYTES = 12 << 10 };
/* Steps of a deep round, at most. */
enum { PEAL_CUDA_DEEPEST = 63 };
/* Blocks of a launch in a bundle, at most. */
enum { PEAL_CUDA_BUNDLED_BLOCKS = 64 };

typedef struct peal_cuda_options {
    peal_cuda_signal signal;
    peal_cuda_copy copy;
    peal_cuda_until until;
    peal_cuda_network network;
    bool rings;          /* messages to other hosts are rung for by the stream */
    int lanes;           /* 1: all on one stream; 2: messages on their own */
    bool folds_in_task;  /* the last block of a task's launch folds its partials */
    bool defers;         /* what nothing depends on yet may be deferred (defer.c) */
    bool launches_early; /* a kernel of a graph is launched while the one before still runs */
    int marks;           /* that the walk may be ahead of the device (lane.h) */
    int bundle; /* mode graph: the most blocks of a launch in a bundle (graph/bundle.c); 0: there
                   are none; -1: it is chosen */
    int steps;  /* the least number of steps in a graph; 0: not forced */
    int deep;   /* mode fused: most steps of a deep round (fused/deep.c); 1, 2: there are none;
                   0: it is chosen */
    const struct peal_cuda_dispatcher *dispatcher; /* mode fused (fused/dispatchers/) */
    int blocks;           /* mode fused: at most so many on an SM; 0: as many as it holds */
    int64_t plain_points; /* from so many points on, tiles that wait for nothing and send nothing
                             are a launch of a communication-free kernel */
    int64_t plain_flat_points;  /* the same limit for flat tiles (device/launch.h) */
    int64_t plain_light_points; /* the same limit for light tasks (jit/kernels.h) */
} peal_cuda_options;

#endif
