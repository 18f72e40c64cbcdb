/* What `peal run` prints at the end: the table of modes, what to try next, the verdict. */
#include "tools/run.h"

#include <inttypes.h>
#include <string.h>

/* sync is what a hand-written MPI program does: the others are compared with it. */
static double seconds_of_sync(const peal_run *run)
{
    for (int i = 0; i < run->result_count; i++)
        if (run->result[i].mode == PEAL_MODE_SYNC && run->result[i].sample_count)
            return median_of(run->result[i].per_step, run->result[i].sample_count);
    return 0;
}

static void print_row(const mode_result *result, double sync)
{
    const char *name = peal_mode_name(result->mode);
    if (!result->ran) {
        printf("%-8s %s%s\n", name, result->refusal ? "cannot run: " : "did not finish",
               result->refusal ? result->refusal : "");
        return;
    }
    const double *samples = result->per_step;
    int count = result->sample_count;
    char ratio[16] = "";
    double median = median_of(samples, count);
    if (sync > 0 && median > 0)
        snprintf(ratio, sizeof(ratio), "%.2fx", sync / median);
    printf("%-8s %12s %12s %12s %10s   %s\n", name, text_seconds(median).s,
           text_seconds(count ? samples[0] : -1).s, text_seconds(count ? samples[count - 1] : -1).s,
           ratio,
           result->mode == PEAL_MODE_SERIAL ? "the reference"
           : result->nothing                ? "nothing to compare"
           : !result->compared              ? "not compared"
           : result->equal                  ? "equal to serial"
                                            : "DIFFERS from serial");
}

/* What messages add to the time of a step; at least 0 but for noise. */
static double exposed_of(const mode_result *result)
{
    return result->sent_per_step - result->unsent_per_step;
}

/* The last words of what --exposed has found. */
static void print_exposed(const mode_result *result)
{
    if (result->unmeasured[0])
        printf("exposed communication: not measured: %s\n", result->unmeasured);
    if (result->unsent_per_step <= 0)
        return;
    double exposed = exposed_of(result);
    printf("exposed communication: %s (%s a step without messages)\n",
           exposed > 0 ? text_seconds(exposed).s : "none seen",
           text_seconds(result->unsent_per_step).s);
}

static void print_modes(const peal_run *run)
{
    double sync = seconds_of_sync(run);
    printf("\n%-8s %12s %12s %12s %10s   %s\n", "mode", "median/step", "min", "max", "vs sync",
           "result");
    for (int i = 0; i < run->result_count; i++)
        print_row(&run->result[i], sync);
    for (int i = 0; i < run->result_count; i++)
        if (run->result[i].unsent_per_step > 0) {
            printf("%-8s ", peal_mode_name(run->result[i].mode));
            print_exposed(&run->result[i]);
        }
}

static void print_summary(const mode_result *result)
{
    printf("%" PRId64 " step%s%s in %s", result->steps, result->steps == 1 ? "" : "s",
           result->stopped ? " (stopped by until)" : "", text_seconds(result->seconds).s);
    if (result->steps > 0 && result->seconds > 0)
        printf(": %s a step in the mean", text_seconds(result->seconds / (double)result->steps).s);
    if (result->sample_count > 1)
        printf(", %s in the median of %d parts",
               text_seconds(median_of(result->per_step, result->sample_count)).s,
               result->sample_count);
    if (result->cpu_seconds > 0 && result->steps > 0)
        printf(", %s of the CPU", text_seconds(result->cpu_seconds / (double)result->steps).s);
    putchar('\n');
    print_exposed(result);
}

/* The words of a command about this run. */
static void print_words(const peal_run *run, const char *verb)
{
    const peal_options *options = run->options;
    printf("peal %s %s -n %d", verb, options->subject, run->ranks);
    if (options->hosts)
        printf(" --hosts %s", options->hosts);
    if (options->transport)
        printf(" --transport %s", options->transport);
}

