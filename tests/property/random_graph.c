/* Makes a random valid graph: a topology, fields with uneven halos, and a step of tasks, exchanges,
 * messages, swaps, reductions, loops and conditions. */
#include "tests/property/random_fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const random_feature_names[] = {
    [F_SWAP] = "swap",
    [F_PERIODIC] = "periodic axis",
    [F_CUTS] = "given cuts",
    [F_RUNTIME_WHEN] = "run-time when",
    [F_UNTIL] = "until",
    [F_NESTED] = "loop in a loop",
    [F_INNER_UNTIL] = "until of an inner loop",
    [F_PART] = "part: interior, boundary",
    [F_PART_AMOUNT] = "part: amount",
    [F_GROW_BOX] = "grow box",
    [F_RIM] = "rim",
    [F_RANGES] = "ranges",
    [F_BORDER_BOX] = "border box",
    [F_GHOST_BOX] = "ghost box",
    [F_ONE_SIDED] = "one-sided footprint",
    [F_STAGGER] = "stagger",
    [F_COARSE] = "coarsen",
    [F_FINE_TO_COARSE] = "fine read by coarse box",
    [F_COARSE_TO_FINE] = "coarse read by fine box",
    [F_WHOLE_TILE] = "tile: whole",
    [F_PER_TILE] = "per_tile",
    [F_INDEPENDENT] = "independent",
    [F_AFTER] = "after",
    [F_TYPES_MIXED] = "types mixed in an exchange",
    [F_FIELD_MESSAGE] = "send of a border",
    [F_BOX_BUFFER] = "buffer with a box",
    [F_LIST] = "lists and offsets",
    [F_ALONG] = "along",
    [F_ALL] = "to all",
    [F_REDUCE_ROOT] = "reduce to a root",
    [F_VECTOR] = "allreduce of any kind",
    [F_TWO_SHOTS] = "allreduce in two shots",
    [F_COUNTED_BOX] = "box counted at run time",
    [F_COUNTED_MESSAGE] = "message counted at run time",
    [F_TURNS] = "messages in steps of each rank's own",
    [F_SWEEP] = "a loop between a receive and its send",
    [F_COMPONENTS] = "components",
};
const int random_feature_count = FEATURES;

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

bool random_chance(random_graph *g, int percent)
{
    return random_below(&g->state, 100) < percent;
}

void random_use(random_graph *g, feature f)
{
    g->features |= 1ull << f;
}

void random_say(random_graph *g, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (g->used < TEXT - 512) {
        if (g->used && g->text[g->used - 1] == '\n')
            g->used += (size_t)snprintf(g->text + g->used, 64, "%*s", 2 * g->depth, "");
        g->used += (size_t)vsnprintf(g->text + g->used, TEXT - g->used, format, list);
    }
    va_end(list);
    if (g->used >= TEXT)
        g->used = TEXT - 1;
}

const char *random_per_axis(const random_graph *g, const int value[3], char *text)
{
    int used = sprintf(text, "[");
    for (int k = 0; k < g->axis_count; k++)
        used += sprintf(text + used, "%s%d", k ? ", " : "", value[k]);
    sprintf(text + used, "]");
    return text;
}

const char *random_per_side(const random_graph *g, int value[PEAL_AXES][2], char *text)
{
    int used = sprintf(text, "[");
    for (int k = 0; k < g->axis_count; k++)
        used += sprintf(text + used, "%s[%d, %d]", k ? ", " : "", value[k][0], value[k][1]);
    sprintf(text + used, "]");
    return text;
}

/* Every part has at least two points of a coarsened field, three of others: halos are at most 2. */
static void choose_ranks(random_graph *g)
{
    g->axis_count = 1 + random_below(&g->state, 3);
    g->coarsens = random_chance(g, 45);
    g->ranks = 1;
    for (int k = 0; k < 3; k++) {
        g->dims[k] = k < g->axis_count ? 1 + random_below(&g->state, 3) : 1;
        if (g->ranks * g->dims[k] > 5)
            g->dims[k] = 1;
        g->ranks *= g->dims[k];
        g->periodic[k] = k < g->axis_count && random_chance(g, 50);
        g->size[k] = 1;
        if (k < g->axis_count && g->coarsens)
            g->size[k] = 2 * (g->dims[k] * 2 + random_below(&g->state, g->dims[k] + 2));
        else if (k < g->axis_count)
            g->size[k] = g->dims[k] * (3 + random_below(&g->state, 4)) + random_below(&g->state, 3);
        if (g->periodic[k])
            random_use(g, F_PERIODIC);
    }
}

