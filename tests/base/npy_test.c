/* .npy headers: written ones are read back, broken ones each get their diagnostic. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const peal_source place = {"t.yaml", 3, 4};

static int file_with(const char *bytes, size_t count)
{
    int fd = memfd_create("npy", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), (ssize_t)count);
    return fd;
}

static void test_round_trip(void **state)
{
    static const int64_t sizes[][PEAL_AXES] = {
        {7, 1, 1, 1}, {5, 3, 1, 1}, {4, 3, 2, 1}, {2, 3, 4, 5}, {0, 3, 1, 1}};
    static const int axes[] = {1, 2, 3, 4, 2};
    (void)state;
    for (int type = 0; type < PEAL_TYPE_COUNT; type++)
        for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
            char header[PEAL_NPY_HEADER_BYTES];
            size_t length = peal_npy_make_header((peal_type)type, axes[i], sizes[i], header);
            assert_int_equal(length % 64, 0);
            assert_int_equal(header[length - 1], '\n');
            int fd = file_with(header, length);
            int64_t count = 1;
            for (int k = 0; k < axes[i]; k++)
                count *= sizes[i][k];
            int64_t bytes = count * (int64_t)peal_type_bytes((peal_type)type);
            assert_int_equal(ftruncate(fd, (off_t)length + bytes), 0);
            peal_npy npy;
            assert_int_equal(peal_npy_read_header(fd, "f", place, &npy, NULL), PEAL_STATUS_OK);
            assert_int_equal(npy.type, type);
            assert_int_equal(npy.axis_count, axes[i]);
            assert_memory_equal(npy.size, sizes[i], sizeof(sizes[i]));
            assert_int_equal(npy.count, count);
            assert_int_equal(npy.bytes, bytes);
            assert_int_equal(npy.data_offset, (int64_t)length);
            assert_int_equal(peal_npy_check(&npy, "f", place, (peal_type)type, axes[i], sizes[i],
                                            NULL),
                             PEAL_STATUS_OK);
            close(fd);
        }
}

typedef struct broken {
    const char *text; /* the dictionary */
    peal_code code;
} broken;

static int file_of_dictionary(const char *text, size_t data_bytes)
{
    char bytes[512] = "\x93NUMPY\x01\x00";
    size_t length = strlen(text);
    bytes[8] = (char)length;
    memcpy(bytes + 10, text, length);
    return file_with(bytes, 10 + length + data_bytes);
}

static void expect(int fd, peal_code code)
{
    peal_diagnostics *list = peal_diagnostics_create();
    peal_npy npy;
    assert_int_equal(peal_npy_read_header(fd, "f.npy", place, &npy, list), peal_code_status(code));
    assert_int_equal(peal_diagnostics_count(list), 1);
    const peal_diagnostic *d = peal_diagnostics_at(list, 0);
    assert_int_equal(d->code, code);
    assert_int_equal(d->source.line, 3);
    assert_int_equal(d->source.column, 4);
    assert_non_null(strstr(d->message, "f.npy"));
    peal_diagnostics_destroy(list);
    close(fd);
}

