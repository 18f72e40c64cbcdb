/* Block partitions: which blocks of a work item's grid each block of the kernel runs. Work items of
 * one block go to one of the kernel's last blocks. The others share the rest, in the same way for
 * all grids of one size: each has a contiguous part, or every n-th block where the work item is
 * cyclic. */
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/codegen/task_traits.h"
#include "backends/cuda/fused/dispatchers/dispatcher.h"

/* From so many tiles a block on, a work item is cyclic: neighbouring blocks of the kernel run
 * neighbouring tiles at the same time, which uses memory better (5-point relaxation of 16384^2
 * floats). Such a work item waits for all blocks, which is short beside that many tiles. */
enum { CYCLIC_FROM = 16 };

void peal_cuda_partition_cyclic(peal_cuda_fused *fused, unsigned blocks)
{
    bool back = false;

    for (int r = 0; r < fused->count; r++) {
        peal_cuda_work_item *item = &fused->item[r];
        item->cyclic = item->blocks > CYCLIC_FROM * blocks;
        item->dynamic = item->cyclic && fused->dispatcher->has_dynamic_tiles;
        item->each = blocks > 0 ? (item->blocks + blocks - 1) / blocks : item->blocks;
        item->back = back;
        back ^= item->task && item->blocks > 1;
    }
}

/* A fold that other blocks do not wait for waits itself most of the time. So the folds of each task
 * have a block of their own, a service, if there are enough blocks; and so have work items of one
 * block that others do wait for. */
enum { MOST_SERVED_TASKS = 4, BLOCKS_A_SERVICE = 16 };

static bool has_singles(const peal_cuda_fused *fused)
{
    for (int r = 0; r < fused->count; r++)
        if (peal_cuda_is_single(&fused->item[r]))
            return true;
    return false;
}

int peal_cuda_partition_serve(peal_cuda_fused *fused, unsigned blocks)
{
    unsigned room = fused->dispatcher->has_services ? blocks / BLOCKS_A_SERVICE : 1;
    int first = room > 1 && has_singles(fused) ? 1 : 0, tasks = 0;
    int task[MOST_SERVED_TASKS];
    int most = room > MOST_SERVED_TASKS ? MOST_SERVED_TASKS : (int)room - first;

    most = most < 1 ? 1 : most;
    for (int r = 0; r < fused->count; r++) {
        peal_cuda_work_item *item = &fused->item[r];
        int i = 0;
        item->service = 0;
        if (item->blocks > 1 || item->serves < 0)
            continue;
        while (i < tasks && task[i] != item->serves)
            i++;
        if (i == tasks && i < most)
            task[tasks++] = item->serves;
        item->service = first + i % most;
    }
    fused->services = first + tasks > 0 ? first + tasks : 1;
    return fused->services;
}

/* Where blocks have several tiles, some of them run only the tiles of the border, and fewer of
 * them: so the tiles that wait for messages, and whose messages peers wait for, are done first. */
unsigned peal_cuda_partition_first_blocks(const peal_launch *launch, unsigned blocks)
{
    unsigned sending = 0, first = 0, boxes = 0;

    for (int i = 0; i < launch->write_count; i++)
        boxes |= launch->write[i].boxes;
    for (int b = 0; b < launch->box_count; b++)
        sending += boxes >> b & 1 ? launch->box[b].blocks : 0;
    for (int b = 0; b < launch->box_count; b++)
        if (boxes >> b & 1 && launch->box[b].first + launch->box[b].blocks <= sending)
            first += launch->box[b].blocks;
    return first == sending && sending < blocks ? sending : 0;
}

static uint64_t ceiling(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* How many blocks run the tiles of the border only: the smallest number that makes the slowest
 * block's work least, counted in tiles. 0: none, as where tiles are taken one by one. */
static unsigned border_workers(const peal_cuda_work_item *item, unsigned workers)
{
    uint64_t first = item->first_blocks, rest = item->blocks - first;
    unsigned best = 0;

    if (first == 0 || item->blocks <= workers || item->dynamic)
        return 0;
    /* What a wait, a flag and its fence cost, in tiles: by clock stamps on H200s. */
    uint64_t sending = peal_cuda_task_whole(item->task) == PEAL_WHOLE_FLAT ? 4 : 2;
    uint64_t least = ceiling(item->blocks, workers) + sending;
    for (unsigned own = 1; own <= workers / 3 && own <= first; own++) {
        uint64_t theirs = ceiling(first, own) + sending, others = ceiling(rest, workers - own);
        uint64_t most = theirs > others ? theirs : others;
        best = most < least ? own : best;
        least = most < least ? most : least;
    }
    return best;
}

/* The part of tiles [begin, begin + count) that one of so many workers has. */
static void cut_partition(const peal_cuda_work_item *item, unsigned begin, unsigned count,
                          unsigned worker, unsigned workers, peal_fused_partition *partition)
{
    partition->first = begin + (unsigned)((uint64_t)worker * count / workers);
    partition->count =
        begin + (unsigned)((uint64_t)(worker + 1) * count / workers) - partition->first;
    if (count <= workers || item->cyclic) {
        partition->first = begin + worker;
        partition->count = worker < count ? (count - worker + workers - 1) / workers : 0;
        partition->stride = count > workers ? workers : 1;
    }
}

peal_fused_partition peal_cuda_partition(const peal_cuda_fused *fused,
                                         const peal_cuda_work_item *item, unsigned block)
{
    unsigned services = (unsigned)fused->services, blocks = item->blocks;
    unsigned workers = fused->grid > services ? fused->grid - services : 1;
    peal_fused_partition partition = {.stride = 1};

    if (blocks == 1 || fused->grid == 1) {
        partition.count = block == fused->grid - 1 - (unsigned)item->service ? blocks : 0;
    } else if (block >= workers) {
        partition.count = 0;
    } else {
        unsigned first = item->first_blocks, own = border_workers(item, workers);
        if (own == 0)
            cut_partition(item, 0, blocks, block, workers, &partition);
        else if (block < own)
            cut_partition(item, 0, first, block, own, &partition);
        else
            cut_partition(item, first, blocks - first, block - own, workers - own, &partition);
    }
    return partition;
}
