/* Looking at each tile, for --check-footprints and, in mode serial, --watch: what plan/ asks for.
 */
#ifndef PEAL_RUNTIME_FOOTPRINTS_FOOTPRINTS_H
#define PEAL_RUNTIME_FOOTPRINTS_FOOTPRINTS_H

#include "runtime/plan/plan.h"

/* Puts schedules into plan->binding that look at every tile: run it on shadows first, or look at
 * what it has computed. */
peal_status peal_footprints_create(peal_plan *plan);
/* PEAL_STATUS_SPEC if an undeclared access was found. */
peal_status peal_footprints_status(peal_footprints *footprints);
/* Before the plan's binding is released. */
void peal_footprints_destroy(peal_footprints *footprints);

#endif
