/* The launcher's end of the lines to its processes: keeps what they put, answers what they ask,
 * notes who has left as it should.
 *
 * A line is a pair of connected sockets, made for one process and inherited by it: there is no name
 * and no port that anybody else could connect to. */
#define _GNU_SOURCE
#include "runtime/launch/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

enum { MOST_PUTS = 4096 /* of a process: a session has a few */ };

typedef struct put {
    int round;
    uint32_t bytes;
    unsigned char *data;
} put;

typedef struct line {
    int ours, theirs; /* sockets; -1: closed */
    put *put;
    int put_count;
    bool wants; /* an answer is owed: the blob of `process` of `round` */
    int process, round;
    bool joined, ended;
    bool has_come; /* it has joined once */
} line;

struct peal_launch_hub {
    int processes;
    line *line;
    bool is_exhausted, aborted;
    int abort_process, abort_code;
    char abort_message[PEAL_LAUNCH_MESSAGE];
    unsigned char data[PEAL_CHANNEL_BLOB_LIMIT];
};

peal_status peal_launch_hub_create(int processes, peal_diagnostics *diagnostics,
                                   peal_launch_hub **out)
{
    peal_launch_hub *hub = calloc(1, sizeof(*hub));
    line *lines = calloc((size_t)processes, sizeof(*lines));
    if (!hub || !lines) {
        free(hub);
        free(lines);
        return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "out of memory for the launcher of %d processes", processes);
    }
    for (int p = 0; p < processes; p++)
        lines[p].ours = lines[p].theirs = -1;
    hub->processes = processes;
    hub->line = lines;
    *out = hub;
    return PEAL_STATUS_OK;
}

static void close_socket(int *socket)
{
    if (*socket >= 0)
        close(*socket);
    *socket = -1;
}

void peal_launch_hub_destroy(peal_launch_hub *hub)
{
    for (int p = 0; hub && p < hub->processes; p++) {
        close_socket(&hub->line[p].ours);
        close_socket(&hub->line[p].theirs);
        for (int i = 0; i < hub->line[p].put_count; i++)
            free(hub->line[p].put[i].data);
        free(hub->line[p].put);
    }
    if (hub)
        free(hub->line);
    free(hub);
}

int peal_launch_hub_open(peal_launch_hub *hub, int process)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return -1;
    hub->line[process].ours = pair[0];
    hub->line[process].theirs = pair[1];
    return pair[1];
}

void peal_launch_hub_started(peal_launch_hub *hub, int process)
{
    close_socket(&hub->line[process].theirs);
}

int peal_launch_hub_descriptor(const peal_launch_hub *hub, int process)
{
    return hub->line[process].ours;
}

/* What a launcher has put there would be taken for ours, by libraries and by processes. */
static bool is_of_launcher(const char *variable)
{
    return !strncmp(variable, "PMIX_", 5) || !strncmp(variable, "PMI_", 4) ||
           !strncmp(variable, PEAL_CHANNEL_SOCKET "=", sizeof(PEAL_CHANNEL_SOCKET)) ||
           !strncmp(variable, PEAL_CHANNEL_PROCESS "=", sizeof(PEAL_CHANNEL_PROCESS)) ||
           !strncmp(variable, PEAL_CHANNEL_PLACE "=", sizeof(PEAL_CHANNEL_PLACE)) ||
           !strncmp(variable, PEAL_CHANNEL_NODE "=", sizeof(PEAL_CHANNEL_NODE));
}

void peal_launch_environment_free(char **environment)
{
    for (char **at = environment; at && *at; at++)
        free(*at);
    free(environment);
}

char **peal_launch_hub_environment(const peal_launch_hub *hub, int process,
                                   const peal_launch_place *place)
{
    size_t count = 0, kept = 0;
    bool good = true;
    while (environ[count])
        count++;
    char **environment = calloc(count + 5, sizeof(*environment));
    if (!environment)
        return NULL;
    for (size_t i = 0; good && i < count; i++)
        if (!is_of_launcher(environ[i]))
            good = (environment[kept++] = strdup(environ[i])) != NULL;
    good = good && asprintf(&environment[kept++], PEAL_CHANNEL_SOCKET "=%d",
                            hub->line[process].theirs) >= 0;
    good = good && asprintf(&environment[kept++], PEAL_CHANNEL_PROCESS "=%d/%d", process,
                            hub->processes) >= 0;
    good = good && asprintf(&environment[kept++], PEAL_CHANNEL_PLACE "=%d/%d", place->local_process,
                            place->local_processes) >= 0;
    if (place->host && strcmp(place->host->name, "localhost") != 0)
        good =
            good && asprintf(&environment[kept++], PEAL_CHANNEL_NODE "=%s", place->host->name) >= 0;
    if (good)
        return environment;
    environment[kept ? kept - 1 : 0] = NULL;
    peal_launch_environment_free(environment);
    return NULL;
}