static void choose_field(random_graph *g, random_field *f)
{
    static const peal_type types[] = {PEAL_F64, PEAL_F64, PEAL_F32, PEAL_I32, PEAL_I64, PEAL_U8};
    *f = (random_field){.type = types[random_below(&g->state, 6)], .coarse = 1};
    for (int k = 0; k < g->axis_count; k++)
        for (int side = 0; side < 2; side++)
            f->halo[k][side] =
                random_chance(g, 75) ? 1 + random_below(&g->state, 2) : random_below(&g->state, 2);
    if (g->coarsens && random_chance(g, 40))
        f->coarse = 2;
    else if (random_chance(g, 15))
        f->stagger[random_below(&g->state, g->axis_count)] = 1;
}

/* Random numbers are its own, so that a seed's graph stays what it is. */
static int choose_components(const random_graph *g)
{
    uint64_t state = g->state ^ 0x3c6ef372fe94f82bu;
    return random_below(&state, 3) ? 0 : 2 + random_below(&state, 2);
}

static void add_field(random_graph *g, int i)
{
    char components[16], size[64], halo[128], align[32], coarsen[32], stagger[32];
    random_field *f = &g->field[i];
    int cut[3], ratio[3];
    bool like = i > 0 && random_chance(g, 60);
    if (like)
        *f = g->field[i - 1];
    else
        choose_field(g, f);
    if (!like)
        f->components = choose_components(g);
    if (f->components)
        random_use(g, F_COMPONENTS);
    snprintf(components, sizeof(components), "%d", f->components);
    snprintf(f->name, sizeof(f->name), "f%d", i % 1000);
    f->twin = like ? i - 1 : -1;
    for (int k = 0; k < 3; k++) {
        cut[k] = g->coarsens ? 2 : 1;
        ratio[k] = f->coarse;
        if (f->stagger[k])
            random_use(g, F_STAGGER);
    }
    if (f->coarse > 1)
        random_use(g, F_COARSE);
    random_per_axis(g, g->size, size);
    random_per_side(g, f->halo, halo);
    random_per_axis(g, cut, align);
    random_per_axis(g, ratio, coarsen);
    random_per_axis(g, f->stagger, stagger);
    random_say(
        g,
        "%s: {type: %s, size: %s, halo: %s, align: %s, coarsen: %s, stagger: %s, components: %s}\n",
        f->name, peal_type_name(f->type), size, halo, align, coarsen, stagger, components);
    peal_graph_add_field(g->graph, .name = f->name, .type = peal_type_name(f->type), .size = size,
                         .halo = halo, .align = align, .coarsen = coarsen, .stagger = stagger,
                         .components = f->components ? components : NULL);
}

/* Where axis k is cut: every part has the points that choose_ranks wants, the rest goes anywhere.
 */
static int say_cuts(const random_graph *g, uint64_t *state, int k, char *text)
{
    int unit = g->coarsens ? 2 : 1, least = g->coarsens ? 4 : 3, at = 0;
    int rest = (g->size[k] - least * g->dims[k]) / unit, used = sprintf(text, "[0");
    for (int part = 1; part < g->dims[k]; part++) {
        int more = random_below(state, rest + 1);
        at += least + more * unit;
        rest -= more;
        used += sprintf(text + used, ", %d", at);
    }
    return used + sprintf(text + used, ", %d]", g->size[k]);
}

/* Random numbers are its own, so that a seed's graph stays what it is. */
static const char *choose_cuts(random_graph *g, char *text)
{
    uint64_t state = g->state ^ 0x6a09e667f3bcc909u;
    bool any = false;
    int used = sprintf(text, "[");
    for (int k = 0; k < g->axis_count; k++) {
        bool cut = g->dims[k] > 1 && random_below(&state, 3) == 0;
        used += sprintf(text + used, "%s", k ? ", " : "");
        used += cut ? say_cuts(g, &state, k, text + used) : sprintf(text + used, "auto");
        any |= cut;
    }
    sprintf(text + used, "]");
    if (any)
        random_use(g, F_CUTS);
    return any ? text : "auto";
}

