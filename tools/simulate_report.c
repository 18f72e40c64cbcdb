/* What `peal simulate` prints: a table or JSON, and the critical path in words. */
#include "tools/memory.h"
#include "tools/simulate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_SHARES = 8, SHOWN_STOPS = 24 };

/* ---- the critical path ---- */

/* "exchange an" of "exchange an@17 [0,1,0] 5->4": without the line, its ranks are told apart. */
static void name_op(const peal_schedule *schedule, const sim_piece *piece, char *text, size_t bytes)
{
    const peal_op *op = &schedule->op[piece->op];
    static const char *const copies[] = {"send", "unpack", "copy"};
    static const char *const kinds[] = {"", "copy", "write", "wait", "fence"};
    if (op->kind == PEAL_OP_LAUNCH) {
        snprintf(text, bytes, "%s", op->label ? op->label : schedule->task[op->task].name);
        return;
    }
    const char *name = op->label ? op->label : "", *end = NULL;
    if (op->channel >= 0) {
        name = schedule->channel[op->channel].edge;
        end = strrchr(name, ' ');
    }
    snprintf(text, bytes, "%s%s%s %.*s",
             op->kind == PEAL_OP_COPY ? copies[op->copy] : kinds[op->kind],
             op->credit ? " credit" : "", op->kind == PEAL_OP_COPY ? "" : " of",
             end ? (int)(end - name) : (int)strlen(name), name);
}

static void add_share(simulated_point *point, int *capacity, const char *what, double seconds)
{
    for (int i = 0; i < point->share_count; i++)
        if (!strcmp(point->share[i].what, what)) {
            point->share[i].seconds += seconds;
            point->share[i].count++;
            return;
        }
    if (point->share_count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 32;
        point->share = realloc(point->share, (size_t)*capacity * sizeof(*point->share));
        if (!point->share)
            command_end_without_memory((size_t)*capacity * sizeof(*point->share));
    }
    path_share *share = &point->share[point->share_count++];
    *share = (path_share){.seconds = seconds, .count = 1};
    snprintf(share->what, sizeof(share->what), "%s", what);
}

static int longest_first(const void *a, const void *b)
{
    const path_share *x = a, *y = b;
    return x->seconds != y->seconds ? (x->seconds < y->seconds) - (x->seconds > y->seconds)
                                    : strcmp(x->what, y->what);
}

/* The pieces of the last step, the first one first. */
static void tell_last_step(simulated_point *point, const peal_schedule *const *schedule,
                           const int *number)
{
    const sim_result *r = &point->sent;
    int64_t count = 0;
    while (count < r->piece_count && r->piece[count].step >= r->steps - 1)
        count++;
    point->stop = calloc((size_t)count + 1, sizeof(*point->stop));
    if (!point->stop)
        command_end_without_memory((size_t)(count + 1) * sizeof(*point->stop));
    for (int64_t i = count - 1; i >= 0; i--) {
        const sim_piece *piece = &r->piece[i];
        path_stop *stop = &point->stop[point->stop_count++];
        *stop = (path_stop){.rank = piece->rank,
                            .to = piece->link ? piece->to : -1,
                            .begin_s = piece->begin_s - r->piece[count - 1].begin_s,
                            .end_s = piece->end_s - r->piece[count - 1].begin_s};
        name_op(schedule[number[piece->rank]], piece, stop->what, sizeof(stop->what));
    }
}

void simulate_tell_path(simulated_point *point, const peal_schedule *const *schedule,
                        const int *number)
{
    const sim_result *r = &point->sent;
    char what[256], text[240];
    int capacity = 0;
    for (int64_t i = 0; i < r->piece_count; i++) {
        const sim_piece *piece = &r->piece[i];
        double before = i + 1 < r->piece_count ? piece->begin_s - r->piece[i + 1].end_s : 0;
        name_op(schedule[number[piece->rank]], piece, text, sizeof(text));
        snprintf(what, sizeof(what), "%s%s", piece->link ? "link, after " : "", text);
        add_share(point, &capacity, what, piece->end_s - piece->begin_s);
        if (before > 0)
            add_share(point, &capacity, "waiting for the CPU", before);
    }
    if (point->share_count)
        qsort(point->share, (size_t)point->share_count, sizeof(*point->share), longest_first);
    tell_last_step(point, schedule, number);
}

/* ---- text ---- */

