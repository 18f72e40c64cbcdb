/* The device's code on the host: copies, folds, waits, flags and generated tasks, compiled by c++
 * with fibers for the threads of a block. */
#define _GNU_SOURCE
#include "backends/cuda/jit/kernels.h"
#include "tests/backends/check.h"
#include "tests/backends/local_job.h"
#include "tests/backends/scratch.h"

#include <stdio.h>
#include <stdlib.h>

static const char *root;
static char folder[64];

static const char kernels[] =
    "PEAL_KERNEL(line)(peal_tile t, PEAL_UPDATE(double, a), double w)\n"
    "{\n    PEAL_FOR_1D_EVEN(t, x, 0) {\n        PEAL_AT(a, x) += x % 2 ? 3 : w;\n    }\n"
    "    PEAL_FOR_1D_EVEN(t, x, w)\n        PEAL_AT(a, x) += x % 2 ? w : 3;\n"
    "    PEAL_FOR_1D_INSIDE(t, x, in, 3, 40)\n"
    "        PEAL_AT(a, x) += in == (x >= 3 && x < 40) ? 0 : w;\n}\n"
    "PEAL_KERNEL(plane)(peal_tile t, PEAL_UPDATE(double, b), double w)\n"
    "{\n    if (w > 1)\n        PEAL_FOR_2D_EVEN(t, x, y, 0)\n            PEAL_AT(b, x, y) = -1;\n"
    "    else\n        PEAL_FOR_2D(t, x, y) {\n"
    "            if ((x + y) % 3 == 0) {\n                PEAL_AT(b, x, y) += w;\n"
    "                continue;\n            }\n            double x_once = 0.5, k = w;\n"
    "            for (int i = 0; i < 2; i++)\n                PEAL_AT(b, x, y) += x_once * k;\n"
    "        }\n"
    "    PEAL_FOR_2D_INSIDE(t, x, y, in, 1, 7, 2, 5) {\n"
    "        if (in != (x >= 1 && x < 7 && y >= 2 && y < 5))\n            continue;\n"
    "        PEAL_AT(b, x, y) = -PEAL_AT(b, x, y);\n    }\n"
    "    PEAL_FOR_2D_EVEN(t, x, y, 0) PEAL_AT(b, x, y) *= (x + y) % 2 ? 2 : -1;\n"
    "    PEAL_FOR_2D_EVEN(t, x, y, 1) PEAL_AT(b, x, y) *= (x + y) % 2 ? -1 : 2;\n}\n"
    "PEAL_KERNEL(room)(peal_tile t, PEAL_UPDATE(double, c), double w)\n"
    "{\n    PEAL_FOR_3D(t, x, y, z) {\n        if (x % 2) {\n"
    "            PEAL_AT(c, x, y, z) += w;\n            continue;\n        }\n"
    "        PEAL_AT(c, x, y, z) += w;\n    }\n"
    "    if (w > 0)\n        PEAL_FOR_3D_INSIDE(t, x, y, z, in, 0, 5, 1, 6, 3, 4)\n"
    "            PEAL_AT(c, x, y, z) *= in == (x < 5 && y >= 1 && y < 6 && z == 3) ? -1 : 2;\n"
    "    else\n        w = 0;\n"
    "    PEAL_FOR_3D_EVEN(t, x, y, z, 2) PEAL_AT(c, x, y, z) *= (x + y + z) % 2 ? 2 : -1;\n"
    "    PEAL_FOR_3D_EVEN(t, x, y, z, 1 + t.count * 0) {\n        if ((x + y + z) % 2 == 0)\n"
    "            continue;\n        PEAL_AT(c, x, y, z) = -PEAL_AT(c, x, y, z);\n    }\n}\n"
    "PEAL_KERNEL(plane_sum)(peal_tile t, PEAL_READ(double, b), PEAL_REDUCE(double, s))\n"
    "{\n    double sum = 0;\n    PEAL_FOR_2D(t, x, y) sum += PEAL_AT(b, x, y);\n"
    "    PEAL_PARTIAL(s, sum);\n}\n"
    "PEAL_KERNEL(room_sum)(peal_tile t, PEAL_READ(double, c), PEAL_REDUCE(double, s))\n"
    "{\n    double sum = 0;\n    PEAL_FOR_3D(t, x, y, z) sum += PEAL_AT(c, x, y, z);\n"
    "    PEAL_PARTIAL(s, sum);\n}\n";

