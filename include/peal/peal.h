/* peal: communication + compute task graphs, compiled into schedules that the hardware runs by
 * itself. This header includes all others that an application needs. */
#ifndef PEAL_PEAL_H
#define PEAL_PEAL_H

#include <peal/bootstrap.h>
#include <peal/call.h>
#include <peal/exchange.h>
#include <peal/graph.h>
#include <peal/plan.h>
#include <peal/session.h>
#include <peal/status.h>
#include <peal/types.h>

#define PEAL_VERSION_MAJOR 0
#define PEAL_VERSION_MINOR 1
#define PEAL_VERSION_PATCH 0
/* Grows with every release: compare with PEAL_VERSION_NUMBER_OF(0, 1, 0). */
#define PEAL_VERSION_NUMBER_OF(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define PEAL_VERSION_NUMBER                                                                        \
    PEAL_VERSION_NUMBER_OF(PEAL_VERSION_MAJOR, PEAL_VERSION_MINOR, PEAL_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library that is in use, "0.1.0". */
const char *peal_version(void);

#ifdef __cplusplus
}
#endif
#endif
