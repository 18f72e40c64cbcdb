/* The inside of the engine for RDMA adapters, for its files. */
#ifndef PEAL_RUNTIME_NETWORK_VERBS_H
#define PEAL_RUNTIME_NETWORK_VERBS_H

#include "runtime/network/network.h"

#include <peal/status.h>

#include <infiniband/verbs.h>
#include <pthread.h>

/* Inline functions of the header stand for these: the library's own are meant. */
#undef ibv_reg_mr
#undef ibv_query_port

enum {
    VERBS_TEXT_BYTES = 300,
    VERBS_DEPTH = 256,      /* entries of a queue, at most */
    VERBS_MOST_PARTS = 16,  /* of a message that is longer than the adapter takes */
    VERBS_INLINE_BYTES = 12 /* a word, in an entry of 64 bytes */
};

/* ---- verbs_library.c: opened at run time ---- */

#define VERBS_FUNCTIONS(USE)                                                                       \
    USE(ibv_get_device_list)                                                                       \
    USE(ibv_free_device_list)                                                                      \
    USE(ibv_get_device_name)                                                                       \
    USE(ibv_open_device)                                                                           \
    USE(ibv_close_device)                                                                          \
    USE(ibv_query_port)                                                                            \
    USE(ibv_query_gid)                                                                             \
    USE(ibv_alloc_pd)                                                                              \
    USE(ibv_dealloc_pd)                                                                            \
    USE(ibv_reg_mr)                                                                                \
    USE(ibv_dereg_mr)                                                                              \
    USE(ibv_create_cq)                                                                             \
    USE(ibv_destroy_cq)                                                                            \
    USE(ibv_create_qp)                                                                             \
    USE(ibv_modify_qp)                                                                             \
    USE(ibv_destroy_qp)                                                                            \
    USE(ibv_wc_status_str)                                                                         \
    USE(ibv_get_async_event)                                                                       \
    USE(ibv_ack_async_event)                                                                       \
    USE(ibv_event_type_str)

typedef struct verbs_library {
#define VERBS_MEMBER(name) __typeof__(name) *name;
    VERBS_FUNCTIONS(VERBS_MEMBER)
#undef VERBS_MEMBER
    const char *reason; /* why it cannot be used; NULL: it can */
} verbs_library;

const verbs_library *verbs_get(void);

/* ---- the engine ---- */

/* An adapter with a port that is up, opened once a session. */
typedef struct verbs_device {
    struct ibv_context *context;
    struct ibv_pd *domain;
    char name[64];
    uint8_t port, gid_index;
    bool by_gid; /* ports of Ethernet have no other address */
    struct ibv_port_attr at;
    union ibv_gid gid;
} verbs_device;

/* Registered memory of a plan. */
typedef struct verbs_region {
    uintptr_t begin, end;
    struct ibv_mr *memory;
} verbs_region;

/* Where the other end wants a put of ours; and how far it is. */
typedef struct verbs_put {
    uint64_t word, slot; /* addresses there */
    uint32_t word_key, slot_key;
    uint32_t own_key; /* of the slots here */
    uint64_t due, sent;
} verbs_put;

typedef struct verbs_link verbs_link;
struct mlx5_ring;
struct mlx5_arena;

/* A plan's part of a link. It outlives the plan until the other end has said that it sends nothing
 * more of it: until then its memory stays registered. */
typedef struct verbs_end {
    struct verbs_end *next; /* of the link */
    verbs_link *link;
    const peal_pair *pair; /* NULL: the plan has ended here */
    uint32_t number;
    bool has_farewell; /* the other end has ended it */
    bool is_silent;    /* what others ring for is not sent any more */
    verbs_put *out;
    verbs_region *region;
    int region_count;
    struct mlx5_ring *ring; /* one a put, more only receive; NULL: the link's queue is used */
    int ring_count;
} verbs_end;

/* What ends say on the stream: so many bytes follow, of what they swap as a plan begins; 0: the
 * plan of this number is over, and all of it has been sent. */
typedef struct verbs_word {
    uint32_t number, bytes;
} verbs_word;

