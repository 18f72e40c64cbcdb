/* PEAL_FOR_1D_EVEN, _2D_ and _3D_ on the CPU: the points with an even sum, each once. */
#include <peal/kernel.h>

#include "tests/backends/check.h"

enum { WIDE = 16 };

static int seen[WIDE][WIDE][WIDE]; /* from -8 */

static void sees(int x, int y, int z)
{
    seen[z + WIDE / 2][y + WIDE / 2][x + WIDE / 2]++;
}

/* Points outside of the tile have been seen never, inside once or never. */
static void is_half(const peal_tile *t, int axes, long colour)
{
    for (int z = -WIDE / 2; z < WIDE / 2; z++)
        for (int y = -WIDE / 2; y < WIDE / 2; y++)
            for (int x = -WIDE / 2; x < WIDE / 2; x++) {
                const int at[3] = {x, y, z};
                long sum = colour;
                bool inside = true;
                for (int k = 0; k < 3; k++) {
                    sum += k < axes ? at[k] : 0;
                    inside = inside && (k < axes ? t->lo[k] <= at[k] && at[k] < t->hi[k] : !at[k]);
                }
                int *count = &seen[z + WIDE / 2][y + WIDE / 2][x + WIDE / 2];
                assert_int_equal(*count, inside && sum % 2 == 0);
                *count = 0;
            }
}

static void visits_each_second_point_once(void **state)
{
    (void)state;
    for (int lo = -5; lo <= 2; lo++)
        for (int wide = 0; wide <= 4; wide++)
            for (long colour = -2; colour <= 5; colour++) {
                peal_tile t = {.lo = {lo, -3, lo + 1}, .hi = {lo + wide, wide - 1, lo + wide}};
                PEAL_FOR_1D_EVEN(t, x, colour) sees(x, 0, 0);
                is_half(&t, 1, colour);
                if (colour > -9)
                    PEAL_FOR_2D_EVEN(t, x, y, colour) sees(x, y, 0);
                else
                    sees(0, 0, 0);
                is_half(&t, 2, colour);
                PEAL_FOR_3D_EVEN(t, x, y, z, colour)
                {
                    if (x + y + z < -100)
                        continue;
                    sees(x, y, z);
                }
                is_half(&t, 3, colour);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(visits_each_second_point_once)};
    return cmocka_run_group_tests_name("points of a colour", tests, NULL, NULL);
}
