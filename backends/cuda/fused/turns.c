/* Turns: a recording of many steps may be the same few steps over and over, in which only numbers
 * go on, as those of messages do, until they come round. Then the list has one turn of them, and
 * beside each work item what is added to its words a turn. The kernel counts the turns.
 *
 * It is proved on the recording itself: each word of each launch has to grow by the same from turn
 * to turn, and all that the host knows of a work item has to be the same. */
#include "backends/cuda/fused/fused.h"

#include <stddef.h>
#include <string.h>

static bool has_same_numbers(const peal_cuda_work_item *a, const peal_cuda_work_item *b)
{
    const peal_launch *x = &a->launch, *y = &b->launch;

    return a->number == b->number && a->blocks == b->blocks && a->serves == b->serves &&
           a->first_blocks == b->first_blocks && a->task == b->task &&
           a->touch_count == b->touch_count && x->box_count == y->box_count &&
           x->wait_count == y->wait_count && x->write_count == y->write_count &&
           x->list_count == y->list_count && x->remote_store_count == y->remote_store_count &&
           x->adds == y->adds;
}

static bool has_same_traits(const peal_cuda_work_item *a, const peal_cuda_work_item *b)
{
    return a->after_all == b->after_all && a->spares == b->spares && a->receives == b->receives &&
           a->deepens == b->deepens && a->copies == b->copies && a->images == b->images &&
           a->partials == b->partials && a->alone == b->alone;
}

/* All of a flag but its value is in what the host prepares for blocks. */
static bool has_same_flags(const peal_cuda_work_item *a, const peal_cuda_work_item *b)
{
    for (int i = 0; i < a->launch.write_count; i++) {
        const peal_launch_write *x = &a->launch.write[i], *y = &b->launch.write[i];
        if (x->word != y->word || x->part != y->part || x->rest != y->rest ||
            x->boxes != y->boxes || x->first != y->first || a->quantum[i] != b->quantum[i])
            return false;
    }
    return true;
}

static bool is_same(const peal_cuda_work_item *a, const peal_cuda_work_item *b)
{
    return has_same_numbers(a, b) && has_same_traits(a, b) && has_same_flags(a, b) &&
           !memcmp(a->launch.box, b->launch.box,
                   (size_t)a->launch.box_count * sizeof(a->launch.box[0])) &&
           !memcmp(a->touch, b->touch, (size_t)a->touch_count * sizeof(a->touch[0])) &&
           peal_cuda_fused_can_shape(a) == peal_cuda_fused_can_shape(b) &&
           (!peal_cuda_fused_can_shape(a) || peal_cuda_fused_is_same_shape(a, b));
}

/* ---- work items behind the list ---- */

void peal_cuda_fused_keep_later(peal_cuda_plan *plan, peal_cuda_fused *fused)
{
    peal_cuda_packed parts[PEAL_CUDA_PACKED_PARTS];
    peal_cuda_work_item *item = &fused->item[PEAL_FUSED_WIDE_ITEMS];
    size_t bytes = 0;

    if (fused->count > PEAL_CUDA_LATER_ITEMS || !fused->at_step || fused->is_behind)
        return;
    peal_cuda_fused_keep_touches(plan, item);
    peal_cuda_fused_parts_of(&item->launch, parts);
    for (int p = 0; p < PEAL_CUDA_PACKED_PARTS; p++)
        bytes += parts[p].bytes;
    PEAL_ARENA_ROOM(plan->arena, fused->later, fused->later_count, fused->later_room);
    peal_cuda_later_item *later = &fused->later[fused->later_count++];
    later->traits = PEAL_ARENA_ARRAY(plan->arena, char, offsetof(peal_cuda_work_item, launch));
    later->words = PEAL_ARENA_ARRAY(plan->arena, char, bytes);
    memcpy(later->traits, item, offsetof(peal_cuda_work_item, launch));
    for (int p = 0, at = 0; p < PEAL_CUDA_PACKED_PARTS; at += (int)parts[p++].bytes)
        memcpy(later->words + at, (const char *)&item->launch + parts[p].from, parts[p].bytes);
}

/* A recorded work item; `scratch` holds it if it is not in the list. The counts of its arrays lie
 * in the first part of a launch. */
static const peal_cuda_work_item *recorded(const peal_cuda_fused *fused, size_t index,
                                           peal_cuda_work_item *scratch)
{
    peal_cuda_packed parts[PEAL_CUDA_PACKED_PARTS];
    size_t at = 0;

    if (index < PEAL_FUSED_WIDE_ITEMS)
        return &fused->item[index];
    const peal_cuda_later_item *later = &fused->later[index - PEAL_FUSED_WIDE_ITEMS];
    memset(scratch, 0, sizeof(*scratch));
    memcpy(scratch, later->traits, offsetof(peal_cuda_work_item, launch));
    for (int p = 0; p < PEAL_CUDA_PACKED_PARTS; p++) {
        peal_cuda_fused_parts_of(&scratch->launch, parts);
        memcpy((char *)&scratch->launch + parts[p].from, later->words + at, parts[p].bytes);
        at += parts[p].bytes;
    }
    return scratch;
}

/* ---- growth ---- */

/* One work item in all turns. */
typedef struct series {
    const peal_cuda_work_item *turn[PEAL_FUSED_TURNS_MOST];
    int turns;
    peal_cuda_work_item *scratch; /* by turn */
} series;

