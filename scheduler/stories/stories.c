/* Stories of messages that do not fit, of cycles of waits and of tiles that meet. */
#include "scheduler/stories/stories.h"
#include "scheduler/conditions/conditions.h"
#include "scheduler/geometry/geometry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TRIED_STEPS = 1024, TRIED_ITERATIONS = 16, NAMED = 120 };

/* Whether the `when` of a statement and those of the loops around it hold, as far as counters say.
 */
static bool may_happen(const common_input *c, const peal_statement *s, const peal_scope *scope)
{
    bool happens = true;
    for (int at = s->id; at >= 0 && happens; at = c->statement_loop[at]) {
        const peal_expr *when = c->statement[at]->when;
        if (when && !(peal_expr_uses(when) & PEAL_USES_ELEMENT) &&
            peal_expr_boolean(when, scope, true, &happens, NULL))
            return true;
    }
    return happens;
}

static peal_scope scope_of(const common_input *c, int rank, const int64_t counter[8])
{
    peal_scope scope = {.graph = c->graph,
                        .rank = rank,
                        .ranks = c->machine.ranks,
                        .counter = counter,
                        .counter_count = 8};
    for (int axis = 0, left = rank; axis < PEAL_RANK_AXES; left /= c->dims[axis++]) {
        scope.dims[axis] = c->dims[axis];
        scope.position[axis] = left % c->dims[axis];
    }
    return scope;
}

/* A statement on a rank. */
typedef struct told_end {
    const peal_statement *s; /* NULL: none */
    int rank;
} told_end;

/* The first step in which `one` may happen and `other` does not; -1: none is found. Inner loops are
 * tried in their first iterations. */
static int64_t find_step(const common_input *c, told_end one, told_end other)
{
    int64_t counter[8] = {0}, steps = known_steps(c);
    peal_scope here = scope_of(c, one.rank, counter), there = scope_of(c, other.rank, counter);
    int inner = c->statement_loop[one.s->id] >= 0 ? TRIED_ITERATIONS : 1;
    steps = steps < 0 || steps > TRIED_STEPS ? TRIED_STEPS : steps;
    for (int64_t i = 0; i < steps * inner; i++) {
        counter[0] = i / inner;
        for (int k = 1; k < 8; k++)
            counter[k] = i % inner;
        if (may_happen(c, one.s, &here) && !(other.s && may_happen(c, other.s, &there)))
            return counter[0];
    }
    return -1;
}

int64_t story_step(const common_input *c, const peal_statement *s, int rank)
{
    if (c->statement_section[s->id] != LOOP_OUTER)
        return c->statement_section[s->id] == LOOP_SETUP ? PEAL_STORY_SETUP : PEAL_STORY_FINISH;
    int64_t step = find_step(c, (told_end){s, rank}, (told_end){NULL, rank});
    return step < 0 ? 0 : step;
}

/* ---- Messages ---- */

/* "send of `a` to rank 1: 4 elements of f64, tag 0, direction [1, 0, 0]", the sender's. */
static int add_end(const common_input *c, const end_summary *r, bool outgoing, peal_story *out)
{
    const peal_statement *s = c->statement[r->statement];
    int array = s->u.message.points.array;
    char direction[48] = "";
    if (r->direction >= 0)
        snprintf(direction, sizeof(direction), ", sender's direction [%d, %d, %d]",
                 r->direction % 3 - 1, r->direction / 3 % 3 - 1, r->direction / 9 - 1);
    return peal_story_add(out, outgoing ? r->from : r->to,
                          story_step(c, s, outgoing ? r->from : r->to), s->source,
                          "%s of `%s` %s rank %d: %" PRId64 " element%s of %s, tag %" PRId64 "%s",
                          outgoing ? "send" : "recv", array_name(c, array),
                          outgoing ? "to" : "from", outgoing ? r->to : r->from, r->count,
                          r->count == 1 ? "" : "s", peal_type_name(array_type(c, array)), r->tag,
                          direction);
}

/* A rank's view with its ends, for reading; NULL: something is wrong with it, which has been told.
 */
static const rank_view *view_with_ends(const pass_context *pass, rank_views *views, int rank)
{
    const pass_context quiet = {pass->arena, NULL};
    const rank_view *v = views->of[rank];
    if (v && v->stage >= STAGE_TASKS)
        return v->status ? NULL : v;
    v = view_of_ends(&quiet, views, rank);
    return v->status ? NULL : v;
}

/* How near an end is to the one that r lacks; 0: not at all. */
static int nearness(const message_end *e, const end_summary *r, int here)
{
    if (e->peer != here)
        return e->tag == r->tag && end_direction(e) == r->direction;
    return 2 + 2 * (end_direction(e) == r->direction) + (e->tag == r->tag);
}

