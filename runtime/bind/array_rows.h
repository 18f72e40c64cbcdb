/* Boxes of an array in memory. */
#ifndef PEAL_RUNTIME_BIND_ARRAY_ROWS_H
#define PEAL_RUNTIME_BIND_ARRAY_ROWS_H

#include <peal/plugin/schedule.h>

/* Bytes of a box of an array's elements, densely packed. */
int64_t peal_box_bytes(const peal_box *box, peal_type type);
/* Calls visit for every row (along x) of box with how many bytes its first byte is behind
 * the first of `stored`. */
void peal_box_rows(const peal_schedule_array *array, const peal_box *box,
                   void (*visit)(void *user, int64_t offset, int64_t bytes), void *user);
/* Packs `box` of an array, x fastest, from the memory whose first byte is the first of `stored`;
 * unpacks it again. */
void peal_box_pack(const peal_schedule_array *array, const peal_box *box,
                   const unsigned char *memory, unsigned char *packed);
void peal_box_unpack(const peal_schedule_array *array, const peal_box *box, unsigned char *memory,
                     const unsigned char *packed);
/* Coordinates of an element, counted in memory from the first stored one; of padding behind a row,
 * those of the row's last point. */
void peal_layout_point(const peal_layout *layout, int64_t element, int64_t point[PEAL_AXES]);
/* "(9, 3)" */
void peal_point_text(const int64_t *point, int axes, char *text, size_t bytes);

#endif
