/* Kernels compiled for a GPU by NVRTC, without a GPU: every PTX is searched for non-coherent loads,
 * since a kernel may have waited for memory that another GPU has just written; mistakes are told at
 * the user's line. */
#define _GNU_SOURCE
#include "backends/cuda/jit/compile.h"
#include "backends/cuda/jit/kernels.h"
#include "tests/backends/check.h"
#include "tests/backends/cuda_ptx.h"
#include "tests/backends/local_job.h"
#include "tests/backends/nvrtc_job.h"
#include "tests/backends/scratch.h"
#include "tests/share/share.h"

#include <stdio.h>
#include <stdlib.h>

static const char *root; /* of the sources */
static char folder[400];

static const char *const specs[] = {"cg/cg.yaml",
                                    "denoise/denoise.yaml",
                                    "halo/halo.yaml",
                                    "halo/short.yaml",
                                    "heat3d/heat3d.yaml",
                                    "hdiff/hdiff.yaml",
                                    "particles/particles.yaml",
                                    "jacobi2d/jacobi2d.yaml",
                                    "mesh/mesh.yaml",
                                    "vcycle/vcycle.yaml"};

typedef struct outcome {
    peal_status status;
    char *ptx, *communication_free; /* communication_free: NULL if there are no communication-free
                                       kernels */
    int errors;
    peal_code code; /* of the first error */
    char file[256], message[512], hint[512];
    int line, column;
} outcome;

static void forget(outcome *out)
{
    free(out->ptx);
    free(out->communication_free);
}

static void take_error(const peal_diagnostics *diagnostics, outcome *out)
{
    out->errors = peal_diagnostics_errors(diagnostics);
    for (int i = 0; i < peal_diagnostics_count(diagnostics); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(diagnostics, i);
        if (d->severity != PEAL_ERROR)
            continue;
        out->code = d->code;
        out->line = d->source.line;
        out->column = d->source.column;
        snprintf(out->file, sizeof(out->file), "%s", d->source.file ? d->source.file : "");
        snprintf(out->message, sizeof(out->message), "%s", d->message);
        snprintf(out->hint, sizeof(out->hint), "%s", d->hint ? d->hint : "");
        return;
    }
}

static peal_status take_ptx(const peal_backend_desc *desc, void *user)
{
    outcome *out = user;
    peal_arena *arena = peal_arena_create();
    const char *ptx = NULL, *communication_free = NULL;

    out->status = peal_cuda_kernels_ptx(desc, arena, &ptx, &communication_free);
    if (!out->status)
        out->ptx = strdup(ptx);
    if (!out->status && communication_free)
        out->communication_free = strdup(communication_free);
    take_error(desc->diagnostics, out);
    peal_arena_destroy(arena);
    return PEAL_STATUS_OK;
}

/* What another test or an earlier run has compiled is not compiled again; NULL: nothing is kept. */
static const char *cache_of_tests(void)
{
    const char *named = getenv("PEAL_TEST_CACHE");
    return named && *named ? named : NULL;
}

static void compile_spec(const char *spec, int ranks, outcome *out)
{
    local_options options = {.spec = spec,
                             .ranks = ranks,
                             .workers = 1,
                             .mode = PEAL_MODE_STREAM,
                             .cache = cache_of_tests()};

    *out = (outcome){0};
    assert_int_equal(local_describe(&options, take_ptx, out), PEAL_STATUS_OK);
}

/* NVRTC takes ten seconds a sample: a commit's share of them, and the one that is looked at more
 * closely. */
static void samples_load_coherently(void **state)
{
    const test_share share = share_of(8);
    (void)state;
    if (!nvrtc_is_here())
        skip();
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        if (i % share.every != share.first && !strstr(specs[i], "jacobi2d"))
            continue;
        char path[512];
        outcome out;
        snprintf(path, sizeof(path), "%s/samples/%s", root, specs[i]);
        compile_spec(path, 4, &out);
        if (out.status)
            fail_msg("%s: %s:%d: %s", specs[i], out.file, out.line, out.message);
        const char *found = ptx_non_coherent(out.ptx);
        if (found)
            fail_msg("%s: %.60s", specs[i], found);
        assert_non_null(strstr(out.ptx, ".entry peal_task_0"));
        assert_non_null(strstr(out.ptx, ".entry peal_copy"));
        /* Communication-free kernels may load as they like; where rows allow it, two points at a
         * time. */
        assert_non_null(out.communication_free);
        assert_non_null(strstr(out.communication_free, "_communication_free("));
        if (strstr(specs[i], "jacobi2d")) {
            assert_non_null(strstr(out.communication_free, "ld.global.nc.v2.f32"));
            assert_non_null(strstr(out.communication_free, "st.global.v2.f32"));
        }
        forget(&out);
    }
}

