/* Which cells of a rank's halos each statement reads, changes and renews.
 *
 * Boxes are looked at twice: first their ends cut the halos into cells, then they are sets of
 * cells. What the owners change is what the tasks, loads and receives of the neighbours declare to
 * write, in this rank's coordinates. A halo is renewed by what arrives there (exchanges, receives)
 * and by tasks of the rank itself that write halo points: all points of a `write`, the visited
 * points of an `update`, whose `star` or `grow` only says what may be touched around them. */
#include "scheduler/conditions/conditions.h"
#include "scheduler/geometry/geometry.h"
#include "scheduler/halos/cells.h"

#include <string.h>

/* ---- Cells ---- */

static void add_cut(halo_grid *g, int k, int64_t at)
{
    int count = g->cut_count[k], index = count, cells = 1;
    while (index > 0 && g->cut[k][index - 1] > at)
        index--;
    for (int i = 0; i < PEAL_AXES; i++)
        cells *= g->cut_count[i] - (i != k);
    if (at < g->stored.lo[k] || at > g->stored.hi[k] || count == AXIS_CUTS || cells > MOST_CELLS ||
        (index > 0 && g->cut[k][index - 1] == at))
        return;
    memmove(&g->cut[k][index + 1], &g->cut[k][index],
            (size_t)(count - index) * sizeof(g->cut[k][0]));
    g->cut[k][index] = at;
    g->cut_count[k]++;
}

static halo_grid *create_grid(peal_arena *arena, const peal_layout *layout)
{
    halo_grid *g = PEAL_ARENA_NEW(arena, halo_grid);
    g->stored = layout->stored;
    g->own = layout->own;
    for (int k = 0; k < PEAL_AXES; k++) {
        g->cut[k][0] = layout->stored.lo[k];
        g->cut[k][1] = layout->stored.hi[k];
        g->cut_count[k] = 2;
    }
    for (int k = 0; k < PEAL_AXES; k++) {
        add_cut(g, k, layout->own.lo[k]);
        add_cut(g, k, layout->own.hi[k]);
    }
    return g;
}

static void set_cell(cell_word *cells, int cell)
{
    cells[cell / CELLS_OF_WORD] |= (cell_word)1 << (cell % CELLS_OF_WORD);
}

/* Adds the cells that a box meets; inside: that it contains. */
static void add_cells(const halo_grid *g, const peal_box *box, bool inside, cell_word *out)
{
    int first[PEAL_AXES], end[PEAL_AXES], stride[PEAL_AXES], all = 1;
    for (int k = 0; k < PEAL_AXES; k++) {
        const int64_t *cut = g->cut[k];
        int count = g->cut_count[k] - 1, low = 0, high = count;
        while (low < count && (inside ? cut[low] < box->lo[k] : cut[low + 1] <= box->lo[k]))
            low++;
        while (high > 0 && (inside ? cut[high] > box->hi[k] : cut[high - 1] >= box->hi[k]))
            high--;
        first[k] = low;
        end[k] = high;
        stride[k] = all;
        all *= count;
    }
    for (int w = first[3]; w < end[3]; w++)
        for (int z = first[2]; z < end[2]; z++)
            for (int y = first[1]; y < end[1]; y++)
                for (int x = first[0]; x < end[0]; x++)
                    set_cell(out, x + y * stride[1] + z * stride[2] + w * stride[3]);
}

static void finish_grid(halo_map *m, halo_grid *g)
{
    g->cells = 1;
    for (int k = 0; k < PEAL_AXES; k++)
        g->cells *= g->cut_count[k] - 1;
    g->words = (g->cells + CELLS_OF_WORD - 1) / CELLS_OF_WORD;
    g->halo = PEAL_ARENA_ARRAY(m->arena, cell_word, g->words);
    cell_word *own = PEAL_ARENA_ARRAY(m->arena, cell_word, g->words);
    add_cells(g, &g->stored, true, g->halo);
    add_cells(g, &g->own, true, own);
    for (int i = 0; i < g->words; i++)
        g->halo[i] &= ~own[i];
}

