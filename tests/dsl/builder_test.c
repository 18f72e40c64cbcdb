/* Graphs made in C: they equal those read from YAML, hold what was said, and their hash tells
 * meaning from spelling. SPECS is the folder of the specs that tests share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dsl/dsl.h"
#include "peal_config.h"

#include <stdio.h>
#include <string.h>

static peal_graph *new_jacobi(void)
{
    peal_graph *g = NULL;
    assert_int_equal(peal_graph_create("jacobi2d", &g), PEAL_STATUS_OK);
    assert_int_equal(peal_graph_add_param(g, .name = "nx", .value = "4096"), 0);
    assert_int_equal(peal_graph_add_param(g, .name = "ny", .value = "4096"), 1);
    peal_graph_add_param(g, .name = "steps", .value = "1000");
    peal_graph_add_param(g, .name = "report", .value = "100");
    peal_graph_set_topology(g, .dims = "[1, auto]", .periodic = "[false, true]");
    peal_graph_add_kernels(g, "jacobi2d.c", PEAL_HERE);
    assert_int_equal(peal_graph_add_field(g, .name = "a", .type = "f32", .size = "[nx, ny - 2]",
                                          .halo = "[0, 1]"),
                     0);
    assert_int_equal(peal_graph_add_field(g, .name = "an", .like = "a"), 1);
    assert_int_equal(peal_graph_add_buffer(g, .name = "d2", .type = "f64"), 2);
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_add_task(g, .name = "walls", .box = {.name = "a", .rim = "[1, 0]"},
                        .write = {{.name = "a"}, {.name = "an"}}, .args = {"ny"});
    peal_graph_add_exchange(g, .exchange = {{.name = "a"}});
    peal_graph_end(g);
    peal_graph_set_loop(g, .repeat = "steps");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "relax", .box = {.name = "a", .grow = "[-1, 0]"},
                        .read = {{.name = "a", .star = "1"}}, .write = {{.name = "an"}},
                        .reduce = {{.name = "d2", .combine = "sum"}});
    peal_graph_add_exchange(g, .exchange = {{.name = "an"}});
    peal_graph_add_allreduce(g, .reduce = {{.name = "d2", .combine = "sum"}},
                             .when = "step % report == 0");
    peal_graph_add_print(g, .print = {{"norm", "sqrt(d2)", {0}}}, .when = "step % report == 0");
    peal_graph_add_swap(g, .swap = {"a", "an"});
    peal_graph_end(g);
    return g;
}

static const peal_graph_data *resolve(peal_graph *graph)
{
    const peal_graph_data *data = NULL;
    peal_diagnostics *list = peal_diagnostics_create();
    peal_status status = peal_graph_resolve(graph, list, &data);
    peal_diagnostics_print(list, stderr, 0);
    assert_int_equal(status, PEAL_STATUS_OK);
    assert_int_equal(peal_diagnostics_count(list), 0);
    peal_graph_report_to(graph, NULL);
    peal_diagnostics_destroy(list);
    return data;
}

static void test_equals_yaml(void **state)
{
    (void)state;
#if PEAL_HAVE_YAML
    peal_graph *made = new_jacobi(), *read = NULL;
    peal_diagnostics *list = peal_diagnostics_create();
    assert_int_equal(peal_graph_read(SPECS "/jacobi2d.yaml", NULL, 0, list, &read), PEAL_STATUS_OK);
    const peal_graph_data *a = resolve(made), *b = resolve(read);
    assert_true(a->hash == b->hash);
    assert_string_equal(b->name, "jacobi2d");
    assert_string_equal(b->folder, SPECS);
    assert_string_equal(b->step.body.statement[0]->source.file, SPECS "/jacobi2d.yaml");
    assert_int_equal(b->step.body.statement[0]->source.line, 15);
    peal_graph_destroy(made);
    peal_graph_destroy(read);
    peal_diagnostics_destroy(list);
#else
    skip();
#endif
}

static void test_contents(void **state)
{
    (void)state;
    peal_graph *g = new_jacobi();
    const peal_graph_data *data = resolve(g);
    assert_int_equal(data->param_count, 4);
    assert_int_equal(data->array_count, 3);
    assert_int_equal(data->statement_count, 7);
    assert_int_equal(data->topology.axis_count, 2);
    assert_non_null(data->topology.dims[0]);
    assert_null(data->topology.dims[1]);
    assert_false(data->topology.periodic[0]);
    assert_true(data->topology.periodic[1]);
    const peal_array *an = &data->arrays[1];
    assert_int_equal(an->type, PEAL_F32);
    assert_int_equal(an->axis_count, 2);
    assert_string_equal(an->size[1]->text, "ny - 2");
    assert_true(an->halo.given);
    assert_string_equal(an->halo.low[1]->text, "1");
    assert_string_equal(an->halo.high[0]->text, "0");
    const peal_statement *relax = data->step.body.statement[0];
    assert_string_equal(relax->name, "relax");
    assert_int_equal(relax->id, 2);
    assert_int_equal(relax->u.task.box.kind, PEAL_POINTS_GROW);
    assert_int_equal(relax->u.task.box.array, 0);
    assert_int_equal(relax->u.task.access_count, 2);
    assert_int_equal(relax->u.task.access[0].footprint, PEAL_FOOTPRINT_STAR);
    assert_int_equal(relax->u.task.access[1].mode, PEAL_WRITE_ACCESS);
    assert_int_equal(relax->u.task.access[1].footprint, PEAL_FOOTPRINT_TILE);
    assert_int_equal(relax->u.task.reduction[0].array, 2);
    assert_string_equal(data->step.body.statement[1]->name, "exchange an");
    assert_string_equal(data->step.body.statement[4]->name, "swap a an");
    assert_string_equal(data->step.counter, "step");
    assert_string_equal(data->step.repeat->text, "steps");
    assert_int_equal(relax->source.column, 0);
    assert_string_equal(relax->source.file, __FILE__);
    peal_graph_destroy(g);
}

static void test_overrides(void **state)
{
    (void)state;
    peal_graph *g = new_jacobi();
    peal_graph_override(g, "nx=16");
    peal_graph_override(g, "nx=32");
    const peal_graph_data *data = resolve(g);
    assert_int_equal(data->params[0].value.u.integer, 32);
    assert_int_equal(data->params[1].value.u.integer, 4096);
    peal_graph_destroy(g);
}

/* One buffer and one set, varied. */
static uint64_t hash_of(const char *name, const char *value, const char *override)
{
    peal_graph *g = NULL;
    assert_int_equal(peal_graph_create(name, &g), PEAL_STATUS_OK);
    peal_graph_add_param(g, .name = "n", .value = "1");
    peal_graph_add_buffer(g, .name = "s");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_set(g, .set = "s", .value = value);
    peal_graph_end(g);
    if (override)
        peal_graph_override(g, override);
    uint64_t hash = resolve(g)->hash;
    peal_graph_destroy(g);
    return hash;
}

