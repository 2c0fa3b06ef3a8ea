"""Asks over a Unix stream socket in lines of JSON, as docs/protocols/control.md has it: one question, one answer, in bounded time and memory."""

import asyncio
import json

from rodeo.control.refused import Refused

LONGEST_ANSWER = 64 * 1024 * 1024  # bytes: a status of a thousand links is a few hundred thousand


async def ask(path, request, timeout_s):
    """The `reply` member of the answer of whoever listens at `path`. Refused: what it refuses with the code it gives, control.unreachable (nobody
    listens), control.no_answer (not within `timeout_s`), control.bad_answer (no line of JSON of the right shape, or longer than 64 MiB)."""
    try:
        return answered(await asyncio.wait_for(_line(path, request), timeout_s), path)
    except asyncio.TimeoutError:
        raise Refused("control.no_answer", f"{path} has not answered within {timeout_s:g} s", "it is busy, stopped by a signal, or stuck") from None
    except asyncio.IncompleteReadError:
        raise Refused("control.unreachable", f"{path} closed the connection without an answer", "") from None
    except asyncio.LimitOverrunError:
        raise Refused("control.bad_answer", f"the answer of {path} is longer than {LONGEST_ANSWER >> 20} MiB", "") from None
    except OSError as error:
        raise Refused("control.unreachable", f"nobody answers at {path}: {error.strerror or error}", "") from None


async def _line(path, request):
    reader, writer = await asyncio.open_unix_connection(str(path), limit=LONGEST_ANSWER)
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        return await reader.readuntil(b"\n")
    finally:
        writer.close()


def answered(line, who):
    """What a line of an answer says. Refused: control.bad_answer, or what it refuses."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        raise Refused("control.bad_answer", f"{who} answered what is no answer: {line[:80]!r}", "")
    if not answer["ok"]:
        raise Refused(answer.get("code") or "control.refused", answer.get("what") or "it refused", answer.get("next") or "")
    return answer.get("reply")