static const message_end *find_nearest(const rank_view *v, const end_summary *r, bool outgoing,
                                       int here)
{
    const message_end *nearest = NULL;
    for (int i = 0, best = 0; i < v->end_count; i++) {
        int near = v->end[i].outgoing == outgoing ? nearness(&v->end[i], r, here) : 0;
        if (near <= best)
            continue;
        best = near;
        nearest = &v->end[i];
    }
    return nearest;
}

/* A statement that would have such an end, but never happens on the rank. */
static const peal_statement *find_inactive(const common_input *c, const rank_view *v, bool outgoing)
{
    peal_statement_kind kind = outgoing ? PEAL_STATEMENT_SEND : PEAL_STATEMENT_RECV;
    for (int i = 0; i < c->graph->statement_count; i++)
        if (c->statement[i] && c->statement[i]->kind == kind && !is_active(v, c->statement[i]))
            return c->statement[i];
    return NULL;
}

static const char *why_apart(const message_end *e, const end_summary *r, int here)
{
    return e->peer != here                    ? "misses this rank's, which is for another:"
           : end_direction(e) != r->direction ? "goes another way than"
                                              : "has another tag than";
}

void tell_unmatched(const common_input *c, const pass_context *pass, rank_views *views,
                    const end_summary *r, bool outgoing, peal_story *out)
{
    int here = outgoing ? r->from : r->to, there = outgoing ? r->to : r->from, other;
    int end = add_end(c, r, outgoing, out);
    const rank_view *v = view_with_ends(pass, views, there);
    if (!v)
        return;
    const message_end *nearest = find_nearest(v, r, !outgoing, here);
    const peal_statement *inactive = find_inactive(c, v, !outgoing);
    if (nearest && (nearest->peer == here || !inactive)) {
        end_summary found = summarize_end(v, nearest);
        other = add_end(c, &found, !outgoing, out);
        peal_story_connect(out, end, why_apart(nearest, r, here), other);
        return;
    }
    if (inactive)
        other =
            peal_story_add(out, there, story_step(c, inactive, there), inactive->source,
                           "`%s` never happens here: its `when` (%.*s) is false", inactive->name,
                           NAMED, inactive->when->text ? inactive->when->text : "a condition");
    else
        other = peal_story_add(out, there, story_step(c, c->statement[r->statement], here),
                               (peal_source){0}, "there is no %s %s rank %d",
                               outgoing ? "recv" : "send", outgoing ? "from" : "to", here);
    peal_story_connect(out, end, "misses", other);
}

void tell_ambiguous(const common_input *c, const pass_context *pass, rank_views *views,
                    const end_summary *r, bool outgoing, peal_story *out)
{
    int rank = outgoing ? r->from : r->to, peer = outgoing ? r->to : r->from, first = -1;
    const rank_view *v = view_with_ends(pass, views, rank);
    for (int i = 0; v && i < v->end_count; i++) {
        const message_end *e = &v->end[i];
        if (e->outgoing != outgoing || e->peer != peer || e->tag != r->tag ||
            end_direction(e) != r->direction)
            continue;
        end_summary found = summarize_end(v, e);
        int now = add_end(c, &found, outgoing, out);
        if (first < 0)
            first = now;
        else
            peal_story_connect(out, now, "cannot be told from", first);
    }
}

bool names_a_rank_twice(const pass_context *pass, rank_views *views, const end_summary *r,
                        bool outgoing)
{
    const rank_view *v = view_with_ends(pass, views, outgoing ? r->from : r->to);
    int same = 0;
    for (int i = 0; v && i < v->end_count; i++) {
        const message_end *e = &v->end[i];
        same += e->outgoing == outgoing && e->statement == r->statement && e->tag == r->tag &&
                e->peer == (outgoing ? r->to : r->from) && end_direction(e) == r->direction;
    }
    return same > 1;
}

/* Where a statement stands: its innermost loop's line. */
static void describe_loop(const common_input *c, int statement, char *text, size_t bytes)
{
    int loop = c->statement_loop[statement];
    if (loop >= 0)
        snprintf(text, bytes, "in the loop of line %d", c->statement[loop]->source.line);
    else
        snprintf(text, bytes, "in `%s`",
                 loop == LOOP_SETUP    ? "setup"
                 : loop == LOOP_FINISH ? "finish"
                                       : "step");
}