static void test_hash(void **state)
{
    (void)state;
    uint64_t hash = hash_of("a", "n + 1", NULL);
    assert_true(hash == hash_of("other", "(n+1)", NULL));
    assert_true(hash == hash_of("a", "n + 1", "n=1"));
    assert_true(hash != hash_of("a", "n + 1", "n=2"));
    assert_true(hash != hash_of("a", "n + 2", NULL));
    assert_true(hash != hash_of("a", "1 + n", NULL));
    assert_true(hash != hash_of("a", "n + 1.0", NULL));
    assert_true(hash != hash_of("a", "n - 1", NULL));
}

static void test_short_descriptor(void **state)
{
    (void)state;
    peal_graph *g = NULL;
    peal_buffer_desc desc = {.source = PEAL_HERE, .name = "b", .keep = true};
    assert_int_equal(peal_graph_create("old", &g), PEAL_STATUS_OK);
    assert_int_equal(peal_graph_add_buffer_desc(g, &desc), -1); /* no size */
    desc.size_bytes = offsetof(peal_buffer_desc, keep);         /* a caller that knows no keep */
    assert_int_equal(peal_graph_add_buffer_desc(g, &desc), 0);
    assert_int_equal(peal_graph_add_buffer_desc(g, NULL), -1);
    assert_int_equal(peal_graph_add_buffer_desc(NULL, &desc), -1);
    assert_false(resolve(g)->arrays[0].keep);
    peal_graph_destroy(g);
    peal_graph_destroy(NULL);
}

static void copy_field(peal_graph *g)
{
    char name[] = "u", size[] = "[n, 4]";
    peal_graph_add_field(g, .name = name, .size = size, .stagger = "[1]", .align = "2");
    memset(name, 'x', sizeof(name) - 1); /* texts are copied by the call */
    memset(size, 'x', sizeof(size) - 1);
}

