/* See the header. */
#include "runtime/measure/noise.h"

/* The share of a step that times of it may be off by. */
static const double noise = 0.05;

/* Of some that add `sum` together: each its usual time, or its part of that; what is more goes to
 * those that it was seen at. */
static void share_sum(const peal_addition *list, int count)
{
    double sum = 0, usual = 0;

    for (int i = 0; i < count; i++) {
        sum += *list[i].adds;
        usual += list[i].usual;
    }
    double part = usual > sum && usual > 0 ? sum / usual : 1, more = sum - part * usual;
    for (int i = 0; i < count && sum > 0; i++)
        *list[i].adds = part * list[i].usual + more * (*list[i].adds / sum);
}

/* Whether no more is expected of an op than noise, or it must have taken time that was not seen. */
static bool is_lost(const peal_addition *of)
{
    return of->usual < noise * of->step_s || (of->takes_time && *of->adds <= 0);
}

/* Those that no other lost op follows closely enough: with [before, first), the last that were
 * taken together, if they follow these; else, if they add nothing, with an op beside them. */
static void share_rest(const peal_addition *list, int before, int first, int end, int count,
                       double sum)
{
    if (before < first)
        share_sum(&list[before], end - before);
    else if (sum > 0)
        share_sum(&list[first], end - first);
    else if (end < count)
        share_sum(&list[first], end + 1 - first);
    else if (first > 0)
        share_sum(&list[first - 1], end + 1 - first);
}

void peal_share_noise(const peal_addition *list, int count)
{
    int first = 0, before = 0; /* those from `first` on are open, [before, first) the last taken */
    double sum = 0;

    for (int i = 0; i <= count; i++) {
        if (i < count && is_lost(&list[i])) {
            sum += *list[i].adds;
            if (sum <= 0 || sum < noise * list[i].step_s)
                continue;
            share_sum(&list[first], i + 1 - first);
            before = first;
        } else {
            if (first < i)
                share_rest(list, before, first, i, count, sum);
            before = i + 1;
        }
        first = i + 1;
        sum = 0;
    }
}
