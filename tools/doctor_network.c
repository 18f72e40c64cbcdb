/* `peal doctor --network`: by what other hosts can be reached; and under a launcher, what messages
 * between each two hosts of the job take. */
#define _GNU_SOURCE
#include "runtime/measure/hosts.h"
#include "runtime/network/network.h"
#include "tools/doctor.h"
#include "tools/output.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TEXT = 240, PATH = 600 };

/* A line of a file of the system's; false: there is none. */
static bool read_line(const char *path, char *text, int bytes)
{
    FILE *file = fopen(path, "re");
    bool is_read = file && fgets(text, bytes, file);
    if (file)
        fclose(file);
    if (is_read)
        text[strcspn(text, "\n")] = 0;
    return is_read;
}

/* ---- interfaces ---- */

static int mtu_of(const char *name)
{
    struct ifreq request = {0};
    int socket_of = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    int mtu = socket_of >= 0 && !ioctl(socket_of, SIOCGIFMTU, &request) ? request.ifr_mtu : 0;
    if (socket_of >= 0)
        close(socket_of);
    return mtu;
}

static void add_addresses(const struct ifaddrs *list, const char *name, char text[TEXT])
{
    for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
        char address[INET6_ADDRSTRLEN] = "";
        size_t used = strlen(text);
        if (strcmp(at->ifa_name, name) || !at->ifa_addr)
            continue;
        int family = at->ifa_addr->sa_family;
        const void *bytes =
            family == AF_INET
                ? (const void *)&((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr
                : (const void *)&((const struct sockaddr_in6 *)(const void *)at->ifa_addr)
                      ->sin6_addr;
        if ((family == AF_INET || family == AF_INET6) &&
            inet_ntop(family, bytes, address, sizeof(address)))
            snprintf(text + used, TEXT - used, "%s%s", used ? ", " : "", address);
    }
}

static void add_interface(const struct ifaddrs *list, const struct ifaddrs *at, peal_findings *out)
{
    char text[TEXT] = "", title[40], path[PATH], speed[32];
    bool is_up = at->ifa_flags & IFF_UP && at->ifa_flags & IFF_RUNNING;
    snprintf(title, sizeof(title), "if %s", at->ifa_name);
    add_addresses(list, at->ifa_name, text);
    if (!is_up || !*text) {
        findings_add(out, title, FINDING_OFF, "%s", is_up ? "it has no address" : "it is down");
        return;
    }
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, sizeof(text) - used, "; MTU %d", mtu_of(at->ifa_name));
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", at->ifa_name);
    if (used < sizeof(text) && read_line(path, speed, sizeof(speed)) && atoi(speed) > 0)
        snprintf(text + used, sizeof(text) - used, ", %g Gb/s", atoi(speed) * 1e-3);
    findings_add(out, title, FINDING_ON, "%s", text);
}

static void look_at_interfaces(peal_findings *out)
{
    struct ifaddrs *list = NULL;
    int before = out->count;
    if (getifaddrs(&list))
        return;
    for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
        bool is_first = !(at->ifa_flags & IFF_LOOPBACK);
        for (const struct ifaddrs *p = list; p != at && is_first; p = p->ifa_next)
            is_first = strcmp(p->ifa_name, at->ifa_name) != 0;
        if (is_first)
            add_interface(list, at, out);
    }
    freeifaddrs(list);
    if (out->count == before)
        findings_add(out, "interfaces", FINDING_OFF,
                     "only the loopback: no other host reaches this one (E313)");
}

/* ---- adapters ---- */

static void add_port(const char *adapter, const char *port, peal_findings *out)
{
    char path[PATH], title[40], state[64] = "?", layer[64] = "?", rate[64] = "?";
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/state", adapter, port);
    read_line(path, state, sizeof(state));
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/link_layer", adapter, port);
    read_line(path, layer, sizeof(layer));
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/rate", adapter, port);
    read_line(path, rate, sizeof(rate));
    snprintf(title, sizeof(title), "port %.24s:%.8s", adapter, port);
    findings_add(out, title, strstr(state, "ACTIVE") ? FINDING_ON : FINDING_OFF,
                 "%s, state %s, %s; used by --transport auto+ucx", layer, state, rate);
}

static void add_ports(const char *adapter, peal_findings *out)
{
    char path[PATH];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", adapter);
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            add_port(adapter, entry->d_name, out);
    if (folder)
        closedir(folder);
}