static void test_texts_and_memory(void **state)
{
    (void)state;
    static double memory[64];
    peal_graph *g = NULL;
    assert_int_equal(peal_graph_create(NULL, &g), PEAL_STATUS_OK);
    copy_field(g);
    peal_graph_add_field(g, .name = "v", .like = "u", .align = "4", .data = memory);
    peal_graph_add_buffer(g, .name = "b", .box = {.name = "u", .border = "[0, 1]"});
    peal_graph_add_buffer(g, .name = "c", .box = {.box = "[[0, 3], [1, 2], [0, 9]]"});
    peal_graph_add_param(g, .name = "n", .value = "8");
    peal_graph_add_param(g, .name = "word", .value = "8", .text = true);
    const peal_graph_data *data = resolve(g);
    assert_string_equal(data->name, "graph");
    assert_string_equal(data->arrays[0].name, "u");
    assert_string_equal(data->arrays[0].size[0]->text, "n");
    assert_null(data->arrays[0].stagger[1]);
    assert_string_equal(data->arrays[0].align[1]->text, "2");
    assert_string_equal(data->arrays[1].align[0]->text, "4");
    assert_string_equal(data->arrays[1].stagger[0]->text, "1");
    assert_null(data->arrays[0].data);
    assert_ptr_equal(data->arrays[1].data, memory);
    assert_int_equal(data->arrays[2].points.kind, PEAL_POINTS_BORDER);
    assert_int_equal(data->arrays[2].axis_count, 2);
    assert_int_equal(data->arrays[3].axis_count, 3);
    assert_int_equal(data->params[0].value.kind, PEAL_INTEGER);
    assert_int_equal(data->params[1].value.kind, PEAL_TEXT);
    peal_graph_destroy(g);
}

/* Families and copies: the same graph as one that is written out. */
static void test_copies(void **state)
{
    (void)state;
    peal_graph *g = NULL;
    assert_int_equal(peal_graph_create("levels", &g), PEAL_STATUS_OK);
    peal_graph_add_param(g, .name = "n", .value = "16");
    assert_int_equal(peal_graph_add_define(g, .name = "last", .value = "log2(n) - 2"), 0);
    peal_graph_add_kernels(g, "k.c", PEAL_HERE);
    peal_graph_add_field(g, .name = "u", .for_ = "l", .in = "[0, last + 1]", .size = "[n, n]",
                         .halo = "l + 1", .coarsen = "2 ** l");
    peal_graph_add_field(g, .name = "v", .like = "u(last)", .halo = "0");
    peal_graph_add_buffer(g, .name = "s", .for_ = "k", .in = "[3, 5]", .count = "1");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_begin_for(g, .for_ = "l", .in = "[0, last + 1]", .down = true);
    peal_graph_add_exchange(g, .exchange = {{.name = "u(l)"}}, .when = "l < last");
    peal_graph_add_task(g, .name = "relax", .box = {.name = "u(l)"}, .update = {{.name = "u(l)"}},
                        .reduce = {{.name = "s(3)", .combine = "sum"}}, .args = {"1.0 / l"},
                        .when = "l > 0");
    peal_graph_end_for(g);
    peal_graph_add_set(g, .set = "s(4)", .value = "s(3) + 1", .after = {"relax(last)", "relax(1)"});
    peal_graph_end(g);
    const peal_graph_data *data = resolve(g);
    static const char *const arrays[] = {"u(0)", "u(1)", "u(2)", "v", "s(3)", "s(4)"};
    static const char *const statements[] = {"relax(2)", "exchange u(1)", "relax(1)",
                                             "exchange u(0)"};
    assert_int_equal(data->array_count, 6);
    for (int i = 0; i < 6; i++)
        assert_string_equal(data->arrays[i].name, arrays[i]);
    assert_int_equal(data->step.body.count, 5);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(data->step.body.statement[i]->name, statements[i]);
        assert_null(data->step.body.statement[i]->when); /* known to hold */
    }
    const peal_statement *set = data->step.body.statement[4];
    assert_string_equal(data->step.body.statement[0]->u.task.kernel, "relax");
    assert_int_equal(data->step.body.statement[2]->u.task.access[0].array, 1);
    assert_int_equal(set->u.set.array, 5);
    assert_int_equal(set->after_count, 2);
    assert_int_equal(set->after[0], 0);
    assert_int_equal(set->after[1], 2);
    peal_graph_destroy(g);
}

static void relax(const peal_call *call)
{
    (void)call;
}

