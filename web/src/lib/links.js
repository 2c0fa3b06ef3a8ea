// The meaning of a link's state and counters: glyph, colour, and a sentence for a shifter. Pure.
import { count } from './format.js'

// The FID, with the name that the owner of the link gave it.
export function named(link) {
  return link.name ? `${link.fid} (${link.name})` : link.fid
}

// {glyph, tone, word, means}
export function linkOf(link) {
  const { state, missing = 0, bad = 0, chunks } = link
  const sums = `${count(chunks)} chunks, ${count(missing)} missing, ${count(bad)} bad`
  if (state === 'removed') {
    const why = link.removed_by_policy ? 'the link policy removed it because its data were bad' : 'it was removed by hand, or with its process'
    return { glyph: '✕', tone: 'bad', word: 'removed', means: `${why}; events are complete without it. ${sums}.` }
  }
  if (state && !['active', 'good', 'ok', 'up'].includes(state)) return { glyph: '?', tone: 'warn', word: state, means: `its state is ${state}. ${sums}.` }
  if (bad > 0) return { glyph: '!', tone: 'bad', word: 'bad data', means: `chunks came whose content is wrong: look at the front-end and the fibre. ${sums}.` }
  if (link.out_of_step) {
    const offset = link.bcid_offset == null ? '' : ` (they are too large by ${link.bcid_offset})`
    return { glyph: '≠', tone: 'bad', word: 'out of step', means: `the BCIDs of its chunks agree with no event where it can be${offset}: resynchronise its front-end. ${sums}.` }
  }
  if (missing > 0) return { glyph: '–', tone: 'warn', word: 'missing', means: `chunks did not come, and events were built without them. ${sums}.` }
  if (link.in_doubt > 0) return { glyph: '~', tone: 'warn', word: 'in doubt', means: `${count(link.in_doubt)} chunks are flagged: it was silent for so long that their event was not certain. ${sums}.` }
  if (chunks === 0) return { glyph: '·', tone: 'idle', word: 'no data yet', means: 'no chunk has come so far.' }
  return { glyph: '■', tone: 'good', word: 'good', means: `all chunks have come. ${sums}.` }
}

// The number of links for each word: {word: number}.
export function summary(links) {
  const out = {}
  for (const link of links) {
    const { word } = linkOf(link)
    out[word] = (out[word] ?? 0) + 1
  }
  return out
}
