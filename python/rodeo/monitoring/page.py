"""The page of the histograms: on loopback, read only, for users with its address. It loads nothing from elsewhere."""

import html
import socket
import threading

import uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from rodeo.monitoring.door import Door
from rodeo.monitoring.errors import MonitorError
from rodeo.monitoring.svg import svg

_HEADERS = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

_SHELL = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>__TITLE__</title><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6470; --line: #d8dde3; --back: #fff; --fill: #3b78c2; --warn: #9a4b00 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --soft: #9aa4b0; --line: #333a43; --back: #14171b; --fill: #6aa5e8; --warn: #f0a35c } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 0 auto; max-width: 1500px; padding: 1rem }
h1 { font-size: 1.15rem; margin: 0 } header { display: flex; gap: 1rem; align-items: baseline; flex-wrap: wrap; border-bottom: 1px solid var(--line); padding-bottom: .5rem }
header p { margin: 0; color: var(--soft) } #gone { color: var(--warn); font-weight: 600 }
main > section { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 1rem; margin-top: 1rem }
figure { margin: 0; border: 1px solid var(--line); border-radius: 6px; padding: .6rem } figcaption span { color: var(--soft); margin-left: .4rem }
svg { width: 100%; height: auto; display: block } text { font-size: 11px; fill: var(--soft) } .label { fill: var(--ink) }
.grid { stroke: var(--line) } .axis { stroke: var(--soft) } .fill { fill: var(--fill); fill-opacity: .35; stroke: var(--fill); stroke-width: 1.2 } .cell { fill: var(--fill) }
ul { margin: .8rem 0 0; padding-left: 1.2rem; color: var(--warn) } .old { opacity: .45 }
</style></head>
<body><header><h1>__TITLE__</h1><p id="gone" role="status"></p></header><main id="all"></main>
<script>
const all = document.getElementById("all"), gone = document.getElementById("gone");
async function look() {
  try {
    const answer = await fetch("now");
    if (answer.status === 403) { all.classList.add("old"); gone.textContent = "another monitor is here now: open the address that it has printed"; return; }
    if (!answer.ok) throw new Error(answer.status);
    all.innerHTML = await answer.text();
    all.classList.remove("old"); gone.textContent = "";
  } catch { all.classList.add("old"); gone.textContent = "the monitor has ended: what you see is its last state"; }
  setTimeout(look, 1000);
}
look();
</script></body></html>
"""


class Page:
    """Serves the last argument of show() in a separate thread until close()."""

    def __init__(self, title, port):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
            self._socket.listen()  # listens before the thread runs: early connections wait and are not refused
        except OSError as error:
            self._socket.close()
            raise MonitorError(
                "monitor.port",
                f"the page cannot listen on 127.0.0.1:{port}: {error.strerror}",
                "use another --port, or --no-page",
            ) from error
        self._shell = _SHELL.replace("__TITLE__", html.escape(title))
        self._now = ("", [], [])
        port = self._socket.getsockname()[1]
        door = Door(Starlette(routes=[Route("/", self._show_shell), Route("/now", self._show_now)]), port)
        self.address = f"http://127.0.0.1:{port}/?token={door.token}"
        self._server = uvicorn.Server(
            uvicorn.Config(door, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True, name="page")
        self._thread.start()

    def show(self, state, blocks, messages):
        """Draws only on request."""
        self._now = (state, blocks, messages)

    def close(self):
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()

    async def _show_shell(self, _request):
        return HTMLResponse(self._shell, headers=_HEADERS)

    async def _show_now(self, _request):
        state, blocks, messages = self._now
        said = "".join(f"<li>{html.escape(line)}</li>" for line in messages)
        figures = "".join(svg(name, one) for name, one in blocks)
        return HTMLResponse(
            f"<p>{html.escape(state)}</p>{'<ul>' + said + '</ul>' if said else ''}<section>{figures}</section>",
            headers=_HEADERS,
        )
