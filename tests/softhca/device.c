/* The control half of the software adapter, preloaded: libibverbs finds a device in a sysfs of its
 * own, opens it, maps its registers and writes commands to it. Everything else goes to the C
 * library. NETLINK_RDMA and the newer ioctl interface are refused: libibverbs then takes the older
 * ways, which are served. */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* both names of each function are wanted */
#undef _FORTIFY_SOURCE
#include "device.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

enum { FILES = 4096, MAJOR = 231, MINOR = 192, IDLE_TURNS = 200, MAP_COMMAND_BITS = 8 };

static hca_world *world;
static hca_context *context[FILES]; /* by file descriptor */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The C library's function of this name. */
#define REAL(name) ((__typeof__(name) *)(uintptr_t)dlsym(RTLD_NEXT, #name))

hca_world *hca_open_world(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/world", folder);
    int file = REAL(open)(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL;
    void *at = REAL(mmap)(NULL, sizeof(hca_world), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REAL(close)(file);
    return at == MAP_FAILED ? NULL : at;
}

__attribute__((constructor)) static void begin(void)
{
    char sys[4096], registers[16];
    const char *folder = getenv(HCA_FOLDER);
    if (!folder || !(world = hca_open_world(folder)))
        return;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* the data half reads and writes it */
    snprintf(sys, sizeof(sys), "%s/sys", folder);
    snprintf(registers, sizeof(registers), "%d", HCA_REGISTERS_A_CONTEXT);
    setenv("SYSFS_PATH", sys, 1);
    setenv("MLX5_TOTAL_UUARS", registers, 0); /* a register for each queue */
}

/* ---- the data half in this process ---- */

static void *serve(void *unused)
{
    (void)unused;
    for (int idle = 0;; idle++) {
        if (hca_turn(world, getpid()))
            idle = 0;
        if (idle > IDLE_TURNS)
            sched_yield();
    }
    return NULL;
}

void hca_begin_thread(void)
{
    static pid_t served;
    pthread_t thread;
    if (world->form.by_threads && served != getpid() &&
        !pthread_create(&thread, NULL, serve, NULL)) {
        pthread_detach(thread);
        served = getpid();
    }
}

/* ---- the device file ---- */

static hca_context *context_of(int file)
{
    return world && file >= 0 && file < FILES ? context[file] : NULL;
}

static bool is_device(const char *path)
{
    return world && path && !strcmp(path, "/dev/infiniband/uverbs0");
}

static int open_device(void)
{
    int file = eventfd(0, EFD_CLOEXEC);
    if (file < 0)
        return -1;
    hca_context *opened = file < FILES ? calloc(1, sizeof(*opened)) : NULL;
    if (!opened) {
        REAL(close)(file);
        errno = ENOMEM;
        return -1;
    }
    opened->events = -1;
    context[file] = opened;
    return file;
}

static void describe_device(struct stat *out)
{
    memset(out, 0, sizeof(*out));
    out->st_mode = S_IFCHR | 0666;
    out->st_rdev = makedev(MAJOR, MINOR);
}

/* A free page; HCA_PAGES: there is none. A process that lives keeps those that it has let go of:
 * they are no part of its mapping any more. */
static uint32_t take_page(void)
{
    const uint32_t first = atomic_fetch_add(&world->next_page, 1);
    for (uint32_t i = 0; i < HCA_PAGES; i++) {
        const uint32_t page = (first + i) % HCA_PAGES;
        int32_t nobody = 0;
        if (!atomic_compare_exchange_strong(&world->owner[page], &nobody, (int32_t)getpid()))
            continue;
        memset(world->page[page], 0, HCA_PAGE_BYTES);
        return page;
    }
    return HCA_PAGES;
}

/* A page of registers, by the number that its offset says; any other kind is refused. */
static void *map_registers(hca_context *c, size_t bytes, off_t offset)
{
    uint64_t word = (uint64_t)offset / HCA_PAGE_BYTES, number = word & 0xff;
    uint32_t command = (uint32_t)(word >> MAP_COMMAND_BITS & 0xff);
    number |= word >> 16 << MAP_COMMAND_BITS;
    if (command > 2 || bytes != HCA_PAGE_BYTES || number >= HCA_REGISTERS_A_CONTEXT) {
        errno = EOPNOTSUPP;
        return MAP_FAILED;
    }
    uint32_t page = take_page();
    if (page == HCA_PAGES)
        hca_sweep(world);
    page = page == HCA_PAGES ? take_page() : page;
    if (page == HCA_PAGES) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    c->page[number] = page;
    if (world->form.by_steps)
        hca_step_page(world, page);
    return world->page[page];
}

enum { NO_EVENTS, HAS_EVENTS, IS_TOLD };
static _Atomic char events_at[FILES];

/* ---- what libibverbs and libmlx5 call ---- */

int stat(const char *path, struct stat *out)
{
    if (!is_device(path))
        return REAL(stat)(path, out);
    describe_device(out);
    return 0;
}

int fstat(int file, struct stat *out)
{
    if (!context_of(file))
        return REAL(fstat)(file, out);
    describe_device(out);
    return 0;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return is_device(path) ? open_device() : REAL(open)(path, flags, mode);
}

int close(int file)
{
    hca_context *closed = context_of(file);
    if (closed) {
        context[file] = NULL;
        if (closed->events >= 0)
            REAL(close)(closed->events);
        free(closed);
    }
    if (file >= 0 && file < FILES)
        atomic_store(&events_at[file], NO_EVENTS);
    return REAL(close)(file);
}

int socket(int domain, int type, int protocol)
{
    if (world && domain == AF_NETLINK && protocol == NETLINK_RDMA) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return REAL(socket)(domain, type, protocol);
}

int ioctl(int file, unsigned long request, ...)
{
    va_list more;
    va_start(more, request);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (context_of(file)) {
        errno = ENOTTY;
        return -1;
    }
    return REAL(ioctl)(file, request, argument);
}

void *mmap(void *at, size_t bytes, int rights, int flags, int file, off_t offset)
{
    hca_context *c = context_of(file);
    return c ? map_registers(c, bytes, offset) : REAL(mmap)(at, bytes, rights, flags, file, offset);
}

static bool is_of_world(const void *at)
{
    const char *byte = at;
    return world && byte >= (char *)world && byte < (char *)(world + 1);
}

/* Who would have registers at another address, too, has them where each store is seen. */
void *mremap(void *at, size_t bytes, size_t new_bytes, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    return bytes == 0 && is_of_world(at) ? at : REAL(mremap)(at, bytes, new_bytes, flags, to);
}

int munmap(void *at, size_t bytes)
{
    return is_of_world(at) ? 0 : REAL(munmap)(at, bytes);
}

ssize_t write(int file, const void *from, size_t bytes)
{
    hca_context *c = context_of(file);
    if (!c || bytes < sizeof(uint64_t))
        return REAL(write)(file, from, bytes);
    pthread_mutex_lock(&lock);
    ssize_t done = hca_command(world, c, from, bytes);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

/* ---- asynchronous events ---- */

void hca_tell_events_at(int file)
{
    if (file < FILES)
        atomic_store(&events_at[file], HAS_EVENTS);
}

/* A port that has gone down is told once to each who has opened the device. */
ssize_t read(int file, void *to, size_t bytes)
{
    const struct ib_uverbs_async_event_desc down = {.element = 1, .event_type = IBV_EVENT_PORT_ERR};
    static __typeof__(read) *plain;
    char untold = HAS_EVENTS;
    if (!plain)
        plain = REAL(read);
    if (!world || file < 0 || file >= FILES || bytes < sizeof(down) ||
        !atomic_load(&world->is_down) ||
        !atomic_compare_exchange_strong(&events_at[file], &untold, IS_TOLD))
        return plain(file, to, bytes);
    memcpy(to, &down, sizeof(down));
    return sizeof(down);
}

/* The names that programs built with _FORTIFY_SOURCE or for large files call. */
int stat64(const char *path, struct stat64 *out)
{
    return stat(path, (struct stat *)(void *)out);
}

int fstat64(int file, struct stat64 *out)
{
    return fstat(file, (struct stat *)(void *)out);
}

int open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return open(path, flags, mode);
}

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

int __open_2(const char *path, int flags)
{
    return open(path, flags, 0);
}

int __open64_2(const char *path, int flags)
{
    return open(path, flags, 0);
}

void *mmap64(void *at, size_t bytes, int rights, int flags, int file, off64_t offset)
{
    return mmap(at, bytes, rights, flags, file, offset);
}
