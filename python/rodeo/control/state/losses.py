"""Losses that stop nothing: whole events without all their fragments, and links that fell silent while others bring data. Pure."""

from dataclasses import dataclass

from rodeo.control.state.numbers import groups_of, grown, named_link, value

# A link that has brought chunks is silent if all four hold.
SILENT_S = 5.0  # The link has brought no chunk for this time.
LEAST_CHUNKS = 20  # By its earlier share of all chunks, the link should have brought this number since then.
BREAKS = 10  # The link's present break is this many times longer than its longest earlier one.
KNOWN_LOOKS = 10  # The link brought chunks in this many looks, so its share is known.
# A ROB or a group whose links never brought a chunk is silent if both hold.
NEVER_S = 10.0  # The ROB or group exists for this time.
NEVER_CHUNKS = 100  # Another link has brought this number of chunks.


def lacking(before, after):
    """The readout whose fragments are missing most in events that nodes decided between two moments; None if nodes report no missing fragment."""
    lost = {}
    for name, status in after.statuses_of("node").items():
        earlier = {one["name"]: one for one in (before.statuses.get(name, (None, None))[1] or {}).get("readouts") or ()}
        for one in status.get("readouts") or ():
            growth = grown(value(earlier.get(one["name"]), "lost_fragments"), value(one, "lost_fragments"))
            lost[one["name"]] = lost.get(one["name"], 0) + (growth or 0)
    most = max(sorted(lost), key=lost.get, default=None)
    return most.rsplit(".", 1)[0] if most and lost[most] else None  # nodes know a readout as NAME.CONSUMER


@dataclass(frozen=True)
class Silent:
    """A link that brings nothing while others do. `since_s`: the time of its last chunk. `rob`: the link's ROB, if no link of this ROB brings anything."""

    process: str
    fid: str
    since_s: float
    rob: str | None = None
    name: str | None = None

    @property
    def what(self):
        return (
            f"ROB {self.rob} brings nothing"
            if self.rob
            else f"link {named_link({'fid': self.fid, 'name': self.name})} brings nothing"
        )


@dataclass
class _Seen:
    """The chunks of a link. `others`: number of chunks of the other links until this link's last chunk; `since_then`: their number after it."""

    chunks: int
    since_s: float
    source: str  # the ROB, or the link, to whose fragments its chunks go
    brought: int = 0
    looks: int = 0
    others: int = 0
    since_then: int = 0
    longest: int = 0  # the largest `since_then` of a break
    name: str | None = None  # of the link


class SilentLinks:
    """Finds the active links of each readout that brought chunks earlier and stand still while the others continue. A link is compared with its own earlier
    share and breaks, so a link that seldom brings a chunk is not blamed. Each ROB of a readout has a fragment of each event. So a ROB that never brought a
    chunk is silent, too; in FULL mode this holds for each group of a ROB."""

    def __init__(self):
        self._seen = {}  # readout -> {(ROB, link): _Seen}

    def update(self, now_s, before, after):
        """The Silent links of this look, the longest silent one first."""
        found, readouts, answered_s = [], after.statuses_of("readout"), before.answered_s if before else {}
        self._seen = {name: seen for name, seen in self._seen.items() if name in readouts}
        for name, status in readouts.items():
            if name not in after.answered_s or after.answered_s[name] != answered_s.get(name):
                self._count(now_s, self._seen.setdefault(name, {}), status)
            found += _silent(now_s, name, self._seen[name])
        return tuple(sorted(found, key=lambda one: (one.since_s, one.process, one.fid)))

    @staticmethod
    def _count(now_s, seen, status):
        growth = {}
        for rob in status.get("robs") or ():
            source_id, links = rob.get("source_id"), rob.get("links") or ()
            for one in links:
                count = value(one, "chunks")
                if one.get("state") != "active" or count is None:
                    continue
                link = source_id, one["fid"]
                if link not in seen or count < seen[link].chunks:
                    seen[link] = _Seen(count, now_s, one["fid"] if groups_of(rob) == len(links) else source_id)
                seen[link].name = one.get("name")
                growth[link], seen[link].chunks = count - seen[link].chunks, count
        for gone in seen.keys() - growth.keys():
            del seen[gone]
        whole = sum(growth.values())
        for link, grew in growth.items():
            one = seen[link]
            one.since_then += whole - grew
            if grew:
                if one.looks:
                    one.longest = max(one.longest, one.since_then - (whole - grew))
                one.brought, one.looks = one.brought + grew, one.looks + 1
                one.others, one.since_then, one.since_s = one.others + one.since_then, 0, now_s


def _silent(now_s, process, seen):
    robs, sources = {}, {}
    for (rob, fid), one in seen.items():
        robs.setdefault(rob, []).append((rob, fid))
        sources.setdefault((rob, one.source), []).append((rob, fid))
    silent = {link for link, one in seen.items() if _stands(now_s, one)}
    if max((one.chunks for one in seen.values()), default=0) >= NEVER_CHUNKS:
        for links in sources.values():
            if all(_never_came(now_s, seen[link]) for link in links):
                silent.update(links)
    for rob, links in robs.items():
        whole = rob if len(links) > 1 and all(now_s - seen[link].since_s >= SILENT_S for link in links) else None
        for link in silent.intersection(links):
            yield Silent(process, link[1], seen[link].since_s, whole, seen[link].name)


def _never_came(now_s, one):
    return one.chunks == 0 and now_s - one.since_s >= NEVER_S and one.since_then >= NEVER_CHUNKS


def _stands(now_s, one):
    owed = one.since_then * one.brought / one.others if one.others else 0
    return (
        one.looks >= KNOWN_LOOKS
        and now_s - one.since_s >= SILENT_S
        and owed >= LEAST_CHUNKS
        and one.since_then > BREAKS * one.longest
    )
