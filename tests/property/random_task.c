/* Random tasks: a box, tiles, and what a tile reads and writes around its points. */
#include "tests/property/random_internal.h"

#include <stdio.h>
#include <string.h>

mix_task *random_new_task(random_graph *g)
{
    if (g->task_count == TASKS)
        return NULL;
    mix_task *t = &g->task[g->task_count++];
    t->axis_count = g->axis_count;
    t->salt = 0.001 * random_below(&g->state, 1000);
    for (int i = 0; i < PEAL_CALL_VIEWS; i++)
        t->view[i].scale = 1;
    return t;
}

/* A task under construction: its box's field, and how far the box goes beyond the part. */
typedef struct task_plan {
    const random_field *of;
    int beyond[PEAL_AXES][2];
    char box[96], part[96], tile[64], reach[READS + 2][96], name[16], label[16];
} task_plan;

static void choose_part(random_graph *g, peal_task_desc *d, task_plan *plan)
{
    if (random_chance(g, 60)) {
        d->box.part = random_chance(g, 50) ? "interior" : "boundary";
        random_use(g, F_PART);
        return;
    }
    for (int k = 0; k < g->axis_count; k++)
        for (int side = 0; side < 2; side++)
            plan->beyond[k][side] = random_below(&g->state, plan->of->halo[k][side] + 1);
    d->box.part = random_per_side(g, plan->beyond, plan->part);
    random_use(g, F_PART_AMOUNT);
}

static void choose_ranges(random_graph *g, peal_task_desc *d, task_plan *plan)
{
    int used = sprintf(plan->box, "[");
    for (int k = 0; k < g->axis_count; k++) {
        int size = g->size[k] / plan->of->coarse, low = random_below(&g->state, size);
        used += sprintf(plan->box + used, "%s[%d, %d]", k ? ", " : "", low,
                        low + random_below(&g->state, size - low + 1));
    }
    sprintf(plan->box + used, "]");
    d->box.box = plan->box;
    random_use(g, F_RANGES);
}

/* Ghost points on the other axes belong to a border, too. */
static void choose_border(random_graph *g, peal_task_desc *d, task_plan *plan)
{
    int direction[3] = {0}, axis = random_below(&g->state, g->axis_count);
    direction[axis] = random_chance(g, 50) ? 1 : -1;
    for (int k = 0; k < g->axis_count; k++)
        if (k != axis)
            memcpy(plan->beyond[k], plan->of->halo[k], sizeof(plan->beyond[k]));
    d->box.border = random_per_axis(g, direction, plan->box);
    random_use(g, F_BORDER_BOX);
}

/* Beyond an end; along other axes ghost points belong to it, too. */
static void choose_ghost(random_graph *g, peal_task_desc *d, task_plan *plan)
{
    int direction[3] = {0}, axis = random_below(&g->state, g->axis_count),
        side = random_below(&g->state, 2);
    if (g->periodic[axis] || plan->of->halo[axis][side] == 0)
        return;
    direction[axis] = side ? 1 : -1;
    memcpy(plan->beyond, plan->of->halo, sizeof(plan->beyond));
    d->box.ghost = random_per_axis(g, direction, plan->box);
    random_use(g, F_GHOST_BOX);
}

static void choose_box(random_graph *g, peal_task_desc *d, task_plan *plan)
{
    int kind = random_below(&g->state, 100), one[3] = {1, 1, 1}, amount[PEAL_AXES][2] = {{0}};
    plan->of = &g->field[random_below(&g->state, g->field_count)];
    d->box.name = plan->of->name;
    if (kind < 30)
        choose_part(g, d, plan);
    else if (kind < 40) {
        for (int k = 0; k < g->axis_count; k++)
            for (int side = 0; side < 2; side++) {
                amount[k][side] = random_below(&g->state, plan->of->halo[k][side] + 2) - 1;
                plan->beyond[k][side] = amount[k][side] > 0 ? amount[k][side] : 0;
            }
        d->box.grow = random_per_side(g, amount, plan->box);
        random_use(g, F_GROW_BOX);
    } else if (kind < 48) {
        d->box.rim = random_per_axis(g, one, plan->box);
        random_use(g, F_RIM);
    } else if (kind < 56)
        choose_ranges(g, d, plan);
    else if (kind < 62)
        choose_border(g, d, plan);
    else if (kind < 70)
        choose_ghost(g, d, plan);
}

