/* Headers of .npy files. The header is a Python dictionary in a fixed spelling; what is read here
 * is exactly that spelling, in any order of keys and with any white space. */
#define _POSIX_C_SOURCE 200809L
#include "base/npy.h"

#include "base/checked.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_LIMIT = 65536 };

static const char *const descriptions[PEAL_TYPE_COUNT] = {"<f8", "<f4", "<i4", "<i8", "|u1"};

typedef struct header {
    const char *at;
    const char *path;
    peal_source source;
    peal_diagnostics *diagnostics;
    bool has_type, has_order, has_shape;
    peal_npy *npy;
} header;

static void skip_space(header *h)
{
    while (*h->at && isspace((unsigned char)*h->at))
        h->at++;
}

static bool take(header *h, char c)
{
    skip_space(h);
    if (*h->at != c)
        return false;
    h->at++;
    return true;
}

static peal_status malformed(header *h, const char *what)
{
    return peal_report(h->diagnostics, PEAL_E_NOT_NPY, h->source, "write it with numpy.save",
                       "%s: not a .npy file that peal can read: %s", h->path, what);
}

static bool take_quoted(header *h, char *text, size_t bytes)
{
    size_t length = 0;
    skip_space(h);
    char quote = *h->at;
    if (quote != '\'' && quote != '"')
        return false;
    for (h->at++; *h->at && *h->at != quote; h->at++) {
        if (length + 1 >= bytes)
            return false;
        text[length++] = *h->at;
    }
    text[length] = 0;
    return take(h, quote);
}

static peal_status parse_type(header *h)
{
    char text[16];
    if (!take_quoted(h, text, sizeof(text)))
        return malformed(h, "structured types are not supported");
    h->has_type = true;
    for (int i = 0; i < PEAL_TYPE_COUNT; i++)
        if (!strcmp(text + 1, descriptions[i] + 1) &&
            (text[0] == descriptions[i][0] || (i == PEAL_U8 && strchr("<>=", text[0])))) {
            h->npy->type = (peal_type)i;
            return PEAL_STATUS_OK;
        }
    if (text[0] == '>')
        return peal_report(h->diagnostics, PEAL_E_NPY_BIG_ENDIAN, h->source,
                           "convert it: numpy.save(path, a.astype(a.dtype.newbyteorder('<')))",
                           "%s: type '%s' is big-endian", h->path, text);
    return peal_report(h->diagnostics, PEAL_E_NPY_WRONG_TYPE, h->source,
                       "peal reads float64, float32, int32, int64 and uint8",
                       "%s: type '%s' is not one of peal's", h->path, text);
}

static peal_status parse_order(header *h)
{
    skip_space(h);
    h->has_order = true;
    if (!strncmp(h->at, "False", 5)) {
        h->at += 5;
        return PEAL_STATUS_OK;
    }
    if (strncmp(h->at, "True", 4))
        return malformed(h, "fortran_order is neither True nor False");
    return peal_report(h->diagnostics, PEAL_E_NPY_FORTRAN_ORDER, h->source,
                       "convert it: numpy.save(path, numpy.ascontiguousarray(a))",
                       "%s: the array is in Fortran order", h->path);
}

static peal_status parse_extent(header *h, int64_t *out)
{
    int64_t value = 0;
    skip_space(h);
    if (!isdigit((unsigned char)*h->at))
        return malformed(h, "its shape is not a list of numbers");
    for (; isdigit((unsigned char)*h->at); h->at++)
        if (peal_multiply_overflows(value, 10, &value) ||
            peal_add_overflows(value, *h->at - '0', &value))
            return malformed(h, "its shape overflows");
    *out = value;
    return PEAL_STATUS_OK;
}

