/* Faults planted in random graphs, one each: statements and declarations of their own, with lines
 * of a file of their own, somewhere in the step. Each has a sound twin that differs in what is
 * wrong alone. */
#include "tests/property/random_fault.h"

#include <stdio.h>
#include <string.h>

enum { TAG = 9000 };

/* Lines of the planted statements and declarations. */
enum { FIRST = 1, SECOND, THIRD, FOURTH, DECLARED };

static peal_source at(int line)
{
    return (peal_source){RANDOM_FAULT_FILE, line, 1};
}

static void nothing(const peal_call *call)
{
    (void)call;
}

/* ---- Messages ---- */

static void add_message(random_graph *g, bool outgoing, int line, const char *array,
                        const char *peer, int tag, const char *when)
{
    char number[16];
    sprintf(number, "%d", TAG + tag);
    peal_message_desc d = {.size_bytes = sizeof(d),
                           .source = at(line),
                           .tag = number,
                           .when = when};
    *(outgoing ? &d.send : &d.recv) = (peal_points_desc){.name = array};
    *(outgoing ? &d.to : &d.from) = peer;
    random_say(g, "- %s %s %s %s tag %s when %s # planted, line %d\n", outgoing ? "send" : "recv",
               array, outgoing ? "to" : "from", peer, number, when ? when : "-", line);
    (outgoing ? peal_graph_add_send_desc : peal_graph_add_recv_desc)(g->graph, &d);
}

static void add_send(random_graph *g, int line, const char *array)
{
    add_message(g, true, line, array, g->plant.up, 0, g->plant.when);
}

static void add_recv(random_graph *g, int line, const char *array)
{
    add_message(g, false, line, array, g->plant.down, 0, g->plant.when);
}

static void plant_no_recv(random_graph *g, bool sound)
{
    add_send(g, FIRST, "pa");
    if (sound)
        add_recv(g, SECOND, "pb");
}

static void plant_no_send(random_graph *g, bool sound)
{
    if (sound)
        add_send(g, SECOND, "pa");
    add_recv(g, FIRST, "pb");
}

/* One rank of all does not receive; in the twin nobody sends to it. */
static void plant_silent_rank(random_graph *g, bool sound)
{
    char sends[64], receives[64];
    sprintf(sends, "rank != %d", g->plant.before);
    sprintf(receives, "rank != %d", g->plant.rank);
    add_message(g, true, FIRST, "pa", g->plant.up, 0, sound ? sends : NULL);
    add_message(g, false, SECOND, "pb", g->plant.down, 0, receives);
}

static void plant_other_tag(random_graph *g, bool sound)
{
    add_send(g, FIRST, "pa");
    add_message(g, false, SECOND, "pb", g->plant.down, !sound, g->plant.when);
}

static void plant_other_peer(random_graph *g, bool sound)
{
    add_send(g, FIRST, "pa");
    add_message(g, false, SECOND, "pb", sound ? g->plant.down : g->plant.up, 0, g->plant.when);
}

static void direction_text(const random_graph *g, int step, char text[32])
{
    int direction[3] = {0};
    direction[g->plant.axis] = step;
    random_per_axis(g, direction, text);
}

static void plant_other_direction(random_graph *g, bool sound)
{
    char to[32], from[32];
    direction_text(g, 1, to);
    direction_text(g, sound ? -1 : 1, from);
    add_message(g, true, FIRST, "pa", to, 0, g->plant.when);
    add_message(g, false, SECOND, "pb", from, 0, g->plant.when);
}

static void plant_two_sends(random_graph *g, bool sound)
{
    add_send(g, FIRST, "pa");
    add_message(g, true, SECOND, "pa", g->plant.up, sound, g->plant.when);
    add_recv(g, THIRD, "pb");
    if (sound)
        add_message(g, false, FOURTH, "pc", g->plant.down, 1, g->plant.when);
}

static void plant_two_recvs(random_graph *g, bool sound)
{
    add_send(g, THIRD, "pa");
    if (sound)
        add_message(g, true, FOURTH, "pa", g->plant.up, 1, g->plant.when);
    add_recv(g, FIRST, "pb");
    add_message(g, false, SECOND, "pc", g->plant.down, sound, g->plant.when);
}

static void plant_other_size(random_graph *g, bool sound)
{
    add_send(g, FIRST, "pa");
    add_recv(g, SECOND, sound ? "pb" : "longer");
}

static void plant_other_type(random_graph *g, bool sound)
{
    add_send(g, FIRST, "pa");
    add_recv(g, SECOND, sound ? "pb" : "whole_numbers");
}

