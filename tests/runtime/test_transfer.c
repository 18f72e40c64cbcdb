/* A message alone, from one process to another: sizes and addresses of all kinds, how far ahead
 * who sends may be, processes that take no part, and all that can be said wrongly. On one host, and
 * as if each process were on a host of its own (by tcp, or as PEAL_TEST_TRANSPORT says, and nothing
 * else); with PEAL_TEST_BACKEND=cuda in a GPU's memory. */
#define _GNU_SOURCE
#include "tests/runtime/device_memory.h"
#include "tests/runtime/job.h"

#include <peal/peal.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static bool on_device;
static int rounds = 40;
static const char *transport; /* of all that follows */
static const char *between = "tcp";
static bool shifts; /* process 1's memory begins 4 bytes further on */

static peal_transfer_desc desc_of(int from, int to, void *data, int64_t bytes)
{
    return (peal_transfer_desc){.size_bytes = sizeof(peal_transfer_desc),
                                .source = PEAL_HERE,
                                .from = from,
                                .to = to,
                                .data = data,
                                .bytes = bytes,
                                .transport = transport};
}

static unsigned char value_of(int round, int64_t i)
{
    return (unsigned char)(round * 31 + i * 7 + i / 251);
}

static void *take(size_t bytes)
{
    return on_device ? device_memory_take(bytes) : malloc(bytes);
}

static void give(void *memory)
{
    if (on_device)
        device_memory_give(memory);
    else
        free(memory);
}

static bool fill(void *data, unsigned char *copy, int64_t bytes, int round)
{
    for (int64_t i = 0; i < bytes; i++)
        copy[i] = value_of(round, i);
    if (on_device)
        return device_memory_write_beside(data, copy, (size_t)bytes);
    memcpy(data, copy, (size_t)bytes);
    return true;
}

static bool has(const void *data, unsigned char *copy, int64_t bytes, int round)
{
    bool good = !on_device || device_memory_read(copy, data, (size_t)bytes);
    if (!on_device)
        memcpy(copy, data, (size_t)bytes);
    for (int64_t i = 0; i < bytes && good; i++)
        good = copy[i] == value_of(round, i);
    return good;
}

/* ---- there and back ---- */

/* Process 0 sends to 1, which sends on to the last, which sends to 0: all of them different
 * transfers of the same memory. Others take no part. */
static void go_round(peal_session *session, int process, int processes, int64_t bytes)
{
    const int stop[3] = {0, 1, processes - 1}, legs = processes > 2 ? 3 : 2;
    peal_transfer *leg[3] = {NULL, NULL, NULL};
    char line[300];
    size_t shift = shifts && process == 1 ? 4 : 0;
    unsigned char *whole = take((size_t)bytes + 8), *data = whole + shift;
    unsigned char *copy = malloc((size_t)bytes + 1);
    TEAM_CHECK(whole && copy);
    for (int i = 0; i < legs; i++) {
        peal_transfer_desc desc = desc_of(stop[i], stop[(i + 1) % legs], data, bytes);
        bool in_it = process == desc.from || process == desc.to;
        desc.data = in_it ? data : NULL;
        desc.backend = in_it && on_device ? "cuda" : NULL;
        JOB_OK(session, peal_transfer_create_desc(session, &desc, &leg[i]));
    }
    peal_transfer_describe(leg[0], line, sizeof(line));
    TEAM_CHECK(strstr(line, "from process 0 to 1 of "));
    bool rings = on_device && transport && !strcmp(transport, "mlx5") && process < 2;
    TEAM_CHECK(!rings || strstr(line, "by mlx5 (rung for by streams)"));
    for (int round = 0; round < rounds; round++) {
        if (process == 0)
            TEAM_CHECK(fill(data, copy, bytes, round));
        for (int i = 0; i < legs; i++) {
            if (process == stop[i]) {
                JOB_OK(session, peal_transfer_start(leg[i], NULL));
                if (on_device) /* in the stream's order, behind the start */
                    TEAM_CHECK(device_memory_write(data, copy + 1, (size_t)bytes));
                else /* it has been taken */
                    memset(data, 0xff, (size_t)bytes);
            }
            if (process != stop[(i + 1) % legs])
                continue;
            JOB_OK(session, peal_transfer_wait(leg[i], NULL));
            TEAM_CHECK(has(data, copy, bytes, round));
        }
    }
    for (int i = 0; i < legs; i++)
        JOB_OK(session, peal_transfer_destroy(leg[i]));
    give(whole);
    free(copy);
}