void locate_cell(const halo_grid *g, int cell, int direction[PEAL_RANK_AXES], int64_t *nearest,
                 int64_t *farthest)
{
    *nearest = *farthest = 0;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        int count = g->cut_count[k] - 1, i = cell % count;
        int64_t lo = g->cut[k][i], hi = g->cut[k][i + 1];
        cell /= count;
        direction[k] = lo < g->own.lo[k] ? -1 : lo >= g->own.hi[k];
        if (!direction[k])
            continue;
        int64_t near = direction[k] < 0 ? g->own.lo[k] - hi + 1 : lo - g->own.hi[k] + 1;
        int64_t far = near + hi - lo - 1;
        *nearest = *nearest && *nearest < near ? *nearest : near;
        *farthest = *farthest > far ? *farthest : far;
    }
}

/* ---- Boxes ---- */

void use_box(cell_builder *b, int name, cell_use use, const peal_box *box)
{
    halo_grid *g = b->m->name[name].grid;
    peal_box within = peal_box_intersect(box, &g->stored);
    if (peal_box_is_empty(&within) || peal_box_contains(&g->own, &within))
        return;
    if (b->cuts) {
        for (int k = 0; k < PEAL_AXES; k++) {
            add_cut(g, k, within.lo[k]);
            add_cut(g, k, within.hi[k]);
        }
        return;
    }
    halo_effect *e = b->effect;
    cell_word **cells = use == CELLS_READ      ? &e->read
                        : use == CELLS_CHANGED ? &e->change
                        : use == CELLS_TOUCHED ? &e->touch
                                               : &e->renew;
    cell_word *all = PEAL_ARENA_ARRAY(b->m->arena, cell_word, g->words), any = 0;
    add_cells(g, &within, use == CELLS_RENEWED, all);
    for (int i = 0; i < g->words; i++)
        any |= all[i] &= g->halo[i];
    b->m->any_read |= any && use == CELLS_READ;
    if (!any)
        return;
    for (int i = 0; *cells && i < g->words; i++)
        all[i] |= (*cells)[i];
    *cells = all;
}

peal_box box_in_halo(const halo_map *m, int name, const halo_neighbour *n, const peal_box *box)
{
    int array = m->name[name].array;
    const peal_layout *mine = &m->view->layout[array], *its = &n->view->layout[array];
    const halo_grid *g = m->name[name].grid;
    peal_box moved = *box, region = g->own;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        int64_t shift = n->direction[k] < 0   ? mine->part.lo[k] - its->part.hi[k]
                        : n->direction[k] > 0 ? mine->part.hi[k] - its->part.lo[k]
                                              : mine->part.lo[k] - its->part.lo[k];
        moved.lo[k] += shift;
        moved.hi[k] += shift;
        if (n->direction[k] < 0) {
            region.lo[k] = g->stored.lo[k];
            region.hi[k] = g->own.lo[k];
        } else if (n->direction[k] > 0) {
            region.lo[k] = g->own.hi[k];
            region.hi[k] = g->stored.hi[k];
        }
    }
    return peal_box_intersect(&moved, &region);
}

void use_box_of(cell_builder *b, int name, const halo_neighbour *n, const peal_box *box)
{
    peal_box moved = box_in_halo(b->m, name, n, box);
    use_box(b, name, CELLS_CHANGED, &moved);
}

/* ---- Statements ---- */

void begin_effect(cell_builder *b, const peal_statement *s, int name, int access,
                  peal_source source)
{
    if (b->cuts) {
        b->effect = &b->unused;
        return;
    }
    effect_list *list = &b->m->effect[s->id];
    PEAL_ARENA_ROOM(b->m->arena, list->item, list->count, list->capacity);
    b->effect = &list->item[list->count++];
    *b->effect =
        (halo_effect){.name = name, .access = access, .source = source, .from = -1, .back = -1};
}

void set_when(cell_builder *b, const peal_statement *s, const rank_view *v)
{
    b->effect->when = v->statement[s->id].when;
}

