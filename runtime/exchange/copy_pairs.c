/* Addressed copies: which of them run as pairs. */
#include "runtime/exchange/copy_pairs.h"

static bool pair(peal_addressed_copy *a, const peal_addressed_copy *b)
{
    int64_t from = (int64_t)((intptr_t)b->from - (intptr_t)a->from);
    int64_t to = (int64_t)((intptr_t)b->to - (intptr_t)a->to);
    return a->to_slot == b->to_slot && a->from_slot == b->from_slot &&
           peal_copy_is_twin(&a->copy, &b->copy, from, to) && peal_copy_pair(&a->copy, from, to);
}

int peal_copies_pair(peal_addressed_copy *item, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count; k++) {
            if (!pair(&item[i], &item[k]))
                continue;
            for (int next = k + 1; next < count; next++)
                item[next - 1] = item[next];
            count--;
            break;
        }
    return count;
}