static int member_goes_round(test_team *team, int process)
{
    static const int64_t sizes[] = {12, 4097, 100000, 1, 8, 1000};
    const size_t count = on_device ? 2 : sizeof(sizes) / sizeof(sizes[0]);
    peal_session *session;
    TEAM_CHECK(!on_device || device_memory_open(process, team->processes));
    TEAM_CHECK(!job_open(team, process, 0, &session));
    for (size_t i = 0; i < count; i++)
        for (int s = 0; s < 2; s++) {
            shifts = s == 1;
            go_round(session, process, team->processes, sizes[i]);
        }
    peal_session_destroy(session);
    return 0;
}

static void arrives_and_comes_back(void **state)
{
    (void)state;
    job_run_all(2, member_goes_round);
    job_run_all(4, member_goes_round);
}

static void between_hosts(void **state)
{
    (void)state;
    transport = between;
    job_run_all(3, member_goes_round);
    transport = NULL;
}

/* ---- on demand ---- */

typedef struct server {
    peal_session *session;
    peal_transfer *transfer;
    void *stream;
} server;

/* On a GPU they are put onto the stream, ahead of all that happens next. */
static void *answer_all(void *user)
{
    const server *s = user;
    for (int round = 0; round < rounds; round++)
        JOB_OK(s->session, peal_transfer_answer(s->transfer, s->stream));
    return NULL;
}

static void await(test_team *team, int process, int value, const server *s)
{
    while (atomic_load(&team->board->flag[process]) < value) {
        if (s->stream)
            device_memory_look(s->stream);
        sched_yield();
    }
}

/* Who asks has what is at data when it asks, though the answers were given long before. */
static int member_answers(test_team *team, int process)
{
    enum { BYTES = 1000 };
    server s = {NULL, NULL, NULL};
    pthread_t thread;
    TEAM_CHECK(!on_device || device_memory_open(process, team->processes));
    TEAM_CHECK(!job_open(team, process, 0, &s.session));
    unsigned char *data = take(BYTES), copy[BYTES];
    s.stream = on_device ? device_memory_stream() : NULL;
    peal_transfer_desc desc = desc_of(0, 1, data, BYTES);
    desc.on_demand = true;
    JOB_OK(s.session, peal_transfer_create_desc(s.session, &desc, &s.transfer));
    TEAM_CHECK(process < 2 || peal_transfer_start(s.transfer, s.stream) == PEAL_STATUS_USAGE);
    if (process == 0 && on_device)
        answer_all(&s);
    else if (process == 0)
        TEAM_CHECK(!pthread_create(&thread, NULL, answer_all, &s));
    for (int round = 0; round < rounds; round++) {
        if (process == 0) {
            await(team, 1, round, &s);
            usleep(500); /* an answer that does not wait is given by now */
            TEAM_CHECK(fill(data, copy, BYTES, round));
            atomic_store(&team->board->flag[0], round + 1);
        } else if (process == 1) {
            await(team, 0, round + 1, &s);
            JOB_OK(s.session, peal_transfer_start(s.transfer, s.stream));
            if (on_device && round == 0) {
                TEAM_CHECK(peal_transfer_wait(s.transfer, NULL) == PEAL_STATUS_USAGE);
                TEAM_CHECK(job_reported(s.session, PEAL_E_CALL_OUT_OF_ORDER, "another one than"));
            }
            JOB_OK(s.session, peal_transfer_wait(s.transfer, s.stream));
            TEAM_CHECK(has(data, copy, BYTES, round));
            atomic_store(&team->board->flag[1], round + 1);
        }
    }
    if (process == 0)
        await(team, 1, rounds, &s);
    if (process == 0 && !on_device)
        pthread_join(thread, NULL);
    JOB_OK(s.session, peal_transfer_destroy(s.transfer));
    give(data);
    peal_session_destroy(s.session);
    return 0;
}

