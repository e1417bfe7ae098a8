// The token in a file: a PNG picture with an iTXt chunk, or a text file. The same rules and words as baked.py.

const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const KEYWORD = "openbadgecredential";
const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

const latin = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

async function tokenIn(bytes) {
  if (PNG.every((byte, at) => bytes[at] === byte)) return unbake(bytes);
  return checkedToken(bytes.length <= 2 * RULES.mostToken ? latin(bytes).replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "") : "");
}

function checkedToken(text) {
  const good = text.length <= RULES.mostToken && /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/.test(text);
  const rule = `must be a signed token of at most ${RULES.mostToken} characters, or a PNG with one in it`;
  check(good, "certificate", rule);
  return text;
}

async function unbake(bytes) {
  const found = chunks(bytes).filter(({ type, body }) => type === "iTXt" && keywordOf(body) === KEYWORD);
  check(found.length === 1, "picture", "must hold one credential");
  const body = found[0].body.subarray(KEYWORD.length + 1);
  const language = body.indexOf(0, 2);
  const translated = language < 0 ? -1 : body.indexOf(0, language + 1);
  const good = body[0] <= 1 && body[1] === 0 && translated >= 0;
  check(good, "picture", "must hold its credential as an iTXt chunk");
  let text = body.subarray(translated + 1);
  if (body[0] === 1) {
    text = await expanded(text, "deflate", RULES.mostToken);
    const rule = `must hold text that comes to at most ${RULES.mostToken} bytes, decompressed`;
    check(text !== null, "picture", rule);
  }
  return checkedToken(latin(text));
}

// Type and content of every chunk. What a file claims about lengths is never believed beyond its end.
function chunks(bytes) {
  check(bytes.length <= RULES.mostBytes, "picture", `must have at most ${RULES.mostBytes} bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const found = [];
  for (let at = PNG.length; at < bytes.length; ) {
    const whole = at + 12 <= bytes.length;
    const end = whole ? at + 12 + view.getUint32(at) : Infinity;
    const type = whole ? latin(bytes.subarray(at + 4, at + 8)) : "";
    check(/^[A-Za-z]{4}$/.test(type) && end <= bytes.length, "picture", "must have whole chunks");
    const sum = crc32(bytes.subarray(at + 4, end - 4));
    check(sum === view.getUint32(end - 4), "picture", "must have chunks with the right checksum");
    const placed = (type === "IHDR") === (found.length === 0) && (type === "IEND") === (end === bytes.length);
    check(placed, "picture", "must begin with IHDR and end with IEND");
    found.push({ type, body: bytes.subarray(at + 8, end - 4) });
    check(found.length <= RULES.mostChunks, "picture", `must have at most ${RULES.mostChunks} chunks`);
    at = end;
  }
  check(found.length > 0, "picture", "must begin with IHDR and end with IEND");
  return found;
}

function keywordOf(body) {
  const end = body.indexOf(0);
  check(1 <= end && end <= 79, "picture", "must have text chunks with a keyword");
  return latin(body.subarray(0, end));
}

function crc32(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = CRC[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  return ~sum >>> 0;
}