static peal_status take_communication_free(const peal_backend_desc *desc, void *user)
{
    char **out = user;
    peal_arena *arena = peal_arena_create();
    const char *text = NULL;
    peal_status status = peal_cuda_kernels_communication_free_source(desc, arena, &text);

    if (!status && text)
        *out = strdup(text);
    peal_arena_destroy(arena);
    return status;
}

/* Offsets of communication-free kernels have 32 bits where all of them fit, on all ranks of the
 * process. */
static void offsets_are_as_wide_as_needed(void **state)
{
    static const struct {
        const char *size;
        bool narrow;
    } cases[] = {{"[1000, 1000, 1000]", true}, {"[2140, 1000, 1000]", true},
                 {"[4280, 1000, 1000]", true}, {"[4300, 1000, 1000]", false},
                 {"[16, 16, 8388608]", true},  {"[16, 16, 16777216]", false},
                 {"[60000, 60000]", true},     {"[70000, 70000]", false}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[512], *text = NULL;
        snprintf(path, sizeof(path), "%s/k.c", folder);
        FILE *file = fopen(path, "w");
        fputs("PEAL_KERNEL(go)(peal_tile t, PEAL_WRITE(double, u))\n{\n}\n", file);
        fclose(file);
        snprintf(path, sizeof(path), "%s/spec.yaml", folder);
        file = fopen(path, "w");
        fprintf(file,
                "peal: 1\nname: wide\nkernels: k.c\nfields: {u: {size: %s}}\n"
                "step:\n  - {task: go, box: u, write: u}\n",
                cases[i].size);
        fclose(file);
        local_options options = {.spec = path, .ranks = 2, .workers = 1, .mode = PEAL_MODE_STREAM};
        assert_int_equal(local_describe(&options, take_communication_free, &text), PEAL_STATUS_OK);
        if ((strstr(text, "#define PEAL_OFFSET_ int\n") != NULL) != cases[i].narrow)
            fail_msg("%s", cases[i].size);
        free(text);
    }
}

/* A spec of one task `go` that reads u, writes v, with an argument that is a real number. */
static void write_files(const char *kernels, const char *more)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/spec.yaml", folder);
    file = fopen(path, "w");
    fprintf(
        file,
        "peal: 1\nname: planted\n%skernels: k.c\n"
        "fields: {u: {size: [64, 64], halo: 1}, v: {like: u}}\nbuffers: {s: {}, n: {type: i32}}\n"
        "step:\n  - {exchange: u}\n"
        "  - {task: go, box: v, read: {u: {star: 1}}, write: v, reduce: {s: sum}, args: s + n}\n"
        "  - {set: n, value: n + step %% 7}\nfinish:\n  - {print: {s: s}}\n",
        more);
    fclose(file);
    snprintf(path, sizeof(path), "%s/k.c", folder);
    file = fopen(path, "w");
    fputs(kernels, file);
    fclose(file);
}

static void compile_text(const char *kernels, const char *more, outcome *out)
{
    char path[512];

    write_files(kernels, more);
    snprintf(path, sizeof(path), "%s/spec.yaml", folder);
    compile_spec(path, 2, out);
}

#define HEAD                                                                                       \
    "PEAL_KERNEL(go)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v),\n"                  \
    "                PEAL_REDUCE(double, s), double w)\n"

