/* Paired comparisons: the median of the ratios of two candidates' times round by round, and the
 * interval between two of these ratios, in order, that holds the true median with 95 % certainty
 * (the sign test's: nothing is assumed about how noise is distributed). */
#include "runtime/tune/judge.h"

#include <math.h>
#include <stdlib.h>

static const double tie = 0.01, doubt = 0.03, error = 0.05;

const char *peal_verdict_name(peal_verdict verdict)
{
    static const char *const names[] = {"", "best", "tie", "uncertain", "slower"};
    return names[verdict];
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Of sorted values: what a fraction of them is below. */
static double quantile(const double *sorted, int count, double fraction)
{
    double position = fraction * (count - 1);
    int below = (int)floor(position);
    double rest = position - below;
    return below + 1 < count ? sorted[below] * (1 - rest) + sorted[below + 1] * rest
                             : sorted[below];
}

static double median(double *value, int count)
{
    qsort(value, (size_t)count, sizeof(*value), by_value);
    return quantile(value, count, 0.5);
}

/* How many of n values, in order, may be left out at each end: fewer than that many of n fair coins
 * fall on one side in at most half of `error` of all cases. */
static int outer_count(int n)
{
    double probability = pow(0.5, n), sum = 0;
    int k = 0;
    for (; k < n; k++) {
        sum += probability;
        if (sum > error / 2)
            break;
        probability *= (double)(n - k) / (k + 1);
    }
    return k;
}

static void describe(const double *seconds, int rounds, double *sorted, peal_judged *out)
{
    for (int r = 0; r < rounds; r++)
        sorted[r] = seconds[r];
    out->median_s = median(sorted, rounds);
    out->low_s = quantile(sorted, rounds, 0.25);
    out->high_s = quantile(sorted, rounds, 0.75);
}

static void compare(const double *seconds, const double *best, int rounds, double *ratio,
                    peal_judged *out)
{
    int outer = outer_count(rounds);
    for (int r = 0; r < rounds; r++)
        ratio[r] = seconds[r] / best[r];
    out->ratio = median(ratio, rounds);
    out->ratio_low = outer ? ratio[outer - 1] : 0;
    out->ratio_high = outer ? ratio[rounds - outer] : INFINITY;
    bool certain = out->ratio_low > 1;
    out->verdict = fabs(out->ratio - 1) <= tie ? PEAL_VERDICT_TIE
                   : certain                   ? PEAL_VERDICT_SLOWER
                   : out->ratio <= 1 + doubt   ? PEAL_VERDICT_TIE
                                               : PEAL_VERDICT_UNCERTAIN;
}

int peal_judge(const double *seconds, int stride, const bool *takes_part, int count, int rounds,
               peal_judged *out)
{
    double *work = malloc((size_t)(rounds > 0 ? rounds : 1) * sizeof(*work));
    int best = -1;
    for (int c = 0; c < count; c++) {
        out[c] = (peal_judged){.verdict = PEAL_VERDICT_NONE};
        if (!work || !takes_part[c] || rounds < 1)
            continue;
        describe(seconds + c * stride, rounds, work, &out[c]);
        if (best < 0 || out[c].median_s < out[best].median_s)
            best = c;
    }
    for (int c = 0; c < count && best >= 0; c++)
        if (takes_part[c])
            compare(seconds + c * stride, seconds + best * stride, rounds, work, &out[c]);
    if (best >= 0)
        out[best].verdict = PEAL_VERDICT_BEST;
    free(work);
    return best;
}

int peal_judge_choose(const peal_candidates *set, const peal_judged *judged, int best)
{
    int chosen = best;
    for (int c = 0; c < set->count && best >= 0; c++)
        if (judged[c].verdict == PEAL_VERDICT_TIE &&
            peal_candidate_is_simpler(&set->item[c], &set->item[chosen]))
            chosen = c;
    return chosen;
}
