/* What blocks of the kernel read and write in a work item, and whether two of them have to be
 * ordered. */
#ifndef PEAL_CUDA_BLOCK_FOOTPRINT_H
#define PEAL_CUDA_BLOCK_FOOTPRINT_H

#include "backends/cuda/fused/fused.h"

enum { PEAL_CUDA_REGIONS = 512 };

/* A part of what one block touches. */
typedef struct peal_cuda_region {
    int space;
    bool write;
    int lo[PEAL_AXES], hi[PEAL_AXES];
    CUdeviceptr word; /* as of peal_cuda_touch */
} peal_cuda_region;

typedef struct peal_cuda_block_footprint {
    peal_cuda_region *region;
    int count;
    int written, own; /* the first `written` are those that it writes itself, those before `own`
                         that it reads, and messages write the others */
    const CUdeviceptr *awaited; /* words that the partition waits for itself */
    int awaited_count;
    bool works;      /* the partition has blocks */
    bool everywhere; /* it touches too much to tell what */
} peal_cuda_block_footprint;

/* Of a partition of a work item; sets which messages it waits for. scratch: PEAL_CUDA_REGIONS. */
void peal_cuda_block_footprint_find(const peal_cuda_work_item *item,
                                    peal_fused_partition *partition, peal_cuda_region *scratch,
                                    peal_arena *arena, peal_cuda_block_footprint *out);
/* What several blocks touch together: a hull for each space. scratch: a region for each space. */
void peal_cuda_block_footprint_join(const peal_cuda_block_footprint *of, unsigned count,
                                    peal_cuda_region *scratch, peal_arena *arena,
                                    peal_cuda_block_footprint *out);
/* Whether one has to wait for the other. A partition that waits for a message itself need not wait
 * for another one that did, since messages arrive in order. Two that only wait for messages are not
 * ordered. */
bool peal_cuda_block_footprints_meet(const peal_cuda_block_footprint *a,
                                     const peal_cuda_block_footprint *b);

#endif
