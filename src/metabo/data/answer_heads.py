"""HTTP answers whose heads come in time: the timeout of a socket starts again with each byte, so a server that drips
its headers, or says "100 Continue" without end, would be waited for all day."""

import http.client
import io
import socket
import time
import urllib.request
from typing import Any


def opener(seconds: float) -> urllib.request.OpenerDirector:
    """Return what opens addresses. Its answers raise TimeoutError if a head takes longer than `seconds`."""

    class TimedAnswer(http.client.HTTPResponse):
        """An answer whose bytes are counted in time until its headers are there."""

        def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
            super().__init__(sock, *args, **options)
            self.fp = io.BufferedReader(_Timed(self, self.fp.detach(), seconds))

    class Http(urllib.request.HTTPHandler):
        def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> http.client.HTTPResponse:
            return super().do_open(_answering(http_class, TimedAnswer), req, **options)

    class Https(urllib.request.HTTPSHandler):
        def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> http.client.HTTPResponse:
            return super().do_open(_answering(http_class, TimedAnswer), req, **options)

    return urllib.request.build_opener(Http, Https)


def _answering(http_class: Any, answer: type[http.client.HTTPResponse]) -> Any:
    def connection(*args: Any, **options: Any) -> http.client.HTTPConnection:
        made = http_class(*args, **options)
        made.response_class = answer
        return made

    return connection


class _Timed(io.RawIOBase):
    """The bytes of a socket, which may not go on coming when the head of the answer is late."""

    def __init__(self, answer: http.client.HTTPResponse, stream: io.RawIOBase, seconds: float) -> None:
        self.answer, self.stream, self.seconds, self.begun = answer, stream, seconds, time.monotonic()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:
        if self.answer.headers is None and time.monotonic() > self.begun + self.seconds:
            raise TimeoutError(f"the headers did not end in {self.seconds:g} s")
        return self.stream.readinto(buffer)

    def close(self) -> None:
        self.stream.close()
        super().close()