struct verbs_link {
    peal_network *network;
    int process, stream;
    pthread_mutex_t lock; /* of all below, but the hints */
    union ibv_gid gid;    /* of the other end's port */
    uint16_t lid;
    uint32_t mtu;
    struct ibv_cq *ring; /* NULL, as the queue: rings are their plans' */
    struct ibv_qp *queue;
    uint32_t depth;
    uint64_t posted, done; /* entries */
    uint64_t signalled;    /* the last of them that has a completion */
    verbs_end *end;
    verbs_word heard; /* what has been read of the next one */
    size_t heard_bytes;
    uint32_t turns;
    int64_t listened_ns;      /* when what rarely comes was last looked at */
    _Atomic bool has_pending; /* a hint: something is due that is not posted */
    _Atomic bool is_begun;    /* a hint: the other end begins a plan, which attach reads */
    _Atomic bool is_broken;
};

struct peal_network {
    const peal_network_site *site;
    const verbs_library *library;
    verbs_device device;
    _Atomic(verbs_link *) *link; /* by process; NULL: not connected */
    _Atomic bool has_failed;
    bool is_disowned;
    bool has_own_rings;            /* the engine is mlx5 */
    struct mlx5_arena *arena;      /* of its rings */
    char reason[VERBS_TEXT_BYTES]; /* why it is of no use any more; empty: it is */
};

struct peal_network_plan {
    peal_network *network;
    int count;
    verbs_end **end; /* by pair */
};

peal_status verbs_no_memory(peal_diagnostics *diagnostics);
/* Ends the job, once. */
void verbs_fail(peal_network *network, peal_status status, const char *message);
/* The connection has ended: what, and why. */
void verbs_lose(verbs_link *link, const char *what, const char *why);
/* The same as a plan begins and there is no memory to say so: the other end, which waits for words,
 * finds the stream closed. */
void verbs_give_up(verbs_link *link);
/* With the link's lock: the other end has ended a plan. */
void verbs_note_farewell(verbs_link *link, uint32_t number);

/* ---- verbs_connect.c ---- */

/* The device, and queues to the processes of the pairs that have none yet. */
peal_status verbs_connect(peal_network *network, const peal_pair *pair, int count,
                          peal_diagnostics *diagnostics);
/* Opens it, once. */
peal_status verbs_open_device(peal_network *network, peal_diagnostics *diagnostics);
void verbs_close_device(peal_network *network);
/* Says network->reason; or that, and keeps it as the reason. */
peal_status verbs_tell_reason(const peal_network *network, peal_diagnostics *diagnostics);
peal_status verbs_cannot(peal_network *network, peal_diagnostics *diagnostics, const char *what);
/* A fresh queue is ready to be joined; joined, both ends may send. false, and errno: it is not. */
bool verbs_begin_queue(const peal_network *network, struct ibv_qp *queue);
bool verbs_join_queue(const verbs_link *link, struct ibv_qp *queue, uint32_t first_packet,
                      uint32_t other, uint32_t other_first_packet);
/* Entries that are on their way, and later ones, are flushed. */
void verbs_stop_queue(const verbs_link *link, struct ibv_qp *queue);
/* Destroys it; of a connection that has ended it is stopped first. */
void verbs_end_queue(const verbs_link *link, struct ibv_qp *queue);
void verbs_free_link(verbs_link *link);
/* Both send so many bytes and read so many, in small parts in turn: neither waits for room in the
 * other's socket. */
peal_status verbs_swap(verbs_link *link, const void *ours, size_t our_bytes, void *theirs,
                       size_t their_bytes);

/* ---- verbs_memory.c ---- */

/* Registers a pair's words and slots, tells the other end where they are, and hears the same. With
 * a status that is an error already it only tells that, so that the other end need not wait. */
peal_status verbs_enroll(verbs_end *end, peal_status status, peal_diagnostics *diagnostics);
void verbs_free_end(verbs_end *end);

/* ---- verbs_send.c: with the link's lock ---- */

/* Posts what is due of a put, as far as the queue has room. */
void verbs_post(verbs_end *end, int number);
void verbs_post_pending(verbs_link *link);
/* Takes completions; an error of one ends the link. */
void verbs_reap(verbs_link *link);
/* Posts an entry whose completion says that all before it have arrived, unless one does. */
void verbs_sign(verbs_link *link);
/* All that was posted has arrived. */
bool verbs_has_arrived(verbs_link *link);

#endif
