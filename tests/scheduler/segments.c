/* Intervals of a segment, sorted: each begins behind the last. */
#include "tests/scheduler/segments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct interval {
    int64_t first, end;
    const char *what;
    int number;
} interval;

static int by_first(const void *left, const void *right)
{
    const interval *a = left, *b = right;
    return a->first != b->first ? (a->first < b->first ? -1 : 1) : a->end < b->end ? -1 : 1;
}

static int list(const peal_schedule *s, interval *out)
{
    int count = 0;
    for (int i = 0; i < s->array_count; i++)
        if (s->array[i].layout.offset >= 0 && s->array[i].layout.bytes > 0)
            out[count++] =
                (interval){s->array[i].layout.offset,
                           s->array[i].layout.offset + s->array[i].layout.bytes, "array", i};
    for (int i = 0; i < s->channel_count; i++) {
        const peal_channel *c = &s->channel[i];
        if (c->outgoing && c->credit_offset >= 0)
            out[count++] = (interval){c->credit_offset, c->credit_offset + 8, "credit of", i};
        if (c->outgoing)
            continue;
        out[count++] = (interval){c->flag_offset, c->flag_offset + 8, "flag of", i};
        if (c->staged_count)
            out[count++] =
                (interval){c->staging_offset, c->staging_offset + c->slots * c->staging_bytes,
                           "slots of", i};
    }
    qsort(out, (size_t)count, sizeof(*out), by_first);
    return count;
}

static bool peers_know(const peal_schedule *const *schedules, int rank, char *text, size_t bytes)
{
    const peal_schedule *s = schedules[rank];
    for (int i = 0; i < s->peer_count; i++) {
        const peal_schedule *peer = schedules[s->peer[i].rank];
        if (s->peer[i].segment_bytes == peer->segment_bytes)
            continue;
        snprintf(text, bytes, "rank %d takes rank %d for %" PRId64 " bytes, which has %" PRId64,
                 rank, peer->rank, s->peer[i].segment_bytes, peer->segment_bytes);
        return false;
    }
    return true;
}

bool segment_is_sound(const peal_schedule *const *schedules, int rank, char *text, size_t bytes)
{
    const peal_schedule *s = schedules[rank];
    size_t most = (size_t)s->array_count + 2 * (size_t)s->channel_count + 1;
    interval *of = calloc(most, sizeof(*of));
    int count = of ? list(s, of) : 0;
    bool good = of && peers_know(schedules, rank, text, bytes);
    for (int i = 0; i < count && good; i++) {
        bool behind = of[i].end > s->used_bytes || s->used_bytes > s->segment_bytes;
        bool overlaps = i > 0 && of[i].first < of[i - 1].end;
        good = !behind && !overlaps;
        if (!good)
            snprintf(text, bytes, "rank %d: %s %d at [%" PRId64 ", %" PRId64 ") %s", rank,
                     of[i].what, of[i].number, of[i].first, of[i].end,
                     behind ? "is not in what is used" : "overlaps what is before it");
    }
    free(of);
    return good;
}
