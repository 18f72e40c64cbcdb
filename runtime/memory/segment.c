/* Segments: zeroed memory whose pages are all there before it is handed out.
 *
 * Shared ones are memfds: no name, gone with their last mapping, and sealed so that no peer can
 * shrink one under a reader (which would be a SIGBUS). */
#define _GNU_SOURCE
#include "runtime/memory/segment.h"

#include "base/checked.h"
#include "base/memory_file.h"
#include "runtime/memory/available.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static const peal_source nowhere = {0};

static peal_status no_memory(peal_diagnostics *diagnostics, int64_t need, int64_t have,
                             const char *reason)
{
    return peal_report(diagnostics, PEAL_E_NOT_ENOUGH_MEMORY, nowhere,
                       "use smaller fields, more ranks on other hosts, or a larger memory limit",
                       "a rank needs %" PRId64 " bytes of memory, this process can have %" PRId64
                       " (%s)",
                       need, have, reason);
}

/* A limit of this process that `bytes` exceed, in words, or NULL. */
static const char *exceeded_limit(int64_t bytes, bool shared, int64_t *have)
{
    struct rlimit limit;
    if (shared && !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < (rlim_t)bytes) {
        *have = (int64_t)limit.rlim_cur; /* growing a memfd beyond it is a SIGXFSZ */
        return "file size limit, see ulimit -f";
    }
    if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur < (rlim_t)bytes) {
        *have = (int64_t)limit.rlim_cur;
        return "address space limit, see ulimit -v";
    }
    return NULL;
}

static peal_status failed(peal_diagnostics *diagnostics, int64_t need, const char *call)
{
    char reason[256];
    int error = errno;
    if (error == ENOMEM || error == ENOSPC || error == EFBIG || error == EAGAIN) {
        char limit[160];
        int64_t have = peal_memory_available("", limit, sizeof(limit));
        snprintf(reason, sizeof(reason), "%s; %s: %s", limit, call, strerror(error));
        return no_memory(diagnostics, need, have, reason);
    }
    return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, nowhere, NULL,
                       "memory of %" PRId64 " bytes: %s: %s", need, call, strerror(error));
}

static peal_status round_to_pages(int64_t bytes, peal_diagnostics *diagnostics, int64_t *out)
{
    int64_t page = sysconf(_SC_PAGESIZE), sum;
    if (bytes < 0 || peal_add_overflows(bytes, page - 1, &sum))
        return peal_report(diagnostics, PEAL_E_NOT_ENOUGH_MEMORY, nowhere, NULL,
                           "a rank needs %" PRId64 " bytes of memory: more than 63 bits can count",
                           bytes);
    *out = bytes ? sum / page * page : page;
    return PEAL_STATUS_OK;
}

/* Asks the file system for every page now; in pieces, so that a signal costs little. */
static int reserve(int descriptor, int64_t bytes)
{
    const int64_t piece = INT64_C(64) << 20;
    for (int64_t at = 0; at < bytes;) {
        int64_t length = bytes - at < piece ? bytes - at : piece;
        if (!fallocate(descriptor, 0, at, length))
            at += length;
        else if (errno != EINTR)
            return -1;
    }
    return 0;
}

/* Every page writable without a fault that could fail. */
static int populate(unsigned char *base, int64_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    if (!madvise(base, (size_t)bytes, MADV_POPULATE_WRITE))
        return 0;
    if (errno != EINVAL)
        return -1; /* EINVAL: a kernel before 5.14 */
#endif
    int64_t page = sysconf(_SC_PAGESIZE);
    for (int64_t at = 0; at < bytes; at += page)
        *(volatile unsigned char *)(base + at) = 0;
    return 0;
}

static peal_status create_shared(int64_t bytes, int64_t used, peal_diagnostics *diagnostics,
                                 peal_segment *out)
{
    const char *call = "memfd_create";
    unsigned char *base = MAP_FAILED;
    int descriptor = peal_memory_file("peal", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0)
        return failed(diagnostics, bytes, call);
    call = "ftruncate";
    if (ftruncate(descriptor, bytes))
        goto close_descriptor;
    call = "fallocate";
    if (reserve(descriptor, used))
        goto close_descriptor;
    call = "seal";
    if (fcntl(descriptor, F_ADD_SEALS, SEALS))
        goto close_descriptor;
    call = "mmap";
    base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (base == MAP_FAILED)
        goto close_descriptor;
    call = "populate";
    if (populate(base, used))
        goto unmap;
    *out = (peal_segment){base, bytes, descriptor};
    return PEAL_STATUS_OK;

    int error;
unmap:
    error = errno;
    munmap(base, (size_t)bytes);
    errno = error;
close_descriptor:
    error = errno;
    close(descriptor);
    errno = error;
    return failed(diagnostics, bytes, call);
}

