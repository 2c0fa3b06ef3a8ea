// Log lines of which repeats are folded into one with its number. Pure.
const TIMES = /^\[?\d{4}-\d\d-\d\d[T ][\d:.,]+Z?\]?\s*|^\[?\d\d:\d\d:\d\d[\d.,]*\]?\s*/

// Two lines are the same message if they differ in numbers and times alone.
function shape(line) {
  return `${line.process}\n${line.text.replace(TIMES, '').replace(/\d+(\.\d+)?/g, '0')}`
}

export function fold(lines) {
  const out = []
  for (const line of lines) {
    const key = shape(line)
    const last = out.at(-1)
    if (last?.key === key) {
      last.times += 1
      last.text = line.text
    } else {
      out.push({ key, process: line.process, text: line.text, times: 1 })
    }
  }
  return out
}

export function level(text) {
  if (/\b(error|critical|fatal|failed)\b|\s[EC]\s/i.test(text.slice(0, 80))) return 'bad'
  if (/\b(warn|warning)\b|\sW\s/i.test(text.slice(0, 80))) return 'warn'
  return ''
}
