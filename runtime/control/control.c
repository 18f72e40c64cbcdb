/* Opens and closes a process's end of the control plane. Of one process: no socket, no thread. */
#define _GNU_SOURCE
#include "runtime/control/internal.h"
#include "runtime/control/wire_tcp.h"

#include "peal_config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void init_lock(peal_control *control)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&control->lock, NULL);
    pthread_mutex_init(&control->asking, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&control->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void destroy(peal_control *control)
{
    peal_service_stop(control);
    for (int i = 0; i < control->link_count; i++) {
        if (control->link[i].data >= 0)
            close(control->link[i].data);
        if (control->link[i].watch >= 0)
            close(control->link[i].watch);
        if (control->link[i].pidfd >= 0)
            close(control->link[i].pidfd);
    }
    for (int i = 0; i < control->published_count; i++)
        close(control->published[i].descriptor);
    free(control->published);
    peal_streams_close(control);
    peal_desks_close(control);
    free(control->peer);
    free(control->host);
    if (control->listener >= 0)
        close(control->listener);
    if (control->far_listener >= 0)
        close(control->far_listener);
    if (control->wake >= 0)
        close(control->wake);
    if (control->aborted >= 0)
        close(control->aborted);
    pthread_cond_destroy(&control->changed);
    pthread_mutex_destroy(&control->lock);
    pthread_mutex_destroy(&control->asking);
    free(control);
}

/* For tests: PEAL_TEST_HOSTS=k has blocks of processes pretend to be on k hosts. The number of
 * this one's; -1: they do not. */
static int pretended_host(const peal_bootstrap_identity *id)
{
    const char *text = getenv("PEAL_TEST_HOSTS");
    int hosts = text ? atoi(text) : 0;
    return hosts < 2 ? -1 : (int)((int64_t)id->process * hosts / id->processes);
}

static bool fill_blob(peal_control *control)
{
    peal_control_blob *blob = &control->mine;
    blob->magic = PEAL_BLOB_MAGIC;
    blob->wire_version = PEAL_WIRE_VERSION;
    blob->process = control->identity.process;
    blob->processes = control->identity.processes;
    blob->pid = (uint32_t)getpid();
    snprintf(blob->version, sizeof(blob->version), "%s", PEAL_VERSION);
    if (!peal_host_identity(blob->host, sizeof(blob->host)))
        return false;
    char node[HOST_NAME_MAX + 1] = "?";
    gethostname(node, sizeof(node));
    node[HOST_NAME_MAX] = 0;
    snprintf(blob->node, sizeof(blob->node), "%.*s", PEAL_NODE_BYTES - 1,
             control->identity.node ? control->identity.node : node);
    int pretended = pretended_host(&control->identity);
    size_t length = strlen(blob->host);
    if (pretended >= 0)
        snprintf(blob->host + length, sizeof(blob->host) - length, "/%d", pretended);
    return true;
}

static bool is_among_hosts(const peal_control *control)
{
    const peal_bootstrap_identity *id = &control->identity;
    return pretended_host(id) >= 0 || id->local_processes < id->processes;
}

/* Hosts that are pretended meet on the loopback. A host without an address is told to whom it
 * concerns: see check_blob() of tree.c. */
static bool listen_to_hosts(peal_control *control, const peal_network_choice *choice)
{
    unsigned char port[2];
    peal_address *own = control->mine.endpoint.address;
    if (pretended_host(&control->identity) >= 0) {
        control->far_listener = peal_wire_listen_on_loopback(&own[0]);
        return control->far_listener >= 0;
    }
    int count = peal_wire_addresses(choice, own);
    bool chosen = choice && choice->interface;
    errno = ENODEV; /* it was there a moment ago */
    if (!chosen || count > 0)
        control->far_listener = peal_wire_listen_tcp(choice, chosen ? &own[0] : NULL, port);
    for (int i = 0; i < count; i++)
        memcpy(own[i].port, port, sizeof(port));
    return control->far_listener >= 0;
}

static peal_status refuse_interface(const peal_control *control, const char *interface)
{
    char there[200];
    return peal_report(control->diagnostics, PEAL_E_SEVERAL_HOSTS, (peal_source){0},
                       "name one of them, or a network such as 10.1.0.0/16",
                       "%s has no network interface '%s' that is up and leads to other hosts; "
                       "there are: %s",
                       control->mine.node, interface,
                       peal_wire_list_interfaces(there, sizeof(there)));
}

static peal_status refuse_ports(const peal_control *control, const peal_network_choice *choice)
{
    return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0},
                       "each process takes one: allow as many ports as there are processes on a "
                       "host, and some that other programs may have",
                       "the control plane cannot have a TCP port of %d-%d on %.*s: %s",
                       choice->first_port, choice->last_port, PEAL_NODE_BYTES - 1,
                       control->mine.node, strerror(errno));
}