/* Every way that makes NVRTC emit a non-coherent load, if nothing is done about it. */
static void planted_loads_stay_coherent(void **state)
{
    outcome out;
    (void)state;
    if (!nvrtc_is_here())
        skip();
    compile_text("static double from(const double *__restrict__ p, double *restrict q, long i)\n"
                 "{\n    q[0] = 1;\n    return __ldg(p + i) + __ldg(&p[i + 1]);\n}\n" HEAD
                 "{\n    const double *__restrict__ p = &PEAL_AT(u, 0, 0);\n"
                 "    double *__restrict q = &PEAL_AT(v, 0, 0);\n    double sum = 0;\n"
                 "    PEAL_FOR_2D(t, x, y) {\n"
                 "        q[x] = p[x] + w + from(p, q, x);\n        sum += sin(p[x]);\n    }\n"
                 "    PEAL_PARTIAL(s, sum);\n}\n",
                 "", &out);
    if (out.status)
        fail_msg("%s:%d:%d: %s", out.file, out.line, out.column, out.message);
    assert_null(ptx_non_coherent(out.ptx));
    forget(&out);
}

/* The search finds what NVRTC makes of restrict pointers, and knows tables from them. */
static void search_finds_non_coherent_loads(void **state)
{
    static const char source[] =
        "extern \"C\" __global__ void k(const double *__restrict__ a, double *__restrict__ b)\n"
        "{ b[threadIdx.x] = sin(a[threadIdx.x]); }\n"
        "extern \"C\" __global__ void l(const double *a, double *b)\n"
        "{ b[threadIdx.x] = a[threadIdx.x]; }\n";
    static const char tables[] =
        "extern \"C\" __global__ void k(const double *a, double *b)\n"
        "{ b[threadIdx.x] = sin(a[threadIdx.x]) + cos(a[threadIdx.x] + 1); }\n";
    peal_kernel_files none = {0};
    peal_cuda_compile_result result;
    (void)state;
    if (!nvrtc_is_here())
        skip();
    peal_arena *arena = peal_arena_create();
    peal_cuda_compile_request request = {
        .source = source, .files = &none, .architecture = 90, .ptx = true, .arena = arena};
    assert_int_equal(peal_cuda_compile(&request, &result), PEAL_STATUS_OK);
    const char *found = ptx_non_coherent(result.image);
    assert_non_null(found);
    assert_memory_equal(found, "ld.global.nc", 12);
    request.source = tables;
    assert_int_equal(peal_cuda_compile(&request, &result), PEAL_STATUS_OK);
    assert_non_null(strstr(result.image, "ld.global.nc"));
    assert_null(ptx_non_coherent(result.image));
    peal_arena_destroy(arena);
}

/* a * b + c in one step only where the spec or PEAL_FMA says so. */
static void nothing_is_contracted(void **state)
{
    static const char kernel[] = HEAD "{\n    PEAL_FOR_2D(t, x, y) {\n"
                                      "        double a = PEAL_AT(u, x, y);\n"
                                      "        PEAL_AT(v, x, y) = a * w + 3;\n    }\n"
                                      "    PEAL_PARTIAL(s, 0);\n}\n";
    outcome out;
    (void)state;
    if (!nvrtc_is_here())
        skip();
    compile_text(kernel, "", &out);
    assert_int_equal(out.status, PEAL_STATUS_OK);
    assert_null(strstr(out.ptx, "fma.rn.f64"));
    forget(&out);
    compile_text(kernel, "fma: true\n", &out);
    assert_int_equal(out.status, PEAL_STATUS_OK);
    assert_non_null(strstr(out.ptx, "fma.rn.f64"));
    forget(&out);
    compile_text(HEAD "{\n    PEAL_FOR_2D(t, x, y) {\n        float f = 2;\n"
                      "        PEAL_AT(v, x, y) = PEAL_FMA(PEAL_AT(u, x, y), w, f);\n    }\n}\n",
                 "", &out);
    assert_int_equal(out.status, PEAL_STATUS_OK);
    assert_non_null(strstr(out.ptx, "fma.rn.f64"));
    forget(&out);
}

typedef struct mistake {
    const char *text;
    peal_code code;
    int line, column;
    const char *words, *hint;
} mistake;

