/* What kernel files include: every way to write it that a compiler takes is seen, or it is said
 * that there may be more. */
#define _GNU_SOURCE
#include "base/kernel_source.h"
#include "tests/backends/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/peal-included-XXXXXX";

static void write_file(const char *name, const char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* How many files a kernel file of this text includes; less than 0: maybe more. */
static int included(const char *text)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/k.c", folder);
    const char *where = folder;
    peal_kernel_file file = {path, text};
    const peal_kernel_files files = {.file = &file, .count = 1, .folder = &where, .root = folder};
    const peal_kernel_file *found;
    bool known;
    peal_arena *arena = peal_arena_create();
    int count = peal_kernel_files_find(&files, arena, &found, &known);
    peal_arena_destroy(arena);
    return known ? count : -1 - count;
}

static void all_ways_to_write_it(void **state)
{
    static const char *const texts[] = {
        "#include \"a.h\"",
        "int x;\n\t #\t include\t\"a.h\" // more\n",
        "%:include \"a.h\"",
        "  %: include <a.h>",
        "/**/ #include \"a.h\"",
        "/* a\n b */ # /**/ include /* \" */ \"a.h\"",
        "#inc\\\nlude \"a.h\"",
        "\\\n#include \"a.h\"",
        "#include \\\r\n\"a.h\"\r\n",
        "#include \\ \n\"a.h\"",
        "#\vinclude\f\"a.h\"",
        "\xef\xbb\xbf#include \"a.h\"",
        "char *t = \"/*\";\n#include \"a.h\"\n",
        "char t = '\"'; /* ' */\n#include \"a.h\"\n",
        "char *t = \"\\\"/*\";\n#include \"a.h\"\n",
        "int x = 1'000 + '\"' + 1; char *t = \"/*\";\n#include \"a.h\"",
        "#error don't /* \" */\n#include \"a.h\"",
        "#include <none/*.h>\n#include \"a.h\"",
        "#import \"a.h\"",
        "// a \\\n b\n#include \"a.h\"",
        "#if 0\n#endif\n#pragma once\n#\n# 1 \"k.c\"\n#include \"a.h\""};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (included(texts[i]) != 1)
            print_message("%s\n", texts[i]);
        assert_int_equal(included(texts[i]), 1);
    }
}

static void none(void **state)
{
    (void)state;
    assert_int_equal(included(
                         "int x;\n/* #include \"a.h\"\n#include \"a.h\" */\n// #include <b.h>"),
                     0);
    assert_int_equal(included("#define A \\\n#include \"a.h\"\n"), 0);
    assert_int_equal(included("char *t = \"#include\"; int hash = 3 % 2;\n%s"), 0);
}

static void what_nobody_can_tell(void **state)
{
    static const char *const texts[] = {"#include NAME",
                                        "#include",
                                        "#include <a.h",
                                        "#include \"a.h\n\"",
                                        "#include_next \"a.h\"",
                                        "#embed \"a.h\"",
                                        "# what",
                                        "?\?=include \"a.h\"",
                                        "char *t = R\"(\n/*)\";\n#include \"a.h\"",
                                        "// a\r#include \"a.h\"",
                                        "// a \\ \n#include \"a.h\"",
                                        "#include \"zero.h\""};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (included(texts[i]) >= 0)
            print_message("%s\n", texts[i]);
        assert_true(included(texts[i]) < 0);
    }
}

static void includes_of_includes(void **state)
{
    (void)state;
    assert_int_equal(included("#include \"b.h\"\n"), 2);
    assert_int_equal(included("#include \"b.h\"\n#include \"a.h\""), 2);
}

static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    write_file("a.h", "int a;\n", 7);
    write_file("b.h", "%: include \"a.h\"\n", 17);
    write_file("zero.h", "int\0a;\n", 7);
    return 0;
}

static int end(void **state)
{
    static const char *const names[] = {"a.h", "b.h", "zero.h"};
    char path[64];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_ways_to_write_it),
                                       cmocka_unit_test(none),
                                       cmocka_unit_test(what_nobody_can_tell),
                                       cmocka_unit_test(includes_of_includes)};
    return cmocka_run_group_tests(tests, begin, end);
}
