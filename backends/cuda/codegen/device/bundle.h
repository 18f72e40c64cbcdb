/* The kernel of a bundle (graph/bundle.c): small launches that follow each other on a lane, run by
 * one block, one after the other. A barrier lies between two of them, where a graph has the end of
 * a kernel and the begin of the next one (bench/EXPERIMENTS.md, "Bundles").
 *
 * Its unit is like that of mode fused. Tasks are run by functions whose shape the compiler knows
 * (shaped.h); these neither wait for messages nor send any. Folds, scalars and rows read all of
 * their launch, and wait and send by themselves. What items load and store goes through the cache
 * of one SM, so a barrier orders it; flags between devices are as in other modes (run.h). The next
 * launch is copied to shared memory while one runs.
 *
 * The kernel's own launch has the address of the first item in base[0], how many there are in
 * argument[0].integer, `next_whole` of the first in argument[1].integer, and in view[0] where
 * peal_given_up of the plan's other kernels is. */
#ifndef PEAL_DEVICE_BUNDLE_H
#define PEAL_DEVICE_BUNDLE_H

#include "peal/fused.h"

/* A slot of mode fused begins like that. */
struct peal_bundle_item_ {
    peal_launch launch;
    peal_bundle_rest rest;
};
static_assert(sizeof(peal_bundle_item_) % 16 == 0, "items are copied by 16 bytes");
static_assert(sizeof(peal_fused_slot_) <= sizeof(peal_bundle_item_),
              "a slot begins as an item does");

/* A buffer for an item. */
union peal_bundle_slot_ {
    peal_fused_slot_ slot;
    peal_bundle_item_ item;
};

/* Which 16 bytes of an item number `index` of those is that a shape reads: of what lies before the
 * launch's arrays, of its boxes, and of what is behind the launch. */
static __device__ __forceinline__ unsigned peal_bundle_part_(const peal_bundle_item_ &item,
                                                             unsigned index)
{
    const char *begin = (const char *)&item;
    const unsigned before = (unsigned)((const char *)item.launch.base - begin + 15) / 16;
    const unsigned box = (unsigned)((const char *)item.launch.box - begin) / 16;
    const unsigned boxes = (unsigned)((const char *)item.launch.wait - begin + 15) / 16 - box;
    const unsigned rest = (unsigned)((const char *)&item.rest - begin) / 16;

    return index < before           ? index
           : index < before + boxes ? box + index - before
                                    : rest + index - before - boxes; /* beyond the end: nothing */
}

/* All threads: begin to copy item `index` into a slot. mine: the thread's own part of it. */
static __device__ __forceinline__ void peal_bundle_fetch_(const peal_launch &bundle,
                                                          long long index, unsigned mine,
                                                          bool whole, peal_bundle_slot_ *slot)
{
    const unsigned all = sizeof(peal_bundle_item_) / 16;
    const char *from = (const char *)((const peal_bundle_item_ *)bundle.base[0] + index);

    if (index >= bundle.argument[0].integer)
        return;
    if (mine < all)
        peal_fetch_16_to_((char *)slot + 16 * mine, from + 16 * mine);
    for (unsigned i = peal_thread_(); whole && i < all; i += PEAL_FUSED_THREADS)
        peal_fetch_16_to_((char *)slot + 16 * i, from + 16 * i);
}

extern "C" __global__ void __launch_bounds__(PEAL_FUSED_THREADS, 1)
    peal_bundle(const __grid_constant__ peal_launch bundle)
{
    alignas(16) __shared__ peal_bundle_slot_ slots[2];
    const unsigned mine = peal_bundle_part_(slots[0].item, peal_thread_());
    bool goes_on = true;

    peal_bundle_fetch_(bundle, 0, mine, bundle.argument[1].integer != 0, &slots[0]);
    if (peal_thread_() == 0) {
        peal_fused_failed_.kind = peal_fused_then_ = 0;
        peal_given_up_at_ = (unsigned *)bundle.view[0];
    }
    peal_follow_kernel_();
    peal_fetched_();
    __syncthreads();
    for (long long i = 0; goes_on && i < bundle.argument[0].integer; i++) {
        peal_bundle_slot_ &now = slots[i % 2];
        peal_bundle_fetch_(bundle, i + 1, mine, now.item.rest.next_whole != 0, &slots[(i + 1) % 2]);
        goes_on = peal_fused_run_(now.slot);
        peal_fetched_();
        /* Asked at the barrier: behind it the next item may fail before a slow warp has asked. */
        const bool failed = __syncthreads_or(peal_fused_failed_.kind != 0);
        if (goes_on && failed) {
            peal_fused_rest_(now.slot.launch);
            goes_on = false;
        }
    }
}

#endif
