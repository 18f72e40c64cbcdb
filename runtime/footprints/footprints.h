/* --check-footprints: what plan/ asks for. */
#ifndef PEAL_RUNTIME_FOOTPRINTS_FOOTPRINTS_H
#define PEAL_RUNTIME_FOOTPRINTS_FOOTPRINTS_H

#include "runtime/plan/plan.h"

/* Makes the shadows, and puts schedules into plan->binding that run every tile on them first. */
peal_status peal_footprints_create(peal_plan *plan);
/* PEAL_STATUS_SPEC if an undeclared access was found. */
peal_status peal_footprints_status(peal_footprints *footprints);
/* Before the plan's binding is released. */
void peal_footprints_destroy(peal_footprints *footprints);

#endif
