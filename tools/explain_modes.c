/* What a step takes in each mode on a machine with times: split by cause, the conditions of the
 * model, and why the modes lose that do. */
#include "tools/explain_modes.h"

#include <math.h>

/* What the model's time of a step is made of; overlap is taken off. */
typedef enum step_part {
    PART_TASKS,
    PART_COPIES,
    PART_SIGNALS,
    PART_WAY,
    PART_LAUNCHES,
    PART_IDLE,
    PART_OVERLAP,
    PART_COUNT
} step_part;

static const char *const part_name[PART_COUNT] = {"tasks",    "copies", "signals", "under way",
                                                  "launches", "idle",   "overlap"};

static bool is_driven(peal_mode mode)
{
    return mode == PEAL_MODE_SERIAL || mode == PEAL_MODE_SYNC;
}

/* What of it the CPU does while the device works is no part of the step. */
static void split(const mode_predictions *p, peal_mode mode, double part[PART_COUNT])
{
    const peal_period *period = &p->mode[mode].period;
    const peal_model *model = &p->mode[mode].model;
    part[PART_TASKS] = period->task_s;
    part[PART_COPIES] = period->copy_s;
    part[PART_SIGNALS] = period->signal_s;
    part[PART_WAY] = period->way_s;
    part[PART_LAUNCHES] = is_driven(mode) ? period->launch_s + period->post_s : 0;
    part[PART_OVERLAP] = -model->overlap_s;
    part[PART_IDLE] = model->step_s;
    for (int i = 0; i < PART_COUNT; i++)
        part[PART_IDLE] -= i != PART_IDLE ? part[i] : 0;
    for (int i = 0; i < PART_COUNT; i++) /* the rounding of sums */
        if (fabs(part[i]) < 1e-6 * model->step_s)
            part[i] = 0;
}

peal_status predict_modes(const peal_options *options, const peal_backend_ops *backend,
                          const peal_graph_data *graph, const peal_machine *machine,
                          const peal_machine_times *times, const mode_line line[PEAL_MODE_COUNT],
                          peal_diagnostics *diagnostics, mode_predictions *out)
{
    double step_s[PEAL_MODE_COUNT] = {0};
    peal_status status = PEAL_STATUS_OK;
    bool fits = times->given && times->accelerator == (backend != &peal_backend_host);
    *out = (mode_predictions){.machine = fits ? options->machine : NULL,
                              .accelerator = times->accelerator};
    for (int mode = 0; fits && mode < PEAL_MODE_COUNT && !status; mode++) {
        peal_machine one = *machine;
        if (!line[mode].can || !times->mode[mode].given)
            continue;
        if (mode == PEAL_MODE_SERIAL)
            one.processes = 1;
        peal_prediction_desc desc = {.size = sizeof(desc),
                                     .graph = graph,
                                     .machine = &one,
                                     .times = times,
                                     .mode = (peal_mode)mode,
                                     .diagnostics = diagnostics};
        status = peal_predict(&desc, &out->mode[mode]);
        out->known[mode] = !status;
        step_s[mode] = status ? 0 : out->mode[mode].step_s * (1 - line[mode].rehearsal.saved);
    }
    out->fastest = peal_prediction_fastest(machine, step_s);
    return status;
}

/* ---- text ---- */

static void print_steps(const mode_predictions *p)
{
    printf("\nA step on %s\n", p->machine);
    printf("%-8s %9s %9s ", "mode", "simulated", "model =");
    for (int i = 0; i < PART_COUNT; i++)
        printf(" %9s", part_name[i]);
    putchar('\n');
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
        double part[PART_COUNT];
        if (!p->known[mode])
            continue;
        split(p, (peal_mode)mode, part);
        printf("%-8s %9s %9s ", peal_mode_name((peal_mode)mode),
               text_seconds(p->mode[mode].step_s).s, text_seconds(p->mode[mode].model.step_s).s);
        for (int i = 0; i < PART_COUNT; i++) {
            double value = i == PART_OVERLAP ? -part[i] : part[i];
            printf(" %9s", value > 0 ? text_seconds(value).s : "-");
        }
        putchar('\n');
    }
    puts("model: the sum, less overlap. tasks, copies, signals: of the device or core; under way:\n"
         "until a message is there; launches: of a CPU that waits for tasks; idle: it waits for "
         "the\n"
         "CPU, or another rank has its turn.");
}

