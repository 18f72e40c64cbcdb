/* See the header. */
#define _POSIX_C_SOURCE 200809L
#include "tools/hosts.h"

#include "runtime/control/control.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PROCESSES = 4096 };

static const peal_source nowhere;

static bool makes_sense(const peal_options *options)
{
    const peal_network_choice choice = {options->network_interface, options->network_ports[0],
                                        options->network_ports[1]};
    return peal_network_choice_makes_sense(&choice);
}

bool hosts_parse_interface(const char *text, peal_options *options)
{
    options->network_interface = text;
    return makes_sense(options);
}

bool hosts_parse_ports(const char *text, peal_options *options)
{
    char first[8];
    size_t length = strcspn(text, "-");
    const char *last = text[length] ? text + length + 1 : text;
    int64_t port[2];
    snprintf(first, sizeof(first), "%.*s", (int)length, text);
    if (length >= sizeof(first) || !parse_count(first, 1, 65535, &port[0]) ||
        !parse_count(last, 1, 65535, &port[1]))
        return false;
    options->network_ports[0] = (int)port[0];
    options->network_ports[1] = (int)port[1];
    return makes_sense(options);
}

static int count_of(const char *text, char separator)
{
    int count = 1;
    for (; *text; text++)
        count += *text == separator;
    return count;
}

/* NAME or NAME:PROCESSES, which ends the name. */
static bool parse_host(char *word, peal_launch_host *out)
{
    int64_t processes = 1;
    char *colon = strrchr(word, ':');
    if (colon && !parse_count(colon + 1, 1, MOST_PROCESSES, &processes))
        return false;
    if (colon)
        *colon = 0;
    *out = (peal_launch_host){word, (int)processes};
    return *word && *word != '-'; /* a name is no option of the agent's */
}

static bool parse_hosts(job_hosts *out)
{
    char *rest = NULL;
    for (char *word = strtok_r(out->text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (!parse_host(word, &out->host[out->count]))
            return false;
        out->processes += out->host[out->count++].processes;
    }
    return out->count > 0 && out->processes <= MOST_PROCESSES;
}

static void split_agent(job_hosts *out)
{
    char *rest = NULL;
    int count = 0;
    for (char *word = strtok_r(out->run, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        out->agent[count++] = word;
}

static bool are_all_here(const job_hosts *hosts)
{
    for (int h = 0; h < hosts->count; h++)
        if (strcmp(hosts->host[h].name, "localhost") != 0)
            return false;
    return true;
}

static peal_status check_counts(const peal_options *options, const job_hosts *hosts,
                                peal_diagnostics *diagnostics)
{
    if (options->processes && options->processes != hosts->processes)
        return peal_report(diagnostics, PEAL_E_CONFLICTING_OPTIONS, nowhere,
                           "leave one of them out", "--processes %d, but --hosts %s has %d",
                           options->processes, options->hosts, hosts->processes);
    if (options->ranks && options->ranks < hosts->processes)
        return peal_report(diagnostics, PEAL_E_CONFLICTING_OPTIONS, nowhere,
                           "give each process a rank at least",
                           "-n %d, but --hosts %s has %d "
                           "processes",
                           options->ranks, options->hosts, hosts->processes);
    return PEAL_STATUS_OK;
}

static peal_status read_hosts(const peal_options *options, peal_diagnostics *diagnostics,
                              job_hosts *out)
{
    const char *agent = options->agent ? options->agent : "";
    out->text = strdup(options->hosts);
    out->run = strdup(agent);
    out->host = calloc((size_t)count_of(options->hosts, ','), sizeof(*out->host));
    out->agent = calloc((size_t)count_of(agent, ' ') + 1, sizeof(*out->agent));
    if (!out->text || !out->run || !out->host || !out->agent)
        return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, nowhere, NULL,
                           "out of memory for the hosts of a job");
    if (!parse_hosts(out))
        return peal_report(diagnostics, PEAL_E_INVALID_OPTION_VALUE, nowhere,
                           "names of hosts and numbers of processes, at most 4096 in all",
                           "--hosts needs a list such as a:2,b:2, not '%s'", options->hosts);
    split_agent(out);
    return check_counts(options, out, diagnostics);
}

peal_status hosts_open(const peal_options *options, peal_diagnostics *diagnostics, job_hosts *out)
{
    *out = (job_hosts){.count = 0};
    if (!options->hosts && options->agent)
        return peal_report(diagnostics, PEAL_E_WRONG_ARGUMENTS, nowhere, NULL,
                           "--agent '%s' needs --hosts", options->agent);
    if (!options->hosts)
        return PEAL_STATUS_OK;
    peal_status status = read_hosts(options, diagnostics, out);
    if (!status && !out->agent[0] && !are_all_here(out))
        return peal_report(diagnostics, PEAL_E_WRONG_ARGUMENTS, nowhere,
                           "say how a command is run there, such as --agent 'ip netns exec'; or "
                           "let mpirun start peal",
                           "--hosts %s needs --agent", options->hosts);
    return status;
}

static bool is_named_before(const job_hosts *hosts, int h, int *first)
{
    for (*first = 0; *first < h; ++*first)
        if (!strcmp(hosts->host[*first].name, hosts->host[h].name))
            return true;
    return false;
}

/* Hosts are numbered as they come; one that is named twice is one. */
static int number_of(const job_hosts *hosts, int h)
{
    int number = 0, first, other;
    is_named_before(hosts, h, &first);
    for (int before = 0; before < first; before++)
        number += !is_named_before(hosts, before, &other);
    return number;
}

peal_status hosts_described(const peal_options *options, peal_diagnostics *diagnostics,
                            int *processes, const int **node)
{
    static int number[MOST_PROCESSES];
    job_hosts hosts = {.count = 0};
    *node = NULL;
    *processes = 0;
    if (!options->hosts)
        return PEAL_STATUS_OK;
    peal_status status = read_hosts(options, diagnostics, &hosts);
    for (int h = 0; !status && h < hosts.count; h++)
        for (int p = 0; p < hosts.host[h].processes; p++) {
            number[*processes] = number_of(&hosts, h);
            *node = number[(*processes)++] > 0 ? number : *node;
        }
    hosts_close(&hosts);
    return status;
}

void hosts_close(job_hosts *hosts)
{
    free(hosts->host);
    free(hosts->agent);
    free(hosts->text);
    free(hosts->run);
}
