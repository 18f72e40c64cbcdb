/* order=grid: a barrier of all blocks before each work item.
 *
 * Partitions are fixed, as in tiles.c, and the kernel is the same one. But every partition waits
 * until all blocks of the rank are through with all older work items, so each work item begins as a
 * kernel of its own would.
 *
 * Invariants: codegen/device/dispatch_tiles.h. All blocks are resident, or the barrier would never
 * be passed: the kernel is launched as a cooperative one.
 *
 * Where it comes from: Xiao and Feng, "Inter-block GPU communication via fast barrier
 * synchronization" (IPDPS 2010). Theirs has a master block that collects and releases; here every
 * block reads all epochs, which the dataflow needs anyway.
 *
 * When to use it: to measure what dataflow between tiles gains, and to find the part at fault when
 * a fused run fails: if grid is right and tiles is not, a footprint is missing. */
#include "backends/cuda/fused/dispatchers/dispatcher.h"

const peal_cuda_dispatcher peal_cuda_dispatcher_grid = {
    .name = "grid",
    .device_header = "dispatch_tiles",
    .serves_alone = true,
    .workers = peal_cuda_fused_blocks,
    .is_fixed = true,
    .has_dynamic_tiles = true,
    .has_services = true,
    .has_barrier = true,
    .has_parts = true,
    .most_rounds = peal_cuda_fused_rounds_of_epochs,
    .start = peal_cuda_fused_start_once,
};