static void print_conditions(const mode_predictions *p)
{
    const peal_prediction *sync = &p->mode[PEAL_MODE_SYNC];
    if (!p->known[PEAL_MODE_SYNC] || p->fastest == PEAL_MODE_COUNT)
        return;
    printf("\n%-8s %-25s %-27s %s\n", "mode", "C1 asynchrony", "C2 time gain", "C3 fragmentation");
    for (int mode = PEAL_MODE_STREAM; mode < PEAL_MODE_COUNT; mode++) {
        const peal_prediction *m = &p->mode[mode];
        peal_conditions c;
        char text[2][112];
        if (!p->known[mode])
            continue;
        peal_conditions_evaluate(&m->period, &m->model, &sync->period, &sync->model, &c);
        double added_s = c.message_s > 0 ? c.message_s : 0;
        snprintf(text[0], sizeof(text[0]), "%-3s %s %s %s", c.asynchronous ? "yes" : "no",
                 text_seconds(m->model.cpu_s).s,
                 c.asynchronous ? "<" : ">=", text_seconds(m->model.device_s).s);
        snprintf(text[1], sizeof(text[1]), "%-3s %s %s %s", c.gains ? "yes" : "no",
                 text_seconds(added_s).s, c.gains ? "<=" : ">", text_seconds(c.sync_idle_s).s);
        printf("%-8s %-25s %-27s %-3s R=%.6g X=%.3g Y=%.3g Z=%.3g\n",
               peal_mode_name((peal_mode)mode), text[0], text[1], c.fragmented ? "yes" : "no",
               m->period.periods, m->period.before, m->period.inside, m->period.after);
    }
    puts(
        "C1: the CPU enqueues a step faster than the device executes it. C2: what messages add to\n"
        "the tasks is at most what the device idles in sync. C3: R steps that can be enqueued "
        "ahead,\n"
        "in each X tasks before a send, Y beside messages, Z after a wait.");
}

/* The causes for which a mode takes longer than another, the greatest first, of some weight. */
static void print_causes(const mode_predictions *p, peal_mode loser, peal_mode winner)
{
    double mine[PART_COUNT], others[PART_COUNT];
    double more = p->mode[loser].model.step_s - p->mode[winner].model.step_s;
    const char *before = ": ";
    split(p, loser, mine);
    split(p, winner, others);
    for (;;) {
        int most = 0;
        for (int i = 1; i < PART_COUNT; i++)
            if (mine[i] - others[i] > mine[most] - others[most])
                most = i;
        double cause = mine[most] - others[most];
        if (more <= 0 || cause < 0.1 * more)
            break;
        if (loser == PEAL_MODE_SERIAL && most == PART_IDLE)
            printf("%s%s while others have their turn", before, text_seconds(cause).s);
        else if (most == PART_OVERLAP)
            printf("%s%s less overlap", before, text_seconds(cause).s);
        else
            printf("%s%s more %s%s", before, text_seconds(cause).s, most == PART_WAY ? "time " : "",
                   part_name[most]);
        before = ", ";
        mine[most] = others[most];
    }
}

