/* Classes: which positions along an axis of the topology look alike, so that one rank of each class
 * stands for all of them.
 *
 * Everything that a rank's geometry, tasks and message ends depend on is the same on all ranks, or
 * is listed here as numbers of its positions: how many points its parts have, whether it is first
 * or last, where the ends of boxes that the graph names lie in its part (beyond what it stores:
 * just before or after), and the values of expressions in which `rx` and the like occur. Positions
 * with equal numbers are of one class; a rank's class is that of its three positions. A plain cut
 * has at most four an axis, and six neighbourhoods. Where something else tells ranks apart, such as
 * a list of ranks or a file each, they are not classed. */
#include "scheduler/classes/rank_classes.h"
#include "scheduler/geometry/geometry.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 96, MARKS = 32, EXPRESSIONS = 16 };

/* Axes that an expression depends on are bits 0 to 2. */
enum { RANK_ITSELF = 8 };

/* A coordinate of a field that boxes begin or end at. */
typedef struct landmark {
    int field;
    int64_t at;
} landmark;

typedef struct axis_search {
    landmark mark[MARKS];
    int mark_count;
    const peal_expr *expr[EXPRESSIONS];
    int expr_count;
    int single[EXPRESSIONS]; /* positions of ranks that the graph names */
    int single_count;
    int64_t period; /* all coarsenings divide it */
} axis_search;

typedef struct class_search {
    const common_input *c;
    const pass_context *pass;
    peal_scope scope;   /* what is the same on all ranks */
    field_shape *shape; /* by array: fields */
    int only_axis;      /* the one along which there are ranks; -1: several */
    bool messages;      /* ends of messages count as well */
    bool alike;         /* nothing was found so far that cannot be listed */
    axis_search axis[PEAL_RANK_AXES];
} class_search;

/* ---- What may tell ranks apart ---- */

static unsigned axes_of(const class_search *f, const peal_expr *e)
{
    unsigned axes = 0;
    switch (e->kind) {
    case PEAL_EXPR_RANK:
        return f->only_axis < 0 ? RANK_ITSELF : 1u << f->only_axis;
    case PEAL_EXPR_ORIGIN:
        return RANK_ITSELF;
    case PEAL_EXPR_RANK_AXIS:
        return 1u << e->axis;
    default: /* extents and counts follow from the class */
        for (int i = 0; i < e->operand_count; i++)
            axes |= axes_of(f, e->operand[i]);
        return axes;
    }
}

/* rank == n: told apart by the positions of rank n. */
static bool note_single_rank(class_search *f, const peal_expr *e)
{
    int64_t rank;
    if ((e->op != PEAL_OPERATOR_EQUAL && e->op != PEAL_OPERATOR_UNEQUAL) ||
        e->operand[0]->kind != PEAL_EXPR_RANK || peal_expr_uses(e->operand[1]) ||
        peal_expr_integer(e->operand[1], &f->scope, 0, &rank, NULL))
        return false;
    if (rank < 0 || rank >= f->c->machine.ranks)
        return true; /* the same everywhere */
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        axis_search *a = &f->axis[k];
        if (a->single_count == EXPRESSIONS)
            return false;
        a->single[a->single_count++] = (int)(rank % f->c->dims[k]);
        rank /= f->c->dims[k];
    }
    return true;
}

static void note(class_search *f, const peal_expr *e)
{
    unsigned axes = e ? axes_of(f, e) : 0;
    if (!axes)
        return;
    if (axes == 1 || axes == 2 || axes == 4) {
        axis_search *a = &f->axis[axes / 2];
        if (a->expr_count < EXPRESSIONS && !(peal_expr_uses(e) & ~(unsigned)PEAL_USES_RANK))
            a->expr[a->expr_count++] = e;
        else
            f->alike = false;
    } else if (e->kind != PEAL_EXPR_OPERATOR)
        f->alike = false;
    else if (!note_single_rank(f, e))
        for (int i = 0; i < e->operand_count; i++)
            note(f, e->operand[i]);
}

/* Of a condition that counters or the run decide as well: what the rank makes of it. */
static void note_mixed(class_search *f, const peal_expr *e)
{
    if (!(peal_expr_uses(e) & PEAL_USES_RANK))
        return;
    if (!(peal_expr_uses(e) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT)))
        note(f, e);
    else
        for (int i = 0; i < e->operand_count; i++)
            note_mixed(f, e->operand[i]);
}

static void note_amount(class_search *f, const peal_amount *amount)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        note(f, amount->low[k]);
        note(f, amount->high[k]);
    }
}

