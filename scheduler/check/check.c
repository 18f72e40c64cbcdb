/* The checks over all ranks: sizes, boxes, tiles and messages.
 *
 * Where ranks fall into classes, one of each is analysed, and what it sends is compared with what
 * the classes of its neighbours receive. If that finds nothing wrong, no rank has anything wrong.
 *
 * Else each rank is looked at, which is linear in ranks and messages, and frugal: a rank's view is
 * thrown away once its message ends have been added to a table, where they are compared.
 * Ranks are replayed to find a deadlock only if some receive stands above its send: otherwise every
 * receive waits for an earlier statement. Mostly the table shows that none is there (progress.c).
 */
#include "scheduler/check/check.h"
#include "scheduler/check/message_match.h"
#include "scheduler/conditions/conditions.h"
#include "scheduler/geometry/geometry.h"
#include "scheduler/halos/halos.h"
#include "scheduler/messages/messages.h"

enum { KEPT_RANKS = 32 /* views of so many ranks are kept: schedules will want them */ };

typedef struct checker {
    peal_compilation *c;
    end_table *ends;
    int64_t *reduced;     /* by hidden array: elements that every rank must have; -1: not seen */
    int *reduced_by;      /* the rank that had them */
    rank_classes classes; /* of ranks with the same tasks */
    bool classed;
    bool *is_good; /* by class: one was analysed and is good */
    size_t most_bytes;
    direction_use *directions;
    halo_readers readers;
} checker;

/* Vectors that all ranks reduce have the same count everywhere. (Rows are compared when messages
 * are made.) */
static peal_status compare_reductions(checker *k, const rank_view *v)
{
    peal_compilation *c = k->c;
    for (int i = 0; i < c->common.hidden_count; i++) {
        const peal_statement *s = c->common.statement[c->common.hidden[i].statement];
        if (s->kind != PEAL_STATEMENT_REDUCE || s->u.reduce.along >= 0)
            continue;
        const peal_reduction *item = &s->u.reduce.item[c->common.hidden[i].item];
        int64_t count = v->layout[item->array].stored.hi[0];
        if (k->reduced[i] < 0) {
            k->reduced[i] = count;
            k->reduced_by[i] = v->rank;
        } else if (k->reduced[i] != count)
            return report_uneven(&c->common, &c->pass, s, item,
                                 (const int[]){k->reduced_by[i], v->rank},
                                 (const int64_t[]){k->reduced[i], count});
    }
    return PEAL_STATUS_OK;
}

/* Classes by tasks alone: ranks that send to others each in its own way may still compute alike. */
static void begin_classes(checker *k)
{
    k->classed = find_classes(&k->c->common, &k->c->pass, false, &k->classes);
    if (k->classed)
        k->is_good = PEAL_ARENA_ARRAY(k->c->pass.arena, bool, class_count(&k->classes));
}

static void begin_reductions(checker *k)
{
    k->reduced = PEAL_ARENA_ARRAY(k->c->pass.arena, int64_t, k->c->common.hidden_count + 1);
    k->reduced_by = PEAL_ARENA_ARRAY(k->c->pass.arena, int, k->c->common.hidden_count + 1);
    for (int i = 0; i < k->c->common.hidden_count; i++)
        k->reduced[i] = -1;
}

/* A rank's view up to its tasks and ends. The tasks of a class are analysed once, if nothing is
 * wrong with them. */
static const rank_view *view_rank(checker *k, int rank)
{
    peal_compilation *c = k->c;
    int class = k->classed ? class_of(&c->common, &k->classes, rank) : 0;
    if (k->classed && k->is_good[class] && !c->views.of[rank])
        return view_of_ends(&c->pass, &c->views, rank);
    c->analysed_count++;
    bool good = view_at(&c->views, rank, STAGE_TASKS) != NULL;
    if (k->classed)
        k->is_good[class] |= good;
    return c->views.of[rank];
}

/* The views of few ranks are kept. */
static peal_status check_rank(checker *k, int rank)
{
    peal_compilation *c = k->c;
    bool keep = c->views.of[rank] || c->common.machine.ranks <= KEPT_RANKS;
    c->pass.arena = keep ? c->own_arena : c->scratch;
    const rank_view *v = view_rank(k, rank);
    peal_status status = v->status;
    if (!status)
        status = end_table_add_rank(k->ends, rank, v);
    if (!status)
        status = compare_reductions(k, v);
    if (!status)
        note_directions(&c->common, &c->pass, v, k->directions);
    if (!status)
        note_halo_readers(&c->common, v, &k->readers);
    c->pass.arena = c->own_arena;
    if (!keep) {
        size_t bytes = peal_arena_bytes(c->scratch);
        k->most_bytes = bytes > k->most_bytes ? bytes : k->most_bytes;
        c->views.of[rank] = NULL;
        peal_arena_clear(c->scratch);
    }
    return status;
}