static double exposed(const simulated_point *p)
{
    return p->sent.step_s > p->free_step_s ? p->sent.step_s - p->free_step_s : 0;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void print_traffic(const sim_result *r)
{
    double steps = r->steps > 0 ? (double)r->steps : 1;
    bool any = false;
    printf("  messages a step     ");
    for (int i = 0; i < PEAL_LINK_COUNT; i++)
        if (r->traffic[i].messages) {
            printf("%s%.6g by %s (%s)", any ? ", " : "", (double)r->traffic[i].messages / steps,
                   peal_link_name((peal_link_class)i),
                   text_bytes((int64_t)((double)r->traffic[i].bytes / steps)).s);
            any = true;
        }
    printf("%s", any ? "" : "none");
    if (r->credits)
        printf(", %.6g credits", (double)r->credits / steps);
    putchar('\n');
}

static void print_path(const simulated_point *p)
{
    double all = 0;
    for (int i = 0; i < p->share_count; i++)
        all += p->share[i].seconds;
    if (!p->share_count) {
        if (p->sent.steps > 0)
            puts("  critical path       not recorded: a step takes too much memory");
        return;
    }
    printf("  critical path, shares of %s, the last %" PRId64 " step%s (a task with its launch):\n",
           text_seconds(all).s, p->sent.path_steps, p->sent.path_steps == 1 ? "" : "s");
    for (int i = 0; i < p->share_count && i < SHOWN_SHARES; i++)
        if (p->share[i].seconds > 0)
            printf("    %5.1f %%  %s\n", percent(p->share[i].seconds, all), p->share[i].what);
    printf("  and through the last one:\n");
    for (int i = 0; i < p->stop_count; i++) {
        const path_stop *stop = &p->stop[i];
        if (i == SHOWN_STOPS) {
            printf("    ... %d more (--json has all)\n", p->stop_count - i);
            break;
        }
        char where[40];
        snprintf(where, sizeof(where), stop->to >= 0 ? "%d -> %d" : "rank %d", stop->rank,
                 stop->to);
        printf("    %-16s %10s  %s%s\n", where, text_seconds(stop->end_s - stop->begin_s).s,
               stop->what, stop->to >= 0 ? ": under way" : "");
    }
}

static void print_point(const simulation *s, const simulated_point *p)
{
    const sim_result *r = &p->sent;
    printf("%s: %d rank%s (%d x %d x %d) on %d node%s of %d device%s, mode %s\n", s->graph->name,
           p->ranks, p->ranks == 1 ? "" : "s", p->dims[0], p->dims[1], p->dims[2], r->nodes,
           r->nodes == 1 ? "" : "s", s->times.devices, s->times.devices == 1 ? "" : "s",
           peal_mode_name(p->mode));
    printf("  time per step       %s", text_seconds(r->step_s).s);
    if (r->steps && r->steps < r->all_steps)
        printf("   (%" PRId64 " to %" PRId64 " of %" PRId64 " steps)\n", r->first_timed,
               r->steps - 1, r->all_steps);
    else
        printf("   (%" PRId64 " step%s)\n", r->steps, r->steps == 1 ? "" : "s");
    if (s->graph->step.until)
        puts("  until               never stops a simulation");
    printf("  without messages    %s: %s exposed (%.1f %%)\n", text_seconds(p->free_step_s).s,
           text_seconds(exposed(p)).s, percent(exposed(p), r->step_s));
    printf("  tasks               %s a rank (%.1f %%): %s (%.1f %%) in kernels, else launch, "
           "begin, end\n",
           text_seconds(r->task_s).s, percent(r->task_s, r->step_s), text_seconds(r->kernel_s).s,
           percent(r->kernel_s, r->step_s));
    print_traffic(r);
    print_path(p);
    printf("  simulated           %" PRId64 " operations, %d schedule%s; %s (%zu bytes a rank), %s "
           "for schedules\n",
           r->ops, p->schedule_count, p->schedule_count == 1 ? "" : "s",
           text_bytes((int64_t)r->memory_bytes).s, r->rank_bytes,
           text_bytes((int64_t)p->compiled_bytes).s);
}

static void print_curve(const simulation *s)
{
    printf("\n%-8s %9s %12s %18s %12s %10s\n", "mode", "ranks", "step", "without messages",
           "exposed", "speed-up");
    const simulated_point *first = NULL;
    for (int i = 0; i < s->point_count; i++) {
        const simulated_point *p = &s->point[i];
        if (!first || first->mode != p->mode)
            first = p;
        printf("%-8s %9d %12s %18s %12s %10.2f\n", peal_mode_name(p->mode), p->ranks,
               text_seconds(p->sent.step_s).s, text_seconds(p->free_step_s).s,
               text_seconds(exposed(p)).s,
               p->sent.step_s > 0 ? first->sent.step_s / p->sent.step_s : 0);
    }
}

void simulate_print_text(const simulation *s)
{
    for (int i = 0; i < s->point_count; i++) {
        if (i)
            putchar('\n');
        print_point(s, &s->point[i]);
    }
    if (s->point_count > 1)
        print_curve(s);
}

/* ---- JSON ---- */

static json_t *json_traffic(const sim_result *r)
{
    json_t *list = json_array();
    for (int i = 0; i < PEAL_LINK_COUNT; i++) {
        if (!r->traffic[i].messages)
            continue;
        json_t *item = json_object();
        json_object_set_new(item, "link", json_string(peal_link_name((peal_link_class)i)));
        json_object_set_new(item, "messages", json_integer(r->traffic[i].messages));
        json_object_set_new(item, "bytes", json_integer(r->traffic[i].bytes));
        json_array_append_new(list, item);
    }
    return list;
}

static json_t *json_path(const simulated_point *p)
{
    json_t *path = json_object(), *shares = json_array(), *stops = json_array();
    for (int i = 0; i < p->share_count; i++) {
        json_t *item = json_object();
        json_object_set_new(item, "what", json_string(p->share[i].what));
        json_object_set_new(item, "seconds", json_real(p->share[i].seconds));
        json_object_set_new(item, "count", json_integer(p->share[i].count));
        json_array_append_new(shares, item);
    }
    for (int i = 0; i < p->stop_count; i++) {
        json_t *item = json_object();
        json_object_set_new(item, "rank", json_integer(p->stop[i].rank));
        if (p->stop[i].to >= 0)
            json_object_set_new(item, "to", json_integer(p->stop[i].to));
        json_object_set_new(item, "what", json_string(p->stop[i].what));
        json_object_set_new(item, "begin_s", json_real(p->stop[i].begin_s));
        json_object_set_new(item, "end_s", json_real(p->stop[i].end_s));
        json_array_append_new(stops, item);
    }
    json_object_set_new(path, "steps", json_integer(p->sent.path_steps));
    json_object_set_new(path, "shares", shares);
    json_object_set_new(path, "last_step", stops);
    return path;
}

static json_t *json_point(const simulated_point *p)
{
    const sim_result *r = &p->sent;
    json_t *item = json_object(), *dims = json_array();
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        json_array_append_new(dims, json_integer(p->dims[k]));
    json_object_set_new(item, "mode", json_string(peal_mode_name(p->mode)));
    json_object_set_new(item, "ranks", json_integer(p->ranks));
    json_object_set_new(item, "dims", dims);
    json_object_set_new(item, "nodes", json_integer(r->nodes));
    json_object_set_new(item, "devices", json_integer(r->devices));
    json_object_set_new(item, "steps", json_integer(r->steps));
    json_object_set_new(item, "all_steps", json_integer(r->all_steps));
    json_object_set_new(item, "first_timed", json_integer(r->first_timed));
    json_object_set_new(item, "seconds", json_real(r->seconds));
    json_object_set_new(item, "seconds_per_step", json_real(r->step_s));
    json_object_set_new(item, "seconds_without_messages", json_real(p->free_step_s));
    json_object_set_new(item, "exposed_seconds", json_real(exposed(p)));
    json_object_set_new(item, "kernel_seconds", json_real(r->kernel_s));
    json_object_set_new(item, "task_seconds", json_real(r->task_s));
    json_object_set_new(item, "traffic", json_traffic(r));
    json_object_set_new(item, "credits", json_integer(r->credits));
    json_object_set_new(item, "path", json_path(p));
    json_object_set_new(item, "operations", json_integer(r->ops));
    json_object_set_new(item, "schedules", json_integer(p->schedule_count));
    json_object_set_new(item, "memory_bytes", json_integer((json_int_t)r->memory_bytes));
    json_object_set_new(item, "rank_bytes", json_integer((json_int_t)r->rank_bytes));
    json_object_set_new(item, "schedule_bytes", json_integer((json_int_t)p->compiled_bytes));
    return item;
}

void simulate_print_json(const simulation *s)
{
    json_t *object = json_begin("peal.simulate/1"), *points = json_array();
    for (int i = 0; i < s->point_count; i++)
        json_array_append_new(points, json_point(&s->point[i]));
    json_object_set_new(object, "name", json_string(s->graph->name));
    json_object_set_new(object, "machine", json_string(s->options->machine));
    json_object_set_new(object, "hash", json_string(text_hash(s->graph->hash).s));
    json_object_set_new(object, "points", points);
    json_print(object);
}
