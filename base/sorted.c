/* Search and removal of equals in sorted lists. */
#include "base/sorted.h"

#include <stdlib.h>
#include <string.h>

int peal_sorted_first(const void *key, const void *list, int count, size_t size,
                      peal_compare compare)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (compare((const char *)list + (size_t)middle * size, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int peal_sort_unique(void *list, int count, size_t size, peal_compare compare)
{
    char *item = list;
    int kept = 0;
    if (count)
        qsort(list, (size_t)count, size, compare);
    for (int i = 0; i < count; i++) {
        const char *next = item + (size_t)i * size;
        if (kept && !compare(item + (size_t)(kept - 1) * size, next))
            continue;
        if (kept < i)
            memcpy(item + (size_t)kept * size, next, size);
        kept++;
    }
    return kept;
}
