/* A library to preload: the n-th call of a kind that peal's own code makes fails, or ends the
 * process.
 *
 *     INJECT="KIND:N[:ERROR]"   KIND: memory, write, file (whatever makes a descriptor, rename,
 * size, fsync, map), thread (or process), or kill: the N-th call of any of these ends the process
 * by SIGKILL. ERROR: ENOSPC (write), EIO, EMFILE ...; 0: half of a write is done. INJECT_RANK=R in
 * the process of this number (PEAL_LAUNCH_PROCESS); "none": in one without INJECT_TRACE=1 says to
 * stderr which call of peal's it was, for addr2line INJECT_COUNT=FILE         nothing fails; each
 * process appends "RANK memory write file thread" at its end
 *
 * Whose call it is tells the return address: libraries and the compilers that peal starts are left
 * alone, as what happens in them is not peal's to answer for. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum kind { MEMORY, WRITE, FILES, THREADS, KINDS } kind;

static const char *const kind_names[KINDS] = {"memory", "write", "file", "thread"};
static _Atomic long calls[KINDS], all_calls;
static uintptr_t base, program_begin, program_end;
enum { MOST_COUNTERS = 1024 };
static bool is_counter[MOST_COUNTERS]; /* eventfds, which cannot be full */
static bool is_active;
static int chosen = -1, failure = EIO; /* KINDS: kill */
static long number = -1;

static int look_at_program(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
            program_begin = info->dlpi_addr + part->p_vaddr;
            program_end = program_begin + part->p_memsz;
        }
    }
    return 1; /* the first one is the program */
}

static bool is_chosen_process(void)
{
    char name[4096];
    const char *rank = getenv("PEAL_LAUNCH_PROCESS"), *wanted = getenv("INJECT_RANK");
    ssize_t length = readlink("/proc/self/exe", name, sizeof(name) - 1);
    name[length > 0 ? length : 0] = 0;
    const char *program = strrchr(name, '/');
    if (!program || strcmp(program, "/peal") != 0)
        return false;
    return !wanted || !strcmp(wanted, rank ? rank : "none");
}

static int error_of(const char *name)
{
    static const struct {
        const char *name;
        int value;
    } known[] = {{"0", 0},           {"ENOSPC", ENOSPC}, {"EIO", EIO},      {"EMFILE", EMFILE},
                 {"EACCES", EACCES}, {"EINTR", EINTR},   {"EDQUOT", EDQUOT}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(name, known[i].name))
            return known[i].value;
    return EIO;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("INJECT");
    char name[16] = "", error[16] = "EIO";
    if (!is_chosen_process())
        return;
    dl_iterate_phdr(look_at_program, NULL);
    is_active = true;
    if (!text || sscanf(text, "%15[^:]:%ld:%15s", name, &number, error) < 2)
        return;
    failure = error_of(error);
    chosen = !strcmp(name, "kill") ? KINDS : -1;
    for (int k = 0; k < KINDS; k++)
        if (!strcmp(name, kind_names[k]))
            chosen = k;
}

__attribute__((destructor)) static void end(void)
{
    const char *file = getenv("INJECT_COUNT"), *rank = getenv("PEAL_LAUNCH_PROCESS");
    char line[128];
    if (!is_active || !file)
        return;
    is_active = false;
    int length = snprintf(line, sizeof(line), "%s %ld %ld %ld %ld\n", rank ? rank : "none",
                          calls[MEMORY], calls[WRITE], calls[FILES], calls[THREADS]);
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd >= 0 && write(fd, line, (size_t)length) != length)
        abort();
    if (fd >= 0)
        close(fd);
}

/* Whether this call is the one. */
static bool fails(kind k, const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    if (!is_active || at < program_begin || at >= program_end)
        return false;
    long mine = calls[k]++, any = all_calls++;
    if (chosen == KINDS && any == number)
        kill(getpid(), SIGKILL);
    if ((int)k != chosen || mine != number)
        return false;
    if (getenv("INJECT_TRACE"))
        dprintf(2, "inject: %s %ld from +0x%lx\n", kind_names[k], mine, (unsigned long)(at - base));
    errno = k == MEMORY ? ENOMEM : k == THREADS ? EAGAIN : failure;
    return true;
}

