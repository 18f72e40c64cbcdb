/* Segments: all pages there, sealed, too much refused before the run. */
#define _GNU_SOURCE
#include "runtime/memory/available.h"
#include "runtime/memory/segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_zero(const peal_segment *segment)
{
    for (int64_t i = 0; i < segment->bytes; i++)
        if (segment->base[i])
            return false;
    return true;
}

static void check_private(void **state)
{
    peal_segment segment;
    (void)state;
    assert_int_equal(peal_segment_create(100000, false, NULL, &segment), PEAL_STATUS_OK);
    assert_true(segment.bytes >= 100000);
    assert_int_equal(segment.bytes % sysconf(_SC_PAGESIZE), 0);
    assert_int_equal(segment.descriptor, -1);
    assert_true(is_zero(&segment));
    memset(segment.base, 1, (size_t)segment.bytes);
    peal_segment_destroy(&segment);
    assert_null(segment.base);
    peal_segment_destroy(&segment);
    peal_segment_destroy(NULL);
}

static void check_empty(void **state)
{
    peal_segment segment;
    (void)state;
    assert_int_equal(peal_segment_create(0, true, NULL, &segment), PEAL_STATUS_OK);
    assert_true(segment.bytes > 0);
    peal_segment_destroy(&segment);
}

/* Pages behind what is used are not made, here nor by an import. */
static int pages_there(const peal_segment *segment)
{
    static unsigned char there[4096];
    int64_t page = sysconf(_SC_PAGESIZE);
    int count = 0;
    assert_true(segment->bytes / page <= (int64_t)sizeof(there));
    assert_int_equal(mincore(segment->base, (size_t)segment->bytes, there), 0);
    for (int64_t i = 0; i < segment->bytes / page; i++)
        count += there[i] & 1;
    return count;
}

static void check_used(void **state)
{
    int page = (int)sysconf(_SC_PAGESIZE);
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        peal_segment mine, theirs;
        assert_int_equal(peal_segment_create_used(4 << 20, 1 << 20, shared, NULL, &mine),
                         PEAL_STATUS_OK);
        assert_int_equal(mine.bytes, 4 << 20);
        assert_int_equal(pages_there(&mine), (1 << 20) / page);
        if (shared) {
            int copy = fcntl(mine.descriptor, F_DUPFD_CLOEXEC, 0);
            assert_int_equal(peal_segment_import(copy, 4 << 20, NULL, &theirs), PEAL_STATUS_OK);
            assert_int_equal(pages_there(&mine), (1 << 20) / page);
            theirs.base[(1 << 20) - 1] = 1;
            assert_int_equal(mine.base[(1 << 20) - 1], 1);
            peal_segment_destroy(&theirs);
        }
        peal_segment_destroy(&mine);
    }
}