static void mistakes_are_told(void **state)
{
    static const mistake mistakes[] = {
        {"\n" HEAD
         "{\n    PEAL_FOR_2D(t, x, y) {\n        PEAL_AT(v, x, y) = wrong + w;\n    }\n}\n",
         PEAL_E_KERNEL_COMPILE_ERROR, 6, 28, "\"wrong\" is undefined", ""},
        {HEAD "{\n    double r = 1\n    PEAL_PARTIAL(s, r);\n}\n", PEAL_E_KERNEL_COMPILE_ERROR, 5,
         0, "expected a \";\"", "is a `;` missing"},
        {HEAD "{\n    PEAL_FOR_2D(t, x, y) {\n    PEAL_PARTIAL(s, 0);\n}\n",
         PEAL_E_KERNEL_COMPILE_ERROR, 3, 1, "this `{` is never closed", "is a `}` missing"},
        {HEAD "{\n    PEAL_FOR_2D(t, x, y) {\n        PEAL_AT(q, x, y) = 1;\n    }\n}\n",
         PEAL_E_KERNEL_COMPILE_ERROR, 5, 9, "\"q\" is undefined", ""},
        {HEAD "{\n    PEAL_PARTIAL(z, 0);\n}\n", PEAL_E_KERNEL_COMPILE_ERROR, 4, 5,
         "\"z\" is undefined", ""},
        {HEAD "{\n    double r = )\n    PEAL_PARTIAL(nothing, r);\n}\n",
         PEAL_E_KERNEL_COMPILE_ERROR, 4, 16, "expected an expression", ""},
        {"#include \"mine.h\"\n" HEAD "{\n}\n", PEAL_E_KERNEL_COMPILE_ERROR, 1, 0, "mine.h",
         "beside the file"},
        {"PEAL_KERNEL(goo)(peal_tile t)\n{\n}\n", PEAL_E_NO_SUCH_KERNEL, 0, 0, "PEAL_KERNEL(go)",
         "did you mean `goo`?"},
        {"\nPEAL_KERNEL(go)(peal_tile t, PEAL_READ(float, u))\n{\n}\n",
         PEAL_E_KERNEL_SIGNATURE_MISMATCH, 2, 1,
         "does not fit task `go`: its parameters are others",
         "PEAL_REDUCE(double, s), double argument_1)"},
        {"PEAL_KERNEL(go)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v),\n"
         "                PEAL_REDUCE(double, s), long w)\n{\n}\n",
         PEAL_E_KERNEL_SIGNATURE_MISMATCH, 1, 1, "does not fit", "double argument_1)"},
        {"#include <stdio.h>\n" HEAD "{\n}\n", PEAL_E_KERNEL_NOT_FOR_GPU, 1, 0, "stdio.h",
         "no library but math"},
        {HEAD "{\n    PEAL_ONE(t) {\n        PEAL_PARTIAL(s, 1);\n    }\n}\n",
         PEAL_E_KERNEL_COMPILE_ERROR, 5, 0,
         "PEAL_PARTIAL is for all threads of a tile: not within PEAL_ONE or PEAL_FOR", ""},
        {HEAD "{\n    PEAL_FOR_2D(t, x, y)\n        PEAL_PARTIAL(s, PEAL_AT(u, x, y));\n}\n",
         PEAL_E_KERNEL_COMPILE_ERROR, 5, 0, "PEAL_PARTIAL is for all threads of a tile", ""},
        {HEAD "{\n    PEAL_FOR(t, i, 7) {\n        PEAL_SYNC(t);\n    }\n}\n",
         PEAL_E_KERNEL_COMPILE_ERROR, 5, 0, "PEAL_SYNC is for all threads of a tile", ""},
    };
    (void)state;
    if (!nvrtc_is_here())
        skip();
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        const mistake *m = &mistakes[i];
        outcome out;
        compile_text(m->text, "", &out);
        if (out.status == PEAL_STATUS_OK || out.code != m->code || !strstr(out.message, m->words) ||
            !strstr(out.hint, m->hint) || (m->line && out.line != m->line) ||
            (m->column && out.column != m->column) || (m->line && !strstr(out.file, "/k.c")))
            fail_msg("mistake %zu: %s:%d:%d: %s [%s] (%s)", i, out.file, out.line, out.column,
                     out.message, peal_code_number(out.code), out.hint);
        assert_int_equal(out.errors, 1);
    }
}

