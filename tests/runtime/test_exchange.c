/* The exchange alone, over processes: random grids, cut anywhere, with processes in any order and
 * fields of all kinds in peal's memory and in the caller's. Every stored point is compared with
 * what its owner has. With PEAL_TEST_BACKEND=cuda in a GPU's memory, and nothing else. */
#define _GNU_SOURCE
#include "runtime/network/tcp.h"
#include "tests/runtime/device_memory.h"
#include "tests/runtime/job.h"
#include "tests/share/share.h"

#include <peal/exchange.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { UNTOUCHED = 77, MOST_PARTS = 8, CASES = 45, DEVICE_CASES = 12 };

/* ---- a random exchange, the same in all processes ---- */

typedef struct random_case {
    uint64_t seed, state;
    int processes, fields;
    int dims[PEAL_AXES];
    int64_t cut[PEAL_AXES][MOST_PARTS + 1];
    int process_of[64];
    bool lent, second;   /* the caller's memory; with a second buffer in some fields */
    peal_halo_desc desc; /* but for what is a process's own */
} random_case;

static int below(random_case *c, int limit)
{
    uint64_t z = (c->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int)((z ^ (z >> 31)) % (uint64_t)limit);
}

/* Factors of the processes, for the axes that there are. */
static void choose_dims(random_case *c)
{
    int left = c->processes, axes = c->desc.axis_count < 3 ? c->desc.axis_count : 3;
    for (int k = 0; k < PEAL_AXES; k++)
        c->dims[k] = 1;
    for (int factor = 2; left > 1; factor++)
        for (; left % factor == 0; left /= factor)
            c->dims[below(c, axes)] *= factor;
}

static void choose_field(random_case *c, peal_halo_field *field)
{
    static const int components[] = {1, 1, 1, 2, 3, 5};
    *field = (peal_halo_field){.type = (peal_type)below(c, PEAL_TYPE_COUNT),
                               .components = components[below(c, 6)]};
    bool stored = c->lent && below(c, 2);
    for (int k = 0; k < c->desc.axis_count; k++)
        for (int side = 0; side < 2; side++) {
            field->width[k][side] = k < PEAL_RANK_AXES ? below(c, 3) : 0;
            field->halo[k][side] = stored ? field->width[k][side] + below(c, 3) : 0;
        }
    if (below(c, 4) == 0)
        field->stagger[below(c, c->desc.axis_count)] = 1;
    int k = below(c, c->desc.axis_count < 3 ? c->desc.axis_count : 3);
    field->width[k][0] += !field->width[k][0];
    field->halo[k][0] += stored;
}

static random_case choose(uint64_t seed, int processes)
{
    random_case c = {.seed = seed,
                     .state = seed * 977 + (uint64_t)processes,
                     .processes = processes};
    c.desc = (peal_halo_desc){.size_bytes = sizeof(c.desc), .source = PEAL_HERE};
    c.desc.axis_count = 1 + below(&c, 4);
    c.desc.star = below(&c, 3) == 0;
    c.lent = below(&c, 3);
    c.second = c.lent && below(&c, 2);
    choose_dims(&c);
    for (int k = 0; k < PEAL_AXES; k++) {
        bool there = k < c.desc.axis_count;
        if (k < PEAL_RANK_AXES)
            c.desc.periodic[k] = there && below(&c, 2);
        c.cut[k][0] = there ? below(&c, 20) - 10 : 0;
        int least = k == 0 && seed % 4 == 1 ? 70 : 3; /* long rows are padded on devices */
        for (int i = 0; i < c.dims[k]; i++)
            c.cut[k][i + 1] =
                c.cut[k][i] + (there ? least + below(&c, c.desc.axis_count > 2 ? 3 : 7) : 1);
    }
    for (int p = 0; p < processes; p++)
        c.process_of[p] = p;
    for (int p = processes - 1; p > 0 && seed % 3; p--) {
        int other = below(&c, p + 1), kept = c.process_of[p];
        c.process_of[p] = c.process_of[other];
        c.process_of[other] = kept;
    }
    c.fields = 1 + below(&c, 4);
    for (int f = 0; f < c.fields; f++)
        choose_field(&c, &c.desc.field[f]);
    return c;
}