static void note_ranges(class_search *f, const peal_ranges *ranges)
{
    for (int k = 0; k < ranges->axis_count; k++) {
        note(f, ranges->low[k]);
        note(f, ranges->high[k]);
    }
}

/* The field in whose coordinates an array's points are counted; -1: none. */
static int field_of(const class_search *f, int array)
{
    while (array >= 0 && f->c->graph->arrays[array].kind == PEAL_ARRAY_BUFFER)
        array = f->c->graph->arrays[array].points.kind == PEAL_POINTS_ONE
                    ? -1
                    : f->c->graph->arrays[array].points.array;
    return array;
}

/* A landmark is a number that all ranks agree on. */
static void mark(class_search *f, int k, int field, int64_t origin, int sign, const peal_expr *e)
{
    int64_t offset = 0;
    axis_search *a = &f->axis[k];
    if (a->mark_count == MARKS || (e && peal_expr_uses(e) & PEAL_USES_RANK) ||
        peal_expr_integer(e, &f->scope, 0, &offset, NULL) || offset > INT32_MAX ||
        offset < -(int64_t)INT32_MAX)
        f->alike = false;
    else
        a->mark[a->mark_count++] = (landmark){field, origin + sign * offset};
}

static void note_points(class_search *f, const peal_points *p)
{
    int field = field_of(f, p->array);
    note_amount(f, &p->amount);
    note_amount(f, &p->part_amount);
    note_ranges(f, &p->ranges);
    for (int k = 0; k < p->direction.axis_count; k++)
        note(f, p->direction.step[k]);
    note(f, p->maximum);
    for (int k = 0; field >= 0 && f->alike && k < PEAL_RANK_AXES; k++) {
        const field_shape *s = &f->shape[field];
        if (k >= s->axis_count)
            break;
        bool grows = p->kind == PEAL_POINTS_GROW, rim = p->kind == PEAL_POINTS_RIM;
        if (p->kind == PEAL_POINTS_RANGES && k < p->ranges.axis_count) {
            mark(f, k, field, 0, 1, p->ranges.low[k]);
            mark(f, k, field, 0, 1, p->ranges.high[k]);
        } else if (grows || rim || p->part == PEAL_PART_EXTENDED) {
            mark(f, k, field, 0, rim ? 1 : -1, grows || rim ? p->amount.low[k] : NULL);
            mark(f, k, field, s->size[k], rim ? -1 : 1, grows || rim ? p->amount.high[k] : NULL);
        }
    }
}

static void note_array(class_search *f, const peal_array *a)
{
    for (int k = 0; k < a->axis_count; k++) {
        note(f, a->size[k]);
        note(f, a->align[k]);
        note(f, a->stagger[k]);
        note(f, a->coarsen[k]);
    }
    note_amount(f, &a->halo);
    note(f, a->count);
    note_points(f, &a->points);
    for (int i = 0; i < a->value_count && f->messages; i++) /* others use no more than the count */
        note(f, a->values[i]);
    f->alike &= !a->file || !strchr(a->file, '{');
}

/* What tiles touch moves with the part, unless the box and the array count from different origins.
 */
static void note_access(class_search *f, const peal_points *box, const peal_access *a)
{
    bool global = field_of(f, a->array) >= 0, tiles_are_global = field_of(f, box->array) >= 0;
    bool relative = a->footprint == PEAL_FOOTPRINT_TILE || a->footprint == PEAL_FOOTPRINT_GROW ||
                    a->footprint == PEAL_FOOTPRINT_STAR;
    note_amount(f, &a->amount);
    note_ranges(f, &a->ranges);
    note(f, a->per_tile);
    if (relative && box->kind != PEAL_POINTS_ONE)
        f->alike &= global == tiles_are_global;
    if (a->footprint == PEAL_FOOTPRINT_RANGES)
        f->alike &= !global;
}

static void note_message(class_search *f, const peal_message_statement *m)
{
    note_points(f, &m->points);
    for (int k = 0; k < m->peers.direction.axis_count; k++)
        note(f, m->peers.direction.step[k]);
    note(f, m->tag);
    note(f, m->offset);
    f->alike &= m->peers.kind == PEAL_PEER_DIRECTION;
}

