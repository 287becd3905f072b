# SPDX-License-Identifier: MIT
"""A TCP proxy that delays bytes and limits their rate, in both directions.

    proxy = DelayProxy(("127.0.0.1", 7000), delay=0.025, mbit=200)
    ... connect to ("127.0.0.1", proxy.port) ...
    proxy.close()

It stands for a long link, where a kernel has no netem. Each direction sends at
most `mbit`, and a byte arrives `delay` seconds after it was sent.
"""
import asyncio
import threading

CHUNK = 64 * 1024


class DelayProxy:
    def __init__(self, target, delay, mbit):
        self.target, self.delay = target, delay
        self.rate = mbit * 1e6 / 8
        # What a link holds, and a little for the router before it.
        self.room = int(self.rate * delay) + 16 * CHUNK
        self.ready = threading.Event()
        self.port = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.ready.wait()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def _run(self):
        self.loop = asyncio.new_event_loop()
        server = self.loop.run_until_complete(self._listen())
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()

    async def _listen(self):
        return await asyncio.start_server(self._serve, "127.0.0.1", 0,
                                          limit=CHUNK)

    async def _serve(self, reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(
                *self.target, limit=CHUNK)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._carry(reader, far_writer),
                             self._carry(far_reader, writer))

    async def _carry(self, reader, writer):
        """Moves one direction: a task reads, this one writes when it is due."""
        queue, held, room = asyncio.Queue(), [0], asyncio.Event()
        source = asyncio.ensure_future(self._fill(reader, queue, held, room))
        loop = asyncio.get_running_loop()
        try:
            while True:
                due, chunk = await queue.get()
                if chunk is None:
                    break
                pause = due - loop.time()
                if pause > 0:
                    await asyncio.sleep(pause)
                writer.write(chunk)
                await writer.drain()
                held[0] -= len(chunk)
                room.set()
        except OSError:
            pass
        source.cancel()
        writer.close()

    async def _fill(self, reader, queue, held, room):
        free = 0.0  # when the link has sent all that it was given
        loop = asyncio.get_running_loop()
        while True:
            while held[0] > self.room:
                room.clear()
                await room.wait()
            try:
                chunk = await reader.read(CHUNK)
            except OSError:
                chunk = b""
            free = max(free, loop.time()) + len(chunk) / self.rate
            await queue.put((free + self.delay, chunk or None))
            if not chunk:
                return
            held[0] += len(chunk)
