/* The floor of bench/network.py: COUNT messages of BYTES there, and as many back, over one TCP
 * connection between two processes of this host: as few system calls as there can be.
 * `network_floor BYTES COUNT ROUNDS spin|sleep` (what who waits does) prints nanoseconds one way,
 * the median of rounds. */
#include "measure.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void fill(unsigned char *data, size_t bytes, int round)
{
    for (size_t i = 0; i < bytes; i += 509)
        data[i] = (unsigned char)(round + (int)(i / 509));
}

static bool is_filled(const unsigned char *data, size_t bytes, int round)
{
    for (size_t i = 0; i < bytes; i += 509)
        if (data[i] != (unsigned char)(round + (int)(i / 509)))
            return false;
    return true;
}

static void give(int line, const unsigned char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t now = send(line, data + done, bytes - done, 0);
        if (now < 0)
            die("send");
        done += (size_t)now;
    }
}

static int wait_flags; /* MSG_DONTWAIT: spin; MSG_WAITALL: sleep until all is there */

static void take(int line, unsigned char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t now = recv(line, data + done, bytes - done, wait_flags);
        if (now == 0)
            exit(1);
        done += now > 0 ? (size_t)now : 0;
    }
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Messages of a side go by one call, as who knows them all can. */
static int play(int line, bool begins, size_t bytes, int rounds)
{
    /* On pages: what is received a few bytes behind the start of one is copied at a third of the
     * speed (AMD). */
    size_t whole = (bytes + 4095) / 4096 * 4096;
    unsigned char *out = aligned_alloc(4096, whole), *in = aligned_alloc(4096, whole);
    double *ns = calloc((size_t)rounds, sizeof(*ns));
    int one = 1, wrong = 0;
    setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    memset(out, 0, bytes);
    for (int i = -rounds / 10; i < rounds; i++) {
        double begin = bench_now_ns();
        fill(out, bytes, i);
        if (begins)
            give(line, out, bytes);
        take(line, in, bytes);
        if (!begins)
            give(line, out, bytes);
        if (i >= 0)
            ns[i] = (bench_now_ns() - begin) / 2;
        wrong += !is_filled(in, bytes, i);
    }
    qsort(ns, (size_t)rounds, sizeof(*ns), by_value);
    if (begins)
        printf("%.1f\n", ns[rounds / 2]);
    free(out);
    free(in);
    free(ns);
    return wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    wait_flags = strcmp(argv[4], "sleep") ? MSG_DONTWAIT : MSG_WAITALL;
    size_t bytes = strtoul(argv[1], NULL, 10) * strtoul(argv[2], NULL, 10);
    int rounds = atoi(argv[3]), status = 0;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0), line;
    if (bind(listener, (struct sockaddr *)&at, size) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &size))
        die("listen");
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        line = accept(listener, NULL, NULL);
        return play(line, false, bytes, rounds);
    }
    bench_pin(0);
    line = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(line, (struct sockaddr *)&at, size))
        die("connect");
    int own = play(line, true, bytes, rounds);
    fflush(stdout);
    waitpid(child, &status, 0);
    return own || status;
}
