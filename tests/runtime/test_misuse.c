/* Every function of the public interface, given what it should not be: NULL, a handle of another
 * type, one that was destroyed, one of the parent process, an address that peal never gave out. */
#define _GNU_SOURCE
#include "tests/runtime/stencil.h"

#include <peal/peal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct handles {
    peal_graph *graph;
    peal_session *session;
    peal_plan *plan;
    peal_exchange *exchange;
} handles;

static handles make(void)
{
    handles h = {0};
    const peal_plan_options options = {.size_bytes = sizeof(options), .mode = "sync", .ranks = 2};
    h.graph = stencil_graph("23", stencil_relax, NULL);
    assert_int_equal(peal_session_create(NULL, &h.session), PEAL_STATUS_OK);
    assert_int_equal(peal_graph_compile(h.graph, h.session, &options, &h.plan), PEAL_STATUS_OK);
    assert_int_equal(peal_exchange_create(h.session, &h.exchange, .axis_count = 1, .hi = {8},
                                          .field = {{.width = {{1, 1}}}}),
                     PEAL_STATUS_OK);
    return h;
}

static void destroy(handles h)
{
    assert_int_equal(peal_exchange_destroy(h.exchange), PEAL_STATUS_OK);
    peal_plan_destroy(h.plan);
    peal_graph_destroy(h.graph);
    peal_session_destroy(h.session);
}

static int failures;

static void expect(bool is_right, const char *what, const char *code)
{
    bool told = strstr(peal_misuse(), code) != NULL;
    if (is_right && told)
        return;
    fprintf(stderr, "%s: %s, peal_misuse: %s, not %s\n", what, is_right ? "right" : "wrong",
            peal_misuse(), code);
    failures++;
}

#define REFUSED(call)      expect((call) == PEAL_STATUS_USAGE, #call, code)
#define GIVES(value, call) expect((call) == (value), #call, code)
#define NOTHING(call)      ((call), expect(true, #call, code))

static void use_graph(peal_graph *g, peal_session *session, const char *code)
{
    const peal_source here = {"here", 1, 1};
    peal_plan *plan = NULL;
    REFUSED(peal_graph_compile(g, session, NULL, &plan));
    REFUSED(peal_graph_check(g, session, 1));
    NOTHING(peal_graph_set_folder(g, "."));
    NOTHING(peal_graph_override(g, "n=1"));
    NOTHING(peal_graph_add_kernels(g, "k.c", here));
    NOTHING(peal_graph_add_require(g, "sync", here));
    NOTHING(peal_graph_set_fma(g, true));
    NOTHING(peal_graph_begin_at(g, PEAL_STEP, here));
    NOTHING(peal_graph_end_at(g, here));
    NOTHING(peal_graph_end_repeat_at(g, here));
    GIVES(-1, peal_graph_add_param(g, .name = "p"));
    GIVES(-1, peal_graph_add_define(g, .name = "p"));
    GIVES(-1, peal_graph_add_copy(g, .copy = {"u"}, .into = {"v"}));
    GIVES(-1, peal_graph_begin_for(g, .for_ = "l", .in = "[0, 2]"));
    peal_graph_end_for(g);
    GIVES(-1, peal_graph_add_field(g, .name = "f"));
    GIVES(-1, peal_graph_add_buffer(g, .name = "b"));
    GIVES(-1, peal_graph_set_topology(g, .dims = "auto"));
    GIVES(-1, peal_graph_set_loop(g, .repeat = "2"));
    GIVES(-1, peal_graph_set_steps(g, 2));
    GIVES(-1, peal_graph_lend(g, "f", &plan));
    GIVES(-1, peal_graph_add_task(g, .name = "t"));
    GIVES(-1, peal_graph_add_exchange(g, .name = "e"));
    GIVES(-1, peal_graph_add_send(g, .name = "s"));
    GIVES(-1, peal_graph_add_recv(g, .name = "r"));
    GIVES(-1, peal_graph_add_reduce(g, .name = "r"));
    GIVES(-1, peal_graph_add_allreduce(g, .name = "a"));
    GIVES(-1, peal_graph_add_swap(g, .name = "s"));
    GIVES(-1, peal_graph_add_set(g, .name = "s"));
    GIVES(-1, peal_graph_add_print(g, .name = "p"));
    GIVES(-1, peal_graph_add_load(g, .name = "l"));
    GIVES(-1, peal_graph_add_save(g, .name = "s"));
    GIVES(-1, peal_graph_begin_repeat(g, .repeat = "2"));
}