static void check_shared(void **state)
{
    peal_segment mine, theirs;
    struct stat info;
    (void)state;
    assert_int_equal(peal_segment_create(3 << 20, true, NULL, &mine), PEAL_STATUS_OK);
    assert_int_equal(fstat(mine.descriptor, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_true(is_zero(&mine));
    assert_true(fcntl(mine.descriptor, F_GETFD) & FD_CLOEXEC);
    int seals = fcntl(mine.descriptor, F_GET_SEALS);
    assert_int_equal(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
                     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    assert_int_equal(ftruncate(mine.descriptor, 4096), -1);
    assert_int_equal(ftruncate(mine.descriptor, 8 << 20), -1);

    int copy = fcntl(mine.descriptor, F_DUPFD_CLOEXEC, 0);
    assert_int_equal(peal_segment_import(copy, 3 << 20, NULL, &theirs), PEAL_STATUS_OK);
    assert_int_equal(theirs.bytes, mine.bytes);
    mine.base[12345] = 42;
    assert_int_equal(theirs.base[12345], 42);
    theirs.base[0] = 7;
    assert_int_equal(mine.base[0], 7);
    peal_segment_destroy(&mine); /* the other mapping stays */
    assert_int_equal(theirs.base[12345], 42);
    peal_segment_destroy(&theirs);
}

static peal_code only_code(const peal_diagnostics *list)
{
    assert_int_equal(peal_diagnostics_count(list), 1);
    return peal_diagnostics_at(list, 0)->code;
}

static void check_import_of_other_size(void **state)
{
    peal_segment mine, theirs = {NULL, 0, -1};
    peal_diagnostics *list = peal_diagnostics_create();
    (void)state;
    assert_int_equal(peal_segment_create(1 << 16, true, NULL, &mine), PEAL_STATUS_OK);
    int copy = fcntl(mine.descriptor, F_DUPFD_CLOEXEC, 0);
    assert_int_equal(peal_segment_import(copy, 1 << 17, list, &theirs), PEAL_STATUS_INTERNAL);
    assert_int_equal(only_code(list), PEAL_E_SHARED_MEMORY_MISMATCH);
    assert_int_equal(fcntl(copy, F_GETFD), -1); /* taken on failure too */
    assert_null(theirs.base);
    peal_segment_destroy(&mine);
    peal_diagnostics_destroy(list);
}

static void check_import_of_unsealed(void **state)
{
    peal_segment theirs = {NULL, 0, -1};
    peal_diagnostics *list = peal_diagnostics_create();
    (void)state;
    int open = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(open, 1 << 16), 0);
    assert_int_equal(peal_segment_import(open, 1 << 16, list, &theirs), PEAL_STATUS_INTERNAL);
    assert_int_equal(only_code(list), PEAL_E_SHARED_MEMORY_MISMATCH);
    peal_diagnostics_destroy(list);
}

static void check_too_much(void **state)
{
    const int64_t sizes[] = {INT64_C(1) << 50, INT64_MAX - 1, -5};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int shared = 0; shared < 2; shared++) {
            peal_segment segment = {NULL, 0, -1};
            peal_diagnostics *list = peal_diagnostics_create();
            assert_int_equal(peal_segment_create(sizes[i], shared, list, &segment),
                             PEAL_STATUS_ENVIRONMENT);
            assert_int_equal(only_code(list), PEAL_E_NOT_ENOUGH_MEMORY);
            assert_null(segment.base);
            const char *message = peal_diagnostics_at(list, 0)->message;
            if (i == 0) {
                assert_non_null(strstr(message, "1125899906842624"));
                assert_non_null(strstr(message, "this process can have "));
            }
            peal_diagnostics_destroy(list);
        }
}

/* In a forked process, whose limits are its own: the exit code is the status. */
static int create_under_limit(int resource, rlim_t bytes, bool shared, char *message, size_t size)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        struct rlimit limit = {bytes, bytes};
        peal_segment segment;
        peal_diagnostics *list = peal_diagnostics_create();
        setrlimit(resource, &limit);
        int result = (int)peal_segment_create(1 << 20, shared, list, &segment);
        const char *text =
            peal_diagnostics_count(list) ? peal_diagnostics_at(list, 0)->message : "";
        if (write(ends[1], text, strlen(text) + 1) < 0)
            result = 99;
        _exit(result);
    }
    close(ends[1]);
    assert_true(read(ends[0], message, size) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void check_limits(void **state)
{
    char message[400];
    (void)state;
    assert_int_equal(create_under_limit(RLIMIT_FSIZE, 1 << 16, true, message, sizeof(message)),
                     PEAL_STATUS_ENVIRONMENT);
    assert_non_null(strstr(message, "needs 1048576 bytes of memory, this process can have 65536"));
    assert_non_null(strstr(message, "ulimit -f"));
    assert_int_equal(create_under_limit(RLIMIT_FSIZE, 1 << 16, false, message, sizeof(message)),
                     PEAL_STATUS_OK);
    assert_int_equal(create_under_limit(RLIMIT_FSIZE, 1 << 20, true, message, sizeof(message)),
                     PEAL_STATUS_OK);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void remove_tree(const char *folder)
{
    DIR *entries = opendir(folder);
    if (entries) {
        for (struct dirent *entry; (entry = readdir(entries));) {
            char path[700];
            if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
                continue;
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            if (unlink(path))
                remove_tree(path);
        }
        closedir(entries);
    }
    rmdir(folder);
}

/* Machines that are not at hand: their files in a folder. */
static void check_available(void **state)
{
    char folder[] = "/tmp/peal-test-XXXXXX", reason[200];
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(peal_memory_available(folder, reason, sizeof(reason)), INT64_MAX);
    write_file(folder, "proc/meminfo",
               "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000 kB\n");
    assert_int_equal(peal_memory_available(folder, reason, sizeof(reason)), 8000 * 1024);
    assert_string_equal(reason, "memory of the machine");

    write_file(folder, "proc/self/cgroup", "0::/a/b\n");
    write_file(folder, "sys/fs/cgroup/a/b/memory.max", "max\n");
    write_file(folder, "sys/fs/cgroup/a/b/memory.current", "5\n");
    write_file(folder, "sys/fs/cgroup/a/memory.max", "1000000\n");
    write_file(folder, "sys/fs/cgroup/a/memory.current", "600000\n");
    write_file(folder, "sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 1000\n");
    assert_int_equal(peal_memory_available(folder, reason, sizeof(reason)), 401000);
    assert_string_equal(reason, "control group /a");

    write_file(folder, "proc/self/cgroup", "3:cpu:/x\n7:hugetlb,memory:/x\n0::/\n");
    write_file(folder, "sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9000\n");
    write_file(folder, "sys/fs/cgroup/memory/x/memory.usage_in_bytes", "9500\n");
    assert_int_equal(peal_memory_available(folder, reason, sizeof(reason)), 0);
    assert_string_equal(reason, "control group /x");
    remove_tree(folder);
}

/* As `ulimit -v` would have it, a little above what this process has. */
static void check_address_space(void **state)
{
    const int64_t room = 1 << 26;
    long long pages = 0;
    char reason[200];
    struct rlimit before, limit;
    (void)state;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_true(file && fscanf(file, "%lld", &pages) == 1);
    fclose(file);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)(pages * sysconf(_SC_PAGESIZE) + room);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    int64_t left = peal_address_space_left(),
            least = peal_memory_available("", reason, sizeof(reason));
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_in_range(left, room / 2, room);
    assert_in_range(least, 0, room);
    if (least == left) /* the machine may have less */
        assert_string_equal(reason, "address space, ulimit -v");
    if (before.rlim_cur == RLIM_INFINITY)
        assert_int_equal(peal_address_space_left(), INT64_MAX);
}

/* Processes of one host: each alone has room, all together have not. */
static void check_room(void **state)
{
    char folder[] = "/tmp/peal-test-XXXXXX";
    peal_memory_room all[3];
    int64_t need, have;
    int sharers;
    const char *name;
    (void)state;
    assert_non_null(mkdtemp(folder));
    write_file(folder, "proc/meminfo", "MemAvailable:    1000 kB\n");
    for (int p = 0; p < 3; p++)
        peal_memory_room_ask(folder, 400 * 1024, &all[p]);
    assert_false(peal_memory_room_exceeded(all, 2, &need, &have, &sharers, &name));
    assert_true(peal_memory_room_exceeded(all, 3, &need, &have, &sharers, &name));
    assert_int_equal(need, 1200 * 1024);
    assert_int_equal(have, 1000 * 1024);
    assert_int_equal(sharers, 3);
    assert_string_equal(name, "memory of the machine");

    /* Two in one control group, of version 2; the third in another, of version 1. */
    write_file(folder, "proc/self/cgroup", "0::/job/a\n");
    write_file(folder, "sys/fs/cgroup/job/a/memory.max", "700000\n");
    write_file(folder, "sys/fs/cgroup/job/a/memory.current", "200000\n");
    for (int p = 0; p < 2; p++)
        peal_memory_room_ask(folder, 300000, &all[p]);
    write_file(folder, "proc/self/cgroup", "7:memory:/b\n");
    write_file(folder, "sys/fs/cgroup/memory/b/memory.limit_in_bytes", "400000\n");
    write_file(folder, "sys/fs/cgroup/memory/b/memory.usage_in_bytes", "50000\n");
    peal_memory_room_ask(folder, 300000, &all[2]);
    assert_false(peal_memory_room_exceeded(all + 1, 2, &need, &have, &sharers, &name));
    assert_true(peal_memory_room_exceeded(all, 3, &need, &have, &sharers, &name));
    assert_int_equal(need, 600000);
    assert_int_equal(have, 500000);
    assert_int_equal(sharers, 2);
    assert_string_equal(name, "control group /job/a");
    all[1].need = INT64_MAX; /* a sum that overflows is too much, too */
    assert_true(peal_memory_room_exceeded(all, 3, &need, &have, &sharers, &name));
    assert_int_equal(need, INT64_MAX);
    remove_tree(folder);
}

static int count_entries(const char *folder)
{
    int count = 0;
    DIR *entries = opendir(folder);
    while (entries && readdir(entries))
        count++;
    if (entries)
        closedir(entries);
    return count;
}

/* A process that is killed with segments in its hands leaves no name behind. */
static void check_nothing_left(void **state)
{
    (void)state;
    int before = count_entries("/dev/shm");
    pid_t child = fork();
    if (!child) {
        peal_segment segment;
        if (peal_segment_create(1 << 20, true, NULL, &segment) != PEAL_STATUS_OK)
            _exit(1);
        raise(SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(count_entries("/dev/shm"), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_private),
        cmocka_unit_test(check_empty),
        cmocka_unit_test(check_shared),
        cmocka_unit_test(check_used),
        cmocka_unit_test(check_import_of_other_size),
        cmocka_unit_test(check_import_of_unsealed),
        cmocka_unit_test(check_too_much),
        cmocka_unit_test(check_limits),
        cmocka_unit_test(check_available),
        cmocka_unit_test(check_address_space),
        cmocka_unit_test(check_room),
        cmocka_unit_test(check_nothing_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
