/* Random communication: exchanges, messages of fields, of buffers with a box, of vectors with
 * offsets, and reductions over ranks. */
#include "tests/property/random_internal.h"

#include <stdio.h>
#include <string.h>

/* Of no peer more than two elements, which each block has; of the last ones of `all` at most one.
 */
static void add_counts(random_graph *g)
{
    char two[160], one[160];
    int twos = sprintf(two, "["), ones = sprintf(one, "[");
    for (int i = 0; i < (g->ranks > 2 ? g->ranks : 2); i++) {
        twos += sprintf(two + twos, "%s(rank + %d) %% 3", i ? ", " : "", i);
        ones += sprintf(one + ones, "%s(rank + %d) %% 2", i ? ", " : "", i);
    }
    sprintf(two + twos, "]");
    sprintf(one + ones, "]");
    peal_graph_add_buffer(g->graph, .name = "some", .type = "i32", .values = two);
    peal_graph_add_buffer(g->graph, .name = "few", .type = "i32", .values = one);
    peal_graph_add_buffer(g->graph, .name = "got", .type = "i32", .count = "ranks + 2",
                          .keep = true);
}

/* s: the scalar that decides; r: partial results; v, w: vectors, sent from v into w; pt: an element
 * a tile; next, previous, at, both: constant lists for messages around the ring of ranks; c: how
 * many elements of v a task visits; some: how many of them go to each peer; got: have come. */
void random_add_buffers(random_graph *g)
{
    char count[16], border[32], halo[32];
    int way[3] = {0}, back[3] = {0};
    bool ring = g->ranks > 2;
    g->vector_count = random_chance(g, 30) ? 1030 : 6 + random_below(&g->state, 30);
    sprintf(count, "%d", g->vector_count);
    random_say(g, "v, w: %s elements\n", count);
    peal_graph_add_buffer(g->graph, .name = "s", .keep = true);
    peal_graph_add_buffer(g->graph, .name = "r", .keep = true);
    peal_graph_add_buffer(g->graph, .name = "v", .count = count, .keep = true);
    peal_graph_add_buffer(g->graph, .name = "w", .count = count, .keep = true);
    peal_graph_add_buffer(g->graph, .name = "pt", .count = "2000", .keep = true);
    const char *up = "(rank + 1) % ranks", *down = "(rank + ranks - 1) % ranks";
    char to[80], from[80];
    sprintf(to, ring ? "[%s, %s]" : "[%s]", up, down);
    sprintf(from, ring ? "[%s, %s]" : "[%s]", down, up);
    if (!g->plant.plain) {
        peal_graph_add_buffer(g->graph, .name = "to", .type = "i32", .values = to);
        peal_graph_add_buffer(g->graph, .name = "from", .type = "i32", .values = from);
        peal_graph_add_buffer(g->graph, .name = "at", .type = "i64",
                              .values = ring ? "[0, 4, 6]" : "[1, 6]");
    }
    peal_graph_add_buffer(g->graph, .name = "c", .type = "i64", .keep = true);
    add_counts(g);
    g->box_axis = random_below(&g->state, g->axis_count);
    g->box_side = random_chance(g, 50) ? 1 : -1;
    way[g->box_axis] = g->box_side;
    back[g->box_axis] = -g->box_side;
    random_per_axis(g, way, border);
    random_per_axis(g, back, halo);
    const char *type = peal_type_name(g->field[0].type);
    peal_graph_add_buffer(g->graph, .name = "out", .type = type,
                          .box = {.name = "f0", .border = border});
    peal_graph_add_buffer(g->graph, .name = "in", .type = type,
                          .box = {.name = "f0", .halo = halo});
}

enum { LONGEST_TURN = 80 };

static const char *next_tag(random_graph *g, char *text)
{
    sprintf(text, "%d", ++g->tag_count);
    return text;
}

static const char *random_combine(random_graph *g)
{
    static const char *const combine[] = {"sum", "min", "max"};
    return combine[random_below(&g->state, 3)];
}

