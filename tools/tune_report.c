/* What `peal tune` prints: a table of candidates, or JSON. */
#include "tools/tune.h"

#include <string.h>

static int label_width(const peal_tuned *tuned)
{
    int width = 9;
    for (int c = 0; c < tuned->set.count; c++) {
        char label[PEAL_LABEL_BYTES];
        peal_candidate_label(&tuned->set.item[c], label, sizeof(label));
        int length = (int)strlen(label);
        width = length > width ? length : width;
    }
    return width;
}

static void print_measured(const peal_tuned *tuned, int c, int width, const char *before, FILE *out)
{
    const peal_judged *j = &tuned->item[c].judged;
    char label[PEAL_LABEL_BYTES];
    peal_candidate_label(&tuned->set.item[c], label, sizeof(label));
    fprintf(out, "%s%-*s %12.3f %8.3f %6.1f %%  %s%s\n", before, width, label, j->median_s * 1e6,
            j->ratio, 100 * (j->high_s - j->low_s) / j->median_s, peal_verdict_name(j->verdict),
            c == tuned->chosen ? ", taken" : "");
}

static void print_dropped(const peal_tuned *tuned, int c, int width, const char *before, FILE *out)
{
    char label[PEAL_LABEL_BYTES], time[24] = "-";
    peal_candidate_label(&tuned->set.item[c], label, sizeof(label));
    if (tuned->item[c].first_s > 0)
        snprintf(time, sizeof(time), "%.3f", tuned->item[c].first_s * 1e6);
    fprintf(out, "%s%-*s %12s %8s %8s  %s\n", before, width, label, time, "-", "-",
            tuned->set.item[c].dropped);
}

/* Those that were measured, the fastest first; then the others. */
void tune_print_table(const peal_tuned *tuned, const char *before, FILE *out)
{
    int width = label_width(tuned);
    bool printed[PEAL_MOST_CANDIDATES] = {false};
    fprintf(out, "%s%-*s %12s %8s %8s  %s\n", before, width, "candidate", "us a step", "to best",
            "spread", "verdict");
    for (;;) {
        int next = -1;
        for (int c = 0; c < tuned->set.count; c++)
            if (!printed[c] && tuned->item[c].judged.verdict != PEAL_VERDICT_NONE &&
                (next < 0 || tuned->item[c].judged.median_s < tuned->item[next].judged.median_s))
                next = c;
        if (next < 0)
            break;
        printed[next] = true;
        print_measured(tuned, next, width, before, out);
    }
    for (int c = 0; c < tuned->set.count; c++)
        if (!printed[c])
            print_dropped(tuned, c, width, before, out);
}

static void print_method(const peal_tuned *tuned)
{
    printf("\n%d rounds of %lld step%s each, one candidate after the other; %lld step%s compared "
           "%s, bit for bit.\n",
           tuned->rounds, (long long)tuned->piece_steps, tuned->piece_steps == 1 ? "" : "s",
           (long long)tuned->checked_steps, tuned->checked_steps == 1 ? "" : "s",
           tuned->by_serial ? "with serial" : "with each other");
    puts("to best: median of the ratios round by round; spread: between the quartiles; tie: within "
         "1 %,\nor within 3 % and not to be told apart: then the simpler one is taken.");
    if (tuned->from[0])
        printf("Predictions, by times of %s, have left out %d of %d candidates.\n", tuned->from,
               tuned->pruned, tuned->set.count);
}

static void print_result(const peal_tuned *tuned)
{
    char label[PEAL_LABEL_BYTES];
    peal_candidate_label(&tuned->set.item[tuned->chosen], label, sizeof(label));
    printf("Result: %s%s.\n", label,
           tuned->chosen == tuned->best ? "" : ", the simplest of those that tie");
}

/* Else it ended before the first look. */
static bool has_findings(const peal_tuned *tuned)
{
    bool found = false;
    for (int c = 0; c < tuned->set.count; c++)
        found |=
            tuned->item[c].first_s > 0 || tuned->item[c].wrong || tuned->set.item[c].dropped[0];
    return found;
}

