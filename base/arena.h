/* An arena: memory of one compile, freed at once. */
#ifndef PEAL_BASE_ARENA_H
#define PEAL_BASE_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct peal_arena peal_arena;

/* NULL when out of memory. */
peal_arena *peal_arena_create(void);
/* One whose failures end where those of `parent` end; it is destroyed with it, if not before. */
peal_arena *peal_arena_create_within(peal_arena *parent);
/* Frees everything that was allocated in it. NULL is fine. */
void peal_arena_destroy(peal_arena *arena);
/* Takes back all that was allocated; what the arena has from the system, it mostly keeps. */
void peal_arena_clear(peal_arena *arena);
/* Zeroed memory, aligned for any type. Never NULL: where an arena cannot grow, its guard goes on.
 * To allocate where there is no guard is a bug: tests/runtime/test_starved.c looks for it. */
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

/* What a function that uses an arena does when there is no memory:
 *
 *     PEAL_ARENA_GUARD(arena, return out_of_memory(...));
 *
 * stands before anything is allocated from it, in a function that holds nothing else that must be
 * freed and whose variables are not written afterwards. It ends with the function, or when the
 * arena is destroyed; of guards within each other the innermost goes on. */
typedef struct peal_arena_guard peal_arena_guard;
struct peal_arena_guard {
    jmp_buf jump;
    peal_arena *arena;
    peal_arena_guard *outer;
};
void peal_arena_guard_begin(peal_arena_guard *guard, peal_arena *arena);
void peal_arena_guard_end(peal_arena_guard *guard);
#define PEAL_ARENA_GUARD(arena, on_failure)                                                        \
    peal_arena_guard guard_ __attribute__((cleanup(peal_arena_guard_end)));                        \
    peal_arena_guard_begin(&guard_, (arena));                                                      \
    if (setjmp(guard_.jump)) {                                                                     \
        on_failure;                                                                                \
    }                                                                                              \
    (void)0
/* Goes where an allocation of so many bytes would that cannot be met. */
void peal_arena_fail(peal_arena *arena, size_t bytes) __attribute__((noreturn));
/* The same where this thread has used so much more processor time, from now on, by the next of some
 * hundred allocations; 0: it may take any time. Of an arena without a parent; those within it
 * count.
 */
void peal_arena_limit(peal_arena *arena, int64_t cpu_ns);
/* After a failure: whether it was this. */
bool peal_arena_is_late(const peal_arena *arena);
/* After a failure: the bytes that could not be had. */
size_t peal_arena_wanted(const peal_arena *arena);

#define PEAL_ARENA_NEW(arena, type) ((type *)peal_arena_allocate((arena), sizeof(type)))
#define PEAL_ARENA_ARRAY(arena, type, count)                                                       \
    ((type *)peal_arena_array((arena), (size_t)(count), sizeof(type)))
/* Makes room in `list` for one item after the first `count`. */
#define PEAL_ARENA_ROOM(arena, list, count, capacity)                                              \
    ((list) = (count) < (capacity)                                                                 \
                  ? (list)                                                                         \
                  : peal_arena_grow((arena), (list), &(capacity), sizeof(*(list))))

#endif
