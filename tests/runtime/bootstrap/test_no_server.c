/* Without libpmix the launcher says so. */
#include "runtime/launch/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void check_refused(void **state)
{
    peal_diagnostics *list = peal_diagnostics_create();
    char *const argv[] = {"true", NULL};
    peal_launch_desc desc = {2, NULL, argv};
    int exit_code = -1;
    (void)state;
    assert_int_equal(peal_launch(&desc, list, &exit_code), PEAL_STATUS_ENVIRONMENT);
    assert_int_equal(exit_code, -1);
    assert_int_equal(peal_diagnostics_count(list), 1);
    assert_int_equal(peal_diagnostics_at(list, 0)->code, PEAL_E330);
    assert_non_null(strstr(peal_diagnostics_at(list, 0)->message, "built without libpmix"));
    peal_diagnostics_destroy(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