void random_add_exchange(random_graph *g, const char *when)
{
    char texts[FIELDS][96];
    peal_exchange_desc d = {.size_bytes = sizeof(d), .source = PEAL_HERE, .when = when};
    int count = 0;
    peal_type type = PEAL_F64;
    random_say(g, "- exchange");
    for (int i = 0; i < g->field_count; i++) {
        if (count && !random_chance(g, 40))
            continue;
        if (count && type != g->field[i].type)
            random_use(g, F_TYPES_MIXED);
        type = g->field[i].type;
        d.exchange[count].name = g->field[i].name;
        if (random_chance(g, 20)) {
            int part[PEAL_AXES][2] = {{0}};
            for (int k = 0; k < g->axis_count; k++)
                for (int side = 0; side < 2; side++)
                    part[k][side] = random_below(&g->state, g->field[i].halo[k][side] + 1);
            *(random_chance(g, 50) ? &d.exchange[count].star : &d.exchange[count].grow) =
                random_per_side(g, part, texts[count]);
        }
        random_say(g, " %s %s", d.exchange[count].name,
                   d.exchange[count].star   ? d.exchange[count].star
                   : d.exchange[count].grow ? d.exchange[count].grow
                                            : "all");
        count++;
    }
    random_say(g, " when %s\n", when ? when : "-");
    peal_graph_add_exchange_desc(g->graph, &d);
}

/* Conditions of both ends, by which ranks along an axis send in turns: one has the place of the
 * rank that sends, the other that of the rank against the direction. By the tag, so that the graphs
 * of seeds stay what they are else. */
static void add_turns(random_graph *g, const char *when, int axis, int side,
                      char text[2][LONGEST_TURN], const char *ends[2])
{
    const char *const counter = g->depth ? "k" : "step";
    char name = "xyz"[axis];
    ends[0] = ends[1] = when;
    if (when || (g->in_setup && !g->depth) || g->plant.plain || g->tag_count % 2)
        return;
    sprintf(text[0], "(%s + r%c) %% 2 == 0 and rank >= 0", counter, name);
    sprintf(text[1], "(%s + (r%c + R%c + %d) %% R%c) %% 2 == 0", counter, name, name, -side, name);
    ends[0] = text[0];
    ends[1] = text[1];
    random_use(g, F_TURNS);
}

void random_add_field_message(random_graph *g, const char *when)
{
    char to[64], from[64], tag[16], turns[2][LONGEST_TURN];
    const char *ends[2];
    int direction[3] = {0, 0, 0}, back[3], axis = random_below(&g->state, g->axis_count);
    const random_field *f = &g->field[random_below(&g->state, g->field_count)];
    direction[axis] = random_chance(g, 50) ? 1 : -1;
    for (int k = 0; k < 3; k++)
        back[k] = -direction[k];
    random_per_axis(g, direction, to);
    random_per_axis(g, back, from);
    next_tag(g, tag);
    add_turns(g, when, axis, direction[axis], turns, ends);
    random_say(g, "- send %s border %s, recv halo %s when %s, %s\n", f->name, to, from,
               ends[0] ? ends[0] : "-", ends[1] ? ends[1] : "-");
    peal_graph_add_send(g->graph, .send = {.name = f->name, .border = to}, .to = to, .tag = tag,
                        .when = ends[0]);
    if (random_chance(g, 50))
        random_add_task(g, NULL);
    peal_graph_add_recv(g->graph, .recv = {.name = f->name, .halo = from}, .from = from, .tag = tag,
                        .when = ends[1]);
    random_use(g, F_FIELD_MESSAGE);
}

/* Copies between f0 and a buffer with a box of f0's. */
static void add_packing(random_graph *g, const char *when, const char *read, const char *write,
                        const char *border, const char *halo)
{
    char kernel[KERNEL_NAME];
    mix_task *t = random_new_task(g);
    if (!t)
        return;
    t->read_count = t->write_count = 1;
    t->view[0].type = t->view[1].type = g->field[0].type;
    t->view[strcmp(read, "f0") ? 1 : 0].components = g->field[0].components;
    peal_graph_add_task(g->graph, .name = "pack", .kernel = random_kernel_name(g, t, kernel),
                        .function = random_function(g), .user = t,
                        .box = {.name = "f0", .border = border, .halo = halo},
                        .read = {{.name = read}}, .write = {{.name = write}}, .when = when);
}