/* Where a process is in the grid. */
static void position_of(const random_case *c, int process, int position[PEAL_AXES])
{
    int rank = 0;
    while (c->process_of[rank] != process)
        rank++;
    for (int k = 0; k < PEAL_AXES; rank /= c->dims[k++])
        position[k] = rank % c->dims[k];
}

static int process_at(const random_case *c, const int position[PEAL_AXES])
{
    int rank = 0;
    for (int k = PEAL_AXES - 1; k >= 0; k--)
        rank = rank * c->dims[k] + position[k];
    return c->process_of[rank];
}

/* ---- what there should be ---- */

static int hash_of(const int64_t p[PEAL_AXES], int field, int component, int round, int ghost_of)
{
    uint64_t h = (uint64_t)(field * 31 + round * 7 + component * 1009 + (ghost_of + 1) * 65537);
    for (int k = 0; k < PEAL_AXES; k++)
        h = (h ^ (uint64_t)p[k]) * UINT64_C(0x9E3779B97F4A7C15) >> 7;
    return (int)(h % 70);
}

/* Where a stored point lies: in which direction, how far, and whether somebody is there. */
typedef struct place {
    int process; /* whose point it is: ghost points beyond the ends are those beside whom they lie
                  */
    bool ghost, within;   /* of the widths */
    int steps;            /* to the owner: 0: it is mine */
    int64_t p[PEAL_AXES]; /* in the owner's coordinates */
} place;

static place place_of(const random_case *c, int process, int field, const int64_t p[PEAL_AXES])
{
    const peal_halo_field *f = &c->desc.field[field];
    int position[PEAL_AXES];
    place out = {.within = true};
    position_of(c, process, position);
    for (int k = 0; k < PEAL_AXES; k++) {
        bool periodic = k < PEAL_RANK_AXES && c->desc.periodic[k];
        int last = c->dims[k] - 1;
        int64_t stagger = periodic || position[k] < last ? 0 : f->stagger[k];
        int64_t lo = c->cut[k][position[k]], hi = c->cut[k][position[k] + 1] + stagger;
        int64_t extent = c->cut[k][last + 1] - c->cut[k][0];
        out.p[k] = p[k];
        if (p[k] >= lo && p[k] < hi)
            continue;
        int way = p[k] < lo ? -1 : 1;
        out.within &= p[k] < lo ? lo - p[k] <= f->width[k][0] : p[k] < hi + f->width[k][1];
        position[k] += way;
        if (position[k] >= 0 && position[k] <= last) {
            out.steps++;
        } else if (periodic) {
            position[k] = (position[k] + last + 1) % (last + 1);
            out.p[k] -= way * extent;
            out.steps++;
        } else {
            position[k] -= way;
            out.ghost = true;
        }
    }
    out.process = process_at(c, position);
    return out;
}

/* What a stored point holds before an exchange, and after it. */
static int value_at(const random_case *c, int process, int field, int component, int round,
                    const int64_t p[PEAL_AXES], bool after)
{
    place at = place_of(c, process, field, p);
    bool comes = at.within && !(c->desc.star && at.steps > 1);
    if (at.steps && !(after && comes))
        return UNTOUCHED;
    return hash_of(at.p, field, component, round, at.ghost ? at.process : -1);
}

/* ---- memory ---- */

static bool on_device; /* fields lie in a GPU's memory */

static void *take(size_t count, size_t bytes)
{
    return on_device ? device_memory_take(count * bytes) : calloc(count, bytes);
}

static void give(void *memory)
{
    if (on_device)
        device_memory_give(memory);
    else
        free(memory);
}

static void store(void *data, int64_t index, peal_type type, int value)
{
    switch (type) {
    case PEAL_F64:
        ((double *)data)[index] = value;
        break;
    case PEAL_F32:
        ((float *)data)[index] = (float)value;
        break;
    case PEAL_I32:
        ((int32_t *)data)[index] = value;
        break;
    case PEAL_I64:
        ((int64_t *)data)[index] = value;
        break;
    default:
        ((uint8_t *)data)[index] = (uint8_t)value;
    }
}