/* One that was asked for and not answered: said at once, by all. */
static int member_is_not_answered(test_team *team, int process)
{
    peal_session *session;
    peal_transfer *transfer;
    TEAM_CHECK(!on_device || device_memory_open(process, team->processes));
    TEAM_CHECK(!job_open(team, process, 0, &session));
    void *data = take(64);
    peal_transfer_desc desc = desc_of(0, 1, data, 64);
    desc.on_demand = true;
    JOB_OK(session, peal_transfer_create_desc(session, &desc, &transfer));
    if (process == 1)
        JOB_OK(session, peal_transfer_start(transfer, NULL));
    TEAM_CHECK(peal_transfer_destroy(transfer) == PEAL_STATUS_USAGE);
    TEAM_CHECK(job_reported(session, PEAL_E_CALLS_DIFFER,
                            "process 0 has answered with 0 messages, process 1 has asked for 1"));
    give(data);
    peal_session_destroy(session);
    return 0;
}

/* Nothing is sent: the wait ends after the deadline and says for whom it was. */
static int member_waits_in_vain(test_team *team, int process)
{
    peal_session *session;
    peal_transfer *transfer;
    char data[64];
    TEAM_CHECK(!job_open(team, process, process == 1 ? 0.3 : 60, &session));
    peal_transfer_desc desc = desc_of(0, 1, data, sizeof(data));
    JOB_OK(session, peal_transfer_create_desc(session, &desc, &transfer));
    if (process == 1) {
        TEAM_CHECK(peal_transfer_wait(transfer, NULL) == PEAL_STATUS_DEADLINE);
        TEAM_CHECK(job_reported(session, PEAL_E_BORDER_LATE,
                                "has waited 0.3 s for a message of process 0 (transfer 1)"));
        TEAM_CHECK(peal_transfer_wait(transfer, NULL) == PEAL_STATUS_DEADLINE);
    } else {
        while (!peal_session_status(session))
            sched_yield();
    }
    TEAM_CHECK(peal_transfer_destroy(transfer) == PEAL_STATUS_DEADLINE);
    peal_session_destroy(session);
    return 0;
}

static void who_asks_is_answered(void **state)
{
    (void)state;
    if (strcmp(between, "tcp") == 0)
        job_run_all(3, member_answers);
    transport = between;
    job_run_all(3, member_answers);
    job_run_all(2, member_is_not_answered);
    transport = NULL;
}

/* ---- how far ahead ---- */

/* Two starts return though nobody waits; the third goes on once the first message was waited for,
 * and nothing of the three is lost. */
static int member_is_ahead(test_team *team, int process)
{
    enum { BYTES = 24, STARTED = 2 /* a flag that no process has */ };
    peal_session *session;
    peal_transfer *transfer;
    unsigned char data[BYTES], copy[BYTES];
    TEAM_CHECK(!job_open(team, process, 0, &session));
    peal_transfer_desc desc = desc_of(1, 0, data, BYTES);
    JOB_OK(session, peal_transfer_create_desc(session, &desc, &transfer));
    for (int round = 0; round < 3; round++) {
        if (process == 1) {
            fill(data, copy, BYTES, round);
            JOB_OK(session, peal_transfer_start(transfer, NULL));
            atomic_store(&team->board->flag[STARTED], round + 1);
        }
        if (round == 1)
            job_pass_together(team, process);
    }
    if (process == 0) {
        usleep(50000);
        TEAM_CHECK(atomic_load(&team->board->flag[STARTED]) == 2); /* the third waits */
    }
    for (int round = 0; round < 3 && process == 0; round++) {
        JOB_OK(session, peal_transfer_wait(transfer, NULL));
        TEAM_CHECK(has(data, copy, BYTES, round));
    }
    JOB_OK(session, peal_transfer_destroy(transfer));
    peal_session_destroy(session);
    return 0;
}

static void two_are_on_their_way(void **state)
{
    (void)state;
    job_run_all(2, member_is_ahead);
    transport = between;
    job_run_all(2, member_is_ahead);
    transport = NULL;
}

/* ---- what is wrong ---- */