static void look_at_locked_memory(bool has_adapters, peal_findings *out)
{
    struct rlimit limit = {0};
    const rlim_t least = 64 << 20;
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        findings_add(out, "locked memory", FINDING_ON, "unlimited");
    else if (!has_adapters || limit.rlim_cur >= least)
        findings_add(out, "locked memory", FINDING_ON, "%s%s",
                     text_bytes((int64_t)limit.rlim_cur).s,
                     has_adapters ? "" : " (only adapters need it)");
    else
        findings_add(out, "locked memory", FINDING_OFF,
                     "%s: adapters cannot register more (ulimit -l unlimited)",
                     text_bytes((int64_t)limit.rlim_cur).s);
}

static void look_at_adapters(peal_findings *out)
{
    int before = out->count;
    DIR *folder = opendir("/sys/class/infiniband");
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            add_ports(entry->d_name, out);
    if (folder)
        closedir(folder);
    bool has_adapters = out->count > before;
    if (!has_adapters)
        findings_add(out, "adapters", FINDING_OFF,
                     "no InfiniBand or RoCE adapter (/sys/class/infiniband)");
    look_at_locked_memory(has_adapters, out);
}

static void look_at_ports(peal_findings *out)
{
    char text[64];
    int first, last;
    if (read_line("/proc/sys/net/ipv4/ip_local_port_range", text, sizeof(text)) &&
        sscanf(text, "%d %d", &first, &last) == 2)
        findings_add(out, "TCP ports", FINDING_ON,
                     "the system chooses one of %d to %d for each process; --network-ports others",
                     first, last);
}

void look_at_network(peal_findings *out)
{
    look_at_interfaces(out);
    look_at_adapters(out);
    look_at_ports(out);
}

/* ---- hosts ---- */

static void add_paths(const peal_session *session, peal_transport_kind kind,
                      const peal_host_path *path, int count, peal_findings *out)
{
    char title[40];
    snprintf(title, sizeof(title), "hosts, %s", peal_transport_name(kind));
    for (int i = 0; i < count; i++)
        findings_add(out, title, FINDING_ON,
                     "%s - %s: 8 bytes one way %s, 1 MiB one way at %.3g GB/s",
                     peal_control_node(session->control, path[i].from),
                     peal_control_node(session->control, path[i].to),
                     text_seconds(path[i].latency_s).s, path[i].bytes_per_s * 1e-9);
}

/* An engine that all processes have. */
static peal_status all_have(peal_session *session, peal_transport_kind kind, bool *out)
{
    int processes = session->identity.processes;
    bool own = !peal_network_refuses(kind), *all = calloc((size_t)processes, sizeof(*all));
    peal_status status =
        all ? peal_control_allgather(session->control, &own, sizeof(own), all)
            : peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                          "no memory for what %d processes have", processes);
    *out = true;
    for (int p = 0; p < processes && !status; p++)
        *out &= all[p];
    free(all);
    return status;
}

static peal_status measure(peal_session *session, peal_transport_kind kind, peal_findings *out)
{
    peal_host_path *path = NULL;
    bool usable;
    int count = 0;
    peal_status status = all_have(session, kind, &usable);
    if (status || !usable)
        return status;
    status = peal_measure_hosts(session, kind, &path, &count);
    if (!status)
        add_paths(session, kind, path, count, out);
    free(path);
    return status;
}

peal_status look_at_hosts(peal_session *session, peal_findings *out)
{
    peal_status status = PEAL_STATUS_OK;
    const int *host = peal_control_hosts(session->control);
    int hosts = 1;
    for (int p = 0; host && p < session->identity.processes; p++)
        hosts = host[p] >= hosts ? host[p] + 1 : hosts;
    findings_add(out, "hosts", hosts > 1 ? FINDING_ON : FINDING_OFF,
                 hosts > 1 ? "%d processes on %d hosts%s"
                           : "all %d processes are on %d host%s: nothing to measure",
                 session->identity.processes, hosts,
                 hosts > PEAL_MEASURED_HOSTS ? ", of which 16 are measured" : "");
    for (peal_transport_kind kind = PEAL_TRANSPORT_TCP;
         kind < PEAL_TRANSPORT_COUNT && hosts > 1 && !status; kind++)
        status = measure(session, kind, out);
    if (status != PEAL_STATUS_OK)
        peal_session_print_diagnostics(session, stderr, 0);
    return status;
}
