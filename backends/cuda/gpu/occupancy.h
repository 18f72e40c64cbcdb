/* How many blocks of a kernel an SM holds. The arithmetic needs no GPU. */
#ifndef PEAL_CUDA_OCCUPANCY_H
#define PEAL_CUDA_OCCUPANCY_H

/* What an SM has. */
typedef struct peal_cuda_sm {
    int architecture; /* 90: sm_90 */
    int threads, blocks;
    int shared_bytes; /* for all its blocks */
    int shared_block; /* taken by each block for the system */
} peal_cuda_sm;

/* What one block of a kernel takes of it. */
typedef struct peal_cuda_block_needs {
    int threads;      /* of the block */
    int registers;    /* of a thread */
    int shared_bytes; /* of the block */
} peal_cuda_block_needs;

/* NULL: the architecture is not known. */
const peal_cuda_sm *peal_cuda_sm_find(int architecture);

/* Blocks that an SM holds. *limit says why no more: "registers", "shared memory", "threads" or
 * "blocks". */
int peal_cuda_sm_blocks(const peal_cuda_sm *sm, const peal_cuda_block_needs *needs,
                        const char **limit);

/* The most registers of a thread with which `blocks` blocks of `threads` fit. */
int peal_cuda_sm_budget(int threads, int blocks);

/* The architecture of the first device, if there is one that is known, else 90. */
int peal_cuda_default_architecture(void);

#endif
