/**
 * The terminal's library writes its colours as `<style>` elements and `style` attributes, which our policy refuses. Both
 * have a twin that the policy allows, because script sets it through the object model: constructed style sheets, and
 * `element.style`. Loaded with the library, before its first terminal.
 */
/** `element` stands in for the `<style>`: even an empty one of those is reported. */
const adopt = (element: HTMLElement): HTMLElement => {
  const sheet = new CSSStyleSheet();
  let isIn = false;
  Object.defineProperty(element, 'textContent', {
    get: () => '',
    set: (text: string) => {
      sheet.replaceSync(text);
      if (!isIn) document.adoptedStyleSheets.push(sheet);
      isIn = true;
    },
  });
  element.remove = () => {
    Element.prototype.remove.call(element);
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    isIn = false;
  };
  return element;
};

/** A span of the screen: its attribute becomes its style. */
const restyle = (element: HTMLElement): HTMLElement => {
  element.setAttribute = (name: string, value: string) => {
    if (name === 'style') element.style.cssText = value;
    else Element.prototype.setAttribute.call(element, name, value);
  };
  return element;
};

let isDone = false;

/** Once for the page; what Svelte makes does not come through here (it clones templates). */
export const allowStyles = (): void => {
  if (isDone) return;
  isDone = true;
  const create = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions): HTMLElement => {
    if (name === 'style') return adopt(create('template'));
    const element = create(name, options);
    return name === 'span' ? restyle(element) : element;
  }) as typeof document.createElement;
};
