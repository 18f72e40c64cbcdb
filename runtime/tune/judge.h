/* Which of several candidates is the fastest, by times that were measured in rounds: in each round
 * every candidate once, one shortly after the other, so that what disturbs the machine disturbs all
 * alike. Pure. */
#ifndef PEAL_RUNTIME_TUNE_JUDGE_H
#define PEAL_RUNTIME_TUNE_JUDGE_H

#include "scheduler/modes/candidates.h"

typedef enum peal_verdict {
    PEAL_VERDICT_NONE,      /* was not measured */
    PEAL_VERDICT_BEST,      /* has the smallest median */
    PEAL_VERDICT_TIE,       /* cannot be told from the best, or doesn't differ by 1 % */
    PEAL_VERDICT_UNCERTAIN, /* a median more than 3 % larger, which may be noise */
    PEAL_VERDICT_SLOWER
} peal_verdict;

/* "best", "tie", "uncertain", "slower"; "" of NONE. */
const char *peal_verdict_name(peal_verdict verdict);

typedef struct peal_judged {
    peal_verdict verdict;
    double median_s, low_s, high_s; /* of all rounds, and the quartiles */
    double ratio;                   /* median, over the rounds, of the time by the best's */
    double ratio_low, ratio_high;   /* where that lies, for 95 % of such measurements or more */
} peal_judged;

/* seconds[candidate * stride + round]; a candidate without `takes_part` gets NONE. Rounds: at least
 * 6, or nothing can be told apart. Returns the best; -1: nobody takes part. */
int peal_judge(const double *seconds, int stride, const bool *takes_part, int count, int rounds,
               peal_judged *out);

/* The simplest of the best and those that tie with it; best: what peal_judge has returned. */
int peal_judge_choose(const peal_candidates *set, const peal_judged *judged, int best);

#endif
