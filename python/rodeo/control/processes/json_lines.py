"""Asks over a Unix stream socket in lines of JSON (docs/reference/protocols/control.md): one request, one answer, in bounded time and memory."""

import asyncio
import json

from rodeo.control.refused import Refused

LONGEST_ANSWER = 64 * 1024 * 1024  # limit in bytes; the status of a thousand links has a few hundred thousand


async def ask(path, request, timeout_s):
    """The `reply` member of the answer from the socket `path`. Refused: with the server's code if it refuses, control.unreachable (no server
    listens), control.no_answer (not within `timeout_s`), control.bad_answer (not JSON of the right shape, or longer than 64 MiB)."""
    try:
        async with asyncio.timeout(timeout_s):
            line = await _line(path, request)
        return answered(line, path)
    except asyncio.TimeoutError:
        raise Refused(
            "control.no_answer",
            f"{path} has not answered within {timeout_s:g} s",
            "it is busy, stopped by a signal, or stuck",
        ) from None
    except asyncio.IncompleteReadError:
        raise Refused("control.unreachable", f"{path} closed the connection without an answer", "") from None
    except asyncio.LimitOverrunError:
        raise Refused(
            "control.bad_answer", f"the answer of {path} is longer than {LONGEST_ANSWER >> 20} MiB", ""
        ) from None
    except OSError as error:
        raise Refused("control.unreachable", f"no process answers at {path}: {error.strerror or error}", "") from None


async def _line(path, request):
    reader, writer = await asyncio.open_unix_connection(str(path), limit=LONGEST_ANSWER)
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        return await reader.readuntil(b"\n")
    finally:
        writer.close()


def answered(line, who):
    """The reply in an answer line. Refused: control.bad_answer, or the refusal in the line."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        raise Refused("control.bad_answer", f"{who} sent an invalid answer: {line[:80]!r}", "")
    if not answer["ok"]:
        raise Refused(
            answer.get("code") or "control.refused", answer.get("what") or "it refused", answer.get("next") or ""
        )
    return answer.get("reply")
