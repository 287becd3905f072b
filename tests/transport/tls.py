# SPDX-License-Identifier: MIT
"""TLS 1.3 through OpenSSL's own functions, for peers that tests write by hand.

Python's module ssl cannot derive the bytes that bind a HELLO to its session."""
import ctypes
import socket

crypto = ctypes.CDLL("libcrypto.so.3")
ssl = ctypes.CDLL("libssl.so.3")

PEM = 1
SET_MAX_VERSION, TLS_1_2 = 124, 0x303
LABEL = b"EXPORTER-laconic-hello"

POINTER, INT, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
for library, name, result, arguments in [
        (ssl, "TLS_method", POINTER, []),
        (ssl, "SSL_CTX_new", POINTER, [POINTER]),
        (ssl, "SSL_CTX_free", None, [POINTER]),
        (ssl, "SSL_CTX_ctrl", ctypes.c_long,
         [POINTER, INT, ctypes.c_long, POINTER]),
        (ssl, "SSL_CTX_use_certificate_file", INT,
         [POINTER, ctypes.c_char_p, INT]),
        (ssl, "SSL_CTX_use_PrivateKey_file", INT,
         [POINTER, ctypes.c_char_p, INT]),
        (ssl, "SSL_new", POINTER, [POINTER]),
        (ssl, "SSL_free", None, [POINTER]),
        (ssl, "SSL_set_fd", INT, [POINTER, INT]),
        (ssl, "SSL_connect", INT, [POINTER]),
        (ssl, "SSL_accept", INT, [POINTER]),
        (ssl, "SSL_read", INT, [POINTER, POINTER, INT]),
        (ssl, "SSL_write", INT, [POINTER, ctypes.c_char_p, INT]),
        (ssl, "SSL_export_keying_material", INT,
         [POINTER, POINTER, SIZE, ctypes.c_char_p, SIZE, ctypes.c_char_p, SIZE,
          INT]),
        (crypto, "ERR_get_error", ctypes.c_ulong, []),
        (crypto, "ERR_clear_error", None, []),
        (crypto, "ERR_error_string_n", None,
         [ctypes.c_ulong, ctypes.c_char_p, SIZE])]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments


class Closed(Exception):
    """The other end closed the connection; the text is OpenSSL's reason."""


class Connection:
    """A TLS client on a TCP connection to a port of this machine, or a server
    on a socket that was accepted."""

    def __init__(self, port, certificate=None, key=None, old=False,
                 accepted=None):
        self.context = ssl.SSL_CTX_new(ssl.TLS_method())
        if old:
            ssl.SSL_CTX_ctrl(self.context, SET_MAX_VERSION, TLS_1_2, None)
        if certificate is not None:
            assert ssl.SSL_CTX_use_certificate_file(
                self.context, str(certificate).encode(), PEM) == 1
            assert ssl.SSL_CTX_use_PrivateKey_file(
                self.context, str(key).encode(), PEM) == 1
        self.handle = ssl.SSL_new(self.context)
        self.socket = accepted or socket.create_connection(
            ("127.0.0.1", port))
        self.socket.settimeout(None)  # OpenSSL uses the descriptor itself
        ssl.SSL_set_fd(self.handle, self.socket.fileno())
        crypto.ERR_clear_error()
        if accepted is None:
            self.check(ssl.SSL_connect(self.handle))
        else:
            self.check(ssl.SSL_accept(self.handle))

    def check(self, result):
        if result > 0:
            return result
        text = ctypes.create_string_buffer(256)
        code = crypto.ERR_get_error()
        crypto.ERR_error_string_n(code, text, len(text))
        raise Closed(text.value.decode() if code else "end of stream")

    def binding(self):
        out = ctypes.create_string_buffer(32)
        self.check(ssl.SSL_export_keying_material(
            self.handle, out, 32, LABEL, len(LABEL), None, 0, 0))
        return out.raw

    def write(self, data):
        crypto.ERR_clear_error()
        for start in range(0, len(data), 1 << 20):
            part = data[start:start + (1 << 20)]
            self.check(ssl.SSL_write(self.handle, part, len(part)))

    def read(self, n):
        """Exactly n bytes."""
        data, buffer = bytearray(), ctypes.create_string_buffer(n)
        crypto.ERR_clear_error()
        while len(data) < n:
            got = self.check(ssl.SSL_read(self.handle, buffer, n - len(data)))
            data += ctypes.string_at(buffer, got)
        return bytes(data)

    def read_to_the_end(self):
        """All bytes that come, and why no more do."""
        data = b""
        try:
            while True:
                data += self.read(1)
        except Closed as closed:
            return data, str(closed)

    def close(self):
        """Closes the socket; sends no close_notify."""
        ssl.SSL_free(self.handle)
        ssl.SSL_CTX_free(self.context)
        self.socket.close()