static int load(const void *data, int64_t index, peal_type type)
{
    switch (type) {
    case PEAL_F64:
        return (int)((const double *)data)[index];
    case PEAL_F32:
        return (int)((const float *)data)[index];
    case PEAL_I32:
        return ((const int32_t *)data)[index];
    case PEAL_I64:
        return (int)((const int64_t *)data)[index];
    default:
        return ((const uint8_t *)data)[index];
    }
}

/* Fills all stored points, or compares them; in memory of the host. */
static bool visit_points(const random_case *c, int process, int field, const peal_exchange_array *a,
                         int round, bool fill)
{
    const peal_halo_field *f = &c->desc.field[field];
    int components = f->components ? f->components : 1;
    int64_t p[PEAL_AXES], lo[PEAL_AXES], hi[PEAL_AXES];
    for (int k = 0; k < PEAL_AXES; k++) {
        lo[k] = a->lo[k] - a->halo[k][0];
        hi[k] = a->hi[k] + a->halo[k][1];
    }
    for (p[3] = lo[3]; p[3] < hi[3]; p[3]++)
        for (p[2] = lo[2]; p[2] < hi[2]; p[2]++)
            for (p[1] = lo[1]; p[1] < hi[1]; p[1]++)
                for (p[0] = lo[0]; p[0] < hi[0]; p[0]++)
                    for (int n = 0; n < components; n++) {
                        int64_t index = 0;
                        for (int k = 0; k < PEAL_AXES; k++)
                            index += (p[k] - lo[k]) * a->stride[k];
                        index = index * components + n;
                        int want = value_at(c, process, field, n, round, p, !fill);
                        if (fill)
                            store(a->data, index, f->type, want);
                        else if (load(a->data, index, f->type) != want) {
                            fprintf(stderr,
                                    "case %d of %d processes, field %d, round %d, (%d, %d, %d, "
                                    "%d).%d: %d, not %d\n",
                                    (int)c->seed, c->processes, field, round, (int)p[0], (int)p[1],
                                    (int)p[2], (int)p[3], n, load(a->data, index, f->type), want);
                            return false;
                        }
                    }
    return true;
}

static bool visit(const random_case *c, int process, int field, const peal_exchange_array *a,
                  int round, bool fill)
{
    if (!on_device)
        return visit_points(c, process, field, a, round, fill);
    int64_t points = 1;
    for (int k = 0; k < PEAL_AXES; k++)
        points += (a->hi[k] - a->lo[k] + a->halo[k][0] + a->halo[k][1] - 1) * a->stride[k];
    const peal_halo_field *f = &c->desc.field[field];
    size_t bytes =
        (size_t)(points * (f->components ? f->components : 1)) * peal_type_bytes(f->type);
    peal_exchange_array copy = *a;
    copy.data = calloc(1, bytes);
    bool good = copy.data && (fill || device_memory_read(copy.data, a->data, bytes)) &&
                visit_points(c, process, field, &copy, round, fill) &&
                (!fill || device_memory_write(a->data, copy.data, bytes));
    free(copy.data);
    return good;
}

/* The caller's memory: dense, or with rows and planes longer than needed. Some has a guard behind
 * it. */
static void lend(random_case *c, const int position[PEAL_AXES], int field, void *memory[2])
{
    peal_halo_field *f = &c->desc.field[field];
    int64_t points = 1, element = (int64_t)peal_type_bytes(f->type) * f->components;
    bool padded = c->seed % 2, given = false;
    for (int k = 0; k < PEAL_AXES; k++)
        given |= f->halo[k][0] || f->halo[k][1];
    for (int k = 0; k < c->desc.axis_count; k++) {
        bool last = position[k] == c->dims[k] - 1;
        bool periodic = k < PEAL_RANK_AXES && c->desc.periodic[k];
        const int *halo = given ? f->halo[k] : f->width[k];
        int64_t extent = c->cut[k][position[k] + 1] - c->cut[k][position[k]];
        extent += last && !periodic ? f->stagger[k] : 0;
        f->stride[k] = padded || k == 0 ? points : 0;
        points *= extent + halo[0] + halo[1] + (padded ? k + 3 : 0);
    }
    f->bytes = padded ? 0 : points * element;
    for (int buffer = 0; buffer < (c->second && field % 2 == 0 ? 2 : 1); buffer++)
        f->data[buffer] = memory[buffer] = take((size_t)points, (size_t)element);
}

