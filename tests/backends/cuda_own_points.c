/* Kernels that store into what they update at points of their tile alone (codegen/own_points.h). */
#define _GNU_SOURCE
#include "backends/cuda/codegen/own_points.h"
#include "tests/backends/check.h"
#include "tests/backends/kernel_tries.h"

#include <stdio.h>

static bool stores_of(const char *text, int arrays, int index, int axes)
{
    peal_arena *arena = peal_arena_create();
    peal_kernel_file file = {"kernels.c", text};
    const char *folder = ".";
    peal_kernel_files files = {.file = &file, .count = 1, .folder = &folder};
    peal_cuda_tokens tokens;
    bool result = peal_cuda_tokens_read(&files, arena, &tokens) &&
                  peal_cuda_kernel_stores_at_own(&tokens, "k", arrays, index, axes, arena);

    peal_arena_destroy(arena);
    return result;
}

static bool stores(const char *text)
{
    return stores_of(text, 2, 1, 3);
}

#define LOOP "PEAL_FOR_3D_EVEN(t, x, y, z, s) "
#define SUM  "PEAL_AT(u, x - 1, y, z) + PEAL_AT(u, x, y, z + 1) - PEAL_AT(a, x, y, z);"
#define LEFT "#define LEFT(v, x, y, z) PEAL_AT(v, (x)-1, y, z)\n"

static void what_stores_at_own_is_found(void **state)
{
    static const char *const texts[] = {
        HEAD LOOP "PEAL_AT(u, x, y, z) = " SUM "}",
        HEAD LOOP "{ PEAL_AT(u, x, y, z) += " SUM "} }",
        HEAD LOOP
        "{ float old = PEAL_AT(u, x + 1, y, z); if (old > 1 && PEAL_AT(u, x, y, z) != 0) { "
        "PEAL_AT ( u , x , y , z ) *= old; } } }",
        HEAD LOOP "PEAL_AT(u, x, y, z) = sqrt(PEAL_AT(u, x, y - 1, z)); /* u[0] = t; */ }",
        "#define HALF 0.5f\n" HEAD LOOP "PEAL_AT(u, x, y, z) = HALF * " SUM "}",
        LEFT HEAD LOOP "PEAL_AT(u, x, y, z) = LEFT(u, x, y, z) <= 1 ? LEFT(a, x, y, z) : 0; }",
        LEFT
        "#define BOTH(u, x, y, z) \\\n  (LEFT(u, x, y, z) + LEFT(u, (x) + 2, y, z))\n" HEAD LOOP
        "PEAL_AT(u, x, y, z) = BOTH(u, x, y, z) == BOTH(a, x, y, z); }",
        LEFT "#define MORE(v) LEFT(u, x, y, z) * (v)\n" HEAD LOOP
             "PEAL_AT(u, x, y, z) = MORE(PEAL_AT(u, x, y, z - 1)); }",
        "#define TWICE(v) PEAL_FMA(2, v, PEAL_AT(u, x, y, z + 1))\n" HEAD LOOP
        "PEAL_AT(u, x, y, z) = PEAL_FMA(PEAL_AT(u, x, y - 1, z), 2, TWICE(3)); }",
        HEAD "double d = 0; " LOOP "{ d += x; PEAL_AT(u, x, y, z) = " SUM
             "} PEAL_PARTIAL(sum, d); }",
        "typedef float real;\nstruct pair { real a, b; };\nstatic const double half = 0.5;\nstatic "
        "real f(real v);\nstatic real f(real v) { return v > 0 && v < 1 ? half * v : 0; }\n" HEAD
            LOOP "{ const real w[2] = {1, 2}; PEAL_AT(u, x, y, z) = f(w[1]); } }",
        HEAD LOOP "{ long colour = (x + y) & 1; PEAL_AT(u, x, y, z) = colour; } }",
        "#define STORE(v) v = 1\n" HEAD LOOP "STORE(PEAL_AT(u, x, y, z)); }",
        "#define NONE() 3\n#define REAL float\nPEAL_KERNEL(k)(peal_tile t, PEAL_READ(REAL, a), "
        "PEAL_UPDATE(REAL, u)) { " LOOP "PEAL_AT(u, x, y, z) = NONE() * x; }",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!stores(texts[i]))
            fail_msg("%s", texts[i]);
    assert_true(stores_of(HEAD
                          "PEAL_FOR_2D(t, i, j) PEAL_AT(u, i, j) = 2 * PEAL_AT(u, i - 1, j); "
                          "PEAL_FOR_2D_INSIDE(t, i, j, in, 0, 9, 0, 9) { for (int k = 0; k < 3; "
                          "k++) { PEAL_AT(u, i, j) -= in; } } }",
                          2, 1, 2));
    assert_false(stores_of(texts[0], 2, 0, 3)); /* is read */
    assert_false(stores_of(texts[0], 2, 2, 3)); /* there is none */
    assert_false(stores_of(texts[0], 3, 1, 3));
    assert_false(stores_of(texts[0], 2, 1, 2));
    assert_false(stores_of("PEAL_KERNEL(k)(peal_tile t, PEAL_WRITE(int, v), PEAL_WRITE(int, w)) {}",
                           2, 1, 2));
}

