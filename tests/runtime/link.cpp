// An application in C++17 against the shared library and the public headers alone.
#include <peal/peal.h>

#include <cstdio>
#include <cstring>

int main()
{
    peal_session_desc session_desc = {};
    session_desc.size_bytes = sizeof(session_desc);
    session_desc.log_level = PEAL_LOG_ERROR;
    session_desc.log = stderr;
    peal_session *session = nullptr;
    if (peal_session_create(&session_desc, &session) != PEAL_STATUS_OK)
        return 1;

    peal_halo_desc desc = {};
    desc.size_bytes = sizeof(desc);
    desc.axis_count = 1;
    desc.source = PEAL_HERE;
    desc.hi[0] = 8;
    desc.periodic[0] = true;
    double u[10] = {-1, 0, 1, 2, 3, 4, 5, 6, 7, -1};
    desc.field[0].type = PEAL_F64;
    desc.field[0].data[0] = u;
    desc.field[0].width[0][0] = desc.field[0].width[0][1] = 1;
    peal_exchange *exchange = nullptr;
    if (peal_exchange_create_desc(session, &desc, &exchange) != PEAL_STATUS_OK) {
        peal_session_print_diagnostics(session, stderr, 0);
        return 1;
    }
    bool good = peal_exchange_start(exchange, 0, nullptr) == PEAL_STATUS_OK &&
                peal_exchange_wait(exchange) == PEAL_STATUS_OK && u[0] == 7 && u[9] == 0;
    good &= peal_exchange_destroy(exchange) == PEAL_STATUS_OK;

    peal_graph *graph = nullptr;
    good &= peal_graph_create("empty", &graph) == PEAL_STATUS_OK;
    peal_graph_destroy(graph);
    peal_session_destroy(session);
    std::printf("libpeal %s: %s\n", peal_version(), good ? "ok" : "wrong");
    return good && PEAL_VERSION_NUMBER == PEAL_VERSION_NUMBER_OF(0, 1, 0) ? 0 : 1;
}
