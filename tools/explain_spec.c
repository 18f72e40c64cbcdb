/* `peal explain SPEC`: the applicability table (which modes can run it, and why not), the paths
 * that messages take, and what is predicted of each mode. */
#include "tools/explain_modes.h"

#include "base/places.h"
#include "tools/explain_network.h"

#include <inttypes.h>
#include <string.h>

enum { PRINTED_RANKS = 64 };

/* Messages of one statement and transport, summed over the ranks that were looked at. */
typedef struct message_path {
    int statement;
    peal_transport_kind transport;
    const char *name;
    int line;
    int64_t messages, bytes, direct, staged, credits;
} message_path;

enum { MAX_PATHS = 256 };

typedef struct message_paths {
    message_path item[MAX_PATHS];
    int count;
    int ranks; /* looked at */
} message_paths;

static message_path *path_of(message_paths *paths, const peal_channel *channel)
{
    for (int i = 0; i < paths->count; i++)
        if (paths->item[i].statement == channel->statement &&
            paths->item[i].transport == channel->transport)
            return &paths->item[i];
    if (paths->count == MAX_PATHS)
        return NULL;
    message_path *path = &paths->item[paths->count++];
    *path = (message_path){.statement = channel->statement,
                           .transport = channel->transport,
                           .name = channel->edge,
                           .line = channel->source.line};
    return path;
}

static void add_channels(message_paths *paths, const peal_schedule *schedule)
{
    for (int i = 0; i < schedule->channel_count; i++) {
        const peal_channel *channel = &schedule->channel[i];
        message_path *path = channel->outgoing ? path_of(paths, channel) : NULL;
        if (!path)
            continue;
        path->messages++;
        path->bytes += channel->message_bytes;
        path->staged += channel->staged_count;
        path->direct += channel->piece_count - channel->staged_count;
        path->credits += channel->credit_offset >= 0;
    }
}

/* An edge is "exchange an@14 [0,-1] 1->0" or "setup done 1->0": the part before line and ranks. A
 * statement's name may have an @ of its own. */
static int name_length(const message_path *path)
{
    const char *edge = path->name, *end = NULL;
    char suffix[24];
    int length = snprintf(suffix, sizeof(suffix), "@%d", path->line);
    for (const char *at = edge; path->line > 0 && (at = strstr(at, suffix)); at++)
        if (at[length] == ' ' || !at[length])
            end = at;
    if (!end)
        end = strrchr(edge, ' ');
    return end ? (int)(end - edge) : (int)strlen(edge);
}

/* How wide "exchange an, line 14" is. */
static int name_width(const message_path *path)
{
    return name_length(path) + (path->line > 0 ? snprintf(NULL, 0, ", line %d", path->line) : 0);
}

/* Where a mode is refused, what else binds it does not matter. */
static void print_mode(const mode_line *line, peal_mode mode)
{
    printf("%-9s %-8s", peal_mode_name(mode), line->bounded ? "bounded" : line->can ? "yes" : "no");
    if (!line->count)
        printf(" %s%s\n", line->refusal ? line->refusal : "", line->refusal ? " [E355]" : "");
    for (int i = 0; i < line->count; i++) {
        const peal_reason *reason = &line->reason[i];
        if (i > 0 && line->reason[0].refuses && !reason->refuses)
            break;
        printf("%*s %s [%s]\n", i ? 18 : 0, "", reason->text, peal_code_number(reason->code));
        if (reason->change)
            printf("%*s     %s\n", 18, "", reason->change);
    }
}

/* What a backend says of a mode beside. */
static void print_note(const mode_line *line, peal_mode mode)
{
    const peal_rehearsal *found = &line->rehearsal;

    if (!line->can || !found->note[0])
        return;
    printf("%-9s %s", peal_mode_name(mode), found->note);
    if (found->saved > 0)
        printf("; by prediction they save %.0f %% of a step", 100 * found->saved);
    putchar('\n');
}

static void print_modes(const peal_machine *machine, const mode_line line[PEAL_MODE_COUNT],
                        const mode_predictions *predictions)
{
    int unknown = machine->ranks;

    puts("mode      can run  why not, or with what bound");
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
        print_mode(&line[mode], (peal_mode)mode);
        if (line[mode].can && line[mode].rehearsal.first_unknown < unknown)
            unknown = line[mode].rehearsal.first_unknown;
    }
    if (predictions->fastest != PEAL_MODE_COUNT)
        printf(
            "auto      yes      takes %s by these times; what `peal tune` has found goes before\n",
            peal_mode_name(predictions->fastest));
    else
        puts(
            "auto      yes      takes what `peal tune` has found, or what is predicted: --machine");
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++)
        print_note(&line[mode], (peal_mode)mode);
    if (unknown < machine->ranks)
        printf("Of graph and fused only ranks 0 to %d were tried out.\n", unknown - 1);
    puts("Peers and addresses are known before the run. A start looks at what memory is in reach"
         "\n(E388) and, for graph and fused, whether the device at hand has room (E664).");
}