/* How far a tile may reach beyond its points in a field; false: not even to them. */
static bool room_in(const random_graph *g, const task_plan *plan, const random_field *f,
                    int most[PEAL_AXES][2])
{
    for (int k = 0; k < g->axis_count; k++)
        for (int side = 0; side < 2; side++) {
            bool longer = side && plan->of->stagger[k] && !f->stagger[k] && !g->periodic[k];
            int scale = plan->of->coarse > f->coarse ? 2 : 1;
            most[k][side] = f->halo[k][side] - scale * plan->beyond[k][side] - longer;
            if (most[k][side] < 0)
                return false;
        }
    return true;
}

static void set_view(const task_plan *plan, const random_field *f, mix_view *m)
{
    m->type = f->type;
    m->components = f->components;
    m->scale = plan->of->coarse > f->coarse ? 2 : plan->of->coarse < f->coarse ? -2 : 1;
}

static void choose_footprint(random_graph *g, int most[PEAL_AXES][2], mix_view *m,
                             peal_access_desc *access, char *text)
{
    bool one_sided = random_chance(g, 40);
    for (int k = 0; k < g->axis_count; k++) {
        int both = most[k][0] < most[k][1] ? most[k][0] : most[k][1];
        m->grow[k][0] = m->grow[k][1] = random_below(&g->state, both + 1);
        for (int side = 0; one_sided && side < 2; side++)
            m->grow[k][side] = random_below(&g->state, most[k][side] + 1);
    }
    m->star = random_chance(g, 60);
    *(m->star ? &access->star : &access->grow) = random_per_side(g, m->grow, text);
    if (one_sided)
        random_use(g, F_ONE_SIDED);
}

static const char *random_tile(random_graph *g, char *text)
{
    int tile[3];
    if (random_chance(g, 20))
        return NULL;
    if (random_chance(g, 8)) {
        random_use(g, F_WHOLE_TILE);
        return "whole";
    }
    for (int k = 0; k < g->axis_count; k++)
        tile[k] = 1 + random_below(&g->state, g->size[k] / g->dims[k] + 1);
    for (int k = 0; k < g->axis_count; k++) { /* of an axis that is cut no more than a part */
        int part = g->size[k] / g->dims[k] / (g->coarsens ? 2 : 1);
        if (g->dims[k] > 1 && tile[k] > part)
            tile[k] = part > 1 ? part : 1;
    }
    return random_per_axis(g, tile, text);
}

static void print_access(random_graph *g, const char *how, const peal_access_desc *a)
{
    for (; a->name; a++)
        random_say(g, " %s %s%s %s", how, a->name, a->star ? " star" : "",
                   a->star       ? a->star
                   : a->grow     ? a->grow
                   : a->per_tile ? "per_tile"
                                 : "tile");
}

static void print_task(random_graph *g, const peal_task_desc *d)
{
    const peal_points_desc *b = &d->box;
    random_say(g, "- task %s box {%s %s%s part %s} tile %s", d->name, b->name,
               b->grow     ? "grow "
               : b->rim    ? "rim "
               : b->border ? "border "
               : b->ghost  ? "ghost "
                           : "",
               b->grow     ? b->grow
               : b->rim    ? b->rim
               : b->border ? b->border
               : b->ghost  ? b->ghost
               : b->box    ? b->box
                           : "all",
               b->part ? b->part : "-", d->tile ? d->tile : "-");
    print_access(g, "read", d->read);
    print_access(g, "update", d->update);
    print_access(g, "write", d->write);
    random_say(g, "%s%s%s%s when %s\n", d->reduce[0].name ? " reduce r" : "",
               d->independent ? " independent" : "", d->after[0] ? " after " : "",
               d->after[0] ? d->after[0] : "", d->when ? d->when : "-");
}

static void choose_reads(random_graph *g, peal_task_desc *d, mix_task *t, task_plan *plan,
                         bool used[FIELDS])
{
    int most[PEAL_AXES][2], wanted = 1 + random_below(&g->state, READS);
    for (int i = 0; i < wanted; i++) {
        int n = random_below(&g->state, g->field_count);
        const random_field *f = &g->field[n];
        if (used[n] || !room_in(g, plan, f, most))
            continue;
        used[n] = true;
        mix_view *m = &t->view[t->read_count];
        set_view(plan, f, m);
        if (m->scale == 2)
            random_use(g, F_FINE_TO_COARSE);
        if (m->scale == -2)
            random_use(g, F_COARSE_TO_FINE);
        d->read[t->read_count].name = f->name;
        choose_footprint(g, most, m, &d->read[t->read_count], plan->reach[t->read_count]);
        t->read_count++;
    }
}

/* A field that the task's tiles may write: as fine as the box, or finer. */
static int choose_target(random_graph *g, const task_plan *plan)
{
    int most[PEAL_AXES][2], n = random_below(&g->state, g->field_count);
    for (int i = 0; i < g->field_count; i++, n = (n + 1) % g->field_count)
        if (g->field[n].coarse <= plan->of->coarse && room_in(g, plan, &g->field[n], most))
            return n;
    return -1;
}

