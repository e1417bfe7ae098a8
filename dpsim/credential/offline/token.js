// Signed tokens: ES256 and nothing else, with a key from the issuer's document alone. The same rules and words as
// jws.py and did.py.

function readToken(text) {
  check(text.length <= RULES.mostToken, "token", `must have at most ${RULES.mostToken} characters`);
  const parts = text.split(".");
  check(parts.length === 3, "token", "must have three parts with a dot between them");
  const header = fromJson("header", fromBase64url("header", parts[0]));
  const names = Object.keys(header).sort().join(" ");
  check(names === "alg kid typ", "header", "must hold alg, kid and typ, and nothing else");
  check(header.alg === "ES256", "header.alg", "must be ES256");
  check(header.typ === "JWT", "header.typ", "must be JWT");
  const { kid } = header;
  const good = typeof kid === "string" && kid.length <= RULES.longestKid && /^did:[ -~]*$/.test(kid);
  check(good && kid.split("#").length === 2, "header.kid", "must be the address of a key, did:…#…");
  const payload = fromJson("payload", fromBase64url("payload", parts[1]));
  const signature = fromBase64url("signature", parts[2]);
  check(signature.length === 64, "signature", "must have 64 bytes");
  return { kid, did: kid.split("#")[0], payload, signature, signed: `${parts[0]}.${parts[1]}` };
}

// Every claim has to equal its counterpart, and the key's name has to be the issuer's.
function checkClaims(token) {
  const { payload } = token;
  const wanted = {
    iss: ["issuer", isObject(payload.issuer) ? payload.issuer.id : payload.issuer],
    sub: ["credentialSubject.id", payload.credentialSubject.id],
    jti: ["id", payload.id],
    nbf: ["validFrom", fromTime("validFrom", payload.validFrom)],
    exp: ["validUntil", "validUntil" in payload ? fromTime("validUntil", payload.validUntil) : null],
  };
  for (const [name, [counterpart, value]] of Object.entries(wanted)) {
    check((payload[name] ?? null) === value, name, `must equal ${counterpart}`);
  }
  check(token.did === wanted.iss[1], "header.kid", "must name a key of the issuer");
}

// The key that `kid` names in the issuer's document, ready to verify with.
async function keyOf(document, kid) {
  const { id, assertionMethod: listed, verificationMethod: methods } = document;
  const there = Array.isArray(listed) && Array.isArray(methods) && listed.includes(kid);
  check(there, "kid", "must be one of the issuer's keys");
  const found = methods.filter((method) => isObject(method) && method.id === kid);
  check(found.length === 1 && found[0].controller === id, "kid", "must name one key that is the issuer's own");
  const jwk = found[0].publicKeyJwk;
  const good = isObject(jwk) && jwk.kty === "EC" && jwk.crv === "P-256" && !("d" in jwk);
  check(good, "kid", "must name a public key on the curve P-256");
  for (const value of [jwk.x, jwk.y]) {
    const bytes = typeof value === "string" ? fromBase64url("publicKeyJwk", value) : [];
    check(bytes.length === 32, "publicKeyJwk", "must have coordinates of 32 bytes");
  }
  const { kty, crv, x, y } = jwk;
  const curve = { name: "ECDSA", namedCurve: "P-256" };
  try {
    return await crypto.subtle.importKey("jwk", { kty, crv, x, y }, curve, false, ["verify"]);
  } catch {
    throw new InputError("kid", "must name a point on the curve P-256");
  }
}

function holds(token, key) {
  const text = new TextEncoder().encode(token.signed);
  return crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, key, token.signature, text);
}
