/* libucp, opened at run time, and a context of it that takes the right way to other hosts. */
#define _GNU_SOURCE
#include "runtime/network/ucx.h"

#include <dirent.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { DEVICES_BYTES = 1024 };

static ucx_library library;

static void open_functions(void)
{
    static char reason[UCX_TEXT_BYTES];
    const char *missing = NULL;
    void *handle = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(reason, sizeof(reason), "%s", dlerror());
        library.reason = reason;
        return;
    }
#define UCX_FIND(name)                                                                             \
    *(void **)(void *)&library.name = dlsym(handle, #name);                                        \
    missing = library.name ? missing : #name;
    UCX_FUNCTIONS(UCX_FIND)
#undef UCX_FIND
    if (!missing)
        return;
    snprintf(reason, sizeof(reason), "libucp.so.0 has no %s: it is older than 1.11", missing);
    library.reason = reason;
}

/* It reads these while it is opened: no handlers of its own for signals, nothing instead of the C
 * library's memory functions, and no words amid results. What the user has set stays. */
static void open_library(void)
{
    static const char *const quiet[][2] = {{"UCX_ERROR_SIGNALS", ""},
                                           {"UCX_MEM_EVENTS", "n"},
                                           {"UCX_MEM_MMAP_HOOK_MODE", "none"},
                                           {"UCX_LOG_FILE", "stderr"}};
    enum { QUIET = sizeof(quiet) / sizeof(quiet[0]) };
    bool is_own[QUIET] = {false};
    for (int i = 0; i < QUIET; i++) {
        is_own[i] = !getenv(quiet[i][0]);
        if (is_own[i])
            setenv(quiet[i][0], quiet[i][1], 1);
    }
    open_functions();
    for (int i = 0; i < QUIET; i++)
        if (is_own[i])
            unsetenv(quiet[i][0]);
}

const ucx_library *ucx_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return &library;
}

/* ---- which devices ---- */

static void add(char devices[DEVICES_BYTES], const char *name)
{
    size_t used = strlen(devices), length = strlen(name);
    for (const char *at = devices; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && !strncmp(at, name, length))
            return;
    if (used + 1 + length < DEVICES_BYTES) /* part of a name would be another one */
        snprintf(devices + used, DEVICES_BYTES - used, "%s%s", used ? "," : "", name);
}

static bool have_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
    if (!a || a->sa_family != b->ss_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
    return a->sa_family == AF_INET6 &&
           !memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                   &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
                   sizeof(struct in6_addr));
}

static bool is_up(const struct ifaddrs *at)
{
    return at->ifa_addr && at->ifa_flags & IFF_UP && at->ifa_flags & IFF_RUNNING &&
           (at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6);
}

/* A stream within the host says nothing: all that are up, or the loopback if it is alone. */
static void add_all(const struct ifaddrs *list, char devices[DEVICES_BYTES])
{
    for (int loopback = 0; loopback < 2 && !*devices; loopback++)
        for (const struct ifaddrs *at = list; at; at = at->ifa_next)
            if (is_up(at) && !(at->ifa_flags & IFF_LOOPBACK) == !loopback)
                add(devices, at->ifa_name);
}

static void add_interfaces(const int *stream, int count, char devices[DEVICES_BYTES])
{
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list))
        return;
    for (int i = 0; i < count; i++) {
        struct sockaddr_storage own = {0};
        socklen_t bytes = sizeof(own);
        if (getsockname(stream[i], (struct sockaddr *)&own, &bytes))
            continue;
        for (const struct ifaddrs *at = list; at; at = at->ifa_next)
            if (is_up(at) && have_address(at->ifa_addr, &own))
                add(devices, at->ifa_name);
    }
    if (!*devices)
        add_all(list, devices);
    freeifaddrs(list);
}

static bool port_is_active(const char *adapter, const char *port)
{
    char path[600], state[32] = "";
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/state", adapter, port);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_active = fgets(state, sizeof(state), file) && strstr(state, "ACTIVE");
    fclose(file);
    return is_active;
}

static void add_ports(const char *adapter, char devices[DEVICES_BYTES])
{
    char path[300], name[600];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", adapter);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.' && port_is_active(adapter, entry->d_name)) {
            snprintf(name, sizeof(name), "%s:%s", adapter, entry->d_name);
            add(devices, name);
        }
    if (folder)
        closedir(folder);
}

static void add_adapters(char devices[DEVICES_BYTES])
{
    DIR *folder = opendir("/sys/class/infiniband");
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            add_ports(entry->d_name, devices);
    if (folder)
        closedir(folder);
}

/* Unless the user has said otherwise by the variable. */
static ucs_status_t set(ucp_config_t *config, const char *variable, const char *name,
                        const char *value)
{
    return getenv(variable) ? UCS_OK : ucx_get()->ucp_config_modify(config, name, value);
}

ucs_status_t ucx_open_context(const peal_network_site *site, const int *stream, int count,
                              ucp_context_h *out)
{
    const ucx_library *ucx = ucx_get();
    char devices[DEVICES_BYTES] = "", ports[32];
    ucp_config_t *config;
    ucs_status_t status = ucx->ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return status;
    add_interfaces(stream, count, devices);
    add_adapters(devices);
    if (*devices)
        status = set(config, "UCX_NET_DEVICES", "NET_DEVICES", devices);
    if (status == UCS_OK && site->first_port) {
        snprintf(ports, sizeof(ports), "%d-%d", site->first_port, site->last_port);
        status = set(config, "UCX_TCP_PORT_RANGE", "PORT_RANGE", ports);
    }
    /* Processes of different hosts may see the same numbers of System V memory. */
    if (status == UCS_OK)
        status = set(config, "UCX_TLS", "TLS", "^sm");
    /* Up to there a message leaves by itself; what is longer is fetched, while both ends wait. */
    if (status == UCS_OK)
        status = set(config, "UCX_RNDV_THRESH", "RNDV_THRESH", "64k");
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    if (status == UCS_OK)
        status = ucx->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, out);
    ucx->ucp_config_release(config);
    return status;
}