static bool has_interface(const peal_control *control, const peal_network_choice *choice)
{
    peal_address found[PEAL_ADDRESSES];
    return !choice || !choice->interface || pretended_host(&control->identity) >= 0 ||
           peal_wire_addresses(choice, found) > 0;
}

/* Everything that this process needs before it talks to others. */
static peal_status open_sockets(peal_control *control, const peal_network_choice *choice)
{
    const char *what = "the name of this host";
    bool among_hosts = is_among_hosts(control);
    if (!fill_blob(control))
        goto fail;
    what = "random bytes";
    if (!peal_random_bytes(control->mine.endpoint.secret, PEAL_SECRET_BYTES))
        goto fail;
    what = "an abstract socket";
    control->listener = peal_wire_listen(control->mine.endpoint.name);
    if (control->listener < 0)
        goto fail;
    if (among_hosts && !has_interface(control, choice))
        return refuse_interface(control, choice->interface);
    what = "a TCP port";
    if (among_hosts && !listen_to_hosts(control, choice)) {
        if (choice && choice->first_port)
            return refuse_ports(control, choice);
        goto fail;
    }
    what = "an eventfd";
    control->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    control->aborted = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (control->wake < 0 || control->aborted < 0)
        goto fail;
    return peal_service_start(control);
fail:
    return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                       "the control plane cannot have %s: %s", what, strerror(errno));
}

/* Numbers the hosts as their first processes come. The service thread looks at it. */
static void number_hosts(peal_control *control, int *host)
{
    int processes = control->identity.processes, hosts = 0;
    for (int p = 0; p < processes; p++) {
        int like = 0; /* an earlier process of the same host */
        while (like < p &&
               strncmp(control->peer[like].host, control->peer[p].host, PEAL_HOST_BYTES) != 0)
            like++;
        host[p] = like < p ? host[like] : hosts++;
    }
    pthread_mutex_lock(&control->lock);
    control->host = hosts > 1 ? host : NULL;
    pthread_mutex_unlock(&control->lock);
    if (hosts == 1)
        free(host);
}

/* All processes, over the tree: this is also the proof that all are there. An edge between hosts
 * can be read on its way, so secrets stay behind where there are such: see peal_control_find(). */
static peal_status learn_peers(peal_control *control)
{
    size_t processes = (size_t)control->identity.processes;
    control->peer = calloc(processes, sizeof(*control->peer));
    int *host = calloc(processes, sizeof(*host));
    if (!control->peer || !host) {
        free(host);
        peal_control_abort(control, PEAL_STATUS_ENVIRONMENT, "out of memory for the processes");
        return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "out of memory for where %d processes are", control->identity.processes);
    }
    peal_control_blob told = control->mine;
    if (control->far_listener >= 0)
        memset(told.endpoint.secret, 0, sizeof(told.endpoint.secret));
    peal_status status = peal_control_allgather(control, &told, sizeof(told), control->peer);
    if (status == PEAL_STATUS_OK)
        number_hosts(control, host);
    else
        free(host);
    return status;
}