/* ---- exchanges ---- */

static bool run_rounds(peal_session *session, const random_case *c, peal_exchange *exchange)
{
    int process = peal_session_process(session);
    peal_exchange_array array[PEAL_EXCHANGE_FIELDS];
    bool good = true, two = false;
    char about[400];
    peal_exchange_describe(exchange, about, sizeof(about));
    if (on_device != (strstr(about, " on ") != NULL))
        return false;
    for (int f = 0; f < c->fields; f++) {
        if (peal_exchange_view(exchange, f, &array[f]))
            return false;
        two |= c->desc.field[f].data[1] != NULL;
    }
    for (int round = 1; good && round <= 6; round++) {
        int buffer = two ? round / 2 % 2 : 0;
        for (int f = 0; f < c->fields; f++) {
            if (c->desc.field[f].data[1])
                array[f].data = c->desc.field[f].data[buffer];
            good &= visit(c, process, f, &array[f], round, true);
        }
        good = good && peal_exchange_start(exchange, buffer, NULL) == PEAL_STATUS_OK &&
               peal_exchange_wait(exchange) == PEAL_STATUS_OK;
        for (int f = 0; good && f < c->fields; f++)
            good = visit(c, process, f, &array[f], round, false);
    }
    return good;
}

static bool run_case(peal_session *session, uint64_t seed)
{
    random_case c = choose(seed, peal_session_processes(session));
    void *memory[PEAL_EXCHANGE_FIELDS][2] = {{NULL}};
    int position[PEAL_AXES];
    peal_exchange *exchange = NULL;
    position_of(&c, peal_session_process(session), position);
    for (int k = 0; k < PEAL_AXES; k++) {
        c.desc.lo[k] = c.cut[k][position[k]];
        c.desc.hi[k] = c.cut[k][position[k] + 1];
        c.desc.extent[k] = seed % 2 ? c.cut[k][c.dims[k]] - c.cut[k][0] : 0;
    }
    c.desc.backend = on_device && !c.lent ? "cuda" : NULL; /* lent memory tells itself */
    for (int f = 0; c.lent && f < c.fields; f++)
        lend(&c, position, f, memory[f]);
    bool good = peal_exchange_create_desc(session, &c.desc, &exchange) == PEAL_STATUS_OK &&
                run_rounds(session, &c, exchange);
    if (!good) {
        fprintf(stderr, "case %d of %d processes\n", (int)seed, c.processes);
        peal_session_print_diagnostics(session, stderr, 0);
    }
    good &= peal_exchange_destroy(exchange) == PEAL_STATUS_OK;
    for (int f = 0; f < c.fields; f++) {
        give(memory[f][0]);
        give(memory[f][1]);
    }
    return good;
}

static int member_exchanges(test_team *team, int process)
{
    peal_session *session;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    TEAM_CHECK(!on_device || device_memory_open(process, team->processes));
    const test_share share = share_of(on_device ? 1 : 3);
    for (uint64_t seed = share.first; seed < (on_device ? DEVICE_CASES : CASES);
         seed += share.every)
        TEAM_CHECK(run_case(session, seed));
    peal_session_destroy(session);
    return 0;
}

static void processes(void **state)
{
    static const int counts[] = {1, 2, 4, 3, 6};
    (void)state;
    for (size_t i = 0; i < (on_device ? 3 : sizeof(counts) / sizeof(counts[0])); i++)
        job_run_all(counts[i], member_exchanges);
}

/* A small one, cut along x: n points a process. */
static peal_halo_desc line_of(const peal_session *session, int n)
{
    int process = peal_session_process(session);
    return (peal_halo_desc){.size_bytes = sizeof(peal_halo_desc),
                            .source = PEAL_HERE,
                            .axis_count = 1,
                            .lo = {process * n},
                            .hi = {(process + 1) * n},
                            .field = {{.width = {{1, 1}}}}};
}

