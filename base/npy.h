/* NumPy's .npy files, version 1 to 3 headers: what peal loads and saves.
 *
 * Accepted are little-endian f8 f4 i4 i8 and u1 in C order. peal counts axes x first, the file has
 * the reverse: size[0] is the file's last (contiguous) axis. The data are read and written by the
 * caller, with pread and pwrite from data_offset on. */
#ifndef PEAL_BASE_NPY_H
#define PEAL_BASE_NPY_H

#include "base/diagnostic.h"

#include <stddef.h>
#include <stdint.h>

typedef struct peal_npy {
    peal_type type;
    int axis_count;          /* 0: a single value */
    int64_t size[PEAL_AXES]; /* x first; 1 beyond axis_count */
    int64_t count;           /* elements */
    int64_t bytes;           /* of the data */
    int64_t data_offset;     /* where the data begin in the file */
} peal_npy;

/* Reads the header of the open file fd (regular; its position is not used) and checks that the file
 * is long enough for its data. path is for messages; source is the place in the spec that names the
 * file. PEAL_E_NPY_UNREADABLE .. PEAL_E_NPY_TRUNCATED otherwise. */
peal_status peal_npy_read_header(int fd, const char *path, peal_source source, peal_npy *out,
                                 peal_diagnostics *diagnostics);

/* Whether the file holds axis_count axes of these sizes (x first) of this type:
 * PEAL_E_NPY_WRONG_TYPE, PEAL_E_NPY_WRONG_SHAPE. */
peal_status peal_npy_check(const peal_npy *npy, const char *path, peal_source source,
                           peal_type type, int axis_count, const int64_t *size,
                           peal_diagnostics *diagnostics);

enum { PEAL_NPY_HEADER_BYTES = 256 };

/* Writes a version 1.0 header for an array of these sizes (x first) and returns its length, a
 * multiple of 64 and at most PEAL_NPY_HEADER_BYTES: the data come right after it. axis_count is at
 * most PEAL_AXES. */
size_t peal_npy_make_header(peal_type type, int axis_count, const int64_t *size,
                            char header[PEAL_NPY_HEADER_BYTES]);

/* Opens path, reads and checks its header, and reads all data into *data, which the caller frees.
 * For 1-D files of constant buffers. */
peal_status peal_npy_read_vector(const char *path, peal_source source, peal_type type,
                                 int64_t *count, void **data, peal_diagnostics *diagnostics);

#endif
