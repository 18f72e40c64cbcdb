/* Bootstraps without a launcher: alone, and by the application's callbacks. */
#define _GNU_SOURCE
#include "runtime/bootstrap/bootstrap.h"

#include "peal_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void check_single(void **state)
{
    peal_bootstrap *bootstrap = NULL;
    peal_bootstrap_identity identity;
    char blob[16];
    size_t bytes = 0;
    (void)state;
    unsetenv("PMIX_NAMESPACE");
    assert_int_equal(peal_bootstrap_open(INT64_C(30000000000), NULL, &bootstrap), PEAL_STATUS_OK);
    assert_int_equal(bootstrap->ops->identity(bootstrap, &identity), PEAL_STATUS_OK);
    assert_int_equal(identity.process, 0);
    assert_int_equal(identity.processes, 1);
    assert_string_equal(identity.name, "single");
    assert_int_equal(bootstrap->ops->put(bootstrap, 3, "hello", 6), PEAL_STATUS_OK);
    assert_int_equal(bootstrap->ops->get(bootstrap, 3, 0, 1, blob, sizeof(blob), &bytes),
                     PEAL_STATUS_OK);
    assert_int_equal(bytes, 6);
    assert_string_equal(blob, "hello");
    assert_int_not_equal(bootstrap->ops->get(bootstrap, 4, 0, 1, blob, sizeof(blob), &bytes),
                         PEAL_STATUS_OK);
    assert_int_not_equal(bootstrap->ops->get(bootstrap, 3, 0, 1, blob, 5, &bytes), PEAL_STATUS_OK);
    bootstrap->ops->close(bootstrap);
}

/* Both halves of a job of two in one process: the other's contribution is made up. */
typedef struct script {
    int calls, fail_at;
    int64_t size_of_other;
} script;

static int scripted_allgather(void *user, const void *mine, size_t bytes, void *all)
{
    script *self = user;
    if (self->calls++ == self->fail_at)
        return 1;
    memcpy(all, mine, bytes);
    if (bytes == sizeof(int64_t) && self->calls == 1)
        memcpy((char *)all + bytes, &self->size_of_other, bytes);
    else
        memset((char *)all + bytes, 'o', bytes);
    return 0;
}

static peal_status try_caller(script *self, size_t put, char *blob, size_t capacity, size_t *bytes)
{
    peal_bootstrap *bootstrap = NULL;
    peal_bootstrap_callbacks callbacks = {.size_bytes = sizeof(callbacks),
                                          .processes = 2,
                                          .allgather = scripted_allgather,
                                          .user = self};
    char mine[64] = "mine";
    assert_int_equal(peal_bootstrap_caller(&callbacks, NULL, &bootstrap), PEAL_STATUS_OK);
    assert_int_equal(bootstrap->ops->put(bootstrap, 0, mine, put), PEAL_STATUS_OK);
    peal_status status = bootstrap->ops->get(bootstrap, 0, 1, 1, blob, capacity, bytes);
    bootstrap->ops->close(bootstrap);
    return status;
}

static void check_caller(void **state)
{
    char blob[64];
    size_t bytes = 0;
    (void)state;
    /* The other's blob is longer, shorter and empty. */
    const int64_t sizes[] = {40, 3, 0};
    for (int i = 0; i < 3; i++) {
        script good = {.fail_at = -1, .size_of_other = sizes[i]};
        assert_int_equal(try_caller(&good, 20, blob, sizeof(blob), &bytes), PEAL_STATUS_OK);
        assert_int_equal(bytes, sizes[i]);
        for (size_t k = 0; k < bytes; k++)
            assert_int_equal(blob[k], 'o');
    }
    script long_blob = {.fail_at = -1, .size_of_other = 100};
    assert_int_equal(try_caller(&long_blob, 20, blob, sizeof(blob), &bytes), PEAL_STATUS_USAGE);
    const int64_t nonsense[] = {-1, INT64_MAX};
    for (int i = 0; i < 2; i++) {
        script lie = {.fail_at = -1, .size_of_other = nonsense[i]};
        assert_int_equal(try_caller(&lie, 20, blob, sizeof(blob), &bytes), PEAL_STATUS_ENVIRONMENT);
    }
    for (int i = 0; i < 2; i++) {
        script fails = {.fail_at = i, .size_of_other = 8};
        assert_int_equal(try_caller(&fails, 20, blob, sizeof(blob), &bytes),
                         PEAL_STATUS_ENVIRONMENT);
    }
}

static void check_refused(void **state)
{
    const peal_bootstrap_callbacks wrong[] = {
        {.size_bytes = 1, .processes = 1},
        {.size_bytes = sizeof(peal_bootstrap_callbacks), .processes = 0},
        {.size_bytes = sizeof(peal_bootstrap_callbacks), .processes = 2, .process = 2},
        {.size_bytes = sizeof(peal_bootstrap_callbacks), .processes = 2, .process = 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        peal_bootstrap *bootstrap = NULL;
        peal_diagnostics *list = peal_diagnostics_create();
        assert_int_equal(peal_bootstrap_caller(&wrong[i], list, &bootstrap),
                         PEAL_STATUS_ENVIRONMENT);
        assert_int_equal(peal_diagnostics_at(list, 0)->code, PEAL_E_BOOTSTRAP_FAILED);
        assert_null(bootstrap);
        peal_diagnostics_destroy(list);
    }
}

/* With the variables of a launcher that is gone: refused, and never a job of one. */
static void check_orphaned(void **state)
{
    int status = 0;
    (void)state;
    pid_t child = fork();
    if (!child) {
        peal_bootstrap *bootstrap = NULL;
        peal_diagnostics *list = peal_diagnostics_create();
        setenv("PMIX_NAMESPACE", "gone@1", 1);
        setenv("PMIX_RANK", "3", 1);
        setenv("PMIX_SERVER_URI4", "gone.0;tcp4://127.0.0.1:1", 1);
        setenv("PMIX_SERVER_URI41", "gone.0;tcp4://127.0.0.1:1", 1);
        peal_status opened = peal_bootstrap_open(INT64_C(30000000000), list, &bootstrap);
        bool refused = opened == PEAL_STATUS_ENVIRONMENT && !bootstrap &&
                       peal_diagnostics_at(list, 0)->code ==
                           (PEAL_HAVE_PMIX ? PEAL_E_NO_PMIX_SERVER : PEAL_E_BOOTSTRAP_FAILED);
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_single),
        cmocka_unit_test(check_caller),
        cmocka_unit_test(check_refused),
        cmocka_unit_test(check_orphaned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
