/* What a run has computed, and whether that is what serial computes: for plan/, runtime/verify.c
 * and tune/. */
#ifndef PEAL_RUNTIME_VERIFY_VERIFY_H
#define PEAL_RUNTIME_VERIFY_VERIFY_H

#include "runtime/plan/plan.h"
#include "runtime/verify/likeness.h"

/* oracle.c: an oracle of a plan, of its serial run on as many ranks; 0: as many as the plan has.
 * *out is to be destroyed whatever it returns. */
peal_status peal_oracle_create(peal_plan *plan, int ranks, peal_oracle **out);
/* Collective, before setup: the contents of lent memory. */
peal_status peal_oracle_remember(peal_plan *plan, peal_oracle *oracle);
/* What was started, to be repeated. */
peal_status peal_oracle_note(const peal_plan *plan, peal_oracle *oracle, int64_t steps,
                             bool finish);
void peal_oracle_destroy(peal_oracle *oracle);

/* What a comparison with an oracle on other ranks has found, for people. */
typedef struct peal_ranks_verdict {
    int ranks;
    double rounding;   /* largest difference, of the largest value; 0: all bits are equal */
    char rounded[200]; /* names of what differs by it */
    char own[200];     /* names of what each rank has its own of, which was not compared */
} peal_ranks_verdict;

/* runtime/verify.c: peal_plan_verify by one oracle. verdict: filled by one on other ranks, in
 * process 0, if it is equal; may be NULL. Collective. */
peal_status peal_plan_verify_by(peal_plan *plan, peal_oracle_kind which,
                                peal_ranks_verdict *verdict);
/* difference.c: an element in words. */
void peal_element_text(peal_type type, const unsigned char *at, char *text, size_t bytes);
/* PEAL_E_VERIFICATION_FAILED of an array whose own points, packed, are these in the
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
/* Before serial makes its own (likeness: on other ranks; else NULL); then each of them (user: the
 * log); then PEAL_E_VERIFICATION_FAILED or PEAL_E_RANKS_DIFFER if they differ. */
void peal_row_log_rewind(peal_row_log *log, peal_likeness *likeness);
void peal_row_log_compare(void *user, int64_t step, int count, const char *const *names,
                          const peal_value *values);
peal_status peal_row_log_judge(const peal_row_log *log, peal_diagnostics *diagnostics);

/* array_digest.c: what is defined after a run. */
bool peal_array_is_compared(const peal_schedule *schedule, int array);

#endif
