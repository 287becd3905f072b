// SPDX-License-Identifier: MIT
// Arbitrary text as a peers file: what is accepted has one key and one name a
// worker and addresses that are read as they are written; what is refused has a
// message of plain text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "transport/tcp/roster.h"

static void check_plain(const char *text)
{
    for (; *text != '\0'; text++) {
        fuzz_require(*text >= ' ' && *text <= '~', "a text is not plain");
    }
}

static void check_entry(const laci_tcp_roster *roster, uint32_t rank)
{
    const laci_tcp_entry *const entry = &roster->entries[rank];
    char text[LACI_TCP_HOST + 16];
    laci_tcp_address again;
    fuzz_require(
        laci_tcp_roster_find(roster, entry->key) == rank, "a key comes twice");
    for (uint32_t i = 0; i < rank; i++) {
        fuzz_require(
            strcmp(roster->entries[i].name, entry->name) != 0,
            "a name comes twice");
    }
    check_plain(entry->name);
    fuzz_require(entry->name[0] != '\0', "a worker has no name");
    laci_tcp_address_write(&entry->address, text, sizeof(text));
    fuzz_require(
        laci_tcp_address_parse(text, strlen(text), &again) &&
            again.port == entry->address.port && again.port != 0 &&
            strcmp(again.host, entry->address.host) == 0,
        "an address is not read as it was written");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    laci_tcp_roster roster = {0};
    char *const text = fuzz_copy(data, size);
    const lac_status status = laci_tcp_roster_parse(
        &laci_transport_services, "peers", text, size, &roster);
    free(text);
    if (status != LAC_OK) {
        fuzz_require(status == LAC_ERR_INVALID, "another status");
        fuzz_require(roster.entries == NULL, "a list remains");
        check_plain(lac_error_message());
        return 0;
    }
    fuzz_require(
        roster.count > 0 && roster.count <= LACI_TCP_WORKERS, "no workers");
    for (uint32_t rank = 0; rank < roster.count; rank++) {
        check_entry(&roster, rank);
    }
    laci_tcp_roster_release(&laci_transport_services, &roster);
    return 0;
}
