/* HMAC-SHA-256 against the vectors of RFC 4231, and SHA-256 against those of FIPS 180-2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/hmac.h"

#include <string.h>

static void expect_digest(const unsigned char digest[PEAL_SHA256_BYTES], const char *expected)
{
    char text[PEAL_SHA256_TEXT];
    peal_sha256_text(digest, text);
    text[strlen(expected)] = 0;
    assert_string_equal(text, expected);
}

/* In pieces of so many bytes: all at once and piece by piece are the same. */
static void expect_code(const void *key, size_t key_bytes, const void *data, size_t bytes,
                        const char *expected)
{
    for (size_t piece = 1; piece <= bytes + 1; piece += piece + 4) {
        unsigned char code[PEAL_SHA256_BYTES];
        peal_hmac mac;
        peal_hmac_init(&mac, key, key_bytes);
        for (size_t at = 0; at < bytes; at += piece)
            peal_hmac_add(&mac, (const char *)data + at, bytes - at < piece ? bytes - at : piece);
        peal_hmac_finish(&mac, code);
        expect_digest(code, expected);
    }
}

static void test_sha256(void **state)
{
    static const struct {
        const char *text, *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    unsigned char digest[PEAL_SHA256_BYTES];
    peal_sha256 hash;
    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        peal_sha256_init(&hash);
        peal_sha256_add(&hash, known[i].text, strlen(known[i].text));
        peal_sha256_finish(&hash, digest);
        expect_digest(digest, known[i].digest);
    }
    peal_sha256_init(&hash);
    for (int i = 0; i < 1000000; i++)
        peal_sha256_add(&hash, "a", 1);
    peal_sha256_finish(&hash, digest);
    expect_digest(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_rfc_4231(void **state)
{
    unsigned char key[131], data[50];
    (void)state;
    memset(key, 0x0b, 20);
    expect_code(key, 20, "Hi There", 8,
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    expect_code("Jefe", 4, "what do ya want for nothing?", 28,
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    memset(data, 0xdd, sizeof(data));
    expect_code(key, 20, data, 50,
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    for (int i = 0; i < 25; i++)
        key[i] = (unsigned char)(i + 1);
    memset(data, 0xcd, sizeof(data));
    expect_code(key, 25, data, 50,
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    memset(key, 0x0c, 20);
    expect_code(key, 20, "Test With Truncation", 20, "a3b6167473100ee06e0c796c2955552b");
    memset(key, 0xaa, sizeof(key));
    expect_code(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    expect_code(key, 131,
                "This is a test using a larger than block-size key and a larger than block-size "
                "data. The key needs to be hashed before being used by the HMAC algorithm.",
                152, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

static void test_equal(void **state)
{
    unsigned char a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[8];
    (void)state;
    memcpy(b, a, sizeof(b));
    assert_true(peal_hmac_equal(a, b, sizeof(a)));
    for (int i = 0; i < 64; i++) {
        b[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_false(peal_hmac_equal(a, b, sizeof(a)));
        b[i / 8] = a[i / 8];
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_rfc_4231),
        cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
