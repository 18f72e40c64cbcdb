/* Topology: how many ranks along each axis, and who is whose neighbour. */
#include "scheduler/geometry/geometry.h"

#include <string.h>

static peal_source topology_source(const common_input *c)
{
    return c->graph->topology.source;
}

/* Ranks along one axis that own and store as many points as each other. */
typedef struct axis_class {
    int64_t own, stored;
} axis_class;

enum { CLASSES = 12 }; /* first, last, others: each with parts of up to three sizes, and spare */

/* The classes of an axis cut into `ranks`; -1: some rank gets no point, or a neighbour's halo is
 * wider than its part. */
static int axis_classes(const common_input *c, const field_shape *shape, int axis, int ranks,
                        axis_class out[CLASSES])
{
    bool periodic = axis < PEAL_RANK_AXES && c->periodic[axis];
    int64_t below = shape->halo[axis][0], above = shape->halo[axis][1];
    int count = 0;
    for (int position = 0; position < ranks; position++) {
        bool first = !periodic && position == 0, last = !periodic && position == ranks - 1;
        int64_t lo, hi;
        part_along(shape, axis, position, ranks, &lo, &hi);
        if (hi - lo < 1 || (!first && above > hi - lo) || (!last && below > hi - lo))
            return -1;
        axis_class found = {hi - lo + (first ? below : 0) + (last ? above : 0),
                            hi - lo + below + above};
        int i = 0;
        while (i < count && (out[i].own != found.own || out[i].stored != found.stored))
            i++;
        if (i == count && count < CLASSES)
            out[count++] = found;
    }
    return count;
}

/* Halo points that the busiest rank receives in one exchange of a field cut into dims; INT64_MAX:
 * it cannot be cut so. */
static int64_t busiest_halo(const common_input *c, const field_shape *shape,
                            const int dims[PEAL_RANK_AXES])
{
    axis_class class[PEAL_AXES][CLASSES];
    int count[PEAL_AXES], combinations = 1;
    int64_t most = 0;
    for (int k = 0; k < shape->axis_count; k++) {
        count[k] = axis_classes(c, shape, k, k < PEAL_RANK_AXES ? dims[k] : 1, class[k]);
        if (count[k] < 0)
            return INT64_MAX;
        combinations *= count[k];
    }
    for (int i = 0; i < combinations; i++) {
        int64_t own = 1, stored = 1;
        for (int k = 0, left = i; k < shape->axis_count; left /= count[k++]) {
            const axis_class *of = &class[k][left % count[k]];
            if (peal_multiply_overflows(own, of->own, &own) ||
                peal_multiply_overflows(stored, of->stored, &stored))
                return INT64_MAX;
        }
        most = stored - own > most ? stored - own : most;
    }
    return most;
}

typedef struct search {
    const cut_rules *rules;
    int field_count; /* whose shape is known */
    bool automatic[PEAL_RANK_AXES];
    int axis_count;
    int64_t best;
    int best_suits; /* cut_suits of it */
    int dims[PEAL_RANK_AXES], best_dims[PEAL_RANK_AXES];
    bool found;
} search;

/* Later axes with more ranks win ties. */
static bool later_is_larger(const search *s)
{
    for (int k = PEAL_RANK_AXES - 1; k >= 0; k--)
        if (s->dims[k] != s->best_dims[k])
            return s->dims[k] > s->best_dims[k];
    return false;
}

/* Halo points of the busiest ranks, of all fields; without a field: how unequal the factors are. */
static int64_t cost_of(const common_input *c, const search *s)
{
    int64_t sum = 0, halo;
    for (int i = 0; i < c->graph->array_count && s->field_count; i++) {
        if (!s->rules->known[i])
            continue;
        halo = busiest_halo(c, &s->rules->shape[i], s->dims);
        if (peal_add_overflows(sum, halo, &sum))
            return INT64_MAX;
    }
    if (s->field_count)
        return sum;
    int low = INT32_MAX, high = 1;
    for (int k = 0; k < s->axis_count; k++)
        if (s->automatic[k]) {
            low = s->dims[k] < low ? s->dims[k] : low;
            high = s->dims[k] > high ? s->dims[k] : high;
        }
    return high - low;
}

static void try_factors(const common_input *c, search *s, int axis, int left)
{
    if (axis == s->axis_count) {
        if (left != 1)
            return;
        int64_t cost = cost_of(c, s);
        int suits = cut_suits(c, s->rules, s->dims);
        if (!s->found || suits > s->best_suits ||
            (suits == s->best_suits &&
             (cost < s->best || (cost == s->best && later_is_larger(s))))) {
            s->best = cost;
            s->best_suits = suits;
            memcpy(s->best_dims, s->dims, sizeof(s->dims));
            s->found = true;
        }
        return;
    }
    if (!s->automatic[axis]) {
        try_factors(c, s, axis + 1, left);
        return;
    }
    for (int f = 1; f <= left / f; f++)
        for (int pair = 0; pair < 2 && left % f == 0; pair++) {
            s->dims[axis] = pair ? left / f : f;
            try_factors(c, s, axis + 1, left / s->dims[axis]);
        }
}

