/* Mode auto: what `peal tune` has found for this graph on this machine, else the mode that is
 * predicted to be the fastest. Process 0 decides, since caches and machine files of several hosts
 * may differ. */
#define _POSIX_C_SOURCE 200809L
#include "base/thread_room.h"
#include "runtime/select/answer.h"
#include "runtime/select/known_times.h"
#include "runtime/select/predict.h"
#include "runtime/select/rehearsal.h"
#include "runtime/select/select.h"
#include "runtime/session/device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A prediction simulates as many ops: some ten milliseconds. */
enum { MOST_OPS = 50000 };

/* What process 0 tells the others. */
typedef struct decision {
    int32_t mode, threads;
    char lowering[PEAL_LOWERING_BYTES];
    char choice[PEAL_CHOICE_BYTES];
    char note[PEAL_NOTE_BYTES];
} decision;

/* What speaks against a mode on this machine, which a user who forces it may try all the same. In
 * words, good until the thread asks again. */
static const char *objection(const peal_plan *plan, peal_mode mode)
{
    peal_reason *reason = peal_thread_room(PEAL_ROOM_OBJECTION, PEAL_REASONS * sizeof(*reason));
    bool shares = plan->machine.shares_device;
    if (!reason)
        return "there is no memory for reasons";
    if (peal_graph_reasons(plan->data, &plan->machine, mode, plan->machine.accelerator, reason) &&
        reason[0].refuses)
        return reason[0].text;
    if (mode == PEAL_MODE_GRAPH && shares && plan->data->step.until)
        return "processes share a GPU, whose waits `until` cannot skip";
    if (mode == PEAL_MODE_FUSED && shares)
        return "processes share a GPU, where one's kernel would keep out the others'";
    return NULL;
}

static void note(char *text, const char *what, const char *why)
{
    size_t used = strlen(text);
    snprintf(text + used, PEAL_NOTE_BYTES - used, "%snot %s: %s", used ? "; " : "", what, why);
}

/* ---- predictions ---- */

static const char *device_model(const peal_plan *plan, peal_device_identity *identity)
{
    if (!plan->machine.accelerator)
        return NULL;
    plan->backend->identify(plan->session->device, identity);
    return identity->model;
}