static void refuse(peal_session *session, peal_transfer_desc desc, const char *text)
{
    peal_transfer *transfer = NULL;
    TEAM_CHECK(peal_transfer_create_desc(session, &desc, &transfer) == PEAL_STATUS_USAGE);
    TEAM_CHECK(!transfer && job_reported(session, PEAL_E_INVALID_TRANSFER, text));
    peal_session_forget_messages(session);
}

static int member_says_nonsense(test_team *team, int process)
{
    peal_session *session;
    char data[64];
    TEAM_CHECK(!job_open(team, process, 0, &session));
    peal_transfer_desc good = desc_of(0, 1, data, sizeof(data)), bad = good;
    bad.to = 0;
    refuse(session, bad, "process 0 would send to itself");
    bad.to = 2;
    refuse(session, bad, "`to` is process 2 of 2");
    bad = good;
    bad.from = -1;
    refuse(session, bad, "`from` is process -1 of 2");
    bad = good;
    bad.bytes = 0;
    refuse(session, bad, "0 bytes are not in 1 to 2147483647");
    bad.bytes = INT64_C(1) << 31;
    refuse(session, bad, "2147483648 bytes are not in");
    bad = good;
    bad.bytes += process;
    refuse(session, bad, "process 1 says 65 bytes from process 0 to 1, process 0 says 64 from");
    bad = good;
    bad.data = NULL;
    refuse(session, bad, process ? "process 1 has no memory" : "process 0 has no memory");
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bad.data = page;
    refuse(session, bad, "does not lie in memory that it may write, all 64 bytes");
    munmap(page, 4096);
    bad = good;
    bad.size_bytes = 8;
    peal_transfer *transfer = NULL;
    TEAM_CHECK(peal_transfer_create_desc(session, &bad, &transfer) == PEAL_STATUS_USAGE);
    TEAM_CHECK(job_reported(session, PEAL_E_INVALID_DESCRIPTOR, "peal_transfer_desc has"));
    bad = good;
    bad.data = (void *)(uintptr_t)-16;
    refuse(session, bad, "does not lie in memory that it may write, all 64 bytes");
    bad = good;
    bad.transport = process ? "tcp" : "shm";
    TEAM_CHECK(peal_transfer_create_desc(session, &bad, &transfer) != PEAL_STATUS_OK);
    TEAM_CHECK(job_reported(session, PEAL_E_CALLS_DIFFER, "another transport"));
    TEAM_CHECK(!transfer);
    peal_session_destroy(session);
    return 0;
}

static int member_mistakes_its_end(test_team *team, int process)
{
    peal_session *session;
    peal_transfer *transfer;
    char data[64] = "";
    TEAM_CHECK(!job_open(team, process, 0, &session));
    peal_transfer_desc desc = desc_of(0, 1, data, sizeof(data));
    JOB_OK(session, peal_transfer_create_desc(session, &desc, &transfer));
    peal_status status =
        process ? peal_transfer_start(transfer, NULL) : peal_transfer_wait(transfer, NULL);
    TEAM_CHECK(status == PEAL_STATUS_USAGE);
    TEAM_CHECK(job_reported(session, PEAL_E_CALL_OUT_OF_ORDER, "goes from process 0 to 1"));
    status = process ? peal_transfer_wait(transfer, data) : peal_transfer_start(transfer, data);
    TEAM_CHECK(status == PEAL_STATUS_USAGE);
    TEAM_CHECK(job_reported(session, PEAL_E_CALL_OUT_OF_ORDER, "the stream must be NULL"));
    if (process == 0) /* and nobody waits for it */
        JOB_OK(session, peal_transfer_start(transfer, NULL));
    TEAM_CHECK(peal_transfer_destroy(transfer) == PEAL_STATUS_USAGE);
    TEAM_CHECK(job_reported(session, PEAL_E_CALLS_DIFFER,
                            "process 0 has started 1 messages, process 1 has waited for 0"));
    peal_session_destroy(session);
    return 0;
}

