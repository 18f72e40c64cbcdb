/* Copies of arrays between guards. The array ends where a guard begins, so that the first element
 * behind it faults; in front of it are up to a page of a pattern, then the other guard. */
#define _GNU_SOURCE
#include "runtime/footprints/internal.h"
#include "runtime/memory/available.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Address space alone: as far as an index of 32 bits reaches. Less is taken where it is limited. */
static const int64_t guard_most = INT64_C(1) << 34, guard_least = INT64_C(1) << 16;
static const int64_t address_space = INT64_C(1) << 46; /* half of what x86-64 has */
enum { ALIGNMENT = 64, MARGIN_BYTES = 4096 };

static int64_t page_bytes(void)
{
    static int64_t bytes;
    if (!bytes)
        bytes = sysconf(_SC_PAGESIZE);
    return bytes;
}

static unsigned char *page_of(const unsigned char *at)
{
    return (unsigned char *)((uintptr_t)at & ~(uintptr_t)(page_bytes() - 1));
}

static peal_status create_on_device(const peal_memory_space *space, int64_t bytes,
                                    peal_diagnostics *diagnostics, guarded *out)
{
    return peal_storage_create(space, bytes + 2 * MARGIN_BYTES, false, diagnostics, &out->storage);
}

int64_t guarded_width(int count)
{
    int64_t left = peal_address_space_left(), guard = guard_most;
    left = left < address_space ? left : address_space;
    while (guard > guard_least && guard > left / (4 * (int64_t)count + 1))
        guard /= 4;
    return guard;
}

peal_status guarded_create(const peal_memory_space *space, int64_t bytes, int64_t width,
                           peal_diagnostics *diagnostics, guarded *out)
{
    *out = (guarded){.storage = {.descriptor = -1}};
    if (space->memory)
        return create_on_device(space, bytes, diagnostics, out);
    int64_t page = page_bytes(), room = (bytes / page + 3) * page;
    for (int64_t guard = width; guard >= guard_least; guard /= 4) {
        size_t all = (size_t)(room + 2 * guard);
        unsigned char *memory =
            mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            continue;
        out->reserved = memory;
        out->reserved_bytes = all;
        out->room = memory + guard;
        out->room_end = out->room + room;
        if (!mprotect(out->room, (size_t)room, PROT_READ | PROT_WRITE))
            return PEAL_STATUS_OK;
        guarded_destroy(out);
    }
    return peal_report(diagnostics, PEAL_E_NOT_ENOUGH_MEMORY, PEAL_NO_SOURCE,
                       "raise ulimit -v, or check a smaller size",
                       "no address space for the guards of --check-footprints");
}

void guarded_destroy(guarded *g)
{
    if (g->reserved)
        munmap(g->reserved, g->reserved_bytes);
    peal_storage_release(&g->storage);
    *g = (guarded){.storage = {.descriptor = -1}};
}

static void place_on_device(guarded *g, int64_t bytes)
{
    g->filled = g->filled && g->bytes == bytes;
    g->bytes = bytes;
    g->open = g->storage.base;
    g->base = g->open + MARGIN_BYTES;
    g->end = g->base + bytes + MARGIN_BYTES;
}

void guarded_place(guarded *g, const unsigned char *real, int64_t bytes)
{
    if (!g->reserved) {
        place_on_device(g, bytes);
        return;
    }
    guarded_set_writable(g, true);
    guarded_close(g);
    uintptr_t last = (uintptr_t)g->room_end - (uintptr_t)bytes;
    unsigned char *base = (unsigned char *)(last - (last - (uintptr_t)real) % ALIGNMENT);
    if (g->base == base && g->bytes == bytes)
        return;
    if (g->base)
        mprotect(g->room, (size_t)(g->room_end - g->room), PROT_READ | PROT_WRITE);
    g->filled = false;
    g->bytes = bytes;
    g->base = base;
    g->open = page_of(g->base - ALIGNMENT);
    g->end = g->room_end;
    if (g->open > g->room)
        mprotect(g->room, (size_t)(g->open - g->room), PROT_NONE);
}

void guarded_place_edge(guarded *g, int64_t bytes, int64_t edge)
{
    g->read_only = false;
    guarded_close(g); /* closes what lies below the old `open`, too */
    mprotect(g->room, (size_t)(g->room_end - g->room), PROT_READ | PROT_WRITE);
    g->filled = false;
    g->bytes = bytes;
    g->base = page_of(g->room_end - bytes + edge) - edge;
    g->open = page_of(g->base);
    g->end = g->room_end;
    if (g->open > g->room)
        mprotect(g->room, (size_t)(g->open - g->room), PROT_NONE);
}

void guarded_protect(guarded *g)
{
    mprotect(g->open, (size_t)(g->end - g->open), PROT_READ);
}

void guarded_allow(guarded *g, int64_t offset, int64_t bytes)
{
    unsigned char *first = page_of(g->base + offset);
    mprotect(first, (size_t)(g->base + offset + bytes - first), PROT_READ | PROT_WRITE);
}

void guarded_set_writable(guarded *g, bool writable)
{
    if (!g->reserved || g->read_only == !writable)
        return;
    mprotect(g->open, (size_t)(g->end - g->open), PROT_READ | (writable ? PROT_WRITE : 0));
    g->read_only = !writable;
}

/* A load needs one fault, a store two: the first makes the page readable. */
bool guarded_fault(guarded *g, uintptr_t address, bool *write)
{
    uintptr_t first = (uintptr_t)g->reserved;
    if (!g->reserved || address < first || address >= first + g->reserved_bytes)
        return false;
    unsigned char *page = page_of(g->reserved + (address - first));
    *write = page == g->let;
    g->let = *write ? NULL : page;
    g->touched = true;
    return !mprotect(page, (size_t)page_bytes(), PROT_READ | (*write ? PROT_WRITE : 0));
}

void guarded_close(guarded *g)
{
    g->let = NULL;
    if (!g->touched)
        return;
    size_t before = (size_t)(g->open - g->reserved);
    size_t behind = (size_t)(g->reserved + g->reserved_bytes - g->end);
    madvise(g->reserved, before, MADV_DONTNEED);
    madvise(g->end, behind, MADV_DONTNEED);
    mprotect(g->reserved, before, PROT_NONE);
    mprotect(g->end, behind, PROT_NONE);
    if (g->read_only)
        mprotect(g->open, (size_t)(g->end - g->open), PROT_READ);
    g->touched = false;
}
