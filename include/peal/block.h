/* Block functions that are compiled elsewhere: by nvcc, or whatever else makes LTO-IR.
 *
 * A file of `kernels:` (peal_graph_add_kernels) whose name ends in .fatbin, .ltoir, .cubin or .o is
 * device code. peal links it with its own code (nvJitLink), and calls its functions for the tasks
 * whose kernel no C file of the list defines; on a GPU, in every mode. With
 *
 *     - {task: relax, box: u, read: u, write: v, reduce: {s: sum}, args: [0.25, 3]}
 *
 * it calls
 *
 *     extern "C" __device__ void relax(const peal_block *block,
 *                                      const float *u, peal_block_strides u_strides,
 *                                      float *v, peal_block_strides v_strides,
 *                                      double *s, double weight, long rows);
 *
 * that is: the tile; a pointer and strides for each of read, update and write, in the order in
 * which the task lists them; a pointer for each reduction; then the arguments, integers as long,
 * reals as double. To make it:
 *
 *     nvcc -arch=sm_90 -rdc=true -dlto -fmad=false -fatbin -o relax.fatbin relax.cu
 *
 * - All 256 threads of a block call the function, once for each tile, in any order and number of
 *   tiles. A thread takes its part by block->thread; threadIdx and blockIdx are peal's.
 * - Point (x, y, z, w) of an array is u[x + y * s.y + z * s.z + w * s.w]: points have the
 *   coordinates that they have in the spec. Beyond the tile only what the task's footprints say may
 *   be read, and only the tile's points be written (as kernels in C).
 * - A reduction's pointer is to a value of this thread alone, which is 0 before: store there what
 *   its points come to (a thread without points: what changes nothing). peal joins the threads.
 * - __syncthreads may be called where all threads come; neither exit nor trap. Load by plain loads:
 *   a halo may have been written by another GPU a moment ago (no __ldg, no textures).
 * - -fmad=false and no other fast mathematics: with contraction results differ from the host's. */
#ifndef PEAL_BLOCK_H
#define PEAL_BLOCK_H

typedef struct peal_block {
    int lo[4], hi[4];       /* the tile's points: lo <= p < hi, x first; axes that are not: 0, 1 */
    long long index, count; /* which tile of the task's, and of how many */
    int thread, threads;    /* the caller's number, and how many call */
} peal_block;

/* Distances between neighbours in elements; along x it is 1. */
typedef struct peal_block_strides {
    long long y, z, w;
} peal_block_strides;

#endif