static void print_verdict(const mode_predictions *p)
{
    if (p->fastest == PEAL_MODE_COUNT)
        return;
    double best = p->mode[p->fastest].step_s;
    printf("\n%s is predicted fastest.\n", peal_mode_name(p->fastest));
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
        double ratio = p->mode[mode].step_s / best;
        if (!p->known[mode] || mode == (int)p->fastest)
            continue;
        if (ratio < 1.02) {
            printf("  %-8s no slower", peal_mode_name((peal_mode)mode));
            fputs(mode == PEAL_MODE_SYNC   ? ", but the caller has nothing to do meanwhile"
                  : mode > (int)p->fastest ? ", but less simple"
                                           : "",
                  stdout);
        } else {
            printf("  %-8s %.2f times as long", peal_mode_name((peal_mode)mode), ratio);
            print_causes(p, (peal_mode)mode, p->fastest);
        }
        putchar('\n');
    }
}

static bool all_told(const mode_predictions *p)
{
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++)
        if (p->known[mode] && !p->mode[mode].kernels_are_told)
            return false;
    return true;
}

void predictions_print(const mode_predictions *p)
{
    if (!p->machine) {
        puts("\nNothing is predicted without a machine file that has times: --machine FILE.yaml.");
        return;
    }
    print_steps(p);
    if (!all_told(p))
        puts("Kernels without times of their own take those of `default` in the file.");
    if (p->accelerator)
        print_conditions(p);
    print_verdict(p);
}

/* ---- JSON ---- */

static json_t *model_json(const mode_predictions *p, peal_mode mode)
{
    const peal_period *period = &p->mode[mode].period;
    const peal_model *model = &p->mode[mode].model;
    double part[PART_COUNT];
    json_t *item = json_object(), *parts = json_object();
    split(p, mode, part);
    for (int i = 0; i < PART_COUNT; i++)
        json_object_set_new(parts, part_name[i], json_real(i == PART_OVERLAP ? -part[i] : part[i]));
    json_object_set_new(item, "seconds", json_real(model->step_s));
    json_object_set_new(item, "cpu_seconds", json_real(model->cpu_s));
    json_object_set_new(item, "device_seconds", json_real(model->device_s));
    json_object_set_new(item, "parts", parts);
    json_object_set_new(item, "period",
                        json_pack("{s:f,s:f,s:f,s:f}", "R", period->periods, "X", period->before,
                                  "Y", period->inside, "Z", period->after));
    return item;
}

static json_t *conditions_json(const mode_predictions *p, peal_mode mode)
{
    const peal_prediction *m = &p->mode[mode], *sync = &p->mode[PEAL_MODE_SYNC];
    peal_conditions c;
    peal_conditions_evaluate(&m->period, &m->model, &sync->period, &sync->model, &c);
    return json_pack("{s:b,s:b,s:b,s:f,s:f}", "C1", c.asynchronous, "C2", c.gains, "C3",
                     c.fragmented, "message_seconds", c.message_s, "sync_idle_seconds",
                     c.sync_idle_s);
}

void predictions_add_json(const mode_predictions *p, json_t *object)
{
    json_t *list = json_array();
    if (!p->machine) {
        json_decref(list);
        return;
    }
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
        const peal_prediction *m = &p->mode[mode];
        if (!p->known[mode])
            continue;
        json_t *item =
            json_pack("{s:s,s:f,s:f,s:I,s:b}", "mode", peal_mode_name((peal_mode)mode),
                      "seconds_per_step", m->step_s, "seconds_without_messages", m->without_s,
                      "steps", (json_int_t)m->steps, "kernels_are_told", m->kernels_are_told);
        json_object_set_new(item, "model", model_json(p, (peal_mode)mode));
        if (p->accelerator && !is_driven((peal_mode)mode) && p->known[PEAL_MODE_SYNC])
            json_object_set_new(item, "conditions", conditions_json(p, (peal_mode)mode));
        json_array_append_new(list, item);
    }
    json_object_set_new(object, "machine", json_string(p->machine));
    json_object_set_new(object, "predictions", list);
    if (p->fastest != PEAL_MODE_COUNT)
        json_object_set_new(object, "fastest", json_string(peal_mode_name(p->fastest)));
}
