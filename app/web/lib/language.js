/** What the page says, in the browser's language: `page.toml` of a folder of `domain/languages`, or English. A page whose
 * own words are in one language alone names it, so that it is not half in another. */

const { language: only } = document.documentElement.dataset;

/** `languages` are those that an answer can be written in.
 * @type {{language: string, languages: string[], texts: Record<string, string>}} */
export const { language, languages, texts } = await (await fetch(new URL("../page.json", import.meta.url), only ? { headers: { "Accept-Language": only } } : {})).json();

const money = new Intl.NumberFormat(language, { style: "currency", currency: "USD", maximumSignificantDigits: 2, minimumSignificantDigits: 1 });

/** An amount of US dollars, to parts of cents where it is small. @param {number} amount */
export const dollars = (amount) => (amount < 1 ? money.format(amount) : amount.toLocaleString(language, { style: "currency", currency: "USD" }));

const plurals = new Intl.PluralRules(language);

/** The text with this key, with the values in place of the names in braces. `count` chooses the plural form.
 * @param {string} key @param {Record<string, string | number>} [values] */
export function phrase(key, values = {}) {
  const template = texts[key] ?? texts[`${key}.${plurals.select(Number(values.count))}`] ?? texts[`${key}.other`] ?? key;
  return template.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? value.toLocaleString(language) : String(value);
  });
}