static int member_differs(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange = NULL;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_halo_desc desc = line_of(session, 9);
    desc.field[0].width[0][1] += process;
    TEAM_CHECK(peal_exchange_create_desc(session, &desc, &exchange) == PEAL_STATUS_SPEC);
    TEAM_CHECK(job_reported(session, PEAL_E_GRAPHS_DIFFER,
                            "field 0 of process 1 and that of process 0 differ: width"));
    desc = line_of(session, 9);
    desc.field[process] = desc.field[0];
    TEAM_CHECK(peal_exchange_create_desc(session, &desc, &exchange) == PEAL_STATUS_SPEC);
    TEAM_CHECK(job_reported(session, PEAL_E_GRAPHS_DIFFER,
                            "field 1 of process 1 and that of process 0 differ: presence"));
    desc.field[1] = desc.field[0];
    desc.periodic[0] = process == 0;
    TEAM_CHECK(peal_exchange_create_desc(session, &desc, &exchange) == PEAL_STATUS_SPEC);
    TEAM_CHECK(job_reported(session, PEAL_E_GRAPHS_DIFFER, "differ: periodic axes"));
    TEAM_CHECK(!exchange);
    peal_session_destroy(session);
    return 0;
}

/* Process 1 leaves after one exchange less: process 0 gives up, with the edge that it waited for.
 */
static int member_stops_early(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange;
    TEAM_CHECK(job_open(team, process, process == 0 ? 0.5 : 60, &session) == PEAL_STATUS_OK);
    peal_halo_desc desc = line_of(session, 10);
    TEAM_CHECK(peal_exchange_create_desc(session, &desc, &exchange) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_start(exchange, 0, NULL) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_OK);
    if (process == 0) {
        TEAM_CHECK(peal_exchange_start(exchange, 0, NULL) == PEAL_STATUS_OK);
        TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_DEADLINE);
        TEAM_CHECK(job_reported(session, PEAL_E_BORDER_LATE, "the border of process 1"));
    }
    TEAM_CHECK(peal_exchange_destroy(exchange) == PEAL_STATUS_DEADLINE);
    peal_session_destroy(session);
    return 0;
}

/* A process that has nothing to say: the others hear of it, and nobody waits. */
static int member_says_nothing(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange = NULL;
    TEAM_CHECK(job_open(team, process, 60, &session) == PEAL_STATUS_OK);
    for (int round = 0; round < 2; round++) {
        peal_halo_desc desc = line_of(session, 9);
        peal_status status = process == 0 ? peal_exchange_create_desc(session, &desc, &exchange)
                                          : peal_exchange_create_desc(session, round ? &desc : NULL,
                                                                      round ? NULL : &exchange);
        TEAM_CHECK(status == PEAL_STATUS_USAGE && !exchange);
        TEAM_CHECK(job_reported(session,
                                process ? PEAL_E_INVALID_DESCRIPTOR : PEAL_E_PEER_CALL_FAILED,
                                round ? "where the exchange goes is NULL" : "desc is NULL"));
    }
    peal_session_destroy(session);
    return 0;
}

static void differing_processes(void **state)
{
    (void)state;
    job_run_all(2, member_differs);
    job_run_all(2, member_says_nothing);
}

static int member_lost(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_halo_desc desc = line_of(session, 1000);
    desc.periodic[0] = true;
    TEAM_CHECK(peal_exchange_create_desc(session, &desc, &exchange) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_start(exchange, 0, NULL) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_OK);
    job_pass_together(team, process);
    if (process == 1)
        raise(SIGKILL);
    peal_status status = PEAL_STATUS_OK;
    for (int round = 0; !status && round < 10; round++) {
        status = peal_exchange_start(exchange, 0, NULL);
        if (!status)
            status = peal_exchange_wait(exchange);
    }
    TEAM_CHECK(status == PEAL_STATUS_PEER_LOST);
    TEAM_CHECK(peal_exchange_start(exchange, 0, NULL) == PEAL_STATUS_PEER_LOST);
    TEAM_CHECK(peal_exchange_destroy(exchange) == PEAL_STATUS_PEER_LOST);
    peal_session_destroy(session);
    return 0;
}

