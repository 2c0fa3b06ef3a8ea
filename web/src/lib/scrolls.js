// Svelte action for a box that may scroll sideways: the keyboard reaches it while its content is wider than the box.
export function scrolls(box) {
  const look = () => {
    if (box.scrollWidth > box.clientWidth) box.setAttribute('tabindex', '0')
    else box.removeAttribute('tabindex')
  }
  const sizes = new ResizeObserver(look)
  sizes.observe(box)
  if (box.firstElementChild) sizes.observe(box.firstElementChild)
  look()
  return { destroy: () => sizes.disconnect() }
}
