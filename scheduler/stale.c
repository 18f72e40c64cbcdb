/* Warnings about halos: read although the owner has changed its points since the last exchange, or
 * exchanged although nobody reads them.
 *
 * The program is followed on one rank, statement by statement, with the storages that names stand
 * for after swaps: two iterations of every loop show what one iteration leaves for the next. What
 * is under `when` is taken to happen. */
#include "scheduler/stories.h"

/* What happened to a halo, and when. */
typedef struct halo_event {
    const peal_statement *statement; /* NULL: nothing yet */
    int64_t step;
} halo_event;

typedef struct halo_state {
    peal_compilation *c;
    const rank_view *v;
    int *binding;
    bool *stale; /* by storage: owners have written since the last exchange */
    int64_t step;
    halo_event *renewed, *changed; /* by storage: the last ones */
} halo_state;

/* Whether a task of this rank touches halo points of an access's array. */
static bool reaches_halo(const halo_state *h, const peal_schedule_task *t,
                         const peal_task_access *a)
{
    const peal_layout *layout = &h->v->layout[a->array];
    for (int i = 0; i < t->tiling_count; i++)
        for (int k = 0; k < a->reach_count; k++) {
            peal_box range = reach_range(&a->reach[k], &t->tiling[i].box, &layout->stored);
            if (!peal_box_is_empty(&range) && !peal_box_contains(&layout->own, &range))
                return true;
        }
    return false;
}

/* In order: renewed (or never), changed, read. */
static void tell_stale(const halo_state *h, const peal_statement *s, int array, int storage,
                       peal_source source, peal_story *out)
{
    const halo_event *renewed = &h->renewed[storage], *changed = &h->changed[storage];
    const char *name = array_name(h->c, array);
    int rank = h->v->rank, change = -1;
    if (renewed->statement)
        peal_story_add(out, rank, renewed->step, renewed->statement->source,
                       "`%s` renews the halo of what is then `%s`", renewed->statement->name, name);
    if (changed->statement)
        change = peal_story_add(out, rank, changed->step, changed->statement->source,
                                "`%s` changes the points of it, here and at its neighbours",
                                changed->statement->name);
    int read = peal_story_add(out, rank, h->step, source, "`%s` reads the halo of `%s`%s", s->name,
                              name, renewed->statement ? "" : ", which no exchange has filled");
    peal_story_connect(out, read, "does not see", change);
}

static void warn_of_stale(halo_state *h, const peal_statement *s, int array, int storage,
                          peal_source source)
{
    peal_story story = {0};
    if (peal_diagnostics_want(h->c->diagnostics, PEAL_E148, source))
        tell_stale(h, s, array, storage, source, &story);
    peal_warn_story(
        h->c->diagnostics, PEAL_E148, source, "exchange it after its last change, before this task",
        &story, "task `%s` reads the halo of `%s`, which has changed since it was last exchanged",
        s->name, array_name(h->c, array));
}

static void renew(halo_state *h, const peal_statement *s, int array)
{
    int storage = h->binding[array];
    h->stale[storage] = false;
    h->renewed[storage] = (halo_event){s, h->step};
}

static void change(halo_state *h, const peal_statement *s, int array)
{
    int storage = h->binding[array];
    h->stale[storage] = true;
    h->changed[storage] = (halo_event){s, h->step};
}

static void follow_task(halo_state *h, const peal_statement *s)
{
    const peal_schedule_task *t = &h->v->task[h->v->statement[s->id].task];
    for (int i = 0; i < t->access_count; i++) {
        const peal_task_access *a = &t->access[i];
        int storage = h->binding[a->array];
        if (h->c->graph->arrays[a->array].kind != PEAL_ARRAY_FIELD ||
            a->mode == PEAL_WRITE_ACCESS || !reaches_halo(h, t, a))
            continue;
        if (h->stale[storage])
            warn_of_stale(h, s, a->array, storage, s->u.task.access[i].source);
    }
    for (int i = 0; i < t->access_count; i++)
        if (t->access[i].mode != PEAL_READ_ACCESS && t->tile_count > 0) /* unpacking renews halos */
            (reaches_halo(h, t, &t->access[i]) ? renew : change)(h, s, t->access[i].array);
}

static void swap_bindings(halo_state *h, int first, int second)
{
    int held = h->binding[first];
    h->binding[first] = h->binding[second];
    h->binding[second] = held;
}

static void follow_body(halo_state *h, const peal_body *body)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        switch (s->kind) {
        case PEAL_STATEMENT_TASK:
            follow_task(h, s);
            break;
        case PEAL_STATEMENT_EXCHANGE:
            for (int k = 0; k < s->u.exchange.item_count; k++)
                renew(h, s, s->u.exchange.item[k].array);
            break;
        case PEAL_STATEMENT_RECV: /* halos filled by hand */
            renew(h, s, s->u.message.points.array);
            break;
        case PEAL_STATEMENT_LOAD:
            change(h, s, s->u.file.array);
            break;
        case PEAL_STATEMENT_SWAP:
            swap_bindings(h, s->u.swap.first, s->u.swap.second);
            break;
        case PEAL_STATEMENT_REPEAT:
            follow_body(h, &s->u.loop.body);
            follow_body(h, &s->u.loop.body);
            break;
        default:
            break;
        }
    }
}

static bool has_halo(const rank_view *v, int array)
{
    return !peal_box_contains(&v->layout[array].own, &v->layout[array].stored);
}

/* An exchange none of whose halos any task reads, nor any message. */
static void warn_of_unread(halo_state *h)
{
    peal_compilation *c = h->c;
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        if (!s || s->kind != PEAL_STATEMENT_EXCHANGE)
            continue;
        for (int k = 0; k < s->u.exchange.item_count; k++) {
            int array = s->u.exchange.item[k].array;
            if (has_halo(h->v, array) && !halo_is_read(c, h->v, array))
                peal_warn(c->diagnostics, PEAL_E149, s->u.exchange.item[k].source,
                          "give the task that needs it a footprint: read: {u: {star: 1}}",
                          "no task reads the halo of `%s` that is exchanged here",
                          array_name(c, array));
        }
    }
}

void warn_of_halos(peal_compilation *c, const rank_view *v)
{
    halo_state h = {.c = c, .v = v};
    bool any_task = false;
    h.binding = PEAL_ARENA_ARRAY(c->arena, int, c->graph->array_count + 1);
    h.stale = PEAL_ARENA_ARRAY(c->arena, bool, c->graph->array_count + 1);
    h.renewed = PEAL_ARENA_ARRAY(c->arena, halo_event, c->graph->array_count + 1);
    h.changed = PEAL_ARENA_ARRAY(c->arena, halo_event, c->graph->array_count + 1);
    for (int i = 0; i < c->graph->array_count; i++)
        h.binding[i] = i;
    h.step = PEAL_STORY_SETUP;
    follow_body(&h, &c->graph->setup);
    for (h.step = 0; h.step < 2; h.step++)
        follow_body(&h, &c->graph->step.body);
    h.step = PEAL_STORY_FINISH;
    follow_body(&h, &c->graph->finish);
    for (int i = 0; i < c->graph->statement_count; i++)
        any_task |= c->statement[i] && c->statement[i]->kind == PEAL_STATEMENT_TASK;
    if (any_task) /* an exchange alone is read by the application */
        warn_of_unread(&h);
}