static int device_count(const peal_plan *plan)
{
    const char *reason;
    if (plan->machine.accelerator)
        return plan->backend->count(&reason);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* The share of a step's time that the backend saves, by running several as one. */
static double saved_of(const peal_plan *plan, const peal_machine *machine, peal_mode mode)
{
    peal_rehearsal found = {.saved = 0};
    const peal_rehearsal_desc desc = {.size = sizeof(desc),
                                      .backend = plan->backend,
                                      .graph = plan->data,
                                      .machine = machine,
                                      .mode = mode,
                                      .lowering = plan->options.lowering,
                                      .allow_outside = plan->options.allow_outside};
    bool can = (mode == PEAL_MODE_FUSED || mode == PEAL_MODE_GRAPH) && machine->accelerator &&
               machine->ranks <= PEAL_REHEARSED_SAVINGS;
    return can && !peal_rehearse(&desc, &found) ? found.saved : 0;
}

static void predict(const peal_plan *plan, const peal_known_times *known, peal_candidate *item)
{
    peal_prediction prediction;
    peal_machine machine = plan->machine;
    if (item->threads)
        machine.workers = peal_plan_workers_of(&machine, item->threads);
    const peal_prediction_desc desc = {.size = sizeof(desc),
                                       .graph = plan->data,
                                       .machine = &machine,
                                       .times = &known->times,
                                       .mode = item->mode,
                                       .most_ops = MOST_OPS,
                                       .deadline_ns = peal_plan_deadline_ns(plan)};
    if (known->times.given && !peal_predict(&desc, &prediction))
        item->predicted_s = prediction.step_s * (1 - saved_of(plan, &machine, item->mode));
}

/* One before it that a simulation cannot tell from it; NULL: there is none. */
static const peal_candidate *find_alike(const peal_candidates *set, int item)
{
    for (int i = 0; i < item; i++)
        if (set->item[i].mode == set->item[item].mode &&
            set->item[i].threads == set->item[item].threads)
            return &set->item[i];
    return NULL;
}

peal_status peal_plan_candidates(peal_plan *plan, bool modes_only, peal_candidates *out, char *from)
{
    peal_device_identity identity;
    peal_known_times known;
    peal_candidates_desc desc = {.graph = plan->data,
                                 .machine = &plan->machine,
                                 .modes_only = modes_only,
                                 .threads_given = plan->options.threads != 0,
                                 .lowering = plan->options.lowering};
    const char *only = plan->options.mode;
    bool forced = !peal_plan_is_automatic(plan);
    for (int m = 0; m < PEAL_MODE_COUNT; m++)
        desc.applicable[m] = m != PEAL_MODE_SERIAL && !peal_plan_refuses(plan, (peal_mode)m) &&
                             !objection(plan, (peal_mode)m) && !(plan->passed_over >> m & 1) &&
                             (!forced || !strcmp(only, peal_mode_name((peal_mode)m)));
    peal_candidates_list(&desc, out);
    peal_status status = peal_times_known(plan->options.machine, device_model(plan, &identity),
                                          device_count(plan), plan->session->diagnostics, &known);
    if (status)
        return status;
    for (int i = 0; i < out->count; i++) {
        const peal_candidate *alike = find_alike(out, i);
        if (alike)
            out->item[i].predicted_s = alike->predicted_s;
        else
            predict(plan, &known, &out->item[i]);
    }
    snprintf(from, PEAL_FROM_BYTES, "%s", known.from);
    return PEAL_STATUS_OK;
}

/* ---- the choice ---- */

/* Three digits, without an exponent. */
static const char *microseconds(double seconds, char text[24])
{
    double us = seconds * 1e6;
    snprintf(text, 24, us < 10 ? "%.2f" : us < 100 ? "%.1f" : "%.0f", us);
    return text;
}

static void write_prediction(const peal_candidates *set, peal_mode taken, double step_s,
                             const char *from, char *text)
{
    char number[24];
    size_t used = (size_t)snprintf(text, PEAL_CHOICE_BYTES, "%s, predicted %s us a step",
                                   peal_mode_name(taken), microseconds(step_s, number));
    const char *before = " (";
    for (int i = set->count - 1; i >= 0 && used < PEAL_CHOICE_BYTES; i--) {
        const peal_candidate *c = &set->item[i];
        if (c->mode == taken)
            continue;
        used +=
            (size_t)snprintf(text + used, PEAL_CHOICE_BYTES - used, "%s%s %s", before,
                             peal_mode_name(c->mode),
                             c->predicted_s > 0 ? microseconds(c->predicted_s, number) : "unknown");
        before = ", ";
    }
    if (used < PEAL_CHOICE_BYTES)
        snprintf(text + used, PEAL_CHOICE_BYTES - used, "%stimes of %s)",
                 before[0] == ' ' ? " (" : "; ", from);
}

static bool has_mode(const peal_candidates *set, peal_mode mode)
{
    for (int i = 0; i < set->count; i++)
        if (set->item[i].mode == mode)
            return true;
    return false;
}

/* Without predictions. */
static void take_first(const peal_plan *plan, const peal_candidates *set, decision *out)
{
    static const peal_mode order[] = {PEAL_MODE_FUSED, PEAL_MODE_GRAPH, PEAL_MODE_STREAM,
                                      PEAL_MODE_SYNC};
    out->mode = plan->mode;
    for (int k = 3; k >= 0; k--)
        if (has_mode(set, order[k]))
            out->mode = order[k];
    snprintf(out->choice, sizeof(out->choice),
             set->count > 1 ? "%s, the first of fused, graph, stream, sync that can run this: "
                              "nothing is known of such a machine's times"
                            : "%s, the only mode that can run this",
             peal_mode_name((peal_mode)out->mode));
}

static peal_status predict_best(peal_plan *plan, decision *out)
{
    peal_candidates *set = calloc(1, sizeof(*set));
    char from[PEAL_FROM_BYTES];
    if (!set)
        return peal_report(plan->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for candidates");
    peal_status status = peal_plan_candidates(plan, true, set, from);
    double step_s[PEAL_MODE_COUNT] = {0};
    for (int i = 0; i < set->count; i++)
        step_s[set->item[i].mode] = set->item[i].predicted_s;
    peal_mode fastest = peal_prediction_fastest(&plan->machine, step_s);
    if (!status && set->count > 1 && fastest != PEAL_MODE_COUNT) {
        out->mode = (int32_t)fastest;
        write_prediction(set, fastest, step_s[fastest], from, out->choice);
    } else if (!status) {
        take_first(plan, set, out);
    }
    free(set);
    return status;
}

static void log_ignored(const peal_plan *plan, const char *path, const char *reason)
{
    const peal_session *session = plan->session;
    if (session->log && session->log_level >= PEAL_LOG_INFO)
        fprintf(session->log, "peal: %s is ignored: %s\n", path, reason);
}

/* False: the cache has no answer that can be used. */
static bool take_answer(const peal_plan *plan, decision *out)
{
    const char *lowering = plan->options.lowering;
    peal_answer answer;
    char key[PEAL_SHA256_TEXT], reason[96];
    bool taken = false;
    if (plan->options.no_tuning || (lowering && *lowering) || plan->passed_over)
        return false;
    peal_arena *arena = peal_arena_create();
    const char *path = arena && peal_answer_key(plan, key)
                           ? peal_answer_path(plan->options.cache_folder, key, arena, NULL)
                           : NULL;
    if (path && peal_answer_load(path, key, &answer, reason, sizeof(reason))) {
        const char *refused = peal_plan_refuses(plan, answer.mode);
        taken = !refused && answer.mode != PEAL_MODE_SERIAL;
        if (!taken)
            snprintf(reason, sizeof(reason), "mode %s cannot run: %s", peal_mode_name(answer.mode),
                     refused ? refused : "it is the reference");
    }
    if (path && !taken && reason[0])
        log_ignored(plan, path, reason);
    if (taken) {
        peal_candidate found = {.mode = answer.mode, .threads = answer.threads};
        char label[PEAL_LABEL_BYTES];
        memcpy(found.lowering, answer.lowering, sizeof(found.lowering));
        memcpy(out->lowering, answer.lowering, sizeof(out->lowering));
        peal_candidate_label(&found, label, sizeof(label));
        out->mode = answer.mode;
        out->threads = answer.threads;
        snprintf(out->choice, sizeof(out->choice), "%s, measured by peal tune on %.10s", label,
                 answer.date);
    }
    peal_arena_destroy(arena);
    return taken;
}

/* By process 0. */
static peal_status decide(peal_plan *plan, decision *out)
{
    memcpy(out->note, plan->note, sizeof(out->note));
    for (int m = 0; m < PEAL_MODE_COUNT; m++)
        if (objection(plan, (peal_mode)m) && !peal_plan_refuses(plan, (peal_mode)m))
            note(out->note, peal_mode_name((peal_mode)m), objection(plan, (peal_mode)m));
    return take_answer(plan, out) ? PEAL_STATUS_OK : predict_best(plan, out);
}

static void apply(peal_plan *plan, const decision *taken)
{
    plan->mode = (peal_mode)taken->mode;
    memcpy(plan->note, taken->note, sizeof(plan->note));
    memcpy(plan->choice, taken->choice, sizeof(plan->choice));
    memcpy(plan->lowering, taken->lowering, sizeof(plan->lowering));
    if (plan->lowering[0])
        plan->options.lowering = plan->lowering;
    plan->machine.tile_points = peal_lowering_tile(plan->options.lowering);
    if (taken->threads)
        plan->machine.workers = peal_plan_workers_of(&plan->machine, taken->threads);
}

peal_status peal_plan_decide(peal_plan *plan)
{
    peal_session *session = plan->session;
    decision taken = {.mode = (int32_t)plan->mode};
    int from = peal_diagnostics_count(session->diagnostics);
    peal_status status = PEAL_STATUS_OK;
    if (!peal_plan_is_automatic(plan))
        return PEAL_STATUS_OK;
    if (session->identity.process == 0) {
        peal_session_running(session, true); /* the others wait for it, however long it takes */
        status = decide(plan, &taken);
        peal_session_running(session, false);
    }
    status = peal_session_agree(session, status, from);
    if (!status && session->identity.processes > 1)
        status = peal_control_broadcast(session->control, 0, &taken, sizeof(taken));
    if (!status)
        apply(plan, &taken);
    return status;
}

bool peal_plan_pass_over(peal_plan *plan, peal_status status, int from)
{
    peal_session *session = plan->session;
    bool can_be_refused = plan->mode == PEAL_MODE_FUSED || plan->mode == PEAL_MODE_GRAPH;
    if (status != PEAL_STATUS_ENVIRONMENT || !plan->machine.accelerator || !can_be_refused ||
        !peal_plan_is_automatic(plan) || peal_session_status(session))
        return false;
    const char *why = peal_session_first_message(session, from);
    note(plan->note, peal_mode_name(plan->mode), why ? why : "it could not be made ready");
    plan->passed_over |= 1u << plan->mode;
    plan->options.lowering = plan->lowering[0] ? NULL : plan->options.lowering;
    peal_diagnostics_take_back(session->diagnostics, from);
    return true;
}