static void faults(void **state)
{
    (void)state;
    job_run_all_but(2, 1, member_lost);
    job_run_all(2, member_stops_early);
}

static void refuse(peal_session *session, peal_halo_desc desc, const char *text)
{
    peal_exchange *exchange = NULL;
    assert_int_equal(peal_exchange_create_desc(session, &desc, &exchange), PEAL_STATUS_USAGE);
    assert_null(exchange);
    assert_true(job_reported(session, PEAL_E_INVALID_EXCHANGE, text));
}

static void refused_descriptors(peal_session *session)
{
    static double memory[100];
    const peal_halo_desc good = line_of(session, 20);
    peal_exchange *none = NULL;
    peal_halo_desc bad = good;
    bad.size_bytes = 12;
    assert_int_equal(peal_exchange_create_desc(session, &bad, &none), PEAL_STATUS_USAGE);
    assert_true(job_reported(session, PEAL_E_INVALID_DESCRIPTOR, NULL));
#define REFUSED(text, ...)                                                                         \
    do {                                                                                           \
        bad = good;                                                                                \
        __VA_ARGS__;                                                                               \
        refuse(session, bad, text);                                                                \
    } while (0)
    REFUSED("5 axes", bad.axis_count = 5);
    REFUSED("axis 1 of 1 is periodic", bad.periodic[1] = true);
    REFUSED("neither memory nor a width", bad.field[0].width[0][0] = bad.field[0].width[0][1] = 0);
    REFUSED("memory, but no width", bad.field[1].data[0] = memory);
    REFUSED("width -1", bad.field[0].width[0][0] = -1);
    REFUSED("width 1 along axis 1 of 1", bad.field[0].width[1][0] = 1);
    REFUSED("axis 3, which is not cut", bad.axis_count = 4; bad.hi[1] = bad.hi[2] = bad.hi[3] = 4;
            bad.field[0].width[3][1] = 1);
    REFUSED("stores 1 points above", bad.field[0].data[0] = memory; bad.field[0].width[0][1] = 2;
            bad.field[0].halo[0][0] = bad.field[0].halo[0][1] = 1);
    REFUSED("peal allocates it", bad.field[0].halo[0][0] = 2);
    REFUSED("has strides", bad.field[0].stride[0] = 1);
    REFUSED("stride[0] = 2", bad.field[0].data[0] = memory; bad.field[0].stride[0] = 2);
    REFUSED("-3 components", bad.field[0].components = -3);
    REFUSED("has type 9", bad.field[0].type = (peal_type)9);
    REFUSED("stagger -1", bad.field[0].stagger[0] = -1);
    REFUSED("it is the first one", bad.field[0].data[0] = bad.field[0].data[1] = memory);
    REFUSED("owns no points along x: lo 0, hi 0", bad.hi[0] = 0);
    REFUSED("make up 20 points along x, process 0 expects 21", bad.extent[0] = 21);
    REFUSED("owns 20 points along x, of which its neighbour receives 21", bad.periodic[0] = true;
            bad.field[0].width[0][0] = 21);
    REFUSED("of 1073741824 components", bad.field[0].components = 1 << 30);
    REFUSED("as often as all components divide", bad.field[1] = bad.field[0];
            bad.field[0].components = 99991; bad.field[1].components = 99989);
    REFUSED("and 2147483649 beyond", bad.field[0].stagger[0] = INT32_MAX);
    REFUSED("field 2 comes behind", bad.field[2] = bad.field[0]);
    REFUSED("but no first one", bad.field[1] = bad.field[0]; bad.field[1].data[1] = memory);
    REFUSED("but no first one", bad.field[1].data[1] = memory);
    REFUSED("a halo along axis 3 of 1", bad.field[0].data[0] = memory; bad.field[0].halo[3][0] = 5;
            bad.field[0].halo[0][0] = bad.field[0].halo[0][1] = 1);
    REFUSED("stride -5 along axis 2", bad.field[0].data[0] = memory; bad.field[0].stride[2] = -5);
    assert_int_equal(peal_exchange_create_desc(session, NULL, &none), PEAL_STATUS_USAGE);
    assert_true(job_reported(session, PEAL_E_INVALID_DESCRIPTOR, "desc is NULL"));
#undef REFUSED
}