void random_add_packed_message(random_graph *g, const char *when)
{
    char to[32], from[32], tag[16], turns[2][LONGEST_TURN];
    const char *ends[2];
    int way[3] = {0}, back[3] = {0};
    way[g->box_axis] = g->box_side;
    back[g->box_axis] = -g->box_side;
    random_per_axis(g, way, to);
    random_per_axis(g, back, from);
    if (g->task_count + 2 > TASKS)
        return;
    next_tag(g, tag);
    add_turns(g, when, g->box_axis, g->box_side, turns, ends);
    random_say(g, "- pack f0 border %s, send, recv, unpack when %s, %s\n", to,
               ends[0] ? ends[0] : "-", ends[1] ? ends[1] : "-");
    add_packing(g, ends[0], "f0", "out", to, NULL);
    peal_graph_add_send(g->graph, .send = {.name = "out"}, .to = to, .tag = tag, .when = ends[0]);
    peal_graph_add_recv(g->graph, .recv = {.name = "in"}, .from = from, .tag = tag,
                        .when = ends[1]);
    add_packing(g, ends[1], "in", "f0", NULL, from);
    random_use(g, F_BOX_BUFFER);
}

/* In a loop of more rounds than a channel has slots: one message of a field along the way. */
static void add_swept_message(random_graph *g, const char *to, const char *from)
{
    const random_field *f = &g->field[random_below(&g->state, g->field_count)];
    char tag[16];
    sprintf(tag, "%d", 500 + ++g->sweep_tags);
    random_say(g, "- send %s border %s, recv halo %s\n", f->name, to, from);
    peal_graph_add_send(g->graph, .send = {.name = f->name, .border = to}, .to = to, .tag = tag);
    peal_graph_add_recv(g->graph, .recv = {.name = f->name, .halo = from}, .from = from,
                        .tag = tag);
}

/* Ranks that go through a loop one after the other, along an axis with ends: each receives above
 * the loop what the one before sends below it. Random numbers are its own, so that the graphs of
 * seeds stay what they are else. */
void random_add_sweep(random_graph *g)
{
    int way[3] = {0}, back[3] = {0};
    char to[32], from[32], rounds[16], tag[16];
    if (g->plant.fault || random_below(&g->sweep_state, 3) || g->periodic[g->box_axis] ||
        g->task_count + 3 > TASKS)
        return;
    uint64_t state = g->state;
    g->state = g->sweep_state;
    way[g->box_axis] = g->box_side;
    back[g->box_axis] = -g->box_side;
    random_per_axis(g, way, to);
    random_per_axis(g, back, from);
    sprintf(rounds, "%d", 3 + random_below(&g->state, 4));
    sprintf(tag, "%d", 500 + ++g->sweep_tags);
    random_say(g, "- recv in, unpack f0 halo %s\n- repeat %s\n", from, rounds);
    peal_graph_add_recv(g->graph, .recv = {.name = "in"}, .from = from, .tag = tag);
    add_packing(g, NULL, "in", "f0", NULL, from);
    peal_graph_begin_repeat(g->graph, .repeat = rounds, .as = g->depth ? "l" : "k");
    g->depth++;
    g->last_label[0] = 0;
    add_swept_message(g, to, from);
    if (random_chance(g, 50))
        add_swept_message(g, to, from);
    random_add_task(g, NULL);
    g->depth--;
    peal_graph_end_repeat(g->graph);
    random_say(g, "- pack f0 border %s, send\n", to);
    add_packing(g, NULL, "f0", "out", to, NULL);
    peal_graph_add_send(g->graph, .send = {.name = "out"}, .to = to, .tag = tag);
    g->last_label[0] = 0;
    g->state = state;
    random_use(g, F_SWEEP);
}

void random_add_vector_message(random_graph *g, const char *when)
{
    char tag[16];
    if (g->plant.plain)
        return;
    next_tag(g, tag);
    peal_message_desc send = {.size_bytes = sizeof(send),
                              .source = PEAL_HERE,
                              .send = {.name = "v"},
                              .tag = tag,
                              .when = when};
    peal_message_desc recv = send;
    recv.send = (peal_points_desc){0};
    recv.recv.name = "w";
    switch (random_below(&g->state, 3)) {
    case 0:
        send.to = "to";
        recv.from = "from";
        send.offsets = recv.offsets = "at";
        random_use(g, F_LIST);
        break;
    case 1:
        send.along = recv.along = "x";
        send.offsets = recv.offsets = "2";
        random_use(g, F_ALONG);
        break;
    default:
        send.to = recv.from = "all";
        send.offsets = recv.offsets = "1";
        random_use(g, F_ALL);
        break;
    }
    if (g->tag_count % 3 == 1) { /* the graphs of seeds stay what they are else */
        send.count = send.to && !strcmp(send.to, "all") ? "few" : "some";
        recv.count = "got";
        random_use(g, F_COUNTED_MESSAGE);
    }
    random_say(g, "- send v to %s, recv w count %s when %s\n", send.to ? send.to : "along x",
               send.count ? send.count : "-", when ? when : "-");
    peal_graph_add_send_desc(g->graph, &send);
    if (random_chance(g, 30))
        random_add_task(g, NULL);
    peal_graph_add_recv_desc(g->graph, &recv);
}

