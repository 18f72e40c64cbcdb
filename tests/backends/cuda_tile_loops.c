/* Kernels of which each point may have a tile of its own: their text loops over the tile, and does
 * nothing else with it. */
#define _GNU_SOURCE
#include "backends/cuda/codegen/tile_loops.h"
#include "tests/backends/check.h"

static bool loops(const char *text)
{
    peal_arena *arena = peal_arena_create();
    peal_kernel_file file = {"kernels.c", text};
    const char *folder = ".";
    peal_kernel_files files = {.file = &file, .count = 1, .folder = &folder};
    bool result = peal_cuda_kernel_loops_alone(&files, "k", arena);

    peal_arena_destroy(arena);
    return result;
}

#define HEAD "PEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, b)) {\n"
#define LOOP "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x - 1, y);\n"

static void what_only_loops_is_found(void **state)
{
    (void)state;
    assert_true(loops(HEAD LOOP "}"));
    assert_true(loops(HEAD "PEAL_FOR_3D ( t, x, y, z) PEAL_AT(b, x, y, z) = 0; }"));
    assert_true(
        loops(HEAD "PEAL_FOR_2D_INSIDE(t, x, y, in, 0, 9, 0, 9) { PEAL_AT(b, x, y) = in; } }"));
    assert_true(loops(HEAD
                      "PEAL_FOR_2D(t, x, y) { float s = 0; for (int i = 0; i < 3; i++) { s += i; } "
                      "PEAL_AT(b, x, y) = x > 0 ? s : 0; } }"));
    assert_true(loops(HEAD "/* t.lo, } */ // t\n" LOOP "(void)\"} t\"; }"));
    assert_true(loops("#define LEFT(u, x, y) PEAL_AT(u, (x) - 1, y)\n" HEAD LOOP "}"));
    assert_true(loops("PEAL_KERNEL(other)(peal_tile t) { PEAL_ONE(t) {} }\n" HEAD LOOP "}"));
    assert_true(loops("PEAL_KERNEL( k )\n(const peal_tile tile, PEAL_WRITE(float, b), long n)\n{ "
                      "PEAL_FOR_2D(tile, x, y) "
                      "{ long t = n; PEAL_AT(b, x, y) = t; } }"));
}

static void what_does_more_is_not(void **state)
{
    static const char *const bodies[] = {
        "PEAL_FOR_1D(t, x) PEAL_AT(b, x, 0) = 0; }",
        "PEAL_FOR(t, i, 9) PEAL_AT(b, i, 0) = 0; }",
        "PEAL_ONE(t) PEAL_AT(b, 0, 0) = 0; }",
        LOOP "PEAL_SYNC(t); }",
        "int first = t.lo[0]; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = (float)t.index; }",
        "peal_tile s = t; PEAL_FOR_2D(s, x, y) PEAL_AT(b, x, y) = 0; }",
        "helper(t); }",
        "PEAL_FOR_2D(t, x, y) { if (y == (t).hi[1]) {} } }",
        "PEAL_FOR_2D_EVEN(t, x, y, 1) PEAL_AT(b, x, y) = 0; }",
        "PEAL_FOR_2D(t, x, y) { if (x > 3) PEAL_AT(b, x, y) = 0; } }",
        "PEAL_FOR_2D(t, x, y) { if_ = x; while (0) {} } }",
        "\n#include \"more.c\"\n" LOOP "}",
        "PEAL_FOR_2D(t, x, y) { put(&PEAL_AT(b, x, y), x); } }",
        "PEAL_FOR_2D(t, x, y) { x && (PEAL_AT(b, x, y) = 1); } }",
        "PEAL_FOR_2D(t, x, y) for (int i = 0; i < x; i++) PEAL_AT(b, x, y) = 1; }",
        "PEAL_FOR_2D(t, x, y) { for (int i = 0; i < x; i++) { PEAL_AT(b, x, y) = 1; } } }",
        "PEAL_FOR_2D(t, x, y) { for (int i = 0; i < x; PEAL_AT(b, x, y) = 1, i++) {} } }",
        "PEAL_FOR_2D(t, x, y) *(x > 2 ? &PEAL_AT(b, x, y) : q) = 1; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) += 1; }",
        "PEAL_FOR_2D(t, x, y) { PEAL_AT(b, x, y) = 1; PEAL_AT(b, x, y) *= PEAL_AT(b, x, y); } }",
        "PEAL_FOR_2D(t, x, y) {} }",
        LOOP, /* no end */
    };
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        snprintf(text, sizeof(text), HEAD "%s", bodies[i]);
        if (loops(text))
            fail_msg("%s", bodies[i]);
    }
    assert_false(loops("#define ROWS t.hi[1]\n" HEAD LOOP "}"));
    assert_false(loops("#  define EACH(i) \\\n  PEAL_FOR(q, i, 3)\n" HEAD LOOP "}"));
    assert_false(loops("PEAL_KERNEL(kk)(peal_tile t) { " LOOP "}"));
    assert_false(loops("PEAL_KERNEL(k)(peal_tile t);\n"));
    assert_false(loops("#define WHERE(c) if (c)\n" HEAD LOOP "}"));
    assert_false(loops("#if 0\n" HEAD LOOP "}\n#else\n" HEAD "PEAL_ONE(t) {} }\n#endif\n"));
    assert_false(loops("/* " HEAD LOOP "} */\n" HEAD "PEAL_ONE(t) {} }"));
    assert_true(loops("/* " HEAD "PEAL_ONE(t) {} } */\n" HEAD LOOP "}"));
    assert_false(loops(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_only_loops_is_found),
        cmocka_unit_test(what_does_more_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
