/* Compiles before a plan needs it: the persistent kernel, or that of bundles, beside the plan's
 * other kernels, or all units of a plan that will be made later. The text of these is known only
 * when launches are recorded, which takes those kernels: so a plan without a device is made first
 * (dry_plan.h), and what it compiles is in the cache when the plan itself comes to it. */
#ifndef PEAL_CUDA_AHEAD_H
#define PEAL_CUDA_AHEAD_H

#include <peal/plugin/backend.h>

typedef struct peal_cuda_ahead peal_cuda_ahead;

/* Of graph or fused, on desc's device; desc and its ranks must outlive it. NULL: it cannot, and all
 * is compiled one after the other. */
peal_cuda_ahead *peal_cuda_ahead_begin(const peal_backend_desc *desc);
/* Waits for it; NULL is fine. What went wrong is told by who does the same again. */
void peal_cuda_ahead_end(peal_cuda_ahead *ahead);

/* peal_backend_ops.compile: all units of a plan. */
peal_status peal_cuda_compile_ahead(const peal_backend_desc *desc);

#endif
