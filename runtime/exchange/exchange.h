/* An exchange as its files see it: the schedule of `exchange`, flattened into what start does and
 * what wait does. */
#ifndef PEAL_RUNTIME_EXCHANGE_EXCHANGE_H
#define PEAL_RUNTIME_EXCHANGE_EXCHANGE_H

#include "base/backoff.h"
#include "runtime/bind/binding.h"
#include "runtime/exchange/copy_pairs.h"
#include "runtime/exchange/decompose.h"
#include "runtime/session/device.h"

#include <peal/exchange.h>
#include <peal/graph.h>

/* A word that is waited for or written, and its value at message m: m * quantum. */
typedef struct peal_exchange_word {
    _Atomic uint64_t *word;
    uint64_t quantum;
    uint64_t behind; /* message m is about message m - behind; earlier there is nothing to do */
    const peal_channel *channel;
    int index;  /* 0: a network is told when the word is written; -1: nobody is */
    int number; /* of the channel */
    bool credit;
} peal_exchange_word;

typedef enum peal_exchange_action_kind {
    PEAL_EXCHANGE_WAIT,
    PEAL_EXCHANGE_WRITE,
    PEAL_EXCHANGE_COPY,
    PEAL_EXCHANGE_FETCH
} peal_exchange_action_kind;

typedef struct peal_exchange_action {
    peal_exchange_action_kind kind;
    peal_exchange_word word; /* WAIT, WRITE */
    int first, count;        /* COPY: of program->copy */
    uint64_t slots;          /* MOVE, FETCH: message m uses slot m % slots */
    unsigned char *staging;  /* FETCH: slot 0, whose lines the next message needs */
    int64_t slot_bytes, message_bytes;
} peal_exchange_action;

/* In the order of execution: start does [0, send_count), up to the first receive, wait the rest. */
typedef struct peal_exchange_program {
    peal_exchange_action *action;
    int send_count, count;
    peal_addressed_copy *copy;
    int copy_count;
} peal_exchange_program;

/* A box of a staged piece. */
typedef struct peal_exchange_stripe {
    int piece;
    peal_box source; /* within the piece's */
    int64_t staging; /* of the whole piece in the slot */
} peal_exchange_stripe;

/* Halo points of an array that repeat others of it, `shift` away. */
typedef struct peal_exchange_image {
    int array;
    peal_box target;
    int64_t shift[PEAL_AXES]; /* from source to target */
    int axis;                 /* the last with a shift */
} peal_exchange_image;

/* What tells a halo exchange from a put: its graph, and how the caller's memory lies. */
typedef struct peal_exchange_form {
    const char *noun, *brings; /* "exchange", "the border" */
    peal_status (*build)(struct peal_exchange *exchange, const void *desc);
    peal_status (*lay_out)(struct peal_exchange *exchange, const void *desc);
    bool
        in_order; /* its program on the host is the schedule as it stands, not what is sent first */
} peal_exchange_form;

struct peal_exchange {
    const peal_exchange_form *form;
    peal_session *session;
    peal_source source; /* where the application makes it */
    peal_decomposition grid;
    peal_graph *graph;
    const peal_graph_data *data;
    peal_machine machine;
    peal_compilation *compilation;
    peal_binding binding;
    peal_schedule *schedule;                /* a copy, whose arrays lie as the caller's do */
    peal_schedule_array *array;             /* its */
    const void *lent[PEAL_EXCHANGE_FIELDS]; /* the caller's arrays, by field; NULL: peal's */
    void *second[PEAL_EXCHANGE_FIELDS];     /* the caller's other ones; NULL: none */
    int buffers;
    peal_exchange_program program[2]; /* by buffer: the same words, other arrays */
    int buffer;                       /* of the exchange that was started last */
    struct peal_exchange *twin;       /* on a GPU: that of the second buffer; NULL: there is none */
    bool is_twin;                     /* has no handle: nobody but the other one knows it */
    uint64_t round;                   /* of the exchange that was started last; the first is 1 */
    bool started;
    peal_status failure;
    int field_count, components[PEAL_EXCHANGE_FIELDS];
    int64_t deadline_ns;
    int64_t longest_wait_ns; /* for a message or a credit; 0: for ever */
    uint64_t hash;
    int64_t bytes;                   /* sent by this process in one exchange */
    const char *lowering;            /* as asked for, until it is armed */
    const char *transport;           /* as asked for, until it is compared */
    char note[240];                  /* paths between GPUs that were passed over, and why */
    const peal_backend_ops *backend; /* puts it onto streams; NULL: the program is run here */
    peal_backend_plan *run;          /* of backend */
    void *stream;                    /* of the start that was not waited for */
};

enum { PEAL_EXCHANGE_TEXT_BYTES = 300 };

