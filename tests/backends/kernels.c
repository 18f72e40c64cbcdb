/* Kernels in C files: built, cached, called; what the compiler refuses is told at the user's line.
 */
#define _GNU_SOURCE
#include "base/cache.h"
#include "base/sha256.h"
#include "tests/backends/check.h"
#include "tests/backends/ring.h"
#include "tests/backends/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];
static char cache[96];

static const char good[] =
    "#include <peal/kernel.h>\n"
    "#include \"weights.h\"\n"
    "PEAL_KERNEL(init)(peal_tile t, PEAL_WRITE(double, a), long n)\n"
    "{\n"
    "    PEAL_FOR_1D(t, x) {\n"
    "        long p = (x + n) % n;\n"
    "        PEAL_AT(a, x) = (double)(p * p % 97) - 40;\n"
    "    }\n"
    "}\n"
    "PEAL_KERNEL( relax )(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, an),\n"
    "                   PEAL_REDUCE(double, norm))\n"
    "{\n"
    "    double sum = 0;\n"
    "    PEAL_FOR_1D(t, x) {\n"
    "        double v = WEIGHT * PEAL_AT(a, x - 1) + 0.5 * PEAL_AT(a, x) + 0.3 * PEAL_AT(a, x + "
    "1)\n"
    "                   + 0.01 * (double)(x % 5);\n"
    "        PEAL_AT(an, x) = v;\n"
    "        sum += v * v;\n"
    "    }\n"
    "    PEAL_PARTIAL(norm, sum);\n"
    "}\n";

static ring_options options_of(const char *file)
{
    return (ring_options){.ranks = 2,
                          .points = 20,
                          .tiles = 4,
                          .mode = PEAL_MODE_FUSED,
                          .workers = 1,
                          .lanes = 1,
                          .direct = true,
                          .norm = true,
                          .steps = 6,
                          .folder = folder,
                          .kernel_file = file,
                          .cache = cache};
}

static int entries_in_cache(char *last, size_t bytes)
{
    return scratch_entries(cache, last, bytes);
}

