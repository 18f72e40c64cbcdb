/* Which nodes of a body have to stay in order, without a look at each pair.
 *
 * The boxes that nodes write cut an array into cells, each of which a node writes whole or not at
 * all. The nodes of a statement that writes a cell wait for all that have touched it since it was
 * written last; what is older has been waited for by these. Nodes of one statement, of which some
 * need not wait for each other, stand side by side in a body (nodes.c), so they are looked at
 * together.
 */
#include "scheduler/order/nodes.h"

#include "base/box.h"
#include "base/sorted.h"

#include <stdlib.h>

enum { MOST_CELLS = 1 << 20 };

/* Indexes of touches in a cell's order. */
typedef struct touch_list {
    int *item;
    int count, capacity;
} touch_list;

typedef struct cell {
    bool is_written;
    touch_list reads, writes; /* since the last statement that wrote it; its own, too */
} cell;

/* A touch of one array. */
typedef struct array_touch {
    int array, node;
    const touch *touch;
} array_touch;

/* Cells of an array; as one where cells would cost more than to compare each with each. */
typedef struct cell_grid {
    int64_t *cut[PEAL_AXES]; /* cell i of an axis: [cut[i], cut[i + 1]) */
    int cells[PEAL_AXES];
    bool is_exact; /* false: one cell, in which boxes are compared */
    cell *cell;
} cell_grid;

typedef struct precedence_pass {
    const pass_context *pass;
    const node_list *body;
    array_touch *touch; /* of the array that is looked at */
    int touch_count;
    cell_grid grid;
    touch_list renewed; /* cells that the statement has written */
    node_pair *pair;
    int pair_count, pair_capacity;
} precedence_pass;

static void add_index(const pass_context *pass, touch_list *list, int index)
{
    PEAL_ARENA_ROOM(pass->arena, list->item, list->count, list->capacity);
    list->item[list->count++] = index;
}

/* Of one exchange: own cells are sent, distinct halo cells are received. */
static bool are_one_exchange(const node *a, const node *b)
{
    return a->statement == b->statement && a->statement >= 0 &&
           ((a->kind == NODE_SEND && (b->kind == NODE_SEND || b->kind == NODE_RECV)) ||
            (a->kind == NODE_RECV && b->kind == NODE_RECV)) &&
           a->event / EVENTS == b->event / EVENTS && b->event - a->event <= 1;
}

/* Tiles of a task touch elements of their own. */
static bool are_own_elements(const node *a, const touch *of_a, const node *b, const touch *of_b)
{
    return a->kind == NODE_LAUNCH && b->kind == NODE_LAUNCH && a->task == b->task &&
           of_a->per_tile && of_a->per_tile == of_b->per_tile;
}

/* ---- cells ---- */

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static void make_cuts(precedence_pass *p, int axis)
{
    int count = 0;
    int64_t *cut = PEAL_ARENA_ARRAY(p->pass->arena, int64_t, 2 * p->touch_count + 1);
    for (int i = 0; i < p->touch_count; i++)
        if (p->touch[i].touch->write) {
            cut[count++] = p->touch[i].touch->box.lo[axis];
            cut[count++] = p->touch[i].touch->box.hi[axis];
        }
    count = peal_sort_unique(cut, count, sizeof(*cut), ascending);
    p->grid.cut[axis] = cut;
    p->grid.cells[axis] = count ? count - 1 : 0;
}

/* How many cuts are below a coordinate. */
static int cuts_below(const cell_grid *grid, int axis, int64_t coordinate)
{
    return peal_sorted_first(&coordinate, grid->cut[axis], grid->cells[axis] + 1,
                             sizeof(coordinate), ascending);
}

/* The cells that a box meets, by axis; how many. */
static int64_t find_cells(const cell_grid *grid, const peal_box *box, peal_box *cells)
{
    *cells = (peal_box){.axis_count = PEAL_AXES};
    for (int k = 0; k < PEAL_AXES; k++) {
        int first = cuts_below(grid, k, box->lo[k] + 1) - 1, end = cuts_below(grid, k, box->hi[k]);
        cells->lo[k] = first > 0 ? first : 0;
        cells->hi[k] = end < grid->cells[k] ? end : grid->cells[k];
    }
    return peal_box_points(cells);
}

static cell *cell_at(const cell_grid *grid, const int64_t at[PEAL_AXES])
{
    int64_t index = 0;
    for (int k = PEAL_AXES - 1; k >= 0; k--)
        index = index * grid->cells[k] + at[k];
    return &grid->cell[index];
}

/* False: it was the last one. */
static bool next_cell(const peal_box *cells, int64_t at[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++) {
        if (++at[k] < cells->hi[k])
            return true;
        at[k] = cells->lo[k];
    }
    return false;
}

/* Whether cells cost no more than pairs. */
static bool pays(const precedence_pass *p)
{
    int64_t cells = 1, met = 0, count = p->touch_count;
    peal_box met_cells;
    for (int k = 0; k < PEAL_AXES; k++)
        cells = cells * p->grid.cells[k] < MOST_CELLS ? cells * p->grid.cells[k] : MOST_CELLS;
    for (int64_t i = 0; i < count && met <= count * count; i++)
        met += find_cells(&p->grid, &p->touch[i].touch->box, &met_cells);
    return cells < MOST_CELLS && cells + met <= 64 + count * count / 2;
}

static void use_one_cell(cell_grid *grid)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        grid->cut[k][1] = grid->cut[k][grid->cells[k]];
        grid->cells[k] = 1;
    }
}

