/* Makes a random valid graph: a topology, fields with uneven halos, and a step of tasks, exchanges,
 * messages, swaps, reductions, loops and conditions. */
#include "tests/property/random_graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 4, TASKS = 40, TEXT = 16384, READS = 3 };

/* What a task's function has to know of its views. */
typedef struct mix_view {
    peal_type type;
    int grow[PEAL_AXES]; /* how far it reads around a point */
    bool star;
} mix_view;

typedef struct mix_task {
    int axis_count;
    int read_count, update_count, write_count, argument_count;
    mix_view view[PEAL_CALL_VIEWS];
    double salt;
    bool reduces;
} mix_task;

typedef struct random_field {
    char name[8];
    peal_type type;
    int halo[PEAL_AXES][2];
    int twin; /* field it may be swapped with; -1 */
} random_field;

struct random_graph {
    uint64_t state;
    peal_graph *graph;
    int axis_count, ranks, steps;
    int dims[3], size[3];
    bool periodic[3];
    random_field field[FIELDS];
    int field_count;
    mix_task task[TASKS];
    int task_count, tag_count, depth;
    bool scalar_known; /* s holds the same value on all ranks */
    char text[TEXT];
    size_t used;
};

uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int random_below(uint64_t *state, int limit)
{
    return (int)(random_next(state) % (uint64_t)limit);
}

static bool chance(random_graph *g, int percent)
{
    return random_below(&g->state, 100) < percent;
}

static void say(random_graph *g, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (g->used < TEXT - 256) {
        if (g->used && g->text[g->used - 1] == '\n')
            g->used += (size_t)snprintf(g->text + g->used, 64, "%*s", 2 * g->depth, "");
        g->used += (size_t)vsnprintf(g->text + g->used, TEXT - g->used, format, list);
    }
    va_end(list);
    if (g->used >= TEXT)
        g->used = TEXT - 1;
}

/* ---- The function of every task ---- */

static int64_t offset_of(const peal_view *view, const int p[PEAL_AXES])
{
    return p[0] + p[1] * view->stride[1] + p[2] * view->stride[2];
}

static double load(const peal_view *view, peal_type type, const int p[PEAL_AXES])
{
    int64_t i = offset_of(view, p);
    switch (type) {
    case PEAL_F64:
        return ((const double *)view->base)[i];
    case PEAL_F32:
        return (double)((const float *)view->base)[i];
    case PEAL_I32:
        return (double)((const int32_t *)view->base)[i];
    default:
        return (double)((const int64_t *)view->base)[i];
    }
}

static void store(const peal_view *view, peal_type type, const int p[PEAL_AXES], double value)
{
    int64_t i = offset_of(view, p);
    double folded = value - 1024.0 * (double)(int64_t)(value / 1024.0);
    switch (type) {
    case PEAL_F64:
        ((double *)view->base)[i] = folded;
        break;
    case PEAL_F32:
        ((float *)view->base)[i] = (float)folded;
        break;
    case PEAL_I32:
        ((int32_t *)view->base)[i] = (int32_t)(folded * 1000.0);
        break;
    default:
        ((int64_t *)view->base)[i] = (int64_t)(folded * 100000.0);
        break;
    }
}

/* A sum over the footprint around a point with weights that tell the elements apart. */
static double gather(const peal_view *view, const mix_view *m, const int p[PEAL_AXES])
{
    double sum = 0;
    for (int dz = -m->grow[2]; dz <= m->grow[2]; dz++)
        for (int dy = -m->grow[1]; dy <= m->grow[1]; dy++)
            for (int dx = -m->grow[0]; dx <= m->grow[0]; dx++) {
                int q[PEAL_AXES] = {p[0] + dx, p[1] + dy, p[2] + dz, 0};
                if (m->star && (dx != 0) + (dy != 0) + (dz != 0) > 1)
                    continue;
                sum += (1.0 + 0.25 * dx + 0.125 * dy + 0.0625 * dz) * load(view, m->type, q);
            }
    return sum;
}

static void mix_point(const peal_call *call, const mix_task *t, const int p[PEAL_AXES],
                      double *partial)
{
    double value = t->salt + 0.01 * p[0] + 0.03 * p[1] + 0.07 * p[2];
    int first_write = t->read_count + t->update_count;
    for (int i = 0; i < first_write; i++)
        value += 0.37 * (i + 1) * gather(&call->view[i], &t->view[i], p);
    for (int i = 0; i < t->argument_count; i++)
        value += 0.11 * call->argument[i].real;
    for (int i = t->read_count; i < first_write + t->write_count; i++)
        store(&call->view[i], t->view[i].type, p, value * (1.0 + 0.5 * i));
    *partial += value - (double)(int64_t)value;
}

