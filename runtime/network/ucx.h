/* The inside of the UCX engine, for its files. */
#ifndef PEAL_RUNTIME_NETWORK_UCX_H
#define PEAL_RUNTIME_NETWORK_UCX_H

#include "runtime/network/network.h"

#include <peal/status.h>

#include <pthread.h>
#include <ucp/api/ucp.h>

enum {
    UCX_TEXT_BYTES = 300,
    UCX_MESSAGE = 1 /* the active message's number */
};

/* ---- ucx_library.c: opened at run time ---- */

#define UCX_FUNCTIONS(USE)                                                                         \
    USE(ucp_get_version_string)                                                                    \
    USE(ucp_config_read)                                                                           \
    USE(ucp_config_modify)                                                                         \
    USE(ucp_config_release)                                                                        \
    USE(ucp_init_version)                                                                          \
    USE(ucp_cleanup)                                                                               \
    USE(ucp_worker_create)                                                                         \
    USE(ucp_worker_destroy)                                                                        \
    USE(ucp_worker_get_address)                                                                    \
    USE(ucp_worker_release_address)                                                                \
    USE(ucp_worker_get_efd)                                                                        \
    USE(ucp_worker_arm)                                                                            \
    USE(ucp_worker_progress)                                                                       \
    USE(ucp_worker_flush_nbx)                                                                      \
    USE(ucp_worker_set_am_recv_handler)                                                            \
    USE(ucp_ep_create)                                                                             \
    USE(ucp_ep_close_nbx)                                                                          \
    USE(ucp_am_send_nbx)                                                                           \
    USE(ucp_am_recv_data_nbx)                                                                      \
    USE(ucp_request_check_status)                                                                  \
    USE(ucp_request_free)                                                                          \
    USE(ucs_status_string)

typedef struct ucx_library {
#define UCX_MEMBER(name) __typeof__(name) *name;
    UCX_FUNCTIONS(UCX_MEMBER)
#undef UCX_MEMBER
    const char *reason; /* why it cannot be used; NULL: it can */
} ucx_library;

const ucx_library *ucx_get(void);
/* A context that reaches other hosts and nothing else: over the interfaces of streams to them, and
 * InfiniBand adapters whose ports are up. What UCX_... variables say goes first. */
ucs_status_t ucx_open_context(const peal_network_site *site, const int *stream, int count,
                              ucp_context_h *out);

/* ---- the engine ---- */

/* Goes before a message's bytes. UCX lets in whom it likes: the token, which the receiver has said
 * on the control plane's stream, shows who sent it. */
typedef struct ucx_head {
    peal_put_frame frame;
    uint64_t token;
    uint32_t from, reserved;
} ucx_head;

typedef struct ucx_link {
    int process, stream;
    ucp_ep_h endpoint;
    uint64_t own_token, their_token; /* what it sends with, and what is sent with */
    bool is_broken;
    peal_network *network;
} ucx_link;

/* What is under way from a slot; UCX reads the head until it is done. */
typedef struct ucx_sending {
    ucx_head head;
    peal_network_plan *plan;
    ucx_link *link;
    const peal_put *put;
    bool is_busy, is_owed;
    uint64_t owed; /* the next message of this slot, or a credit, that is due meanwhile */
} ucx_sending;

/* Messages may be complete in another order than they were sent in, as long ones are fetched. */
typedef struct ucx_arrival {
    uint64_t received; /* all up to it */
    bool *has_come;    /* by (value / quantum) % window, beyond it */
} ucx_arrival;

/* A long message that is being fetched. */
typedef struct ucx_fetch {
    peal_network_plan *plan;
    ucx_link *link;
    int pair, put;
    uint64_t value;
} ucx_fetch;

struct peal_network {
    const peal_network_site *site;
    const ucx_library *library;
    pthread_mutex_t lock; /* of all here: UCX is called by one thread at a time */
    ucp_context_h context;
    ucp_worker_h worker;
    int event; /* a descriptor to sleep on */
    peal_network_plan *plan;
    peal_network_plan *dead; /* whose caller has left them */
    ucx_link **link;         /* by process; NULL: not connected */
    void *flush;             /* a request; NULL: none is under way */
    bool has_sent;           /* since the last flush began */
    int busy;                /* sends and fetches that are under way */
    bool has_failed, is_closing, is_disowned;
    char reason[UCX_TEXT_BYTES]; /* why it is of no use (any more); empty: it is */
};

struct peal_network_plan {
    peal_network *network;
    peal_network_plan *next;
    uint32_t number;
    const peal_pair *pair;
    int count;
    ucx_link **link;        /* by pair */
    uint64_t **sent;        /* by pair and outgoing put: what has been told */
    ucx_sending ***sending; /* by pair, outgoing put, and slot */
    ucx_arrival **arrival;  /* by pair and incoming put */
    int busy;
    bool
        is_dead; /* UCX has not let go of it in time: nothing of the caller's is touched any more */
};

/* So many messages of a put may be under way at a time; a power of two, as numbers wrap. */
static inline uint64_t ucx_window(const peal_put *put)
{
    return put->credit ? 1 : 2 * (uint64_t)put->slots;
}

static inline uint64_t ucx_place(const peal_put *put, uint64_t value)
{
    return value / put->quantum % ucx_window(put);
}

/* Ends the job, once. */
void ucx_fail(peal_network *network, peal_status status, const char *message);
/* The endpoint has ended. */
void ucx_lose(ucx_link *link, ucs_status_t why);

peal_status ucx_no_memory(peal_diagnostics *diagnostics);

/* ---- ucx_connect.c; with the lock ---- */

/* To the processes of pairs to whom there is no connection yet: all of them do. */
peal_status ucx_connect(peal_network *network, const peal_pair *pair, int count,
                        peal_diagnostics *diagnostics);

/* ---- ucx_messages.c; with the lock ---- */

void ucx_due(peal_network_plan *plan, int pair, int number, uint64_t value);
/* UCX calls it for each message that comes. */
ucs_status_t ucx_take(void *network, const void *header, size_t header_bytes, void *data,
                      size_t bytes, const ucp_am_recv_param_t *param);

#endif