void tune_print_text(const peal_run *run, peal_status status)
{
    const tuning *t = run->tuning;
    if (!t)
        return;
    const peal_tuned *tuned = &t->tuned;
    if (!run->options->quiet && t->measured && has_findings(tuned)) {
        printf("%s: %s on %s, %d rank%s in %d process%s, %d worker%s a rank\n",
               run->spec.data->name, tuned->backend, tuned->machine, tuned->ranks,
               tuned->ranks == 1 ? "" : "s", tuned->processes, tuned->processes == 1 ? "" : "es",
               tuned->workers, tuned->workers == 1 ? "" : "s");
        tune_print_table(tuned, "", stdout);
    }
    if (!run->options->quiet && tuned->chosen >= 0)
        print_method(tuned);
    if (tuned->chosen >= 0)
        print_result(tuned);
    if (t->kept)
        printf("Kept in %s: `--mode auto` takes it.\n", t->path);
    if (t->unkept)
        printf("Not kept: %s.\n", t->unkept);
    if (run->options->forget && status == PEAL_STATUS_OK)
        printf("%s.\n", t->forgotten ? "Forgotten" : "There was no answer to forget");
}

static json_t *json_candidate(const peal_tuned *tuned, int c)
{
    const peal_candidate *candidate = &tuned->set.item[c];
    const peal_judged *j = &tuned->item[c].judged;
    json_t *object = json_object();
    json_object_set_new(object, "mode", json_string(peal_mode_name(candidate->mode)));
    if (candidate->threads)
        json_object_set_new(object, "threads", json_integer(candidate->threads));
    if (candidate->lowering[0])
        json_object_set_new(object, "lowering", json_string(candidate->lowering));
    if (candidate->predicted_s > 0)
        json_object_set_new(object, "predicted_seconds_per_step",
                            json_real(candidate->predicted_s));
    if (tuned->item[c].first_s > 0)
        json_object_set_new(object, "first_seconds_per_step", json_real(tuned->item[c].first_s));
    if (candidate->dropped[0])
        json_object_set_new(object, "dropped", json_string(candidate->dropped));
    if (tuned->item[c].wrong)
        json_object_set_new(object, "equal_to_serial", json_false());
    if (j->verdict == PEAL_VERDICT_NONE)
        return object;
    json_object_set_new(object, "seconds_per_step",
                        json_pack("{s:f,s:f,s:f}", "median", j->median_s, "low", j->low_s, "high",
                                  j->high_s));
    json_object_set_new(object, "to_best",
                        json_pack("{s:f,s:f,s:f}", "median", j->ratio, "low", j->ratio_low, "high",
                                  j->ratio_high));
    json_object_set_new(object, "verdict", json_string(peal_verdict_name(j->verdict)));
    return object;
}

void tune_print_json(const peal_run *run, peal_status status)
{
    const tuning *t = run->tuning;
    json_t *object = json_begin("peal.tune/1"), *list = json_array();
    json_object_set_new(object, "status", json_string(peal_status_name(status)));
    json_object_set_new(object, "exit", json_integer(status));
    if (run->spec.data)
        json_object_set_new(object, "name", json_string(run->spec.data->name));
    for (int c = 0; t && c < t->tuned.set.count; c++)
        json_array_append_new(list, json_candidate(&t->tuned, c));
    if (t && t->tuned.backend) {
        const peal_tuned *tuned = &t->tuned;
        json_object_set_new(object, "backend", json_string(tuned->backend));
        json_object_set_new(object, "machine", json_string(tuned->machine));
        json_object_set_new(object, "ranks", json_integer(tuned->ranks));
        json_object_set_new(object, "processes", json_integer(tuned->processes));
        json_object_set_new(object, "workers", json_integer(tuned->workers));
        json_object_set_new(object, "rounds", json_integer(tuned->rounds));
        json_object_set_new(object, "steps_of_a_round", json_integer(tuned->piece_steps));
        json_object_set_new(object, "steps_compared", json_integer(tuned->checked_steps));
        json_object_set_new(object, "compared_with",
                            json_string(tuned->by_serial ? "serial" : "each other"));
        json_object_set_new(object, "left_out_by_prediction", json_integer(tuned->pruned));
        json_object_set_new(object, "best", json_integer(tuned->best));
        json_object_set_new(object, "taken", json_integer(tuned->chosen));
        if (tuned->under_way[0])
            json_object_set_new(object, "ended_in", json_string(tuned->under_way));
        json_object_set_new(object, "kept", json_boolean(t->kept));
        if (t->path[0])
            json_object_set_new(object, "path", json_string(t->path));
    }
    if (t && run->options->forget)
        json_object_set_new(object, "forgotten", json_boolean(t->forgotten));
    json_object_set_new(object, "candidates", list);
    json_print(object);
}
