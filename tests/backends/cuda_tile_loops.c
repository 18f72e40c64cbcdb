/* Kernels of which each point may have a tile of its own: their text loops over the tile, and does
 * nothing else with it. */
#define _GNU_SOURCE
#include "backends/cuda/codegen/tile_loops.h"
#include "tests/backends/check.h"
#include "tests/backends/kernel_tries.h"

#include <stdlib.h>

/* The kernel `k`, whose arrays have so many axes. */
static bool loops_of(const char *text, int arrays, int axes, int written)
{
    peal_arena *arena = peal_arena_create();
    peal_kernel_file file = {"kernels.c", text};
    const char *folder = ".";
    peal_kernel_files files = {.file = &file, .count = 1, .folder = &folder};
    peal_cuda_tokens tokens;
    bool result = peal_cuda_tokens_read(&files, arena, &tokens) &&
                  peal_cuda_kernel_loops_alone(&tokens, "k", arrays, written, axes, arena);

    peal_arena_destroy(arena);
    return result;
}

static bool loops(const char *text)
{
    return loops_of(text, 2, 2, 1);
}

#define START                                                                                      \
    "PEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, b), "                      \
    "PEAL_REDUCE(double, d)) {\n"
#define LOOP "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x - 1, y);\n"

static void what_only_loops_is_found(void **state)
{
    static const char *const texts[] = {
        START LOOP "}",
        START "PEAL_FOR_2D_INSIDE(t, x, y, in, 0, 9, 0, 9) { PEAL_AT(b, x, y) = in; } }",
        START "PEAL_FOR_2D(t, x, y) { float s = 0; for (int i = 0; i < 3; i++) { s += i; } "
              "PEAL_AT(b, x, y) = x > 0 ? s : PEAL_AT(a, x, y); } }",
        START "/* t.lo, } */ // t\n" LOOP "(void)\"} t\"; }",
        START LOOP LOOP "}",
        START "PEAL_FOR_2D(t, x, y) { float p = 0, q = 1; PEAL_AT(b, x, y) = p + q; } }",
        START "double s = 0; PEAL_FOR_2D(t, x, y) { PEAL_AT(b, x, y) = PEAL_FMA(2, x, y); s += x; }"
              " PEAL_PARTIAL(d, s); }",
        "#define LEFT(u, x, y) PEAL_AT(u, (x) - 1, y)\n" START
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = LEFT(a, x, y); }",
        "#define SET(v) PEAL_AT(b, x, y) = v\n" START
        "PEAL_FOR_2D(t, x, y) { float s = nx * x + 2 * (x) - s * (long)y; SET(s); } }",
        "#define WHERE(c) if (c)\n#define ROWS t.hi[1]\n" START LOOP "}", /* not used */
        "PEAL_KERNEL(other)(peal_tile t) { PEAL_ONE(t) {} }\n" START LOOP "}",
        "/* " START "PEAL_ONE(t) {} } */\n" START LOOP "}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!loops(texts[i]))
            fail_msg("%s", texts[i]);
    assert_true(loops_of(START "PEAL_FOR_3D ( t, x, y, z) PEAL_AT(b, x, y, z) = 0; }", 2, 3, 1));
    assert_true(loops_of("PEAL_KERNEL( k )\n(const peal_tile tile, PEAL_WRITE(float, b), long n)\n{"
                         " PEAL_FOR_2D(tile, x, y) { long t = n; PEAL_AT(b, x, y) = t; } }",
                         1, 2, 0));
    for (int i = -1; i < 4; i++) /* which array is written, how many there are, and their axes */
        if (i != 1)
            assert_false(loops_of(texts[0], 2, 2, i));
    assert_false(loops_of(texts[0], 1, 2, 0) || loops_of(texts[0], 3, 2, 1) ||
                 loops_of(texts[0], 2, 3, 1) || loops_of(texts[0], 2, 4, 1));
}

