/* Pictures of lines: long ones are cut between characters, and bytes that are no characters are
 * never left by either end. */
#define _GNU_SOURCE
#include "base/excerpt.h"
#include "tests/backends/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What is printed for a file of one line of count times text, then more; to be freed. */
static char *draw(const char *text, int count, const char *more, int column)
{
    char path[] = "/tmp/peal-excerpt-XXXXXX", *printed = NULL;
    size_t bytes = 0;
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    for (int i = 0; i < count; i++)
        fputs(text, file);
    fprintf(file, "%s\n", more);
    assert_int_equal(fclose(file), 0);
    FILE *out = open_memstream(&printed, &bytes);
    peal_excerpt_print(out, (peal_source){.file = path, .line = 1, .column = column}, false);
    fclose(out);
    unlink(path);
    return printed;
}

static void check(const char *text, int count, const char *more, int column, const char *expected)
{
    char *printed = draw(text, count, more, column);
    assert_string_equal(printed, expected);
    free(printed);
}

static void short_lines(void **state)
{
    (void)state;
    check("x", 1, " = 1;", 3, "     1 | x = 1;\n       |   ^\n");
    check("\xc3\xa9", 2, " = 1;", 4, "     1 | \xc3\xa9\xc3\xa9 = 1;\n       |    ^\n");
    check("x", 1, "", 9, "     1 | x\n       |  ^\n");
}

/* 90 bytes are shown, from 60 before the column on: no half of a character. */
static void long_lines(void **state)
{
    char *printed = draw("\xc3\xa9", 200, "", 101);
    (void)state;
    assert_memory_equal(printed, "     1 | ...\xc3\xa9", 14);
    assert_non_null(strstr(printed, "\xa9...\n"));
    free(printed);
    printed = draw("\xe2\x82\xac", 200, "", 102);
    assert_memory_equal(printed, "     1 | ...\xe2\x82\xac", 15);
    assert_non_null(strstr(printed, "\xac...\n"));
    free(printed);
}

/* Continuations of characters that have not begun: 0x80 to 0xbf. */
static void no_characters(void **state)
{
    (void)state;
    for (int count = 1; count < 400; count += 7)
        for (int column = 0; column < 3; column++) {
            char *printed = draw("\x80", count, "", column),
                 *behind = draw("\x80", count, "x = 1;", 3);
            assert_null(strstr(printed, "\n\n"));
            assert_true(strlen(printed) < 2000);
            assert_true(strlen(behind) < 2000);
            free(printed);
            free(behind);
        }
    char *printed = draw("\x80", 200, "", 1);
    assert_memory_equal(printed, "     1 | \\x80\\x80", 17);
    assert_non_null(strstr(printed, "\\x80...\n       | ^\n"));
    free(printed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_lines), cmocka_unit_test(long_lines),
                                       cmocka_unit_test(no_characters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
