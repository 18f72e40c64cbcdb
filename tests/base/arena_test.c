/* Arenas: memory is zeroed, arrays keep what they hold while they grow, a cleared arena is as new.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/arena.h"

#include <stdint.h>
#include <string.h>

typedef struct number_list {
    int64_t *item;
    int count, capacity;
} number_list;

static void add(peal_arena *arena, number_list *list, int64_t number)
{
    PEAL_ARENA_ROOM(arena, list->item, list->count, list->capacity);
    for (int i = list->count; i < list->capacity; i++)
        assert_int_equal(list->item[i], 0);
    list->item[list->count++] = number;
}

static void check(const number_list *list, int64_t first)
{
    for (int i = 0; i < list->count; i++)
        assert_int_equal(list->item[i], first + i);
}

static void test_arrays_grow(void **state)
{
    peal_arena *arena = peal_arena_create();
    number_list alone = {0}, left = {0}, right = {0};
    (void)state;
    for (int i = 0; i < 100; i++)
        add(arena, &alone, i);
    assert_true(peal_arena_bytes(arena) <= 2 * 128 * sizeof(int64_t)); /* grew in place */
    for (int i = 0; i < 5000; i++) {
        add(arena, &left, 1000 + i);
        add(arena, &right, 2000 + i);
    }
    check(&alone, 0);
    check(&left, 1000);
    check(&right, 2000);
    peal_arena_destroy(arena);
}

static void test_cleared_memory_is_zero(void **state)
{
    static const size_t sizes[] = {24, 3000, 5000, 70000, 16};
    static const unsigned char zero[70000];
    peal_arena *arena = peal_arena_create();
    (void)state;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            size_t bytes = sizes[(i + (size_t)round) % 5];
            void *memory = peal_arena_allocate(arena, bytes);
            assert_memory_equal(memory, zero, bytes);
            memset(memory, 0x5a, bytes);
        }
        assert_true(peal_arena_bytes(arena) >= 78040);
        peal_arena_clear(arena);
        assert_int_equal(peal_arena_bytes(arena), 0);
    }
    peal_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_grow),
        cmocka_unit_test(test_cleared_memory_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
