/* Sorted lists: what bsearch(3) and qsort(3) leave out. Items are compared as these do it. */
#ifndef PEAL_BASE_SORTED_H
#define PEAL_BASE_SORTED_H

#include <stddef.h>

typedef int (*peal_compare)(const void *left, const void *right);

/* Index of the first item that does not come before `key`, which is such an item; `count`: there is
 * none. */
int peal_sorted_first(const void *key, const void *list, int count, size_t size,
                      peal_compare compare);
/* Sorts, and keeps each of equal items once; returns how many are left. */
int peal_sort_unique(void *list, int count, size_t size, peal_compare compare);

#endif
