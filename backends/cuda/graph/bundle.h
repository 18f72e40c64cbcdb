/* Bundles: small launches that follow each other on a lane are captured as one kernel of one block,
 * which runs them one after the other (../codegen/device/bundle.h). */
#ifndef PEAL_CUDA_BUNDLE_H
#define PEAL_CUDA_BUNDLE_H

#include "backends/cuda/lower/sink.h"

typedef struct peal_cuda_bundles peal_cuda_bundles;

/* Called when the number of steps is chosen: from now on launches are put into bundles, if the plan
 * may have any. What looked for them before is forgotten. */
void peal_cuda_bundles_create(peal_cuda_plan *plan);
/* Whether steps are emitted only to find what bundles would have: nothing is captured. */
bool peal_cuda_bundles_look(const peal_cuda_plan *plan);
/* Called behind these steps: compiles the kernel of bundles, if they are worth it. */
peal_status peal_cuda_bundles_looked(peal_cuda_plan *plan);

/* At the begin of a recording: nothing is put off. */
void peal_cuda_bundles_begin(peal_cuda_plan *plan);
/* How bundles, and launches that no bundle has, are launched: as any kernel of the lane. */
typedef CUresult peal_cuda_bundle_launcher(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                           const peal_cuda_kernel_launch *what);
/* Puts a launch into the lane's bundle, or launches it. */
CUresult peal_cuda_bundle_or_launch(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                    const peal_cuda_kernel_launch *what,
                                    peal_cuda_bundle_launcher *launch);
/* Launches what the lane's bundle has, if anything. Call it before anything else is put onto the
 * lane. */
CUresult peal_cuda_bundle_end(peal_cuda_rank *rank, peal_cuda_lane *lane,
                              peal_cuda_bundle_launcher *launch);

/* What is said and predicted of them; leaves `out` as it is if there are none. */
void peal_cuda_bundles_rehearse(const peal_cuda_plan *plan, peal_backend_rehearsal *out);

/* Once a recording is captured: copies the launches of its bundles to the device. */
CUresult peal_cuda_bundles_upload(peal_cuda_plan *plan);
void peal_cuda_bundles_destroy(peal_cuda_plan *plan);

#endif