/* What one end counts in 32 bits the other counts in 64. */
static void plant_other_count(random_graph *g, bool sound)
{
    peal_message_desc d = {.size_bytes = sizeof(d),
                           .source = at(FIRST),
                           .send = {.name = "pa"},
                           .to = g->plant.up,
                           .tag = "9000",
                           .count = "narrow",
                           .when = g->plant.when};
    random_say(g, "- send pa to %s, counted # planted\n", d.to);
    peal_graph_add_send_desc(g->graph, &d);
    d.send.name = d.to = NULL;
    d.source = at(SECOND);
    d.recv.name = "pb";
    d.from = g->plant.down;
    d.count = sound ? "narrow_too" : "counts64";
    peal_graph_add_recv_desc(g->graph, &d);
}

static void plant_other_loop(random_graph *g, bool sound)
{
    add_message(g, true, FIRST, "pa", g->plant.up, 0, NULL);
    if (!sound)
        peal_graph_begin_repeat(g->graph, .repeat = "1", .as = "planted");
    add_message(g, false, SECOND, "pb", g->plant.down, 0, NULL);
    if (!sound)
        peal_graph_end_repeat(g->graph);
}

static void plant_other_condition(random_graph *g, bool sound)
{
    add_message(g, true, FIRST, "pa", g->plant.up, 0, sound ? "step % 2 == 1" : NULL);
    add_message(g, false, SECOND, "pb", g->plant.down, 0, "step % 2 == 1");
}

static void plant_circle(random_graph *g, bool sound)
{
    if (sound)
        add_send(g, SECOND, "pa");
    add_recv(g, FIRST, "pb");
    if (!sound)
        add_send(g, SECOND, "pa");
}

/* Two neighbours that both receive first; in the twin one of them sends first. */
static void plant_crossing(random_graph *g, bool sound)
{
    char one[32], other[32], here[64], there[64];
    int next = (g->plant.rank + 1) % g->ranks;
    sprintf(one, "%d", g->plant.rank);
    sprintf(other, "%d", next);
    sprintf(here, "rank == %d", g->plant.rank);
    sprintf(there, "rank == %d", next);
    if (sound)
        add_message(g, true, FOURTH, "pa", one, 1, there);
    add_message(g, false, FIRST, "pb", other, 1, here);
    add_message(g, false, SECOND, "pc", one, 0, there);
    add_message(g, true, THIRD, "pa", other, 0, here);
    if (!sound)
        add_message(g, true, FOURTH, "pa", one, 1, there);
}

/* A pipeline: along an axis that ends it has a first rank. */
static void plant_pipeline(random_graph *g, bool sound)
{
    char to[32], from[32];
    (void)sound;
    direction_text(g, 1, to);
    direction_text(g, -1, from);
    add_message(g, false, FIRST, "pb", from, 0, g->plant.when);
    add_message(g, true, SECOND, "pa", to, 0, g->plant.when);
}

static void plant_no_such_rank(random_graph *g, bool sound)
{
    add_message(g, true, FIRST, "pa", sound ? "(rank + 1) % ranks" : "rank + 1", 0, NULL);
    add_message(g, false, SECOND, "pb", "(rank - 1) % ranks", 0, NULL);
}

static void plant_offsets(random_graph *g, bool sound)
{
    peal_message_desc d = {.size_bytes = sizeof(d),
                           .source = at(FIRST),
                           .send = {.name = "pa"},
                           .to = "all",
                           .tag = "9000",
                           .offsets = sound ? "1" : "4"};
    random_say(g, "- send pa to all, offsets %s # planted\n", d.offsets);
    peal_graph_add_send_desc(g->graph, &d);
    d.send.name = NULL;
    d.to = NULL;
    d.source = at(SECOND);
    d.recv.name = "room";
    d.from = "all";
    d.offsets = sound ? "1" : "4";
    peal_graph_add_recv_desc(g->graph, &d);
}

static void plant_reduction(random_graph *g, bool sound)
{
    peal_graph_add_allreduce_desc(
        g->graph,
        &(peal_rank_reduce_desc){.size_bytes = sizeof(peal_rank_reduce_desc),
                                 .source = at(FIRST),
                                 .reduce = {{.name = sound ? "pa" : "uneven", .combine = "sum"}}});
}

/* One rank leaves out what all others take part in. */
static const char *random_absence(random_graph *g, bool sound, char text[64])
{
    sprintf(text, "rank != %d", sound ? g->ranks : g->plant.rank);
    return text;
}

