/* The arena: a list of blocks, each twice as large as the last up to 1 MiB; larger requests get
 * their own.
 *
 * Where memory ends, a guard (setjmp) goes on, so that no caller of the many needs to look: what a
 * compile has allocated is freed as a whole. A little is held back for what there is to say then.
 */
#include "base/arena.h"
#include "base/clock.h"

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
    struct block *next;
    size_t used, size;
    max_align_t data[];
} block;

enum { RESERVE_BYTES = 16384, ALLOCATIONS_A_LOOK = 256 };

struct peal_arena {
    block *blocks;
    size_t next_size;
    size_t total;
    peal_arena *parent;          /* whose guard goes on; NULL: its own */
    peal_arena *child, *sibling; /* those that end with this one, in a list */
    peal_arena_guard *guard;
    void *reserve;
    size_t wanted;
    int64_t until_ns; /* of the thread's processor time; 0: any time */
    int looks;
    bool is_late;
};

peal_arena *peal_arena_create(void)
{
    peal_arena *arena = calloc(1, sizeof(*arena));
    if (arena)
        arena->next_size = 4096;
    return arena;
}

peal_arena *peal_arena_create_within(peal_arena *parent)
{
    peal_arena *arena = peal_arena_create();
    if (!arena)
        peal_arena_fail(parent, sizeof(*arena));
    arena->parent = parent;
    arena->sibling = parent->child;
    parent->child = arena;
    return arena;
}

static void leave_parent(peal_arena *arena)
{
    peal_arena **link = &arena->parent->child;
    while (*link != arena)
        link = &(*link)->sibling;
    *link = arena->sibling;
}

void peal_arena_destroy(peal_arena *arena)
{
    if (!arena)
        return;
    while (arena->child) /* a guard that went on has passed over those who would have done it */
        peal_arena_destroy(arena->child);
    if (arena->parent)
        leave_parent(arena);
    for (peal_arena_guard *guard = arena->guard; guard; guard = guard->outer)
        guard->arena = NULL; /* of a function that still has to return */
    for (block *b = arena->blocks; b;) {
        block *next = b->next;
        free(b);
        b = next;
    }
    free(arena->reserve);
    free(arena);
}

void peal_arena_clear(peal_arena *arena)
{
    block *kept = arena->blocks; /* the last one, which is as large as any but single requests */
    if (!kept)
        return;
    for (block *b = kept->next; b;) {
        block *next = b->next;
        free(b);
        b = next;
    }
    memset(kept->data, 0, kept->used);
    kept->next = NULL;
    kept->used = 0;
    arena->total = 0;
}

void peal_arena_guard_begin(peal_arena_guard *guard, peal_arena *arena)
{
    guard->arena = arena;
    if (!arena)
        return;
    guard->outer = arena->guard;
    arena->guard = guard;
    if (!arena->reserve)
        arena->reserve = malloc(RESERVE_BYTES);
}

void peal_arena_guard_end(peal_arena_guard *guard)
{
    if (guard->arena)
        guard->arena->guard = guard->outer;
}

void peal_arena_fail(peal_arena *arena, size_t bytes)
{
    while (arena->parent)
        arena = arena->parent;
    arena->wanted = bytes;
    free(arena->reserve);
    arena->reserve = NULL;
    assert(arena->guard && "an arena is used without PEAL_ARENA_GUARD");
    longjmp(arena->guard->jump, 1);
}

void peal_arena_limit(peal_arena *arena, int64_t cpu_ns)
{
    arena->until_ns = cpu_ns > 0 ? peal_clock_thread_cpu_ns() + cpu_ns : 0;
    arena->is_late = false;
}

bool peal_arena_is_late(const peal_arena *arena)
{
    return arena->is_late;
}

/* The clock costs more than an allocation. */
static void look_at_clock(peal_arena *arena)
{
    if (++arena->looks < ALLOCATIONS_A_LOOK)
        return;
    arena->looks = 0;
    while (arena->parent)
        arena = arena->parent;
    if (!arena->until_ns || peal_clock_thread_cpu_ns() <= arena->until_ns)
        return;
    arena->until_ns = 0;
    arena->is_late = true;
    peal_arena_fail(arena, 0);
}

size_t peal_arena_wanted(const peal_arena *arena)
{
    return arena->wanted;
}

static block *add_block(peal_arena *arena, size_t bytes)
{
    size_t size = bytes > arena->next_size ? bytes : arena->next_size;
    block *b = calloc(1, sizeof(*b) + size);
    if (!b)
        peal_arena_fail(arena, size);
    b->size = size;
    b->next = arena->blocks;
    arena->blocks = b;
    if (arena->next_size < (1u << 20))
        arena->next_size *= 2;
    return b;
}

static size_t round_up(size_t bytes)
{
    size_t align = _Alignof(max_align_t);
    return bytes > SIZE_MAX / 2 ? bytes : (bytes + align - 1) / align * align;
}

void *peal_arena_allocate(peal_arena *arena, size_t bytes)
{
    size_t rounded = round_up(bytes);
    block *b = arena->blocks;
    look_at_clock(arena);
    if (!b || b->size - b->used < rounded)
        b = add_block(arena, rounded);
    void *memory = (unsigned char *)b->data + b->used;
    b->used += rounded;
    arena->total += rounded;
    return memory;
}

void *peal_arena_array(peal_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX / 2 + 1;
    return peal_arena_allocate(arena, bytes);
}

void *peal_arena_grow(peal_arena *arena, void *item, int *capacity, size_t size)
{
    block *b = arena->blocks;
    size_t old = (size_t)*capacity * size, held = round_up(old);
    if (*capacity > INT_MAX / 2)
        peal_arena_fail(arena, 2 * old);
    *capacity = *capacity ? 2 * *capacity : 2;
    size_t more = round_up((size_t)*capacity * size) - held;
    bool is_last = b && item && (unsigned char *)item + held == (unsigned char *)b->data + b->used;
    if (is_last && b->size - b->used >= more) {
        b->used += more;
        arena->total += more;
        return item;
    }
    void *grown = peal_arena_array(arena, (size_t)*capacity, size);
    if (old)
        memcpy(grown, item, old);
    return grown;
}

char *peal_arena_copy_bytes(peal_arena *arena, const char *text, size_t bytes)
{
    char *copy = peal_arena_allocate(arena, bytes + 1);
    memcpy(copy, text, bytes);
    return copy;
}

char *peal_arena_copy_text(peal_arena *arena, const char *text)
{
    return peal_arena_copy_bytes(arena, text, strlen(text));
}

char *peal_arena_print(peal_arena *arena, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = peal_arena_allocate(arena, (size_t)(length < 0 ? 0 : length) + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

size_t peal_arena_bytes(const peal_arena *arena)
{
    return arena->total;
}
