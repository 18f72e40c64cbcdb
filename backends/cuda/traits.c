/* What suits GPUs of today, as the scheduler is told.
 *
 * A tile is a block's work: eight points for each of its 256 threads. Where there are partials,
 * blocks run the tiles as they are, so they are those that blocks are fastest at: whole tiles in
 * large boxes; else smaller ones, since a thread that may not load ahead waits for memory once a
 * point: one point a thread, and more where one wave of blocks would not do.
 *
 * In mode fused free tiles of three axes have as many rows as flat ones: they say no more than how
 * thick borders are, whose blocks all others wait for. Rows that begin at lines of memory let
 * threads side by side access whole lines, and pairs of points lie alike in all rows. */
#include "backends/cuda/traits.h"
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/fused/fused.h"

enum { THREADS = 256, POINTS_OF_THREAD = 8, MEMORY_LINE = 128 };

const peal_machine_traits peal_cuda_traits = {
    .size = sizeof(peal_machine_traits),
    .tile_points = THREADS * POINTS_OF_THREAD,
    .large_box = 1 << 19,
    .large_tile = {[2] = {PEAL_WHOLE_2_X, PEAL_WHOLE_2_Y, 1, 1},
                   [3] = {PEAL_WHOLE_3_X, PEAL_WHOLE_3_Y, PEAL_WHOLE_3_Z, 1}},
    .small_tile = {[2] = {64, THREADS / 64, 1, 1}, [3] = {64, THREADS / 64, 1, 1}},
    .wave = 200,
    .most_grow = 8,
    .row_bytes = MEMORY_LINE,
    .fused_rows = PEAL_WHOLE_FLAT_Y,
    .dynamic_tiles = 1 << 12,
    .most_boxes = PEAL_CUDA_SHAPED_BOXES,
    .repeats_fused = true,
    .folds_aside = true,
};