/* One line that leads on from what was just seen. */
static void print_next(const peal_run *run)
{
    if (run->options->mode != MODE_ALL)
        return;
    fputs("\nNext: `", stdout);
    print_words(run, "plan");
    fputs(" --rank 0` shows the schedule, `", stdout);
    print_words(run, "explain");
    fputs("` its paths.\n", stdout);
}

/* The last line. */
static void print_verdict(const peal_run *run)
{
    int compared = 0, equal = 0, nothing = 0;
    for (int i = 0; i < run->result_count; i++) {
        compared += run->result[i].compared && run->result[i].mode != PEAL_MODE_SERIAL;
        equal += run->result[i].compared && run->result[i].equal &&
                 run->result[i].mode != PEAL_MODE_SERIAL;
        nothing += run->result[i].nothing && run->result[i].mode != PEAL_MODE_SERIAL;
    }
    if (!compared && run->options->verify && run->options->mode == PEAL_MODE_SERIAL)
        puts("Result: serial is the reference.");
    if (!compared && nothing && run->options->mode == MODE_ALL)
        puts("Result: nothing was compared (E372): no point of a field, no element of a buffer "
             "with `keep`, no row.");
    if (!compared)
        return;
    if (equal == compared)
        printf("Result: %s equal to serial, bit for bit%s.\n",
               compared == 1 ? peal_mode_name(run->result[run->result_count - 1].ran
                                                  ? run->result[run->result_count - 1].mode
                                                  : run->result[0].mode)
                             : "every mode",
               run->options->verify ? "" : " (by digest; --verify compares every bit)");
    else
        printf("Result: WRONG, %d of %d modes differ from serial.\n", compared - equal, compared);
}

/* What --verify-ranks has found. */
static void print_other_ranks(const mode_result *result, int ranks)
{
    const peal_ranks_verdict *v = &result->ranks;
    if (!result->compared_ranks)
        return;
    if (!result->equal_ranks) {
        printf("Result: WRONG, %d rank%s and %d compute something else.\n", ranks,
               ranks == 1 ? "" : "s", v->ranks);
        return;
    }
    printf("Result: %s on %d rank%s equal to serial on %d, ", peal_mode_name(result->mode), ranks,
           ranks == 1 ? "" : "s", v->ranks);
    if (v->rounding > 0 || v->rounded[0])
        printf("but for the rounding of sums over ranks (%.2g of the largest value%s%s)",
               v->rounding, v->rounded[0] ? "; in " : "", v->rounded);
    else
        printf("bit for bit");
    printf("%s%s%s.\n", v->own[0] ? " (not compared, each rank's own: " : "", v->own,
           v->own[0] ? ")" : "");
}

void report_text(const peal_run *run, peal_status status)
{
    if (run->options->check_footprints) {
        if (status == PEAL_STATUS_OK)
            puts("Result: every kernel touches only what its task declares.");
        return;
    }
    if (!run->options->quiet) {
        if (run->options->mode == MODE_ALL)
            print_modes(run);
        else if (run->result_count && run->result[0].ran)
            print_summary(&run->result[0]);
        if (status == PEAL_STATUS_OK)
            print_next(run);
    }
    if (status != PEAL_STATUS_OK && status != PEAL_STATUS_WRONG_RESULT)
        return;
    if (run->options->watch && status == PEAL_STATUS_OK)
        printf("Result: no value is %s, looked at every %" PRId64 " step%s.\n",
               !strcmp(run->options->watch, "nan") ? "NaN" : "NaN or infinite",
               run->options->watch_steps, run->options->watch_steps == 1 ? "" : "s");
    print_verdict(run);
    for (int i = 0; i < run->result_count; i++)
        print_other_ranks(&run->result[i], run->ranks);
}

