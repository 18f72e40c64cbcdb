/* Files that two processes save together: who leaves early takes nothing along, and a part that is
 * missing is told. */
#define _GNU_SOURCE
#include "base/saves.h"
#include "tests/backends/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 8, STATEMENT = 1, JOBS = 8, ROUNDS = 400 };

static char folder[] = "/tmp/peal-saves-XXXXXX";
static peal_array field = {.kind = PEAL_ARRAY_FIELD};
static peal_statement save = {.kind = PEAL_STATEMENT_SAVE, .id = STATEMENT};
static const peal_statement *statements[] = {&save};
static peal_graph_data graph;
static _Atomic int abort_word;

/* Two processes with a rank each. The second asks, where they are on two hosts. */
typedef struct pair {
    void *shared;
    peal_saves *side[2];
    peal_target target;
    char path[64];
} pair;

static bool is_cut; /* the line between two hosts */

static bool ask(void *shared, const peal_saves_question *question, peal_saves_answer *answer)
{
    if (!is_cut)
        *answer = peal_saves_tell(shared, peal_saves_bytes(&graph, 2), 2, question);
    return !is_cut;
}

static void open_pair_on(pair *p, bool two_hosts)
{
    p->shared = calloc(1, (size_t)peal_saves_bytes(&graph, 2));
    assert_non_null(p->shared);
    is_cut = false;
    for (int i = 0; i < 2; i++) {
        bool asks = two_hosts && i == 1;
        const peal_saves_access access = {.board = asks ? NULL : p->shared,
                                          .ask = ask,
                                          .user = p->shared,
                                          .over_hosts = two_hosts};
        assert_non_null(p->side[i] = peal_saves_create(&graph, 2, &access, &abort_word));
    }
    snprintf(p->path, sizeof(p->path), "%s/out", folder);
    assert_int_equal(peal_target_open(NULL, p->path, &p->target), 0);
}

static void open_pair(pair *p)
{
    open_pair_on(p, false);
}

static void close_pair(pair *p)
{
    for (int i = 0; i < 2; i++)
        peal_saves_destroy(p->side[i]);
    peal_target_close(&p->target);
    free(p->shared);
    abort_word = 0;
    unlink(p->path);
    assert_int_equal(rmdir(folder), 0); /* nothing is left */
    assert_int_equal(mkdir(folder, 0700), 0);
}

static int create(pair *p, int rank, char name[PEAL_NEW_FILE_NAME])
{
    int file = -1;
    peal_saves_name(p->side[rank], STATEMENT, rank, false, name);
    assert_int_equal(peal_target_create(&p->target, name, &file), 0);
    return file;
}

static int save_part(pair *p, int rank)
{
    char name[PEAL_NEW_FILE_NAME];
    int file = create(p, rank, name);
    assert_int_equal(peal_write_all(file, "part", 4, 4 * rank), 0);
    return peal_saves_arrive(p->side[rank], STATEMENT, rank, false, &p->target, name, file, SIZE);
}

static bool is_there(const pair *p)
{
    struct stat info;
    return stat(p->path, &info) == 0 && info.st_size == SIZE;
}

static void who_leaves_takes_nothing_along(void **state)
{
    pair p;
    (void)state;
    open_pair(&p);
    assert_int_equal(save_part(&p, 0), 0);
    peal_saves_destroy(p.side[0]);
    p.side[0] = NULL;
    assert_int_equal(save_part(&p, 1), 0);
    assert_true(is_there(&p));
    close_pair(&p);
}

static void a_part_that_could_not_be_written(void **state)
{
    char name[PEAL_NEW_FILE_NAME];
    pair p;
    (void)state;
    open_pair(&p);
    peal_saves_fail(p.side[0], &p.target, name, create(&p, 0, name));
    assert_int_equal(save_part(&p, 1), ECANCELED);
    assert_false(is_there(&p));
    close_pair(&p);
}

static void an_aborted_job_leaves_nothing(void **state)
{
    pair p;
    (void)state;
    open_pair(&p);
    assert_int_equal(save_part(&p, 0), 0);
    abort_word = PEAL_STATUS_PEER_LOST;
    peal_saves_destroy(p.side[0]);
    p.side[0] = NULL;
    assert_int_equal(save_part(&p, 1), ECANCELED);
    assert_int_equal(peal_saves_await_cause(p.side[1]), PEAL_STATUS_PEER_LOST);
    assert_false(is_there(&p));
    close_pair(&p);
}

/* Two ranks of one process: what the first has begun is none of the second's until it has added
 * its part. */
