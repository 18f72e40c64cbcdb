/* Connections to processes on other hosts: TCP, on any port, proved by a handshake before they
 * carry anything. */
#ifndef PEAL_RUNTIME_CONTROL_WIRE_TCP_H
#define PEAL_RUNTIME_CONTROL_WIRE_TCP_H

#include "runtime/control/control.h"
#include "runtime/control/handshake.h"

enum { PEAL_ADDRESS_TEXT_BYTES = 64, PEAL_WATCHED_MS = 2500, PEAL_PATIENT_MS = 12000 };
/* How often neighbours on different hosts say that they are there. */
#define PEAL_BEAT_NS INT64_C(500000000)

/* A socket that listens on a free port of those that the choice allows; -1 and errno. only: at this
 * address; NULL: on all interfaces, by IPv6 and IPv4 or what there is of them. */
int peal_wire_listen_tcp(const peal_network_choice *choice, const peal_address *only,
                         unsigned char port[2]);
/* One that only this host reaches, and its address; -1 and errno. */
int peal_wire_listen_on_loopback(peal_address *address);
/* The addresses of this host that others may reach: of interfaces that are up, not the loopback,
 * not those of a link only; at most 3 of IPv4 where there is one of IPv6. Returns their number, 0
 * to PEAL_ADDRESSES; the others become none. They have no port yet. Where one is chosen: the first
 * of its addresses alone. */
int peal_wire_addresses(const peal_network_choice *choice, peal_address address[PEAL_ADDRESSES]);
/* "eth0 10.0.0.2, ib0 10.1.0.2": what could have been chosen. Returns text. */
const char *peal_wire_list_interfaces(char *text, size_t bytes);
/* "10.0.0.2:4711", "[2001:db8::1]:4711". */
const char *peal_wire_print_address(const peal_address *address,
                                    char text[PEAL_ADDRESS_TEXT_BYTES]);

/* Calls a process that listens on one of the addresses, in turn: each until its share of the time
 * is over, at first 2 s at most, but for one that has answered. Wrong ones are harmless, as their
 * side cannot prove that it knows the secret; the right one comes first from then on. Returns a
 * connected socket (close-on-exec, non-blocking) on which nothing of what comes behind the
 * handshake was read. -1 and errno: EPROTO, and why in *state, where the last that answered failed
 * the handshake; ECANCELED once `stop` (-1: none) is readable, within a second; ETIMEDOUT; or of
 * the last connect(). */
int peal_wire_call_tcp(peal_address *address, const unsigned char secret[PEAL_SECRET_BYTES],
                       peal_caller caller, int stop, int64_t until_ns, peal_handshake *state);

/* Small messages leave at once, and an idle connection is kept in the memory of what lies between
 * the hosts. */
void peal_wire_be_prompt(int socket);
/* The other host is asked whether it is there: it is gone after silent_ms without an answer. Only
 * for a socket that the other side always reads: one that it does not read for so long would end,
 * too. */
void peal_wire_be_watched(int socket, unsigned silent_ms);

#endif
