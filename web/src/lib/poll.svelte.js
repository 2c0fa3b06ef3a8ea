// Asks for something again and again while a part of the page is shown: no more often than its size allows, and not while the page is hidden.
import { room } from './room.svelte.js'

const BYTES_PER_S = 5000 // for all that is shown, of the 20 kB/s that the page may have; the WebSocket has 12, links have 3
let shown = 0 // so many of them share it

export class Poll {
  value = $state.raw(null)
  error = $state.raw(null)
  #timer = null
  #turn = 0

  // `path()` is asked at each turn; null: nothing to ask now. Call it in an effect: what `path` reads is watched.
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
