"""The error of the control room when it refuses a request or fails: a code for `rodeo explain`, the problem, the remedy."""

from rodeo.control.printed import plain_lines


class Refused(Exception):
    """An expected failure: `code` as in error_codes.md, `what` one sentence for the operator, `next` the remedy or empty."""

    def __init__(self, code, what, next=""):
        super().__init__(what)
        self.code = str(code)
        self.what = str(what)
        self.next = str(next)

    def __str__(self):
        """For a terminal: `what` and `next` may have foreign text."""
        return plain_lines(f"error[{self.code}]: {self.what}" + (f"\n  {self.next}" if self.next else ""))

    def as_json(self):
        """In the form of a control socket's answer (docs/reference/protocols/control.md)."""
        return {"ok": False, "code": self.code, "what": self.what, "next": self.next}
