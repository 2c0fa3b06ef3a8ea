// Requests data repeatedly while a part of the page is shown: at most as often as their size allows, and not while the page is hidden.
import { room } from './room.svelte.js'

const BYTES_PER_S = 5000 // shared by all polls; the page's limit is 20 kB/s: 12 for the WebSocket, 3 for links
let shown = 0 // number of polls that share it

export class Poll {
  value = $state.raw(null)
  error = $state.raw(null)
  #timer = null
  #turn = 0

  // `path()` returns the path to request, or null for no request now. Construct it in an effect: the state that `path` reads is watched.
  constructor(path, everyS) {
    $effect(() => {
      shown += 1
      return () => { shown -= 1 }
    })
    $effect(() => {
      const now = path()
      const turn = ++this.#turn
      if (now !== null) this.#ask(now, everyS, turn)
      return () => {
        this.#turn += 1
        clearTimeout(this.#timer)
      }
    })
  }

  async #ask(path, everyS, turn) {
    let wait = everyS
    if (!globalThis.document.hidden) {
      try {
        const value = await room.get(path)
        if (turn !== this.#turn) return
        this.value = value
        this.error = null
        wait = Math.max(everyS, (shown * JSON.stringify(value).length) / BYTES_PER_S)
      } catch (error) {
        if (turn !== this.#turn) return
        this.error = error
      }
    }
    this.#timer = setTimeout(() => this.#ask(path, everyS, turn), wait * 1000)
  }
}