static void what_may_store_elsewhere_is_not(void **state)
{
    static const char *const bodies[] = {
        LOOP "PEAL_AT(u, x + 1, y, z) = 0; }",
        LOOP "PEAL_AT(u, y, x, z) = 0; }",
        LOOP "PEAL_AT(u, x, y) = 0; }",
        LOOP "PEAL_AT(u, x, y, z, 1) = 0; }",
        LOOP "PEAL_AT(u, x, y, s) = 0; }",
        LOOP "PEAL_AT(u, 2 * x, y, z) = 0; }",
        LOOP "{ PEAL_AT(u, x, y, z) = 0; PEAL_AT(u, x - 1, y, z) += 1; } }",
        LOOP "{ PEAL_AT(u, x, y, z) = PEAL_AT(u, x - 1, y, z) = 1; } }",
        LOOP "{ PEAL_AT(u, x, y, z) = 1, PEAL_AT(u, x - 1, y, z) = 1; } }",
        LOOP "{ PEAL_AT(u, x - 1, y, z)++; } }",
        LOOP "{ --PEAL_AT(u, x - 1, y, z); } }",
        LOOP "{ ((PEAL_AT(u, x - 1, y, z)))--; } }",
        LOOP "{ (PEAL_AT(u, x - 1, y, z)) <<= 1; } }",
        LOOP "{ float *p = &PEAL_AT(u, x, y, z); p[1] = 0; } }",
        LOOP "{ *&(PEAL_AT(u, x - 1, y, z)) = 0; } }",
        LOOP "{ put(&PEAL_AT(u, x, y, z)); } }",
        LOOP "{ u[x] = 0; } }",
        LOOP "{ float *p = u; p[1] = 0; } }",
        LOOP "{ put(u); } }",
        LOOP "{ put(u, x); PEAL_AT(u, x, y, z) = 0; } }",
        LOOP "{ x++; PEAL_AT(u, x, y, z) = 0; } }",
        LOOP "{ x = 3; PEAL_AT(u, x, y, z) = 0; } }",
        LOOP "{ put(&x); PEAL_AT(u, x, y, z) = 0; } }",
        LOOP "{ for (long x = 0; x < 9; x++) PEAL_AT(u, x, y, z) = 0; } }",
        LOOP "{ for (int i = 0; i < 3; i++) { long z = i; PEAL_AT(u, x, y, z) = 0; } } }",
        LOOP "{ asm(\"\"); PEAL_AT(u, x, y, z) = 0; } }",
        LOOP "{ goto out; out: PEAL_AT(u, x, y, z) = 0; } }",
        LOOP "PEAL_AT(u, x, y, z) = 0; helper(t); }",
        "t.hi[0]++; " LOOP "PEAL_AT(u, x, y, z) = 0; }",
        "peal_tile w = t; w.lo[0] = 0; PEAL_FOR_3D(w, x, y, z) PEAL_AT(u, x, y, z) = 0; }",
        "long x = 0, y = 0, z = 0; PEAL_AT(u, x, y, z) = 0; }",
        "PEAL_ONE(t) PEAL_AT(u, 0, 0, 0) = 0; }",
        "PEAL_FOR_1D(t, x) PEAL_AT(u, x) = 0; }",
        LOOP "PEAL_AT(u, x, y, z) = 0;\n#include \"more.h\"\n }",
        LOOP "PEAL_AT(u, x, y, z) = 0;", /* no end */
    };
    char text[1024];
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        snprintf(text, sizeof(text), HEAD "%s", bodies[i]);
        if (stores(text))
            fail_msg("%s", text);
    }
}

