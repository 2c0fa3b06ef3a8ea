// Svelte action for a box that may scroll: the keyboard reaches it while its content is larger than the box.
export function scrolls(box) {
  const look = () => {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.setAttribute('tabindex', '0')
    else box.removeAttribute('tabindex')
  }
  const sizes = new ResizeObserver(look)
  const observe = () => {
    sizes.disconnect()
    for (const each of [box, ...box.children]) sizes.observe(each)
  }
  const children = new MutationObserver(observe)
  children.observe(box, { childList: true })
  observe()
  look()
  return {
    destroy: () => {
      children.disconnect()
      sizes.disconnect()
    },
  }
}