static void add_occurrence(const common_input *c, told_end one, told_end other, pair_difference how,
                           peal_story *out)
{
    const peal_statement *s = one.s;
    int64_t step = story_step(c, s, one.rank), alone = -1;
    char text[NAMED + 40];
    if (how == DIFFERS_IN_LOOP)
        describe_loop(c, s->id, text, sizeof(text));
    else
        snprintf(text, sizeof(text), s->when ? "when %.*s" : "always%.*s", NAMED,
                 s->when ? s->when->text ? s->when->text : "a condition holds" : "");
    if (how == DIFFERS_IN_CONDITION && step >= 0)
        alone = find_step(c, one, other);
    peal_story_add(out, one.rank, alone < 0 ? step : alone, s->source, "`%s` happens %s%s", s->name,
                   text, alone < 0 ? "" : ", here without the other");
}

void tell_pair(const common_input *c, const end_summary *send, const end_summary *recv,
               pair_difference how, peal_story *out)
{
    if (how == DIFFERS_IN_LOOP || how == DIFFERS_IN_CONDITION) {
        told_end sends = {c->statement[send->statement], send->from},
                 receives = {c->statement[recv->statement], recv->to};
        add_occurrence(c, sends, receives, how, out);
        add_occurrence(c, receives, sends, how, out);
    } else {
        add_end(c, send, true, out);
        add_end(c, recv, false, out);
    }
    static const char *const why[] = {"has another type than", "has another size than",
                                      "does not happen as often as", "does not happen whenever",
                                      "is not counted as"};
    peal_story_connect(out, 0, why[how], 1);
}

void tell_absent(const common_input *c, const rank_view *v, const rank_view *other,
                 const peal_statement *s, peal_story *out)
{
    int64_t step = story_step(c, s, v->rank);
    int here = peal_story_add(out, v->rank, step, s->source, "`%s` takes part", s->name);
    int there = peal_story_add(out, other->rank, step, s->source,
                               "`%s` never happens here: its `when` (%.*s) is false", s->name,
                               NAMED, s->when->text ? s->when->text : "a condition");
    peal_story_connect(out, here, "needs", there);
}

void tell_apart(const common_input *c, const peal_statement *s, const int rank[2], peal_story *out)
{
    told_end one = {s, rank[0]}, other = {s, rank[1]};
    add_occurrence(c, one, other, DIFFERS_IN_CONDITION, out);
    add_occurrence(c, other, one, DIFFERS_IN_CONDITION, out);
    peal_story_connect(out, 0, "does not happen whenever", 1);
}

void tell_uneven(const common_input *c, const peal_statement *s, const peal_reduction *item,
                 const int rank[2], const int64_t count[2], peal_story *out)
{
    for (int i = 0; i < 2; i++)
        peal_story_add(out, rank[i], story_step(c, s, rank[i]), item->source,
                       "`%s` combines %" PRId64 " element%s of `%s`", s->name, count[i],
                       count[i] == 1 ? "" : "s", array_name(c, item->array));
    peal_story_connect(out, 0, "does not fit", 1);
}

void tell_wait(const common_input *c, const rank_view *v, const rank_message *at,
               const rank_message *send, int64_t step, peal_story *out)
{
    const peal_statement *waits = c->statement[at->own_statement],
                         *sends = c->statement[send->own_statement];
    int before = out->event_count - 1;
    int wait =
        peal_story_add(out, v->rank, step < 0 ? story_step(c, waits, v->rank) : step, waits->source,
                       "`%s` waits for a message of rank %d", waits->name, at->peer);
    int sent = peal_story_add(out, at->peer, step < 0 ? story_step(c, sends, at->peer) : step,
                              sends->source, "`%s` would send it to rank %d, but has not begun",
                              sends->name, v->rank);
    if (before >= 0)
        peal_story_connect(out, before, "stands below", wait);
    peal_story_connect(out, wait, "waits for", sent);
}

void tell_cycle(peal_story *out)
{
    if (!out->left_out)
        peal_story_connect(out, out->event_count - 1, "stands below", 0);
}

/* ---- Tiles ---- */

/* "[0:4, 8:16]" */
static const char *box_text(const peal_box *box, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "[");
    int axes = box->axis_count > 0 ? box->axis_count : 1;
    for (int k = 0; k < axes && used < bytes; k++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%" PRId64 ":%" PRId64, k ? ", " : "",
                                 box->lo[k], box->hi[k]);
    if (used < bytes)
        snprintf(text + used, bytes - used, "]");
    return text;
}

static peal_box tile_box(const peal_tiling *t, const int64_t index[PEAL_AXES])
{
    peal_box box = t->box;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t high = t->box.lo[k] + (index[k] + 1) * t->extent[k];
        box.lo[k] = t->box.lo[k] + index[k] * t->extent[k];
        box.hi[k] = high < t->box.hi[k] ? high : t->box.hi[k];
    }
    return box;
}

/* A tile, and its number in the task. */
typedef struct told_tile {
    peal_box box;
    int64_t number;
} told_tile;

