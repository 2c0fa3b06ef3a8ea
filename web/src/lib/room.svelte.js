// This page's state of its control room: the session, the document and its age. Also sends commands.
import { refusal, refusesAll } from './refusal.js'

export const STALE_S = 3
const SILENT_S = 10 // a connection that is silent for this time is opened anew
const RETRY_S = [0.3, 0.6, 1, 2]
const MINE = 'rodeo-control-taken-here'

class Room {
  document = $state.raw(null)
  session = $state.raw(null)
  over = $state(null) // why there is no session, or null
  told = $state.raw(null) // the outcome of this page's last command: {name, good, what, next}
  asked = $state(null) // the command that this page sent and that has no answer yet
  path = $state(location.pathname)
  query = $state(location.search)
  #heard = $state(null) // performance.now() of the last news
  #news = null // the document of the last news
  #now = $state(performance.now())
  #socket = null
  #silent = 0 // time since which the connection is silent
  #tries = 0
  #next = 0 // time of the next attempt

  // Seconds since the newest document arrived; null before the first one.
  get age() {
    return this.#heard === null ? null : Math.max(0, (this.#now - this.#heard) / 1000)
  }

  get stale() {
    return this.document === null || this.over !== null || this.age > STALE_S
  }

  // The state to show.
  get state() {
    return this.stale ? 'STALE' : this.document.state
  }

  get holding() {
    return this.document?.lease?.holder != null && this.document.lease.holder === this.session?.name
  }

  // The reason why a command is refused now, or null.
  refused(name) {
    return refusal(name, { document: this.document, session: this.session, stale: this.stale, asked: this.asked })
  }

  // The reason why this page can give no command, or null.
  get refusedAll() {
    return refusesAll(this)
  }

  open() {
    addEventListener('popstate', () => this.#moved())
    setInterval(() => this.#tick(), 200)
    setInterval(() => this.#renew(), 10_000)
    this.#tick()
  }

  go(path) {
    if (path !== location.pathname + location.search) history.pushState(null, '', path)
    this.#moved()
  }

  // Changes the address without a step in the history: the text of a search field is a part of the page's address.
  replace(path) {
    history.replaceState(null, '', path)
    this.#moved()
  }

  #moved() {
    this.path = location.pathname
    this.query = location.search
  }

  // Gets JSON; throws {status, code, what, next}.
  async get(path) {
    return answered(await fetch(path, { headers: { Accept: 'application/json' } }).catch(gone))
  }

  async post(path, body) {
    const headers = { 'Content-Type': 'application/json', 'X-Rodeo-CSRF': this.session?.csrf ?? '' }
    return answered(await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) }).catch(gone))
  }

  // Sends a command; its outcome is in `told`. Returns true if the command was done.
  async command(name, given = {}) {
    const fence = this.holding ? { fence: this.document.lease.fence } : {}
    this.asked = name
    this.told = null
    try {
      const result = await this.post(`/api/commands/${name}`, { ...given, ...fence })
      if (!['ack', 'shelve', 'note', 'ask', 'release', 'stop'].includes(name)) sessionStorage.setItem(MINE, 'yes')
      if (name === 'release') sessionStorage.removeItem(MINE)
      this.told = { name, good: true, what: name === 'ask' ? `control is yours in ${Math.ceil(result.seconds ?? 60)} s at the latest` : '', next: '' }
      return true
    } catch (error) {
      this.told = { name, good: false, what: error.what, next: error.next }
      return false
    } finally {
      this.asked = null
    }
  }

  async name(name) {
    await this.post('/api/session/name', { name })
    this.session = await this.get('/api/session')
    this.#socket?.close() // the connection has the old name
  }

  async leave() {
    await this.post('/api/session/end', {})
    this.#ended({ what: 'You have logged out', next: '' })
  }

  #tick() {
    this.#now = performance.now()
    if (this.#socket) {
      if (this.#now - this.#silent > SILENT_S * 1000) this.#socket.close()
    } else if (this.#now >= this.#next) {
      this.#connect()
    }
  }

  #connect() {
    const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/live`)
    this.#socket = socket
    this.#silent = performance.now()
    socket.onmessage = (event) => this.#take(JSON.parse(event.data))
    socket.onclose = (event) => {
      if (this.#socket !== socket) return
      this.#socket = null
      this.#later()
      if (event.code === 4401) this.#ended({ what: 'This session is over', next: 'open the address that `rodeo control` printed (rodeo control status --addresses)' })
      else this.#whoami()
    }
    if (this.session === null) this.#whoami()
  }

  #later() {
    this.#next = performance.now() + 1000 * (this.over ? 5 : RETRY_S[Math.min(this.#tries, RETRY_S.length - 1)])
    this.#tries += 1
  }

  async #whoami() {
    try {
      this.session = await this.get('/api/session')
      this.over = null
    } catch (error) {
      if (error.status === 401 || error.status === 403) this.#ended(error)
    }
  }

  #ended(error) {
    this.over = { what: error.what, next: error.next }
    this.#later()
  }

  #take(message) {
    this.#silent = performance.now()
    if (message.whole) {
      this.document = message.whole
      this.#tries = 0
      this.over = null
    } else if (this.document?.sequence === message.base) {
      this.document = { ...this.document, ...message.changed, sequence: message.sequence }
    } else {
      this.#socket.close()
      return
    }
    // Data also get old if the server sends but the controller makes no new document.
    const news = `${this.document.sequence} ${this.document.time_ns}`
    if (news !== this.#news || message.whole) {
      this.#news = news
      this.#heard = performance.now()
      this.#now = this.#heard
    }
  }

  // Keeps control that was taken at this page while the page is open; control of a shell with this name is left alone.
  #renew() {
    if (this.holding && sessionStorage.getItem(MINE) && this.#socket?.readyState === WebSocket.OPEN) {
      this.#socket.send(JSON.stringify({ renew: this.document.lease.fence }))
    }
  }
}

function gone() {
  throw { status: 0, code: 'page.unreachable', what: 'the control room does not answer', next: '' }
}

async function answered(response) {
  let body = null
  try {
    body = await response.json()
  } catch {
    body = null
  }
  if (response.ok && body !== null) return body
  throw { status: response.status, code: body?.code ?? 'page.answer', what: body?.what ?? `the control room answered with status ${response.status}`, next: body?.next ?? '' }
}

export const room = new Room()
