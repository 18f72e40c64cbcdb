/* What a kernel's library keeps in memory of its own, static variables: by its writable segments,
 * which nothing else has a reason to change. */
#define _GNU_SOURCE
#include "runtime/footprints/internal.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENTS = 8 };

struct statics {
    int count;
    struct {
        unsigned char *at, *copy;
        size_t bytes;
    } segment[SEGMENTS];
};

typedef struct object_search {
    ElfW(Addr) base;
    statics *found;
    bool good;
} object_search;

static void add_segment(object_search *s, unsigned char *at, size_t bytes)
{
    statics *all = s->found;
    if (!bytes || all->count == SEGMENTS)
        return;
    unsigned char *copy = malloc(bytes);
    s->good = s->good && copy;
    if (!copy)
        return;
    memcpy(copy, at, bytes);
    all->segment[all->count].at = at;
    all->segment[all->count].copy = copy;
    all->segment[all->count++].bytes = bytes;
}

/* What the loader writes (relocations) it makes read-only: it is left out. */
static void add_segments(object_search *s, const struct dl_phdr_info *info)
{
    ElfW(Addr) relro = 0, relro_end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            relro = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            relro_end = relro + info->dlpi_phdr[i].p_memsz;
        }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        ElfW(Addr) first = info->dlpi_addr + header->p_vaddr, end = first + header->p_memsz;
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_W))
            continue;
        if (relro_end > first && relro <= first)
            first = relro_end < end ? relro_end : end;
        add_segment(s, (unsigned char *)first, end - first); /* NOLINT(performance-no-int-to-ptr) */
    }
}

static int look_at_object(struct dl_phdr_info *info, size_t bytes, void *user)
{
    object_search *s = user;
    (void)bytes;
    if (info->dlpi_addr != s->base)
        return 0;
    add_segments(s, info);
    return 1;
}

statics *statics_create(peal_function function, bool *good)
{
    Dl_info info, own;
    *good = true;
    if (!dladdr((const void *)(uintptr_t)function, &info) ||
        !dladdr((const void *)(uintptr_t)statics_create, &own) || info.dli_fbase == own.dli_fbase)
        return NULL;
    object_search search = {.base = (ElfW(Addr))info.dli_fbase, .good = true};
    search.found = calloc(1, sizeof(*search.found));
    if (search.found)
        dl_iterate_phdr(look_at_object, &search);
    *good = search.found && search.good;
    if (*good)
        return search.found;
    statics_destroy(search.found);
    return NULL;
}

bool statics_changed(statics *s)
{
    bool changed = false;
    for (int i = 0; i < s->count; i++) {
        if (!memcmp(s->segment[i].at, s->segment[i].copy, s->segment[i].bytes))
            continue;
        memcpy(s->segment[i].copy, s->segment[i].at, s->segment[i].bytes);
        changed = true;
    }
    return changed;
}

void statics_destroy(statics *s)
{
    for (int i = 0; s && i < s->count; i++)
        free(s->segment[i].copy);
    free(s);
}