static void use_session(peal_session *s, peal_graph *graph, const char *code)
{
    const peal_spec_desc spec = {.size_bytes = sizeof(spec), .text = "peal: 1\n"};
    peal_exchange *exchange = NULL;
    peal_transfer *transfer = NULL;
    peal_graph *read = NULL;
    peal_plan *plan = NULL;
    peal_message message;
    REFUSED(peal_graph_compile(graph, s, NULL, &plan));
    REFUSED(peal_exchange_create(s, &exchange, .axis_count = 1));
    REFUSED(peal_transfer_create(s, &transfer, .to = 1));
    REFUSED(peal_graph_read_spec(s, &spec, &read));
    REFUSED(peal_graph_check(graph, s, 1));
    GIVES(-1, peal_session_process(s));
    GIVES(-1, peal_session_processes(s));
    GIVES(-1, peal_session_local_process(s));
    GIVES(-1, peal_session_local_processes(s));
    GIVES('\0', *peal_session_bootstrap(s));
    NOTHING(peal_session_abort(s, PEAL_STATUS_USAGE, "x"));
    REFUSED(peal_session_status(s));
    NOTHING(peal_session_print_diagnostics(s, stderr, 0));
    GIVES(-1, peal_session_error_count(s));
    GIVES(-1, peal_session_message_count(s));
    REFUSED(peal_session_message(s, 0, &message));
    NOTHING(peal_session_forget_messages(s));
}

static void use_plan(peal_plan *p, const char *code)
{
    peal_plan_statistics statistics = {.seconds = 1};
    peal_plan_array view;
    char text[8] = "x";
    uint64_t digest;
    void *event;
    int first = 1, end = 1, dims[PEAL_RANK_AXES] = {1, 1, 1};
    REFUSED(peal_plan_start(p, 1, NULL));
    REFUSED(peal_plan_wait(p));
    REFUSED(peal_plan_event(p, &event));
    REFUSED(peal_plan_view(p, 0, "a", &view));
    REFUSED(peal_plan_read(p, 0, "a", text, 1));
    REFUSED(peal_plan_write(p, 0, "a", text, 1));
    GIVES(-1, peal_plan_array_count(p));
    GIVES(NULL, peal_plan_array_name(p, 0));
    REFUSED(peal_plan_finish(p));
    REFUSED(peal_plan_verify(p));
    REFUSED(peal_plan_watch(p));
    REFUSED(peal_plan_digest(p, NULL, &digest));
    NOTHING(peal_plan_ranks(p, &first, &end));
    NOTHING(peal_plan_statistics_get(p, &statistics));
    GIVES(0, peal_plan_progress(p));
    GIVES(PEAL_MODE_COUNT, peal_plan_mode(p));
    GIVES('\0', *peal_plan_backend(p));
    GIVES(NULL, peal_plan_choice(p));
    GIVES('\0', *peal_plan_transport(p));
    GIVES(-1, peal_plan_rank_count(p));
    GIVES(-1, peal_plan_workers(p));
    NOTHING(peal_plan_dims(p, dims));
    GIVES(0, peal_plan_hash(p));
    GIVES(-1, peal_plan_steps_left(p));
    NOTHING(peal_plan_describe(p, text, sizeof(text)));
    assert_true(first == 0 && end == 0 && dims[0] == 0 && statistics.seconds == 0 && !*text);
}

