/* The contract of transports: each reaches what it says it reaches, through the site alone. */
#include "runtime/transports/transports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* A site of process 1 that hosts rank 2; process 2 is on this host, process 3 is not. */
static unsigned char here, there;
static int imports;

static bool same_host(void *user, int process)
{
    (void)user;
    return process != 3;
}

static unsigned char *hosted(void *user, int rank)
{
    (void)user;
    return rank == 2 ? &here : NULL;
}

static peal_status import(void *user, int process, int rank, int64_t bytes, unsigned char **base)
{
    (void)user;
    imports++;
    if (process != 2 || rank != 3 || bytes != 4096)
        return PEAL_STATUS_PEER_LOST;
    *base = &there;
    return PEAL_STATUS_OK;
}

static const peal_transport_site site = {
    .size = sizeof(site), .process = 1, .same_host = same_host, .hosted = hosted, .import = import};

static void every_kind_has_its_set_up(void **state)
{
    (void)state;
    for (int kind = 0; kind < PEAL_TRANSPORT_COUNT; kind++) {
        const peal_transport_ops *transport = peal_transport_of((peal_transport_kind)kind);
        assert_non_null(transport);
        assert_int_equal(transport->kind, kind);
        assert_int_equal(transport->size, sizeof(*transport));
    }
    assert_null(peal_transport_of(PEAL_TRANSPORT_COUNT));
}

static void self(void **state)
{
    (void)state;
    unsigned char *base = NULL;
    const peal_transport_ops *transport = peal_transport_of(PEAL_TRANSPORT_SELF);
    assert_null(transport->refuses(&site, 1));
    assert_non_null(transport->refuses(&site, 2));
    assert_int_equal(transport->attach(&site, 1, 2, 4096, &base), PEAL_STATUS_OK);
    assert_ptr_equal(base, &here);
    assert_int_equal(transport->attach(&site, 1, 3, 4096, &base), PEAL_STATUS_INTERNAL);
    assert_int_equal(imports, 0);
}

static void shm(void **state)
{
    (void)state;
    unsigned char *base = NULL;
    const peal_transport_ops *transport = peal_transport_of(PEAL_TRANSPORT_SHM);
    assert_null(transport->refuses(&site, 2));
    assert_non_null(transport->refuses(&site, 3));
    assert_int_equal(transport->attach(&site, 2, 3, 4096, &base), PEAL_STATUS_OK);
    assert_ptr_equal(base, &there);
    assert_int_equal(transport->attach(&site, 2, 4, 4096, &base), PEAL_STATUS_PEER_LOST);
    assert_int_equal(imports, 2);
}

static const char *device_refuses(void *user, int process)
{
    (void)user;
    return process == 2 ? NULL : "the GPUs are strangers";
}

static void p2p(void **state)
{
    (void)state;
    unsigned char *base = NULL;
    peal_transport_site with = site;
    const peal_transport_ops *transport = peal_transport_of(PEAL_TRANSPORT_P2P);
    assert_string_equal(transport->refuses(&site, 2), "there is no accelerator");
    with.device_refuses = device_refuses;
    assert_null(transport->refuses(&with, 2));
    assert_string_equal(transport->refuses(&with, 4), "the GPUs are strangers");
    assert_string_equal(transport->refuses(&with, 3), "the processes run on different hosts");
    imports = 0;
    assert_int_equal(transport->attach(&with, 2, 3, 4096, &base), PEAL_STATUS_OK);
    assert_ptr_equal(base, &there);
    assert_int_equal(imports, 1);
}

static peal_status shadow(void *user, int64_t bytes, unsigned char **base)
{
    (void)user;
    *base = &there;
    return bytes == 4096 ? PEAL_STATUS_OK : PEAL_STATUS_INTERNAL;
}

static void tcp(void **state)
{
    (void)state;
    unsigned char *base = NULL;
    peal_transport_site with = site;
    const peal_transport_ops *transport = peal_transport_of(PEAL_TRANSPORT_TCP);
    assert_non_null(transport->refuses(&site, 3));
    with.shadow = shadow;
    assert_null(transport->refuses(&with, 3)); /* another host, too */
    assert_non_null(transport->refuses(&with, 1));
    imports = 0;
    assert_int_equal(transport->attach(&with, 3, 3, 4096, &base), PEAL_STATUS_OK);
    assert_ptr_equal(base, &there);
    assert_int_equal(imports, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_has_its_set_up),
                                       cmocka_unit_test(tcp), cmocka_unit_test(self),
                                       cmocka_unit_test(shm), cmocka_unit_test(p2p)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