static void mix(const peal_call *call)
{
    const mix_task *t = call->user;
    double partial = 0;
    int p[PEAL_AXES] = {0};
    for (p[2] = call->tile.lo[2]; p[2] < call->tile.hi[2]; p[2]++)
        for (p[1] = call->tile.lo[1]; p[1] < call->tile.hi[1]; p[1]++)
            for (p[0] = call->tile.lo[0]; p[0] < call->tile.hi[0]; p[0]++)
                mix_point(call, t, p, &partial);
    if (t->reduces && call->partial[0])
        *(double *)call->partial[0] = partial;
}

/* ---- Making the graph ---- */

static void choose_ranks(random_graph *g)
{
    g->axis_count = 1 + random_below(&g->state, 3);
    g->ranks = 1;
    for (int k = 0; k < 3; k++) {
        g->dims[k] = k < g->axis_count ? 1 + random_below(&g->state, 3) : 1;
        if (g->ranks * g->dims[k] > 5)
            g->dims[k] = 1;
        g->ranks *= g->dims[k];
        g->periodic[k] = k < g->axis_count && chance(g, 50);
        g->size[k] = k < g->axis_count ? g->dims[k] * (3 + random_below(&g->state, 4)) +
                                             random_below(&g->state, 3)
                                       : 1;
    }
}

static const char *per_axis(const random_graph *g, const int value[3], char *text)
{
    int used = sprintf(text, "[");
    for (int k = 0; k < g->axis_count; k++)
        used += sprintf(text + used, "%s%d", k ? ", " : "", value[k]);
    sprintf(text + used, "]");
    return text;
}

static void add_fields(random_graph *g)
{
    static const peal_type types[] = {PEAL_F64, PEAL_F64, PEAL_F32, PEAL_I32, PEAL_I64};
    char size[64], halo[128];
    g->field_count = 2 + random_below(&g->state, FIELDS - 1);
    for (int i = 0; i < g->field_count; i++) {
        random_field *f = &g->field[i];
        bool like = i > 0 && chance(g, 60);
        if (like)
            *f = g->field[i - 1];
        else {
            f->type = types[random_below(&g->state, 5)];
            for (int k = 0; k < g->axis_count; k++)
                for (int side = 0; side < 2; side++)
                    f->halo[k][side] =
                        chance(g, 75) ? 1 + random_below(&g->state, 2) : random_below(&g->state, 2);
        }
        sprintf(f->name, "f%d", i);
        f->twin = like ? i - 1 : -1;
        int used = sprintf(halo, "[");
        for (int k = 0; k < g->axis_count; k++)
            used += sprintf(halo + used, "%s[%d, %d]", k ? ", " : "", f->halo[k][0], f->halo[k][1]);
        sprintf(halo + used, "]");
        per_axis(g, g->size, size);
        say(g, "%s: {type: %s, size: %s, halo: %s}\n", f->name, peal_type_name(f->type), size,
            halo);
        peal_graph_add_field(g->graph, .name = f->name, .type = peal_type_name(f->type),
                             .size = size, .halo = halo);
    }
    peal_graph_add_buffer(g->graph, .name = "s", .keep = true);
    peal_graph_add_buffer(g->graph, .name = "r", .keep = true);
}

static void add_topology(random_graph *g)
{
    char dims[64], periodic[64];
    int used = sprintf(periodic, "[");
    for (int k = 0; k < g->axis_count; k++)
        used += sprintf(periodic + used, "%s%s", k ? ", " : "", g->periodic[k] ? "true" : "false");
    sprintf(periodic + used, "]");
    per_axis(g, g->dims, dims);
    say(g, "topology: {dims: %s, periodic: %s}\n", dims, periodic);
    peal_graph_set_topology(g->graph, .dims = dims, .periodic = periodic);
}

static mix_task *new_task(random_graph *g)
{
    mix_task *t = &g->task[g->task_count++];
    t->axis_count = g->axis_count;
    t->salt = 0.001 * random_below(&g->state, 1000);
    return t;
}

static void choose_footprint(random_graph *g, const random_field *f, mix_view *m,
                             peal_access_desc *access, char *text, bool grows)
{
    m->type = f->type;
    access->name = f->name;
    if (!grows)
        return;
    for (int k = 0; k < g->axis_count; k++) {
        int most = f->halo[k][0] < f->halo[k][1] ? f->halo[k][0] : f->halo[k][1];
        m->grow[k] = random_below(&g->state, most + 1);
    }
    m->star = chance(g, 60);
    per_axis(g, m->grow, text);
    *(m->star ? &access->star : &access->grow) = text;
}

static const char *random_tile(random_graph *g, char *text)
{
    int tile[3];
    if (chance(g, 25))
        return NULL;
    for (int k = 0; k < g->axis_count; k++)
        tile[k] = 1 + random_below(&g->state, g->size[k] / g->dims[k] + 1);
    return per_axis(g, tile, text);
}