static void print_paths(const message_paths *paths, int ranks)
{
    if (!paths->count) {
        puts("\nNo messages between or within ranks.");
        return;
    }
    printf("\nMessages of one pass%s\n", paths->ranks < ranks ? " (of the first ranks)" : "");
    int width = 28;
    for (int i = 0; i < paths->count; i++) {
        int length = name_width(&paths->item[i]);
        width = length > width ? length : width;
    }
    printf("%-*s %-6s %9s %12s %8s %8s %8s\n", width, "statement", "path", "messages", "bytes",
           "direct", "staged", "credits");
    for (int i = 0; i < paths->count; i++) {
        const message_path *p = &paths->item[i];
        int used = printf("%.*s", name_length(p), p->name);
        used += p->line > 0 ? printf(", line %d", p->line) : 0;
        printf("%*s %-6s %9" PRId64 " %12" PRId64 " %8" PRId64 " %8" PRId64 " %8" PRId64 "\n",
               width - used, "", peal_transport_name(p->transport), p->messages, p->bytes,
               p->direct, p->staged, p->credits);
    }
    puts("direct: pieces stored straight into the receiver's array; staged: packed and unpacked;\n"
         "credits: messages whose sender waits until the previous one was consumed.");
}

static json_t *json_of_mode(const mode_line *line, peal_mode mode)
{
    json_t *item = json_object(), *reasons = json_array();
    json_object_set_new(item, "mode", json_string(peal_mode_name(mode)));
    json_object_set_new(item, "applicable", json_boolean(line->can));
    json_object_set_new(item, "bounded", json_boolean(line->bounded));
    if (!line->can) {
        json_object_set_new(item, "reason",
                            json_string(line->refusal ? line->refusal : line->reason[0].text));
        json_object_set_new(item, "code",
                            json_string(line->refusal ? peal_code_number(PEAL_E_MODE_CANNOT_RUN)
                                                      : peal_code_number(line->reason[0].code)));
    } else if (line->bounded)
        json_object_set_new(item, "cost", json_string(line->reason[0].text));
    for (int i = 0; i < line->count; i++) {
        const peal_reason *reason = &line->reason[i];
        json_t *one = json_pack("{s:s,s:b,s:s}", "code", peal_code_number(reason->code), "refuses",
                                (int)reason->refuses, "text", reason->text);
        if (reason->source.line > 0)
            json_object_set_new(one, "line", json_integer(reason->source.line));
        if (reason->change)
            json_object_set_new(one, "change", json_string(reason->change));
        json_array_append_new(reasons, one);
    }
    json_object_set_new(item, "reasons", reasons);
    if (line->can)
        json_object_set_new(item, "ranks_tried", json_integer(line->rehearsal.first_unknown));
    if (line->can && line->rehearsal.note[0])
        json_object_set_new(item, "note", json_string(line->rehearsal.note));
    if (line->can && line->rehearsal.saved > 0)
        json_object_set_new(item, "saved", json_real(line->rehearsal.saved));
    return item;
}

static bool crosses_hosts(const message_paths *paths)
{
    bool any = false;
    for (int i = 0; i < paths->count; i++)
        any |= peal_transport_is_network(paths->item[i].transport);
    return any;
}

