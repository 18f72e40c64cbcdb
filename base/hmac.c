/* HMAC-SHA-256: a hash of the message behind one form of the key, and a hash of that behind another
 * form. */
#include "base/hmac.h"

#include <string.h>

enum { BLOCK = 64 };

void peal_hmac_init(peal_hmac *mac, const void *key, size_t bytes)
{
    unsigned char inner_key[BLOCK] = {0};
    if (bytes > BLOCK) {
        peal_sha256 hash;
        peal_sha256_init(&hash);
        peal_sha256_add(&hash, key, bytes);
        peal_sha256_finish(&hash, inner_key);
    } else if (bytes) {
        memcpy(inner_key, key, bytes);
    }
    for (int i = 0; i < BLOCK; i++) {
        mac->outer_key[i] = inner_key[i] ^ 0x5c;
        inner_key[i] ^= 0x36;
    }
    peal_sha256_init(&mac->inner);
    peal_sha256_add(&mac->inner, inner_key, BLOCK);
}

void peal_hmac_add(peal_hmac *mac, const void *data, size_t bytes)
{
    peal_sha256_add(&mac->inner, data, bytes);
}

void peal_hmac_finish(peal_hmac *mac, unsigned char code[PEAL_SHA256_BYTES])
{
    unsigned char digest[PEAL_SHA256_BYTES];
    peal_sha256 outer;
    peal_sha256_finish(&mac->inner, digest);
    peal_sha256_init(&outer);
    peal_sha256_add(&outer, mac->outer_key, BLOCK);
    peal_sha256_add(&outer, digest, sizeof(digest));
    peal_sha256_finish(&outer, code);
}

bool peal_hmac_equal(const unsigned char *a, const unsigned char *b, size_t bytes)
{
    unsigned different = 0;
    for (size_t i = 0; i < bytes; i++)
        different |= (unsigned)(a[i] ^ b[i]);
    return different == 0;
}