static void add_topology(random_graph *g)
{
    char dims[64], periodic[64], text[128];
    const char *cuts = choose_cuts(g, text);
    int used = sprintf(periodic, "[");
    for (int k = 0; k < g->axis_count; k++)
        used += sprintf(periodic + used, "%s%s", k ? ", " : "", g->periodic[k] ? "true" : "false");
    sprintf(periodic + used, "]");
    random_per_axis(g, g->dims, dims);
    random_say(g, "topology: {dims: %s, periodic: %s, cuts: %s}\n", dims, periodic, cuts);
    peal_graph_set_topology(g->graph, .dims = dims, .periodic = periodic, .cuts = cuts);
}

static const char *random_condition(random_graph *g)
{
    if (g->scalar_known && random_chance(g, 12)) {
        random_use(g, F_RUNTIME_WHEN);
        return "s > 0.5";
    }
    if (g->depth && random_chance(g, 15))
        return "k % 2 == 1";
    if (!g->in_setup && random_chance(g, 15))
        return random_chance(g, 50) ? "step % 2 == 0" : "step % 3 != 1";
    return NULL;
}

static void add_swap(random_graph *g, const char *when)
{
    int first = random_below(&g->state, g->field_count);
    for (int i = 0; i < g->field_count; i++) {
        const random_field *f = &g->field[(first + i) % g->field_count];
        if (f->twin < 0)
            continue;
        const random_field *twin = &g->field[f->twin];
        random_say(g, "- swap %s %s when %s\n", f->name, twin->name, when ? when : "-");
        peal_graph_add_swap(g->graph, .swap = {twin->name, f->name}, .when = when);
        random_use(g, F_SWAP);
        return;
    }
}

static void add_statements(random_graph *g, int count);

static void add_loop(random_graph *g)
{
    char repeat[16], lag[16], every[16];
    bool stops = g->scalar_known && random_chance(g, 30);
    int rounds = random_below(&g->state, 4);
    sprintf(repeat, "%d", rounds == 0 && g->plant.fault ? 1 : rounds); /* else it never happens */
    sprintf(lag, "%d", random_below(&g->state, 2));
    sprintf(every, "%d", 1 + random_below(&g->state, 2));
    random_say(g, "- repeat %s until %s every %s lag %s\n", repeat, stops ? "s > 0.2" : "-", every,
               lag);
    peal_graph_begin_repeat(g->graph, .repeat = repeat, .as = g->depth ? "l" : "k",
                            .until = stops ? "s > 0.2" : NULL, .every = stops ? every : NULL,
                            .lag = stops ? lag : NULL);
    if (g->depth++)
        random_use(g, F_NESTED);
    if (stops)
        random_use(g, F_INNER_UNTIL);
    g->last_label[0] = 0;
    add_statements(g, 1 + random_below(&g->state, 3));
    if (stops)
        random_add_scalar(g);
    g->last_label[0] = 0;
    g->depth--;
    peal_graph_end_repeat(g->graph);
}

static void add_statement(random_graph *g)
{
    const char *when = random_condition(g);
    int kind = random_below(&g->state, 100);
    if (kind < 36)
        random_add_task(g, when);
    else if (kind < 40)
        random_add_red_black(g, when);
    else if (kind < 60)
        random_add_exchange(g, when);
    else if (kind < 67)
        random_add_field_message(g, when);
    else if (kind < 70)
        random_add_packed_message(g, when);
    else if (kind < 74)
        random_add_vector_message(g, when);
    else if (kind < 77)
        random_add_vector_task(g, when);
    else if (kind < 81)
        random_add_vector_reduction(g, when);
    else if (kind < 87)
        add_swap(g, when);
    else if (kind < 92 || g->depth == 2)
        random_add_scalar(g);
    else
        add_loop(g);
}

