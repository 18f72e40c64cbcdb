/* What suits GPUs of today, as the scheduler is told.
 *
 * A tile is a block's work: eight points for each of its 256 threads. Where there are partials,
 * blocks run the tiles as they are, so they are those that blocks are fastest at: whole tiles in
 * large boxes; else smaller ones, since a thread that may not load ahead waits for memory once a
 * point: one point a thread, and more where one wave of blocks would not do.
 *
 * In mode fused free tiles of three axes have as many rows as flat ones: they say no more than how
 * thick borders are, whose blocks all others wait for. In a box that all blocks compute at once
 * nothing is gained by borders that come first, and whole planes are fewer work items. Rows that
 * begin at lines of memory let threads side by side access whole lines, and pairs of points lie
 * alike in all rows. */
#include "backends/cuda/traits.h"
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/fused/fused.h"

enum { THREADS = 256, POINTS_OF_THREAD = 8, MEMORY_LINE = 128 };

#define SYNC   (1u << PEAL_MODE_SYNC)
#define STREAM (1u << PEAL_MODE_STREAM)
#define GRAPH  (1u << PEAL_MODE_GRAPH)
#define FUSED  (1u << PEAL_MODE_FUSED)

enum {
    MESSAGES = PEAL_NEEDS_MESSAGES,
    /* Of kernels that wait for flags; processes that share a GPU wait by memory operations. */
    FLAGS = PEAL_NEEDS_MESSAGES | PEAL_NEEDS_OWN_PROCESS | PEAL_NEEDS_OWN_DEVICE
};

/* docs/guide.md says what each does; order=paper is there to be compared with. A graph has no
 * memory operations where steps may be skipped. */
static const peal_variant variants[] = {
    {STREAM | GRAPH, "signal=kernel", FLAGS},
    {STREAM, "signal=memop", FLAGS},
    {GRAPH, "signal=memop", FLAGS | PEAL_NEEDS_NO_UNTIL},
    {SYNC, "copy=kernel", MESSAGES},
    {STREAM, "copy=engine", MESSAGES},
    {GRAPH, "copy=engine", MESSAGES | PEAL_NEEDS_NO_UNTIL},
    {STREAM, "network=word", MESSAGES | PEAL_NEEDS_RINGS},
    {STREAM | GRAPH, "lanes=1", MESSAGES},
    {STREAM | GRAPH, "lanes=2", MESSAGES},
    {STREAM | GRAPH, "plain=65536", 0},
    {STREAM | GRAPH, "plain=4194304", 0},
    {GRAPH, "until=while", PEAL_NEEDS_UNTIL | PEAL_NEEDS_OWN_DEVICE},
    {GRAPH, "steps=16", 0},
    {GRAPH | FUSED, "steps=256", 0},
    {FUSED, "order=tickets", 0},
    {FUSED, "order=grid", 0},
    {FUSED, "deep=1", 0},
    {FUSED, "blocks=1", 0},
    {FUSED, "blocks=2", 0},
    {STREAM | GRAPH | FUSED, "tile=1024", PEAL_NEEDS_FREE_TILES},
    {STREAM | GRAPH | FUSED, "tile=8192", PEAL_NEEDS_FREE_TILES},
};

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
    .fused_box = 1 << 20,
    .fused_points = 1 << 13,
    .dynamic_tiles = 1 << 12,
    .most_boxes = PEAL_CUDA_SHAPED_BOXES,
    .repeats_fused = true,
    .folds_aside = true,
    .variants = variants,
    .variant_count = sizeof(variants) / sizeof(variants[0]),
};