/* What was asked for is waited for by destroy, if nobody else did. */
static int member_asks_wrongly(test_team *team, int process)
{
    peal_session *session;
    peal_transfer *transfer;
    char data[64];
    TEAM_CHECK(!job_open(team, process, 0, &session));
    memset(data, process ? 0 : 7, sizeof(data));
    peal_transfer_desc desc = desc_of(0, 1, data, sizeof(data));
    desc.on_demand = process == 1;
    refuse(session, desc, "0 to 1 on demand, process 0 says 64 from 0 to 1");
    desc.on_demand = true;
    JOB_OK(session, peal_transfer_create_desc(session, &desc, &transfer));
    if (process == 1) {
        TEAM_CHECK(peal_transfer_wait(transfer, NULL) == PEAL_STATUS_USAGE);
        TEAM_CHECK(job_reported(session, PEAL_E_CALL_OUT_OF_ORDER, "nothing was asked for"));
        JOB_OK(session, peal_transfer_start(transfer, NULL));
        TEAM_CHECK(peal_transfer_start(transfer, NULL) == PEAL_STATUS_USAGE);
        TEAM_CHECK(job_reported(session, PEAL_E_CALL_OUT_OF_ORDER, "was not waited for"));
    } else {
        TEAM_CHECK(peal_transfer_start(transfer, NULL) == PEAL_STATUS_USAGE);
        JOB_OK(session, peal_transfer_answer(transfer, NULL));
    }
    JOB_OK(session, peal_transfer_destroy(transfer));
    TEAM_CHECK(data[63] == 7);
    desc.on_demand = false;
    JOB_OK(session, peal_transfer_create_desc(session, &desc, &transfer));
    TEAM_CHECK(peal_transfer_answer(transfer, NULL) == PEAL_STATUS_USAGE);
    TEAM_CHECK(job_reported(session, PEAL_E_CALL_OUT_OF_ORDER, "the transfer is not on demand"));
    JOB_OK(session, peal_transfer_destroy(transfer));
    peal_session_destroy(session);
    return 0;
}

/* The session's end destroys what was left, in all processes. */
static int member_leaves_it(test_team *team, int process)
{
    peal_session *session;
    peal_transfer *transfer;
    char data[64];
    TEAM_CHECK(!job_open(team, process, 0, &session));
    peal_transfer_desc desc = desc_of(0, 1, data, sizeof(data));
    JOB_OK(session, peal_transfer_create_desc(session, &desc, &transfer));
    peal_session_destroy(session);
    TEAM_CHECK(strstr(peal_misuse(), "a transfer of the session was still there"));
    TEAM_CHECK(peal_transfer_start(transfer, NULL) == PEAL_STATUS_USAGE);
    TEAM_CHECK(strstr(peal_misuse(), "the transfer has been destroyed [E337]"));
    return 0;
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    job_run_all(2, member_says_nonsense);
    job_run_all(2, member_mistakes_its_end);
    job_run_all(2, member_asks_wrongly);
    job_run_all(2, member_leaves_it);
}

static void a_wait_has_a_deadline(void **state)
{
    (void)state;
    job_run_all(2, member_waits_in_vain);
    transport = "tcp";
    job_run_all(2, member_waits_in_vain);
    transport = NULL;
}

int main(void)
{
    const char *backend = getenv("PEAL_TEST_BACKEND"), *asked = getenv("PEAL_TEST_TRANSPORT");
    on_device = backend && !strcmp(backend, "cuda");
    between = asked ? asked : between;
    rounds = on_device ? 8 : rounds; /* emulated */
    const struct CMUnitTest all[] = {
        cmocka_unit_test(arrives_and_comes_back), cmocka_unit_test(two_are_on_their_way),
        cmocka_unit_test(nonsense_is_refused),    cmocka_unit_test(a_wait_has_a_deadline),
        cmocka_unit_test(between_hosts),          cmocka_unit_test(who_asks_is_answered),
    };
    const struct CMUnitTest device[] = {
        cmocka_unit_test(arrives_and_comes_back),
        cmocka_unit_test(between_hosts),
        cmocka_unit_test(who_asks_is_answered),
    };
    const struct CMUnitTest network[] = {cmocka_unit_test(between_hosts),
                                         cmocka_unit_test(who_asks_is_answered)};
    return asked       ? cmocka_run_group_tests(network, NULL, NULL)
           : on_device ? cmocka_run_group_tests(device, NULL, NULL)
                       : cmocka_run_group_tests(all, NULL, NULL);
}
