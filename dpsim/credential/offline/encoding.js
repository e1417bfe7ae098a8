// How certificates are written down: base64url, JSON and times, read so strictly that each has one form.
// The same rules and words as encoding.py.

class InputError extends Error {
  constructor(field, rule) {
    super(`${field} ${rule}.`); // what was broken, without what came: that is somebody else's text
  }
}

function check(holds, field, rule) {
  if (!holds) throw new InputError(field, rule);
}

function base64url(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64url(field, text) {
  const rule = "must be base64url without padding or spaces";
  check(/^[A-Za-z0-9_-]*$/.test(text) && text.length % 4 !== 1, field, rule);
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  check(base64url(bytes) === text, field, rule); // no bit that stands for nothing
  return bytes;
}

// The JSON object in the bytes: UTF-8, no key twice, finite numbers, at most so many levels deep.
function fromJson(field, bytes) {
  const rule = `must be JSON with no key twice and at most ${RULES.deepest} levels`;
  let value;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
    check(noKeyTwice(text) && sound(value, RULES.deepest), field, rule);
  } catch {
    throw new InputError(field, rule);
  }
  check(isObject(value), field, "must be a JSON object");
  return value;
}

// Whether no object in a JSON text, which is known to be one, has a key twice: JSON.parse keeps the last one.
function noKeyTwice(text) {
  const open = []; // the keys of each object that has begun and not ended, null for a list
  let name = null;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]/g)) {
    const keys = open.at(-1);
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(null);
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":") {
      if (keys.has(name)) return false;
      keys.add(name);
    } else if (token !== ",") name = JSON.parse(token);
  }
  return true;
}

function sound(value, levels) {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value);
  if (value === null || typeof value !== "object") return true;
  const parts = Array.isArray(value) ? value : [...Object.keys(value), ...Object.values(value)];
  return levels > 0 && parts.every((part) => sound(part, levels - 1));
}

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function time(seconds) {
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
}

function fromTime(field, value) {
  const good = typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value) && value >= "0001";
  const seconds = good ? Date.parse(value) / 1000 : NaN;
  const rule = "must be a time such as 2026-01-31T12:00:00Z";
  check(Number.isFinite(seconds) && time(seconds) === value, field, rule); // not the 30th of February
  return seconds;
}

// Decompressed bytes, null where they are no such stream, cut off, followed by something, or come to more than
// `most`. The stream is fed a little at a time, so that a small file cannot fill the memory before it is stopped.
async function expanded(bytes, format, most) {
  const stream = new DecompressionStream(format);
  const writer = stream.writable.getWriter();
  const reader = stream.readable.getReader();
  const feed = async () => {
    for (let at = 0; at < bytes.length; at += 512) await writer.write(bytes.slice(at, at + 512));
    await writer.close();
  };
  feed().catch(() => {}); // whoever reads hears of it as well
  const found = new Uint8Array(most);
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return found.slice(0, length);
      if (length + value.length > most) {
        await reader.cancel();
        return null;
      }
      found.set(value, length);
      length += value.length;
    }
  } catch {
    return null;
  }
}
