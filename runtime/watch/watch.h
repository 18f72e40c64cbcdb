/* Looking for values that are not numbers. */
#ifndef PEAL_RUNTIME_WATCH_WATCH_H
#define PEAL_RUNTIME_WATCH_WATCH_H

#include <peal/types.h>
#include <peal/value.h>

#include <stdbool.h>
#include <stdint.h>

typedef enum peal_watched {
    PEAL_WATCH_NOTHING,
    PEAL_WATCH_NAN,
    PEAL_WATCH_INFINITE /* and NaN */
} peal_watched;

/* Of a plan. */
typedef struct peal_watch {
    peal_watched what;
    bool looked;       /* at least once: it was clean */
    int64_t clean;     /* after so many steps */
    bool row_seen;     /* a row of `print` had a NaN: */
    int64_t row_step;  /* the first */
    char row_name[40]; /* the column */
} peal_watch;

/* find.c: "nan", "inf". NOTHING: NULL, or another word. */
peal_watched peal_watched_named(const char *name);
/* Index of the first element of a row that is what is looked for; -1: none. */
int64_t peal_watch_find(peal_watched what, peal_type type, const unsigned char *row, int64_t bytes);

struct peal_plan;
/* warn.c: a row of `print` passes. */
void peal_watch_row(peal_watch *watch, int64_t step, int count, const char *const *names,
                    const peal_value *values);
/* After `finish`: warns of a row, and of the `until` of the steps, that has a NaN. */
void peal_watch_tell(struct peal_plan *plan);

#endif