static void what_does_more_is_not(void **state)
{
    static const char *const bodies[] = {
        "PEAL_FOR_1D(t, x) PEAL_AT(b, x, 0) = 0; }",
        "PEAL_FOR(t, i, 9) PEAL_AT(b, i, 0) = 0; }",
        "PEAL_ONE(t) PEAL_AT(b, 0, 0) = 0; }",
        LOOP "PEAL_SYNC(t); }",
        LOOP "int first = t.lo[0]; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = (float)t.index; }",
        "peal_tile s = t; PEAL_FOR_2D(s, x, y) PEAL_AT(b, x, y) = 0; }",
        LOOP "helper(t); }",
        "PEAL_FOR_2D(t, x, y) { float s = y == (t).hi[1]; PEAL_AT(b, x, y) = s; } }",
        "PEAL_FOR_2D_EVEN(t, x, y, 1) PEAL_AT(b, x, y) = 0; }",
        "PEAL_FOR_2D(t, x, y) { if (x > 3) PEAL_AT(b, x, y) = 0; } }",
        "PEAL_FOR_2D(t, x, y) { if (x > 3) { float s = 1; } PEAL_AT(b, x, y) = 0; } }",
        LOOP "while (0) {} }",
        "return; " LOOP "}",
        "PEAL_FOR_2D(t, x, y) { continue; PEAL_AT(b, x, y) = 0; } }",
        "\n#include \"more.c\"\n" LOOP "}",
        "PEAL_FOR_2D(t, x, y) { put(&PEAL_AT(b, x, y), x); } }",
        "PEAL_FOR_2D(t, x, y) { x && (PEAL_AT(b, x, y) = 1); } }",
        "PEAL_FOR_2D(t, x, y) { long s = x && (PEAL_AT(b, x, y) = 1); } }",
        "PEAL_FOR_2D(t, x, y) for (int i = 0; i < x; i++) PEAL_AT(b, x, y) = 1; }",
        "PEAL_FOR_2D(t, x, y) { for (int i = 0; i < x; i++) { PEAL_AT(b, x, y) = 1; } } }",
        "PEAL_FOR_2D(t, x, y) { for (int i = 0; i < x; PEAL_AT(b, x, y) = 1, i++) {} } }",
        "PEAL_FOR_2D(t, x, y) *(x > 2 ? &PEAL_AT(b, x, y) : q) = 1; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) += 1; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y)++; }",
        "PEAL_FOR_2D(t, x, y) { PEAL_AT(b, x, y) = 1; PEAL_AT(b, x, y) *= PEAL_AT(b, x, y); } }",
        "PEAL_FOR_2D(t, x, y) { PEAL_AT(b, x, y) = 1; float s = PEAL_AT(b, x, y); } }",
        "PEAL_FOR_2D(t, x, y) {} }",
        "for (int i = 0; i < 0; i++) " LOOP "}",
        "for (int i = 0; i < 0; i++) { " LOOP "} }",
        "{ " LOOP "} }",
        "(void)[=] { " LOOP "}; }",
        "0 && ({ " LOOP "1; }); }",
        "PEAL_FOR_2D(t, x, y) PEAL_FOR_2D(t, p, q) PEAL_AT(b, p, q) = 1; }",
        "PEAL_FOR_2D(t, x, y); long x = 0, y = 0; PEAL_AT(b, x, y) = 1; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, y, x) = 1; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x + 1, y) = 1; }",
        "PEAL_FOR_2D(t, x, y) { x = 3; PEAL_AT(b, x, y) = 1; } }",
        "PEAL_FOR_2D(t, x, y) { long x = 3; PEAL_AT(b, x, y) = 1; } }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = a[3]; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = put(a); }",
        "PEAL_FOR_2D(t, x, y) { const float *p = a; PEAL_AT(b, x, y) = p[x]; } }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = RAW(a); }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = RAW_A; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = OLD; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = OLD_OF(b); }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = ROWS; }",
        "PEAL_FOR_2D(t, x, y) { PEAL_AT(b, x, y) = 1; (SET(2)); } }",
        "PEAL_FOR_2D(t, x, y) { float s = 0; PEAL_FOR_2D(t, p, q) { s += PEAL_AT(a, p, q); } "
        "PEAL_AT(b, x, y) = s; } }",
        "float s = 0; PEAL_FOR_2D_EVEN(t, p, q, 1) { s += p; } " LOOP "}",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = (raw PEAL_AT(a, 0, y))[3]; }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a[7] + q, x, y); }",
        "PEAL_FOR_2D(t, x, y) { long q, y; PEAL_AT(b, x, y) = 1; } }",
        "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = blockDim.x; }",
        "PEAL_FOR_2D(t, x, y) WHERE(x > 3) PEAL_AT(b, x, y) = 1; }",
        "PEAL_FOR_2D(t, x, y) { WHERE(x > 3) { float s = 1; } PEAL_AT(b, x, y) = 1; } }",
        "LEAVE; " LOOP "}",
        "EACH(i) {} " LOOP "}",
        "(void)d.out[0]; " LOOP "}",
        LOOP "PEAL_PARTIAL(d, d.out[0]); }",
        LOOP, /* no end */
    };
    char text[1024];
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        snprintf(text, sizeof(text),
                 "#define RAW(v) v[3]\n#define RAW_A a[3]\n#define OLD PEAL_AT(b, x, y)\n#define "
                 "OLD_OF(v) PEAL_AT(v, x, y)\n#define ROWS t.hi[1]\n#define SET(v) PEAL_AT(b, x, "
                 "y) = v\n#define WHERE(c) if (c)\n#define LEAVE return\n#define EACH(i) "
                 "PEAL_FOR(q, i, 3)\n" START "%s",
                 bodies[i]);
        if (loops(text))
            fail_msg("%s", bodies[i]);
    }
}

static void what_is_not_there_once_is_not(void **state)
{
    (void)state;
    assert_false(loops("PEAL_KERNEL(kk)(peal_tile t) { " LOOP "}"));
    assert_false(loops("PEAL_KERNEL(k)(peal_tile t);\n"));
    assert_false(loops("#if 0\n" START LOOP "}\n#else\n" START "PEAL_ONE(t) {} }\n#endif\n"));
    assert_false(loops("#define x y\n" START LOOP "}"));
    assert_false(loops("/* " START LOOP "} */\n" START "PEAL_ONE(t) {} }"));
    assert_false(loops(""));
}

/* As what is written instead of updated. */
static void what_tries_to_get_by_does_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(kernel_tries) / sizeof(kernel_tries[0]); i++) {
        char *text = strdup(kernel_tries[i]);
        for (char *at = strstr(text, "PEAL_UPDATE"); at; at = strstr(at, "PEAL_UPDATE"))
            memmove((char *)memcpy(at, "PEAL_WRITE", 10) + 10, at + 11, strlen(at + 11) + 1);
        for (int written = 0; written < 3; written++)
            for (int arrays = 1; arrays < 5; arrays++)
                if (loops_of(text, arrays, 3, written))
                    fail_msg("%s", text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_only_loops_is_found),
        cmocka_unit_test(what_does_more_is_not),
        cmocka_unit_test(what_is_not_there_once_is_not),
        cmocka_unit_test(what_tries_to_get_by_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