static void test_statements(void **state)
{
    (void)state;
    int user = 0;
    peal_graph *g = NULL;
    assert_int_equal(peal_graph_create("all", &g), PEAL_STATUS_OK);
    peal_graph_add_field(g, .name = "u", .size = "[8, 8]", .halo = "1");
    peal_graph_add_buffer(g, .name = "b", .count = "4 * ranks");
    peal_graph_add_buffer(g, .name = "s");
    peal_graph_add_buffer(g, .name = "peers", .type = "i32", .values = "[0, 1]");
    peal_graph_add_buffer(g, .name = "used", .type = "i32", .values = "[0, 1]");
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_begin_repeat(g, .repeat = "2", .as = "j");
    peal_graph_add_set(g, .set = "s", .value = "j");
    peal_graph_end_repeat(g);
    peal_graph_end(g);
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "t", .function = relax, .user = &user, .tile = "[4]",
                        .box = {.name = "u", .part = "interior"}, .update = {{.name = "u"}},
                        .read = {{.name = "b", .per_tile = "2"}}, .independent = true);
    peal_graph_add_task(g, .name = "once", .function = relax, .write = {{.name = "used"}},
                        .tile = "whole", .after = {"t"}, .label = "again");
    peal_graph_add_send(g, .send = {.name = "b"}, .to = "peers", .offsets = "4", .tag = "7");
    peal_graph_add_recv(g, .recv = {.name = "b", .box = "[[0, 2]]"}, .from = "(rank + 1) % ranks");
    peal_graph_add_send(g, .send = {.name = "u", .border = "[-1, 0]"}, .to = "[-1, 0]");
    peal_graph_add_recv(g, .recv = {.name = "u", .halo = "[1]"}, .along = "y", .after = {"again"});
    peal_graph_add_reduce(g, .reduce = {{.name = "b", .combine = "max"}}, .to = "0", .along = "x");
    peal_graph_begin_repeat(g, .repeat = "3", .as = "k", .until = "k > 1 and s < 1", .every = "2",
                            .lag = "1");
    peal_graph_add_exchange(g, .exchange = {{.name = "u", .star = "k"}}, .when = "k != 1");
    peal_graph_end_repeat(g);
    peal_graph_end(g);
    peal_graph_begin(g, PEAL_FINISH);
    peal_graph_add_save(g, .save = "u", .file = "u-{step}.npy");
    peal_graph_add_load(g, .load = "b", .file = "b-{rank}.npy");
    peal_graph_end(g);
    const peal_graph_data *data = resolve(g);
    assert_int_equal(data->statement_count, 13);
    const peal_statement *const *s = data->step.body.statement;
    assert_int_equal(data->setup.statement[0]->u.loop.depth, 1);
    assert_string_equal(data->setup.statement[0]->u.loop.counter, "j");
    assert_ptr_equal(s[0]->u.task.user, &user);
    assert_null(s[0]->u.task.kernel);
    assert_int_equal(s[0]->u.task.box.part, PEAL_PART_INTERIOR);
    assert_non_null(s[0]->u.task.tile[0]);
    assert_null(s[0]->u.task.tile[1]);
    assert_int_equal(s[0]->u.task.access[0].footprint, PEAL_FOOTPRINT_PER_TILE);
    assert_true(s[1]->u.task.tile_whole);
    assert_int_equal(s[1]->u.task.access[0].footprint, PEAL_FOOTPRINT_WHOLE);
    assert_int_equal(s[1]->after_count, 1);
    assert_int_equal(s[1]->after[0], s[0]->id);
    assert_int_equal(s[2]->u.message.peers.kind, PEAL_PEER_LIST);
    assert_int_equal(s[2]->u.message.peers.list, 3);
    assert_int_equal(s[2]->u.message.offsets, -1);
    assert_string_equal(s[2]->u.message.offset->text, "4");
    assert_int_equal(s[3]->u.message.peers.kind, PEAL_PEER_RANK);
    assert_int_equal(s[3]->u.message.points.kind, PEAL_POINTS_RANGES);
    assert_int_equal(s[4]->u.message.peers.kind, PEAL_PEER_DIRECTION);
    assert_int_equal(s[5]->u.message.peers.kind, PEAL_PEER_ALONG);
    assert_int_equal(s[5]->u.message.peers.axis, 1);
    assert_int_equal(s[5]->after[0], s[1]->id);
    assert_int_equal(s[6]->u.reduce.along, 0);
    assert_int_equal(s[7]->u.loop.depth, 1);
    assert_int_equal(s[7]->u.loop.body.statement[0]->id, s[7]->id + 1);
    assert_true(data->arrays[3].is_constant);
    assert_false(data->arrays[4].is_constant); /* a task writes it */
    peal_graph_destroy(g);
}

