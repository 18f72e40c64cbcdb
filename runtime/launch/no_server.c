/* In place of the PMIx server where peal was built without libpmix: an answer with the reason. */
#include "runtime/launch/internal.h"

peal_status peal_launch_server_open(int processes, peal_diagnostics *diagnostics,
                                    peal_launch_server **out)
{
    (void)out;
    return peal_report(diagnostics, PEAL_E330, (peal_source){0},
                       "install libpmix 4.2 or later with its headers and build peal again",
                       "%d processes cannot be started: this peal was built without libpmix",
                       processes);
}

char **peal_launch_server_environment(peal_launch_server *server, int process)
{
    (void)server, (void)process;
    return NULL;
}

void peal_launch_environment_free(char **environment)
{
    (void)environment;
}

int peal_launch_server_event(const peal_launch_server *server)
{
    (void)server;
    return -1;
}

bool peal_launch_server_aborted(peal_launch_server *server, int *process, int *code,
                                char message[PEAL_LAUNCH_MESSAGE])
{
    (void)server, (void)process, (void)code, (void)message;
    return false;
}

void peal_launch_server_close(peal_launch_server *server)
{
    (void)server;
}