/* ---- packets ---- */

static const put *find_put(const line *from, int round)
{
    for (int i = 0; i < from->put_count; i++)
        if (from->put[i].round == round)
            return &from->put[i];
    return NULL;
}

static void answer(peal_launch_hub *hub, int process)
{
    line *to = &hub->line[process];
    if (!to->wants || to->ours < 0)
        return;
    const line *from = &hub->line[to->process];
    const put *found = find_put(from, to->round);
    peal_packet packet = {PEAL_CHANNEL_MAGIC, PEAL_PACKET_BLOB, to->process, to->round, 0, 0};
    if (found)
        packet.bytes = found->bytes;
    else if (from->ended)
        packet.kind = PEAL_PACKET_LOST;
    else
        return;
    /* A queue that is full belongs to a process that asks without reading: it will ask again. */
    peal_channel_send(to->ours, &packet, found ? found->data : NULL);
    to->wants = false;
}

static void answer_all(peal_launch_hub *hub)
{
    for (int p = 0; p < hub->processes; p++)
        answer(hub, p);
}

static void keep(peal_launch_hub *hub, int process, const peal_packet *packet)
{
    line *from = &hub->line[process];
    put *larger = from->put_count < MOST_PUTS
                      ? realloc(from->put, ((size_t)from->put_count + 1) * sizeof(*larger))
                      : NULL;
    unsigned char *data = malloc(packet->bytes ? packet->bytes : 1);
    if (larger)
        from->put = larger;
    if (!larger || !data) { /* who waits for it would wait until its deadline */
        free(data);
        hub->is_exhausted = true;
        return;
    }
    memcpy(data, hub->data, packet->bytes);
    from->put[from->put_count++] = (put){packet->round, packet->bytes, data};
    answer_all(hub);
}

static void note_abort(peal_launch_hub *hub, int process, const peal_packet *packet)
{
    if (hub->aborted)
        return;
    hub->aborted = true;
    hub->abort_process = process;
    hub->abort_code = packet->code;
    snprintf(hub->abort_message, sizeof(hub->abort_message), "%.*s", (int)packet->bytes,
             (const char *)hub->data);
}

static void take(peal_launch_hub *hub, int process, const peal_packet *packet)
{
    line *from = &hub->line[process];
    switch (packet->kind) {
    case PEAL_PACKET_JOIN:
        from->joined = from->has_come = true;
        break;
    case PEAL_PACKET_LEAVE:
        from->joined = false;
        break;
    case PEAL_PACKET_PUT:
        keep(hub, process, packet);
        break;
    case PEAL_PACKET_GET:
        if (packet->process < 0 || packet->process >= hub->processes)
            break;
        from->wants = true;
        from->process = packet->process;
        from->round = packet->round;
        answer(hub, process);
        break;
    case PEAL_PACKET_ABORT:
        note_abort(hub, process, packet);
        break;
    default:
        break;
    }
}

void peal_launch_hub_serve(peal_launch_hub *hub, int process)
{
    peal_packet packet;
    line *from = &hub->line[process];
    int got = 0;
    while (from->ours >= 0 &&
           (got = peal_channel_receive(from->ours, &packet, hub->data, sizeof(hub->data))) > 0)
        take(hub, process, &packet);
    if (got < 0)
        close_socket(&from->ours);
}

bool peal_launch_hub_ended(peal_launch_hub *hub, int process)
{
    peal_launch_hub_serve(hub, process); /* its last words */
    close_socket(&hub->line[process].ours);
    hub->line[process].ended = true;
    answer_all(hub);
    return !hub->line[process].joined;
}

bool peal_launch_hub_has_come(const peal_launch_hub *hub, int process)
{
    return hub->line[process].has_come;
}

bool peal_launch_hub_is_exhausted(const peal_launch_hub *hub)
{
    return hub->is_exhausted;
}

bool peal_launch_hub_aborted(const peal_launch_hub *hub, int *process, int *code,
                             const char **message)
{
    *process = hub->abort_process;
    *code = hub->abort_code;
    *message = hub->abort_message;
    return hub->aborted;
}