static peal_status create_private(int64_t bytes, int64_t used, peal_diagnostics *diagnostics,
                                  peal_segment *out)
{
    unsigned char *base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return failed(diagnostics, bytes, "mmap");
    if (populate(base, used)) {
        int error = errno;
        munmap(base, (size_t)bytes);
        errno = error;
        return failed(diagnostics, bytes, "populate");
    }
    *out = (peal_segment){base, bytes, -1};
    return PEAL_STATUS_OK;
}

peal_status peal_segment_create_used(int64_t bytes, int64_t used, bool shared,
                                     peal_diagnostics *diagnostics, peal_segment *out)
{
    int64_t rounded = 0, touched = 0;
    char reason[160];
    peal_status status = round_to_pages(bytes, diagnostics, &rounded);
    if (status == PEAL_STATUS_OK)
        status = round_to_pages(used, diagnostics, &touched);
    if (status != PEAL_STATUS_OK)
        return status;
    int64_t have = peal_memory_available("", reason, sizeof(reason));
    if (touched > have)
        return no_memory(diagnostics, touched, have, reason);
    const char *limit = exceeded_limit(rounded, shared, &have);
    if (limit)
        return no_memory(diagnostics, rounded, have, limit);
    return shared ? create_shared(rounded, touched, diagnostics, out)
                  : create_private(rounded, touched, diagnostics, out);
}

peal_status peal_segment_create(int64_t bytes, bool shared, peal_diagnostics *diagnostics,
                                peal_segment *out)
{
    return peal_segment_create_used(bytes, bytes, shared, diagnostics, out);
}

/* Maps the pages that are there. Without, the first use of each takes longer. */
static void map_pages(unsigned char *base, int descriptor, int64_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    off_t hole = lseek(descriptor, 0, SEEK_HOLE);
    int64_t there = hole > 0 && hole < bytes ? hole : bytes;
    madvise(base, (size_t)there, MADV_POPULATE_WRITE);
#else
    (void)base, (void)descriptor, (void)bytes;
#endif
}

peal_status peal_segment_import(int descriptor, int64_t bytes, peal_diagnostics *diagnostics,
                                peal_segment *out)
{
    struct stat state;
    int64_t rounded = 0;
    peal_status status = round_to_pages(bytes, diagnostics, &rounded);
    if (status != PEAL_STATUS_OK)
        goto close_descriptor;
    int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS) {
        status = peal_report(diagnostics, PEAL_E_SHARED_MEMORY_MISMATCH, nowhere, NULL,
                             "the memory of another process is not sealed (seals %d)", seals);
        goto close_descriptor;
    }
    if (fstat(descriptor, &state) || state.st_size != rounded) {
        status =
            peal_report(diagnostics, PEAL_E_SHARED_MEMORY_MISMATCH, nowhere, NULL,
                        "the memory of another process has %" PRId64 " bytes, expected %" PRId64,
                        (int64_t)state.st_size, rounded);
        goto close_descriptor;
    }
    unsigned char *base =
        mmap(NULL, (size_t)rounded, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (base == MAP_FAILED) {
        status = failed(diagnostics, rounded, "mmap of another process's memory");
        goto close_descriptor;
    }
    map_pages(base, descriptor, rounded);
    *out = (peal_segment){base, rounded, descriptor};
    return PEAL_STATUS_OK;

close_descriptor:
    close(descriptor);
    return status;
}

void peal_segment_destroy(peal_segment *segment)
{
    if (!segment || !segment->base)
        return;
    munmap(segment->base, (size_t)segment->bytes);
    if (segment->descriptor >= 0)
        close(segment->descriptor);
    *segment = (peal_segment){NULL, 0, -1};
}
