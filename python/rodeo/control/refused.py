"""What the control room says when it will not, or cannot, do what was asked: a code that `rodeo explain` knows, what is the matter, what to do."""


class Refused(Exception):
    """An expected failure: `code` as in error_codes.md, `what` one sentence for the operator, `next` what to do about it or empty."""

    def __init__(self, code, what, next=""):
        super().__init__(what)
        self.code = str(code)
        self.what = str(what)
        self.next = str(next)

    def __str__(self):
        return f"error[{self.code}]: {self.what}" + (f"\n  {self.next}" if self.next else "")

    def as_json(self):
        """As a control socket answers it (docs/protocols/control.md)."""
        return {"ok": False, "code": self.code, "what": self.what, "next": self.next}
