/* Lists of numbers, of each length up to some, against a look at all. */
#include "base/sorted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 40, ROUNDS = 50 };

typedef struct item {
    int number, padding[2];
} item;

static int by_number(const void *left, const void *right)
{
    return ((const item *)left)->number - ((const item *)right)->number;
}

static void as_a_look_at_all_says(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < ROUNDS; round++)
        for (int count = 0; count <= MOST; count++) {
            item list[MOST + 1] = {{0, {0, 0}}};
            int seen[MOST] = {0}, different = 0;
            for (int i = 0; i < count; i++) {
                list[i].number = rand() % (MOST / 2) + 1;
                different += !seen[list[i].number]++;
            }
            int kept = peal_sort_unique(list, count, sizeof(*list), by_number);
            assert_int_equal(kept, different);
            for (int i = 0; i < kept; i++) {
                assert_true(seen[list[i].number]);
                assert_true(!i || list[i - 1].number < list[i].number);
            }
            for (int number = 0; number <= MOST / 2 + 2; number++) {
                item key = {number, {0, 0}};
                int first = 0;
                while (first < kept && list[first].number < number)
                    first++;
                assert_int_equal(peal_sorted_first(&key, list, kept, sizeof(*list), by_number),
                                 first);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_a_look_at_all_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