/* The dims that the topology gives; automatic ones are marked. */
static peal_status given_dims(const common_input *c, const pass_context *pass, search *s,
                              int64_t *product)
{
    const peal_topology *t = &c->graph->topology;
    peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    *product = 1;
    for (int k = 0; k < t->axis_count; k++) {
        s->automatic[k] = !t->dims[k] && !c->cut[k];
        *product *= c->cut[k] ? s->dims[k] : 1;
        if (!t->dims[k])
            continue;
        int64_t dim;
        peal_status status = peal_expr_integer(t->dims[k], &scope, 1, &dim, pass->diagnostics);
        if (status)
            return status;
        if (c->cut[k] && dim == s->dims[k])
            continue;
        if (c->cut[k])
            return peal_report(pass->diagnostics, PEAL_E_CUTS_MISMATCH, t->cut[k][0]->source,
                               "leave the axis out of `dims`, or write as many parts as it says",
                               "the cuts of axis %c make %d parts, `dims` says %lld", "xyz"[k],
                               s -> dims[k], (long long)dim);
        if (dim < 1 || dim > c->machine.ranks)
            return peal_report(pass->diagnostics, PEAL_E_TOPOLOGY_MISMATCH, t->dims[k]->source,
                               "give as many ranks along the axes as the run has, or `auto`",
                               "%lld ranks along axis %c, but the run has %d", (long long)dim,
                               "xyz"[k], c -> machine.ranks);
        s->dims[k] = (int)dim;
        *product *= dim;
    }
    return PEAL_STATUS_OK;
}

static peal_status refuse_dims(const common_input *c, const pass_context *pass, const search *s)
{
    return peal_report(
        pass->diagnostics, PEAL_E_TOPOLOGY_MISMATCH, topology_source(c),
        c->cut[0] || c->cut[1] || c->cut[2]
            ? "run on as many ranks as `cuts` and `dims` make, or leave the cuts out"
            : "run with a number of ranks that the dims divide, change `dims`, or write `auto`",
        "the topology's dims [%d, %d, %d]%s do not make %d ranks", s->dims[0], s->dims[1],
        s->dims[2],
        s->automatic[0] || s->automatic[1] || s->automatic[2] ? " (some automatic)" : "",
        c->machine.ranks);
}

/* Axes that may be cut where no topology is given: those of the fields. */
static int field_axes(const peal_graph_data *graph)
{
    int most = 0;
    for (int i = 0; i < graph->array_count; i++)
        if (graph->arrays[i].kind == PEAL_ARRAY_FIELD && graph->arrays[i].axis_count > most)
            most = graph->arrays[i].axis_count;
    return most == 0 ? 1 : most < PEAL_RANK_AXES ? most : PEAL_RANK_AXES;
}

peal_status choose_dims(common_input *c, const pass_context *pass)
{
    const peal_topology *t = &c->graph->topology;
    cut_rules rules;
    search s = {.rules = &rules, .dims = {1, 1, 1}, .best_dims = {1, 1, 1}};
    int64_t product = 1;
    memcpy(c->periodic, t->periodic, sizeof(c->periodic)); /* shapes depend on it */
    peal_status read = read_given_cuts(c, pass, s.dims);
    if (read)
        return read;
    read_cut_rules(c, pass, &rules);
    read = check_given_cuts(c, pass, &rules);
    if (read)
        return read;
    for (int i = 0; i < c->graph->array_count; i++)
        s.field_count += rules.known[i];
    if (t->given) {
        s.axis_count = t->axis_count;
        peal_status status = given_dims(c, pass, &s, &product);
        if (status)
            return status;
    } else {
        s.axis_count = field_axes(c->graph);
        for (int k = 0; k < s.axis_count; k++)
            s.automatic[k] = true;
    }
    if (c->machine.ranks % product)
        return refuse_dims(c, pass, &s);
    try_factors(c, &s, 0, (int)(c->machine.ranks / product));
    if (!s.found)
        return refuse_dims(c, pass, &s);
    memcpy(c->dims, s.best_dims, sizeof(c->dims));
    return PEAL_STATUS_OK;
}

int neighbour(const common_input *c, const int position[PEAL_RANK_AXES],
              const int direction[PEAL_RANK_AXES])
{
    int rank = 0, stride = 1;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        int p = position[k] + direction[k];
        if (p < 0 || p >= c->dims[k]) {
            if (!c->periodic[k])
                return -1;
            p = (p + c->dims[k]) % c->dims[k];
        }
        rank += p * stride;
        stride *= c->dims[k];
    }
    return rank;
}

void find_neighbours(const common_input *c, int rank, int peer[27])
{
    int position[PEAL_RANK_AXES];
    for (int axis = 0, left = rank; axis < PEAL_RANK_AXES; left /= c->dims[axis++])
        position[axis] = left % c->dims[axis];
    for (int number = 0; number < 27; number++) {
        int direction[PEAL_RANK_AXES] = {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1};
        peer[number] = neighbour(c, position, direction);
    }
}

int halo_owner(const common_input *c, const rank_view *v, int array,
               const int direction[PEAL_RANK_AXES])
{
    if (!c->graph->arrays[array].replicated)
        return neighbour(c, v->position, direction);
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        if (direction[k] && !c->periodic[k])
            return -1;
    return v->rank; /* images of its own points */
}

bool has_neighbour(const common_input *c, const rank_view *v, int array, int axis, int side)
{
    if (axis >= PEAL_RANK_AXES)
        return false;
    if (c->periodic[axis] || c->graph->arrays[array].replicated)
        return c->periodic[axis];
    return (side ? v->position[axis] + 1 < c->dims[axis] : v->position[axis] > 0);
}