static peal_status parse_shape(header *h)
{
    peal_npy *npy = h->npy;
    int64_t shape[PEAL_AXES];
    if (!take(h, '('))
        return malformed(h, "its shape is not a tuple");
    npy->axis_count = 0;
    while (!take(h, ')')) {
        if (npy->axis_count == PEAL_AXES)
            return peal_report(h->diagnostics, PEAL_E_NPY_WRONG_SHAPE, h->source, NULL,
                               "%s: has more than %d axes", h->path, PEAL_AXES);
        peal_status status = parse_extent(h, &shape[npy->axis_count]);
        if (status)
            return status;
        npy->axis_count++;
        if (!take(h, ',') && *h->at != ')')
            return malformed(h, "its shape is not a tuple");
    }
    for (int k = 0; k < PEAL_AXES; k++)
        npy->size[k] = k < npy->axis_count ? shape[npy->axis_count - 1 - k] : 1;
    h->has_shape = true;
    return PEAL_STATUS_OK;
}

static peal_status parse_dictionary(header *h)
{
    char key[32];
    if (!take(h, '{'))
        return malformed(h, "no dictionary in its header");
    while (!take(h, '}')) {
        if (!take_quoted(h, key, sizeof(key)) || !take(h, ':'))
            return malformed(h, "its header is not a dictionary");
        peal_status status = !strcmp(key, "descr")           ? parse_type(h)
                             : !strcmp(key, "fortran_order") ? parse_order(h)
                             : !strcmp(key, "shape")         ? parse_shape(h)
                                                     : malformed(h, "unknown key in its header");
        if (status)
            return status;
        if (!take(h, ',') && *h->at != '}')
            return malformed(h, "its header is not a dictionary");
    }
    if (!h->has_type || !h->has_order || !h->has_shape)
        return malformed(h, "descr, fortran_order or shape is missing from its header");
    return PEAL_STATUS_OK;
}

static peal_status compute_bytes(header *h, int64_t file_bytes)
{
    peal_npy *npy = h->npy;
    int64_t end;
    npy->count = 1;
    for (int k = 0; k < npy->axis_count; k++)
        if (peal_multiply_overflows(npy->count, npy->size[k], &npy->count))
            return malformed(h, "its shape overflows");
    if (peal_multiply_overflows(npy->count, (int64_t)peal_type_bytes(npy->type), &npy->bytes) ||
        peal_add_overflows(npy->bytes, npy->data_offset, &end))
        return malformed(h, "its shape overflows");
    if (file_bytes < end)
        return peal_report(h->diagnostics, PEAL_E_NPY_TRUNCATED, h->source, NULL,
                           "%s: truncated: %" PRId64 " bytes, its header promises %" PRId64,
                           h->path, file_bytes, end);
    return PEAL_STATUS_OK;
}

/* Reads bytes at offset, whole; false at the end of the file or on an error. */
static bool read_at(int fd, void *data, size_t bytes, int64_t offset)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, (char *)data + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

peal_status peal_npy_read_header(int fd, const char *path, peal_source source, peal_npy *out,
                                 peal_diagnostics *diagnostics)
{
    peal_npy npy = {0};
    header h = {.path = path, .source = source, .diagnostics = diagnostics, .npy = &npy};
    unsigned char start[12];
    struct stat info;
    if (fstat(fd, &info))
        return peal_report(diagnostics, PEAL_E_NPY_UNREADABLE, source, NULL, "%s: %s", path,
                           strerror(errno));
    if (!S_ISREG(info.st_mode))
        return peal_report(diagnostics, PEAL_E_NPY_UNREADABLE, source, NULL,
                           "%s: not a regular file", path);
    if (!read_at(fd, start, 10, 0) || memcmp(start, "\x93NUMPY", 6) || start[6] < 1 || start[6] > 3)
        return malformed(&h, "it does not begin as one");
    size_t prefix = start[6] == 1 ? 10 : 12;
    size_t length = start[8] | (size_t)start[9] << 8;
    if (prefix == 12) {
        if (!read_at(fd, start + 10, 2, 10))
            return malformed(&h, "its header is cut off");
        length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    }
    if (length > HEADER_LIMIT)
        return malformed(&h, "its header is too long");
    char *text = calloc(1, length + 1);
    if (!text)
        return peal_report(diagnostics, PEAL_E_OUT_OF_MEMORY, source, NULL,
                           "%s: no memory for its header", path);
    if (!read_at(fd, text, length, (int64_t)prefix)) {
        free(text);
        return malformed(&h, "its header is cut off");
    }
    h.at = text;
    npy.data_offset = (int64_t)(prefix + length);
    peal_status status = parse_dictionary(&h);
    if (!status)
        status = compute_bytes(&h, (int64_t)info.st_size);
    if (!status)
        *out = npy;
    free(text);
    return status;
}

