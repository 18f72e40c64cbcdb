/* order=tiles, the default: dataflow between tiles.
 *
 * Each block has a fixed partition of every work item and walks the list of work items. Before a
 * partition it waits for the blocks that touch the same memory, and for the messages that its tiles
 * need, but never for all blocks unless the work item asks for that. So blocks are at different
 * steps: a block whose neighbours are done goes on while others still wait for a message.
 *
 * Invariants: codegen/device/dispatch_tiles.h, which has the kernel. block_deps.c finds who waits
 * for whom, from the footprints of tiles (footprint.c).
 *
 * Where it comes from: a persistent kernel whose blocks walk a list of work is that of Gupta,
 * Stuart and Owens, "A study of persistent threads style GPU programming for GPGPU workloads"
 * (InPar 2012). In the place of their queue, each block knows from the schedule which blocks it
 * depends on, as tasks do in a dataflow runtime. It is the only one here whose folds may be steps
 * behind.
 *
 * When to use it: everywhere, unless tiles differ much in their work (tickets). */
#include "backends/cuda/fused/dispatchers/dispatcher.h"

const peal_cuda_dispatcher peal_cuda_dispatcher_tiles = {
    .name = "tiles",
    .device_header = "dispatch_tiles",
    .has_reduction_ring = true,
    .serves_alone = true,
    .workers = peal_cuda_fused_blocks,
    .is_fixed = true,
    .has_dynamic_tiles = true,
    .has_services = true,
    .has_parts = true,
    .most_rounds = peal_cuda_fused_rounds_of_epochs,
    .start = peal_cuda_fused_start_once,
};