static void use_exchange(peal_exchange *e, const char *code)
{
    peal_exchange_array view;
    char text[8] = "x";
    REFUSED(peal_exchange_start(e, 0, NULL));
    REFUSED(peal_exchange_wait(e));
    REFUSED(peal_exchange_view(e, 0, &view));
    NOTHING(peal_exchange_describe(e, text, sizeof(text)));
    assert_true(!*text);
}

/* One that is alive takes two processes: tests/runtime/test_transfer.c. */
static void use_transfer(peal_transfer *t, const char *code)
{
    char text[8] = "x";
    REFUSED(peal_transfer_start(t, NULL));
    REFUSED(peal_transfer_wait(t, NULL));
    REFUSED(peal_transfer_answer(t, NULL));
    NOTHING(peal_transfer_describe(t, text, sizeof(text)));
    assert_true(!*text);
}

static void use_all(handles h, handles good, const char *code)
{
    use_graph(h.graph, good.session, code);
    use_session(h.session, good.graph, code);
    use_plan(h.plan, code);
    use_exchange(h.exchange, code);
}

static void destroy_again(handles h, const char *code)
{
    NOTHING(peal_plan_destroy(h.plan));
    NOTHING(peal_graph_destroy(h.graph));
    NOTHING(peal_session_destroy(h.session));
    REFUSED(peal_exchange_destroy(h.exchange));
}

static void null_handles(void **state)
{
    handles good = make(), null = {0};
    (void)state;
    use_all(null, good, "E336");
    use_transfer(NULL, "E336");
    assert_int_equal(peal_transfer_destroy(NULL), PEAL_STATUS_OK);
    peal_graph_destroy(NULL);
    peal_session_destroy(NULL);
    peal_plan_destroy(NULL);
    assert_int_equal(peal_exchange_destroy(NULL), PEAL_STATUS_OK);
    destroy(good);
    assert_int_equal(failures, 0);
}

static void other_types(void **state)
{
    char memory[64] = "";
    handles good = make();
    const handles turned = {(void *)good.session, (void *)good.plan, (void *)good.exchange,
                            (void *)good.graph};
    const handles strange = {(void *)memory, (void *)memory, (void *)8, (void *)memory};
    (void)state;
    use_all(turned, good, "E336");
    destroy_again(turned, "E336");
    use_transfer((void *)good.exchange, "E336");
    const char *code = "E336";
    REFUSED(peal_transfer_destroy((void *)good.plan));
    use_all(strange, good, "E336");
    destroy_again(strange, "E336");
    assert_int_equal(peal_plan_start(good.plan, 1, NULL), PEAL_STATUS_OK);
    assert_int_equal(peal_plan_wait(good.plan), PEAL_STATUS_OK);
    destroy(good);
    assert_int_equal(failures, 0);
}

static void destroyed(void **state)
{
    handles gone = make(), good = make();
    (void)state;
    destroy(gone);
    use_all(gone, good, "E337");
    destroy_again(gone, "E337");
    for (int i = 0; i < 50; i++) { /* others take no address of theirs */
        handles more = make();
        assert_ptr_not_equal(more.plan, gone.plan);
        destroy(more);
    }
    destroy_again(gone, "E337");
    destroy(good);
    assert_int_equal(failures, 0);
}

/* What is destroyed is told in the session that it was of, too. */
static void late_calls_are_reported(void **state)
{
    handles h = make();
    char *printed = NULL;
    size_t bytes = 0;
    (void)state;
    peal_plan_destroy(h.plan);
    assert_int_equal(peal_plan_wait(h.plan), PEAL_STATUS_USAGE);
    FILE *out = open_memstream(&printed, &bytes);
    peal_session_print_diagnostics(h.session, out, 0);
    fclose(out);
    assert_non_null(strstr(printed, "peal_plan_wait: the plan has been destroyed [E337]"));
    free(printed);
    destroy(h);
}