static void look_at(const peal_cuda_fused *fused, int item, int count, series *s)
{
    for (int t = 0; t < s->turns; t++)
        s->turn[t] = recorded(fused, (size_t)t * (size_t)count + (size_t)item, &s->scratch[t]);
}

static uint64_t word_of(const peal_cuda_work_item *item, size_t at)
{
    uint64_t word;

    memcpy(&word, (const char *)&item->launch + at, sizeof(word));
    return word;
}

/* What is added to a word in turn t (fused_launch.h). */
static uint64_t grown(uint64_t growth, int t)
{
    unsigned rounds = growth & PEAL_FUSED_GROWTH_ROUNDS;
    uint64_t mask = rounds > 0 ? (UINT64_C(1) << rounds) - 1 : ~UINT64_C(0);

    return ((uint64_t)t & mask) * (growth - rounds);
}

/* Sets *growth so that it gives the word at byte `at` of the launch in all turns. */
static bool find_growth(const series *s, size_t at, uint64_t *growth)
{
    uint64_t first = word_of(s->turn[0], at), step = word_of(s->turn[1], at) - first;

    if (step & PEAL_FUSED_GROWTH_ROUNDS)
        return false;
    for (unsigned rounds = 0; rounds <= PEAL_FUSED_GROWTH_ROUNDS; rounds++) {
        bool fits = true;
        *growth = step | rounds;
        for (int t = 2; t < s->turns && fits; t++)
            fits = word_of(s->turn[t], at) == first + grown(*growth, t);
        if (fits)
            return true;
    }
    return false;
}

/* Whether all turns are the same but for what grows. growth: by word of the launch; or NULL. */
static bool repeats(const series *s, uint64_t *growth)
{
    peal_cuda_packed parts[PEAL_CUDA_PACKED_PARTS];
    uint64_t own;

    for (int t = 1; t < s->turns; t++)
        if (!is_same(s->turn[0], s->turn[t]))
            return false;
    peal_cuda_fused_parts_of(&s->turn[0]->launch, parts);
    for (int p = 0; p < PEAL_CUDA_PACKED_PARTS; p++)
        for (size_t at = parts[p].from; at < parts[p].from + parts[p].bytes; at += sizeof(own))
            if (!find_growth(s, at, growth ? &growth[at / sizeof(own)] : &own))
                return false;
    return true;
}

/* ---- turns ---- */

/* Whether so many steps, over and over, are the whole recording of a rank. */
static bool is_turn(const peal_cuda_fused *fused, int64_t steps, int64_t all, series *s)
{
    int count = fused->at_step[steps];

    s->turns = (int)(all / steps);
    if (count > PEAL_FUSED_WIDE_ITEMS || fused->at_step[all] != fused->count ||
        s->turns * count != fused->count)
        return false;
    for (int64_t step = 0; step <= all; step++)
        if (fused->at_step[step] != (int)(step / steps) * count + fused->at_step[step % steps])
            return false;
    for (int i = 0; i < count; i++) {
        look_at(fused, i, count, s);
        if (!repeats(s, NULL))
            return false;
    }
    return true;
}

static bool all_turn(const peal_cuda_fused_kernel *kernel, int rank_count, int64_t steps, series *s)
{
    for (int r = 0; r < rank_count; r++)
        if (!is_turn(&kernel->rank[r], steps, kernel->steps, s))
            return false;
    return true;
}

static void keep_turn(const peal_cuda_plan *plan, peal_cuda_fused *fused, int64_t steps, series *s)
{
    int count = fused->at_step[steps];

    for (int i = 0; i < count; i++) {
        uint64_t *growth =
            PEAL_ARENA_ARRAY(plan->arena, uint64_t, sizeof(peal_launch) / sizeof(uint64_t));
        look_at(fused, i, count, s);
        repeats(s, growth);
        fused->item[i].growth = growth;
    }
    fused->count = count;
}

void peal_cuda_fused_find_turns(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel)
{
    bool is_long = false, is_whole = kernel->steps > 0;

    kernel->turns = 1;
    kernel->note = NULL;
    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_fused *fused = &kernel->rank[r];
        is_long |= fused->count > PEAL_FUSED_ITEMS;
        is_whole &= fused->at_step && fused->section_count == 0 && !fused->joined &&
                    fused->count <= PEAL_FUSED_WIDE_ITEMS + fused->later_count;
    }
    if (!is_long || !is_whole)
        return;
    series s = {.scratch =
                    PEAL_ARENA_ARRAY(plan->arena, peal_cuda_work_item, PEAL_FUSED_TURNS_MOST)};
    for (int64_t steps = 1; 2 * steps <= kernel->steps; steps++) {
        int64_t turns = kernel->steps / steps;
        if (kernel->steps % steps != 0 || turns > PEAL_FUSED_TURNS_MOST ||
            !all_turn(kernel, plan->rank_count, steps, &s))
            continue;
        for (int r = 0; r < plan->rank_count; r++)
            keep_turn(plan, &kernel->rank[r], steps, &s);
        kernel->turns = (int)turns;
        kernel->steps = steps;
        kernel->note = peal_arena_print(
            plan->arena, "turns: %d work items of %lld steps, whose numbers come round after %lld",
            kernel->rank[0].count, (long long)steps, (long long)(steps * turns));
        return;
    }
}