void end_effect(cell_builder *b, const peal_statement *s)
{
    const halo_effect *e = b->effect;
    if (!b->cuts && !e->read && !e->change && !e->renew)
        b->m->effect[s->id].count--;
}

/* The visited points: without what star and grow add. */
static peal_box visited_range(const peal_reach *reach, const peal_box *box, const peal_box *stored)
{
    peal_reach narrow = *reach;
    for (int k = 0; k < PEAL_AXES; k++)
        if (!narrow.axis[k].fixed)
            narrow.axis[k].low = narrow.axis[k].high = 0;
    return reach_range(&narrow, box, stored);
}

static bool is_any_fixed(const peal_reach *reach, int axes)
{
    for (int k = 0; k < axes; k++)
        if (reach->axis[k].fixed)
            return true;
    return false;
}

static void use_own_access(cell_builder *b, int name, const peal_schedule_task *t,
                           const peal_task_access *a)
{
    const peal_box *stored = &b->m->view->layout[a->array].stored;
    const int axes = axes_of_points(b->m->c, b->m->view, a->array);
    for (int i = 0; i < t->tiling_count; i++)
        for (int k = 0; k < a->reach_count; k++) {
            peal_box box = reach_range(&a->reach[k], &t->tiling[i].box, stored);
            if (a->mode != PEAL_WRITE_ACCESS)
                use_box(b, name, CELLS_READ, &box);
            if (a->mode == PEAL_READ_ACCESS)
                continue;
            use_box(b, name, CELLS_CHANGED, &box);
            use_box(b, name, CELLS_TOUCHED, &box);
            if (t->count || (a->mode == PEAL_UPDATE_ACCESS && is_any_fixed(&a->reach[k], axes)))
                continue; /* nobody knows which of the points it writes */
            box = visited_range(&a->reach[k], &t->tiling[i].box, stored);
            use_box(b, name, CELLS_RENEWED, &box);
        }
}

static void use_access_of(cell_builder *b, int name, const halo_neighbour *n,
                          const peal_schedule_task *t, const peal_task_access *a)
{
    const peal_box *stored = &n->view->layout[a->array].stored;
    for (int i = 0; i < t->tiling_count; i++)
        for (int k = 0; k < a->reach_count; k++) {
            peal_box box = reach_range(&a->reach[k], &t->tiling[i].box, stored);
            use_box_of(b, name, n, &box);
        }
}

static void use_task(cell_builder *b, const peal_statement *s)
{
    const halo_map *m = b->m;
    const peal_task_statement *task = &s->u.task;
    for (int i = 0; i < task->access_count; i++) {
        const peal_access *access = &task->access[i];
        int name = m->name_of[access->array];
        if (name < 0)
            continue;
        begin_effect(b, s, name, i, access->source);
        b->effect->stale_is_meant = access->stale_is_meant;
        if (is_active(m->view, s)) {
            const peal_schedule_task *t = &m->view->task[m->view->statement[s->id].task];
            use_own_access(b, name, t, &t->access[i]);
        }
        for (int k = 0; access->mode != PEAL_READ_ACCESS && k < m->neighbour_count; k++) {
            const halo_neighbour *n = &m->neighbour[k];
            const peal_schedule_task *t = &n->view->task[n->view->statement[s->id].task];
            if (is_active(n->view, s))
                use_access_of(b, name, n, t, &t->access[i]);
        }
        end_effect(b, s);
    }
}

/* What the neighbours own of the field that gets the values. */
static void use_copy(cell_builder *b, const peal_statement *s, const peal_exchange_item *item)
{
    int name = b->m->name_of[item->into];
    if (name < 0)
        return;
    begin_effect(b, s, name, -1, item->source);
    for (int k = 0; k < b->m->neighbour_count; k++) {
        const halo_neighbour *n = &b->m->neighbour[k];
        if (is_active(n->view, s))
            use_box_of(b, name, n, &n->view->layout[item->into].part);
    }
    end_effect(b, s);
}

