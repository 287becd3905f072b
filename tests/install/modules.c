// SPDX-License-Identifier: MIT
// A program that links the static library and names the folder of the modules:
// it listens with the transport tcp, which is one.
// usage: modules [FOLDER]
#include <laconic/laconic.h>

#include <stdio.h>

static lac_status listen_to_tcp(const char *folder)
{
    lac_tcp_listener *listener = NULL;
    if (folder != NULL) {
        LAC_TRY(lac_modules_path(folder));
    }
    LAC_TRY(lac_tcp_listen(&listener, "tcp:listen=127.0.0.1"));
    lac_tcp_close(listener);
    return LAC_OK;
}

int main(int argc, char **argv)
{
    if (listen_to_tcp(argc > 1 ? argv[1] : NULL) != LAC_OK) {
        (void)fprintf(stderr, "%s\n", lac_error_message());
        return 1;
    }
    return 0;
}