#define HERE       __builtin_return_address(0)
#define REAL(name) real_##name
#define FIND(name)                                                                                 \
    static __typeof__(name) *real_##name;                                                          \
    if (!real_##name)                                                                              \
    *(void **)&real_##name = dlsym(RTLD_NEXT, #name)

/* ---- memory: dlsym itself allocates, so glibc's own names ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

void *malloc(size_t bytes)
{
    return fails(MEMORY, HERE) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails(MEMORY, HERE) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return fails(MEMORY, HERE) ? NULL : __libc_realloc(memory, bytes);
}

char *strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = fails(MEMORY, HERE) ? NULL : __libc_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int __asprintf_chk(char **out, int flag, const char *format, ...);
int __asprintf_chk(char **out, int flag, const char *format, ...)
{
    va_list rest;
    (void)flag;
    if (fails(MEMORY, HERE))
        return -1;
    va_start(rest, format);
    int length = vasprintf(out, format, rest);
    va_end(rest);
    return length;
}

FILE *open_memstream(char **text, size_t *bytes)
{
    FIND(open_memstream);
    return fails(MEMORY, HERE) ? NULL : REAL(open_memstream)(text, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    FIND(mmap);
    if (fails(FILES, HERE)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return REAL(mmap)(at, bytes, protection, flags, fd, offset);
}

/* ---- writes ---- */

ssize_t write(int fd, const void *data, size_t bytes)
{
    FIND(write);
    if ((fd < MOST_COUNTERS && fd >= 0 && is_counter[fd]) || !fails(WRITE, HERE))
        return REAL(write)(fd, data, bytes);
    return failure ? -1 : REAL(write)(fd, data, (bytes + 1) / 2);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    FIND(pwrite);
    if (!fails(WRITE, HERE))
        return REAL(pwrite)(fd, data, bytes, offset);
    return failure ? -1 : REAL(pwrite)(fd, data, (bytes + 1) / 2, offset);
}

/* ---- files ---- */

static mode_t mode_of(int flags, va_list *rest)
{
    return (flags & (O_CREAT | O_TMPFILE)) ? (mode_t)va_arg(*rest, int) : 0;
}

int open(const char *path, int flags, ...)
{
    FIND(open);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, &rest);
    va_end(rest);
    return fails(FILES, HERE) ? -1 : REAL(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    FIND(openat);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, &rest);
    va_end(rest);
    return fails(FILES, HERE) ? -1 : REAL(openat)(folder, path, flags, mode);
}

#define MAKES(type, none, name, parameters, arguments)                                             \
    type name parameters                                                                           \
    {                                                                                              \
        FIND(name);                                                                                \
        return fails(FILES, HERE) ? none : REAL(name) arguments;                                   \
    }

MAKES(FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
MAKES(FILE *, NULL, fdopen, (int fd, const char *mode), (fd, mode))
MAKES(DIR *, NULL, opendir, (const char *path), (path))
MAKES(DIR *, NULL, fdopendir, (int fd), (fd))
MAKES(int, -1, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
MAKES(int, -1, ftruncate, (int fd, off_t bytes), (fd, bytes))
MAKES(int, -1, fsync, (int fd), (fd))
MAKES(int, -1, memfd_create, (const char *name, unsigned flags), (name, flags))
MAKES(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
MAKES(char *, NULL, mkdtemp, (char *path), (path))
MAKES(int, -1, dup, (int fd), (fd))
MAKES(int, -1, pipe2, (int pair[2], int flags), (pair, flags))
MAKES(int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))
MAKES(int, -1, socketpair, (int domain, int type, int protocol, int pair[2]),
      (domain, type, protocol, pair))
MAKES(int, -1, epoll_create1, (int flags), (flags))
MAKES(int, -1, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags))

int eventfd(unsigned count, int flags)
{
    FIND(eventfd);
    int fd = fails(FILES, HERE) ? -1 : REAL(eventfd)(count, flags);
    if (fd >= 0 && fd < MOST_COUNTERS)
        is_counter[fd] = true;
    return fd;
}

/* ---- threads and processes ---- */

pid_t fork(void)
{
    FIND(fork);
    return fails(THREADS, HERE) ? -1 : REAL(fork)();
}

int pthread_create(pthread_t *out, const pthread_attr_t *with, void *(*run)(void *), void *argument)
{
    FIND(pthread_create);
    return fails(THREADS, HERE) ? EAGAIN : REAL(pthread_create)(out, with, run, argument);
}
