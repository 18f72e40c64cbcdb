/* What a run has computed, and whether that is what serial computes: for plan/, runtime/verify.c
 * and tune/. */
#ifndef PEAL_RUNTIME_VERIFY_VERIFY_H
#define PEAL_RUNTIME_VERIFY_VERIFY_H

#include "runtime/plan/plan.h"

/* oracle.c: the oracle of a plan that was compiled with `verify`. */
peal_status peal_oracle_create(peal_plan *plan);
/* Collective, before setup: the contents of lent memory. */
peal_status peal_oracle_remember(peal_plan *plan);
/* What was started, to be repeated. */
peal_status peal_oracle_note(peal_plan *plan, int64_t steps, bool finish);
void peal_oracle_destroy(peal_oracle *oracle);
/* Of the serial run; NULL: it saves nothing. */
peal_saves *peal_oracle_saves(const peal_oracle *oracle);
/* difference.c: PEAL_E_VERIFICATION_FAILED of an array whose own points, packed, are these in the
 * run and in serial.
 */
peal_status peal_report_difference(const peal_plan *plan, const peal_schedule *schedule, int array,
                                   const unsigned char *run, const unsigned char *serial);
/* PEAL_E_NOTHING_COMPARED: there was nothing to compare. */
peal_status peal_report_nothing(const peal_graph_data *graph, peal_diagnostics *diagnostics);

/* What has been computed so far, by which modes are compared: peal_plan_digest of all arrays, and
 * the rows of `print`. *things: how many arrays and rows these are; 0: equality means nothing.
 * Collective. */
peal_status peal_plan_outcome(peal_plan *plan, uint64_t *digest, int64_t *things);

/* rows.c: where all rows of a plan (user) go through. */
void peal_plan_take_row(void *user, int64_t step, int count, const char *const *names,
                        const peal_value *values);
/* A log of the rows that the run makes; NULL: no memory. */
peal_row_log *peal_row_log_create(void);
void peal_row_log_destroy(peal_row_log *log);
/* Before serial makes its own; then each of them (user: the log); then PEAL_E_VERIFICATION_FAILED
 * if they differ. */
void peal_row_log_rewind(peal_row_log *log);
void peal_row_log_compare(void *user, int64_t step, int count, const char *const *names,
                          const peal_value *values);
peal_status peal_row_log_judge(const peal_row_log *log, peal_diagnostics *diagnostics);

/* array_digest.c: what is defined after a run. */
bool peal_array_is_compared(const peal_schedule *schedule, int array);

#endif