static json_t *json_result(const mode_result *result)
{
    json_t *object = json_object();
    json_object_set_new(object, "mode", json_string(peal_mode_name(result->mode)));
    json_object_set_new(object, "applicable", json_boolean(!result->refusal));
    if (result->refusal)
        json_object_set_new(object, "reason", json_string(result->refusal));
    json_object_set_new(object, "finished", json_boolean(result->ran));
    if (!result->ran)
        return object;
    json_object_set_new(object, "steps", json_integer(result->steps));
    json_object_set_new(object, "steps_replayed", json_integer(result->replayed));
    json_object_set_new(object, "stopped", json_boolean(result->stopped));
    json_object_set_new(object, "seconds", json_real(result->seconds));
    if (result->cpu_seconds > 0)
        json_object_set_new(object, "cpu_seconds", json_real(result->cpu_seconds));
    if (result->cpu_seconds > 0 && result->steps > 0)
        json_object_set_new(object, "cpu_seconds_per_step",
                            json_real(result->cpu_seconds / (double)result->steps));
    json_object_set_new(object, "memory_bytes", json_integer(result->memory_bytes));
    json_object_set_new(object, "digest", json_string(text_hash(result->digest).s));
    if (result->sample_count) {
        int last = result->sample_count - 1;
        json_t *parts = json_array();
        for (int i = 0; i <= last; i++)
            json_array_append_new(parts, json_real(result->per_step[i]));
        json_object_set_new(object, "seconds_per_step",
                            json_pack("{s:f,s:f,s:f,s:o}", "median",
                                      median_of(result->per_step, result->sample_count), "min",
                                      result->per_step[0], "max", result->per_step[last], "parts",
                                      parts));
    }
    if (result->unmeasured[0])
        json_object_set_new(object, "exposed_unmeasured", json_string(result->unmeasured));
    if (result->unsent_per_step > 0) {
        json_object_set_new(object, "seconds_per_step_with_messages",
                            json_real(result->sent_per_step));
        json_object_set_new(object, "seconds_per_step_without_messages",
                            json_real(result->unsent_per_step));
        json_object_set_new(object, "exposed_seconds_per_step", json_real(exposed_of(result)));
    }
    if (result->compared)
        json_object_set_new(object, "equal_to_serial", json_boolean(result->equal));
    if (result->compared_ranks)
        json_object_set_new(object, "other_ranks",
                            json_pack("{s:i,s:b,s:f,s:s,s:s}", "ranks", result->ranks.ranks,
                                      "equal", result->equal_ranks, "rounding",
                                      result->ranks.rounding, "rounded", result->ranks.rounded,
                                      "not_compared", result->ranks.own));
    return object;
}

void report_json(const peal_run *run, peal_status status)
{
    json_t *object = json_begin("peal.run/1"), *modes = json_array();
    for (int i = 0; i < run->result_count; i++)
        json_array_append_new(modes, json_result(&run->result[i]));
    json_object_set_new(object, "status", json_string(peal_status_name(status)));
    json_object_set_new(object, "exit", json_integer(status));
    if (run->spec.data)
        json_object_set_new(object, "name", json_string(run->spec.data->name));
    json_object_set_new(object, "backend", json_string(run->backend->name));
    if (run->device[0])
        json_object_set_new(object, "device", json_string(run->device));
    if (run->choice[0])
        json_object_set_new(object, "auto", json_string(run->choice));
    json_object_set_new(object, "ranks", json_integer(run->ranks));
    json_object_set_new(object, "processes", json_integer(run->processes));
    if (run->transport)
        json_object_set_new(object, "transport", json_string(run->transport));
    json_object_set_new(object, "workers", json_integer(run->workers));
    json_object_set_new(object, "dims",
                        json_pack("[i,i,i]", run->dims[0], run->dims[1], run->dims[2]));
    json_object_set_new(object, "hash", json_string(text_hash(run->hash).s));
    json_object_set_new(object, "modes", modes);
    json_object_set(object, "rows", run->rows.rows);
    json_print(object);
}
