/* What a plan would be on a GPU, found without one. */
#ifndef PEAL_CUDA_DRY_PLAN_H
#define PEAL_CUDA_DRY_PLAN_H

#include "base/arena.h"

#include <peal/plugin/backend.h>

enum { PEAL_CUDA_DRY_PLAN_SMS = 132 /* of an H100 and an H200: tiles are cut for as many */ };

/* The unit of desc's rank `index` in a process of its own, with the shapes that its launches have
 * (shapes.c): in the arena. The rank's segment and desc's device are not looked at. */
peal_status peal_cuda_dry_plan_fused(const peal_backend_desc *desc, int index, int architecture,
                                     peal_arena *arena, const char **out);

/* Makes the plan of graph or fused that desc's ranks will have on its device, compiles its unit,
 * if it has one, into the cache, and throws it away. The device's driver is not called. many: other
 * plans are so compiled at the same time. */
peal_status peal_cuda_dry_plan_compile(const peal_backend_desc *desc, bool many, peal_arena *arena);

/* Makes the plan of desc's ranks, in one process, and throws it away: what speaks against its mode,
 * graph or fused, is reported as it would be when a run begins (PEAL_E_GRAPH_MODE_NOT_APPLICABLE).
 * Nothing is compiled. */
peal_status peal_cuda_rehearse(const peal_backend_desc *desc, peal_backend_rehearsal *out);

#endif