static void test_ghosts(void **state)
{
    peal_graph *g = NULL;
    (void)state;
    assert_int_equal(peal_graph_create("ghosts", &g), PEAL_STATUS_OK);
    peal_graph_add_kernels(g, "k.c", PEAL_HERE);
    peal_graph_add_field(g, .name = "u", .size = "[8, 8]", .halo = "1");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "wall", .box = {.name = "u", .ghost = "[0, -1]"},
                        .read = {{.name = "u", .inside = true}}, .write = {{.name = "u"}});
    peal_graph_end(g);
    const peal_task_statement *task = &resolve(g)->step.body.statement[0]->u.task;
    assert_int_equal(task->box.kind, PEAL_POINTS_GHOST);
    assert_int_equal(task->access_count, 2);
    assert_int_equal(task->access[0].footprint, PEAL_FOOTPRINT_INSIDE);
    assert_int_equal(task->access[1].footprint, PEAL_FOOTPRINT_TILE);
    assert_int_equal(task->access[1].array, task->access[0].array);
    peal_graph_destroy(g);
}

/* A norm that is known in every 10th step only, and looked at just then. */
/* Counts: what the run reads, what is written, and that they are part of the meaning. */
static uint64_t hash_of_counted(const char *count, const char *max, const char *sent)
{
    peal_graph *g = NULL;
    assert_int_equal(peal_graph_create("counted", &g), PEAL_STATUS_OK);
    peal_graph_add_kernels(g, "k.c", PEAL_HERE);
    peal_graph_add_buffer(g, .name = "b", .count = "8");
    peal_graph_add_buffer(g, .name = "n", .type = "i32", .values = "[3]");
    peal_graph_add_buffer(g, .name = "m", .type = "i32");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "t", .box = {.count = count, .max = max},
                        .update = {{.name = "b", .tile = true}});
    peal_graph_add_send(g, .send = {.name = "b"}, .to = "rank", .count = sent);
    peal_graph_add_recv(g, .recv = {.name = "b"}, .from = "rank", .count = sent ? "m" : NULL);
    peal_graph_end(g);
    const peal_graph_data *data = resolve(g);
    const peal_points *box = &data->step.body.statement[0]->u.task.box;
    assert_int_equal(box->kind, PEAL_POINTS_COUNT);
    assert_string_equal(box->count->text, count);
    assert_string_equal(box->maximum->text, max);
    assert_int_equal(data->step.body.statement[1]->u.message.count, sent ? 1 : -1);
    assert_int_equal(data->step.body.statement[2]->u.message.count, sent ? 2 : -1);
    assert_true(data->arrays[1].is_constant); /* sent from, not received into */
    uint64_t hash = data->hash;
    peal_graph_destroy(g);
    return hash;
}

static void test_counts(void **state)
{
    (void)state;
    uint64_t hash = hash_of_counted("m + 1", "8", "n");
    assert_true(hash == hash_of_counted("m + 1", "8", "n"));
    assert_true(hash != hash_of_counted("m", "8", "n"));
    assert_true(hash != hash_of_counted("m + 1", "7", "n"));
    assert_true(hash != hash_of_counted("m + 1", "8", NULL));
}

static void test_until_and_when(void **state)
{
    (void)state;
    static const char *const reduce_when[] = {NULL, "step % 10 == 9"};
    static const char *const every[] = {"10", NULL};
    for (int i = 0; i < 2; i++) {
        peal_graph *g = NULL;
        assert_int_equal(peal_graph_create("norm", &g), PEAL_STATUS_OK);
        peal_graph_add_field(g, .name = "u", .size = "8");
        peal_graph_add_buffer(g, .name = "d2");
        peal_graph_set_loop(g, .repeat = "100", .until = "d2 < 0.5", .every = every[i]);
        peal_graph_begin(g, PEAL_STEP);
        peal_graph_add_task(g, .name = "t", .function = relax, .box = {.name = "u"},
                            .read = {{.name = "u"}}, .reduce = {{.name = "d2", .combine = "sum"}},
                            .when = reduce_when[i]);
        peal_graph_add_allreduce(g, .reduce = {{.name = "d2", .combine = "sum"}},
                                 .when = "step % 10 == 9");
        peal_graph_end(g);
        resolve(g);
        peal_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_yaml),      cmocka_unit_test(test_contents),
        cmocka_unit_test(test_overrides),        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_short_descriptor), cmocka_unit_test(test_texts_and_memory),
        cmocka_unit_test(test_copies),           cmocka_unit_test(test_statements),
        cmocka_unit_test(test_counts),           cmocka_unit_test(test_until_and_when),
        cmocka_unit_test(test_ghosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
