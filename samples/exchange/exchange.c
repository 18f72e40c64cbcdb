/* A program with its own arrays, its own decomposition and its own time loop. peal does one thing
 * for it: the halo exchange.
 *
 * Waves travel over a grid that is periodic in x and y and cut into stripes of rows, one a process.
 * How fast each wave turns is known exactly, so every process can tell in the end whether its rows
 * are right.
 *
 *     exchange [NX NY STEPS]
 *     mpirun -n 4 exchange */
#include <peal/exchange.h>
#include <peal/session.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double pi = 3.14159265358979323846;
static const double speed2 = 0.25; /* (speed * time step / grid spacing) squared */

/* This process's rows first .. end - 1 of two arrays, with one halo row more on each side: u[now]
 * is the present, the other one the past, which becomes the future. */
typedef struct stripe {
    int nx, ny;
    int first, end;
    double *u[2];
    peal_exchange *exchange;
    int now;
} stripe;

static double *row_of(const stripe *s, int which, int y)
{
    return s->u[which] + (int64_t)(y - s->first + 1) * s->nx;
}

/* Two waves that cross; each moves as cos(a x + b y - turn * step). */
static double wave_at(const stripe *s, int x, int y, int step)
{
    double sum = 0;
    for (int k = 1; k <= 2; k++) {
        double a = 2.0 * pi * k / s->nx, b = 2.0 * pi * (3 - 2 * k) / s->ny;
        double turn = acos(1.0 - speed2 * (2.0 - cos(a) - cos(b)));
        sum += cos(a * x + b * y - turn * step);
    }
    return sum;
}

/* The future of rows [from, to): twice the present, less the past, and what the neighbours pull. */
static void advance(const stripe *s, int from, int to)
{
    for (int y = from; y < to; y++) {
        const double *u = row_of(s, s->now, y);
        const double *below = row_of(s, s->now, y - 1), *above = row_of(s, s->now, y + 1);
        double *v = row_of(s, 1 - s->now, y);
        for (int x = 0; x < s->nx; x++) {
            double left = u[x > 0 ? x - 1 : s->nx - 1], right = u[x < s->nx - 1 ? x + 1 : 0];
            double pull = left + right + below[x] + above[x] - 4.0 * u[x];
            v[x] = 2.0 * u[x] - v[x] + speed2 * pull;
        }
    }
}

/* The time loop. Inner rows don't need the halo: they are advanced while the messages travel. */
static peal_status run(stripe *s, int steps)
{
    for (int step = 0; step < steps; step++) {
        peal_status status = peal_exchange_start(s->exchange, s->now, NULL);
        if (status != PEAL_STATUS_OK)
            return status;
        advance(s, s->first + 1, s->end - 1);
        status = peal_exchange_wait(s->exchange);
        if (status != PEAL_STATUS_OK)
            return status;
        advance(s, s->first, s->first + 1);
        if (s->end - s->first > 1)
            advance(s, s->end - 1, s->end);
        s->now = 1 - s->now;
    }
    return PEAL_STATUS_OK;
}

/* One exchange for the two arrays in turn, made once and started as often as needed. All that it
 * has to know is which points this process owns. */
static peal_status prepare(stripe *s, peal_session *session)
{
    int process = peal_session_process(session), processes = peal_session_processes(session);
    s->first = (int)((int64_t)s->ny * process / processes);
    s->end = (int)((int64_t)s->ny * (process + 1) / processes);
    size_t points = (size_t)(s->end - s->first + 2) * (size_t)s->nx;
    for (int which = 0; which < 2; which++) {
        s->u[which] = calloc(points, sizeof(double));
        if (!s->u[which])
            return PEAL_STATUS_ENVIRONMENT;
        for (int y = s->first; y < s->end; y++) /* u[0]: step 0, u[1]: the step before */
            for (int x = 0; x < s->nx; x++)
                row_of(s, which, y)[x] = wave_at(s, x, y, -which);
    }
    return peal_exchange_create(session, &s->exchange, .axis_count = 2, .lo = {0, s->first},
                                .hi = {s->nx, s->end}, .periodic = {true, true},
                                .field = {{PEAL_F64, .data = {s->u[0], s->u[1]},
                                           .bytes = (int64_t)(points * sizeof(double)),
                                           .width = {{0, 0}, {1, 1}}}});
}

static double largest_error(const stripe *s, int steps)
{
    double largest = 0;
    for (int y = s->first; y < s->end; y++)
        for (int x = 0; x < s->nx; x++)
            largest = fmax(largest, fabs(row_of(s, s->now, y)[x] - wave_at(s, x, y, steps)));
    return largest;
}

/* Says how it went; OK only if all rows are right. */
static peal_status report(const stripe *s, const peal_session *session, int steps)
{
    int right = largest_error(s, steps) < 1e-8;
    if (peal_session_process(session) == 0)
        printf("%d x %d points, %d steps, processes: %d\n", s->nx, s->ny, steps,
               peal_session_processes(session));
    printf("process %d of %d: rows %d to %d %s\n", peal_session_process(session),
           peal_session_processes(session), s->first, s->end - 1,
           right ? "are where the waves should be" : "are wrong");
    return right ? PEAL_STATUS_OK : PEAL_STATUS_WRONG_RESULT;
}

int main(int argc, char **argv)
{
    stripe s = {.nx = argc > 3 ? atoi(argv[1]) : 500, .ny = argc > 3 ? atoi(argv[2]) : 300};
    int steps = argc > 3 ? atoi(argv[3]) : 1000;
    if (s.nx < 1 || s.ny < 1 || steps < 0) {
        fprintf(stderr, "usage: exchange [NX NY STEPS]\n");
        return PEAL_STATUS_USAGE;
    }
    peal_session_desc desc = {.size_bytes = sizeof(desc),
                              .log_level = PEAL_LOG_ERROR,
                              .log = stderr};
    peal_session *session = NULL;
    peal_status status = peal_session_create(&desc, &session);
    if (status == PEAL_STATUS_OK)
        status = prepare(&s, session);
    if (status == PEAL_STATUS_OK)
        status = run(&s, steps);
    if (status == PEAL_STATUS_OK)
        status = report(&s, session, steps);
    peal_status outcome = peal_exchange_destroy(s.exchange); /* agrees that all were done */
    status = status == PEAL_STATUS_OK ? outcome : status;
    free(s.u[0]);
    free(s.u[1]);
    if (status != PEAL_STATUS_OK && session)
        peal_session_print_diagnostics(session, stderr, 0);
    if (status != PEAL_STATUS_OK)
        fprintf(stderr, "exchange: %s\n", peal_status_name(status));
    peal_session_destroy(session);
    return status;
}
