// What a certificate has to say: its members one by one, and what they come to. The same rules and words as
// content.py, where a list is written as Python writes it.

const written = (value) =>
  Array.isArray(value) ? `[${value.map((each) => `'${each}'`).join(", ")}]` : value === false ? "False" : value;

function same(field, value, wanted) {
  check(JSON.stringify(value) === JSON.stringify(wanted), field, `must be ${written(wanted)}`);
}

function object(field, value) {
  check(isObject(value), field, "must be an object");
  return value;
}

function single(field, value) {
  check(Array.isArray(value) && value.length === 1, field, "must be a list of one");
  return value[0];
}

function text(field, value) {
  const length = typeof value === "string" ? [...value].length : 0;
  check(1 <= length && length <= RULES.longest, field, `must be text of 1 to ${RULES.longest} characters`);
  return value;
}

function whole(field, value) {
  const good = typeof value === "string" && /^(0|[1-9][0-9]{0,11})$/.test(value);
  check(good, field, "must be a whole number, written as text");
  return Number(value);
}

function uuid(field, value) {
  const form = /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
  check(typeof value === "string" && form.test(value), field, "must be urn:uuid: and a UUID in small letters");
  return value.slice("urn:uuid:".length);
}

// Times are seconds since 1970, `until` is null where the certificate does not end, `name` "" where it names nobody.
function factsOf(credential) {
  same("@context", credential["@context"], RULES.contexts);
  same("type", credential.type, RULES.types);
  const issuer = object("issuer", credential.issuer);
  same("issuer.type", issuer.type, ["Profile"]);
  const subject = object("credentialSubject", credential.credentialSubject);
  same("credentialSubject.type", subject.type, ["AchievementSubject"]);
  uuid("credentialSubject.id", subject.id);
  const score = scoreOf(subject);
  const status = object("credentialStatus", credential.credentialStatus);
  same("credentialStatus.type", status.type, "BitstringStatusListEntry");
  same("credentialStatus.statusPurpose", status.statusPurpose, "revocation");
  return {
    id: uuid("id", credential.id),
    title: text("name", credential.name),
    name: nameOf(subject.identifier ?? null),
    ...score,
    issuer: text("issuer.name", issuer.name),
    issuerDid: text("issuer.id", issuer.id),
    issuerUrl: text("issuer.url", issuer.url),
    awarded: fromTime("awardedDate", credential.awardedDate),
    issued: fromTime("validFrom", credential.validFrom),
    until: "validUntil" in credential ? fromTime("validUntil", credential.validUntil) : null,
    statusList: text("statusListCredential", status.statusListCredential),
    index: whole("statusListIndex", status.statusListIndex),
  };
}

// Questions right, of how many, and how many were required.
function scoreOf(subject) {
  const achievement = object("achievement", subject.achievement);
  same("achievement.type", achievement.type, ["Achievement"]);
  for (const name of ["id", "name", "description", "achievementType"]) text(`achievement.${name}`, achievement[name]);
  const criteria = object("achievement.criteria", achievement.criteria);
  text("achievement.criteria.narrative", criteria.narrative);
  const described = object("resultDescription", single("resultDescription", achievement.resultDescription));
  same("resultDescription.type", described.type, ["ResultDescription"]);
  same("resultDescription.resultType", described.resultType, "RawScore");
  same("resultDescription.valueMin", described.valueMin, "0");
  text("resultDescription.name", described.name);
  const of = whole("resultDescription.valueMax", described.valueMax);
  const required = whole("resultDescription.requiredValue", described.requiredValue);
  const result = object("result", single("result", subject.result));
  same("result.type", result.type, ["Result"]);
  same("result.resultDescription", result.resultDescription, text("resultDescription.id", described.id));
  const right = whole("result.value", result.value);
  check(required <= right && right <= of, "result.value", `must be from ${required} to ${of}`);
  return { right, of, required };
}

function nameOf(identifier) {
  if (identifier === null) return "";
  const identity = object("identifier", single("identifier", identifier));
  same("identifier.type", identity.type, "IdentityObject");
  same("identifier.identityType", identity.identityType, "name");
  same("identifier.hashed", identity.hashed, false);
  return text("identifier.identityHash", identity.identityHash);
}
