/* Files of `save`, for a verification: what the run has saved is compared with what serial has,
 * byte by byte. What cannot be read is not equal. */
#define _GNU_SOURCE
#include "runtime/verify/saved.h"
#include "base/new_file.h"
#include "runtime/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

/* Both versions of a file; sides: the run's, serial's. */
typedef struct file_pair {
    const char *name;
    int descriptor[2];
    int64_t bytes[2];
    unsigned char *chunk[2];
    peal_diagnostics *diagnostics;
} file_pair;

static peal_status cannot_read(const file_pair *pair, int side, int error)
{
    return peal_report(pair->diagnostics, PEAL_E_FILE_NOT_COMPARABLE, PEAL_NO_SOURCE, NULL,
                       "cannot read `%s`%s to compare it: %s", pair->name, side ? " of serial" : "",
                       error < 0 ? "it ended" : strerror(error));
}

static peal_status differs(const file_pair *pair, int64_t offset)
{
    return peal_report(pair->diagnostics, PEAL_E_VERIFICATION_FAILED, PEAL_NO_SOURCE, NULL,
                       "the file `%s` differs from the one that serial saves, from byte %" PRId64
                       " on",
                       pair->name, offset);
}

/* Ends at the first byte that differs, or at the end of the shorter one. */
static peal_status compare_bytes(const file_pair *pair)
{
    int64_t both = pair->bytes[0] < pair->bytes[1] ? pair->bytes[0] : pair->bytes[1];
    for (int64_t offset = 0; offset < both; offset += CHUNK) {
        size_t count = both - offset < CHUNK ? (size_t)(both - offset) : CHUNK, i = 0;
        for (int side = 0; side < 2; side++) {
            int error = peal_read_all(pair->descriptor[side], pair->chunk[side], count, offset);
            if (error)
                return cannot_read(pair, side, error);
        }
        while (i < count && pair->chunk[0][i] == pair->chunk[1][i])
            i++;
        if (i < count)
            return differs(pair, offset + (int64_t)i);
    }
    return pair->bytes[0] != pair->bytes[1] ? differs(pair, both) : PEAL_STATUS_OK;
}

static peal_status open_side(file_pair *pair, int side, const char *path, bool *is_file)
{
    struct stat info;
    pair->descriptor[side] = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (pair->descriptor[side] < 0 && errno == ENOENT && side == 0)
        return peal_report(pair->diagnostics, PEAL_E_VERIFICATION_FAILED, PEAL_NO_SOURCE, NULL,
                           "serial saves `%s`, which is not there now", pair->name);
    if (pair->descriptor[side] < 0 || fstat(pair->descriptor[side], &info) != 0)
        return cannot_read(pair, side, errno);
    *is_file = S_ISREG(info.st_mode);
    pair->bytes[side] = info.st_size;
    return PEAL_STATUS_OK;
}

static peal_status compare_file(const peal_redirect *redirect, const peal_redirected *file,
                                unsigned char *chunks, int *count, peal_diagnostics *diagnostics)
{
    char copy[PATH_MAX];
    bool is_file = true;
    file_pair pair = {.name = file->name,
                      .descriptor = {-1, -1},
                      .chunk = {chunks, chunks + CHUNK},
                      .diagnostics = diagnostics};

    peal_redirect_path(redirect, file->path, copy);
    peal_status status = open_side(&pair, 0, file->path, &is_file);
    if (!status && is_file)
        status = open_side(&pair, 1, copy, &is_file);
    if (!status && is_file) {
        status = compare_bytes(&pair);
        ++*count;
    }
    for (int side = 0; side < 2; side++)
        if (pair.descriptor[side] >= 0)
            close(pair.descriptor[side]);
    return status;
}

peal_status peal_saved_compare(peal_redirect *redirect, const peal_likeness *likeness, int *count,
                               peal_diagnostics *diagnostics)
{
    int files = 0;
    const peal_redirected *file = peal_redirect_list(redirect, &files);
    unsigned char *chunks = malloc(2 * (size_t)CHUNK);
    peal_status status = PEAL_STATUS_OK;

    *count = 0;
    if (!chunks)
        return peal_report(diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory to compare files");
    for (int i = 0; i < files && !status; i++)
        if (!likeness || likeness->statement[file[i].statement] == PEAL_SAME_BITS)
            status = compare_file(redirect, &file[i], chunks, count, diagnostics);
    free(chunks);
    return status;
}
