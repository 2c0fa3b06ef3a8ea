// Prints what the page says of each document of a list on standard input: tests/control/test_stalls.py compares it with the table of stalls.
import { readFileSync } from 'node:fs'
import { headlineOf, phase } from '../src/lib/words.js'
import { delayedHere, recording, wayOf } from '../src/lib/way.js'

function texts(document) {
  const { word, tone, shape } = headlineOf(document.state, document.headline)
  const way = wayOf(document)
  const boxes = [...way.stages.flatMap((stage) => stage.boxes), { name: 'files', limited: way.files.limited }]
  return {
    head: [word, tone, shape],
    what: document.what,
    delayed: Object.fromEntries(boxes.filter((box) => box.limited).map((box) => [box.name, delayedHere(box.limited)])),
    strange: way.strange && delayedHere(way.strange),
    below: way.below,
    bad: Object.fromEntries(boxes.flatMap((box) => box.bad ?? []).map((each) => [each.name, [phase(each.phase).tone, each.what]])),
    counts: Object.fromEntries(boxes.filter((box) => box.total).map((box) => [box.name, `${box.good}/${box.total}`])),
    recording: recording(document),
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map(texts)))