static peal_status ask_identity(peal_control *control, peal_bootstrap *bootstrap)
{
    peal_bootstrap_identity *id = &control->identity;
    peal_status status = bootstrap->ops->identity(bootstrap, id);
    if (status != PEAL_STATUS_OK)
        return peal_report(control->diagnostics, PEAL_E_BOOTSTRAP_FAILED, (peal_source){0}, NULL,
                           "the bootstrap cannot say which process this is: the application's "
                           "allgather has failed, or there is no memory");
    if (id->processes < 1 || id->process < 0 || id->process >= id->processes)
        return peal_report(control->diagnostics, PEAL_E_BOOTSTRAP_FAILED, (peal_source){0}, NULL,
                           "the bootstrap says process %d of %d", id->process, id->processes);
    if (bootstrap->ops->launcher)
        control->launcher = bootstrap->ops->launcher(bootstrap);
    return PEAL_STATUS_OK;
}

peal_status peal_control_open(peal_bootstrap *bootstrap, const peal_network_choice *choice,
                              _Atomic int *abort_word, int64_t deadline_ns,
                              peal_diagnostics *diagnostics, peal_control **out)
{
    peal_control *control = calloc(1, sizeof(*control));
    if (!control)
        return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "out of memory for the control plane");
    control->abort_word = abort_word;
    control->deadline_ns = deadline_ns;
    control->diagnostics = diagnostics;
    control->bootstrap = bootstrap;
    control->listener = control->far_listener = control->wake = control->aborted =
        control->launcher = -1;
    init_lock(control);
    peal_status status = ask_identity(control, bootstrap);
    if (status == PEAL_STATUS_OK && control->identity.processes > 1) {
        peal_tree_init(control);
        status = open_sockets(control, choice);
        if (status == PEAL_STATUS_OK)
            status = peal_tree_connect(control, bootstrap);
        if (status == PEAL_STATUS_OK)
            status = peal_tree_try(control);
        if (status == PEAL_STATUS_OK)
            status = learn_peers(control);
    }
    if (status != PEAL_STATUS_OK) {
        destroy(control);
        return status;
    }
    *out = control;
    return PEAL_STATUS_OK;
}

void peal_control_close(peal_control *control)
{
    if (!control)
        return;
    if (control->identity.processes > 1 && peal_control_barrier(control) == PEAL_STATUS_OK) {
        peal_notice notice;
        memset(&notice, 0, sizeof(notice));
        notice.kind = PEAL_NOTICE_LEAVE;
        notice.process = control->identity.process;
        pthread_mutex_lock(&control->lock);
        control->leaving = true;
        for (int i = 0; i < control->link_count; i++)
            if (control->link[i].watch >= 0)
                peal_wire_send_small(control->link[i].watch, &notice, sizeof(notice));
        pthread_mutex_unlock(&control->lock);
    }
    destroy(control);
}

/* No lock: in a forked copy whoever held it is not there. */
void peal_control_disown(peal_control *control)
{
    for (int i = 0; i < control->link_count; i++) {
        peal_link *link = &control->link[i];
        if (link->data >= 0)
            close(link->data);
        if (link->watch >= 0)
            close(link->watch);
        link->data = link->watch = -2;
    }
    for (int i = 0; i < control->stream_count; i++)
        close(control->stream[i].socket); /* the list may just be growing: it is not freed */
    control->stream_count = 0;
    for (int i = 0; i < control->line_count; i++)
        close(control->line[i].socket);
    control->line_count = 0;
    int *const owned[] = {&control->listener, &control->far_listener, &control->aborted};
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++) {
        if (*owned[i] >= 0)
            close(*owned[i]);
        *owned[i] = -1;
    }
}

const peal_bootstrap_identity *peal_control_identity(const peal_control *control)
{
    return &control->identity;
}

const char *peal_control_node(const peal_control *control, int process)
{
    return control->peer ? control->peer[process].node : control->mine.node;
}

const char *peal_control_name(const peal_control *control, int process,
                              char text[PEAL_PROCESS_TEXT])
{
    bool is_known = control->host && process >= 0 && process < control->identity.processes;
    snprintf(text, PEAL_PROCESS_TEXT, "process %d%s%.*s", process, is_known ? " on " : "",
             PEAL_NODE_BYTES - 1, is_known ? control->peer[process].node : "");
    return text;
}

const int *peal_control_hosts(const peal_control *control)
{
    return control->host;
}

void peal_control_meanwhile(peal_control *control, void (*turn)(void *user), void *user)
{
    control->turn = turn;
    control->turn_user = user;
}
