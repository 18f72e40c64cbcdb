/* Where a schedule puts things in a rank's segment. */
#ifndef PEAL_TESTS_SCHEDULER_SEGMENTS_H
#define PEAL_TESTS_SCHEDULER_SEGMENTS_H

#include <peal/plugin/schedule.h>

#include <stddef.h>

/* Arrays, flags, credits and slots do not overlap and lie in what is used; peers know the segment's
 * size. False: text says what is wrong. */
bool segment_is_sound(const peal_schedule *const *schedules, int rank, char *text, size_t bytes);

#endif