static end_table *begin_end_table(peal_compilation *c)
{
    c->ends = PEAL_ARENA_NEW(c->pass.arena, end_table);
    if (!end_table_init(c->ends, c))
        peal_arena_fail(c->own_arena, c->ends->most_bytes);
    return c->ends;
}

static void drop_end_table(peal_compilation *c)
{
    end_table_finish(c->ends);
    c->ends = NULL;
}

peal_status check_each_rank(peal_compilation *c)
{
    checker k = {.c = c, .ends = begin_end_table(c)};
    bool late_send = false;
    peal_status first = PEAL_STATUS_OK;
    begin_reductions(&k);
    begin_classes(&k);
    begin_directions(&c->common, &c->pass, &k.directions);
    begin_halo_readers(&c->common, &c->pass, &k.readers);
    begin_scratch(c);
    for (int rank = 0; rank < c->common.machine.ranks; rank++) {
        peal_status status = check_rank(&k, rank);
        first = first ? first : status;
    }
    end_scratch(c);
    if (!first)
        warn_of_halos(&c->common, &c->pass, &k.readers);
    if (!first)
        first = report_directions(&c->common, &c->pass, k.directions);
    if (!first)
        first = end_table_match(k.ends, &late_send);
    if (!first && late_send) /* that looks at one iteration of each loop */
        late_send = has_late_loop(&c->common) || !end_table_shows_no_cycle(k.ends);
    c->check_bytes = k.most_bytes + k.ends->most_bytes;
    drop_end_table(c);
    if (!first)
        first = check_partners(&c->common, &c->views);
    if (!first && late_send)
        first = find_deadlock(&c->common, &c->pass, &c->views, c->conditions);
    return first ? first : check_halos_by_rank(c, k.classed ? &k.classes : NULL);
}

/* ---- By classes ---- */

/* A rank's ends of messages in one direction, the sender's, which tells who is at the other end.
 */
static int64_t pick_direction(checker *k, const rank_view *v, bool outgoing, int direction,
                              packed_end *out)
{
    int64_t count = 0;
    for (int i = 0; i < v->end_count; i++) {
        if (v->end[i].outgoing != outgoing || end_direction(&v->end[i]) != direction)
            continue;
        if (!pack_end(k->ends, &v->end[i], &out[count]))
            return -1;
        out[count++].peer = 0;
    }
    return count;
}

/* What a rank sends against what the neighbour's class receives. */
static bool neighbours_match(checker *k, const rank_classes *classes, rank_view *const *view,
                             int rank, bool *late_send)
{
    peal_compilation *c = k->c;
    const rank_view *sender = view[class_of(&c->common, classes, rank)];
    int peer[27];
    find_neighbours(&c->common, rank, peer);
    for (int number = 0; number < 27; number++) {
        if (peer[number] < 0)
            continue;
        const rank_view *receiver = view[class_of(&c->common, classes, peer[number])];
        if (!sender->end_count && !receiver->end_count)
            continue;
        packed_end *send = PEAL_ARENA_ARRAY(c->pass.arena, packed_end, sender->end_count);
        packed_end *recv = PEAL_ARENA_ARRAY(c->pass.arena, packed_end, receiver->end_count);
        int64_t sends = pick_direction(k, sender, true, number, send);
        int64_t recvs = pick_direction(k, receiver, false, number, recv);
        if (sends < 0 || recvs < 0 ||
            match_packed_ends(k->ends, rank, send, sends, recv, recvs, late_send))
            return false;
    }
    return true;
}

/* One rank of each class is analysed, and their messages are matched for each neighbourhood. False:
 * something may be wrong, and each rank is looked at to say what. *halos: whether any is read
 * stale.
 */
