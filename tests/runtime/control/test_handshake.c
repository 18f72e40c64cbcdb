/* The handshake of connections between hosts: whom it lets in, and who stays out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/control/handshake.h"
#include "runtime/control/wire.h"

#include <string.h>

enum { SECRET = 1, OTHER_SECRET = 2 };

static const peal_caller caller = {PEAL_HELLO_STREAM, 3, 70};

/* What went over a connection. */
typedef struct transcript {
    unsigned char challenge[PEAL_CHALLENGE_BYTES], call[PEAL_CALL_BYTES], answer[PEAL_ANSWER_BYTES];
} transcript;

static void begin(peal_handshake *called, int secret, int nonce)
{
    unsigned char key[PEAL_SECRET_BYTES], once[PEAL_NONCE_BYTES];
    memset(key, secret, sizeof(key));
    memset(once, nonce, sizeof(once));
    peal_handshake_called(called, key, once);
}

static void call(peal_handshake *calls, int secret, int nonce, peal_caller who)
{
    unsigned char key[PEAL_SECRET_BYTES], once[PEAL_NONCE_BYTES];
    memset(key, secret, sizeof(key));
    memset(once, nonce, sizeof(once));
    peal_handshake_calls(calls, key, once, who);
}

/* What a side says now. */
static void expect_said(peal_handshake *h, void *out, size_t expected)
{
    size_t bytes;
    const void *said = peal_handshake_say(h, &bytes);
    assert_int_equal(bytes, expected);
    memcpy(out, said, bytes);
    assert_null(peal_handshake_say(h, &bytes));
}

static void expect_silent(peal_handshake *h)
{
    size_t bytes;
    assert_null(peal_handshake_say(h, &bytes));
    assert_int_equal(bytes, 0);
}

static void take(peal_handshake *h, const void *data, size_t bytes, size_t piece)
{
    for (size_t at = 0; at < bytes; at += piece) {
        size_t part = bytes - at < piece ? bytes - at : piece;
        assert_int_equal(peal_handshake_take(h, (const char *)data + at, part), part);
    }
}

/* Both sides to the end, in pieces of so many bytes. */
static transcript shake(size_t piece, int nonce)
{
    peal_handshake called, calls;
    transcript t = {{0}};
    begin(&called, SECRET, nonce);
    call(&calls, SECRET, nonce + 1, caller);
    expect_silent(&calls);
    expect_said(&called, t.challenge, sizeof(t.challenge));
    take(&calls, t.challenge, sizeof(t.challenge), piece);
    expect_said(&calls, t.call, sizeof(t.call));
    assert_int_equal(calls.state, PEAL_HANDSHAKE_GOES_ON);
    peal_handshake moved = called; /* as tables do */
    memset(&called, 0, sizeof(called));
    take(&moved, t.call, sizeof(t.call), piece);
    expect_said(&moved, t.answer, sizeof(t.answer));
    assert_int_equal(moved.state, PEAL_HANDSHAKE_DONE);
    assert_memory_equal(&moved.caller, &caller, sizeof(caller));
    take(&calls, t.answer, sizeof(t.answer), piece);
    assert_int_equal(calls.state, PEAL_HANDSHAKE_DONE);
    /* What follows is the stream's. */
    assert_int_equal(peal_handshake_take(&moved, "stream", 6), 0);
    assert_int_equal(peal_handshake_take(&calls, "stream", 6), 0);
    return t;
}

static bool holds(const void *bytes, size_t count, const void *part, size_t part_count)
{
    for (size_t at = 0; at + part_count <= count; at++)
        if (!memcmp((const char *)bytes + at, part, part_count))
            return true;
    return false;
}

static void test_one_job(void **state)
{
    unsigned char secret[PEAL_SECRET_BYTES];
    (void)state;
    memset(secret, SECRET, sizeof(secret));
    transcript whole = shake(1000, 5);
    for (size_t piece = 1; piece < 40; piece++) {
        transcript t = shake(piece, 5);
        assert_memory_equal(&t, &whole, sizeof(t));
    }
    assert_false(holds(&whole, sizeof(whole), secret, 4));
    /* Another nonce changes all codes. */
    transcript other = shake(1000, 50);
    assert_memory_not_equal(other.answer, whole.answer, sizeof(other.answer));
    assert_memory_not_equal(other.call + 40, whole.call + 40, 24);
}

static void expect_called(const unsigned char *call_bytes, int secret, int nonce,
                          peal_handshake_state expected)
{
    unsigned char challenge[PEAL_CHALLENGE_BYTES];
    peal_handshake called;
    begin(&called, secret, nonce);
    expect_said(&called, challenge, sizeof(challenge));
    take(&called, call_bytes, PEAL_CALL_BYTES, 64);
    assert_int_equal(called.state, expected);
    if (expected != PEAL_HANDSHAKE_DONE)
        expect_silent(&called);
}