static void print_json(const peal_graph_data *graph, const peal_machine *machine,
                       const int dims[PEAL_RANK_AXES], const mode_line line[PEAL_MODE_COUNT],
                       peal_mode automatic, const message_paths *paths,
                       const mode_predictions *predictions)
{
    json_t *object = json_begin("peal.explain/1"), *modes = json_array(), *list = json_array();
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++)
        json_array_append_new(modes, json_of_mode(&line[mode], (peal_mode)mode));
    for (int i = 0; i < paths->count; i++) {
        const message_path *p = &paths->item[i];
        json_array_append_new(list,
                              json_pack("{s:s%,s:i,s:s,s:I,s:I,s:I,s:I,s:I}", "statement", p->name,
                                        (size_t)name_length(p), "line", p->line, "path",
                                        peal_transport_name(p->transport), "messages",
                                        (json_int_t)p->messages, "bytes", (json_int_t)p->bytes,
                                        "direct", (json_int_t)p->direct, "staged",
                                        (json_int_t)p->staged, "credits", (json_int_t)p->credits));
    }
    json_object_set_new(object, "name", json_string(graph->name));
    json_object_set_new(object, "ranks", json_integer(machine->ranks));
    json_object_set_new(object, "hosts", json_integer(peal_machine_hosts(machine)));
    json_object_set_new(object, "dims", json_pack("[i,i,i]", dims[0], dims[1], dims[2]));
    json_object_set_new(object, "modes", modes);
    json_object_set_new(object, "auto", json_string(peal_mode_name(automatic)));
    json_object_set_new(object, "paths", list);
    if (crosses_hosts(paths))
        network_engines_add_json(machine, object);
    predictions_add_json(predictions, object);
    json_print(object);
}

/* Checks the spec, and finds the paths of its messages, whose names stay the compilation's. */
static peal_status find_paths(peal_compilation *compilation, const peal_machine *machine,
                              message_paths *paths)
{
    peal_status status = peal_compilation_check(compilation);
    paths->ranks = machine->ranks < PRINTED_RANKS ? machine->ranks : PRINTED_RANKS;
    for (int rank = 0; rank < paths->ranks && status == PEAL_STATUS_OK; rank++) {
        const peal_schedule *schedule;
        status = peal_compilation_schedule(compilation, rank, &schedule);
        if (status == PEAL_STATUS_OK)
            add_channels(paths, schedule);
    }
    return status;
}

static peal_status explain(const peal_options *options, const peal_backend_ops *backend,
                           const peal_graph_data *graph, const peal_machine *machine,
                           const peal_machine_times *times, peal_compilation *compilation,
                           peal_diagnostics *diagnostics)
{
    message_paths paths = {.count = 0};
    mode_line line[PEAL_MODE_COUNT];
    mode_predictions predictions;
    int dims[PEAL_RANK_AXES];
    peal_status status = find_paths(compilation, machine, &paths);
    if (!status)
        status = mode_lines_find(options, backend, graph, machine, diagnostics, line);
    if (!status)
        status =
            predict_modes(options, backend, graph, machine, times, line, diagnostics, &predictions);
    if (status)
        return status;
    peal_compilation_dims(compilation, dims);
    peal_mode automatic = predictions.fastest != PEAL_MODE_COUNT
                              ? predictions.fastest
                              : mode_lines_automatic(backend, line);
    if (options->format == FORMAT_JSON) {
        print_json(graph, machine, dims, line, automatic, &paths, &predictions);
        return PEAL_STATUS_OK;
    }
    printf("%s on %d rank%s (%d x %d x %d) in %d process%s", graph->name, machine->ranks,
           machine->ranks == 1 ? "" : "s", dims[0], dims[1], dims[2], machine->processes,
           machine->processes == 1 ? "" : "es");
    if (machine->node)
        printf(" on %d hosts", peal_machine_hosts(machine));
    puts("\n");
    print_modes(machine, line, &predictions);
    print_paths(&paths, machine->ranks);
    if (crosses_hosts(&paths))
        network_engines_print(machine);
    predictions_print(&predictions);
    return PEAL_STATUS_OK;
}

peal_status explain_spec(const peal_options *given, peal_diagnostics *diagnostics)
{
    peal_options options = *given;
    peal_spec spec = {0};
    peal_machine machine;
    peal_machine_times times;
    peal_compilation *compilation = NULL;
    peal_status status = machine_and_times_of(&options, diagnostics, &machine, &times);
    if (status)
        return status;
    if (times.given && times.accelerator && !options.backend) {
        options.backend = "cuda"; /* that is whose file it is */
        status = machine_of(&options, diagnostics, &machine);
    }
    const peal_backend_ops *backend = backend_described(&options, diagnostics);
    if (!backend)
        return PEAL_STATUS_ENVIRONMENT;
    if (!status)
        status = spec_open(&options, diagnostics, &spec);
    if (!status)
        status = peal_places_check(spec.data, machine.ranks, options.allow_outside, diagnostics);
    if (!status)
        status = peal_compilation_create(spec.data, &machine, mode_automatic(backend, spec.data),
                                         diagnostics, &compilation);
    if (!status)
        status = explain(&options, backend, spec.data, &machine, &times, compilation, diagnostics);
    peal_compilation_destroy(compilation);
    spec_close(&spec);
    return status;
}