static void print_shape(char *text, size_t bytes, int axis_count, const int64_t *size)
{
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (int k = axis_count - 1; k >= 0 && used < bytes; k--)
        used += (size_t)snprintf(text + used, bytes - used, "%" PRId64 "%s", size[k],
                                 k > 0 ? ", " : "");
    if (used < bytes)
        snprintf(text + used, bytes - used, "]");
}

peal_status peal_npy_check(const peal_npy *npy, const char *path, peal_source source,
                           peal_type type, int axis_count, const int64_t *size,
                           peal_diagnostics *diagnostics)
{
    char found[128], wanted[128];
    if (npy->type != type)
        return peal_report(diagnostics, PEAL_E_NPY_WRONG_TYPE, source, NULL,
                           "%s: holds %s, expected %s", path, peal_type_name(npy->type),
                           peal_type_name(type));
    if (npy->axis_count == axis_count &&
        !memcmp(npy->size, size, (size_t)axis_count * sizeof(*size)))
        return PEAL_STATUS_OK;
    print_shape(found, sizeof(found), npy->axis_count, npy->size);
    print_shape(wanted, sizeof(wanted), axis_count, size);
    return peal_report(diagnostics, PEAL_E_NPY_WRONG_SHAPE, source,
                       "numpy names the slowest axis first: the field's size reversed",
                       "%s: its shape is %s, expected %s", path, found, wanted);
}

size_t peal_npy_make_header(peal_type type, int axis_count, const int64_t *size,
                            char out[PEAL_NPY_HEADER_BYTES])
{
    char text[PEAL_NPY_HEADER_BYTES];
    int used = snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': (",
                        descriptions[type]);
    for (int k = axis_count - 1; k >= 0; k--)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%" PRId64 "%s", size[k],
                         axis_count == 1 ? ","
                         : k > 0         ? ", "
                                         : "");
    used += snprintf(text + used, sizeof(text) - (size_t)used, "), }");
    size_t total = (10 + (size_t)used + 1 + 63) / 64 * 64, length = total - 10;
    memset(out, ' ', total);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(length & 255);
    out[9] = (char)(length >> 8);
    memcpy(out + 10, text, (size_t)used);
    out[total - 1] = '\n';
    return total;
}

static peal_status read_vector(int fd, const char *path, peal_source source, peal_type type,
                               int64_t *count, void **data, peal_diagnostics *diagnostics)
{
    peal_npy npy;
    peal_status status = peal_npy_read_header(fd, path, source, &npy, diagnostics);
    if (status)
        return status;
    status = peal_npy_check(&npy, path, source, type, 1, npy.size, diagnostics);
    if (status)
        return status;
    void *memory = malloc(npy.bytes > 0 ? (size_t)npy.bytes : 1);
    if (!memory || !read_at(fd, memory, (size_t)npy.bytes, npy.data_offset)) {
        free(memory);
        return peal_report(diagnostics, PEAL_E_NPY_UNREADABLE, source, NULL,
                           "%s: cannot read its %" PRId64 " bytes: %s", path, npy.bytes,
                           strerror(errno));
    }
    *count = npy.count;
    *data = memory;
    return PEAL_STATUS_OK;
}

peal_status peal_npy_read_vector(const char *path, peal_source source, peal_type type,
                                 int64_t *count, void **data, peal_diagnostics *diagnostics)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return peal_report(diagnostics, PEAL_E_NPY_UNREADABLE, source, NULL, "%s: %s", path,
                           strerror(errno));
    peal_status status = read_vector(fd, path, source, type, count, data, diagnostics);
    close(fd);
    return status;
}