static void note_statement(class_search *f, const peal_statement *s)
{
    const peal_task_statement *task = &s->u.task;
    bool message = s->kind == PEAL_STATEMENT_SEND || s->kind == PEAL_STATEMENT_RECV;
    if (s->when && !(peal_expr_uses(s->when) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT)))
        note(f, s->when);
    else if (s->when && (f->messages || !message))
        note_mixed(f, s->when);
    switch (s->kind) {
    case PEAL_STATEMENT_TASK:
        note_points(f, &task->box);
        for (int k = 0; k < PEAL_AXES; k++)
            note(f, task->tile[k]);
        for (int i = 0; i < task->access_count; i++)
            note_access(f, &task->box, &task->access[i]);
        break;
    case PEAL_STATEMENT_EXCHANGE:
        for (int i = 0; i < s->u.exchange.item_count; i++)
            note_amount(f, &s->u.exchange.item[i].amount);
        f->alike &= !peal_is_copy(s); /* who has what is not told by a rank's position alone */
        break;
    case PEAL_STATEMENT_SEND:
    case PEAL_STATEMENT_RECV:
        if (f->messages)
            note_message(f, &s->u.message);
        break;
    case PEAL_STATEMENT_REDUCE:
        note(f, s->u.reduce.root);
        break;
    default:
        break;
    }
}

static void note_graph(class_search *f)
{
    const peal_graph_data *g = f->c->graph;
    for (int i = 0; i < g->array_count && f->alike; i++)
        if (g->arrays[i].kind == PEAL_ARRAY_FIELD) {
            f->alike = !shape_of(f->c, f->pass, &f->scope, i, &f->shape[i]);
            for (int k = 0; f->alike && k < f->shape[i].axis_count && k < PEAL_RANK_AXES; k++)
                if (peal_multiply_overflows(f->axis[k].period, f->shape[i].coarsen[k],
                                            &f->axis[k].period))
                    f->alike = false;
        }
    for (int i = 0; i < g->array_count && f->alike; i++)
        note_array(f, &g->arrays[i]);
    for (int i = 0; i < g->statement_count && f->alike; i++)
        if (f->c->statement[i])
            note_statement(f, f->c->statement[i]);
}

/* ---- Positions with equal numbers ---- */

typedef struct position_numbers {
    int64_t number[NUMBERS];
    int count;
} position_numbers;

static void add_number(position_numbers *n, int64_t number)
{
    if (n->count < NUMBERS)
        n->number[n->count] = number;
    n->count++; /* too many: seen later */
}

/* First point of a part on the finest grid. */
static int64_t fine_start(const class_search *f, const field_shape *s, int k, int position)
{
    field_shape fine = *s;
    int64_t lo, hi;
    fine.coarsen[k] = 1;
    fine.stagger[k] = 0;
    part_along(&fine, k, position, f->c->dims[k], &lo, &hi);
    return lo;
}

static void add_mark(const class_search *f, position_numbers *n, int k, int position,
                     const landmark *m)
{
    const field_shape *s = &f->shape[m->field];
    bool periodic = f->c->periodic[k];
    int64_t lo, hi;
    part_along(s, k, position, f->c->dims[k], &lo, &hi);
    for (int image = periodic ? -1 : 0; image <= (periodic ? 1 : 0); image++) {
        int64_t at = m->at + image * s->size[k] - lo;
        int64_t least = -s->halo[k][0] - 1, most = hi - lo + s->halo[k][1] + 1;
        add_number(n, at < least ? least : at > most ? most : at);
    }
}

static void add_fields(const class_search *f, position_numbers *n, int k, int position)
{
    int64_t start = -1;
    for (int i = 0; i < f->c->graph->array_count; i++) {
        const field_shape *s = &f->shape[i];
        int64_t lo, hi;
        if (k >= s->axis_count)
            continue;
        part_along(s, k, position, f->c->dims[k], &lo, &hi);
        int64_t fine = fine_start(f, s, k, position);
        if (start < 0)
            start = fine;
        add_number(n, hi - lo);
        add_number(n, fine - start);
    }
    add_number(n, start < 0 ? 0 : start % f->axis[k].period);
}

static bool number_position(class_search *f, position_numbers *n, int k, int position)
{
    const axis_search *a = &f->axis[k];
    bool periodic = f->c->periodic[k];
    n->count = 0;
    add_number(n, !periodic && position == 0);
    add_number(n, !periodic && position == f->c->dims[k] - 1);
    add_fields(f, n, k, position);
    for (int i = 0; i < a->mark_count; i++)
        add_mark(f, n, k, position, &a->mark[i]);
    for (int i = 0; i < a->single_count; i++)
        add_number(n, a->single[i] == position);
    peal_scope scope = f->scope;
    scope.rank = position;
    scope.position[k] = position;
    for (int i = 0; i < a->expr_count; i++) {
        peal_value value;
        if (peal_expr_evaluate(a->expr[i], &scope, &value, NULL))
            return false;
        add_number(n, value.kind == PEAL_BOOLEAN ? value.u.boolean : value.u.integer);
    }
    return n->count <= NUMBERS;
}