/* More values that only the run has than a launch carries. */
static void long_statements_are_told(void **state)
{
    char text[2048] = "", buffers[1024] = "", path[512];
    outcome out;
    (void)state;

    for (int i = 0; i < 18; i++) {
        sprintf(buffers + strlen(buffers), "%sb%d: {}", i ? ", " : "", i);
        sprintf(text + strlen(text), "%sb%d", i ? " + " : "", i);
    }
    write_files("", "");
    snprintf(path, sizeof(path), "%s/spec.yaml", folder);
    FILE *file = fopen(path, "w");
    fprintf(file, "peal: 1\nname: long\nbuffers: {%s}\nstep:\n  - {set: b0, value: %s}\n", buffers,
            text);
    fclose(file);
    compile_spec(path, 1, &out);
    assert_int_equal(out.status, PEAL_STATUS_SPEC);
    assert_int_equal(out.code, PEAL_E_STATEMENT_TOO_LARGE);
}

static peal_status take_source(const peal_backend_desc *desc, void *user)
{
    char **out = user;
    peal_arena *arena = peal_arena_create();
    const char *text = NULL;
    peal_status status = peal_cuda_kernels_source(desc, arena, &text);

    if (!status)
        *out = strdup(text);
    peal_arena_destroy(arena);
    return status;
}

/* A task that changes what its arguments read: one tile, whose threads read them first. */
static void arguments_are_read_before_they_change(void **state)
{
    static const struct {
        const char *key, *argument;
        bool barrier, communication_free;
    } cases[] = {{"update: n, tile: whole", "n", true, false},
                 {"update: n, tile: whole", "2 * n", true, false},
                 {"update: n, tile: whole", "m", false, false},
                 {"update: u, read: n", "n", false, true}};
    char path[512], other[512];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = NULL, *communication_free = NULL;
        bool reads = strstr(cases[i].key, "read") != NULL;
        snprintf(other, sizeof(other), "%s/k.c", folder);
        FILE *file = fopen(other, "w");
        fprintf(file, "PEAL_KERNEL(go)(peal_tile t, %s, double w)\n{\n}\n",
                reads ? "PEAL_READ(double, n), PEAL_UPDATE(double, u)" : "PEAL_UPDATE(double, n)");
        fclose(file);
        snprintf(path, sizeof(path), "%s/spec.yaml", folder);
        file = fopen(path, "w");
        fprintf(file,
                "peal: 1\nname: changed\nkernels: k.c\nfields: {u: {size: [16, 16]}}\n"
                "buffers: {n: {}, m: {}}\nstep:\n  - {task: go, box: u, %s, args: %s}\n",
                cases[i].key, cases[i].argument);
        fclose(file);
        local_options options = {.spec = path, .ranks = 1, .workers = 1, .mode = PEAL_MODE_STREAM};
        assert_int_equal(local_describe(&options, take_source, &text), PEAL_STATUS_OK);
        local_describe(&options, take_communication_free, &communication_free);
        const char *trampoline = strstr(text, "peal_argument_0_ =");
        assert_non_null(trampoline);
        if ((strstr(trampoline, "__syncthreads();") != NULL) != cases[i].barrier)
            fail_msg("%s, %s: barrier", cases[i].key, cases[i].argument);
        if ((communication_free != NULL) != cases[i].communication_free)
            fail_msg("%s, %s: communication-free", cases[i].key, cases[i].argument);
        free(text);
        free(communication_free);
    }
}

static int set_up(void **state)
{
    (void)state;
    return scratch_keep(folder, sizeof(folder), "cuda-kernels") ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_load_coherently),
        cmocka_unit_test(offsets_are_as_wide_as_needed),
        cmocka_unit_test(planted_loads_stay_coherent),
        cmocka_unit_test(search_finds_non_coherent_loads),
        cmocka_unit_test(nothing_is_contracted),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(long_statements_are_told),
        cmocka_unit_test(arguments_are_read_before_they_change),
    };
    root = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests_name("kernels for GPUs", tests, set_up, tear_down);
}
