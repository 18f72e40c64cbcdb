/* An arena: memory of one compile, freed at once. */
#ifndef PEAL_BASE_ARENA_H
#define PEAL_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct peal_arena peal_arena;

/* NULL when out of memory. */
peal_arena *peal_arena_create(void);
/* Frees everything that was allocated in it. NULL is fine. */
void peal_arena_destroy(peal_arena *arena);
/* Takes back all that was allocated; what the arena has from the system, it mostly keeps. */
void peal_arena_clear(peal_arena *arena);
/* Zeroed memory, aligned for any type. Never NULL: an arena that cannot grow prints the size and
 * calls abort(). Sizes that come from input are checked before they get here. */
void *peal_arena_allocate(peal_arena *arena, size_t bytes);
/* count * size bytes, the product checked. */
void *peal_arena_array(peal_arena *arena, size_t count, size_t size);
/* A growing array: where its items lie once there is room for twice as many (old room is left
 * behind, unless the array was the last to grow). New items are zeroed. */
void *peal_arena_grow(peal_arena *arena, void *item, int *capacity, size_t size);
char *peal_arena_copy_text(peal_arena *arena, const char *text);
char *peal_arena_copy_bytes(peal_arena *arena, const char *text, size_t bytes); /* adds a NUL */
char *peal_arena_print(peal_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Bytes handed out so far: what a compile costs. */
size_t peal_arena_bytes(const peal_arena *arena);

#define PEAL_ARENA_NEW(arena, type) ((type *)peal_arena_allocate((arena), sizeof(type)))
#define PEAL_ARENA_ARRAY(arena, type, count)                                                       \
    ((type *)peal_arena_array((arena), (size_t)(count), sizeof(type)))
/* Makes room in `list` for one item after the first `count`. */
#define PEAL_ARENA_ROOM(arena, list, count, capacity)                                              \
    ((list) = (count) < (capacity)                                                                 \
                  ? (list)                                                                         \
                  : peal_arena_grow((arena), (list), &(capacity), sizeof(*(list))))

#endif
