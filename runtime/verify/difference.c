/* What is said of an array that a run and serial have left with different bits. */
#include "base/box.h"
#include "runtime/bind/array_rows.h"
#include "runtime/verify/verify.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void peal_element_text(peal_type type, const unsigned char *at, char *text, size_t bytes)
{
    double f64;
    float f32;
    int32_t i32;
    int64_t i64;
    switch (type) {
    case PEAL_F64:
        memcpy(&f64, at, sizeof(f64));
        snprintf(text, bytes, "%.17g", isnan(f64) ? NAN : f64); /* its sign says nothing */
        break;
    case PEAL_F32:
        memcpy(&f32, at, sizeof(f32));
        snprintf(text, bytes, "%.9g", isnan(f32) ? (double)NAN : (double)f32);
        break;
    case PEAL_I32:
        memcpy(&i32, at, sizeof(i32));
        snprintf(text, bytes, "%" PRId32, i32);
        break;
    case PEAL_I64:
        memcpy(&i64, at, sizeof(i64));
        snprintf(text, bytes, "%" PRId64, i64);
        break;
    default:
        snprintf(text, bytes, "%u", *at);
    }
}

peal_status peal_report_difference(const peal_plan *plan, const peal_schedule *schedule, int array,
                                   const unsigned char *run, const unsigned char *serial)
{
    const peal_schedule_array *a = &schedule->array[array];
    const peal_box *own = &a->layout.own;
    int64_t points = peal_box_points(own), first = -1, differing = 0;
    size_t element = peal_type_bytes(a->type);
    for (int64_t i = 0; i < points; i++)
        if (memcmp(run + (size_t)i * element, serial + (size_t)i * element, element) != 0) {
            first = first < 0 ? i : first;
            differing++;
        }
    char where[100] = "", got[40], want[40];
    int64_t rest = first, at[PEAL_AXES];
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t points_k = own->hi[k] - own->lo[k];
        at[k] = own->lo[k] + rest % points_k;
        rest /= points_k;
    }
    peal_point_text(at, own->axis_count > 0 ? own->axis_count : 1, where, sizeof(where));
    peal_element_text(a->type, run + (size_t)first * element, got, sizeof(got));
    peal_element_text(a->type, serial + (size_t)first * element, want, sizeof(want));
    return peal_report(plan->session->diagnostics, PEAL_E_VERIFICATION_FAILED,
                       plan->data->arrays[array].source,
                       "try --check-footprints: a kernel may touch what it doesn't declare",
                       "'%s' of rank %d differs from serial at %s: %s, serial has %s; %" PRId64
                       " of %" PRId64 " points differ",
                       a->name, schedule->rank, where, got, want, differing, points);
}