static void a_part_of_another_is_not_read(void **state)
{
    char name[PEAL_NEW_FILE_NAME];
    pair p;
    int file, mine, others;
    (void)state;
    open_pair(&p);
    peal_saves_name(p.side[0], STATEMENT, 0, false, name);
    assert_int_equal(peal_target_create(&p.target, name, &file), 0);
    assert_int_equal(peal_write_all(file, "part", 4, 0), 0);
    assert_int_equal(peal_saves_arrive(p.side[0], STATEMENT, 0, false, &p.target, name, file, SIZE),
                     0);
    assert_int_equal(peal_saves_open(p.side[0], 0, p.path, &mine), 0);
    assert_int_equal(peal_saves_open(p.side[0], 1, p.path, &others), 0);
    assert_true(mine >= 0);
    assert_int_equal(others, -1);
    close(mine);
    abort_word = 1;
    close_pair(&p);
}

static void on_two_hosts(void **state)
{
    pair p;
    (void)state;
    open_pair_on(&p, true);
    for (int first = 0; first < 2; first++) { /* either one moves it */
        assert_int_equal(save_part(&p, first), 0);
        assert_int_equal(is_there(&p), first > 0);
        assert_int_equal(save_part(&p, !first), 0);
        assert_true(is_there(&p));
    }
    peal_saves_pace(p.side[1], STATEMENT, 1);
    unlink(p.path);
    close_pair(&p);
}

static void a_line_that_is_cut(void **state)
{
    pair p;
    (void)state;
    open_pair_on(&p, true);
    assert_int_equal(save_part(&p, 0), 0);
    is_cut = true;
    assert_int_equal(save_part(&p, 1), ECANCELED);
    assert_false(is_there(&p));
    abort_word = PEAL_STATUS_PEER_LOST;
    close_pair(&p);
}

/* What another process asks is not believed. */
static void nonsense_is_answered(void **state)
{
    static const peal_saves_question none[] = {{.what = PEAL_SAVES_PART, .save = 1, .value = 1},
                                               {.what = PEAL_SAVES_PART, .save = -1, .value = 1},
                                               {.what = PEAL_SAVES_PART, .rank = 2, .value = 1},
                                               {.what = PEAL_SAVES_MOVED, .rank = -1, .value = 1},
                                               {.what = 0},
                                               {.what = 99}};
    const peal_saves_question look = {.what = PEAL_SAVES_LOOK};
    pair p;
    int64_t bytes = peal_saves_bytes(&graph, 2);
    (void)state;
    open_pair(&p);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_int_equal(peal_saves_tell(p.shared, bytes, 2, &none[i]).failed, 1);
    assert_int_equal(peal_saves_tell(p.shared, bytes, 2, &look).failed, 0);
    assert_int_equal(peal_saves_tell(p.shared, bytes, 2, &look).value, 0);
    close_pair(&p);
}

/* Jobs that know nothing of each other save to one folder, and each removes what it takes for left
 * behind: between creating and locking a file, others may remove it, and its second try must stay.
 */
static void save_among_others(int job)
{
    char path[64], name[PEAL_NEW_FILE_NAME], ours[PEAL_NEW_FILE_NAME / 2];
    peal_target target;
    int file = -1, error = 0;
    snprintf(path, sizeof(path), "%s/out-%d", folder, job);
    snprintf(ours, sizeof(ours), "%s%d-", PEAL_NEW_FILE_PREFIX, job);
    for (int i = 0; i < ROUNDS && !error; i++) {
        snprintf(name, sizeof(name), "%s%d", ours, i);
        error = peal_target_open(NULL, path, &target);
        if (error)
            break;
        peal_target_clean(&target, ours);
        error = peal_target_create(&target, name, &file);
        if (!error)
            error = peal_target_commit(&target, name, file);
        close(file);
        peal_target_close(&target);
    }
    unlink(path);
    _exit(error);
}

static void a_new_file_stays_while_others_clean(void **state)
{
    pid_t child[JOBS];
    int status = 0;
    (void)state;
    for (int i = 0; i < JOBS; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] == 0)
            save_among_others(i);
    }
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_takes_nothing_along),
        cmocka_unit_test(a_part_that_could_not_be_written),
        cmocka_unit_test(an_aborted_job_leaves_nothing),
        cmocka_unit_test(a_part_of_another_is_not_read),
        cmocka_unit_test(on_two_hosts),
        cmocka_unit_test(a_line_that_is_cut),
        cmocka_unit_test(nonsense_is_answered),
        cmocka_unit_test(a_new_file_stays_while_others_clean),
    };
    graph = (peal_graph_data){.arrays = &field, .array_count = 1, .statement_count = 2};
    graph.step.body = (peal_body){.count = 1, .statement = statements};
    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