static void what_macros_may_hide_is_not(void **state)
{
    static const char *const hidden[][2] = {
        {"M x++", "M;"},
        {"M PEAL_AT(u, x - 1, y, z) =", "M 3;"},
        {"M PEAL_AT(u, x - 1, y, z)", "M = 3;"},
        {"M PEAL_AT(u, x - 1, y, z)", "(M) += 3;"},
        {"M =", "PEAL_AT(u, x - 1, y, z) M 3;"},
        {"M u", "put(M);"},
        {"M u[x]", "s = M;"},
        {"M x", "M++;"},
        {"M(v, w) PEAL_AT(v, w, 0, 0)", "M(u, x) = 1;"},
        {"M(v, w) PEAL_AT(v, w, 0, 0)", "(M(u, x))++;"},
        {"M(v, w) PEAL_AT(v, w, 0, 0)", "put(&M(u, x));"},
        {"M(v, w) PEAL_AT(v, w, 0, 0)", "s = M(a, u);"},
        {"M(v, w) PEAL_AT(v, w, 0, 0)", "s = M(u + 1, x);"},
        {"M(v, w) PEAL_AT(v, w, 0, 0)", "s = M(u, u);"},
        {"M(v, w) PEAL_AT(v, w, 0, 0)", "s = M(u);"},
        {"M(v, w) PEAL_AT(v, w, 0, 0)", "s = M(u, 1, 2);"},
        {"M(v, ...) PEAL_AT(v, 1, 0, 0)", "s = M(u, 1);"},
        {"M(v) (v)++", "M(PEAL_AT(u, x - 1, y, z));"},
        {"M(v) v = 1", "M(PEAL_AT(u, x - 1, y, z));"},
        {"M(v) (v) <<= 1", "M(PEAL_AT(u, x - 1, y, z));"},
        {"M(v) put(& v)", "M(PEAL_AT(u, x - 1, y, z));"},
        {"M(v) v", "M(u)[3] = 1;"},
        {"M(v) put(v)", "M(u);"},
        {"M(v) (v)", "put(M(u));"},
        {"M(v) PEAL_AT(a, v, 0, 0)", "s = M(u);"},
        {"M(v) PEAL_AT(a, 1, 0, 0) + u[1]", "s = M(a);"},
        {"M(v) a ## v", "s = M(u);"},
        {"M(v) PEAL_PARTIAL(u, v)", "M(1);"},
        {"M long y(5)", "M;"},
        {"M(v) long v(5)", "M(y);"},
        {"M(v) v(5)", "long M(y);"},
        {"M(v) long v(5)", "{ M(x); PEAL_AT(u, x, y, z) = 1; }"},
        {"M(v) long v(5)", "if (M(x); x > 2) PEAL_AT(u, x, y, z) = 1;"},
        {"M for", "M (long (x) : {5}) PEAL_AT(u, x, y, z) = 1;"},
        {"M [s]", "[M] s = 1;"},
        {"M # v", "M;"},
        {"M(v) OTHER(v, 1)", "M(u);"},
        {"M(v) PEAL_FMA(v, 1, 1)", "s = M(u);"},
        {"M(v) OTHER(v, 1)", "M(a);"},
        {"M(u) OTHER(u, 1)", "M(u);"},
        {"M(v) M(v)", "s = M(u);"},
    };
    char text[1024];
    (void)state;
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        snprintf(text, sizeof(text),
                 "#define OTHER(v, w) (v)[w] -= 1\n#define %s\n" HEAD LOOP
                 "{ %s PEAL_AT(u, x, y, z) = 0; } }",
                 hidden[i][0], hidden[i][1]);
        if (stores(text))
            fail_msg("%s", text);
    }
}

static void what_tries_to_get_by_does_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(kernel_tries) / sizeof(kernel_tries[0]); i++)
        for (int index = 0; index < 3; index++)
            for (int arrays = 1; arrays < 5; arrays++)
                if (stores_of(kernel_tries[i], arrays, index, 3))
                    fail_msg("%s", kernel_tries[i]);
}

static void what_is_not_known_is_not(void **state)
{
    (void)state;
    assert_false(
        stores("#if 0\n" HEAD LOOP "PEAL_AT(u, x, y, z) = 0; }\n#else\n" HEAD "}\n#endif\n"));
    assert_false(stores("#define C 1\n#define C x++\n" HEAD LOOP "PEAL_AT(u, x, y, z) = C; }"));
    assert_false(stores_of("PEAL_KERNEL(kk)(peal_tile t, PEAL_UPDATE(int, u)) {}", 1, 0, 3));
    assert_false(stores(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stores_at_own_is_found),
        cmocka_unit_test(what_may_store_elsewhere_is_not),
        cmocka_unit_test(what_macros_may_hide_is_not),
        cmocka_unit_test(what_tries_to_get_by_does_not),
        cmocka_unit_test(what_is_not_known_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