static told_tile tile_at(const peal_tiling *t, const int64_t index[PEAL_AXES])
{
    int64_t number = 0;
    for (int k = PEAL_AXES - 1; k >= 0; k--)
        number = number * t->count[k] + index[k];
    return (told_tile){tile_box(t, index), t->first + number};
}

/* The first point that both tiles touch. */
static bool meet(const told_tile *a, const told_tile *b, const peal_reach *reach, int count,
                 const peal_box *stored, int64_t point[PEAL_AXES])
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            peal_box one = reach_range(&reach[i], &a->box, stored);
            peal_box other = reach_range(&reach[j], &b->box, stored);
            if (!peal_box_meets(&one, &other))
                continue;
            for (int k = 0; k < PEAL_AXES; k++)
                point[k] = one.lo[k] > other.lo[k] ? one.lo[k] : other.lo[k];
            return true;
        }
    return false;
}

/* Two tiles that meet: next to each other along an axis, or of two pieces of the box. */
static bool find_collision(const peal_schedule_task *t, const peal_reach *reach, int count,
                           const peal_box *stored, told_tile found[2], int64_t point[PEAL_AXES])
{
    for (int i = 0; i < t->tiling_count; i++) {
        const peal_tiling *g = &t->tiling[i];
        for (int k = 0; k < PEAL_AXES; k++)
            for (int64_t at = 0; at + 1 < g->count[k] && at < 8; at++) {
                int64_t one[PEAL_AXES] = {0}, next[PEAL_AXES] = {0};
                one[k] = at;
                next[k] = at + 1;
                found[0] = tile_at(g, one);
                found[1] = tile_at(g, next);
                if (meet(&found[0], &found[1], reach, count, stored, point))
                    return true;
            }
        for (int k = i + 1; k < t->tiling_count; k++) {
            found[0] = (told_tile){g->box, g->first};
            found[1] = (told_tile){t->tiling[k].box, t->tiling[k].first};
            if (meet(&found[0], &found[1], reach, count, stored, point))
                return true;
        }
    }
    return false;
}

void tell_collision(const common_input *c, const rank_view *v, const peal_schedule_task *t,
                    const peal_access *a, const peal_reach *reach, int count, peal_story *out)
{
    const peal_box *stored = &v->layout[a->array].stored;
    int64_t point[PEAL_AXES], step = story_step(c, c->statement[t->statement], v->rank);
    told_tile tile[2];
    char points[100], where[100] = "";
    if (!find_collision(t, reach, count, stored, tile, point))
        return;
    for (int k = 0, used = 0; k < (stored->axis_count ? stored->axis_count : 1); k++)
        used += snprintf(where + used, sizeof(where) - (size_t)used, "%s%" PRId64, k ? ", " : "",
                         point[k]);
    for (int i = 0; i < 2; i++)
        peal_story_add(out, v->rank, step, a->source,
                       "tile %" PRId64 " of `%s`, points %s, touches `%s` at [%s]", tile[i].number,
                       t->name, box_text(&tile[i].box, points, sizeof(points)),
                       array_name(c, a->array), where);
    peal_story_connect(out, 0, "is not ordered with", 1);
}

void tell_overlap(const common_input *c, const rank_view *v, const peal_schedule_task *t,
                  const peal_access *reader, const peal_box *read, const peal_access *writer,
                  const peal_box *written, peal_story *out)
{
    char points[100];
    int64_t step = story_step(c, c->statement[t->statement], v->rank);
    const char *name = array_name(c, reader->array);
    int first = peal_story_add(out, v->rank, step, reader->source, "tiles of `%s` read `%s` at %s",
                               t->name, name, box_text(read, points, sizeof(points)));
    int second =
        peal_story_add(out, v->rank, step, writer->source, "tiles of `%s` write `%s` at %s",
                       t->name, name, box_text(written, points, sizeof(points)));
    peal_story_connect(out, first, "is not ordered with", second);
}

void tell_reach(const common_input *c, const rank_view *v, const peal_schedule_task *t,
                const peal_access *a, const peal_box *visited, const peal_box *range,
                peal_story *out)
{
    char points[100], touched[100];
    int task = peal_story_add(out, v->rank, story_step(c, c->statement[t->statement], v->rank),
                              a->source, "`%s` visits %s and touches `%s` at %s", t->name,
                              box_text(visited, points, sizeof(points)), array_name(c, a->array),
                              box_text(range, touched, sizeof(touched)));
    int array = peal_story_add(out, v->rank, PEAL_STORY_SETUP, c->graph->arrays[a->array].source,
                               "`%s` is stored at %s", array_name(c, a->array),
                               box_text(&v->layout[a->array].stored, points, sizeof(points)));
    peal_story_connect(out, task, "does not fit into", array);
}
