/* The exchange alone, over processes: random grids, cut anywhere, with processes in any order and
 * fields of all kinds in peal's memory and in the caller's. Every stored point is compared with
 * what its owner has. With PEAL_TEST_BACKEND=cuda in a GPU's memory, and nothing else. */
#define _GNU_SOURCE
#include "tests/runtime/device_memory.h"
#include "tests/runtime/job.h"
#include "tests/share/share.h"

#include <peal/exchange.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

/* The caller's memory: dense, or with rows and planes longer than needed. */
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

/* Messages between blocks of processes go over sockets. */
static void over_hosts(void **state)
{
    static const char *const hosts[] = {"2", "3"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setenv("PEAL_TEST_HOSTS", hosts[i], 1), 0);
        processes(state);
    }
    unsetenv("PEAL_TEST_HOSTS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(over_hosts), cmocka_unit_test(processes)};
    const struct CMUnitTest device_tests[] = {cmocka_unit_test(processes)};
    const char *backend = getenv("PEAL_TEST_BACKEND");
    on_device = backend && !strcmp(backend, "cuda");
    return on_device ? cmocka_run_group_tests(device_tests, NULL, NULL)
                     : cmocka_run_group_tests(tests, NULL, NULL);
}