static const char *random_condition(random_graph *g)
{
    if (g->scalar_known && chance(g, 12))
        return "s > 0.5";
    if (chance(g, 15))
        return chance(g, 50) ? "step % 2 == 0" : "step % 3 != 1";
    return NULL;
}

static void print_task(random_graph *g, const peal_task_desc *d)
{
    say(g, "- task %s box {%s part %s} tile %s", d->name, d->box.name,
        d->box.part ? d->box.part : "-", d->tile ? d->tile : "-");
    for (int i = 0; d->read[i].name; i++)
        say(g, " read %s %s", d->read[i].name,
            d->read[i].star   ? d->read[i].star
            : d->read[i].grow ? d->read[i].grow
                              : "tile");
    for (int i = 0; d->update[i].name; i++)
        say(g, " update %s", d->update[i].name);
    for (int i = 0; d->write[i].name; i++)
        say(g, " write %s", d->write[i].name);
    say(g, "%s when %s\n", d->reduce[0].name ? " reduce r" : "", d->when ? d->when : "-");
}

static void add_task(random_graph *g, const char *when)
{
    char texts[READS][64], tile[64], name[16];
    bool used[FIELDS] = {false};
    if (g->task_count == TASKS)
        return;
    mix_task *t = new_task(g);
    peal_task_desc d = {
        .size_bytes = sizeof(d), .source = PEAL_HERE, .function = mix, .user = t, .when = when};
    sprintf(name, "t%d", g->task_count);
    d.name = name;
    d.box.name = g->field[0].name;
    if (chance(g, 25))
        d.box.part = chance(g, 50) ? "interior" : "boundary";
    d.tile = random_tile(g, tile);
    int target = random_below(&g->state, g->field_count), view = 0;
    used[target] = true;
    for (int i = 0; i < 1 + random_below(&g->state, READS); i++) {
        int f = random_below(&g->state, g->field_count);
        if (used[f])
            continue;
        used[f] = true;
        choose_footprint(g, &g->field[f], &t->view[view++], &d.read[t->read_count],
                         texts[t->read_count], true);
        t->read_count++;
    }
    bool update = chance(g, 40);
    choose_footprint(g, &g->field[target], &t->view[view], update ? &d.update[0] : &d.write[0],
                     NULL, false);
    *(update ? &t->update_count : &t->write_count) = 1;
    if (chance(g, 30)) {
        d.args[0] = "s + 0.5";
        t->argument_count = 1;
    }
    if (chance(g, 30)) {
        d.reduce[0] = (peal_reduce_desc){.name = "r", .combine = "sum"};
        t->reduces = true;
    }
    print_task(g, &d);
    peal_graph_add_task_desc(g->graph, &d);
}

static void add_initial_tasks(random_graph *g)
{
    for (int i = 0; i < g->field_count; i++) {
        mix_task *t = new_task(g);
        t->write_count = 1;
        t->view[0].type = g->field[i].type;
        peal_graph_add_task(g->graph, .name = "start", .label = g->field[i].name, .function = mix,
                            .user = t, .box = {.name = g->field[i].name},
                            .write = {{.name = g->field[i].name}});
    }
}

static void add_exchange(random_graph *g, const char *when)
{
    char texts[FIELDS][64];
    peal_exchange_desc d = {.size_bytes = sizeof(d), .source = PEAL_HERE, .when = when};
    int count = 0;
    say(g, "- exchange");
    for (int i = 0; i < g->field_count; i++) {
        if (count && !chance(g, 40))
            continue;
        d.exchange[count].name = g->field[i].name;
        if (chance(g, 20)) {
            int part[3];
            for (int k = 0; k < g->axis_count; k++) {
                int most = g->field[i].halo[k][0] < g->field[i].halo[k][1] ? g->field[i].halo[k][0]
                                                                           : g->field[i].halo[k][1];
                part[k] = random_below(&g->state, most + 1);
            }
            *(chance(g, 50) ? &d.exchange[count].star : &d.exchange[count].grow) =
                per_axis(g, part, texts[count]);
        }
        say(g, " %s %s", d.exchange[count].name,
            d.exchange[count].star   ? d.exchange[count].star
            : d.exchange[count].grow ? d.exchange[count].grow
                                     : "all");
        count++;
    }
    say(g, " when %s\n", when ? when : "-");
    peal_graph_add_exchange_desc(g->graph, &d);
}

