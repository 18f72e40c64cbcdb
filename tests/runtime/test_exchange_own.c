/* What an application says that its rank owns: what is not so is refused on every rank, with what
 * was most likely meant. */
#define _GNU_SOURCE
#include "tests/runtime/job.h"

#include <peal/exchange.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* 2 x 2 ranks of 6 x 4 points each. What is wrong on some rank is refused on all: none hangs. */
typedef enum own_mistake {
    NO_MISTAKE,
    LOCAL_EXTENT,
    ROWS_FIRST,
    NOT_GIVEN,
    NO_ORIGIN,
    UNEVEN,
    READ_ONLY,
    HUGE_STRIDE,
    NO_HALO,
    OTHER_CUT
} own_mistake;

static bool has_hint(peal_session *session, const char *text)
{
    const peal_diagnostics *list = peal_session_diagnostics(session);
    for (int i = 0; i < peal_diagnostics_count(list); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(list, i);
        if (d->code == PEAL_E_INVALID_EXCHANGE && d->hint && strstr(d->hint, text))
            return true;
    }
    return false;
}

static bool refuses_own(peal_session *session, own_mistake mistake, const char *hint)
{
    int process = peal_session_process(session), rx = process % 2, ry = process / 2;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    /* The field ends where a page does that nothing may touch. */
    unsigned char *memory =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int points = mistake == NO_HALO ? 6 * 4 : 8 * 6;
    peal_halo_desc desc = {.size_bytes = sizeof(desc),
                           .dims = {2, 2, 1},
                           .axis_count = 2,
                           .extent = {12, 8},
                           .own_origin = {6 * rx, 4 * ry},
                           .own_extent = {6, 4},
                           .width = {1, 1},
                           .field_count = 1};
    peal_exchange *exchange = NULL;
    mprotect(memory + page, page, PROT_NONE);
    desc.field[0].data = memory + page - (size_t)points * sizeof(double);
    if (mistake == LOCAL_EXTENT) {
        desc.extent[0] = 6;
        desc.extent[1] = 4;
    }
    if (mistake == ROWS_FIRST) {
        desc.own_origin[0] = 6 * ry;
        desc.own_origin[1] = 4 * rx;
    }
    if (mistake == OTHER_CUT && process == 3)
        desc.own_extent[1] = 3;
    if (mistake == UNEVEN) { /* 11 x 7: the first parts are a point longer */
        desc.extent[0] = 11;
        desc.extent[1] = 7;
        desc.own_origin[0] = 6 * rx;
        desc.own_origin[1] = 4 * ry;
        desc.own_extent[0] = 6 - rx;
        desc.own_extent[1] = 4 - ry;
        desc.own_extent[3] = -77; /* there is no such axis */
    }
    if (mistake == NO_ORIGIN)
        memset(desc.own_origin, 0, sizeof(desc.own_origin));
    if (mistake == READ_ONLY)
        mprotect(memory, page, PROT_READ);
    if (mistake == HUGE_STRIDE)
        desc.field[0].stride[1] = INT64_MAX / 4;
    if (mistake == NOT_GIVEN) {
        memset(desc.own_origin, 0, sizeof(desc.own_origin));
        memset(desc.own_extent, 0, sizeof(desc.own_extent));
    }
    peal_status status = peal_exchange_create(session, &desc, &exchange);
    peal_exchange_destroy(exchange);
    munmap(memory, 2 * page);
    if (mistake == NO_MISTAKE || mistake == UNEVEN)
        return status == PEAL_STATUS_OK;
    /* Of a mistake that some ranks do not see, they hear. */
    return status == PEAL_STATUS_USAGE && !exchange && (!hint || has_hint(session, hint));
}

static const struct {
    own_mistake mistake;
    int sees; /* a process that sees it */
    const char *hint;
} own_cases[] = {
    {NO_MISTAKE, 0, NULL},
    {LOCAL_EXTENT, 0, "`extent` is that of the whole grid"},
    {ROWS_FIRST, 1, "ranks count along x first"},
    {NOT_GIVEN, 0, "set .own_origin"},
    {NO_HALO, 2, "data is the lowest corner with its halo"},
    {NO_ORIGIN, 3, "own_origin is where"},
    {UNEVEN, 0, NULL},
    {READ_ONLY, 1, "data is the lowest corner with its halo"},
    {HUGE_STRIDE, 0, "data is the lowest corner with its halo"},
    {OTHER_CUT, 3, "set dims to cut as you do"},
};
static size_t own_case; /* of the processes that are started now */

static int member_owns(test_team *team, int process)
{
    peal_session *session;
    bool sees = process == own_cases[own_case].sees;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    TEAM_CHECK(
        refuses_own(session, own_cases[own_case].mistake, sees ? own_cases[own_case].hint : NULL));
    peal_session_destroy(session);
    return 0;
}

static void own_parts(void **state)
{
    (void)state;
    for (own_case = 0; own_case < sizeof(own_cases) / sizeof(own_cases[0]); own_case++)
        job_run_all(4, member_owns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
