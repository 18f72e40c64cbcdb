/* How a plan runs: what is asked for, what can be had, and what is the fastest. */
#ifndef PEAL_RUNTIME_SELECT_SELECT_H
#define PEAL_RUNTIME_SELECT_SELECT_H

#include "runtime/plan/plan.h"

/* choose.c: backend, mode, number of ranks, processes and workers; what the graph requires. */
peal_status peal_plan_choose(peal_plan *plan);
/* choose.c: all of that but the backend, which is given. */
peal_status peal_plan_choose_on(peal_plan *plan, const peal_backend_ops *backend);
/* choose.c: why the graph cannot run in a mode, in words, good until the thread asks again; NULL:
 * it can. */
const char *peal_plan_refuses(const peal_plan *plan, peal_mode mode);
bool peal_plan_is_automatic(const peal_plan *plan);
/* automatic.c: mode auto, once the processes have been compared: process 0 takes what `peal tune`
 * has found, or what is predicted to be the fastest, and tells the others. Collective. */
peal_status peal_plan_decide(peal_plan *plan);
/* automatic.c: the ways to run the graph with a prediction each, as far as there is one.
 * modes_only: nothing is forced. *from: where the times are from, at least PEAL_FROM_BYTES. */
peal_status peal_plan_candidates(peal_plan *plan, bool modes_only, peal_candidates *out,
                                 char *from);
/* automatic.c: what auto has chosen could not be made ready: true if there is another mode to try.
 * What was reported since diagnostic number `from` is taken back then. Equal in all processes. */
bool peal_plan_pass_over(peal_plan *plan, peal_status status, int from);
/* compile_ahead.c: has the backend, whose `compile` is not NULL, compile into the cache what the
 * candidate's plan will need of this process's ranks. plan: an outline. Any thread, several at a
 * time, while the plan is there. */
void peal_plan_compile_ahead(const peal_plan *plan, const peal_candidate *candidate);
/* Threads of this process, if nobody says how many: its share of the cores. */
int peal_plan_threads_of(const peal_session *session);
/* Workers of a rank, if its process has so many threads. */
int peal_plan_workers_of(const peal_machine *machine, int threads);
/* choose.c: once the transports of all processes are known. */
peal_status peal_plan_check_required(peal_plan *plan);

#endif