/* False: nobody writes. */
static bool make_cells(precedence_pass *p)
{
    cell_grid *grid = &p->grid;
    int64_t count = 1;
    for (int k = 0; k < PEAL_AXES; k++)
        make_cuts(p, k);
    if (!grid->cells[0])
        return false;
    grid->is_exact = pays(p);
    if (!grid->is_exact)
        use_one_cell(grid);
    for (int k = 0; k < PEAL_AXES; k++)
        count *= grid->cells[k];
    grid->cell = PEAL_ARENA_ARRAY(p->pass->arena, cell, count);
    for (int i = 0; i < p->touch_count; i++) {
        peal_box cells;
        if (!p->touch[i].touch->write || !find_cells(grid, &p->touch[i].touch->box, &cells))
            continue;
        int64_t at[PEAL_AXES] = {cells.lo[0], cells.lo[1], cells.lo[2], cells.lo[3]};
        do
            cell_at(grid, at)->is_written = true;
        while (next_cell(&cells, at));
    }
    return true;
}

/* ---- pairs ---- */

static void wait_for(precedence_pass *p, const touch_list *list, const array_touch *b)
{
    for (int i = 0; i < list->count; i++) {
        const array_touch *a = &p->touch[list->item[i]];
        const node *first = p->body->item[a->node], *second = p->body->item[b->node];
        if (a->node == b->node || are_one_exchange(first, second) ||
            are_own_elements(first, a->touch, second, b->touch) ||
            !(p->grid.is_exact || peal_box_meets(&a->touch->box, &b->touch->box)))
            continue;
        PEAL_ARENA_ROOM(p->pass->arena, p->pair, p->pair_count, p->pair_capacity);
        p->pair[p->pair_count++] = (node_pair){a->node, b->node};
    }
}

static void enter_cell(precedence_pass *p, cell *into, int index)
{
    const array_touch *t = &p->touch[index];
    wait_for(p, &into->writes, t);
    if (t->touch->write)
        wait_for(p, &into->reads, t);
    add_index(p->pass, t->touch->write ? &into->writes : &into->reads, index);
    if (t->touch->write)
        add_index(p->pass, &p->renewed, (int)(into - p->grid.cell));
}

static void keep_from(touch_list *list, int first)
{
    int kept = 0;
    for (int i = 0; i < list->count; i++)
        if (list->item[i] >= first)
            list->item[kept++] = list->item[i];
    list->count = kept;
}

/* The statement whose touches begin with `first` has ended: in the cells that it has written it
 * stands for all before. */
static void end_statement(precedence_pass *p, int first)
{
    for (int i = 0; i < p->renewed.count && p->grid.is_exact; i++) {
        keep_from(&p->grid.cell[p->renewed.item[i]].reads, first);
        keep_from(&p->grid.cell[p->renewed.item[i]].writes, first);
    }
    p->renewed.count = 0;
}

static void order_array(precedence_pass *p)
{
    int first = 0;
    if (!make_cells(p))
        return;
    for (int i = 0; i < p->touch_count; i++) {
        peal_box cells;
        if (p->body->item[p->touch[i].node]->statement !=
            p->body->item[p->touch[first].node]->statement) {
            end_statement(p, first);
            first = i;
        }
        if (!find_cells(&p->grid, &p->touch[i].touch->box, &cells))
            continue;
        int64_t at[PEAL_AXES] = {cells.lo[0], cells.lo[1], cells.lo[2], cells.lo[3]};
        do
            if (cell_at(&p->grid, at)->is_written)
                enter_cell(p, cell_at(&p->grid, at), i);
        while (next_cell(&cells, at));
    }
    p->renewed.count = 0;
}

static int by_array(const void *left, const void *right)
{
    const array_touch *a = left, *b = right;
    if (a->array != b->array)
        return a->array < b->array ? -1 : 1;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return a->touch < b->touch ? -1 : a->touch > b->touch;
}

/* A last node comes after all others. */
static void add_last(precedence_pass *p)
{
    for (int b = 0; b < p->body->count; b++)
        for (int a = 0; a < b && p->body->item[b]->last; a++) {
            PEAL_ARENA_ROOM(p->pass->arena, p->pair, p->pair_count, p->pair_capacity);
            p->pair[p->pair_count++] = (node_pair){a, b};
        }
}

static int by_nodes(const void *left, const void *right)
{
    const node_pair *a = left, *b = right;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a->second < b->second ? -1 : a->second > b->second;
}

node_pair *find_precedence(const pass_context *pass, const node_list *body, int *count)
{
    precedence_pass p = {.pass = pass, .body = body};
    int total = 0;
    for (int i = 0; i < body->count; i++)
        total += body->item[i]->touch_count;
    array_touch *all = PEAL_ARENA_ARRAY(pass->arena, array_touch, total + 1);
    total = 0;
    for (int i = 0; i < body->count; i++)
        for (int k = 0; k < body->item[i]->touch_count; k++) {
            const touch *t = &body->item[i]->touch[k];
            if (!peal_box_is_empty(&t->box))
                all[total++] = (array_touch){t->array, i, t};
        }
    qsort(all, (size_t)total, sizeof(*all), by_array);
    for (int i = 0, end; i < total; i = end) {
        for (end = i; end < total && all[end].array == all[i].array; end++)
            ;
        p.touch = all + i;
        p.touch_count = end - i;
        order_array(&p);
    }
    add_last(&p);
    *count = peal_sort_unique(p.pair, p.pair_count, sizeof(*p.pair), by_nodes);
    return p.pair;
}
