/* Options and their units, read from words. */
#include "tools/hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void times_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {{"30", 30000000000},  {"30s", 30000000000}, {"1.5s", 1500000000},   {"10us", 10000},
                {"500ms", 500000000}, {"7ns", 7},           {"2min", 120000000000}, {"0", 0}};
    static const char *const bad[] = {"",    "s",     "-1s",  "1 s", "1x",  "0x10", "inf",
                                      "nan", "1e400", "1KiB", "ms",  "1s ", "+1s",  "9999999h"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        int64_t ns = -1;
        assert_true(parse_time(good[i].text, &ns));
        assert_int_equal(ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        int64_t ns = -1;
        assert_false(parse_time(bad[i], &ns));
        assert_int_equal(ns, -1);
    }
}

static void sizes_have_units(void **state)
{
    (void)state;
    int64_t bytes = 0;
    assert_true(parse_size("4KiB", &bytes));
    assert_int_equal(bytes, 4096);
    assert_true(parse_size("2MB", &bytes));
    assert_int_equal(bytes, 2000000);
    assert_true(parse_size("1.5GiB", &bytes));
    assert_int_equal(bytes, INT64_C(1610612736));
    assert_false(parse_size("4 KiB", &bytes));
    assert_false(parse_size("4kib", &bytes));
    assert_false(parse_size("99999999999GiB", &bytes));
}

static void counts_have_ranges(void **state)
{
    (void)state;
    int64_t count = 0;
    assert_true(parse_count("12", 1, 12, &count));
    assert_int_equal(count, 12);
    assert_false(parse_count("13", 1, 12, &count));
    assert_false(parse_count("-1", -5, 12, &count));
    assert_false(parse_count("1.0", 1, 12, &count));
    assert_false(parse_count("99999999999999999999", 1, INT64_MAX, &count));
}

static peal_status parse(peal_options *options, unsigned verb, int count, const char *const *words,
                         peal_diagnostics *diagnostics)
{
    char *argv[16];
    for (int i = 0; i < count; i++)
        argv[i] = (char *)(uintptr_t)words[i];
    return options_parse(options, verb, count, argv, diagnostics);
}

static void words_become_options(void **state)
{
    (void)state;
    peal_options options;
    peal_diagnostics *d = peal_diagnostics_create();
    const char *const words[] = {"-n4",     "--set",  "n=8",       "--set=m=2",     "spec.yaml",
                                 "--mode",  "stream", "--verify",  "--deadline=5s", "--json",
                                 "--steps", "0",      "--backend", "cuda"};
    assert_int_equal(parse(&options, VERB_RUN, 14, words, d), PEAL_STATUS_OK);
    assert_string_equal(options.backend, "cuda");
    assert_int_equal(options.ranks, 4);
    assert_int_equal(options.setting_count, 2);
    assert_string_equal(options.setting[1], "m=2");
    assert_string_equal(options.subject, "spec.yaml");
    assert_int_equal(options.mode, PEAL_MODE_STREAM);
    assert_true(options.verify);
    assert_int_equal(options.deadline_ns, INT64_C(5000000000));
    assert_int_equal(options.format, FORMAT_JSON);
    assert_int_equal(options.steps, 0);
    peal_diagnostics_destroy(d);
}

static void defaults(void **state)
{
    (void)state;
    peal_options options;
    peal_diagnostics *d = peal_diagnostics_create();
    const char *const words[] = {"-", "--", "--odd"};
    assert_int_equal(parse(&options, VERB_RUN, 1, words, d), PEAL_STATUS_OK);
    assert_string_equal(options.subject, "-");
    assert_int_equal(options.mode, MODE_AUTO);
    assert_null(options.backend);
    assert_int_equal(options.deadline_ns, INT64_C(30000000000));
    assert_int_equal(options.steps, -1);
    assert_int_equal(parse(&options, VERB_RUN, 2, words + 1, d), PEAL_STATUS_OK);
    assert_string_equal(options.subject, "--odd");
    peal_diagnostics_destroy(d);
}

static void every_mistake_is_reported(void **state)
{
    (void)state;
    peal_options options;
    peal_diagnostics *d = peal_diagnostics_create();
    const char *const words[] = {"--verfy", "-n", "none", "a", "b", "--deadline"};
    assert_int_equal(parse(&options, VERB_RUN, 6, words, d), PEAL_STATUS_USAGE);
    assert_int_equal(peal_diagnostics_errors(d), 4);
    assert_int_equal(peal_diagnostics_at(d, 0)->code, PEAL_E_UNKNOWN_OPTION);
    assert_non_null(strstr(peal_diagnostics_at(d, 0)->hint, "--verify"));
    peal_diagnostics_destroy(d);
}

static void ports_and_networks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int first, last;
    } good[] = {{"20000-20100", 20000, 20100}, {"7", 7, 7}, {"1-65535", 1, 65535}};
    static const char *const bad[] = {"",    "-",      "5-4",    "0-4",   "1-65536",    "1-2-3",
                                      "a-b", "20000-", "-20000", "1 - 2", "123456789-3"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        peal_options options = {0};
        assert_true(hosts_parse_ports(good[i].text, &options));
        assert_int_equal(options.network_ports[0], good[i].first);
        assert_int_equal(options.network_ports[1], good[i].last);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(hosts_parse_ports(bad[i], &(peal_options){0}));
    assert_true(hosts_parse_interface("ib0", &(peal_options){0}));
    assert_true(hosts_parse_interface("10.1.0.0/16", &(peal_options){0}));
    assert_false(hosts_parse_interface("", &(peal_options){0}));
    assert_false(hosts_parse_interface("10.1.0.0/99", &(peal_options){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_have_units),          cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(counts_have_ranges),        cmocka_unit_test(words_become_options),
        cmocka_unit_test(ports_and_networks),        cmocka_unit_test(defaults),
        cmocka_unit_test(every_mistake_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
