/* Kinds of work items: those of a kind have the same partitions, dependencies and additions to
 * flags, so a round of many steps needs only a few of them. */
#include "backends/cuda/fused/fused.h"

#include <string.h>

/* Whether partitions of both add the same to the same flags. */
static bool adds_alike(const peal_cuda_work_item *a, const peal_cuda_work_item *b)
{
    const peal_launch *x = &a->launch, *y = &b->launch;

    if (a->shape != b->shape || x->adds != y->adds || a->alone != b->alone)
        return false;
    if (!a->alone && (a->shape < 0 || !x->adds))
        return true;
    for (int i = 0; i < x->write_count; i++)
        if (i >= y->write_count || x->write[i].word != y->write[i].word ||
            x->write[i].part != y->write[i].part || x->write[i].rest != y->write[i].rest ||
            x->write[i].boxes != y->write[i].boxes || x->write[i].first != y->write[i].first)
            return false;
    return x->write_count == y->write_count;
}

static bool is_alike(const peal_cuda_work_item *a, const peal_cuda_work_item *b)
{
    return adds_alike(a, b) && a->number == b->number && (a->serves < 0) == (b->serves < 0) &&
           a->blocks == b->blocks && a->first_blocks == b->first_blocks &&
           a->after_all == b->after_all && a->spares == b->spares && a->receives == b->receives &&
           a->launch.box_count == b->launch.box_count && a->touch_count == b->touch_count &&
           !memcmp(a->launch.box, b->launch.box,
                   (size_t)a->launch.box_count * sizeof(a->launch.box[0])) &&
           !memcmp(a->touch, b->touch, (size_t)a->touch_count * sizeof(a->touch[0]));
}

void peal_cuda_fused_find_kinds(peal_cuda_fused *fused)
{
    fused->kinds = 0;
    for (int r = 0; r < fused->count; r++) {
        int k = 0;
        while (k < fused->kinds && !is_alike(&fused->item[fused->kind_item[k]], &fused->item[r]))
            k++;
        if (k == fused->kinds)
            fused->kind_item[fused->kinds++] = r;
        fused->item[r].kind = k;
    }
}

bool peal_cuda_fused_has_room(peal_cuda_fused *fused)
{
    peal_cuda_fused_find_kinds(fused);
    return fused->kinds <= fused->most_kinds && fused->count <= fused->most_items;
}