static void plant_absent_exchange(random_graph *g, bool sound)
{
    char when[64];
    peal_exchange_desc d = {.size_bytes = sizeof(d),
                            .source = at(FIRST),
                            .exchange = {{.name = "pf"}},
                            .when = random_absence(g, sound, when)};
    peal_graph_add_exchange_desc(g->graph, &d);
}

static void plant_absent_reduction(random_graph *g, bool sound)
{
    char when[64];
    peal_rank_reduce_desc d = {.size_bytes = sizeof(d),
                               .source = at(FIRST),
                               .reduce = {{.name = "one", .combine = "sum"}},
                               .along = g->dims[0] > 1 ? "x" : NULL,
                               .when = random_absence(g, sound, when)};
    peal_graph_add_allreduce_desc(g->graph, &d);
}

/* Rows of ranks may differ from each other, not the ranks of a row. */
static void plant_uneven_row(random_graph *g, bool sound)
{
    peal_rank_reduce_desc d = {.size_bytes = sizeof(d),
                               .source = at(FIRST),
                               .reduce = {{.name = sound ? "by_row" : "by_rank", .combine = "sum"}},
                               .along = "x"};
    peal_graph_add_allreduce_desc(g->graph, &d);
}

/* ---- Tasks and fields ---- */

static void add_task(random_graph *g, int line, peal_task_desc d)
{
    d.size_bytes = sizeof(d);
    d.source = at(line);
    d.name = "planted";
    d.function = nothing;
    random_say(g, "- task planted # line %d\n", line);
    peal_graph_add_task_desc(g->graph, &d);
}

static void plant_wide_footprint(random_graph *g, bool sound)
{
    add_task(g, FIRST,
             (peal_task_desc){.box = {.name = "pf"},
                              .read = {{.name = "pf", .star = sound ? "1" : "2"}},
                              .write = {{.name = "pg"}}});
}

static void plant_box_outside(random_graph *g, bool sound)
{
    char box[64];
    sprintf(box, "[[0, %d]]", g->size[0] + 2 * !sound);
    add_task(g, FIRST,
             (peal_task_desc){.box = {.name = "pg", .box = box}, .write = {{.name = "pg"}}});
}

/* Tiles read what their neighbours write; the twin promises that they do not. */
static void plant_tiles(random_graph *g, bool sound)
{
    add_task(g, FIRST,
             (peal_task_desc){.box = {.name = "pf"},
                              .tile = "[1]",
                              .update = {{.name = "pf", .star = "1", .stale_ok = true}},
                              .independent = sound});
}

static void plant_argument(random_graph *g, bool sound)
{
    add_task(g, FIRST,
             (peal_task_desc){.box = {.name = "pf"},
                              .update = {{.name = "one"}, {.name = "pf"}},
                              .tile = sound ? "whole" : NULL,
                              .independent = !sound,
                              .args = {"one + 1.0"}});
}

/* Between the exchange and the reader the field changes; the twin exchanges after that. */
static void plant_stale(random_graph *g, bool sound)
{
    peal_exchange_desc d = {.size_bytes = sizeof(d),
                            .source = at(FIRST),
                            .exchange = {{.name = "pf"}}};
    if (!sound)
        peal_graph_add_exchange_desc(g->graph, &d);
    add_task(g, SECOND, (peal_task_desc){.box = {.name = "pf"}, .write = {{.name = "pf"}}});
    if (sound)
        peal_graph_add_exchange_desc(g->graph, &d);
    add_task(g, THIRD,
             (peal_task_desc){.box = {.name = "pf"},
                              .read = {{.name = "pf", .star = "1"}},
                              .write = {{.name = "pg"}}});
}

static void add_field(random_graph *g, const char *name, const char *size, const char *halo)
{
    peal_graph_add_field_desc(g->graph, &(peal_field_desc){.size_bytes = sizeof(peal_field_desc),
                                                           .source = at(DECLARED),
                                                           .name = name,
                                                           .size = size,
                                                           .halo = halo});
}

static void add_buffer(random_graph *g, const char *name, const char *type, const char *count)
{
    peal_graph_add_buffer_desc(g->graph, &(peal_buffer_desc){.size_bytes = sizeof(peal_buffer_desc),
                                                             .source = at(DECLARED),
                                                             .name = name,
                                                             .type = type,
                                                             .count = count});
}

static void declare_wide_halo(random_graph *g, bool sound)
{
    char size[64], halo[16];
    sprintf(halo, "%d", sound ? 1 : g->size[g->plant.axis] / g->dims[g->plant.axis] + 1);
    add_field(g, "wide", random_per_axis(g, g->size, size), halo);
}

