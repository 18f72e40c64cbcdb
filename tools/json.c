/* The machine-readable twin of what the verbs print. Keys are only added within a version. */
#include "tools/output.h"

#include "base/diagnostic.h"

#include <math.h>

json_t *json_begin(const char *schema)
{
    json_t *object = json_object();
    json_object_set_new(object, "schema", json_string(schema));
    return object;
}

void json_print(json_t *object)
{
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputc('\n', stdout);
    json_decref(object);
}

json_t *json_value(const peal_value *value)
{
    switch (value->kind) {
    case PEAL_INTEGER:
        return json_integer(value->u.integer);
    case PEAL_REAL: /* JSON has no words for these */
        if (isnan(value->u.real) || isinf(value->u.real))
            return json_string(isnan(value->u.real) ? "nan" : value->u.real > 0 ? "inf" : "-inf");
        return json_real(value->u.real);
    case PEAL_BOOLEAN:
        return json_boolean(value->u.boolean);
    case PEAL_TEXT:
        return json_string(value->u.text);
    }
    return json_null();
}

json_t *json_box(const peal_box *box)
{
    json_t *axes = json_array();
    for (int k = 0; k < box->axis_count; k++)
        json_array_append_new(axes,
                              json_pack("[I,I]", (json_int_t)box->lo[k], (json_int_t)box->hi[k]));
    return axes;
}

/* Numbers of events count from 0 here. */
static json_t *json_story(const peal_story *story)
{
    json_t *events = json_array(), *links = json_array();
    for (int i = 0; i < story->event_count; i++) {
        const peal_story_event *e = &story->event[i];
        json_t *item = json_pack("{s:i,s:s}", "rank", e->rank, "section",
                                 e->step >= 0                  ? "step"
                                 : e->step == PEAL_STORY_SETUP ? "setup"
                                                               : "finish");
        if (e->step >= 0)
            json_object_set_new(item, "step", json_integer(e->step));
        if (e->source.file)
            json_object_set_new(item, "file", json_string(e->source.file));
        if (e->source.line > 0)
            json_object_set_new(item, "line", json_integer(e->source.line));
        if (e->source.column > 0)
            json_object_set_new(item, "column", json_integer(e->source.column));
        json_object_set_new(item, "event", json_string(e->text));
        json_array_append_new(events, item);
    }
    for (int i = 0; i < story->link_count; i++)
        json_array_append_new(links, json_pack("{s:i,s:s,s:i}", "from", story->link[i].from, "why",
                                               story->link[i].why, "to", story->link[i].to));
    return json_pack("{s:o,s:o,s:i}", "events", events, "links", links, "left_out",
                     story->left_out);
}

json_t *json_diagnostics(const peal_diagnostics *diagnostics)
{
    static const char *const severities[] = {"note", "warning", "error"};
    json_t *list = json_array();
    for (int i = 0; i < peal_diagnostics_count(diagnostics); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(diagnostics, i);
        json_t *item = json_object();
        json_object_set_new(item, "code", json_string(peal_code_number(d->code)));
        json_object_set_new(item, "severity", json_string(severities[d->severity]));
        if (d->source.file)
            json_object_set_new(item, "file", json_string(d->source.file));
        if (d->source.line > 0)
            json_object_set_new(item, "line", json_integer(d->source.line));
        if (d->source.column > 0)
            json_object_set_new(item, "column", json_integer(d->source.column));
        json_object_set_new(item, "message", json_string(d->message ? d->message : ""));
        if (d->hint)
            json_object_set_new(item, "hint", json_string(d->hint));
        if (d->story)
            json_object_set_new(item, "story", json_story(d->story));
        json_array_append_new(list, item);
    }
    return list;
}
