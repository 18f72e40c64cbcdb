/* See the header. */
#define _GNU_SOURCE
#include "tests/runtime/hosts/namespaces.h"
#include "tests/runtime/control/team.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Made by `ip netns` in a /run of our own. */
static const char folder[] = "/run/netns";

bool hosts_run(int host, const char *command)
{
    char line[1024];
    if (host < 0)
        snprintf(line, sizeof(line), "(%s) >/dev/null 2>&1", command);
    else
        snprintf(line, sizeof(line), "nsenter --net=%s/h%d sh -c '%s' >/dev/null 2>&1 </dev/null",
                 folder, host, command);
    return system(line) == 0; /* NOLINT: names and commands are this test's own */
}

static bool write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool good = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        close(file);
    return good;
}

static bool become_root(void)
{
    char map[64];
    unsigned user = geteuid(), group = getegid();
    if (user == 0)
        return true;
    if (unshare(CLONE_NEWUSER) || !write_file("/proc/self/setgroups", "deny"))
        return false;
    snprintf(map, sizeof(map), "0 %u 1", user);
    if (!write_file("/proc/self/uid_map", map))
        return false;
    snprintf(map, sizeof(map), "0 %u 1", group);
    return write_file("/proc/self/gid_map", map);
}

static bool add_host(int host)
{
    char command[512];
    snprintf(command, sizeof(command),
             "ip netns add h%d && ip link add v%d type veth peer name eth0 netns h%d && "
             "ip link set v%d master hosts up && ip -n h%d link set lo up && "
             "ip -n h%d addr add 10.213.0.%d/24 dev eth0 && ip -n h%d link set eth0 up",
             host, host, host, host, host, host, host + 1, host);
    return hosts_run(-1, command);
}

const char *hosts_create(void)
{
    const char *path = getenv("PATH");
    char with_system[4096];
    snprintf(with_system, sizeof(with_system), "%s:/usr/sbin:/sbin", path ? path : "/usr/bin:/bin");
    setenv("PATH", with_system, 1); /* where tools of administrators are */
    if (!become_root())
        return "this user may not become root of a user namespace";
    if (unshare(CLONE_NEWNET | CLONE_NEWNS))
        return "network namespaces cannot be made";
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "/run", "tmpfs", 0, NULL) || mkdir(folder, 0755))
        return "there can be no /run of the test's own";
    if (!hosts_run(-1, "command -v ip && command -v nsenter"))
        return "there is no `ip` (package iproute2)";
    if (!hosts_run(-1, "ip link set lo up && ip link add hosts type bridge && "
                       "ip addr add 10.213.0.254/24 dev hosts && ip link set hosts up"))
        return "a bridge cannot be made";
    for (int host = 0; host < HOSTS; host++)
        if (!add_host(host))
            return "a host's namespace cannot be made";
    return NULL;
}

void hosts_enter(int host)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/h%d", folder, host);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    TEAM_CHECK(file >= 0 && setns(file, CLONE_NEWNET) == 0);
    close(file);
    snprintf(path, sizeof(path), "h%d", host);
    TEAM_CHECK(unshare(CLONE_NEWUTS) == 0 && sethostname(path, strlen(path)) == 0);
}
