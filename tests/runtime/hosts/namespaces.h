/* Hosts for tests: network namespaces on one bridge, in a network of the test's own. They are gone
 * when the last process of the test is, however it ends. */
#ifndef PEAL_TESTS_RUNTIME_NAMESPACES_H
#define PEAL_TESTS_RUNTIME_NAMESPACES_H

#include <stdbool.h>

enum { HOSTS = 3 };

/* Once, before any thread; not root: as root of a user namespace. NULL: they are there; else why
 * not. */
const char *hosts_create(void);
/* This process and its children are on that host from now on. */
void hosts_enter(int host);
/* Runs a command of the shell on that host; -1: beside them, where the bridge is. Whether it says
 * that it worked. */
bool hosts_run(int host, const char *command);

#endif
