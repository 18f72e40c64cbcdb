/* Copies of boxes between strided arrays, normalised once and run often. */
#ifndef PEAL_BASE_COPY_H
#define PEAL_BASE_COPY_H

#include <peal/types.h>

/* `row` runs of `bytes` contiguous bytes along each of up to three outer axes, innermost first. If
 * nothing is contiguous, bytes is that of one element. */
typedef struct peal_copy {
    int64_t bytes;
    int64_t count[3];
    int64_t source_step[3], target_step[3]; /* bytes */
    int64_t source_twin, target_twin;       /* bytes; copies in pairs: from here to the second */
    void (*run)(const struct peal_copy *copy, unsigned char *target, const unsigned char *source);
} peal_copy;

/* extent points an axis with strides in elements of element_bytes. An empty box copies nothing. */
void peal_copy_prepare(peal_copy *copy, size_t element_bytes, const int64_t extent[PEAL_AXES],
                       const int64_t source_stride[PEAL_AXES],
                       const int64_t target_stride[PEAL_AXES]);

/* Makes `copy` do a second copy of the same shape in the same pass, with its ends at these
 * distances from the first's: the faces at both ends of x lie in the same cache lines, which are
 * then touched once. False, and nothing changed, unless the runs are single elements of 4 or 8
 * bytes. */
bool peal_copy_pair(peal_copy *copy, int64_t source_twin, int64_t target_twin);

/* Two copies have the same shape and touch the same cache lines at one end, if the second lies at
 * these distances from the first: then a pair is faster. */
bool peal_copy_is_twin(const peal_copy *a, const peal_copy *b, int64_t source_twin,
                       int64_t target_twin);

static inline void peal_copy_run(const peal_copy *copy, unsigned char *target,
                                 const unsigned char *source)
{
    copy->run(copy, target, source);
}

#endif
