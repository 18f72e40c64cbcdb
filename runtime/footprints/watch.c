/* --watch in mode serial: what each tile has computed is looked at, in what it declares to write;
 * and, once something is found, what it has read. */
#define _GNU_SOURCE
#include "runtime/footprints/internal.h"

typedef struct search {
    peal_watched what;
    peal_type type;
    const unsigned char *from; /* first stored element */
    int64_t element;           /* the first that was found, behind it; -1: none */
} search;

static void look_at_row(void *user, int64_t offset, int64_t bytes)
{
    search *s = user;
    if (s->element >= 0)
        return;
    int64_t i = peal_watch_find(s->what, s->type, s->from + offset, bytes);
    if (i >= 0)
        s->element = offset / (int64_t)peal_type_bytes(s->type) + i;
}

/* The first view of the modes `modes` (bit m: mode m) with such a value in the tile's footprint;
 * -1: none. */
static int find(const checked_task *t, const peal_call *call, unsigned modes, int64_t *element)
{
    for (int i = 0; i < t->view_count; i++) {
        search s = {.what = t->owner->plan->watch.what,
                    .type = t->view[i].array->type,
                    .from = view_real(t, i, call),
                    .element = -1};
        if (!s.from || !(modes & 1u << t->view[i].mode))
            continue;
        view_rows(t, i, &call->tile, look_at_row, &s);
        *element = s.element;
        if (s.element >= 0)
            return i;
    }
    return -1;
}

/* "'u' at (3, 4)" */
static void print_element(const checked_task *t, int view, int64_t element, char text[2 * TEXT])
{
    const checked_view *v = &t->view[view];
    int64_t point[PEAL_AXES];
    char where[TEXT];
    int axes = v->array->layout.stored.axis_count;
    peal_layout_point(&v->array->layout, element, point);
    peal_point_text(point, axes > 0 ? axes : 1, where, TEXT);
    snprintf(text, 2 * TEXT, "%s'%.60s'%s%s", v->access ? "" : "its part of ", v->name,
             v->access ? " at " : "", v->access ? where : "");
}

static const char *word_of(const checked_task *t)
{
    return t->owner->plan->watch.what == PEAL_WATCH_NAN ? "nan" : "nan or infinite";
}

static void tell_of(const checked_task *t, const peal_call *call, int view, int64_t element,
                    bool before)
{
    peal_diagnostics *diagnostics = t->owner->plan->session->diagnostics;
    char what[2 * TEXT], input[2 * TEXT], site[2 * TEXT];
    print_element(t, view, element, what);
    print_site(t, &call->tile, true, site);
    if (before) {
        peal_report(diagnostics, PEAL_E_NOT_A_NUMBER, t->task->source,
                    "it was lent, loaded, received, or set",
                    "%s is %s before task '%s' updates it %s", what, word_of(t), t->task->name,
                    site);
        return;
    }
    int read = find(t, call, 1u << PEAL_READ_ACCESS, &element);
    if (read >= 0)
        print_element(t, read, element, input);
    peal_report(diagnostics, PEAL_E_NOT_A_NUMBER, t->task->source,
                read >= 0 ? "what it reads was lent, loaded, received, or set"
                          : "a division by zero, a root or logarithm of what is negative, an "
                            "overflow, or an argument",
                "task '%s' computes %s: %s %s; %s%s%s", t->task->name, word_of(t), what, site,
                read >= 0 ? "it has read " : "nothing that it reads is", read >= 0 ? input : "",
                read >= 0 ? ", which is so, too" : "");
}

void watch_call(const peal_call *call)
{
    checked_task *t = call->user;
    peal_footprints *owner = t->owner;
    peal_call real = *call;
    int64_t element = -1;
    if (atomic_load(&owner->plan->session->abort_word))
        return;
    owner->site = host_here;
    bool partials = !t->task->reduction_count || call->partial[0];
    int view = find(t, call, 1u << PEAL_UPDATE_ACCESS, &element);
    bool before = view >= 0;
    if (!before) {
        real.user = t->user;
        (partials ? t->full : t->bare)(&real);
        view = find(t, call, 1u << PEAL_UPDATE_ACCESS | 1u << PEAL_WRITE_ACCESS, &element);
    }
    if (view < 0)
        return;
    tell_of(t, call, view, element, before);
    end_run(t, PEAL_STATUS_WRONG_RESULT);
}
