/* `peal explain SPEC`: the applicability table (which modes can run it, and why not), the paths
 * that messages take, and what is predicted of each mode. */
#include "tools/explain_modes.h"

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

/* An edge is "exchange an@14 [0,-1] 1->0" or "setup done 1->0": the part before line and ranks. */
static int name_length(const char *edge)
{
    const char *end = strchr(edge, '@');
    if (!end)
        end = strrchr(edge, ' ');
    return end ? (int)(end - edge) : (int)strlen(edge);
}

/* The host backend has nothing to drain. */
static const char *drains(const peal_backend_ops *backend, const peal_graph_data *graph,
                          peal_mode mode)
{
    return backend == &peal_backend_host ? NULL : peal_graph_drains(graph, mode);
}

static void print_modes(const peal_backend_ops *backend, const peal_graph_data *graph,
                        const mode_predictions *predictions)
{
    puts("mode      can run  why not, or what it costs");
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
        const char *reason = mode_refusal(backend, graph, (peal_mode)mode);
        const char *cost = drains(backend, graph, (peal_mode)mode);
        printf("%-9s %-8s %s%s\n", peal_mode_name((peal_mode)mode), reason ? "no" : "yes",
               reason ? reason
               : cost ? cost
                      : "",
               reason ? " [E355]" : "");
    }
    if (predictions->fastest != PEAL_MODE_COUNT)
        printf(
            "auto      yes      takes %s by these times; what `peal tune` has found goes before\n",
            peal_mode_name(predictions->fastest));
    else
        puts("auto      yes      takes what `peal tune` has found, or predicts (--machine "
             "FILE.yaml: "
             "how)");
}

static void print_paths(const message_paths *paths, int ranks)
{
    if (!paths->count) {
        puts("\nNo messages between or within ranks.");
        return;
    }
    printf("\nMessages of one pass%s\n", paths->ranks < ranks ? " (of the first ranks)" : "");
    printf("%-28s %-6s %9s %12s %8s %8s %8s\n", "statement", "path", "messages", "bytes", "direct",
           "staged", "credits");
    for (int i = 0; i < paths->count; i++) {
        const message_path *p = &paths->item[i];
        char name[29];
        snprintf(name, sizeof(name), p->line > 0 ? "%.*s, line %d" : "%.*s", name_length(p->name),
                 p->name, p->line);
        printf("%-28s %-6s %9" PRId64 " %12" PRId64 " %8" PRId64 " %8" PRId64 " %8" PRId64 "\n",
               name, peal_transport_name(p->transport), p->messages, p->bytes, p->direct, p->staged,
               p->credits);
    }
    puts("direct: pieces stored straight into the receiver's array; staged: packed and unpacked;\n"
         "credits: messages whose sender waits until the previous one was consumed.");
}

static void print_json(const peal_backend_ops *backend, const peal_graph_data *graph,
                       const peal_machine *machine, const int dims[PEAL_RANK_AXES],
                       const message_paths *paths, const mode_predictions *predictions)
{
    json_t *object = json_begin("peal.explain/1"), *modes = json_array(), *list = json_array();
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
        const char *reason = mode_refusal(backend, graph, (peal_mode)mode);
        json_t *item = json_object();
        json_object_set_new(item, "mode", json_string(peal_mode_name((peal_mode)mode)));
        json_object_set_new(item, "applicable", json_boolean(!reason));
        if (reason) {
            json_object_set_new(item, "reason", json_string(reason));
            json_object_set_new(item, "code", json_string("E355"));
        }
        const char *cost = drains(backend, graph, (peal_mode)mode);
        if (cost && !reason)
            json_object_set_new(item, "cost", json_string(cost));
        json_array_append_new(modes, item);
    }
    for (int i = 0; i < paths->count; i++) {
        const message_path *p = &paths->item[i];
        json_array_append_new(list,
                              json_pack("{s:s%,s:i,s:s,s:I,s:I,s:I,s:I,s:I}", "statement", p->name,
                                        (size_t)name_length(p->name), "line", p->line, "path",
                                        peal_transport_name(p->transport), "messages",
                                        (json_int_t)p->messages, "bytes", (json_int_t)p->bytes,
                                        "direct", (json_int_t)p->direct, "staged",
                                        (json_int_t)p->staged, "credits", (json_int_t)p->credits));
    }
    json_object_set_new(object, "name", json_string(graph->name));
    json_object_set_new(object, "ranks", json_integer(machine->ranks));
    json_object_set_new(object, "dims", json_pack("[i,i,i]", dims[0], dims[1], dims[2]));
    json_object_set_new(object, "modes", modes);
    peal_mode automatic = predictions->fastest != PEAL_MODE_COUNT ? predictions->fastest
                                                                  : mode_automatic(backend, graph);
    json_object_set_new(object, "auto", json_string(peal_mode_name(automatic)));
    json_object_set_new(object, "paths", list);
    predictions_add_json(predictions, object);
    json_print(object);
}

static peal_status explain(const peal_options *options, const peal_backend_ops *backend,
                           const peal_graph_data *graph, const peal_machine *machine,
                           const mode_predictions *predictions, message_paths *paths,
                           peal_diagnostics *diagnostics)
{
    peal_compilation *compilation = NULL;
    int dims[PEAL_RANK_AXES];
    peal_status status = peal_compilation_create(graph, machine, mode_automatic(backend, graph),
                                                 diagnostics, &compilation);
    if (status == PEAL_STATUS_OK)
        status = peal_compilation_check(compilation);
    paths->ranks = machine->ranks < PRINTED_RANKS ? machine->ranks : PRINTED_RANKS;
    for (int rank = 0; rank < paths->ranks && status == PEAL_STATUS_OK; rank++) {
        const peal_schedule *schedule;
        status = peal_compilation_schedule(compilation, rank, &schedule);
        if (status == PEAL_STATUS_OK)
            add_channels(paths, schedule);
    }
    if (status == PEAL_STATUS_OK) {
        peal_compilation_dims(compilation, dims);
        if (options->format == FORMAT_JSON) {
            print_json(backend, graph, machine, dims, paths, predictions);
        } else {
            printf("%s on %d rank%s (%d x %d x %d) in %d process%s\n\n", graph->name,
                   machine->ranks, machine->ranks == 1 ? "" : "s", dims[0], dims[1], dims[2],
                   machine->processes, machine->processes == 1 ? "" : "es");
            print_modes(backend, graph, predictions);
            print_paths(paths, machine->ranks);
            predictions_print(predictions);
        }
    }
    peal_compilation_destroy(compilation);
    return status;
}

peal_status explain_spec(const peal_options *given, peal_diagnostics *diagnostics)
{
    peal_options options = *given;
    peal_spec spec = {0};
    peal_machine machine;
    peal_machine_times times;
    message_paths paths = {.count = 0};
    mode_predictions predictions;
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
        status = predict_modes(&options, backend, spec.data, &machine, &times, diagnostics,
                               &predictions);
    if (!status)
        status = explain(&options, backend, spec.data, &machine, &predictions, &paths, diagnostics);
    spec_close(&spec);
    return status;
}
