/* What is done with the rows of a tile's footprint. */
#define _GNU_SOURCE
#include "runtime/footprints/internal.h"

#include <string.h>

void row_copy(void *user, int64_t offset, int64_t bytes)
{
    row_visit *v = user;
    memcpy(v->to + offset, v->from + offset, (size_t)bytes);
}

void row_old(void *user, int64_t offset, int64_t bytes)
{
    row_visit *v = user;
    int64_t end = offset + bytes < v->end ? offset + bytes : v->end;
    if (offset < end)
        fill_old(v->to + offset, end - offset, v->type, v->fill);
}

void row_outside(void *user, int64_t offset, int64_t bytes)
{
    row_visit *v = user;
    fill_outside(v->to + offset, bytes, v->type, v->fill);
}

/* Whether the kernel has left this element out, or stored what it had found there, in both. */
static bool is_left_out(const row_visit *v, int64_t at, size_t element)
{
    return !memcmp(v->from + at, v->real + at, element) &&
           (is_old(v->to + at, v->type, v->fill) || !memcmp(v->to + at, v->real + at, element));
}

void row_compare(void *user, int64_t offset, int64_t bytes)
{
    row_visit *v = user;
    int64_t element = (int64_t)peal_type_bytes(v->type);
    if (v->found >= 0 || !memcmp(v->to + offset, v->from + offset, (size_t)bytes))
        return;
    for (int64_t at = offset; at < offset + bytes && v->found < 0; at += element)
        if (memcmp(v->to + at, v->from + at, (size_t)element) != 0 &&
            !is_left_out(v, at, (size_t)element))
            v->found = at;
}

static bool are_nans(const unsigned char *a, const unsigned char *b, peal_type type)
{
    double x[2] = {0};
    float y[2] = {0};
    if (type == PEAL_F64) {
        memcpy(&x[0], a, sizeof(double));
        memcpy(&x[1], b, sizeof(double));
    } else if (type == PEAL_F32) {
        memcpy(&y[0], a, sizeof(float));
        memcpy(&y[1], b, sizeof(float));
        x[0] = (double)y[0];
        x[1] = (double)y[1];
    }
    return x[0] != x[0] && x[1] != x[1];
}

void row_equal(void *user, int64_t offset, int64_t bytes)
{
    row_visit *v = user;
    int64_t element = (int64_t)peal_type_bytes(v->type);
    if (v->found >= 0 || !memcmp(v->to + offset, v->from + offset, (size_t)bytes))
        return;
    for (int64_t at = offset; at < offset + bytes && v->found < 0; at += element)
        if (memcmp(v->to + at, v->from + at, (size_t)element) != 0 &&
            !(v->nans_are_alike && are_nans(v->to + at, v->from + at, v->type)))
            v->found = at;
}

void row_broken(void *user, int64_t offset, int64_t bytes)
{
    row_visit *v = user;
    int64_t at = v->found < 0 ? first_broken(v->to + offset, bytes, v->type, v->fill) : -1;
    if (at >= 0)
        v->found = offset + at;
}