static void declare_huge(random_graph *g, bool sound)
{
    add_buffer(g, "huge", "f64", sound ? "2" : "4611686018427387904");
    random_say(g, "huge: %s\n", sound ? "small" : "overflows");
}

/* ---- The list ---- */

static bool fits_any(const random_graph *g)
{
    (void)g;
    return true;
}

static bool fits_several(const random_graph *g)
{
    return g->ranks > 1;
}

static bool fits_three(const random_graph *g)
{
    return g->ranks > 2 || g->plant.up[0] == '[';
}

static bool fits_neighbours(const random_graph *g)
{
    return g->dims[g->plant.axis] > 1 || g->periodic[g->plant.axis];
}

static bool fits_pipeline(const random_graph *g)
{
    return g->plant.sound ? g->dims[g->plant.axis] > 1 && !g->periodic[g->plant.axis]
                          : g->periodic[g->plant.axis];
}

static bool fits_cut(const random_graph *g)
{
    return g->dims[g->plant.axis] > 1;
}

static bool fits_rows(const random_graph *g)
{
    return g->dims[0] > 1;
}

const random_fault random_faults[] = {
    {"a send without recv", PEAL_E_UNMATCHED_MESSAGE, {FIRST}, fits_any, NULL, plant_no_recv},
    {"a recv without send", PEAL_E_UNMATCHED_MESSAGE, {FIRST}, fits_any, NULL, plant_no_send},
    {"one rank that does not receive",
     PEAL_E_UNMATCHED_MESSAGE,
     {FIRST},
     fits_several,
     NULL,
     plant_silent_rank},
    {"tags that differ",
     PEAL_E_UNMATCHED_MESSAGE,
     {FIRST, SECOND},
     fits_any,
     NULL,
     plant_other_tag},
    {"peers that differ",
     PEAL_E_UNMATCHED_MESSAGE,
     {FIRST, SECOND},
     fits_three,
     NULL,
     plant_other_peer},
    {"directions that differ",
     PEAL_E_UNMATCHED_MESSAGE,
     {FIRST, SECOND},
     fits_neighbours,
     NULL,
     plant_other_direction},
    {"two sends with one tag",
     PEAL_E_DUPLICATE_TAG,
     {FIRST, SECOND},
     fits_any,
     NULL,
     plant_two_sends},
    {"two recvs with one tag",
     PEAL_E_DUPLICATE_TAG,
     {FIRST, SECOND},
     fits_any,
     NULL,
     plant_two_recvs},
    {"sizes that differ", PEAL_E_MESSAGE_SIZE_MISMATCH, {FIRST}, fits_any, NULL, plant_other_size},
    {"types that differ", PEAL_E_MESSAGE_TYPE_MISMATCH, {FIRST}, fits_any, NULL, plant_other_type},
    {"counts that differ",
     PEAL_E_MESSAGE_COUNT_MISMATCH,
     {FIRST},
     fits_any,
     NULL,
     plant_other_count},
    {"send and recv in two loops",
     PEAL_E_MESSAGE_LOOP_MISMATCH,
     {FIRST},
     fits_any,
     NULL,
     plant_other_loop},
    {"conditions that differ",
     PEAL_E_MESSAGE_CONDITION_MISMATCH,
     {FIRST},
     fits_any,
     NULL,
     plant_other_condition},
    {"a circle of ranks that receive first",
     PEAL_E_DEADLOCK,
     {FIRST},
     fits_any,
     NULL,
     plant_circle},
    {"two ranks that receive first",
     PEAL_E_DEADLOCK,
     {FIRST, SECOND},
     fits_several,
     NULL,
     plant_crossing},
    {"a pipeline that bites its tail",
     PEAL_E_DEADLOCK,
     {FIRST},
     fits_pipeline,
     NULL,
     plant_pipeline},
    {"a rank that is not there", PEAL_E_NO_SUCH_RANK, {FIRST}, fits_any, NULL, plant_no_such_rank},
    {"offsets outside the buffer",
     PEAL_E_OFFSETS_OUT_OF_BOUNDS,
     {FIRST, SECOND},
     fits_several,
     NULL,
     plant_offsets},
    {"a reduction of uneven buffers",
     PEAL_E_REDUCTION_MISMATCH,
     {FIRST},
     fits_several,
     NULL,
     plant_reduction},
    {"a rank that skips an exchange",
     PEAL_E_UNMATCHED_MESSAGE,
     {FIRST},
     fits_several,
     NULL,
     plant_absent_exchange},
    {"a rank that skips a reduction",
     PEAL_E_UNMATCHED_MESSAGE,
     {FIRST},
     fits_several,
     NULL,
     plant_absent_reduction},
    {"a reduction of an uneven row",
     PEAL_E_REDUCTION_MISMATCH,
     {FIRST},
     fits_rows,
     NULL,
     plant_uneven_row},
    {"a footprint outside the halo",
     PEAL_E_HALO_TOO_NARROW,
     {FIRST},
     fits_any,
     NULL,
     plant_wide_footprint},
    {"a box outside the field",
     PEAL_E_BOX_OUT_OF_BOUNDS,
     {FIRST},
     fits_any,
     NULL,
     plant_box_outside},
    {"tiles that collide", PEAL_E_TILES_COLLIDE, {FIRST}, fits_any, NULL, plant_tiles},
    {"an argument that tiles change",
     PEAL_E_ARGUMENT_CHANGED_BY_TILES,
     {FIRST},
     fits_any,
     NULL,
     plant_argument},
    {"a halo that is read too late",
     PEAL_E_STALE_HALO,
     {THIRD},
     fits_neighbours,
     NULL,
     plant_stale},
    {"a halo wider than a part",
     PEAL_E_HALO_TOO_WIDE,
     {DECLARED},
     fits_cut,
     declare_wide_halo,
     NULL},
    {"an extent that overflows",
     PEAL_E_SIZE_OUT_OF_RANGE,
     {DECLARED},
     fits_any,
     declare_huge,
     NULL},
};
const int random_fault_count = sizeof(random_faults) / sizeof(random_faults[0]);

