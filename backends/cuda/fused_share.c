/* Shares: which blocks of a record's grid each block of the kernel runs. What is one block's work
 * is one of the last ones'; the others share the rest, each a contiguous part unless it is spread,
 * in the same way for grids of the same size. */
#include "backends/cuda/fused.h"

/* From so many tiles a block on, neighbouring tiles are run at a time, by neighbouring blocks: that
 * is kinder to memory (5-point relaxation of 16384^2 floats), and waiting for all blocks is short
 * beside it. */
enum { SPREAD_FROM = 16 };

void cuda_fused_spread(cuda_fused *fused, unsigned blocks)
{
    bool back = false;

    for (int r = 0; r < fused->count; r++) {
        cuda_record *record = &fused->record[r];
        record->spread = record->blocks > SPREAD_FROM * blocks;
        record->taken = record->spread && !fused->tickets;
        record->each = blocks > 0 ? (record->blocks + blocks - 1) / blocks : record->blocks;
        record->back = back;
        back ^= record->task && record->blocks > 1;
    }
}

/* Folds that others go on beside wait for what is not there yet, most of the time: each task's have
 * a block of their own, if there are so many. */
enum { MOST_SERVICES = 4, BLOCKS_A_SERVICE = 16 };

void cuda_fused_serve(cuda_fused *fused, unsigned blocks)
{
    int task[MOST_SERVICES], most = fused->tickets ? 1 : (int)(blocks / BLOCKS_A_SERVICE);

    most = most < 1 ? 1 : most > MOST_SERVICES ? MOST_SERVICES : most;
    fused->services = 0;
    for (int r = 0; r < fused->count; r++) {
        cuda_record *record = &fused->record[r];
        int i = 0;
        record->service = 0;
        if (record->blocks > 1 || record->serves < 0)
            continue;
        while (i < fused->services && task[i] != record->serves)
            i++;
        if (i == fused->services && i < most)
            task[fused->services++] = record->serves;
        record->service = i % most;
    }
    fused->services = fused->services > 0 ? fused->services : 1;
}

peal_fused_share cuda_fused_share(const cuda_fused *fused, const cuda_record *record,
                                  unsigned block)
{
    unsigned services = (unsigned)fused->services, blocks = record->blocks;
    unsigned workers = fused->grid > services ? fused->grid - services : 1;
    peal_fused_share share = {.stride = 1};

    if (blocks == 1 || fused->grid == 1) {
        share.count = block == fused->grid - 1 - (unsigned)record->service ? blocks : 0;
    } else if (block >= workers) {
        share.count = 0;
    } else if (record->taken || (record->spread && blocks > workers)) {
        share.first = block;
        share.stride = workers;
        share.count = block < blocks ? (blocks - block + workers - 1) / workers : 0;
    } else if (blocks <= workers) {
        share.first = block;
        share.count = block < blocks;
    } else {
        share.first = (unsigned)((uint64_t)block * blocks / workers);
        share.count = (unsigned)((uint64_t)(block + 1) * blocks / workers) - share.first;
    }
    return share;
}