static void add_statements(random_graph *g, int count)
{
    for (int i = 0; i < count; i++) {
        random_plant_somewhere(g, false);
        add_statement(g);
    }
}

static void add_setup(random_graph *g)
{
    peal_graph_begin(g->graph, PEAL_SETUP);
    g->in_setup = true; /* the counter `step` begins after it */
    for (int i = 0; i < g->field_count; i++)
        random_add_start(g, &g->field[i]);
    if (random_chance(g, 50))
        random_add_exchange(g, NULL);
    if (random_chance(g, 40)) /* loops here are fenced by nothing but their own dependences */
        add_loop(g);
    random_add_sweep(g);
    g->in_setup = false;
    peal_graph_end(g->graph);
    g->last_label[0] = 0;
}

static void add_step(random_graph *g)
{
    char repeat[16], lag[16], every[16];
    sprintf(repeat, "%d", g->steps);
    sprintf(lag, "%d", random_below(&g->state, 3));
    sprintf(every, "%d", 1 + random_below(&g->state, 2));
    peal_graph_begin(g->graph, PEAL_STEP);
    bool stops = random_chance(g, 30);
    if (stops) {
        random_add_scalar(g);
        random_use(g, F_UNTIL);
    }
    add_statements(g, 3 + random_below(&g->state, 7));
    random_plant_somewhere(g, true);
    random_add_sweep(g);
    peal_graph_end(g->graph);
    g->last_label[0] = 0;
    random_say(g, "until %s every %s lag %s\n", stops ? "s > 0.3" : "-", every, lag);
    peal_graph_set_loop(g->graph, .repeat = repeat, .until = stops ? "s > 0.3" : NULL,
                        .every = stops ? every : NULL, .lag = stops ? lag : NULL);
}

random_graph *random_graph_create(uint64_t seed)
{
    return random_graph_create_in(seed, NULL);
}

static random_graph *new_graph(uint64_t seed, const char *folder)
{
    random_graph *g = calloc(1, sizeof(*g));
    if (!g || peal_graph_create("random", &g->graph))
        abort();
    g->folder = folder;
    g->state = seed * 0x2545f4914f6cdd1du + 1;
    g->sweep_state = seed * 0x9e3779b97f4a7c15u + 1;
    choose_ranks(g);
    return g;
}

static void fill_graph(random_graph *g, uint64_t seed)
{
    g->steps = 2 + random_below(&g->state, 6);
    random_say(g, "# seed %llu, %d ranks, %d steps\n", (unsigned long long)seed, g->ranks,
               g->steps);
    add_topology(g);
    g->field_count = 2 + random_below(&g->state, FIELDS - 1);
    for (int i = 0; i < g->field_count; i++)
        add_field(g, i);
    random_add_buffers(g);
    if (g->plant.fault)
        random_plant_declare(g);
    add_setup(g);
    add_step(g);
    peal_graph_begin(g->graph, PEAL_FINISH);
    if (random_chance(g, 40))
        random_add_exchange(g, NULL);
    if (random_chance(g, 40))
        random_add_task(g, NULL);
    peal_graph_end(g->graph);
    if (g->folder)
        random_write_kernels(g, seed);
}

random_graph *random_graph_create_in(uint64_t seed, const char *folder)
{
    random_graph *g = new_graph(seed, folder);
    fill_graph(g, seed);
    return g;
}

random_graph *random_graph_create_planted(uint64_t seed, const random_fault *fault, bool sound)
{
    random_graph *g = new_graph(seed, NULL);
    if (!random_plant_choose(g, seed, fault, sound)) {
        random_graph_destroy(g);
        return NULL;
    }
    fill_graph(g, seed);
    return g;
}

int random_graph_planted_rank(const random_graph *graph)
{
    return graph->plant.rank;
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

bool random_graph_is_exact(const random_graph *g)
{
    const uint64_t inexact = 1ull << F_PER_TILE | 1ull << F_REDUCE_ROOT | 1ull << F_VECTOR;
    for (int i = 0; i < g->task_count; i++)
        if (g->task[i].reduces)
            return false;
    return !(g->features & inexact);
}

uint64_t random_graph_features(const random_graph *g)
{
    return g->features;
}
