"""HTTP responses whose headers must arrive in time. The timeout of a socket starts again with each byte, so without
this a client would wait all day for a server that drips its headers or repeats "100 Continue"."""

import http.client
import io
import socket
import time
import urllib.request
from typing import Any


def opener(seconds: float) -> urllib.request.OpenerDirector:
    """Return an opener of addresses. Its responses raise TimeoutError if the headers take longer than `seconds`."""

    class TimedAnswer(http.client.HTTPResponse):
        """A response that watches the time until its headers are complete."""

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
    """The bytes of a socket. Reading them raises TimeoutError while the headers are overdue."""

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