static void wrong_order(void **state)
{
    (void)state;
    for (int running = 0; running < 2; running++) {
        handles h = make();
        if (running)
            assert_int_equal(peal_plan_start(h.plan, 1, NULL), PEAL_STATUS_OK);
        peal_graph_destroy(h.graph); /* the plan still uses it */
        if (!running) {
            assert_int_equal(peal_plan_start(h.plan, 2, NULL), PEAL_STATUS_OK);
            assert_int_equal(peal_plan_wait(h.plan), PEAL_STATUS_OK);
        }
        peal_session_destroy(h.session);
        assert_non_null(strstr(peal_misuse(), "E339"));
        use_plan(h.plan, "E337");
        use_exchange(h.exchange, "E337");
        destroy_again(h, "E337");
    }
    assert_int_equal(failures, 0);
}

static void forked_children(void **state)
{
    handles h = make();
    int status = -1;
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        failures = 0;
        use_all(h, h, "E338");
        destroy_again(h, "E338");
        _exit(failures ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(peal_plan_start(h.plan, 1, NULL), PEAL_STATUS_OK); /* here all goes on */
    assert_int_equal(peal_plan_wait(h.plan), PEAL_STATUS_OK);
    destroy(h);
}

static void other_nulls(void **state)
{
    const char *code = "E336";
    handles h = make();
    peal_plan_array view;
    (void)state;
    REFUSED(peal_graph_create("x", NULL));
    REFUSED(peal_session_create(NULL, NULL));
    REFUSED(peal_graph_compile(h.graph, h.session, NULL, NULL));
    REFUSED(peal_exchange_create_desc(h.session, NULL, &h.exchange));
    REFUSED(peal_transfer_create_desc(h.session, NULL, NULL));
    REFUSED(peal_plan_view(h.plan, 0, NULL, &view));
    REFUSED(peal_plan_view(h.plan, 0, "a", NULL));
    REFUSED(peal_plan_read(h.plan, 0, "a", NULL, 1));
    REFUSED(peal_plan_write(h.plan, 0, "a", NULL, 1));
    REFUSED(peal_plan_read(h.plan, 0, NULL, &view, 1));
    REFUSED(peal_plan_write(h.plan, 0, NULL, &view, 1));
    REFUSED(peal_graph_read_spec(h.session, NULL, NULL));
    REFUSED(peal_session_message(h.session, 0, NULL));
    REFUSED(peal_plan_event(h.plan, NULL));
    REFUSED(peal_plan_digest(h.plan, NULL, NULL));
    REFUSED(peal_exchange_view(h.exchange, 0, NULL));
    NOTHING(peal_session_print_diagnostics(h.session, NULL, 0));
    NOTHING(peal_plan_statistics_get(h.plan, NULL));
    NOTHING(peal_plan_dims(h.plan, NULL));
    peal_plan_ranks(h.plan, NULL, NULL);
    peal_plan_describe(h.plan, NULL, 0);
    peal_exchange_describe(h.exchange, NULL, 0);
    assert_string_equal(peal_mode_name((peal_mode)99), "");
    assert_string_equal(peal_type_name((peal_type)99), "");
    assert_string_equal(peal_type_c_name((peal_type)-1), "");
    assert_int_equal(peal_type_bytes((peal_type)99), 0);
    assert_non_null(peal_status_name((peal_status)99));
    assert_non_null(peal_version());
    destroy(h);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_handles), cmocka_unit_test(other_types),
        cmocka_unit_test(destroyed),    cmocka_unit_test(late_calls_are_reported),
        cmocka_unit_test(wrong_order),  cmocka_unit_test(forked_children),
        cmocka_unit_test(other_nulls),
    };
    return cmocka_run_group_tests_name("misuse", tests, NULL, NULL);
}
