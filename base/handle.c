/* A table of handles. It is global, as handles are: they come from the caller, with nothing else.
 */
#define _GNU_SOURCE
#include "base/handle.h"

#include "base/diagnostic.h"
#include "base/thread_room.h"

#include <peal/peal.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 256, KEPT = 256, MESSAGE_BYTES = 200 };

typedef enum slot_state { FREE, ALIVE, DESTROYED, INHERITED } slot_state;

typedef struct slot {
    _Atomic(const void *) object;
    _Atomic int state; /* stored last, read first: release, acquire */
    peal_handle_kind kind;
    const void *owner;
    unsigned long number; /* of its opening */
} slot;

typedef struct chunk {
    slot slot[SLOTS];
    _Atomic(struct chunk *) next;
} chunk;

static chunk table;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of changes to the table */
static unsigned long opened;
static void *kept[KEPT]; /* destroyed lately: a ring */
static unsigned kept_next;
static _Thread_local slot *latest[PEAL_HANDLE_KINDS];

static const char *const kind_names[] = {"graph", "session", "plan", "exchange", "transfer"};

const char *peal_handle_kind_name(peal_handle_kind kind)
{
    return kind_names[kind];
}

static slot *next_slot(slot *at, chunk **of)
{
    if (!at) {
        *of = &table;
        return table.slot;
    }
    if (++at < (*of)->slot + SLOTS)
        return at;
    *of = atomic_load_explicit(&(*of)->next, memory_order_acquire);
    return *of ? (*of)->slot : NULL;
}

static slot *find(const void *object)
{
    chunk *of;
    for (slot *s = next_slot(NULL, &of); s; s = next_slot(s, &of))
        if (atomic_load_explicit(&s->object, memory_order_acquire) == object)
            return s;
    return NULL;
}

/* ---- fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

/* Threads, connections and shared memory are the parent's. */
static void in_child(void)
{
    chunk *of;
    for (slot *s = next_slot(NULL, &of); s; s = next_slot(s, &of))
        if (atomic_load(&s->state) == ALIVE)
            atomic_store(&s->state, INHERITED);
    pthread_mutex_unlock(&mutex);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

/* ---- opening and closing ---- */

/* With the mutex held. */
static slot *free_slot(void)
{
    chunk *of, *last = &table;
    for (slot *s = next_slot(NULL, &of); s; s = next_slot(s, &of)) {
        last = of;
        if (atomic_load(&s->state) == FREE)
            return s;
    }
    chunk *more = calloc(1, sizeof(*more));
    if (more)
        atomic_store_explicit(&last->next, more, memory_order_release);
    return more ? more->slot : NULL;
}

bool peal_handle_open(void *object, peal_handle_kind kind, const void *owner)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&mutex);
    slot *s = free_slot();
    if (s) {
        s->kind = kind;
        s->owner = owner;
        s->number = ++opened;
        atomic_store_explicit(&s->state, ALIVE, memory_order_release);
        atomic_store_explicit(&s->object, object, memory_order_release);
    }
    pthread_mutex_unlock(&mutex);
    return s != NULL;
}

void peal_handle_close(const void *object)
{
    pthread_mutex_lock(&mutex);
    slot *s = find(object);
    if (s)
        atomic_store(&s->state, DESTROYED);
    pthread_mutex_unlock(&mutex);
}

void peal_handle_free(void *object)
{
    pthread_mutex_lock(&mutex);
    void *oldest = kept[kept_next % KEPT];
    kept[kept_next++ % KEPT] = object;
    slot *s = oldest ? find(oldest) : NULL;
    if (s) {
        atomic_store(&s->object, NULL);
        atomic_store(&s->state, FREE);
    }
    pthread_mutex_unlock(&mutex);
    free(oldest);
}

/* ---- checks ---- */

static bool refuse(peal_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(peal_code code, const char *format, ...)
{
    va_list arguments;
    char text[MESSAGE_BYTES - 16];
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    char *message = peal_thread_room(PEAL_ROOM_HANDLE, MESSAGE_BYTES);
    if (message)
        snprintf(message, MESSAGE_BYTES, "%s [%s]", text, peal_code_number(code));
    return false;
}

static bool is_good(const slot *s, const void *object, peal_handle_kind kind)
{
    return atomic_load_explicit(&s->object, memory_order_acquire) == object &&
           atomic_load_explicit(&s->state, memory_order_acquire) == ALIVE && s->kind == kind;
}

bool peal_handle_check(const void *object, peal_handle_kind kind, const char *call)
{
    slot *s = latest[kind];
    if (object && s && is_good(s, object, kind))
        return true;
    const char *name = kind_names[kind];
    if (!object)
        return refuse(PEAL_E_INVALID_HANDLE, "%s: the %s is NULL", call, name);
    s = find(object);
    if (!s)
        return refuse(PEAL_E_INVALID_HANDLE, "%s: %p is no %s", call, (void *)(size_t)object, name);
    if (is_good(s, object, kind)) {
        latest[kind] = s;
        return true;
    }
    if (s->kind != kind)
        return refuse(PEAL_E_INVALID_HANDLE, "%s: a %s was given where a %s is needed", call,
                      kind_names[s->kind], name);
    if (atomic_load(&s->state) == INHERITED)
        return refuse(PEAL_E_USED_AFTER_FORK, "%s: the %s is of the parent process", call, name);
    return refuse(PEAL_E_USED_AFTER_DESTROY, "%s: the %s has been destroyed", call, name);
}

bool peal_argument_check(const void *pointer, const char *name, const char *call)
{
    return pointer || refuse(PEAL_E_INVALID_HANDLE, "%s: %s is NULL", call, name);
}

void peal_handle_report_early(const char *call, peal_handle_kind kind)
{
    refuse(PEAL_E_PLANS_OUTLIVE_SESSION,
           "%s: a%s %s of the session was still there, and was destroyed with it", call,
           kind == PEAL_HANDLE_EXCHANGE ? "n" : "", kind_names[kind]);
}

void *peal_handle_owned(const void *owner, peal_handle_kind *kind)
{
    chunk *of;
    slot *youngest = NULL;
    pthread_mutex_lock(&mutex);
    for (slot *s = next_slot(NULL, &of); s; s = next_slot(s, &of))
        if (atomic_load(&s->state) == ALIVE && s->owner == owner &&
            (!youngest || s->number > youngest->number))
            youngest = s;
    void *object = youngest ? (void *)(size_t)atomic_load(&youngest->object) : NULL;
    if (youngest)
        *kind = youngest->kind;
    pthread_mutex_unlock(&mutex);
    return object;
}

void *peal_handle_owner(const void *object)
{
    const slot *s = object ? find(object) : NULL;
    const slot *owner = s && s->owner ? find(s->owner) : NULL;
    return owner && atomic_load(&owner->state) == ALIVE ? (void *)(size_t)s->owner : NULL;
}

const char *peal_misuse(void)
{
    const char *message = peal_thread_room(PEAL_ROOM_HANDLE, MESSAGE_BYTES);
    return message ? message : "";
}