static void misuse(void **state)
{
    (void)state;
    peal_session *session;
    peal_exchange *exchange;
    assert_int_equal(peal_session_create(NULL, &session), PEAL_STATUS_OK);
    refused_descriptors(session);
    assert_int_equal(peal_exchange_create(session, &exchange, .axis_count = 1, .lo = {-3},
                                          .hi = {17}, .periodic = {true},
                                          .field = {{.width = {{1, 1}}}}),
                     PEAL_STATUS_OK);
    assert_int_equal(peal_exchange_wait(exchange), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_start(exchange, 1, NULL), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_start(exchange, 0, NULL), PEAL_STATUS_OK);
    assert_int_equal(peal_exchange_start(exchange, 0, NULL), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_wait(exchange), PEAL_STATUS_OK);
    peal_exchange_array array;
    assert_int_equal(peal_exchange_view(exchange, 1, &array), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_view(exchange, 0, &array), PEAL_STATUS_OK);
    assert_int_equal(array.lo[0], -3);
    assert_int_equal(array.hi[0], 17);
    char text[200];
    peal_exchange_describe(exchange, text, sizeof(text));
    assert_non_null(strstr(text, "1 process (1 x 1 x 1)"));
    assert_int_equal(peal_exchange_destroy(exchange), PEAL_STATUS_OK);
    assert_int_equal(peal_exchange_destroy(NULL), PEAL_STATUS_OK);
    peal_session_destroy(session);
}

static void limit_buffer(const peal_session *session, int other, int which, int bytes)
{
    int socket = session->network->opened->link[other]->socket;
    TEAM_CHECK(setsockopt(socket, SOL_SOCKET, which, &bytes, sizeof(bytes)) == 0);
}

/* Process 1 sends its border and stays away; that of process 0 does not fit into the sockets. */
static int member_does_not_take(test_team *team, int process)
{
    enum { LARGE = 20000 };
    peal_session *session;
    peal_exchange *exchange;
    TEAM_CHECK(job_open(team, process, process == 0 ? 0.5 : 60, &session) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_create(session, &exchange, .axis_count = 2, .lo = {0, 2 * process},
                                    .hi = {LARGE, 2 * process + 2},
                                    .field = {{.width = {{0}, {1, 1}}}}) == PEAL_STATUS_OK);
    limit_buffer(session, !process, process == 0 ? SO_SNDBUF : SO_RCVBUF, 4096);
    limit_buffer(session, !process, process == 0 ? SO_RCVBUF : SO_SNDBUF, 16 * LARGE);
    job_pass_together(team, process);
    TEAM_CHECK(peal_exchange_start(exchange, 0, NULL) == PEAL_STATUS_OK);
    if (process == 0) {
        TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_DEADLINE);
        TEAM_CHECK(
            job_reported(session, PEAL_E_BORDER_LATE, "has not taken what exchange 1 sends"));
    } else {
        while (!peal_session_status(session))
            usleep(1000);
    }
    TEAM_CHECK(peal_exchange_destroy(exchange) != PEAL_STATUS_OK);
    peal_session_destroy(session);
    return 0;
}

/* Messages between blocks of processes go over sockets. */
static void over_hosts(void **state)
{
    static const char *const hosts[] = {"2", "3"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setenv("PEAL_TEST_HOSTS", hosts[i], 1), 0);
        processes(state);
        faults(state);
        job_run_all(2, member_does_not_take);
    }
    unsetenv("PEAL_TEST_HOSTS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_hosts),
        cmocka_unit_test(processes),
        cmocka_unit_test(differing_processes),
        cmocka_unit_test(faults),
        cmocka_unit_test(misuse),
    };
    const struct CMUnitTest device_tests[] = {cmocka_unit_test(processes)};
    const char *backend = getenv("PEAL_TEST_BACKEND");
    on_device = backend && !strcmp(backend, "cuda");
    return on_device ? cmocka_run_group_tests(device_tests, NULL, NULL)
                     : cmocka_run_group_tests(tests, NULL, NULL);
}