static bool analyse_classes(checker *k, const rank_classes *classes, peal_status *halos)
{
    peal_compilation *c = k->c;
    int count = class_count(classes);
    int around = classes->around_count[0] * classes->around_count[1] * classes->around_count[2];
    rank_view **view = PEAL_ARENA_ARRAY(c->pass.arena, rank_view *, count);
    bool good = true, late_send = false;
    begin_reductions(k);
    begin_directions(&c->common, &c->pass, &k->directions);
    begin_halo_readers(&c->common, &c->pass, &k->readers);
    for (int i = 0; i < count && good; i++) {
        int rank = class_rank(&c->common, classes, i);
        rank_view *known = c->views.of[rank];
        c->views.of[rank] = NULL;
        view[i] = view_at(&c->views, rank, STAGE_TASKS);
        c->views.of[rank] = known;
        c->analysed_count++;
        good = view[i] && !compare_reductions(k, view[i]);
        if (good) {
            note_directions(&c->common, &c->pass, view[i], k->directions);
            note_halo_readers(&c->common, view[i], &k->readers);
        }
    }
    for (int i = 0; i < around && good; i++)
        good = neighbours_match(k, classes, view, neighbourhood_rank(&c->common, classes, i),
                                &late_send);
    good = good && classes_take_part_alike(&c->common, classes, view) &&
           !report_directions(&c->common, &c->pass, k->directions);
    if (good && late_send)
        good = directions_show_no_cycle(&c->common, &c->pass, view, count);
    c->pass.diagnostics = c->own_diagnostics;
    if (good) {
        warn_of_halos(&c->common, &c->pass, &k->readers);
        *halos = check_halos_by_class(c, classes, view);
    }
    return good;
}

static bool prove_by_classes(peal_compilation *c, peal_status *halos)
{
    rank_classes classes;
    begin_scratch(c);
    c->pass.diagnostics = NULL; /* what is found by class is reported by rank */
    checker k = {.c = c, .ends = begin_end_table(c)};
    bool good =
        find_classes(&c->common, &c->pass, true, &classes) && analyse_classes(&k, &classes, halos);
    drop_end_table(c);
    c->pass.diagnostics = c->own_diagnostics;
    c->check_bytes = peal_arena_bytes(c->scratch);
    end_scratch(c);
    return good;
}

/* The outermost loop goes round equally often on all ranks; a run reads it anew. */
static peal_status check_repeat(const common_input *c, const pass_context *pass, rank_views *views)
{
    const rank_view *v = view_at(views, 0, STAGE_GEOMETRY);
    const peal_expr *repeat = c->graph->step.repeat;
    int64_t count = 0;

    if (!v)
        return PEAL_STATUS_OK; /* said by what looks at the rank */
    peal_status status = peal_expr_integer(repeat, &v->scope, 1, &count, pass->diagnostics);
    if (!status && count < 0)
        status = peal_report(pass->diagnostics, PEAL_E_VALUE_OUT_OF_RANGE, repeat->source, NULL,
                             "`repeat` is %lld on %d ranks", (long long)count, c->machine.ranks);
    return status;
}

/* Whether messages happen by a counter. */
static bool names_counter(const peal_body *body)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        bool loops = s->kind == PEAL_STATEMENT_REPEAT;
        if (!has_messages(s))
            continue;
        if ((s->when && peal_expr_uses(s->when) & PEAL_USES_COUNTER) ||
            (loops && peal_expr_uses(s->u.loop.repeat) & PEAL_USES_COUNTER) ||
            (loops && names_counter(&s->u.loop.body)))
            return true;
    }
    return false;
}

peal_status check_all(peal_compilation *c)
{
    peal_status status = PEAL_STATUS_OK, cuts = check_cuts(&c->common, &c->pass);
    if (cuts) /* what it means on a rank is not what was meant */
        return cuts;
    if (!prove_by_classes(c, &status))
        status = check_each_rank(c);
    peal_status repeat = check_repeat(&c->common, &c->pass, &c->views),
                values = check_values(&c->common, &c->pass, &c->views, !status);
    status = status ? status : repeat ? repeat : values;
    if (!status)
        status = find_leads(&c->common, &c->pass, &c->views, c->conditions);
    c->knows_leads = !status;
    c->conditions->ends_at_repeat |= !c->common.graph->step.until && known_steps(&c->common) >= 0 &&
                                     names_counter(&c->common.graph->finish);
    if (!status)
        warn_of_prints(&c->common, &c->pass, &c->views);
    if (!status) {
        warn_of_idle_tasks(&c->common, &c->pass);
        warn_of_lost_values(&c->common, &c->pass);
    }
    status = status ? status : check_set_values(&c->common, &c->pass, &c->views);
    return status ? status : check_files(&c->common, &c->pass);
}