static void choose_extras(random_graph *g, peal_task_desc *d, mix_task *t, task_plan *plan)
{
    if (random_chance(g, 30)) {
        d->args[0] = "s + 0.5";
        t->argument_count = 1;
    }
    if (random_chance(g, 30)) {
        d->reduce[0] = (peal_reduce_desc){.name = "r", .combine = "sum"};
        t->reduces = true;
    }
    if (random_chance(g, 8)) {
        mix_view *m = &t->view[t->read_count + t->update_count + t->write_count];
        *m = (mix_view){.type = PEAL_F64, .kind = VIEW_TILE, .scale = 1};
        d->write[t->write_count++] = (peal_access_desc){.name = "pt", .per_tile = "1"};
        random_use(g, F_PER_TILE);
    }
    if (g->last_label[0] && random_chance(g, 15)) {
        strcpy(plan->label, g->last_label);
        d->after[0] = plan->label;
        random_use(g, F_AFTER);
    }
}

/* Values of random tasks depend on all that they read, stale halos too: exchanges come where they
 * may. */
static void allow_stale(peal_access_desc *access)
{
    for (; access->name; access++)
        access->stale_ok = !access->per_tile;
}

static void finish_task(random_graph *g, peal_task_desc *d, const char *name)
{
    allow_stale(d->read);
    allow_stale(d->update);
    print_task(g, d);
    peal_graph_add_task_desc(g->graph, d);
    strcpy(g->last_label, name);
}

void random_add_task(random_graph *g, const char *when)
{
    bool used[FIELDS] = {false};
    task_plan plan = {0};
    char kernel[KERNEL_NAME];
    mix_task *t = random_new_task(g);
    if (!t)
        return;
    peal_task_desc d = {.size_bytes = sizeof(d),
                        .source = PEAL_HERE,
                        .kernel = random_kernel_name(g, t, kernel),
                        .function = random_function(g),
                        .user = t,
                        .when = when};
    sprintf(plan.name, "t%d", g->task_count);
    d.name = plan.name;
    choose_box(g, &d, &plan);
    d.tile = random_tile(g, plan.tile);
    int target = choose_target(g, &plan);
    if (target < 0)
        return;
    used[target] = true;
    choose_reads(g, &d, t, &plan, used);
    mix_view *m = &t->view[t->read_count];
    set_view(&plan, &g->field[target], m);
    bool update = random_chance(g, 40);
    (update ? d.update : d.write)[0].name = g->field[target].name;
    *(update ? &t->update_count : &t->write_count) = 1;
    choose_extras(g, &d, t, &plan);
    finish_task(g, &d, plan.name);
}

/* Points of one colour from those of the other: tiles read what others write, at other points. */
void random_add_red_black(random_graph *g, const char *when)
{
    const random_field *f = &g->field[random_below(&g->state, g->field_count)];
    task_plan plan = {.of = f};
    int one[3] = {1, 1, 1};
    for (int k = 0; k < g->axis_count; k++)
        if (f->halo[k][0] < 1 || f->halo[k][1] < 1)
            return;
    char kernel[KERNEL_NAME];
    mix_task *t = random_new_task(g);
    if (!t)
        return;
    sprintf(plan.name, "t%d", g->task_count);
    t->update_count = 1;
    t->red_black = t->view[0].star = true;
    t->view[0].type = f->type;
    t->view[0].components = f->components;
    for (int k = 0; k < g->axis_count; k++)
        t->view[0].grow[k][0] = t->view[0].grow[k][1] = 1;
    peal_task_desc d = {.size_bytes = sizeof(d),
                        .source = PEAL_HERE,
                        .name = plan.name,
                        .kernel = random_kernel_name(g, t, kernel),
                        .function = random_function(g),
                        .user = t,
                        .box = {.name = f->name},
                        .tile = random_tile(g, plan.tile),
                        .update = {{.name = f->name, .star = random_per_axis(g, one, plan.box)}},
                        .independent = true,
                        .when = when};
    random_use(g, F_INDEPENDENT);
    finish_task(g, &d, plan.name);
}

void random_add_start(random_graph *g, const random_field *f)
{
    char kernel[KERNEL_NAME];
    mix_task *t = random_new_task(g);
    t->write_count = 1;
    t->view[0].type = f->type;
    t->view[0].components = f->components;
    peal_graph_add_task(g->graph, .name = "start", .label = f->name,
                        .kernel = random_kernel_name(g, t, kernel), .function = random_function(g),
                        .user = t, .box = {.name = f->name}, .write = {{.name = f->name}});
}
