"""Judgements of people on the data of a run, while it is open or years later: the quality of a subsystem's data, and the flag TAINTED."""

from dataclasses import replace

from rodeo.control.refused import Refused

TAINTED = "TAINTED"


async def quality(c, arguments, actor):
    """Records a judgement on a subsystem's data in a part of a run. Rows never change: the last one of a subsystem and a time is valid. With `confirm`,
    repeats the row of another person and adds `actor` as the person that confirms it."""
    number, subsystem, verdict = _number(c, arguments), arguments["subsystem"].strip(), arguments["verdict"]
    from_ns, to_ns = arguments["from_ns"], arguments["to_ns"]
    if not subsystem:
        raise Refused("control.argument", "`subsystem` is empty", "")
    if from_ns is not None and to_ns is not None and from_ns >= to_ns:
        raise Refused("control.argument", "`from` is not before `to`", "")
    record = await c.reads.run(number)
    by, verified_by = actor, None
    if arguments["confirm"]:
        found = [
            each
            for each in record["quality"]
            if each["subsystem"] == subsystem
            and (from_ns is None or (each["from_ns"], each["to_ns"]) == (from_ns, to_ns))
        ]
        if not found or found[-1]["verdict"] != verdict:
            said = f"the last one says {found[-1]['verdict']}" if found else "there is none"
            raise Refused(
                "control.argument",
                f"run {number} has no judgement `{verdict}` on {subsystem} to be confirmed: {said}",
                f"rodeo runs show {number} lists them",
            )
        if found[-1]["by"] == actor:
            raise Refused(
                "control.argument", f"the judgement on {subsystem} is {actor}'s own: another person must confirm it", ""
            )
        by, verified_by, from_ns, to_ns = found[-1]["by"], actor, found[-1]["from_ns"], found[-1]["to_ns"]
    await c.writer.quality(number, subsystem, from_ns, to_ns, verdict, by, verified_by)
    return {"run": number, "subsystem": subsystem, "verdict": verdict}


async def taint(c, arguments, actor):
    """Marks a run TAINTED, or removes the mark; a note of the run has the reason."""
    number, back = _number(c, arguments), arguments["back"]
    if c.run is not None and c.run.number == number:
        if back:
            c.run.flags.discard(TAINTED)
        await c.keep_run(flags=() if back else {TAINTED})
    else:
        await c.reads.run(number)
        await c.writer.flags(number, add=() if back else (TAINTED,), remove=(TAINTED,) if back else ())
        last = c.telling.last_run
        if last is not None and last.number == number:
            c.telling.last_run = replace(
                last, flags=tuple(sorted({*last.flags} - {TAINTED} | (set() if back else {TAINTED})))
            )
    await c.writer.note(number, actor, f"{'no longer TAINTED' if back else TAINTED}: {arguments['text']}")
    c.publish()
    return {"run": number, "tainted": not back}


def _number(c, arguments):
    """The number of the run in the arguments, else of the open run, else of the last run."""
    number = (
        arguments.get("run")
        or (c.run.number if c.run else None)
        or (c.telling.last_run.number if c.telling.last_run else None)
    )
    if number is None:
        raise Refused("control.no_run", "no run is open, and none has ended", "name a run: --run NUMBER")
    return number