static void test_broken(void **state)
{
    static const broken cases[] = {
        {"{'descr': '>f8', 'fortran_order': False, 'shape': (2,), }", PEAL_E_NPY_BIG_ENDIAN},
        {"{'descr': '<c16', 'fortran_order': False, 'shape': (2,), }", PEAL_E_NPY_WRONG_TYPE},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }", PEAL_E_NPY_WRONG_TYPE},
        {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }", PEAL_E_NOT_NPY},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (2,), }", PEAL_E_NPY_FORTRAN_ORDER},
        {"{'descr': '<f8', 'fortran_order': Maybe, 'shape': (2,), }", PEAL_E_NOT_NPY},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3, 4, 5), }",
         PEAL_E_NPY_WRONG_SHAPE},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (200,), }", PEAL_E_NPY_TRUNCATED},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (-2,), }", PEAL_E_NOT_NPY},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
         PEAL_E_NOT_NPY},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         PEAL_E_NOT_NPY},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2", PEAL_E_NOT_NPY},
        {"{'descr': '<f8', 'fortran_order': False, }", PEAL_E_NOT_NPY},
        {"{'descr': '<f8', 'x': False, 'shape': (2,), }", PEAL_E_NOT_NPY},
        {"not a dictionary", PEAL_E_NOT_NPY},
        {"", PEAL_E_NOT_NPY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(file_of_dictionary(cases[i].text, 16), cases[i].code);
    expect(file_with("", 0), PEAL_E_NOT_NPY);
    expect(file_with("\x93NUMPY\x01\x00\xff\x00", 10), PEAL_E_NOT_NPY);
    expect(file_with("\x93NUMPY\x09\x00\x00\x00 ", 11), PEAL_E_NOT_NPY);
    expect(file_with("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12), PEAL_E_NOT_NPY);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[1]);
    expect(ends[0], PEAL_E_NPY_UNREADABLE);
}

static void test_spellings(void **state)
{
    static const char *const good[] = {
        "{'shape': (2,), 'descr': '<f8', 'fortran_order': False}",
        "{\"shape\":(2,),\"descr\":\"<f8\",\"fortran_order\":False}\n",
        "{ 'descr' : '<f8' , 'fortran_order' : False , 'shape' : ( 2 , ) }   \n"};
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int fd = file_of_dictionary(good[i], 16);
        peal_npy npy;
        assert_int_equal(peal_npy_read_header(fd, "f", place, &npy, NULL), PEAL_STATUS_OK);
        assert_int_equal(npy.count, 2);
        close(fd);
    }
}

static void test_check(void **state)
{
    peal_npy npy = {.type = PEAL_F32, .axis_count = 2, .size = {4, 3, 1, 1}};
    int64_t turned[] = {3, 4};
    peal_diagnostics *list = peal_diagnostics_create();
    (void)state;
    assert_int_equal(peal_npy_check(&npy, "f", place, PEAL_F64, 2, npy.size, list),
                     PEAL_STATUS_SPEC);
    assert_int_equal(peal_diagnostics_at(list, 0)->code, PEAL_E_NPY_WRONG_TYPE);
    assert_int_equal(peal_npy_check(&npy, "f", place, PEAL_F32, 2, turned, list), PEAL_STATUS_SPEC);
    assert_int_equal(peal_diagnostics_at(list, 1)->code, PEAL_E_NPY_WRONG_SHAPE);
    assert_string_equal(peal_diagnostics_at(list, 1)->message,
                        "f: its shape is [3, 4], expected [4, 3]");
    assert_int_equal(peal_npy_check(&npy, "f", place, PEAL_F32, 1, npy.size, list),
                     PEAL_STATUS_SPEC);
    peal_diagnostics_destroy(list);
}

static void test_vector(void **state)
{
    char name[] = "/tmp/peal-npy-XXXXXX";
    int fd = mkstemp(name);
    int64_t size = 3, count = 0;
    const int32_t values[] = {4, 5, 6};
    char header[PEAL_NPY_HEADER_BYTES];
    void *data = NULL;
    (void)state;
    assert_true(fd >= 0);
    size_t length = peal_npy_make_header(PEAL_I32, 1, &size, header);
    assert_int_equal(write(fd, header, length), (ssize_t)length);
    assert_int_equal(write(fd, values, sizeof(values)), (ssize_t)sizeof(values));
    close(fd);
    assert_int_equal(peal_npy_read_vector(name, place, PEAL_I32, &count, &data, NULL),
                     PEAL_STATUS_OK);
    assert_int_equal(count, 3);
    assert_memory_equal(data, values, sizeof(values));
    free(data);
    assert_int_equal(peal_npy_read_vector(name, place, PEAL_F64, &count, &data, NULL),
                     PEAL_STATUS_SPEC);
    unlink(name);
    assert_int_equal(peal_npy_read_vector(name, place, PEAL_I32, &count, &data, NULL),
                     PEAL_STATUS_ENVIRONMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_broken),
        cmocka_unit_test(test_spellings),  cmocka_unit_test(test_check),
        cmocka_unit_test(test_vector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