/* graph.c: refuses the descriptor (PEAL_E_INVALID_EXCHANGE). */
peal_status peal_exchange_refuse(const peal_exchange *exchange, const char *hint,
                                 const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What a descriptor leaves open: how many fields there are; components; points stored below and
 * above by axis. */
int peal_halo_field_count(const peal_halo_desc *desc);
int peal_halo_components(const peal_halo_field *field);
void peal_halo_stored(const peal_halo_field *field, int64_t out[PEAL_AXES][2]);
/* What makes no sense, whatever the other processes say. */
peal_status peal_exchange_check(const peal_exchange *exchange, const peal_halo_desc *desc);
/* A graph of one exchange; needs the grid. */
peal_status peal_exchange_build(peal_exchange *exchange, const peal_halo_desc *desc);
/* agreement.c: whether the processes' descriptors fit together; the grid that their boxes are; and
 * by which means. Collective: all get the same status. */
peal_status peal_exchange_agree(peal_exchange *exchange, const peal_halo_desc *desc);
/* means.c: what each process says, by process; all NULL: there is no memory for it. Collective. */
peal_status peal_exchange_gather(const peal_exchange *exchange, const void *own, size_t bytes,
                                 void *all);
/* Whether all run on GPUs or none, by the same transport; and the path between the GPUs.
 * Collective: all get the same status. */
peal_status peal_exchange_agree_on_means(peal_exchange *exchange);
/* query.c: "shm+mlx5", by what its messages go here; "none". */
void peal_exchange_describe_paths(const peal_exchange *exchange, char *text, size_t bytes);
/* memory.c: whether this process may read and write [first, end), as far as it can tell. */
bool peal_is_memory(uintptr_t first, uintptr_t end);
/* How the caller's memory lies, in a copy of the schedule; whether it is there. */
peal_status peal_exchange_lay_out(peal_exchange *exchange, const peal_halo_desc *desc);
/* device.c: whether it runs on the device: by what was asked for and the memory lent. */
peal_status peal_exchange_choose(peal_exchange *exchange, const char *asked);
/* Binds the schedules to the device. */
peal_status peal_exchange_arm(peal_exchange *exchange);
/* Start and wait, onto streams. */
peal_status peal_exchange_send(peal_exchange *exchange, void *stream);
peal_status peal_exchange_receive(peal_exchange *exchange);
/* What is sent once the application has had what was received, at once. */
peal_status peal_exchange_release(peal_exchange *exchange);
/* Blocks until all of it has been done. */
peal_status peal_exchange_settle(peal_exchange *exchange);
/* Words for what runs it: "", " on NVIDIA H200 ...". */
void peal_exchange_describe_device(const peal_exchange *exchange, char *text, size_t bytes);

/* network.c: a round of a wait, in which messages of other hosts come. */
void peal_exchange_pause(const peal_exchange *exchange, const peal_exchange_word *word,
                         peal_backoff *backoff);
/* A word of a channel to another host has been stored. */
void peal_exchange_tell(const peal_exchange *exchange, const peal_exchange_word *word,
                        uint64_t value);
/* What was told leaves now, together. */
void peal_exchange_flush(const peal_exchange *exchange);
/* What is in a queue here leaves: others may wait for it while nobody of this process does. */
peal_status peal_exchange_await_sent(peal_exchange *exchange);

/* make.c: whether lowering and transport are such; and the machine that the schedules are made for,
 * but for paths and devices. */
peal_status peal_exchange_check_options(peal_exchange *exchange);
/* A create that was given NULL: collective as the call itself. */
peal_status peal_exchange_refuse_null(peal_session *session, const char *call, const char *what);
/* From the descriptor of the exchange's form to what runs. Collective. */
peal_status peal_exchange_bind(peal_exchange *exchange, const void *desc);
/* Nothing more is started; what was, is done, unless something failed before. */
peal_status peal_exchange_leave(peal_exchange *exchange, peal_status status);
void peal_exchange_free(peal_exchange *exchange);
/* run.c: actions [first, end) of exchange number `round`. */
peal_status peal_exchange_run(peal_exchange *exchange, const peal_exchange_program *program,
                              int first, int end);

/* program.c: flattens the schedule, for each buffer. A process has one rank of an exchange. */
peal_status peal_exchange_flatten(peal_exchange *exchange);

/* stripes.c: the piece whose staged points hold those of piece `index`, itself included.
 */
int peal_exchange_carrier(const peal_channel *channel, int index);
/* Cuts the staged pieces that carry a message into stripes, in the order in which they are moved.
 * Returns how many; stripe may be NULL. bytes: of a slot. */
int peal_exchange_cut(const peal_channel *channel, peal_exchange_stripe *stripe, int64_t *bytes);
/* images.c: joins images (array, target and shift are given) to larger boxes, which are
 * right when they are copied in the order returned, after all messages. Returns how many. */
int peal_exchange_join_images(peal_exchange_image *image, int count);

/* A handle that was given to a public function; else peal_misuse says what is wrong. */
static inline bool peal_is_exchange(const peal_exchange *exchange, const char *call)
{
    return peal_session_check_handle(exchange, PEAL_HANDLE_EXCHANGE, call);
}

#endif