void random_plant_declare(random_graph *g)
{
    char size[64], room[32];
    const random_plant *p = &g->plant;
    random_per_axis(g, g->size, size);
    sprintf(room, "4 * ranks");
    add_buffer(g, "pa", "f64", "ranks + 3");
    add_buffer(g, "pb", "f64", "ranks + 3");
    add_buffer(g, "pc", "f64", "ranks + 3");
    add_buffer(g, "longer", "f64", "ranks + 4");
    add_buffer(g, "whole_numbers", "i64", "ranks + 3");
    add_buffer(g, "narrow", "i32", "1");
    add_buffer(g, "narrow_too", "i32", "1");
    add_buffer(g, "counts64", "i64", "1");
    add_buffer(g, "room", "f64", room);
    add_buffer(g, "uneven", "f64", "1 + rank % 2");
    add_buffer(g, "by_rank", "f64", "1 + rx");
    add_buffer(g, "by_row", "f64", "1 + ry + rz");
    add_buffer(g, "one", "f64", "1");
    add_field(g, "pf", size, "1");
    add_field(g, "pg", size, "0");
    if (p->fault->declare)
        p->fault->declare(g, p->sound);
}

void random_plant_somewhere(random_graph *g, bool last)
{
    random_plant *p = &g->plant;
    if (!p->fault || p->done || g->in_setup || (!last && random_below(&p->state, 4)))
        return;
    p->done = true;
    if (p->fault->plant)
        p->fault->plant(g, p->sound);
}

/* Around the ring of ranks, or along a periodic axis, where everybody has neighbours, too. */
static void choose_peers(random_graph *g)
{
    random_plant *p = &g->plant;
    int stride = 1, dims = g->dims[p->axis];
    for (int k = 0; k < p->axis; k++)
        stride *= g->dims[k];
    strcpy(p->up, "(rank + 1) % ranks");
    strcpy(p->down, "(rank - 1) % ranks");
    p->before = (p->rank + g->ranks - 1) % g->ranks;
    if (!g->periodic[p->axis] || random_below(&p->state, 3) == 0)
        return;
    direction_text(g, 1, p->up);
    direction_text(g, -1, p->down);
    p->before = p->rank / stride % dims ? p->rank - stride : p->rank + (dims - 1) * stride;
    p->plain = random_below(&p->state, 3) > 0;
}

bool random_plant_choose(random_graph *g, uint64_t seed, const random_fault *fault, bool sound)
{
    static const char *const conditions[] = {NULL, NULL, "step % 2 == 0", "step > 1"};
    random_plant *p = &g->plant;
    *p = (random_plant){.fault = fault, .sound = sound, .state = seed * 0x9e3779b97f4a7c15u + 7};
    p->rank = random_below(&p->state, g->ranks);
    p->axis = random_below(&p->state, g->axis_count);
    p->when = conditions[random_below(&p->state, 4)];
    choose_peers(g);
    return fault->fits(g);
}
