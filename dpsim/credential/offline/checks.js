// Verifying: five checks, each of which says what was found or why it could not be made. The same outcomes and
// words as verify.py and status.py.

const NAMES = ["signature", "issuer key", "content", "dates", "revocation"];

const passed = (name, said) => ({ name, outcome: "passed", said });
const failed = (name, said) => ({ name, outcome: "failed", said });
const unchecked = (name, said) => ({ name, outcome: "not checked", said });

// What `make` gives, or `otherwise` of the rule that was broken.
async function orElse(make, otherwise) {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return otherwise(error.message);
  }
}

// What can be said at `now` of a token, by the issuer's document and status list, null where it was not given.
async function verify(text, document, statusList, now) {
  const unread = (said) => {
    const rest = NAMES.slice(1).map((name) => unchecked(name, "The certificate could not be read."));
    return { checks: [failed("signature", said), ...rest], kid: "", facts: null };
  };
  const read = await orElse(() => ({ token: readToken(text) }), unread);
  if (!read.token) return read;
  const { token } = read;
  const { signature, key } = await checkSignature(token, document);
  if (signature.outcome === "failed") {
    const rest = NAMES.slice(2).map((name) => unchecked(name, "What the certificate says cannot be trusted."));
    return { checks: [signature, key, ...rest], kid: token.kid, facts: null };
  }
  const { content, facts } = await checkContent(token);
  const revocation = await checkRevocation(facts, key, document, statusList, now);
  const checks = [signature, key, content, checkDates(facts, now), revocation];
  return { checks, kid: token.kid, facts: signature.outcome === "passed" ? facts : null };
}

// Not valid where any check failed; not verified where none did, but the signature or the key could not be checked.
function outcomeOf(checks) {
  if (checks.some((check) => check.outcome === "failed")) return "not valid";
  return checks[0].outcome === "passed" && checks[1].outcome === "passed" ? "valid" : "not verified";
}

async function checkSignature(token, document) {
  const unkeyed = unchecked("signature", "It takes the issuer's key.");
  if (token.did !== document.id) {
    const said = `The key is to be one of ${token.did}; the keys that were given are another issuer's.`;
    return { signature: unkeyed, key: unchecked("issuer key", said) };
  }
  if (!globalThis.crypto?.subtle) {
    const key = unchecked("issuer key", "This browser has no cryptography for a page that was opened this way.");
    return { signature: unkeyed, key };
  }
  const found = await orElse(
    async () => ({ key: await keyOf(document, token.kid) }),
    (said) => ({ wrong: failed("issuer key", said) }),
  );
  if (found.wrong) return { signature: unkeyed, key: found.wrong };
  const key = passed("issuer key", `It is among the keys given for ${token.did}.`);
  const fits = "The key has signed exactly this text, by ES256.";
  if (await holds(token, found.key)) return { signature: passed("signature", fits), key };
  const said = "The signature does not fit: the text was altered, or another key has signed it.";
  return { signature: failed("signature", said), key };
}

function checkContent(token) {
  const fits = passed("content", "It is an Open Badges 3.0 credential, and its claims agree with it.");
  const read = () => {
    const facts = factsOf(token.payload);
    checkClaims(token);
    return { content: fits, facts };
  };
  return orElse(read, (said) => ({ content: failed("content", said), facts: null }));
}

function checkDates(facts, now) {
  if (!facts) return unchecked("dates", "The content is not as it has to be.");
  const { issued, until } = facts;
  if (issued > now + RULES.skew) return failed("dates", `It is dated ${time(issued)}, which is still to come.`);
  if (until !== null && until <= now) return failed("dates", `It was valid until ${time(until)}.`);
  const end = until === null ? " without end" : ` until ${time(until)}`;
  return passed("dates", `It is valid from ${time(issued)}${end}.`);
}

async function checkRevocation(facts, key, document, statusList, now) {
  const name = "revocation";
  if (!facts) return unchecked(name, "The content is not as it has to be.");
  if (key.outcome !== "passed") return unchecked(name, "A status list is trusted by the issuer's key alone.");
  if (statusList === null) return unchecked(name, `No status list was given; it is at ${facts.statusList}.`);
  const distrusted = (said) => unchecked(name, `The status list that was given is not to be trusted. ${said}`);
  const listed = await orElse(() => readList(statusList, document, facts.statusList), distrusted);
  if (!listed.bits) return listed;
  if (facts.index >= RULES.entries) return failed(name, `statusListIndex must be from 0 to ${RULES.entries - 1}.`);
  if (listed.bits[facts.index >> 3] & (0x80 >> (facts.index & 7))) {
    return failed(name, `The issuer has revoked it, says the list of ${time(listed.issued)}.`);
  }
  if (now < listed.issued - RULES.skew || now >= listed.until) {
    return unchecked(name, `The status list holds from ${time(listed.issued)} to ${time(listed.until)}, not now.`);
  }
  return passed(name, `It is not revoked, says the list of ${time(listed.issued)}.`);
}

// The bits and dates of the status list in `text`, which has to be the one at `url`, by the same issuer.
async function readList(text, document, url) {
  const token = readToken(text);
  const { payload } = token;
  const subject = payload.credentialSubject;
  const same = (value, wanted) => JSON.stringify(value) === JSON.stringify(wanted);
  const typed = same(payload.type, RULES.listTypes) && same(payload["@context"], RULES.contexts.slice(0, 1));
  check(typed && isObject(subject), "status list", "must be a BitstringStatusListCredential");
  const revokes = subject.type === "BitstringStatusList" && subject.statusPurpose === "revocation";
  check(revokes, "status list", "must be for revocation");
  const named = payload.id === url && subject.id === `${url}#list`;
  check(named, "status list", "must be the one that the certificate names");
  check(payload.issuer === document.id, "status list", "must be by the issuer of the certificate");
  const [issued, until] = ["validFrom", "validUntil"].map((name) => fromTime(name, payload[name]));
  checkClaims(token);
  const fits = await holds(token, await keyOf(document, token.kid));
  check(fits, "status list", "must be signed with the issuer's key");
  return { bits: await bitsOf(subject.encodedList), issued, until };
}

async function bitsOf(encoded) {
  const rule = `must be ${RULES.entries} bits, compressed with GZIP, in base64url with a u in front`;
  const otherwise = () => check(false, "encodedList", rule);
  check(typeof encoded === "string" && encoded[0] === "u", "encodedList", rule);
  const packed = await orElse(() => fromBase64url("encodedList", encoded.slice(1)), otherwise);
  const bits = await expanded(packed, "gzip", RULES.entries / 8);
  check(bits?.length === RULES.entries / 8, "encodedList", rule);
  return bits;
}