static bool find_axis_classes(class_search *f, int k, rank_classes *out)
{
    int dims = f->c->dims[k], last = 0;
    position_numbers now, known[MOST_POSITION_CLASSES];
    out->of[k] = PEAL_ARENA_ARRAY(f->pass->arena, unsigned char, dims);
    for (int position = 0; position < dims; position++) {
        if (!number_position(f, &now, k, position))
            return false;
        size_t bytes = (size_t)now.count * sizeof(now.number[0]);
        if (!out->count[k] || memcmp(known[last].number, now.number, bytes))
            for (last = 0; last < out->count[k]; last++)
                if (!memcmp(known[last].number, now.number, bytes))
                    break;
        if (last == MOST_POSITION_CLASSES)
            return false;
        if (last == out->count[k]) {
            known[last] = now;
            out->first[k][out->count[k]++] = position;
        }
        out->of[k][position] = (unsigned char)last;
    }
    return true;
}

/* Class of the position beside another; -1: there is none. */
static int class_beside(const common_input *c, const rank_classes *classes, int k, int position)
{
    int dims = c->dims[k];
    if (position < 0 || position >= dims) {
        if (!c->periodic[k])
            return -1;
        position = (position + dims) % dims;
    }
    return classes->of[k][position];
}

static bool find_neighbourhoods(const common_input *c, int k, rank_classes *out)
{
    int known[MOST_POSITION_CLASSES][3], last = 0;
    for (int position = 0; position < c->dims[k]; position++) {
        int now[3];
        for (int side = 0; side < 3; side++)
            now[side] = class_beside(c, out, k, position + side - 1);
        if (out->around_count[k] && !memcmp(known[last], now, sizeof(now)))
            continue;
        for (last = 0; last < out->around_count[k]; last++)
            if (!memcmp(known[last], now, sizeof(now)))
                break;
        if (last < out->around_count[k])
            continue;
        if (last == MOST_POSITION_CLASSES)
            return false;
        memcpy(known[last], now, sizeof(now));
        out->around[k][out->around_count[k]++] = position;
    }
    return true;
}

bool find_classes(const common_input *c, const pass_context *pass, bool messages, rank_classes *out)
{
    /* what is wrong is reported when a rank is analysed */
    const pass_context quiet = {pass->arena, NULL};
    class_search f = {.c = c, .pass = &quiet, .only_axis = -1, .messages = messages, .alike = true};
    int axes = 0;
    f.shape = PEAL_ARENA_ARRAY(pass->arena, field_shape, c->graph->array_count + 1);
    f.scope = (peal_scope){.graph = c->graph, .ranks = c->machine.ranks};
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        f.scope.dims[k] = c->dims[k];
        f.axis[k].period = 1;
        axes += c->dims[k] > 1;
        f.only_axis = c->dims[k] > 1 ? k : f.only_axis;
    }
    f.only_axis = axes > 1 ? -1 : f.only_axis < 0 ? 0 : f.only_axis;
    note_graph(&f);
    *out = (rank_classes){0};
    for (int k = 0; k < PEAL_RANK_AXES && f.alike; k++)
        f.alike = find_axis_classes(&f, k, out) && find_neighbourhoods(c, k, out);
    return f.alike;
}

int class_count(const rank_classes *classes)
{
    return classes->count[0] * classes->count[1] * classes->count[2];
}

int class_of(const common_input *c, const rank_classes *classes, int rank)
{
    int class = 0, stride = 1;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        class += stride * classes->of[k][rank % c->dims[k]];
        stride *= classes->count[k];
        rank /= c->dims[k];
    }
    return class;
}

/* The rank whose position along each axis is the one that `number` picks of a list. */
static int pick_rank(const common_input *c, const int count[PEAL_RANK_AXES],
                     const int (*position)[MOST_POSITION_CLASSES], int number)
{
    int rank = 0, stride = 1;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        rank += stride * position[k][number % count[k]];
        number /= count[k];
        stride *= c->dims[k];
    }
    return rank;
}

int class_rank(const common_input *c, const rank_classes *classes, int class)
{
    return pick_rank(c, classes->count, classes->first, class);
}

int neighbourhood_rank(const common_input *c, const rank_classes *classes, int number)
{
    return pick_rank(c, classes->around_count, classes->around, number);
}