static void add_messages(random_graph *g, const char *when)
{
    char to[64], from[64], tag[16];
    int direction[3] = {0, 0, 0}, back[3], axis = random_below(&g->state, g->axis_count);
    const random_field *f = &g->field[random_below(&g->state, g->field_count)];
    direction[axis] = chance(g, 50) ? 1 : -1;
    for (int k = 0; k < 3; k++)
        back[k] = -direction[k];
    per_axis(g, direction, to);
    per_axis(g, back, from);
    sprintf(tag, "%d", ++g->tag_count);
    say(g, "- send %s border %s, recv halo %s when %s\n", f->name, to, from, when ? when : "-");
    peal_graph_add_send(g->graph, .send = {.name = f->name, .border = to}, .to = to, .tag = tag,
                        .when = when);
    if (chance(g, 50))
        add_task(g, NULL);
    peal_graph_add_recv(g->graph, .recv = {.name = f->name, .halo = from}, .from = from, .tag = tag,
                        .when = when);
}

static void add_scalar(random_graph *g)
{
    static const char *const combine[] = {"sum", "min", "max"};
    const char *how = combine[random_below(&g->state, 3)];
    say(g, "- allreduce r %s, set s\n", how);
    peal_graph_add_allreduce(g->graph, .reduce = {{.name = "r", .combine = how}});
    peal_graph_add_set(g->graph, .set = "s", .value = "s / 3 + min(r, 2.0) / 7");
    g->scalar_known = true;
}

static void add_swap(random_graph *g, const char *when)
{
    for (int i = 1; i < g->field_count; i++)
        if (g->field[i].twin >= 0) {
            say(g, "- swap %s %s when %s\n", g->field[i].name, g->field[i - 1].name,
                when ? when : "-");
            peal_graph_add_swap(g->graph, .swap = {g->field[i - 1].name, g->field[i].name},
                                .when = when);
            return;
        }
}

static void add_statements(random_graph *g, int count, bool nested);

static void add_statement(random_graph *g, bool nested)
{
    const char *when = random_condition(g);
    int kind = random_below(&g->state, 100);
    if (kind < 40)
        add_task(g, when);
    else if (kind < 65)
        add_exchange(g, when);
    else if (kind < 75)
        add_messages(g, when);
    else if (kind < 85)
        add_swap(g, when);
    else if (kind < 92 || nested)
        add_scalar(g);
    else {
        const char *counter = "k";
        char repeat[16];
        sprintf(repeat, "%d", random_below(&g->state, 4));
        say(g, "- repeat %s\n", repeat);
        g->depth++;
        peal_graph_begin_repeat(g->graph, .repeat = repeat, .as = counter);
        add_statements(g, 1 + random_below(&g->state, 3), true);
        peal_graph_end_repeat(g->graph);
        g->depth--;
    }
}

static void add_statements(random_graph *g, int count, bool nested)
{
    for (int i = 0; i < count; i++)
        add_statement(g, nested);
}

random_graph *random_graph_create(uint64_t seed)
{
    random_graph *g = calloc(1, sizeof(*g));
    if (!g || peal_graph_create("random", &g->graph))
        abort();
    g->state = seed * 0x2545f4914f6cdd1du + 1;
    choose_ranks(g);
    g->steps = 2 + random_below(&g->state, 6);
    say(g, "# seed %llu, %d ranks, %d steps\n", (unsigned long long)seed, g->ranks, g->steps);
    add_topology(g);
    add_fields(g);
    char repeat[16], lag[16], every[16];
    sprintf(repeat, "%d", g->steps);
    sprintf(lag, "%d", random_below(&g->state, 3));
    sprintf(every, "%d", 1 + random_below(&g->state, 2));
    peal_graph_begin(g->graph, PEAL_SETUP);
    add_initial_tasks(g);
    if (chance(g, 50))
        add_exchange(g, NULL);
    peal_graph_end(g->graph);
    peal_graph_begin(g->graph, PEAL_STEP);
    bool stops = chance(g, 30);
    if (stops)
        add_scalar(g);
    add_statements(g, 3 + random_below(&g->state, 6), false);
    peal_graph_end(g->graph);
    say(g, "until %s every %s lag %s\n", stops ? "s > 0.3" : "-", every, lag);
    peal_graph_set_loop(g->graph, .repeat = repeat, .until = stops ? "s > 0.3" : NULL,
                        .every = stops ? every : NULL, .lag = stops ? lag : NULL);
    peal_graph_begin(g->graph, PEAL_FINISH);
    if (chance(g, 40))
        add_exchange(g, NULL);
    if (chance(g, 40))
        add_task(g, NULL);
    peal_graph_end(g->graph);
    return g;
}

void random_graph_destroy(random_graph *g)
{
    if (!g)
        return;
    peal_graph_destroy(g->graph);
    free(g);
}

peal_graph *random_graph_builder(random_graph *g)
{
    return g->graph;
}

int random_graph_ranks(const random_graph *g)
{
    return g->ranks;
}

int random_graph_steps(const random_graph *g)
{
    return g->steps;
}

const char *random_graph_text(const random_graph *g)
{
    return g->text;
}
