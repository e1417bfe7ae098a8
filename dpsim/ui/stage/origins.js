// The panel that says where a number comes from, in place of "This beat, by hand"; on narrow screens a sheet
// from below. It gets the focus, and gives it back.

function makeOrigins(root, visit) {
  const find = (name) => root.querySelector(name);
  const [stage, panel, hand] = [find(".stage"), find(".origin"), find(".hand")];
  let [model, asker, trail, shown] = [null, null, [], null];

  // A row of the payload in words; `told` says what was asked about where the row itself does not.
  function read(row, told) {
    const { rows, texts } = model.data.origins;
    const origin = rows[row];
    const line = origin[LINES].map((text) => texts[text]);
    const pairs = line.flatMap((what, i) => (i % 2 ? [] : [[what, line[i + 1]]]));
    const inside = origin[INSIDE] < 0 ? "" : texts[origin[INSIDE]];
    return { told, title: texts[origin[TITLE]], says: texts[origin[SAYS]], pairs, inside, beat: origin[BEAT], parts: origin[PARTS] };
  }

  function open(number, dark) {
    asker?.classList.remove("asked");
    asker = number;
    asker.classList.add("asked");
    trail = [];
    show(number.askedFor ?? read(Number(number.dataset.origin), number.dataset.told), dark);
    place();
    panel.scrollTop = 0;
    panel.focus({ preventScroll: true });
    // What was asked about stays in sight, above the sheet or beside the panel.
    number.style.scrollMarginBottom = panel.popover ? `${panel.offsetHeight + 12}px` : "";
    (panel.popover ? number : panel).scrollIntoView({ block: "nearest" });
  }

  function show(origin, dark) {
    shown = origin;
    find(".origin .told").textContent = origin.told || "where it comes from";
    find(".origin h3").textContent = origin.title;
    explain(find(".origin .says"), origin.says);
    find(".origin .lines").replaceChildren(
      ...origin.pairs.flatMap(([what, how]) => [
        ...(what ? [explain(element("span", "label"), what)] : []),
        element("code", how.length > 34 || origin.pairs.length > 2 ? "long" : "", how),
      ]),
    );
    find(".origin .who").hidden = !origin.inside;
    showPills(find(".origin .pills"), origin.inside, dark);
    const { beats } = model.data;
    find(".origin .parts").hidden = !origin.parts.length;
    find(".origin .parts div").replaceChildren(
      ...origin.parts.map((row) => {
        const part = read(row, "");
        const button = element("button", "", `${part.title}, ${beats[part.beat]?.title ?? ""}`);
        button.onclick = () => {
          trail.push(shown);
          show(part, dark);
          panel.focus({ preventScroll: true });
        };
        return button;
      }),
    );
    find(".origin .up").hidden = !trail.length;
    find(".origin .up").onclick = () => {
      show(trail.pop(), dark);
      panel.focus({ preventScroll: true });
    };
    find(".origin .go").hidden = origin.beat < 0;
    find(".origin .at").textContent = origin.beat < 0 ? "" : beats[origin.beat].title;
    find(".origin .go").onclick = () => visit(origin.beat);
  }

  // In the column beside the field, or in the top layer where there is no such column.
  function place() {
    if (!shown) return;
    const narrow = stage.clientWidth <= 860;
    if (!panel.hidden && narrow === panel.matches(":popover-open")) return;
    if (panel.matches(":popover-open")) panel.hidePopover();
    panel.popover = narrow ? "manual" : null;
    panel.hidden = false;
    hand.hidden = !narrow;
    if (narrow) panel.showPopover();
  }

  function close() {
    if (!shown) return false;
    const had = panel.contains(panel.getRootNode().activeElement);
    shown = null;
    asker.classList.remove("asked");
    if (panel.matches(":popover-open")) panel.hidePopover();
    panel.hidden = true;
    hand.hidden = false;
    if (had) (asker?.isConnected && asker.checkVisibility() ? asker : stage).focus({ preventScroll: true });
    return true;
  }

  return {
    use: (next) => (model = next),
    open,
    place,
    close,
    recolour: (dark) => shown && showPills(find(".origin .pills"), shown.inside, dark),
  };
}
