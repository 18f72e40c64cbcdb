/* The reader's calls in a build without libyaml: they say so. Linked with no_reader.c instead of
 * the reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dsl/dsl.h"

static void test_refused(void **state)
{
    (void)state;
    peal_diagnostics *list = peal_diagnostics_create();
    peal_graph *graph = NULL;
    assert_int_equal(peal_graph_read("s.yaml", NULL, 0, list, &graph), PEAL_STATUS_ENVIRONMENT);
    assert_int_equal(peal_graph_read_memory("t.yaml", "", 0, NULL, 0, list, &graph),
                     PEAL_STATUS_ENVIRONMENT);
    assert_int_equal(peal_document_print_json("u.yaml", stdout, list), PEAL_STATUS_ENVIRONMENT);
    assert_null(graph);
    assert_int_equal(peal_diagnostics_count(list), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(peal_diagnostics_at(list, i)->code, PEAL_E_BUILT_WITHOUT_YAML);
    peal_diagnostics_destroy(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
