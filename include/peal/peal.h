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
#include <peal/transfer.h>
#include <peal/types.h>
#include <peal/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library that is in use, "0.1.0". */
const char *peal_version(void);

/* What was wrong with the last call of this thread that was refused for what it was given: a handle
 * that is NULL, of another type, destroyed, or of the parent process, or another NULL pointer:
 * "peal_plan_wait: the plan has been destroyed [E337]". "": nothing was. Such a call does nothing
 * and returns PEAL_STATUS_USAGE; functions that return no status return -1, 0 or "". To destroy
 * NULL, or a second time, does nothing. The string is good until the thread's next refused call.
 *
 * After fork() no handle of the parent is good in the child, where destroying them does nothing:
 * threads, connections and memory of the job are the parent's. A child that calls exec, or only
 * computes, is fine. */
const char *peal_misuse(void);

#ifdef __cplusplus
}
#endif
#endif