static int set_up(void **state)
{
    (void)state;
    if (!scratch_make(folder, sizeof(folder)))
        return -1;
    snprintf(cache, sizeof(cache), "%s/deep/cache", folder);
    scratch_write(folder, "good.c", good);
    scratch_write(folder, "weights.h", "#define WEIGHT 0.25\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

/* Runs and compares; returns the norm. */
static double run_good(const ring_options *options)
{
    ring_job job;
    double field[64];
    ring_init(&job, options);
    if (ring_create(&job) != PEAL_STATUS_OK) {
        peal_diagnostics_print(job.diagnostics, stderr, 0);
        fail_msg("kernels were not built");
    }
    assert_int_equal(ring_run(&job, true, options->steps, true), PEAL_STATUS_OK);
    ring_expected(&job, options->steps, field);
    for (int x = 0; x < 40; x++)
        assert_true(ring_point(&job, x) == field[x]);
    double norm = ring_buffer(&job, 0, RING_NORM);
    ring_close(&job);
    return norm;
}

static void kernels_run(void **state)
{
    char first[600], second[600];
    (void)state;
    for (int m = 0; m < 4; m++) {
        static const peal_mode modes[] = {PEAL_MODE_SERIAL, PEAL_MODE_SYNC, PEAL_MODE_STREAM,
                                          PEAL_MODE_FUSED};
        ring_options options = options_of("good.c");
        options.mode = modes[m];
        options.workers = options.lanes = 2;
        double from_file = run_good(&options);
        options.kernel_file = NULL;
        double from_pointer = run_good(&options);
        assert_true(from_file == from_pointer);
    }
    assert_int_equal(entries_in_cache(first, sizeof(first)), 1);
    /* what an included file says is part of the key */
    scratch_write(folder, "weights.h", "#define WEIGHT (0.5 * 0.5)\n");
    ring_options options = options_of("good.c");
    run_good(&options);
    assert_int_equal(entries_in_cache(second, sizeof(second)), 2);
    scratch_write(folder, "weights.h", "#define WEIGHT 0.25\n");
    struct stat info;
    assert_int_equal(stat(cache, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
}

static void poisoned_entries_are_rebuilt(void **state)
{
    char entry[600];
    (void)state;
    ring_options options = options_of("good.c");
    scratch_remove(cache);
    run_good(&options);
    assert_int_equal(entries_in_cache(entry, sizeof(entry)), 1);
    assert_true(peal_cache_check(entry));
    FILE *file = fopen(entry, "r+");
    fseek(file, 200, SEEK_SET);
    fputs("poison", file);
    fclose(file);
    assert_false(peal_cache_check(entry));
    run_good(&options);
    assert_true(peal_cache_check(entry));
    assert_int_equal(truncate(entry, 100), 0);
    assert_false(peal_cache_check(entry));
    run_good(&options);
    assert_true(peal_cache_check(entry));
}

static void unusable_cache_is_a_warning(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        ring_options options = options_of("good.c");
        char other[128];
        ring_job job;
        if (kind == 0) { /* something else has the name */
            scratch_write(folder, "taken", "");
            snprintf(other, sizeof(other), "%s/taken", folder);
        } else { /* others can write there */
            snprintf(other, sizeof(other), "%s/open", folder);
            mkdir(other, 0777);
            chmod(other, 0777);
        }
        options.cache = other;
        ring_init(&job, &options);
        assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
        assert_int_equal(peal_diagnostics_count(job.diagnostics), 1);
        assert_int_equal(peal_diagnostics_at(job.diagnostics, 0)->code, PEAL_E_KERNELS_NOT_CACHED);
        assert_int_equal(peal_diagnostics_at(job.diagnostics, 0)->severity, PEAL_WARNING);
        assert_int_equal(ring_run(&job, true, 2, true), PEAL_STATUS_OK);
        ring_close(&job);
    }
}

static void many_cold_starts_at_once(void **state)
{
    enum { PROCESSES = 4 };
    pid_t child[PROCESSES];
    char entry[600];
    (void)state;
    scratch_remove(cache);
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            ring_options options = options_of("good.c");
            ring_job job;
            ring_init(&job, &options);
            _exit(ring_create(&job) == PEAL_STATUS_OK &&
                          ring_run(&job, true, 3, true) == PEAL_STATUS_OK
                      ? 0
                      : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int result = -1;
        waitpid(child[i], &result, 0);
        assert_int_equal(result, 0);
    }
    assert_int_equal(entries_in_cache(entry, sizeof(entry)), 1);
    assert_true(peal_cache_check(entry));
}

/* The first diagnostic of a create that must fail. */
static void check_refused(const ring_options *options, peal_code code, const char *file, int line,
                          const char *words, const char *hint)
{
    ring_job job;
    ring_init(&job, options);
    assert_int_equal(ring_create(&job), peal_code_status(code));
    assert_true(peal_diagnostics_count(job.diagnostics) > 0);
    const peal_diagnostic *d = peal_diagnostics_at(job.diagnostics, 0);
    if (d->code != code || !strstr(d->message, words) ||
        (hint && (!d->hint || !strstr(d->hint, hint))) || d->source.line != line ||
        (file && (!d->source.file || !strstr(d->source.file, file)))) {
        peal_diagnostics_print(job.diagnostics, stderr, 0);
        fail_msg("expected %s at %s:%d with `%s`", peal_code_number(code), file ? file : "-", line,
                 words);
    }
    ring_close(&job);
}

static void mistakes_are_told(void **state)
{
    (void)state;
    scratch_write(folder, "syntax.c",
                  "PEAL_KERNEL(init)(peal_tile t, PEAL_WRITE(double, a), long n)\n"
                  "{\n    int y = undefined_name;\n}\n");
    ring_options options = options_of("syntax.c");
    check_refused(&options, PEAL_E_NO_SUCH_KERNEL, "ring.yaml", 12, "PEAL_KERNEL(relax)",
                  "PEAL_READ(double");
    options.relax = "init";
    check_refused(&options, PEAL_E_KERNEL_COMPILE_ERROR, "syntax.c", 3, "undefined_name", NULL);
    options = options_of("good.c");
    options.relax = "relaks";
    check_refused(&options, PEAL_E_NO_SUCH_KERNEL, "ring.yaml", 12, "relaks", "`relax`");
    options = options_of("missing.c");
    check_refused(&options, PEAL_E_KERNEL_FILE_UNREADABLE, "ring.yaml", 3, "missing.c", NULL);
    options = options_of("/dev/null");
    check_refused(&options, PEAL_E_KERNEL_FILE_OUTSIDE, "ring.yaml", 3, "outside",
                  "--allow-outside");
    options = options_of("../../etc/hostname");
    check_refused(&options, PEAL_E_KERNEL_FILE_OUTSIDE, "ring.yaml", 3, "outside",
                  "--allow-outside");
    options = options_of("good.c");
    options.relax = "init"; /* another number of parameters */
    check_refused(&options, PEAL_E_KERNEL_SIGNATURE_MISMATCH, "good.c", 3, "does not fit",
                  "PEAL_READ(double, a)");
}

static void replace(char *text, const char *from, const char *to)
{
    char *at = strstr(text, from);
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
}

static void types_are_checked(void **state)
{
    static const char *const changes[][2] = {
        {"PEAL_READ(double, a)", "PEAL_READ(float,  a)"},
        {"PEAL_READ(double, a)", "PEAL_WRITE(double,a)"}, /* would write what is only read */
        {"PEAL_REDUCE(double, norm)", "PEAL_REDUCE(long  , norm)"},
        {"PEAL_WRITE(double, an)", "PEAL_WRITE(int   , an)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char text[sizeof(good)];
        memcpy(text, good, sizeof(good));
        replace(strstr(text, "relax"), changes[i][0], changes[i][1]);
        scratch_write(folder, "types.c", text);
        ring_options options = options_of("types.c");
        check_refused(&options, PEAL_E_KERNEL_SIGNATURE_MISMATCH, "types.c", 10, "does not fit",
                      "PEAL_READ(double, a)");
    }
    char text[sizeof(good)];
    memcpy(text, good, sizeof(good));
    replace(text, "long n", "int  n"); /* C would convert an argument without a word */
    scratch_write(folder, "types.c", text);
    ring_options options = options_of("types.c");
    check_refused(&options, PEAL_E_KERNEL_SIGNATURE_MISMATCH, "types.c", 3, "does not fit",
                  "long argument_1");
}

static void missing_compiler_is_told(void **state)
{
    ring_options options = options_of("good.c");
    (void)state;
    setenv("CC", "no-such-compiler-here -O1", 1);
    check_refused(&options, PEAL_E_NO_C_COMPILER, NULL, 0, "no-such-compiler-here", "install");
    options.kernel_file = NULL; /* function pointers need none */
    run_good(&options);
    unsetenv("CC");
}

static void outside_can_be_allowed(void **state)
{
    char inner[100], path[160];
    (void)state;
    snprintf(inner, sizeof(inner), "%s/inner", folder);
    mkdir(inner, 0700);
    ring_options options = options_of("../good.c");
    options.folder = inner;
    check_refused(&options, PEAL_E_KERNEL_FILE_OUTSIDE, "ring.yaml", 3, "outside", NULL);
    options.outside = true;
    run_good(&options);
    /* a link that leads out is outside */
    snprintf(path, sizeof(path), "%s/link.c", inner);
    assert_int_equal(symlink("../good.c", path), 0);
    options = options_of("link.c");
    options.folder = inner;
    check_refused(&options, PEAL_E_KERNEL_FILE_OUTSIDE, "ring.yaml", 3, "outside", NULL);
}

static void hash_is_sha256(void **state)
{
    unsigned char digest[PEAL_SHA256_BYTES];
    char text[PEAL_SHA256_TEXT];
    peal_sha256 hash;
    (void)state;
    peal_sha256_init(&hash);
    peal_sha256_add(&hash, "abc", 3);
    peal_sha256_finish(&hash, digest);
    peal_sha256_text(digest, text);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_run),
        cmocka_unit_test(poisoned_entries_are_rebuilt),
        cmocka_unit_test(unusable_cache_is_a_warning),
        cmocka_unit_test(many_cold_starts_at_once),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(types_are_checked),
        cmocka_unit_test(missing_compiler_is_told),
        cmocka_unit_test(outside_can_be_allowed),
        cmocka_unit_test(hash_is_sha256),
    };
    return cmocka_run_group_tests_name("host kernels", tests, set_up, tear_down);
}
