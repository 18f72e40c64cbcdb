/* Loops over points on the CPU: those of PEAL_FOR_1D_EVEN, _2D_ and _3D_ have an even sum, those of
 * _INSIDE are all and know where they lie; each is visited once. */
#include <peal/kernel.h>

#include "tests/backends/check.h"

enum { WIDE = 16 };

static int seen[WIDE][WIDE][WIDE]; /* from -8: 1 + what is known of the point */

static void sees(int x, int y, int z, int known)
{
    int *at = &seen[z + WIDE / 2][y + WIDE / 2][x + WIDE / 2];

    assert_int_equal(*at, 0);
    *at = 1 + known;
}

static bool is_within(const int at[3], const int lo[3], const int hi[3], int axes)
{
    bool within = true;

    for (int k = 0; k < 3; k++)
        within = within && (k < axes ? lo[k] <= at[k] && at[k] < hi[k] : !at[k]);
    return within;
}

/* Of the tile's points those of the colour have been seen; or all, and whether inside the walls. */
static void saw(const peal_tile *t, int axes, const long *colour, const peal_tile *walls)
{
    for (int z = -WIDE / 2; z < WIDE / 2; z++)
        for (int y = -WIDE / 2; y < WIDE / 2; y++)
            for (int x = -WIDE / 2; x < WIDE / 2; x++) {
                const int at[3] = {x, y, z};
                int *found = &seen[z + WIDE / 2][y + WIDE / 2][x + WIDE / 2], expected = 0;
                if (is_within(at, t->lo, t->hi, axes))
                    expected = colour ? (x + y + z + *colour) % 2 == 0
                                      : 1 + is_within(at, walls->lo, walls->hi, axes);
                assert_int_equal(*found, expected);
                *found = 0;
            }
}

static void visits_each_second_point_once(void **state)
{
    (void)state;
    for (int lo = -5; lo <= 2; lo++)
        for (int wide = 0; wide <= 4; wide++)
            for (long colour = -2; colour <= 5; colour++) {
                peal_tile t = {.lo = {lo, -3, lo + 1}, .hi = {lo + wide, wide - 1, lo + wide}};
                PEAL_FOR_1D_EVEN (t, x, colour)
                    sees(x, 0, 0, 0);
                saw(&t, 1, &colour, NULL);
                if (colour > -9)
                    PEAL_FOR_2D_EVEN (t, x, y, colour)
                        sees(x, y, 0, 0);
                else
                    sees(0, 0, 0, 0);
                saw(&t, 2, &colour, NULL);
                PEAL_FOR_3D_EVEN (t, x, y, z, colour) {
                    if (x + y + z < -100)
                        continue;
                    sees(x, y, z, 0);
                }
                saw(&t, 3, &colour, NULL);
            }
}

static void knows_which_points_are_inside(void **state)
{
    (void)state;
    for (int lo = -5; lo <= 2; lo++)
        for (int wide = 0; wide <= 4; wide++)
            for (int first = -6; first <= 4; first++)
                for (long many = -1; many <= 7; many += 2) {
                    peal_tile t = {.lo = {lo, -3, lo + 1}, .hi = {lo + wide, wide - 1, lo + wide}};
                    const long end = first + many;
                    const peal_tile walls = {.lo = {first, -2, -4}, .hi = {(int)end, 1, 2}};
                    PEAL_FOR_1D_INSIDE (t, x, in, first, end)
                        sees(x, 0, 0, in);
                    saw(&t, 1, NULL, &walls);
                    if (many > -9)
                        PEAL_FOR_2D_INSIDE (t, x, y, in, first, end, -2, 1)
                            sees(x, y, 0, in);
                    else
                        sees(0, 0, 0, 0);
                    saw(&t, 2, NULL, &walls);
                    PEAL_FOR_3D_INSIDE (t, x, y, z, in, first, end, -2, 1, -4, 2) {
                        sees(x, y, z, in);
                        if (in)
                            continue;
                        assert_true(x < first || x >= end || y < -2 || y >= 1 || z < -4 || z >= 2);
                    }
                    saw(&t, 3, NULL, &walls);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(visits_each_second_point_once),
                                       cmocka_unit_test(knows_which_points_are_inside)};
    return cmocka_run_group_tests_name("loops over points", tests, NULL, NULL);
}
