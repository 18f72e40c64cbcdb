/* Copies of boxes between strided arrays, normalised once and run often. */
#ifndef PEAL_HOST_COPY_H
#define PEAL_HOST_COPY_H

#include <peal/types.h>

/* `row` runs of `bytes` contiguous bytes along each of up to three outer axes, innermost first. If
 * nothing is contiguous, bytes is that of one element. */
typedef struct host_copy {
    int64_t bytes;
    int64_t count[3];
    int64_t source_step[3], target_step[3]; /* bytes */
    void (*run)(const struct host_copy *copy, unsigned char *target, const unsigned char *source);
} host_copy;

/* extent points an axis with strides in elements of element_bytes. An empty box copies nothing. */
void host_copy_prepare(host_copy *copy, size_t element_bytes, const int64_t extent[PEAL_AXES],
                       const int64_t source_stride[PEAL_AXES],
                       const int64_t target_stride[PEAL_AXES]);

static inline void host_copy_run(const host_copy *copy, unsigned char *target,
                                 const unsigned char *source)
{
    copy->run(copy, target, source);
}

#endif
