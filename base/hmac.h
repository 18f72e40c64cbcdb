/* HMAC-SHA-256 (RFC 2104, FIPS 198-1): proves that who made a message knows a key. */
#ifndef PEAL_BASE_HMAC_H
#define PEAL_BASE_HMAC_H

#include "base/sha256.h"

#include <stdbool.h>

typedef struct peal_hmac {
    peal_sha256 inner;
    unsigned char outer_key[64];
} peal_hmac;

void peal_hmac_init(peal_hmac *mac, const void *key, size_t bytes);
void peal_hmac_add(peal_hmac *mac, const void *data, size_t bytes);
void peal_hmac_finish(peal_hmac *mac, unsigned char code[PEAL_SHA256_BYTES]);

/* Compares in a time that does not depend on where they differ. */
bool peal_hmac_equal(const unsigned char *a, const unsigned char *b, size_t bytes);

#endif
