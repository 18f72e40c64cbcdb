/* The geometry of fields, point by point, as the language defines it; slow, and written without
 * looking at the scheduler's formulas. */
#ifndef PEAL_TESTS_SCHEDULER_BRUTE_H
#define PEAL_TESTS_SCHEDULER_BRUTE_H

#include <peal/types.h>

/* A field that is cut over ranks, all numbers known. Axes that it lacks have one point. */
typedef struct brute_field {
    int axis_count;
    int64_t whole[PEAL_AXES]; /* points before coarsening and staggering */
    int64_t size[PEAL_AXES];  /* points that it has in the end */
    int64_t align[PEAL_AXES], coarsen[PEAL_AXES], stagger[PEAL_AXES], halo[PEAL_AXES][2];
    int dims[PEAL_AXES];
    const int64_t *end[PEAL_AXES]; /* of the parts, before coarsening; NULL: they are equal */
    bool periodic[PEAL_AXES];
} brute_field;

/* Sets size from the rest. */
void brute_finish(brute_field *f);

/* The position along an axis of the rank whose part point p lies in; p has been wrapped, ghost
 * points belong to the rank whose part ends there. */
int brute_owner_along(const brute_field *f, int axis, int64_t p);

/* A periodic axis' point beyond an end is an image of this one. */
int64_t brute_image(const brute_field *f, int axis, int64_t p);

/* Whether point p is in the part of the rank at a position; among its own points (with ghost
 * points); among what it stores. */
bool brute_in_part(const brute_field *f, const int position[PEAL_AXES], const int64_t p[PEAL_AXES]);
bool brute_is_own(const brute_field *f, const int position[PEAL_AXES], const int64_t p[PEAL_AXES]);
bool brute_is_stored(const brute_field *f, const int position[PEAL_AXES],
                     const int64_t p[PEAL_AXES]);

/* In which direction from its part a stored point of this rank that is not its own lies: -1, 0, 1
 * an axis; ghost points and points of the part are 0. */
void brute_direction(const brute_field *f, const int position[PEAL_AXES],
                     const int64_t p[PEAL_AXES], int direction[PEAL_AXES]);

/* Whether some rank has no point (staggered ones don't count), or a part is narrower than the halo
 * that a neighbour has of it: then the field cannot be cut like this. */
bool brute_is_refused(const brute_field *f);

/* Points that the rank at a position receives in one exchange. */
int64_t brute_halo_points(const brute_field *f, const int position[PEAL_AXES]);

/* Visits the points of [low, high) one after the other: for (start; next). False: no more. */
bool brute_next(const int64_t low[PEAL_AXES], const int64_t high[PEAL_AXES], int64_t p[PEAL_AXES]);

#endif
