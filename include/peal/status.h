/* What every peal call that can fail returns. The values are also the exit codes of the command. */
#ifndef PEAL_STATUS_H
#define PEAL_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peal_status {
    PEAL_STATUS_OK = 0,
    PEAL_STATUS_WRONG_RESULT = 1,    /* a verification found other bits than `serial` computes */
    PEAL_STATUS_USAGE = 2,           /* a call or command line that makes no sense */
    PEAL_STATUS_SPEC = 3,            /* the graph is wrong; diagnostics say where and what to do */
    PEAL_STATUS_ENVIRONMENT = 4,     /* this machine lacks something: memory, a compiler, a mode */
    PEAL_STATUS_PEER_LOST = 5,       /* a process of the job died or left */
    PEAL_STATUS_DEADLINE = 6,        /* no progress within the deadline */
    PEAL_STATUS_DEVICE = 7,          /* an accelerator failed or is out of memory */
    PEAL_STATUS_INTERNAL = 8,        /* a bug of peal */
    PEAL_STATUS_INTERRUPT = 130,     /* SIGINT */
    PEAL_STATUS_CLOSED_OUTPUT = 141, /* whoever reads the output has left, as `| head` does */
    PEAL_STATUS_TERMINATED = 143     /* SIGTERM */
} peal_status;

/* The status in words ("ok", "wrong result", ...); a static string, never NULL. */
const char *peal_status_name(peal_status status);

#ifdef __cplusplus
}
#endif
#endif
