// Accessibility checks that a program can make: names, roles, structure, contrast, size (WCAG 2.2 A and AA).

/// A script that runs in the page and returns its findings, one sentence each.
enum AccessibilityPass {
    static let script = """
        (() => {
          const faults = [], say = (one, words) => faults.push(`${one.tagName.toLowerCase()} "${(one.innerText ?? '').trim().slice(0, 40)}": ${words}`);
          const isSeen = (one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && one.getClientRects().length > 0;
          const name = (one) => (one.getAttribute('aria-label') ?? (one.getAttribute('aria-labelledby') ?? '').split(' ').filter(Boolean)
            .map((id) => document.getElementById(id)?.innerText ?? '').join(' ')) || [...(one.labels ?? [])].filter(isSeen).map((label) => label.innerText).join(' ')
            || (one.matches('select') ? '' : one.innerText) || one.getAttribute('title') || '';
          if (!document.documentElement.lang) faults.push('the page says no language');
          for (const [selector, count] of [['main', 1], ['h1', 1], ['title', 1]]) {
            if (document.querySelectorAll(selector).length !== count) faults.push(`${selector} is not there ${count} time`);
          }
          for (const one of document.querySelectorAll('a, button, input, select, textarea, [role=img], [role=meter], dialog, nav, table')) {
            if (isSeen(one) && !name(one).trim()) say(one, 'has no name');
          }
          for (const one of document.querySelectorAll('[onclick], div[tabindex], span[tabindex]')) say(one, 'is no control and acts like one');
          const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
          ids.filter((id, index) => ids.indexOf(id) !== index).forEach((id) => faults.push(`the id ${id} is there twice`));
          for (const attribute of ['aria-labelledby', 'aria-describedby', 'for']) {
            for (const one of document.querySelectorAll(`[${attribute}]`)) {
              for (const id of one.getAttribute(attribute).split(' ')) if (!document.getElementById(id)) say(one, `${attribute} points to nothing (${id})`);
            }
          }
          let level = 0;
          for (const one of document.querySelectorAll('h1, h2, h3, h4')) {
            const now = Number(one.tagName[1]);
            if (now > level + 1) say(one, `comes after a heading of level ${level}`);
            level = now;
          }
          if (document.scrollingElement.scrollWidth > innerWidth) faults.push(`the page is ${document.scrollingElement.scrollWidth} wide in ${innerWidth}`);
          const finger = innerWidth < 700 ? 44 : 24;
          for (const one of document.querySelectorAll('button, nav a, a.button, select, input:not([type=checkbox], [type=radio]), label:has(> input[type=checkbox]), .switch label, summary, tbody a')) {
            const box = one.getBoundingClientRect();
            if (isSeen(one) && Math.round(Math.min(box.width, box.height)) < finger) say(one, `is ${Math.round(box.width)} by ${Math.round(box.height)}, too small to hit`);
          }
          const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
          const paint = (colours) => {
            context.clearRect(0, 0, 1, 1);
            for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
            return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
          };
          const light = (rgb) => { const [r, g, b] = rgb.map((value) => { const c = value / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const behind = (one) => { const colours = []; for (let at = one; at; at = at.parentElement) colours.unshift(getComputedStyle(at).backgroundColor); return colours; };
          const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          while (texts.nextNode()) {
            const one = texts.currentNode.parentElement;
            if (!texts.currentNode.data.trim() || !isSeen(one) || one.closest('.away, :disabled, .skip')) continue;
            const style = getComputedStyle(one), ground = behind(one);
            const [a, b] = [light(paint([...ground, style.color])), light(paint(ground))].sort((x, y) => y - x);
            const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
            const contrast = (a + 0.05) / (b + 0.05);
            if (contrast < (isLarge ? 3 : 4.5)) say(one, `has a contrast of ${contrast.toFixed(2)}`);
          }
          return [...new Set(faults)];
        })()
        """
}
