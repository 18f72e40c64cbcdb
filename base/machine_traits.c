/* Traits of machines in general. A backend that knows its hardware better has its own. */
#include <peal/plugin/machine.h>

enum { ALL = 1u << PEAL_MODE_SYNC | 1u << PEAL_MODE_STREAM | 1u << PEAL_MODE_FUSED };

static const peal_variant host_variants[] = {
    {ALL, "tile=4096", PEAL_NEEDS_FREE_TILES},
    {ALL, "tile=65536", PEAL_NEEDS_FREE_TILES},
};

const peal_machine_traits peal_traits_host = {
    .size = sizeof(peal_machine_traits),
    .tile_points = 16384,
    .variants = host_variants,
    .variant_count = sizeof(host_variants) / sizeof(host_variants[0]),
};

/* backends/cuda/traits.c says why; tests/backends/cuda_traits.c compares. */
const peal_machine_traits peal_traits_accelerator = {
    .size = sizeof(peal_machine_traits),
    .tile_points = 2048,
    .large_box = 1 << 19,
    .large_tile = {[2] = {128, 16, 1, 1}, [3] = {64, 4, 8, 1}},
    .small_tile = {[2] = {64, 4, 1, 1}, [3] = {64, 4, 1, 1}},
    .wave = 200,
    .most_grow = 8,
    .row_bytes = 128,
    .fused_rows = 8,
    .fused_box = 1 << 20,
    .fused_points = 1 << 13,
    .dynamic_tiles = 1 << 12,
    .most_boxes = 4,
    .repeats_fused = true,
    .folds_aside = true,
};

const peal_machine_traits *peal_machine_traits_of(const peal_machine *machine)
{
    return machine->traits        ? machine->traits
           : machine->accelerator ? &peal_traits_accelerator
                                  : &peal_traits_host;
}