static peal_status use_exchange(cell_builder *b, const peal_statement *s)
{
    const halo_map *m = b->m;
    peal_box box[27];
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; peal_is_copy(s) && i < s->u.exchange.item_count; i++)
        use_copy(b, s, &s->u.exchange.item[i]);
    for (int i = 0; !status && !peal_is_copy(s) && i < s->u.exchange.item_count; i++) {
        const peal_exchange_item *item = &s->u.exchange.item[i];
        int name = m->name_of[item->array];
        if (name < 0 || !is_active(m->view, s))
            continue;
        begin_effect(b, s, name, -1, item->source);
        set_when(b, s, m->view);
        status = exchange_boxes(m->c, m->pass, m->view, item, box);
        for (int k = 0; k < 27; k++)
            use_box(b, name, CELLS_RENEWED, &box[k]);
        end_effect(b, s);
    }
    return status;
}

/* What of one's own is loaded: all. */
static void use_load(cell_builder *b, const peal_statement *s)
{
    int name = b->m->name_of[s->u.file.array];
    if (name < 0)
        return;
    begin_effect(b, s, name, -1, s->source);
    for (int k = 0; k < b->m->neighbour_count; k++) {
        const halo_neighbour *n = &b->m->neighbour[k];
        if (is_active(n->view, s))
            use_box_of(b, name, n, &n->view->layout[s->u.file.array].own);
    }
    end_effect(b, s);
}

static peal_status use_statements(cell_builder *b)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; !status && i < b->m->c->graph->statement_count; i++) {
        const peal_statement *s = b->m->c->statement[i];
        if (s && s->kind == PEAL_STATEMENT_TASK)
            use_task(b, s);
        else if (s && s->kind == PEAL_STATEMENT_EXCHANGE)
            status = use_exchange(b, s);
        else if (s && s->kind == PEAL_STATEMENT_LOAD)
            use_load(b, s);
        else if (s && s->kind == PEAL_STATEMENT_RECV)
            use_recv(b, s);
    }
    if (!b->cuts)
        use_sends(b);
    return status;
}

/* ---- A rank ---- */

/* Fields with a halo, and one grid for all that swaps exchange. */
static void name_fields(halo_map *m)
{
    const common_input *c = m->c;
    for (int i = 0; i < c->graph->array_count; i++) {
        const peal_layout *layout = &m->view->layout[i];
        halo_grid *grid = NULL;
        m->name_of[i] = -1;
        if (c->graph->arrays[i].kind != PEAL_ARRAY_FIELD ||
            peal_box_contains(&layout->own, &layout->stored))
            continue;
        for (int k = 0; k < i && c->swap_group[i] >= 0; k++)
            if (m->name_of[k] >= 0 && c->swap_group[k] == c->swap_group[i])
                grid = m->name[m->name_of[k]].grid;
        PEAL_ARENA_ROOM(m->arena, m->name, m->name_count, m->name_capacity);
        m->name_of[i] = m->name_count;
        m->name[m->name_count++] = (halo_name){.array = i,
                                               .recv = -1,
                                               .grid = grid ? grid : create_grid(m->arena, layout)};
    }
}

peal_status map_halos(halo_map *m)
{
    cell_builder b = {.m = m, .cuts = true};
    m->name_of = PEAL_ARENA_ARRAY(m->arena, int, m->c->graph->array_count + 1);
    m->effect = PEAL_ARENA_ARRAY(m->arena, effect_list, m->c->graph->statement_count + 1);
    name_fields(m);
    if (!m->name_count)
        return PEAL_STATUS_OK;
    peal_status status = use_statements(&b);
    int fields = m->name_count;
    for (int i = 0; i < fields; i++)
        if (!m->name[i].grid->halo)
            finish_grid(m, m->name[i].grid);
    b.cuts = false;
    if (!status)
        status = use_statements(&b);
    for (int i = 0; i < m->name_count; i++) {
        m->name[i].first_word = m->words;
        m->words += m->name[i].grid->words;
    }
    return status;
}
