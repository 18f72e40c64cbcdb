/* Boxes of an array in memory: row by row, packed, and unpacked. */
#include "runtime/bind/array_rows.h"
#include "base/box.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t peal_box_bytes(const peal_box *box, peal_type type)
{
    return peal_box_points(box) * (int64_t)peal_type_bytes(type);
}

void peal_box_rows(const peal_schedule_array *array, const peal_box *box,
                   void (*visit)(void *user, int64_t offset, int64_t bytes), void *user)
{
    const peal_layout *layout = &array->layout;
    int64_t element = (int64_t)peal_type_bytes(array->type), p[PEAL_AXES];
    if (peal_box_is_empty(box))
        return;
    for (p[3] = box->lo[3]; p[3] < box->hi[3]; p[3]++)
        for (p[2] = box->lo[2]; p[2] < box->hi[2]; p[2]++)
            for (p[1] = box->lo[1]; p[1] < box->hi[1]; p[1]++) {
                int64_t offset = box->lo[0] - layout->stored.lo[0];
                for (int k = 1; k < PEAL_AXES; k++)
                    offset += (p[k] - layout->stored.lo[k]) * layout->stride[k];
                visit(user, offset * element, (box->hi[0] - box->lo[0]) * element);
            }
}

typedef struct cursor {
    const unsigned char *from;
    unsigned char *to;
} cursor;

static void pack_row(void *user, int64_t offset, int64_t bytes)
{
    cursor *c = user;
    memcpy(c->to, c->from + offset, (size_t)bytes);
    c->to += bytes;
}

static void unpack_row(void *user, int64_t offset, int64_t bytes)
{
    cursor *c = user;
    memcpy(c->to + offset, c->from, (size_t)bytes);
    c->from += bytes;
}

void peal_box_pack(const peal_schedule_array *array, const peal_box *box,
                   const unsigned char *memory, unsigned char *packed)
{
    cursor c = {.from = memory, .to = packed};
    peal_box_rows(array, box, pack_row, &c);
}

void peal_box_unpack(const peal_schedule_array *array, const peal_box *box, unsigned char *memory,
                     const unsigned char *packed)
{
    cursor c = {.from = packed, .to = memory};
    peal_box_rows(array, box, unpack_row, &c);
}

void peal_layout_point(const peal_layout *layout, int64_t element, int64_t point[PEAL_AXES])
{
    int64_t rest = element;
    for (int k = PEAL_AXES - 1; k >= 0; k--) {
        int64_t extent = layout->stored.hi[k] - layout->stored.lo[k];
        int64_t index = layout->stride[k] > 0 ? rest / layout->stride[k] : 0;
        if (k > 0 && extent == 1)
            index = 0; /* strides along such axes mean nothing */
        index = index < extent ? index : extent - 1;
        rest -= index * layout->stride[k];
        point[k] = layout->stored.lo[k] + index;
    }
}

void peal_point_text(const int64_t *point, int axes, char *text, size_t bytes)
{
    size_t used = 0;
    for (int k = 0; k < axes && used < bytes; k++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%" PRId64, k ? ", " : "(", point[k]);
    if (used < bytes)
        snprintf(text + used, bytes - used, ")");
}
