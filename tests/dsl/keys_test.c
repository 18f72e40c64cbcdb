/* The table of keys against the structs that its rows fill: rows fit their members, and a copy of
 * a descriptor has copies of all of its texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dsl/builder.h"
#include "dsl/keys.h"

#include <string.h>

static bool overlap(peal_member a, peal_member b)
{
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

static void check_row(const peal_context *context, const peal_key *key)
{
    size_t bytes = peal_key_kind_of(key)->bytes;
    assert_int_equal(key->at.bytes > 0, bytes > 0);
    if (bytes == 0)
        return;
    assert_int_equal(key->at.bytes % bytes, 0);
    assert_true(key->at.offset + key->at.bytes <= context->bytes);
    assert_false(overlap(key->at, context->named));
    for (const peal_key *other = context->key; other < key; other++)
        assert_false(other->at.bytes > 0 && overlap(key->at, other->at));
}

static void test_rows_fit(void **state)
{
    (void)state;
    for (int id = 0; id < PEAL_CONTEXT_COUNT; id++) {
        const peal_context *context = peal_context_at((peal_context_id)id);
        for (int i = 0; i < context->key_count; i++) {
            check_row(context, &context->key[i]);
            assert_true(context->key[i].turn >= -1 && context->key[i].turn <= 1);
        }
    }
}

/* What the builder looks up in every statement. */
static void test_statements_share_keys(void **state)
{
    (void)state;
    for (int id = PEAL_CONTEXT_TASK; id < PEAL_CONTEXT_COUNT; id++) {
        const peal_context *context = peal_context_at((peal_context_id)id);
        if (id == PEAL_CONTEXT_FOR)
            continue; /* it is none: copies are made of it */
        assert_non_null(peal_context_find(context, "when"));
        assert_non_null(peal_context_find(context, "name"));
        const peal_key *after = peal_context_find(context, "after");
        assert_non_null(after);
        assert_int_equal(peal_key_room(after), PEAL_GRAPH_AFTER);
        assert_string_equal(context->key[0].name, context->name);
        if (context->twin)
            assert_int_equal(context->bytes, peal_context_at(context->twin)->bytes);
    }
}

enum {
    SOURCE = sizeof(peal_source) / sizeof(void *),
    ACCESS = 1 + SOURCE, /* an access: booleans, source */
    TASK = 2             /* function, user */
           + SOURCE      /* of the box */
           + 3 * PEAL_CALL_VIEWS * ACCESS + PEAL_CALL_PARTIALS * SOURCE +
           4 /* independent; of GPUs: function, threads, enqueue */
};

/* Descriptors, and how many of their words, beside size and source, are no texts. */
static const struct {
    peal_context_id id;
    int words;
} descriptors[] = {{PEAL_CONTEXT_PARAM, 1 /* text */},
                   {PEAL_CONTEXT_TOPOLOGY, 0},
                   {PEAL_CONTEXT_FIELD, 1 /* data */},
                   {PEAL_CONTEXT_BUFFER, SOURCE + 2 /* of the box; keep, data */},
                   {PEAL_CONTEXT_TASK, TASK},
                   {PEAL_CONTEXT_EXCHANGE, PEAL_GRAPH_EXCHANGE *ACCESS},
                   {PEAL_CONTEXT_SEND, 2 * SOURCE},
                   {PEAL_CONTEXT_RECV, 2 * SOURCE},
                   {PEAL_CONTEXT_ALLREDUCE, PEAL_CALL_PARTIALS *SOURCE},
                   {PEAL_CONTEXT_REDUCE, PEAL_CALL_PARTIALS *SOURCE},
                   {PEAL_CONTEXT_SWAP, 0},
                   {PEAL_CONTEXT_SET, 0},
                   {PEAL_CONTEXT_PRINT, PEAL_GRAPH_PRINT *SOURCE},
                   {PEAL_CONTEXT_LOAD, 0},
                   {PEAL_CONTEXT_SAVE, 0},
                   {PEAL_CONTEXT_REPEAT, 0},
                   {PEAL_CONTEXT_COPY, 0},
                   {PEAL_CONTEXT_FOR, 1 /* down */}};

/* The words of a copy that still are the caller's, all of which point to one text of his. */
static int count_shared_words(peal_graph *graph, peal_context_id id)
{
    static const char text[] = "n + 1";
    const char *word[sizeof(peal_task_desc) / sizeof(char *)];
    const size_t count = peal_context_at(id)->bytes / sizeof(word[0]);
    const size_t first = offsetof(peal_swap_desc, swap) / sizeof(word[0]);
    const peal_source source = {NULL, 1, 1};
    int shared = 0;
    assert_true(count <= sizeof(word) / sizeof(word[0]));
    for (size_t i = 0; i < count; i++)
        word[i] = text;
    memcpy(word, &(size_t){count * sizeof(word[0])}, sizeof(size_t));
    memcpy((char *)word + offsetof(peal_swap_desc, source), &source, sizeof(source));
    const char *const *copy = peal_desc_copy(graph, id, word);
    assert_non_null(copy);
    for (size_t i = first; i < count; i++) {
        shared += copy[i] == text;
        assert_string_equal(copy[i], text);
    }
    return shared;
}

static void test_texts_are_copied(void **state)
{
    (void)state;
    peal_graph *graph = NULL;
    assert_int_equal(peal_graph_create("g", &graph), PEAL_STATUS_OK);
    for (size_t i = 0; i < sizeof(descriptors) / sizeof(descriptors[0]); i++)
        assert_int_equal(count_shared_words(graph, descriptors[i].id), descriptors[i].words);
    peal_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_fit),
        cmocka_unit_test(test_statements_share_keys),
        cmocka_unit_test(test_texts_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
