/* The first look: some rounds with all candidates, after which those that are far behind, gain
 * nothing over a simpler one, are wrong or cannot be made ready are dropped. What gained alone is
 * combined, and is looked at as well. */
#include "runtime/tune/internal.h"

/* Rounds of a look, fewer where a round takes long; candidates that are left at most. */
enum { LOOKS = 5, LONG_LOOKS = 2, MOST_FINALISTS = 8 };

/* The shortest of a candidate's times counts, since what disturbs only adds to them: what took so
 * many times the best is dropped, if it was clearly behind in each round. What gained so much alone
 * is combined. */
static const double look_factor = 1.3, round_factor = 1.1, combine_gain = 0.02, long_s = 0.2;
/* What is faster than its mode is without it by no more than judging calls a tie (judge.c) would
 * not be taken. */
static const double least_gain = 0.01;

typedef struct looks {
    double seconds[PEAL_MOST_CANDIDATES * LOOKS];
    int count;
} looks;

static void keep_shortest(tuner *t, const looks *l, int round)
{
    for (int c = 0; c < t->out->set.count; c++) {
        double *shortest = &t->out->item[c].first_s, seconds = l->seconds[c * LOOKS + round];
        if (tuner_is_in(t, c) && seconds > 0 && (*shortest <= 0 || seconds < *shortest))
            *shortest = seconds;
    }
}

/* Also where a measurement makes its plan anew. */
static bool takes_long(const tuner *t)
{
    double longest = 0;
    if (t->whole || !t->keeps)
        return true;
    for (int c = 0; c < t->out->set.count; c++)
        if (tuner_is_in(t, c) && t->out->item[c].first_s > longest)
            longest = t->out->item[c].first_s;
    return longest * (double)t->out->piece_steps > long_s;
}

/* Rounds with those that take part. */
static peal_status look(tuner *t, looks *l)
{
    peal_status status = PEAL_STATUS_OK;
    l->count = l->count ? l->count : LOOKS;
    for (int round = 0; round < l->count && !status; round++) {
        tuner_progress(t, "look", round, l->count);
        status = tuner_round(t, round, l->seconds + round, LOOKS);
        if (!status)
            keep_shortest(t, l, round);
        if (round == 0 && takes_long(t))
            l->count = LONG_LOOKS;
    }
    return status;
}

static void tell_looks(const tuner *t, int first)
{
    for (int c = first; c < t->out->set.count; c++) {
        const peal_candidate *candidate = &t->out->set.item[c];
        char label[PEAL_LABEL_BYTES];
        peal_candidate_label(candidate, label, sizeof(label));
        if (candidate->dropped[0])
            tuner_tell(t, "%s: %s", label, candidate->dropped);
        else
            tuner_tell(t, "%s: %.3f us a step", label, t->out->item[c].first_s * 1e6);
    }
}

/* The shortest time of each that is not dropped; 0: it is. */
static void list_seconds(const tuner *t, double seconds[PEAL_MOST_CANDIDATES])
{
    for (int c = 0; c < t->out->set.count; c++)
        seconds[c] = tuner_is_in(t, c) ? t->out->item[c].first_s : 0;
}

/* Combines what gained alone, and looks at that, while the others rest. */
static peal_status combine(tuner *t, looks *l)
{
    double seconds[PEAL_MOST_CANDIDATES];
    peal_candidates *set = &t->out->set;
    int count = set->count;
    list_seconds(t, seconds);
    if (!peal_candidates_combine(set, seconds, combine_gain))
        return PEAL_STATUS_OK;
    t->resting = count;
    peal_status status = tuner_ahead_await(t, tuner_ahead_begin(t, count), PEAL_STATUS_OK);
    if (!status)
        status = look(t, l);
    t->resting = 0;
    if (!status)
        tell_looks(t, count);
    return status;
}

static bool is_behind(const tuner *t, const looks *l, int c, int best)
{
    bool always = t->out->item[c].first_s > look_factor * t->out->item[best].first_s;
    for (int r = 0; r < l->count; r++)
        always &= l->seconds[c * LOOKS + r] > round_factor * l->seconds[best * LOOKS + r];
    return always;
}

/* How many are faster. */
static int place_of(const tuner *t, int c)
{
    double mine = t->out->item[c].first_s;
    int before = 0;
    for (int d = 0; d < t->out->set.count; d++) {
        double other = t->out->item[d].first_s;
        before += tuner_is_in(t, d) && (other < mine || (d < c && other <= mine));
    }
    return before;
}

static void drop(tuner *t, const looks *l)
{
    double seconds[PEAL_MOST_CANDIDATES];
    peal_candidates *set = &t->out->set;
    int best = -1;
    for (int c = 0; c < set->count; c++)
        if (tuner_is_in(t, c) && place_of(t, c) == 0)
            best = c;
    for (int c = 0; c < set->count && best >= 0; c++)
        if (tuner_is_in(t, c) && is_behind(t, l, c, best))
            snprintf(set->item[c].dropped, PEAL_DROPPED_BYTES, "%.1f times the best at first sight",
                     t->out->item[c].first_s / t->out->item[best].first_s);
    list_seconds(t, seconds);
    peal_candidates_drop_idle(set, seconds, least_gain);
    for (int c = set->count - 1; c >= 0; c--) /* of equal ones the simpler stays */
        if (tuner_is_in(t, c) && place_of(t, c) >= MOST_FINALISTS)
            snprintf(set->item[c].dropped, PEAL_DROPPED_BYTES,
                     "not among the %d fastest at first sight", MOST_FINALISTS);
    if (!t->whole && best >= 0)
        t->out->piece_steps = tuner_piece(t, t->out->item[best].first_s);
}

peal_status tuner_look(tuner *t)
{
    looks l = {.count = 0};
    peal_status status = look(t, &l);
    if (!status) {
        tell_looks(t, 0);
        status = combine(t, &l);
    }
    if (!status)
        drop(t, &l);
    return status;
}
