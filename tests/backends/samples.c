/* The samples, small: every mode gives the bits that `serial` gives, all ranks in one process. */
#include "tests/backends/check.h"
#include "tests/backends/local_job.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct sample {
    const char *spec;
    const char *overrides[4];
    int override_count;
    int64_t steps;
} sample;

static const char *root; /* of the sources */

static const sample samples[] = {
    {"jacobi2d/jacobi2d.yaml", {"nx=70", "ny=64", "report=5"}, 3, 23},
    {"heat3d/heat3d.yaml", {"report=4"}, 1, 9},
    {"halo/halo.yaml", {"nx=60", "ny=50", "report=5"}, 3, 20},
    {"halo/short.yaml", {"nx=60", "ny=50", "report=5"}, 3, 20},
    {"cg/cg.yaml", {"n=40"}, 1, 0},
    {"vcycle/vcycle.yaml", {"n=32", "coarse=20", "cycles=10"}, 3, 0},
    {"particles/particles.yaml", {"each=700", "room=2000", "out=200"}, 3, 30},
    {"hdiff/pair.yaml", {"nx=30", "ny=23", "levels=4", "report=5"}, 4, 11},
    {"jacobi_until/jacobi_until.yaml", {"nx=30", "ny=23", "tol=0.1"}, 3, 0},
};

static void check_sample(const sample *s)
{
    static const peal_mode modes[] = {PEAL_MODE_SYNC, PEAL_MODE_STREAM, PEAL_MODE_FUSED};
    char path[512];

    snprintf(path, sizeof(path), "%s/samples/%s", root, s->spec);
    for (int ranks = 1; ranks <= 4; ranks += ranks == 2 ? 2 : 1) {
        local_options options = {.spec = path,
                                 .overrides = s->overrides,
                                 .override_count = s->override_count,
                                 .ranks = ranks,
                                 .workers = 1,
                                 .mode = PEAL_MODE_SERIAL,
                                 .steps = s->steps};
        local_outcome serial, other;
        assert_int_equal(local_run(&options, &serial), PEAL_STATUS_OK);
        assert_true(serial.count > 0);
        for (int m = 0; m < 3; m++)
            for (int workers = 1; workers <= 3; workers++) {
                options.mode = modes[m];
                options.workers = workers;
                options.hooks.shuffle_seed = workers == 3 ? 99 : 0;
                options.hooks.jitter_seed = workers == 2 ? 5 : 0;
                assert_int_equal(local_run(&options, &other), PEAL_STATUS_OK);
                if (serial.count != other.count ||
                    memcmp(serial.bytes, other.bytes, serial.count) != 0)
                    fail_msg("%s on %d ranks: %s with %d workers differs from serial", s->spec,
                             ranks, peal_mode_name(modes[m]), workers);
                free(other.bytes);
            }
        free(serial.bytes);
    }
}

static void agree(void **state)
{
    check_sample(*state);
}

int main(int argc, char **argv)
{
    enum { COUNT = sizeof(samples) / sizeof(samples[0]) };
    struct CMUnitTest tests[COUNT];

    root = argc > 1 ? argv[1] : ".";
    for (int i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){samples[i].spec, agree, NULL, NULL, (void *)&samples[i]};
    return cmocka_run_group_tests_name("samples in all modes", tests, NULL, NULL);
}
