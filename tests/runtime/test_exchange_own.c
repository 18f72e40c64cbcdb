/* What an application says that its processes own, and where it lies: what is not so is refused on
 * every process, with what was most likely meant. */
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

/* 2 x 2 processes of 6 x 4 points each. What is wrong on some process is refused on all: none
 * hangs. */
typedef enum own_case {
    RIGHT,
    OTHER_ORDER,
    UNEVEN,
    PADDED,
    LOCAL,
    NOT_GIVEN,
    INCLUSIVE,
    WITH_HALO,
    BRICKS,
    OTHER_EXTENT,
    READ_ONLY,
    HUGE_STRIDE,
    SHORT_STRIDE,
    NO_HALO,
    HALO_NOT_SAID
} own_case;

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

/* Boxes of a case. */
static void state_box(peal_halo_desc *desc, own_case now, int process)
{
    int rx = process % 2, ry = process / 2;
    if (now == OTHER_ORDER) { /* along y first, as MPI_Cart_create has it */
        rx = process / 2;
        ry = process % 2;
    }
    desc->lo[0] = 6 * rx;
    desc->lo[1] = 4 * ry;
    desc->hi[0] = desc->lo[0] + 6;
    desc->hi[1] = desc->lo[1] + 4;
    if (now == LOCAL || now == NOT_GIVEN) {
        memset(desc->lo, 0, sizeof(desc->lo));
        desc->hi[0] = now == LOCAL ? 6 : 0;
        desc->hi[1] = now == LOCAL ? 4 : 0;
    }
    if (now == INCLUSIVE) {
        desc->hi[0]--;
        desc->hi[1]--;
    }
    for (int k = 0; k < 2 && now == WITH_HALO; k++) {
        desc->lo[k]--;
        desc->hi[k]++;
    }
    if (now == BRICKS && ry) /* the upper two are cut at 5, the lower ones at 6 */
        desc->lo[0] = rx ? 5 : 0, desc->hi[0] = rx ? 12 : 5;
    if (now == UNEVEN) {
        desc->lo[0] = rx ? 7 : 2;
        desc->hi[0] = rx ? 8 : 7;
        desc->lo[3] = -77; /* there is no such axis */
    }
    if (now == OTHER_EXTENT)
        desc->extent[1] = process == 3 ? 9 : 8;
}

static bool refuses_own(peal_session *session, own_case now, const char *hint)
{
    int process = peal_session_process(session);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    /* The field ends where a page does that nothing may touch. */
    unsigned char *memory =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int points = now == NO_HALO ? 6 * 4 : now == PADDED ? 9 * 5 + 8 : 8 * 6;
    peal_halo_desc desc = {.size_bytes = sizeof(desc),
                           .source = PEAL_HERE,
                           .axis_count = 2,
                           .field = {{.width = {{1, 1}, {1, 1}}}}};
    peal_exchange *exchange = NULL;
    mprotect(memory + page, page, PROT_NONE);
    desc.field[0].data[0] = memory + page - (size_t)points * sizeof(double);
    state_box(&desc, now, process);
    if (now == READ_ONLY)
        mprotect(memory, page, PROT_READ);
    if (now == PADDED)
        desc.field[0].stride[1] = 9;
    if (now == HALO_NOT_SAID) { /* x has halo points that nobody sends */
        desc.field[0].width[0][0] = desc.field[0].width[0][1] = 0;
        desc.field[0].bytes = 8 * 6 * (int64_t)sizeof(double);
    }
    if (now == SHORT_STRIDE)
        desc.field[0].stride[1] = 7;
    if (now == HUGE_STRIDE)
        desc.field[0].stride[1] = INT64_MAX / 4;
    peal_status status = peal_exchange_create_desc(session, &desc, &exchange);
    if (status && now <= PADDED)
        peal_session_print_diagnostics(session, stderr, 0);
    peal_exchange_destroy(exchange);
    munmap(memory, 2 * page);
    if (now <= PADDED)
        return status == PEAL_STATUS_OK;
    /* Of a mistake that some processes do not see, they hear. */
    return status == PEAL_STATUS_USAGE && !exchange && (!hint || has_hint(session, hint));
}

static const struct {
    own_case now;
    int sees; /* a process that sees it */
    const char *hint;
} own_cases[] = {
    {RIGHT, 0, NULL},
    {OTHER_ORDER, 0, NULL},
    {UNEVEN, 0, NULL},
    {PADDED, 0, NULL},
    {LOCAL, 0, "each process states the part of it that it owns"},
    {NOT_GIVEN, 0, "lo <= p < hi"},
    {INCLUSIVE, 2, "lo <= p < hi"},
    {WITH_HALO, 1, "halo not counted"},
    {BRICKS, 3, "cut each axis at the same points everywhere"},
    {OTHER_EXTENT, 3, "`extent` is that of the whole grid"},
    {READ_ONLY, 1, "data is the lowest corner with its halo"},
    {HUGE_STRIDE, 0, "rows must not overlap"},
    {SHORT_STRIDE, 1, "rows must not overlap"},
    {NO_HALO, 2, "data is the lowest corner with its halo"},
    {HALO_NOT_SAID, 1, "set .halo to what is stored"},
};
static size_t own_now; /* of the processes that are started now */

static int member_owns(test_team *team, int process)
{
    peal_session *session;
    bool sees = process == own_cases[own_now].sees;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    TEAM_CHECK(refuses_own(session, own_cases[own_now].now, sees ? own_cases[own_now].hint : NULL));
    peal_session_destroy(session);
    return 0;
}

static void own_parts(void **state)
{
    (void)state;
    for (own_now = 0; own_now < sizeof(own_cases) / sizeof(own_cases[0]); own_now++)
        job_run_all(4, member_owns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
