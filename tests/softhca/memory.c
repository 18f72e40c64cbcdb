/* How the software adapter's data half reaches memory of processes. */
#define _GNU_SOURCE
#include "world.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* What this process has mapped of an object; at NULL: it cannot be. */
typedef struct hca_view {
    uint32_t generation;
    bool known;
    unsigned char *at; /* of the range's address */
    void *map;
    size_t map_bytes;
} hca_view;

static hca_view *views[HCA_KINDS];
static const size_t view_count[HCA_KINDS] = {HCA_REGIONS, HCA_RINGS, HCA_RINGS, HCA_QUEUES,
                                             HCA_QUEUES};
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

/* Maps the file under a range that lies in one shared mapping of its process. */
static void map(const hca_range *range, hca_view *view)
{
    char path[96], line[512], rights[8];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)range->pid);
    FILE *maps = fopen(path, "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        unsigned long lo, hi, offset;
        if (sscanf(line, "%lx-%lx %7s %lx", &lo, &hi, rights, &offset) != 4 ||
            range->address < lo || range->address + range->bytes > hi)
            continue;
        if (rights[3] != 's')
            break;
        snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", (int)range->pid, lo, hi);
        int file = open(path, O_RDWR | O_CLOEXEC);
        if (file < 0)
            break;
        void *at = mmap(NULL, hi - lo, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
        close(file);
        if (at == MAP_FAILED)
            break;
        view->map = at;
        view->map_bytes = hi - lo;
        view->at = (unsigned char *)at + (range->address - lo);
        break;
    }
    if (maps)
        fclose(maps);
}

static unsigned char *reach(const hca_range *range, uint64_t address)
{
    if (range->pid == getpid())
        return (unsigned char *)(uintptr_t)address;
    if (!views[range->kind])
        views[range->kind] = calloc(view_count[range->kind], sizeof(hca_view));
    if (!views[range->kind])
        return NULL;
    hca_view *view = &views[range->kind][range->number];
    if (!view->known || view->generation != range->generation) {
        if (view->map)
            munmap(view->map, view->map_bytes);
        *view = (hca_view){.known = true, .generation = range->generation};
        map(range, view);
    }
    return view->at ? view->at + (address - range->address) : NULL;
}

bool hca_read(const hca_range *range, uint64_t address, void *to, size_t bytes)
{
    const unsigned char *at = reach(range, address);
    if (at && bytes == 4 && address % 4 == 0) {
        uint32_t word = __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);
        memcpy(to, &word, sizeof(word));
        return true;
    }
    if (at) {
        memcpy(to, at, bytes);
        return true;
    }
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(range->pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

bool hca_write(const hca_range *range, uint64_t address, const void *from, size_t bytes)
{
    unsigned char *at = reach(range, address);
    if (at && bytes == 8 && address % 8 == 0) {
        uint64_t word;
        memcpy(&word, from, sizeof(word));
        __atomic_store_n((uint64_t *)(void *)at, word, __ATOMIC_RELEASE);
        return true;
    }
    if (at) {
        memcpy(at, from, bytes);
        return true;
    }
    struct iovec here = {(void *)(uintptr_t)from, bytes};
    struct iovec there = {(void *)(uintptr_t)address, bytes};
    return process_vm_writev(range->pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

bool hca_add(const hca_range *range, uint64_t address, uint64_t value, uint64_t *before)
{
    unsigned char *at = reach(range, address);
    if (at) {
        *before = __atomic_fetch_add((uint64_t *)(void *)at, value, __ATOMIC_ACQ_REL);
        return true;
    }
    pthread_mutex_lock(&adding);
    bool done = hca_read(range, address, before, sizeof(*before));
    uint64_t after = *before + value;
    done = done && hca_write(range, address, &after, sizeof(after));
    pthread_mutex_unlock(&adding);
    return done;
}