/* The first of v's elements, as many as c says, which another number follows each time. */
static peal_points_desc count_points(random_graph *g, char maximum[16])
{
    char value[64];
    sprintf(maximum, "%d", g->vector_count);
    sprintf(value, "(c * 5 + rank + 3) %% %d", g->vector_count + 2);
    random_say(g, "- set c %s\n", value);
    peal_graph_add_set(g->graph, .set = "c", .value = value);
    random_use(g, F_COUNTED_BOX);
    return (peal_points_desc){.count = "max(c - 1, 0)", .max = maximum};
}

void random_add_vector_task(random_graph *g, const char *when)
{
    char maximum[16], box[32], tile[16], name[16], kernel[KERNEL_NAME];
    mix_task *t = random_new_task(g);
    if (!t)
        return;
    sprintf(box, "[[0, %d]]", g->vector_count);
    sprintf(tile, "[%d]", g->vector_count / (1 + random_below(&g->state, 4)));
    sprintf(name, "t%d", g->task_count);
    t->axis_count = 1;
    t->read_count = 1;
    t->update_count = 1;
    t->vector = true;
    peal_access_desc read = {.name = "w", .tile = true};
    if (random_chance(g, 30)) {
        read = (peal_access_desc){.name = "pt", .whole = true};
        t->view[0].kind = VIEW_WHOLE;
    }
    peal_points_desc points = {.box = box};
    if (g->task_count % 2)
        points = count_points(g, maximum);
    random_say(g, "- task %s box %s count %s tile %s read %s update v when %s\n", name, box,
               points.count ? points.count : "-", tile, read.name, when ? when : "-");
    peal_graph_add_task(g->graph, .name = name, .kernel = random_kernel_name(g, t, kernel),
                        .function = random_function(g), .user = t, .box = points, .tile = tile,
                        .read = {read}, .update = {{.name = "v", .tile = true}}, .when = when);
    strcpy(g->last_label, name);
}

void random_add_vector_reduction(random_graph *g, const char *when)
{
    char root[16];
    const char *how = random_combine(g), *what = random_chance(g, 75) ? "v" : "r";
    bool to_root = random_chance(g, 40), along = random_chance(g, 30);
    sprintf(root, "%d", random_below(&g->state, g->ranks));
    peal_rank_reduce_desc d = {.size_bytes = sizeof(d),
                               .source = PEAL_HERE,
                               .reduce = {{.name = what, .combine = how}},
                               .when = when};
    along = along && !to_root;
    d.along = along ? "x" : NULL;
    d.to = to_root ? root : NULL;
    random_say(g, "- %s %s %s%s when %s\n", to_root ? "reduce" : "allreduce", what, how,
               along ? " along x" : "", when ? when : "-");
    (to_root ? peal_graph_add_reduce_desc : peal_graph_add_allreduce_desc)(g->graph, &d);
    random_use(g, to_root ? F_REDUCE_ROOT : F_VECTOR);
    if (along)
        random_use(g, F_ALONG);
    if (what[0] == 'v' && !to_root && g->vector_count > 1024 && (along ? g->dims[0] : g->ranks) > 2)
        random_use(g, F_TWO_SHOTS);
}

void random_add_scalar(random_graph *g)
{
    const char *how = random_combine(g);
    random_say(g, "- allreduce r %s, set s\n", how);
    peal_graph_add_allreduce(g->graph, .reduce = {{.name = "r", .combine = how}});
    peal_graph_add_set(g->graph, .set = "s", .value = "s / 3 + min(r, 2.0) / 7");
    g->scalar_known = true;
}