static const char spec[] =
    "peal: 1\nname: emulated\nkernels: k.c\n"
    "fields: {a: {size: 8}, b: {size: [8, 8]}, c: {size: [8, 8, 8]}}\n"
    "buffers: {s: {}}\nstep:\n  - {task: line, box: a, update: a, args: 1.0}\n"
    "  - {task: plane, box: b, update: b, args: 1.0}\n"
    "  - {task: room, box: c, update: c, args: 1.0}\n"
    "  - {task: plane_sum, box: b, read: b, reduce: {s: sum}}\n"
    "  - {task: room_sum, box: c, read: c, reduce: {s: sum}}\n";

static peal_status take_source(const peal_backend_desc *desc, void *user)
{
    peal_arena *arena = peal_arena_create();
    const char *text = NULL, *communication_free = NULL;
    peal_status status = peal_cuda_kernels_source(desc, arena, &text);

    (void)user;
    if (!status)
        status = peal_cuda_kernels_communication_free_source(desc, arena, &communication_free);
    if (status)
        peal_diagnostics_print(desc->diagnostics, stderr, 0);
    else {
        scratch_write(folder, "unit.cu", text);
        scratch_write(folder, "communication_free.cu", communication_free);
    }
    peal_arena_destroy(arena);
    return status;
}

static int shell(const char *format)
{
    char command[2048];
    char *at = command;

    for (; *format; format++) /* @: the folder, #: the sources */
        if (*format == '@' || *format == '#')
            at += sprintf(at, "%s", *format == '@' ? folder : root);
        else
            *at++ = *format;
    *at = '\0';
    return system(command);
}

static void device_code_does_as_it_says(void **state)
{
    char path[96];
    (void)state;
    if (shell("c++ --version >/dev/null 2>&1") != 0) {
        print_message("skipped: no C++ compiler\n");
        skip();
    }
    scratch_write(folder, "k.c", kernels);
    scratch_write(folder, "spec.yaml", spec);
    snprintf(path, sizeof(path), "%s/spec.yaml", folder);
    local_options options = {.spec = path, .ranks = 1, .workers = 1, .mode = PEAL_MODE_STREAM};
    assert_int_equal(local_describe(&options, take_source, NULL), PEAL_STATUS_OK);
    assert_int_equal(shell("ln -s '#/backends/cuda/codegen/device' @/peal"), 0);
    assert_int_equal(shell("cc -O1 -I '#' -I '#/include' -c '#/backends/host/fold.c' -o @/fold.o"),
                     0);
    assert_int_equal(shell("c++ -std=c++17 -O1 -w -ffp-contract=off -I @ "
                           "-I '#/tests/backends/emulated' '#/tests/backends/emulated/main.cc' "
                           "@/fold.o -o @/run"),
                     0);
    assert_int_equal(shell("@/run"), 0);
    assert_int_equal(shell("cc -O1 -I '#' -c '#/backends/cuda/lower/tile_shape.c' -o @/cut.o"), 0);
    assert_int_equal(
        shell("c++ -std=c++17 -O1 -w -ffp-contract=off -I @ "
              "-I '#/tests/backends/emulated' '#/tests/backends/emulated/communication_free.cc' "
              "@/cut.o -o @/communication_free"),
        0);
    assert_int_equal(shell("@/communication_free"), 0);
    assert_int_equal(shell("@/run partials >@/full.txt && @/communication_free partials "
                           ">@/communication_free.txt"),
                     0);
    assert_int_equal(shell("test -s @/full.txt && cmp @/full.txt @/communication_free.txt"), 0);
}

static int set_up(void **state)
{
    (void)state;
    return scratch_make(folder, sizeof(folder)) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(device_code_does_as_it_says)};
    root = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests_name("device code on the host", tests, set_up, tear_down);
}