/* A bit that is changed anywhere, on the way to either side. */
static void test_changed_bits(void **state)
{
    (void)state;
    transcript t = shake(64, 5);
    for (int bit = 0; bit < 8 * PEAL_CALL_BYTES; bit++) {
        peal_handshake_state expected = bit < 64   ? PEAL_HANDSHAKE_NO_PEAL
                                        : bit < 96 ? PEAL_HANDSHAKE_OTHER_VERSION
                                                   : PEAL_HANDSHAKE_NOT_PROVED;
        t.call[bit / 8] ^= (unsigned char)(1 << bit % 8);
        expect_called(t.call, SECRET, 5, expected);
        t.call[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    expect_called(t.call, SECRET, 5, PEAL_HANDSHAKE_DONE);
    for (int bit = 0; bit < 8 * PEAL_CHALLENGE_BYTES; bit++) {
        peal_handshake calls;
        unsigned char said[PEAL_CALL_BYTES];
        t.challenge[bit / 8] ^= (unsigned char)(1 << bit % 8);
        call(&calls, SECRET, 6, caller);
        take(&calls, t.challenge, sizeof(t.challenge), 32);
        t.challenge[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (bit < 96) {
            assert_int_equal(calls.state,
                             bit < 64 ? PEAL_HANDSHAKE_NO_PEAL : PEAL_HANDSHAKE_OTHER_VERSION);
            expect_silent(&calls);
            continue;
        }
        /* The one that is called does not know it: its answer is another one. */
        expect_said(&calls, said, sizeof(said));
        expect_called(said, SECRET, 5, PEAL_HANDSHAKE_NOT_PROVED);
        take(&calls, t.answer, sizeof(t.answer), 32);
        assert_int_equal(calls.state, PEAL_HANDSHAKE_NOT_PROVED);
    }
    for (int bit = 0; bit < 8 * PEAL_ANSWER_BYTES; bit++) {
        peal_handshake calls;
        unsigned char said[PEAL_CALL_BYTES];
        call(&calls, SECRET, 6, caller);
        take(&calls, t.challenge, sizeof(t.challenge), 32);
        expect_said(&calls, said, sizeof(said));
        t.answer[bit / 8] ^= (unsigned char)(1 << bit % 8);
        take(&calls, t.answer, sizeof(t.answer), 32);
        t.answer[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(calls.state, PEAL_HANDSHAKE_NOT_PROVED);
    }
}

/* Another job's secret; what was heard, said again; and said back to who said it. */
static void test_strangers(void **state)
{
    peal_handshake called, calls;
    unsigned char challenge[PEAL_CHALLENGE_BYTES], said[PEAL_CALL_BYTES];
    (void)state;
    transcript t = shake(64, 5);
    expect_called(t.call, OTHER_SECRET, 5, PEAL_HANDSHAKE_NOT_PROVED);
    expect_called(t.call, SECRET, 7, PEAL_HANDSHAKE_NOT_PROVED); /* replayed */

    call(&calls, SECRET, 9, caller); /* a replayed answer */
    take(&calls, t.challenge, sizeof(t.challenge), 32);
    expect_said(&calls, said, sizeof(said));
    take(&calls, t.answer, sizeof(t.answer), 32);
    assert_int_equal(calls.state, PEAL_HANDSHAKE_NOT_PROVED);

    call(&calls, SECRET, 6, caller); /* its own code as the answer */
    take(&calls, t.challenge, sizeof(t.challenge), 32);
    expect_said(&calls, said, sizeof(said));
    take(&calls, said + PEAL_CALL_BYTES - PEAL_ANSWER_BYTES, PEAL_ANSWER_BYTES, 32);
    assert_int_equal(calls.state, PEAL_HANDSHAKE_NOT_PROVED);

    begin(&called, SECRET, 5); /* its own challenge as the call, and an answer as the code */
    expect_said(&called, challenge, sizeof(challenge));
    memset(said, 0, sizeof(said));
    memcpy(said, challenge, sizeof(challenge));
    take(&called, said, sizeof(said), 64);
    assert_int_equal(called.state, PEAL_HANDSHAKE_NO_PEAL);
    memcpy(t.call + 40, t.answer, 24);
    expect_called(t.call, SECRET, 5, PEAL_HANDSHAKE_NOT_PROVED);
}

/* Who is refused hears nothing more, also if it had not listened yet. */
static void test_refused_in_silence(void **state)
{
    unsigned char garbage[PEAL_CALL_BYTES] = "pealcall";
    peal_handshake called;
    (void)state;
    garbage[8] = PEAL_WIRE_VERSION;
    begin(&called, SECRET, 5);
    take(&called, garbage, sizeof(garbage), 64);
    assert_int_equal(called.state, PEAL_HANDSHAKE_NOT_PROVED);
    expect_silent(&called);
}

/* Somebody else's protocol, or another version of peal. */
static void test_others(void **state)
{
    unsigned char http[PEAL_CALL_BYTES] =
        "GET / HTTP/1.1\r\nHost: 10.0.0.2:41222\r\nUser-Agent: x\r\n";
    peal_handshake called, calls;
    unsigned char challenge[PEAL_CHALLENGE_BYTES];
    (void)state;
    expect_called(http, SECRET, 5, PEAL_HANDSHAKE_NO_PEAL);
    call(&calls, SECRET, 6, caller);
    take(&calls, http, PEAL_CHALLENGE_BYTES, 32);
    assert_int_equal(calls.state, PEAL_HANDSHAKE_NO_PEAL);
    begin(&called, SECRET, 5);
    expect_said(&called, challenge, sizeof(challenge));
    challenge[8] = 77;
    call(&calls, SECRET, 6, caller);
    take(&calls, challenge, sizeof(challenge), 32);
    assert_int_equal(calls.state, PEAL_HANDSHAKE_OTHER_VERSION);
    assert_int_equal(calls.version, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_job),   cmocka_unit_test(test_changed_bits),
        cmocka_unit_test(test_strangers), cmocka_unit_test(test_refused_in_silence),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
